#include "bench/rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int ms_bench_rig_open(struct ms_bench_run *run, struct ms_bench_rig *rig, struct ms_dit *dit,
                      const struct ms_bench_rig_params *params) {
  int layers = ms_dit_config(dit)->layers, code;
  struct ms_shard_store_params store = {.layers = layers,
                                        .layout = rig->layout,
                                        .homes = rig->homes,
                                        .moment_bits = 32,
                                        .average = params->average,
                                        .folder = params->folder};
  struct ms_streamer_params streamer = {.params = ms_dit_params(dit),
                                        .schedule = &rig->schedule,
                                        .compute = &run->compute,
                                        .cancel = run->hooks ? run->hooks->cancel : NULL};
  memset(rig, 0, sizeof *rig);
  rig->dit = dit;
  rig->schedule = ms_schedule_params_default();
  for (int i = -1; i < layers; i++) {
    struct ms_shard_layout *l = &rig->layout[i + 1];
    ms_dit_shard_range(dit, i, &l->begin, &l->count);
    l->owned = l->count;
    if (i < 0)
      continue;
    rig->counts[i] = l->count;
    rig->homes[i] = params->folder ? MS_HOME_DISK : MS_HOME_HOST;
  }
  rig->schedule.layers = layers;
  rig->schedule.counts = rig->counts;
  rig->schedule.homes = rig->homes;
  rig->schedule.outer = rig->schedule.outer_trained = rig->layout[0].count;
  rig->schedule.state_bytes = params->average ? 14 : 10;
  rig->schedule.average_bytes = params->average ? 4 : 0;
  rig->schedule.sync = params->sync;
  store.piece = rig->schedule.piece;
  ms_dit_params(dit)->type = MSK_BF16;
  code = ms_shard_store_open(&rig->store, &store, run->compute.pool, run->error);
  for (int i = -1; i < layers && code == 0; i++)
    code = ms_shard_store_fill(rig->store, i, params->read, params->read_data, run->error);
  streamer.store = rig->store;
  if (code == 0)
    code = ms_streamer_open(&rig->streamer, &streamer, run->error);
  if (code == 0)
    code = ms_dit_prepare_source(dit, ms_streamer_source(rig->streamer), MSK_PRECISION_BF16, 1, run->error);
  return code;
}

void ms_bench_rig_close(struct ms_bench_rig *rig) {
  ms_streamer_close(&rig->streamer);
  ms_shard_store_close(&rig->store);
}

int ms_bench_rig_weights(void *data, int shard, uint16_t *weights, struct ms_error *error) {
  enum { PIECE = 4096 };
  const struct ms_params *params = ms_dit_params(data);
  float *normals = ms_bench_floats(PIECE);
  int64_t begin, count;
  if (!normals)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark's weights");
  ms_dit_shard_range(data, shard, &begin, &count);
  memset(weights, 0, (size_t)count * sizeof *weights);
  for (int i = ms_params_index(params, begin); i < params->count && params->list[i].offset < begin + count;
       i++) {
    const struct ms_param *param = &params->list[i];
    double scale =
        param->kind == MS_PARAM_MATRIX ? 1 / sqrt((double)param->count / (double)param->dims[0]) : 0.02;
    uint16_t *to = weights + (param->offset - begin);
    for (int64_t j = 0; j < param->count; j++)
      to[j] = msk_f32_to_bf16(param->start == MS_START_ONE ? 1 : (float)(scale * normals[j % PIECE]));
  }
  free(normals);
  return 0;
}

/* What a training run does at the end of a step, with a rate that leaves the weights about where they are. */
static void put_update(struct ms_bench_rig *rig) {
  struct ms_update update = {.adamw = {.lr = 1e-5, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8, .decay = 0.01},
                             .average = 0.99f};
  const char *bad;
  double norm = ms_streamer_norm(rig->streamer, &bad);
  rig->updates++;
  update.adamw.correction1 = 1 - pow(0.9, (double)rig->updates);
  update.adamw.correction2 = 1 - pow(0.99, (double)rig->updates);
  update.adamw.grad_scale = norm > 1 ? 1 / norm : 1;
  ms_streamer_put_update(rig->streamer, &update);
}

int ms_bench_rig_step(struct ms_bench_run *run, struct ms_bench_rig *rig, const struct ms_dit_batch *batch,
                      float *velocity, float *dvelocity, int update, void (*loss)(void *data),
                      void *loss_data) {
  const float *gradient = dvelocity;
  int code = ms_streamer_begin(rig->streamer, MS_STREAM_STEP, run->error);
  if (code < 0)
    return code;
  code = ms_dit_forward_all(rig->dit, batch, 1, 1, &velocity, run->error);
  if (code == 0 && loss)
    loss(loss_data);
  if (code == 0)
    code = ms_dit_backward_all(rig->dit, batch, 1, &gradient, NULL, run->error);
  code = ms_streamer_end(rig->streamer, code, run->error);
  if (code == 0 && update)
    put_update(rig);
  return code;
}

int ms_bench_rig_ghost(struct ms_bench_run *run, struct ms_bench_rig *rig) {
  const struct ms_dit_source *source = ms_streamer_source(rig->streamer);
  int layers = rig->schedule.layers, code = ms_streamer_begin(rig->streamer, MS_STREAM_STEP, run->error);
  if (code < 0)
    return code;
  for (int i = 0; i < 2 * (layers + 2) && code == 0; i++) {
    int back = i >= layers + 2, shard = back ? 2 * layers + 2 - i : i - 1;
    enum ms_dit_pass pass = back ? MS_PASS_BACKWARD : MS_PASS_FORWARD;
    struct ms_dit_loan loan;
    code = source->begin(source->data, pass, shard, &loan, run->error);
    if (code == 0)
      code = source->end(source->data, pass, shard, run->error);
  }
  code = ms_streamer_end(rig->streamer, code, run->error);
  if (code == 0)
    put_update(rig);
  return code;
}
