#include "train/fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"

int ms_train_fit(const struct ms_model *model, const struct ms_train_job *job,
                 const struct ms_train_clips *clips, const struct ms_machine *machine,
                 struct ms_train_fit *fit, struct ms_error *error) {
  struct ms_train_need *need = malloc(sizeof *need);
  struct ms_placement placement;
  int code;
  memset(fit, 0, sizeof *fit);
  if (!need)
    return ms_error_set(error, MS_ENOMEM, "out of memory while the run is planned");
  ms_train_need(model, job, clips, machine->group, need);
  need->job.host_budget = ms_memory_budget(machine);
  need->job.device_budget = machine->device_memory;
  code = ms_placement_make(&placement, &need->job, error);
  if (code == 0) {
    *fit = (struct ms_train_fit){.fits = placement.fits,
                                 .short_of = placement.short_of,
                                 .short_bytes = placement.short_bytes,
                                 .host_bytes = placement.host_bytes,
                                 .disk_bytes = placement.disk_bytes};
    fit->need_bytes =
        fit->short_of && !strcmp(fit->short_of, "device") ? placement.device_bytes : placement.host_bytes;
    fit->trained = need->outer_gathered;
    for (int l = 0; l < need->job.layers; l++)
      fit->trained += need->gathered[l];
    if (fit->fits && need->job.host_budget && need->encode_bytes > need->job.host_budget) {
      fit->fits = 0;
      fit->short_of = "host";
      fit->need_bytes = need->encode_bytes;
      fit->short_bytes = need->encode_bytes - need->job.host_budget;
    }
    if (need->encode_bytes > fit->host_bytes)
      fit->host_bytes = need->encode_bytes;
    ms_placement_release(&placement);
  }
  free(need);
  return code;
}

struct trial {
  const struct ms_model *model;
  const struct ms_train_clips *clips;
  const struct ms_machine *machine;
  struct ms_train_job job;
  int width, height; /* as asked */
};

static int fits(const struct trial *trial) {
  struct ms_train_fit fit;
  return ms_train_fit(trial->model, &trial->job, trial->clips, trial->machine, &fit, NULL) == 0 && fit.fits;
}

/* Lengths and sizes that the codec and the patches divide. */
static int frames_at(const struct ms_model *model, int steps) {
  int strides[3];
  ms_codec_strides(model->codec, strides);
  return 1 + steps * strides[0] * ms_dit_config(model->dit)->patch[0];
}

static int side_at(const struct ms_model *model, int axis, int side, int eighths) {
  int strides[3], unit;
  ms_codec_strides(model->codec, strides);
  unit = strides[axis] * ms_dit_config(model->dit)->patch[axis];
  side = side * eighths / 8 / unit * unit;
  return side < unit ? unit : side;
}

/* The greatest value of one setting below `bad`, which does not fit, that does; 0: none. set puts it into the
 * job. */
static int greatest(struct trial *trial, int bad, void (*set)(struct trial *trial, int value)) {
  int good = 0;
  while (bad - good > 1) {
    int middle = good + (bad - good) / 2;
    set(trial, middle);
    if (fits(trial))
      good = middle;
    else
      bad = middle;
  }
  if (good)
    set(trial, good);
  return good;
}

static void set_batch(struct trial *trial, int batch) {
  trial->job.batch = batch;
}

static void set_length(struct trial *trial, int steps) {
  trial->job.frames = frames_at(trial->model, steps - 1);
}

static void set_size(struct trial *trial, int eighths) {
  trial->job.width = side_at(trial->model, 2, trial->width, eighths);
  trial->job.height = side_at(trial->model, 1, trial->height, eighths);
}

/* The nearest settings that fit, one thing changed after the other: the batch, then the length, then the
 * size. */
static void advise(struct trial *trial, char *advice, size_t size) {
  struct ms_train_job *job = &trial->job;
  int lengths = 1;
  if (greatest(trial, job->batch, set_batch)) {
    snprintf(advice, size, "--batch %d would fit", job->batch);
    return;
  }
  job->batch = 1;
  while (frames_at(trial->model, lengths - 1) < job->frames)
    lengths++;
  if (greatest(trial, lengths, set_length)) {
    snprintf(advice, size, "--batch 1 with --frames %d would fit", job->frames);
    return;
  }
  job->frames = 1;
  if (greatest(trial, 8, set_size))
    snprintf(advice, size, "--batch 1 with --frames 1 and --size %dx%d would fit", job->width, job->height);
  else
    snprintf(advice, size, "the parts of the model that are always in memory do not fit");
}

int ms_train_fit_check(const struct ms_model *model, const struct ms_train_job *job,
                       const struct ms_train_clips *clips, const struct ms_machine *machine,
                       struct ms_train_fit *fit, struct ms_error *error) {
  struct trial trial = {model, clips, machine, *job, job->width, job->height};
  char what[96], advice[96] = "take smaller buckets", need[32], more[32], allowed[32];
  int code = ms_train_fit(model, job, clips, machine, fit, error);
  if (code < 0 || fit->fits)
    return code;
  if (job->bucket_count) {
    snprintf(what, sizeof what, "training with the recipe's buckets");
  } else {
    snprintf(what, sizeof what, "training at %dx%d with %d frame%s and batches of %d", job->width,
             job->height, job->frames, job->frames == 1 ? "" : "s", job->batch);
    advise(&trial, advice, sizeof advice);
  }
  return ms_error_set(error, MS_EBUDGET, "%s needs %s of %s memory, %s more than the %s allowed: %s", what,
                      ms_format_bytes((double)fit->need_bytes, need, sizeof need), fit->short_of,
                      ms_format_bytes((double)fit->short_bytes, more, sizeof more),
                      ms_format_bytes((double)(fit->need_bytes - fit->short_bytes), allowed, sizeof allowed),
                      advice);
}
