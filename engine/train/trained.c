#include "train/trained.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/system.h"
#include "train/lora.h"

int ms_trained_place(struct ms_placement *placement, struct ms_train_need *need,
                     const struct ms_machine *machine, struct ms_error *error) {
  need->job.host_budget = ms_memory_budget(machine);
  need->job.device_budget = machine->device_memory;
  return ms_placement_make(placement, &need->job, error);
}

static void freeze_all_but_offsets(struct ms_params *params) {
  for (int i = 0; i < params->count; i++)
    if (!strstr(params->list[i].name, ".offset."))
      params->list[i].kind = MS_PARAM_FROZEN;
}

static void lay_out(struct ms_trained *t) {
  const struct ms_train_need *need = &t->need;
  for (int i = -1; i < need->job.layers; i++) {
    struct ms_shard_layout *l = &t->layout[i + 1];
    ms_dit_shard_range(t->model->dit, i, &l->begin, &l->count);
    l->owned = i < 0 ? need->outer_gathered : need->gathered[i];
    l->first = l->count - l->owned;
  }
}

static int needs_disk(const struct ms_placement *placement) {
  return placement->disk_bytes > 0;
}

static int make_folder(struct ms_trained *t, struct ms_error *error) {
  if (!needs_disk(&t->placement))
    return 0;
  snprintf(t->folder, sizeof t->folder, "%s/state", t->job->output);
  if (mkdir(t->folder, 0777) < 0 && errno != EEXIST) {
    int why = errno;
    snprintf(t->folder, sizeof t->folder, "%s", "");
    return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s/state\": %s", t->job->output,
                        strerrordesc_np(why));
  }
  if (!t->group) /* of a group the first rank has done it before the others came here */
    ms_disk_file_sweep(t->folder);
  return 0;
}

static int open_store(struct ms_trained *t, struct ms_error *error) {
  struct ms_shard_store_params params = {
      .layers = t->need.job.layers,
      .layout = t->layout,
      .homes = t->placement.params.homes,
      .moment_bits = t->job->moment_bits,
      .average = t->job->ema > 0,
      .piece = t->placement.params.piece,
      .folder = t->folder,
      .group = t->group,
  };
  return ms_shard_store_open(&t->store, &params, t->model->compute->pool, error);
}

static int open_streamer(struct ms_trained *t, const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_streamer_params params;
  t->placement.params.gathered = t->group ? t->need.gathered : NULL;
  params = (struct ms_streamer_params){
      .store = t->store,
      .params = ms_dit_params(t->model->dit),
      .schedule = &t->placement.params,
      .compute = t->model->compute,
      .folder = t->folder,
      .input_elements = (int64_t)(t->need.job.input_bytes / sizeof(float)),
      .cancel = hooks ? hooks->cancel : NULL,
      .trace = &t->trace,
  };
  return ms_streamer_open(&t->streamer, &params, error);
}

static void tell(const struct ms_hooks *hooks, int done, int total, double began) {
  struct ms_progress progress = {"load", done, total, ms_seconds() - began, -1};
  if (hooks && hooks->progress)
    hooks->progress(hooks->data, &progress);
}

/* The first weights of all shards. */
static int fill(struct ms_trained *t, const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_params *params = ms_dit_params(t->model->dit);
  struct ms_dit_file file = {0};
  double began = ms_seconds();
  char path[1200];
  int layers = t->need.job.layers, code = 0, in_memory = params->data != NULL;
  if (!in_memory) {
    snprintf(path, sizeof path, "%s/%s", t->model->folder, ms_model_part_file(MS_MODEL_DIT));
    code = ms_dit_file_open(&file, t->model->dit, path, error);
    file.seed = t->job->seed;
  }
  for (int i = -1; i < layers && code == 0; i++) {
    code = ms_shard_store_fill(t->store, i, in_memory ? ms_dit_memory_read : ms_dit_file_read,
                               in_memory ? (void *)t->model->dit : &file, error);
    tell(hooks, i + 2, layers + 1, began);
    if (code == 0 && hooks && hooks->cancel && atomic_load(hooks->cancel))
      code = ms_error_set(error, MS_ECANCELLED, "stopped while the model was loaded");
  }
  ms_dit_file_close(&file);
  free(params->data);
  params->data = NULL;
  params->type = MSK_BF16;
  return code;
}

int ms_trained_open(struct ms_trained *t, struct ms_model *model, const struct ms_train_job *job,
                    const struct ms_train_clips *clips, const struct ms_machine *machine,
                    const struct ms_hooks *hooks, struct ms_error *error) {
  int code;
  memset(t, 0, sizeof *t);
  t->model = model;
  t->job = job;
  t->group = machine->group;
  if (job->method == MS_METHOD_OFFSETS)
    freeze_all_but_offsets(ms_dit_params(model->dit));
  ms_train_need(model, job, clips, t->group, &t->need);
  code = ms_trained_place(&t->placement, &t->need, machine, error);
  if (code == 0 && !t->placement.fits)
    code = ms_error_set(error, MS_EBUDGET, "the model's state does not fit the %s memory allowed",
                        t->placement.short_of);
  if (code == 0)
    code = ms_trace_open(&t->trace, job->trace ? MS_TRAIN_TRACED : 0, error);
  if (code == 0)
    lay_out(t);
  if (code == 0)
    code = make_folder(t, error);
  if (code == 0)
    code = open_store(t, error);
  if (code == 0)
    code = fill(t, hooks, error);
  if (code == 0)
    code = open_streamer(t, hooks, error);
  if (code == 0)
    code = ms_dit_prepare_source(model->dit, ms_streamer_source(t->streamer), MSK_PRECISION_BF16, 1, error);
  return code;
}

void ms_trained_close(struct ms_trained *t) {
  ms_streamer_close(&t->streamer);
  ms_shard_store_close(&t->store);
  ms_placement_release(&t->placement);
  ms_trace_release(&t->trace);
  if (t->folder[0])
    rmdir(t->folder);
  memset(t, 0, sizeof *t);
}

int ms_trained_begin(struct ms_trained *t, enum ms_stream_kind kind, int64_t step, struct ms_error *error) {
  ms_streamer_set_step(t->streamer, step);
  return ms_streamer_begin(t->streamer, kind, error);
}

int ms_trained_end(struct ms_trained *t, int code, struct ms_error *error) {
  return ms_streamer_end(t->streamer, code, error);
}

int ms_trained_update(struct ms_trained *t, double lr, double *norm, struct ms_error *error) {
  const struct ms_train_job *job = t->job;
  struct ms_update update = {.adamw = {.lr = lr,
                                       .beta1 = (float)job->beta1,
                                       .beta2 = (float)job->beta2,
                                       .eps = 1e-8,
                                       .decay = (float)job->weight_decay,
                                       .grad_scale = 1}};
  double n = (double)t->updates;
  const char *bad;
  *norm = ms_streamer_norm(t->streamer, &bad);
  if (!isfinite(*norm))
    return bad ? ms_error_set(error, MS_ENOTFINITE, "the gradient of \"%s\" is not finite", bad)
               : ms_error_set(error, MS_ENOTFINITE, "the gradient's norm is not finite");
  t->updates++;
  update.adamw.correction1 = 1 - pow(update.adamw.beta1, (double)t->updates);
  update.adamw.correction2 = 1 - pow(update.adamw.beta2, (double)t->updates);
  if (job->clip_norm > 0 && *norm > job->clip_norm)
    update.adamw.grad_scale = job->clip_norm / *norm;
  update.average = (float)fmin(job->ema, (1 + n) / (10 + n));
  update.seed = (uint32_t)(job->seed * 0x9e3779b9u + (uint64_t)t->updates);
  ms_streamer_put_update(t->streamer, &update);
  return 0;
}

int ms_trained_flush(struct ms_trained *t, struct ms_error *error) {
  return ms_streamer_flush(t->streamer, error);
}

static int save_state(void *data, const char *path, uint64_t *sum, struct ms_error *error) {
  struct ms_trained *t = data;
  return ms_state_file_write(t->store, path, sum, error);
}

static int load_state(void *data, const char *path, uint64_t sum, struct ms_error *error) {
  struct ms_trained *t = data;
  return ms_state_file_read(t->store, path, sum, error);
}

struct ms_checkpoint_state ms_trained_state(struct ms_trained *t) {
  return (struct ms_checkpoint_state){t, save_state, load_state};
}

int ms_trained_serve(struct ms_trained *t, struct ms_error *error) {
  return ms_state_serve(t->store, error);
}

void ms_trained_served(struct ms_trained *t) {
  if (t->group)
    ms_state_served(t->store);
}

static int write_export(struct ms_trained *t, struct ms_error *error) {
  char path[1200];
  int code;
  snprintf(path, sizeof path, "%s/%s", t->job->output, ms_model_part_file(MS_MODEL_DIT));
  if (t->job->method != MS_METHOD_LORA)
    return ms_state_file_export(t->store, ms_dit_params(t->model->dit), path, error);
  code = ms_lora_write_merged(t->model->dit, t->model->compute, t->store, path, error);
  snprintf(path, sizeof path, "%s/%s", t->job->output, MS_LORA_FILE);
  return code < 0 ? code : ms_lora_write(t->model->dit, t->store, path, error);
}

int ms_trained_export(struct ms_trained *t, struct ms_error *error) {
  int code;
  if (ms_group_rank(t->group) > 0)
    return ms_trained_serve(t, error);
  code = write_export(t, error);
  ms_trained_served(t);
  return code;
}
