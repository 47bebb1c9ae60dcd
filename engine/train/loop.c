#include "train/loop.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/random.h"
#include "base/system.h"
#include "base/text.h"
#include "ms-generate.h"
#include "train/checkpoint.h"
#include "train/disk.h"
#include "train/memory.h"
#include "train/metrics-file.h"
#include "train/objective.h"
#include "train/optimizer.h"
#include "train/report.h"
#include "train/schedule.h"
#include "train/split.h"
#include "weights/params-file.h"

#define STREAM_BUCKET ((uint64_t)4 << 40)
#define BAD_STEPS_IN_A_ROW 3
/* A loss that ends so many times above the first, or above so much, has left what can be learned. */
#define GROWN_TIMES 10
#define LOSS_BEYOND 1e4
/* Noise levels of the validation loss. */
static const double validation_sigmas[MS_VALIDATION_SAMPLES] = {0.15, 0.4, 0.65, 0.9};

struct loop {
  struct ms_model *model;
  const struct ms_train_job *job;
  const struct ms_machine *machine;
  const struct ms_hooks *hooks;
  struct ms_train_result *result;
  const struct ms_clip_source *source;
  struct ms_split split;
  struct ms_store stores[MS_TRAIN_MAX_BUCKETS], held_out;
  int64_t *orders[MS_TRAIN_MAX_BUCKETS], epochs[MS_TRAIN_MAX_BUCKETS];
  int store_count;
  struct ms_objective objective;
  struct ms_optimizer optimizer;
  struct ms_checkpoint at;
  struct ms_metrics_file metrics;
  struct ms_latents_cache cache;
  struct ms_train_figures step; /* of the last step that counted; step 0: none yet */
  float *grad;
  int begun;   /* optimizer and checkpoint are open */
  double peak; /* FLOP/s of bf16 */
  double start, trained_seconds, trained_tokens, trained_flops;
  int bad_steps;
};

static void log_line(const struct loop *loop, enum ms_log_level level, const char *message) {
  if (loop->hooks && loop->hooks->log)
    loop->hooks->log(loop->hooks->data, level, message);
}

static int cancelled(const struct loop *loop) {
  return loop->hooks && loop->hooks->cancel && atomic_load(loop->hooks->cancel);
}

static int fill_stores(struct loop *loop, const struct ms_clip_source *source, struct ms_error *error) {
  const struct ms_train_job *job = loop->job;
  struct ms_train_bucket single = {
      .width = job->width, .height = job->height, .frames = job->frames, .batch = job->batch, .share = 1};
  int count = job->bucket_count ? job->bucket_count : 1;
  int64_t most_elements = 0, most_samples = MS_VALIDATION_SAMPLES;
  int code = ms_split_init(&loop->split, job, source, error);
  ms_latents_cache_open(&loop->cache, job->output, loop->model, loop->hooks);
  for (int b = 0; b < count && code == 0; b++) {
    const struct ms_train_bucket *bucket = job->bucket_count ? &job->buckets[b] : &single;
    struct ms_store *store = &loop->stores[b];
    int64_t *numbers = NULL, clips = 0, items;
    code = ms_split_training(&loop->split, source, bucket, &numbers, &clips, error);
    if (code < 0)
      break;
    items = ms_train_items(bucket, source->count, clips);
    code = ms_store_fill(store, loop->model, source, bucket, numbers, clips, items, &loop->cache, loop->hooks,
                         error);
    free(numbers);
    loop->store_count = b + 1;
    if (code < 0)
      break;
    loop->orders[b] = malloc((size_t)items * sizeof *loop->orders[b]);
    if (!loop->orders[b])
      return ms_error_set(error, MS_ENOMEM, "out of memory for the order of clips");
    loop->epochs[b] = -1;
    if (ms_store_elements(store) * bucket->batch > most_elements)
      most_elements = ms_store_elements(store) * bucket->batch;
    if (bucket->batch > most_samples)
      most_samples = bucket->batch;
  }
  if (code == 0 && loop->split.validation_count) {
    const struct ms_train_bucket *bucket = job->bucket_count ? &job->buckets[0] : &single;
    code = ms_store_fill(&loop->held_out, loop->model, source, bucket, loop->split.validation,
                         loop->split.validation_count, loop->split.validation_count, &loop->cache,
                         loop->hooks, error);
    if (code == 0 && ms_store_elements(&loop->held_out) * MS_VALIDATION_SAMPLES > most_elements)
      most_elements = ms_store_elements(&loop->held_out) * MS_VALIDATION_SAMPLES;
  }
  if (code == 0)
    code = ms_objective_init(&loop->objective, loop->model, job, (int)most_samples, most_elements, error);
  return code;
}

/* The bucket of a step, by the buckets' shares. */
static int choose_bucket(const struct loop *loop, int64_t step) {
  struct ms_random random = {.seed = loop->job->seed, .stream = STREAM_BUCKET + (uint64_t)step};
  double total = 0, at = ms_random_uniform(&random);
  for (int b = 0; b < loop->store_count; b++)
    total += loop->stores[b].bucket.share;
  at *= total;
  for (int b = 0; b < loop->store_count - 1; b++) {
    at -= loop->stores[b].bucket.share;
    if (at < 0)
      return b;
  }
  return loop->store_count - 1;
}

/* The next items of a bucket: epochs of shuffled items, a short last batch is filled from the next epoch. */
static void draw_items(struct loop *loop, int b, int samples, int64_t *items) {
  int64_t count = loop->stores[b].items;
  for (int i = 0; i < samples; i++) {
    int64_t drawn = loop->at.drawn[b]++;
    if (drawn / count != loop->epochs[b]) {
      loop->epochs[b] = drawn / count;
      ms_split_order(loop->job->seed, b, loop->epochs[b], count, loop->orders[b]);
    }
    items[i] = loop->orders[b][drawn % count];
  }
}

/* The DiT's parameters are exchanged for their average (and back) through the optimizer's own state: the
 * weights are kept in `grad`'s place, which is free between steps. */
static int apply_average(struct loop *loop, struct ms_error *error) {
  struct ms_params *params = ms_dit_params(loop->model->dit);
  float *average;
  if (!loop->optimizer.ema)
    return 0;
  average = malloc((size_t)params->total * sizeof *average);
  if (!average)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the averaged weights");
  ms_optimizer_read_average(&loop->optimizer, average);
  memcpy(loop->grad, params->data, (size_t)params->total * msk_type_size(params->type));
  if (params->type == MSK_F32)
    memcpy(params->data, average, (size_t)params->total * sizeof *average);
  else
    loop->model->compute->adamw.f32_to_bf16(average, params->data, params->total);
  free(average);
  return ms_dit_prepare(loop->model->dit, MSK_PRECISION_BF16, 1, error);
}

static int restore_weights(struct loop *loop, struct ms_error *error) {
  struct ms_params *params = ms_dit_params(loop->model->dit);
  if (!loop->optimizer.ema)
    return 0;
  memcpy(params->data, loop->grad, (size_t)params->total * msk_type_size(params->type));
  return ms_dit_prepare(loop->model->dit, MSK_PRECISION_BF16, 1, error);
}

/* The run's flag is polled (1), or what is done now is done to its end (0). */
static void let_cancel(struct loop *loop, int polled) {
  ms_pool_set_cancel(loop->model->compute->pool, polled && loop->hooks ? loop->hooks->cancel : NULL);
}

/* Mean loss over the held-out clips at fixed noise and noise levels, with the averaged weights. A run that is
 * cancelled meanwhile gets NaN, and its weights back: the look is left out, the step stands. */
static int validate(struct loop *loop, double *loss, struct ms_error *error) {
  struct ms_error why = {0};
  double sum = 0;
  int code, back;
  let_cancel(loop, 0);
  code = apply_average(loop, error);
  let_cancel(loop, 1);
  if (code < 0)
    return code;
  for (int64_t i = 0; i < loop->held_out.items && code == 0; i++) {
    int64_t items[MS_VALIDATION_SAMPLES] = {i, i, i, i};
    struct ms_progress progress = {"validate", i, loop->held_out.items, ms_seconds() - loop->start, -1};
    if (loop->hooks && loop->hooks->progress)
      loop->hooks->progress(loop->hooks->data, &progress);
    code = ms_objective_make_fixed(&loop->objective, &loop->held_out, items, validation_sigmas,
                                   MS_VALIDATION_SAMPLES, &why);
    if (code == 0)
      code = ms_dit_forward(loop->model->dit, &loop->objective.batch, 0, loop->objective.velocity, &why);
    if (code == 0)
      sum += ms_objective_loss(&loop->objective, 0);
  }
  let_cancel(loop, 0);
  back = restore_weights(loop, error);
  let_cancel(loop, 1);
  *loss = code == 0 && !cancelled(loop) ? sum / (double)loop->held_out.items : NAN;
  if (code < 0 && code != MS_ECANCELLED)
    return ms_error_set(error, code, "%s", why.message);
  return back;
}

static int write_weights(struct loop *loop, struct ms_error *error) {
  struct ms_params *params = ms_dit_params(loop->model->dit);
  float *average = malloc((size_t)params->total * sizeof *average);
  char path[1200];
  int code;
  if (!average)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the averaged weights");
  ms_optimizer_read_average(&loop->optimizer, average);
  snprintf(path, sizeof path, "%s/dit.safetensors", loop->job->output);
  code = ms_params_save_values(params, average, MS_DTYPE_BF16, path, NULL, error);
  free(average);
  return code;
}

#define ROW_BYTES 65536

/* Work that writes, done again once there is room where it failed for want of it: a full disk is no reason to
 * lose a run. */
static int patiently(struct loop *loop, int (*work)(struct loop *loop, struct ms_error *error),
                     uint64_t bytes, struct ms_error *error) {
  for (;;) {
    struct ms_error why = {0};
    int code = work(loop, &why);
    if (code != MS_EOUTPUT || !ms_disk_lacks(loop->job->output, bytes))
      return code < 0 ? ms_error_set(error, code, "%s", why.message) : code;
    code = ms_disk_wait(loop->job->output, bytes, loop->hooks, error);
    if (code < 0)
      return code;
  }
}

/* A clip of the sample prompt, named by step and prompt. It has networks and threads of its own, so that the
 * training goes on with the same bits; that it cannot be made does not end the run. */
static int make_sample(struct loop *loop, struct ms_error *error) {
  struct ms_generate_job job = ms_generate_job_default();
  struct ms_generate_result result;
  struct ms_hooks quiet = {.cancel = loop->hooks ? loop->hooks->cancel : NULL};
  struct ms_error why = {0};
  char folder[1100], output[1300], slug[64], message[700];
  int n = 0, code;
  for (const char *p = loop->job->sample_prompt; *p && n < 40; p++)
    slug[n++] = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') ? *p : '-';
  slug[n] = 0;
  snprintf(folder, sizeof folder, "%s/samples", loop->job->output);
  snprintf(output, sizeof output, "%s/step-%06lld-%s.mp4", folder, (long long)loop->at.step, slug);
  if (mkdir(folder, 0777) < 0 && errno != EEXIST)
    return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", folder, strerror(errno));
  code = patiently(loop, write_weights, (uint64_t)ms_dit_params(loop->model->dit)->total * 2, error);
  if (code < 0)
    return code;
  job.prompt = loop->job->sample_prompt;
  job.model = loop->job->output;
  job.output = output;
  job.seed = (int64_t)(loop->job->seed & 0x7fffffff);
  code = ms_generate(&job, loop->machine, &quiet, &result, &why);
  if (code == MS_ECANCELLED)
    return ms_error_set(error, code, "%s", why.message);
  if (code < 0) {
    snprintf(message, sizeof message, "no sample clip of step %lld: %.500s", (long long)loop->at.step,
             why.message);
    log_line(loop, MS_LOG_WARNING, message);
  } else if (loop->hooks && loop->hooks->sample) {
    loop->hooks->sample(loop->hooks->data, loop->at.step, job.prompt, output);
  }
  return 0;
}

static int train_batch(struct loop *loop, int b, int64_t step, int micro, int64_t *items, double *loss,
                       struct ms_error *error) {
  struct ms_store *store = &loop->stores[b];
  int samples = store->bucket.batch, accumulate = loop->job->accumulate;
  int code;
  draw_items(loop, b, samples, items);
  code = ms_objective_make(&loop->objective, store, items, samples, (uint64_t)(step * accumulate + micro),
                           error);
  if (code == 0)
    code = ms_dit_forward(loop->model->dit, &loop->objective.batch, 1, loop->objective.velocity, error);
  if (code == 0) {
    *loss += ms_objective_loss(&loop->objective, 1.0 / accumulate) / accumulate;
    code = ms_dit_backward(loop->model->dit, &loop->objective.batch, loop->objective.gradient, loop->grad,
                           NULL, NULL, error);
  }
  return code;
}

/* A clip as a person knows it: its file, or its number among those of the source, from 1. */
static const char *clip_name(const struct loop *loop, int64_t clip, char *text, size_t size) {
  char name[256];
  if (loop->source->read_identity &&
      loop->source->read_identity(loop->source->data, clip, name, sizeof name, NULL, NULL) == 0)
    return ms_text_printable(name, text, size);
  snprintf(text, size, "%lld", (long long)clip + 1);
  return text;
}

/* Not finite: the step is skipped and its clips are named; several in a row end the run. */
static int skip_step(struct loop *loop, int b, const int64_t *items, int samples, const struct ms_error *why,
                     struct ms_error *error) {
  char message[700];
  int n = snprintf(message, sizeof message, "step %lld skipped: %.300s; clips", (long long)loop->at.step + 1,
                   why->message);
  for (int i = 0; i < samples && n < (int)sizeof message - 80; i++) {
    char name[64];
    n += snprintf(message + n, sizeof message - (size_t)n, "%s%s", i ? ", " : " ",
                  clip_name(loop, loop->stores[b].clips[items[i]], name, sizeof name));
  }
  log_line(loop, MS_LOG_WARNING, message);
  if (++loop->bad_steps >= BAD_STEPS_IN_A_ROW)
    return ms_error_set(error, MS_ENOTFINITE,
                        "%d steps in a row were not finite, the last one: %.300s; lower the learning rate",
                        loop->bad_steps, why->message);
  return 0;
}

static void report(const struct loop *loop) {
  double per_step = loop->trained_seconds / (double)(loop->result->steps ? loop->result->steps : 1);
  ms_train_report(loop->hooks, &loop->step, loop->peak, loop->job->output, loop->job->steps,
                  ms_seconds() - loop->start, per_step);
}

static int due(int64_t every, int64_t step) {
  return every > 0 && step % every == 0;
}

/* The line of the last step. After a failure half of it may stand in the file, which is cut there first. */
static int add_row(struct loop *loop, struct ms_error *error) {
  const struct ms_train_figures *f = &loop->step;
  const struct ms_metrics_row row = {.step = f->step,
                                     .loss = f->loss,
                                     .learning_rate = f->learning_rate,
                                     .gradient_norm = f->gradient_norm,
                                     .seconds = f->seconds,
                                     .tokens = f->tokens,
                                     .validation_loss = f->validation_loss};
  char path[1200];
  int code = 0;
  if (!loop->metrics.file) {
    snprintf(path, sizeof path, "%s/metrics.csv", loop->job->output);
    code = ms_metrics_file_open(&loop->metrics, path, f->step - 1, error);
  }
  if (code == 0)
    code = ms_metrics_file_add(&loop->metrics, &row, error);
  if (code < 0)
    ms_metrics_file_close(&loop->metrics);
  return code;
}

static int train_step(struct loop *loop, struct ms_error *error) {
  const struct ms_train_job *job = loop->job;
  struct ms_params *params = ms_dit_params(loop->model->dit);
  int64_t step = loop->at.step, items[4096];
  int b = choose_bucket(loop, step), samples = loop->stores[b].bucket.batch, code = 0;
  int64_t tokens = loop->stores[b].tokens * samples * job->accumulate;
  double flops =
      3 * ms_dit_forward_flops(loop->model->dit, loop->stores[b].lattice, loop->stores[b].bucket.coarse) *
      samples * job->accumulate;
  double began = ms_seconds(), loss = 0, norm = 0, lr = ms_schedule_lr(job, step), seconds, validation = NAN;
  struct ms_checkpoint before = loop->at;
  struct ms_error why = {0};
  memset(loop->grad, 0, (size_t)params->total * sizeof *loop->grad);
  for (int micro = 0; micro < job->accumulate && code == 0; micro++)
    code = train_batch(loop, b, step, micro, items, &loss, &why);
  if (code == 0 && ms_pool_cancelled(loop->model->compute->pool))
    code = ms_error_set(&why, MS_ECANCELLED, "stopped at step %lld", (long long)step);
  let_cancel(loop, 0); /* an update is whole or not at all */
  if (code == 0)
    code = isfinite(loss) ? ms_optimizer_step(&loop->optimizer, loop->grad, lr, &norm, &why)
                          : ms_error_set(&why, MS_ENOTFINITE, "the loss is not finite");
  if (code == 0)
    code = ms_dit_prepare(loop->model->dit, MSK_PRECISION_BF16, 1, &why);
  let_cancel(loop, 1);
  if (code == MS_ENOTFINITE) {
    if ((code = skip_step(loop, b, items, samples, &why, error)) < 0)
      return code;
    loop->at.step++;
    return 0;
  }
  if (code < 0) {
    loop->at = before;
    loop->epochs[b] = -1;
    return ms_error_set(error, code, "%s", why.message);
  }
  loop->bad_steps = 0;
  loop->at.step++;
  loop->at.loss = step == 0 ? loss : loop->at.loss + 0.02 * (loss - loop->at.loss);
  seconds = ms_seconds() - began;
  loop->trained_seconds += seconds;
  loop->trained_tokens += (double)tokens;
  loop->trained_flops += flops;
  loop->result->steps++;
  if (loop->held_out.items && (due(job->validate_every, loop->at.step) || loop->at.step == job->steps)) {
    code = validate(loop, &validation, error);
    if (code < 0)
      return code;
    if (isfinite(validation))
      loop->result->validation_loss = validation;
  }
  loop->step = (struct ms_train_figures){.step = loop->at.step,
                                         .loss = loss,
                                         .smoothed_loss = loop->at.loss,
                                         .learning_rate = lr,
                                         .gradient_norm = norm,
                                         .seconds = seconds,
                                         .tokens = (double)tokens,
                                         .flops = flops,
                                         .validation_loss = validation};
  return patiently(loop, add_row, ROW_BYTES, error);
}

static int save(struct loop *loop, struct ms_error *error) {
  return ms_checkpoint_save(loop->job->output, &loop->at, &loop->optimizer, loop->job->keep, error);
}

static void freeze_all_but_offsets(struct ms_params *params) {
  for (int i = 0; i < params->count; i++)
    if (!strstr(params->list[i].name, ".offset."))
      params->list[i].kind = MS_PARAM_FROZEN;
}

static int begin(struct loop *loop, struct ms_error *error) {
  const struct ms_train_job *job = loop->job;
  struct ms_params *params = ms_dit_params(loop->model->dit);
  struct ms_optimizer_params settings = ms_optimizer_params_default();
  char path[1200];
  int code;
  settings.beta1 = (float)job->beta1;
  settings.beta2 = (float)job->beta2;
  settings.decay = (float)job->weight_decay;
  settings.clip_norm = (float)job->clip_norm;
  settings.ema = (float)job->ema;
  if (job->method == MS_METHOD_OFFSETS)
    freeze_all_but_offsets(params);
  loop->grad = malloc((size_t)params->total * sizeof *loop->grad);
  if (!loop->grad)
    return ms_error_set(error, MS_ENOMEM, "out of memory for gradients");
  loop->at.first_validation_loss = NAN;
  code = ms_optimizer_open(&loop->optimizer, loop->model->compute, params, &settings, error);
  if (code == 0 && job->resume) {
    code = ms_checkpoint_load(job->output, &loop->at, &loop->optimizer, loop->hooks, error);
    code = code > 0 ? 0 : code;
  }
  if (code == 0 && loop->at.step > job->steps)
    code = ms_train_refuse_steps(job, loop->at.step, error);
  if (code == 0) {
    snprintf(path, sizeof path, "%s/metrics.csv", job->output);
    code = ms_metrics_file_open(&loop->metrics, path, loop->at.step, error);
  }
  if (code == 0)
    code = ms_dit_prepare(loop->model->dit, MSK_PRECISION_BF16, 1, error);
  if (code == 0 && loop->held_out.items && loop->at.step == 0)
    code = validate(loop, &loop->at.first_validation_loss, error);
  return code;
}

/* After the last step. */
static void caution(struct loop *loop) {
  struct ms_train_result *result = loop->result;
  double first = loop->at.first_validation_loss, last = result->validation_loss, loss = loop->at.loss;
  size_t size = sizeof result->caution;
  if (isfinite(first) && isfinite(last) && (last > GROWN_TIMES * first || last > LOSS_BEYOND))
    snprintf(result->caution, size, "the loss has grown from %.4g to %.4g: try a smaller --lr", first, last);
  else if (loss > LOSS_BEYOND && isfinite(first))
    snprintf(result->caution, size, "the loss has grown from %.4g to %.4g: try a smaller --lr", first, loss);
  else if (loss > LOSS_BEYOND)
    snprintf(result->caution, size, "the loss has grown to %.4g: try a smaller --lr", loss);
  if (result->caution[0])
    log_line(loop, MS_LOG_WARNING, result->caution);
}

static void finish(struct loop *loop) {
  struct ms_train_result *result = loop->result;
  double steps = result->steps ? (double)result->steps : 1,
         seconds = loop->trained_seconds > 0 ? loop->trained_seconds : 1;
  result->loss = loop->at.loss;
  result->first_validation_loss = loop->at.first_validation_loss;
  result->seconds_per_step = loop->trained_seconds / steps;
  result->tokens_per_second = loop->trained_tokens / seconds;
  result->flops_per_second = loop->trained_flops / seconds;
  result->steps = loop->at.step;
  result->seconds = ms_seconds() - loop->start;
  result->peak_host_bytes = ms_memory_peak();
  for (int b = 0; b < loop->store_count; b++) {
    ms_store_release(&loop->stores[b]);
    free(loop->orders[b]);
  }
  ms_store_release(&loop->held_out);
  ms_split_release(&loop->split);
  ms_objective_release(&loop->objective);
  ms_optimizer_release(&loop->optimizer);
  ms_metrics_file_close(&loop->metrics);
  free(loop->grad);
}

int ms_train_refuse_steps(const struct ms_train_job *job, int64_t done, struct ms_error *error) {
  return ms_error_set(
      error, MS_EUSAGE,
      "\"%s\" is already at step %lld: --steps counts from the start, so %lld are too few to go on",
      job->output, (long long)done, (long long)job->steps);
}

/* The last words of a run that was stopped; what it learned is saved first. */
static void stop(struct loop *loop, struct ms_error *why) {
  const char *output = loop->job->output;
  long long step = (long long)loop->at.step, steps = (long long)loop->job->steps;
  struct ms_error failure = {0};
  memset(why, 0, sizeof *why);
  if (!loop->begun)
    ms_error_set(why, MS_ECANCELLED,
                 loop->job->resume
                     ? "stopped before a step was done: --resume begins again where the run stood"
                     : "stopped while the clips were prepared, before the first step: nothing was trained");
  else if (loop->at.step == 0)
    ms_error_set(why, MS_ECANCELLED, "stopped before the first of %lld steps: nothing was trained", steps);
  else if (save(loop, &failure) == 0 && write_weights(loop, &failure) == 0) /* it can be used as it is, too */
    ms_error_set(why, MS_ECANCELLED,
                 "stopped at step %lld of %lld: --resume -o \"%.300s\" goes on from there", step, steps,
                 output);
  else
    ms_error_set(
        why, MS_ECANCELLED,
        "stopped at step %lld of %lld, which could not be saved (%.200s): --resume goes on from an earlier "
        "checkpoint",
        step, steps, failure.message);
}

int ms_train_loop(struct ms_model *model, const struct ms_train_job *job, const struct ms_clip_source *source,
                  const struct ms_machine *machine, const struct ms_hooks *hooks,
                  struct ms_train_result *result, struct ms_error *error) {
  struct loop *loop = calloc(1, sizeof *loop);
  struct ms_error why = {0};
  int code;
  memset(result, 0, sizeof *result);
  result->validation_loss = NAN;
  if (!loop)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  *loop = (struct loop){.model = model,
                        .job = job,
                        .machine = machine,
                        .hooks = hooks,
                        .result = result,
                        .source = source,
                        .start = ms_seconds()};
  code = fill_stores(loop, source, &why);
  ms_memory_trim();
  if (code == 0)
    code = begin(loop, &why);
  loop->begun = code == 0;
  if (code == 0 && loop->at.step < job->steps)
    loop->peak = ms_train_peak(model->compute);
  while (code == 0 && loop->at.step < job->steps) {
    int64_t before = loop->step.step;
    code = cancelled(loop) ? MS_ECANCELLED : train_step(loop, &why);
    if (code == 0 && (due(job->save_every, loop->at.step) || loop->at.step == job->steps)) {
      code = patiently(loop, save, ms_train_checkpoint_bytes(ms_dit_params(model->dit), job), &why);
      loop->step.saved = code == 0;
    }
    if (code == 0 && loop->step.step > before) /* a step that was skipped has no figures */
      report(loop);
    if (code == 0 && job->sample_prompt && due(job->sample_every, loop->at.step))
      code = make_sample(loop, &why);
  }
  if (code == 0)
    code = patiently(loop, write_weights, (uint64_t)ms_dit_params(model->dit)->total * 2, &why);
  if (code == 0 && result->steps > 0)
    caution(loop);
  if (code == MS_ECANCELLED)
    stop(loop, &why);
  if (code < 0)
    ms_error_set(error, code, "%s", why.message);
  finish(loop);
  free(loop);
  return code;
}
