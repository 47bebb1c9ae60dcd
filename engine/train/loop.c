#include "train/loop.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/system.h"
#include "train/checkpoint.h"
#include "train/disk.h"
#include "train/feed.h"
#include "train/memory.h"
#include "train/metrics-file.h"
#include "train/objective.h"
#include "train/report.h"
#include "train/schedule.h"
#include "train/trained.h"
#include "train/validate.h"

#define BAD_STEPS_IN_A_ROW 3
/* A loss that ends so many times above the first, or above so much, has left what can be learned. */
#define GROWN_TIMES 10
#define LOSS_BEYOND 1e4
#define ROW_BYTES 65536

struct loop {
  struct ms_model *model;
  const struct ms_train_job *job;
  const struct ms_machine *machine;
  const struct ms_hooks *asked; /* as given */
  const struct ms_hooks *hooks; /* in a group with a flag that all ranks raise at the same step */
  struct ms_group *group;       /* NULL: alone */
  struct ms_hooks together;
  atomic_int stop;
  int own; /* batches of a step that this rank makes: those of its number, and every size-th from there */
  struct ms_train_result *result;
  struct ms_feed feed;
  struct ms_trained trained;
  struct ms_objective *objectives; /* [own], owned as the arrays below */
  struct ms_dit_batch *batches;    /* [own] of a step */
  float **velocities;              /* [own] */
  const float **gradients;         /* [own] */
  double *losses;                  /* [own] this rank's, then [accumulate] of all, rank after rank */
  int64_t *items;                  /* [accumulate][samples] */
  struct ms_checkpoint at;
  struct ms_metrics_file metrics;
  struct ms_train_figures step; /* of the last step that counted; step 0: none yet */
  int begun;                    /* optimizer and checkpoint are open */
  int warned;                   /* that more memory is resident than planned */
  double peak;                  /* FLOP/s of bf16 */
  double start, trained_seconds, trained_tokens, trained_flops;
  int bad_steps;
};

static void log_line(const struct loop *loop, enum ms_log_level level, const char *message) {
  if (loop->hooks && loop->hooks->log)
    loop->hooks->log(loop->hooks->data, level, message);
}

/* In a group whether any rank is to stop, asked by all between two steps: within one each waits for the
 * others. */
static int cancelled(struct loop *loop) {
  int asked = loop->asked && loop->asked->cancel && atomic_load(loop->asked->cancel);
  asked = ms_group_most(loop->group, asked) > 0;
  if (loop->group && asked)
    atomic_store(&loop->stop, 1);
  return asked;
}

/* Work that writes, done again once there is room where it failed for want of it, and once more where there
 * is room (by now): a disk's moment is no reason to lose a run. */
static int patiently(struct loop *loop, int (*work)(struct loop *loop, struct ms_error *error),
                     uint64_t bytes, struct ms_error *error) {
  for (int tries = 0;;) {
    struct ms_error why = {0};
    int code = ms_group_agree(loop->group, work(loop, &why), &why),
        lacks = code == MS_EOUTPUT && ms_disk_lacks(loop->job->output, bytes),
        full = code == MS_EOUTPUT && ms_group_most(loop->group, lacks) > 0;
    char message[640];
    if (code != MS_EOUTPUT || (!full && ++tries > 1))
      return code < 0 ? ms_error_set(error, code, "%s", why.message) : code;
    if (!full) {
      snprintf(message, sizeof message, "%s; it is tried once more", why.message);
      log_line(loop, MS_LOG_WARNING, message);
      continue;
    }
    code = lacks ? ms_disk_wait(loop->job->output, bytes, loop->asked, error) : 0;
    code = ms_group_agree(loop->group, code, error);
    if (code < 0)
      return code;
  }
}

/* Not finite: the step is skipped and its clips are named; several in a row end the run. */
static int skip_step(struct loop *loop, int b, int samples, const struct ms_error *why,
                     struct ms_error *error) {
  char message[700];
  int n = snprintf(message, sizeof message, "step %lld skipped: %.300s; clips", (long long)loop->at.step + 1,
                   why->message);
  for (int i = 0; i < samples * loop->job->accumulate && n < (int)sizeof message - 80; i++) {
    int64_t item = loop->items[(int64_t)(i / samples) * loop->feed.samples + i % samples];
    char name[64];
    n += snprintf(message + n, sizeof message - (size_t)n, "%s%s", i ? ", " : " ",
                  ms_feed_name(&loop->feed, b, item, name, sizeof name));
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
  if (ms_group_rank(loop->group) > 0)
    return 0;
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

/* Draws all batches of the step, and makes this rank's. */
static int make_batches(struct loop *loop, int b, int samples, struct ms_error *error) {
  int accumulate = loop->job->accumulate, ranks = ms_group_size(loop->group), code = 0;
  for (int i = 0; i < accumulate && code == 0; i++) {
    int own = i / ranks;
    struct ms_objective *o = &loop->objectives[own];
    int64_t *items = loop->items + (int64_t)i * loop->feed.samples;
    ms_feed_draw(&loop->feed, b, &loop->at.drawn[b], samples, items);
    if (i % ranks != ms_group_rank(loop->group))
      continue;
    code = ms_objective_make(o, &loop->feed.stores[b], items, samples,
                             (uint64_t)(loop->at.step * accumulate + i), error);
    loop->batches[own] = o->batch;
    loop->velocities[own] = o->velocity;
    loop->gradients[own] = o->gradient;
  }
  return ms_group_agree(loop->group, code, error);
}

/* Of all batches, added in their order. */
static double mean_loss(struct loop *loop) {
  int accumulate = loop->job->accumulate, ranks = ms_group_size(loop->group);
  double *all = loop->losses, mean = 0;
  if (loop->group) {
    all += loop->own;
    loop->group->all_gather_doubles(loop->group->data, loop->losses, loop->own, all);
  }
  for (int i = 0; i < accumulate; i++)
    mean += all[i % ranks * loop->own + i / ranks] / accumulate;
  return mean;
}

/* The forward pass of the step's batches, their losses, the backward pass; *loss is their mean. */
static int compute_step(struct loop *loop, int b, int samples, double *loss, struct ms_error *error) {
  int code = make_batches(loop, b, samples, error);
  struct ms_dit *dit = loop->model->dit;
  double sum = 0;
  if (code == 0)
    code = ms_trained_begin(&loop->trained, MS_STREAM_STEP, loop->at.step + 1, error);
  if (code < 0)
    return code;
  code = ms_dit_forward_all(dit, loop->batches, loop->own, 1, loop->velocities, error);
  for (int i = 0; i < loop->own && code == 0; i++) {
    loop->losses[i] = ms_objective_loss(&loop->objectives[i], 1.0 / loop->job->accumulate);
    sum += loop->losses[i];
  }
  if (code == 0 && !isfinite(sum))
    code = ms_error_set(error, MS_ENOTFINITE, "the loss is not finite");
  if (code == 0)
    code = ms_dit_backward_all(dit, loop->batches, loop->own, loop->gradients, NULL, error);
  if (code == 0) /* the last words of a run that is stopped are others */
    code = ms_pool_stopped(loop->model->compute->pool, "stopped", error);
  code = ms_trained_end(&loop->trained, code, error);
  if (code == 0)
    *loss = mean_loss(loop);
  return code;
}

/* More memory than was planned is told once: the budget is a promise. */
static void watch_memory(struct loop *loop) {
  size_t resident = ms_memory_resident(), budget = ms_memory_budget(loop->machine);
  char message[240], is[32], planned[32];
  if (loop->warned || !budget || resident <= budget / 100 * 103)
    return;
  loop->warned = 1;
  snprintf(message, sizeof message, "the run has %s in memory, more than the %s that it may have",
           ms_format_bytes((double)resident, is, sizeof is),
           ms_format_bytes((double)budget, planned, sizeof planned));
  log_line(loop, MS_LOG_WARNING, message);
}

static int look(struct loop *loop, double *validation, struct ms_error *error) {
  int code = ms_validate(&loop->trained, &loop->feed, &loop->objectives[0], loop->hooks, loop->start,
                         validation, error);
  if (code == 0 && isfinite(*validation))
    loop->result->validation_loss = *validation;
  return code;
}

static void count_step(struct loop *loop, double loss, double seconds, double tokens, double flops) {
  loop->bad_steps = 0;
  loop->at.step++;
  loop->at.loss = loop->at.step == 1 ? loss : loop->at.loss + 0.02 * (loss - loop->at.loss);
  loop->trained_seconds += seconds;
  loop->trained_tokens += tokens;
  loop->trained_flops += flops;
  loop->result->steps++;
}

static int train_step(struct loop *loop, struct ms_error *error) {
  const struct ms_train_job *job = loop->job;
  int b = ms_feed_bucket(&loop->feed, loop->at.step), code;
  const struct ms_store *store = &loop->feed.stores[b];
  int samples = store->bucket.batch, clips = samples * job->accumulate;
  double tokens = (double)store->tokens * clips,
         flops = clips * ms_train_flops(loop->model->dit, job->method, store->lattice, store->bucket.coarse);
  double began = ms_seconds(), loss = 0, norm = 0, lr = ms_schedule_lr(job, loop->at.step), validation = NAN;
  struct ms_checkpoint before = loop->at;
  struct ms_error why = {0};
  code = compute_step(loop, b, samples, &loss, &why);
  if (code == 0)
    code = ms_trained_update(&loop->trained, lr, &norm, &why);
  if (code == MS_ENOTFINITE) {
    if ((code = skip_step(loop, b, samples, &why, error)) < 0)
      return code;
    loop->at.step++;
    return 0;
  }
  if (code < 0) {
    loop->at = before;
    return ms_error_set(error, code, "%s", why.message);
  }
  count_step(loop, loss, ms_seconds() - began, tokens, flops);
  watch_memory(loop);
  loop->step = (struct ms_train_figures){.step = loop->at.step,
                                         .loss = loss,
                                         .smoothed_loss = loop->at.loss,
                                         .learning_rate = lr,
                                         .gradient_norm = norm,
                                         .seconds = ms_seconds() - began,
                                         .tokens = tokens,
                                         .flops = flops};
  loop->step.state_bytes = (double)loop->trained.placement.disk_bytes;
  ms_streamer_stats(loop->trained.streamer, &loop->step.lanes);
  if (loop->result->steps == 1) {
    loop->step.layers = loop->trained.placement.params.layers;
    loop->step.disk_layers = loop->step.layers - loop->trained.placement.host_layers;
  }
  if (loop->feed.held_out.items && (due(job->validate_every, loop->at.step) || loop->at.step == job->steps))
    code = look(loop, &validation, error);
  loop->step.validation_loss = validation;
  return code < 0 ? code : patiently(loop, add_row, ROW_BYTES, error);
}

static int save(struct loop *loop, struct ms_error *error) {
  struct ms_checkpoint_state state = ms_trained_state(&loop->trained);
  int code = ms_trained_flush(&loop->trained, error);
  loop->at.updates = loop->trained.updates;
  if (code < 0)
    return code;
  if (ms_group_rank(loop->group) > 0)
    return ms_trained_serve(&loop->trained, error);
  code = ms_checkpoint_save(loop->job->output, &loop->at, &state, loop->job->keep, error);
  ms_trained_served(&loop->trained);
  return code;
}

/* The model as it is now, usable from the output folder. */
static int export(struct loop *loop, struct ms_error *error) {
  int code = ms_trained_flush(&loop->trained, error);
  return code < 0 ? code : ms_trained_export(&loop->trained, error);
}

static int make_sample(struct loop *loop, struct ms_error *error) {
  int code = patiently(loop, export, (uint64_t)ms_dit_params(loop->model->dit)->total * 2, error);
  if (code == 0 && ms_group_rank(loop->group) == 0)
    code = ms_make_sample(loop->job, loop->at.step, loop->machine, loop->asked, error);
  return ms_group_agree(loop->group, code, error);
}

static int open_objectives(struct loop *loop, struct ms_error *error) {
  size_t n = (size_t)loop->own, all = (size_t)loop->job->accumulate;
  int code = 0;
  loop->objectives = calloc(n, sizeof *loop->objectives);
  loop->batches = calloc(n, sizeof *loop->batches);
  loop->velocities = calloc(n, sizeof *loop->velocities);
  loop->gradients = calloc(n, sizeof *loop->gradients);
  loop->items = calloc(all * (size_t)loop->feed.samples, sizeof *loop->items);
  loop->losses = calloc(n + all, sizeof *loop->losses);
  if (!loop->losses || !loop->objectives || !loop->batches || !loop->velocities || !loop->gradients ||
      !loop->items)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the batches of a step");
  for (size_t i = 0; i < n && code == 0; i++)
    code = ms_objective_init(&loop->objectives[i], loop->model, loop->job, loop->feed.samples,
                             loop->feed.elements, error);
  return code;
}

static int begin(struct loop *loop, const struct ms_train_clips *clips, struct ms_error *error) {
  const struct ms_train_job *job = loop->job;
  struct ms_checkpoint_state state;
  char path[1200];
  int code = open_objectives(loop, error);
  loop->at.first_validation_loss = NAN;
  if (code == 0)
    code = ms_trained_open(&loop->trained, loop->model, job, clips, loop->machine, loop->hooks, error);
  if (code == 0 && job->resume) {
    state = ms_trained_state(&loop->trained);
    code = ms_checkpoint_load(job->output, &loop->at, &state, loop->hooks, error);
    code = code > 0 ? 0 : code;
    loop->trained.updates = loop->at.updates;
  }
  if (code == 0 && loop->at.step > job->steps)
    code = ms_train_refuse_steps(job, loop->at.step, error);
  if (code == 0 && ms_group_rank(loop->group) == 0) {
    snprintf(path, sizeof path, "%s/metrics.csv", job->output);
    code = ms_metrics_file_open(&loop->metrics, path, loop->at.step, error);
  }
  code = ms_group_agree(loop->group, code, error);
  if (code == 0 && ms_group_most(loop->group, (double)loop->at.step) > (double)loop->at.step)
    code = ms_error_set(error, MS_EINPUT, "a rank cannot read the newest checkpoint in \"%s\"", job->output);
  code = ms_group_agree(loop->group, code, error);
  if (code == 0 && loop->feed.held_out.items && loop->at.step == 0)
    code = ms_validate(&loop->trained, &loop->feed, &loop->objectives[0], loop->hooks, loop->start,
                       &loop->at.first_validation_loss, error);
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
  ms_trained_close(&loop->trained);
  if (loop->group)
    ms_pool_set_cancel(loop->model->compute->pool, NULL);
  for (int i = 0; i < loop->own && loop->objectives; i++)
    ms_objective_release(&loop->objectives[i]);
  ms_feed_release(&loop->feed);
  ms_metrics_file_close(&loop->metrics);
  free(loop->objectives);
  free(loop->batches);
  free(loop->velocities);
  free((void *)loop->gradients);
  free(loop->items);
  free(loop->losses);
  free(loop);
}

/* Whether the trace can be written, before a run of hours ends without it. */
static int try_trace(const struct loop *loop, struct ms_error *error) {
  struct ms_file_out out;
  int code;
  if (!loop->job->trace || ms_group_rank(loop->group) != 0)
    return 0;
  code = ms_file_out_open(&out, loop->job->trace, error);
  if (code == 0)
    ms_file_out_abandon(&out);
  return code;
}

/* For a person who looks for what a step waited for. The model is there without it, so it fails no run. */
static void write_trace(struct loop *loop) {
  struct ms_error why = {0};
  char message[400];
  if (!loop->job->trace || ms_group_rank(loop->group) != 0 ||
      ms_trace_write(&loop->trained.trace, loop->job->trace, &why) == 0)
    return;
  snprintf(message, sizeof message, "there is no trace of this run: %.300s", why.message);
  log_line(loop, MS_LOG_WARNING, message);
}

int ms_train_refuse_steps(const struct ms_train_job *job, int64_t done, struct ms_error *error) {
  return ms_error_set(
      error, MS_EUSAGE,
      "\"%s\" is already at step %lld: --steps counts from the start, so %lld are too few to go on",
      job->output, (long long)done, (long long)job->steps);
}

static int save_all(struct loop *loop, struct ms_error *error) {
  int code = ms_group_agree(loop->group, save(loop, error), error);
  return code < 0 ? code : ms_group_agree(loop->group, export(loop, error), error);
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
  else if (save_all(loop, &failure) == 0) /* it can be used as it is, too */
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

/* In a group the first rank encodes clips and keeps them in the folder, where the others then find them. */
static int open_feed(struct loop *loop, const struct ms_clip_source *source, struct ms_error *error) {
  int first = ms_group_rank(loop->group) == 0, kept = source->read_identity && !source->read_mask, code = 0;
  if (first || !kept)
    code = ms_feed_open(&loop->feed, loop->model, loop->job, source, first, loop->asked, error);
  code = ms_group_agree(loop->group, code, error);
  if (code == 0 && !first && kept)
    code = ms_feed_open(&loop->feed, loop->model, loop->job, source, 0, loop->asked, error);
  return loop->group && kept ? ms_group_agree(loop->group, code, error) : code;
}

int ms_train_loop(struct ms_model *model, const struct ms_train_job *job, const struct ms_clip_source *source,
                  const struct ms_train_clips *clips, const struct ms_machine *machine,
                  const struct ms_hooks *hooks, struct ms_train_result *result, struct ms_error *error) {
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
                        .asked = hooks,
                        .hooks = hooks,
                        .group = machine->group,
                        .own = job->accumulate / ms_group_size(machine->group),
                        .result = result,
                        .start = ms_seconds()};
  code = ms_group_agree(loop->group, try_trace(loop, &why), &why);
  if (code == 0)
    code = open_feed(loop, source, &why);
  ms_memory_trim();
  if (loop->group) {
    loop->together = hooks ? *hooks : (struct ms_hooks){0};
    loop->together.cancel = &loop->stop;
    loop->hooks = &loop->together;
    ms_pool_set_cancel(model->compute->pool, &loop->stop);
  }
  if (code == 0)
    code = begin(loop, clips, &why);
  loop->begun = code == 0;
  if (code == 0 && loop->at.step < job->steps)
    loop->peak = ms_train_peak(model->compute) * ms_group_size(loop->group);
  while (code == 0 && loop->at.step < job->steps) {
    int64_t before = loop->step.step;
    code = cancelled(loop) ? MS_ECANCELLED : train_step(loop, &why);
    if (code == 0 && (due(job->save_every, loop->at.step) || loop->at.step == job->steps)) {
      code = patiently(loop, save, (uint64_t)ms_state_file_bytes(loop->trained.store), &why);
      loop->step.saved = code == 0;
    }
    if (code == 0 && loop->step.step > before) /* a step that was skipped has no figures */
      report(loop);
    if (code == 0 && job->sample_prompt && due(job->sample_every, loop->at.step))
      code = make_sample(loop, &why);
  }
  if (code == 0)
    code = patiently(loop, export, (uint64_t)ms_dit_params(model->dit)->total * 2, &why);
  if (code == 0 && result->steps > 0)
    caution(loop);
  if (code == MS_ECANCELLED)
    stop(loop, &why);
  if (code == 0 || code == MS_ECANCELLED)
    write_trace(loop);
  if (code < 0)
    ms_error_set(error, code, "%s", why.message);
  finish(loop);
  return code;
}
