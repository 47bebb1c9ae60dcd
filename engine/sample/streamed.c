#include "sample/streamed.h"

#include <stdio.h>
#include <string.h>

#include "base/system.h"
#include "sample/memory.h"

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Activations of the stage that has most: both texts of guided sampling go through a layer together. */
static size_t working_bytes(const struct ms_model *model, const struct ms_stage_plan *plan,
                            enum msk_precision precision) {
  size_t most = 0;
  for (int i = 0; i < plan->count; i++) {
    const struct ms_stage *stage = &plan->list[i];
    struct ms_dit_batch batch = {.samples = 1, .coarse = stage->coarse, .text_slot = 1};
    int texts = stage->guidance == 1 ? 1 : 2;
    size_t bytes;
    memcpy(batch.lattice, stage->lattice, sizeof batch.lattice);
    bytes = ms_model_activation_bytes(model, &batch, precision, 0);
    if (texts > 1)
      bytes += ms_model_text_bytes(model, precision) + ms_dit_input_bytes(model->dit, &batch, 1);
    most = larger(most, bytes);
  }
  return most;
}

void ms_sample_need(const struct ms_model *model, const struct ms_stage_plan *plan,
                    enum msk_precision precision, struct ms_sample_need *need) {
  struct ms_memory memory;
  size_t packed = 0, beside = ms_model_beside_bytes(model, precision);
  int64_t begin;
  memset(need, 0, sizeof *need);
  ms_sample_memory(model, plan, precision, &memory);
  need->job = (struct ms_placement_job){.layers = ms_dit_config(model->dit)->layers, .counts = need->counts};
  ms_dit_shard_range(model->dit, -1, &begin, &need->job.outer);
  for (int l = 0; l < need->job.layers; l++) {
    ms_dit_shard_range(model->dit, l, &begin, &need->counts[l]);
    packed = larger(packed, ms_model_shard_packed_bytes(model, MSK_BF16, precision, l, 0));
  }
  packed += ms_model_shard_packed_bytes(model, MSK_BF16, precision, -1, 0);
  need->job.host_fixed = memory.host - (memory.weights + memory.packed - beside) - memory.activations;
  need->job.working = packed + working_bytes(model, plan, precision);
}

static int open_store(struct ms_streamed *s, const struct ms_placement *placement, struct ms_error *error) {
  struct ms_shard_layout layout[MS_MAX_LAYERS + 1];
  struct ms_shard_store_params params = {.layers = placement->params.layers,
                                         .layout = layout,
                                         .homes = placement->params.homes,
                                         .piece = placement->params.piece,
                                         .read = ms_dit_file_read,
                                         .read_data = &s->file};
  memset(layout, 0, sizeof layout);
  for (int i = -1; i < params.layers; i++)
    ms_dit_shard_range(s->model->dit, i, &layout[i + 1].begin, &layout[i + 1].count);
  return ms_shard_store_open(&s->store, &params, s->model->compute->pool, error);
}

static int fill(struct ms_streamed *s, const struct ms_hooks *hooks, struct ms_error *error) {
  double began = ms_seconds();
  int layers = s->schedule.layers, code = 0;
  for (int i = -1; i < layers && code == 0; i++) {
    struct ms_progress progress = {"load", i + 2, layers + 1, ms_seconds() - began, -1};
    code = ms_shard_store_fill(s->store, i, ms_dit_file_read, &s->file, error);
    if (hooks && hooks->progress)
      hooks->progress(hooks->data, &progress);
    if (code == 0 && hooks && hooks->cancel && atomic_load(hooks->cancel))
      code = ms_error_set(error, MS_ECANCELLED, "stopped while the model was loaded");
  }
  return code;
}

int ms_streamed_open(struct ms_streamed *s, struct ms_model *model, const struct ms_placement *placement,
                     enum msk_precision precision, const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_streamer_params params = {.params = ms_dit_params(model->dit),
                                      .schedule = &s->schedule,
                                      .compute = model->compute,
                                      .cancel = hooks ? hooks->cancel : NULL};
  char path[1200];
  int code;
  memset(s, 0, sizeof *s);
  s->model = model;
  s->schedule = placement->params;
  s->schedule.inputs = MS_INPUT_DEVICE;
  snprintf(path, sizeof path, "%s/%s", model->folder, ms_model_part_file(MS_MODEL_DIT));
  ms_dit_params(model->dit)->type = MSK_BF16;
  code = ms_dit_file_open(&s->file, model->dit, path, error);
  if (code == 0)
    code = open_store(s, placement, error);
  if (code == 0)
    code = fill(s, hooks, error);
  params.store = s->store;
  if (code == 0)
    code = ms_streamer_open(&s->streamer, &params, error);
  if (code == 0)
    code = ms_dit_prepare_source(model->dit, ms_streamer_source(s->streamer), precision, 0, error);
  return code;
}

void ms_streamed_close(struct ms_streamed *s) {
  ms_streamer_close(&s->streamer);
  ms_shard_store_close(&s->store);
  ms_dit_file_close(&s->file);
  memset(s, 0, sizeof *s);
}

int ms_streamed_forward(struct ms_streamed *s, const struct ms_dit_batch *batches, int count,
                        float *const *velocities, struct ms_error *error) {
  int code = ms_streamer_begin(s->streamer, MS_STREAM_FORWARD, error);
  if (code < 0)
    return code;
  code = ms_dit_forward_all(s->model->dit, batches, count, 0, velocities, error);
  return ms_streamer_end(s->streamer, code, error);
}
