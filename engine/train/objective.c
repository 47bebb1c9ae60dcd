#include "train/objective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* Streams of the random numbers of training: which clip's noise, which sigma and caption. */
#define STREAM_CHOICE ((uint64_t)1 << 40)
#define STREAM_NOISE ((uint64_t)2 << 40)
#define STREAM_FIXED ((uint64_t)3 << 40)

int ms_objective_init(struct ms_objective *o, struct ms_model *model, const struct ms_train_job *job,
                      int samples_max, int64_t elements_max, struct ms_error *error) {
  size_t n = (size_t)samples_max, elements = (size_t)elements_max;
  size_t text = (size_t)ms_text_length(model->text) * ms_text_dim(model->text);
  memset(o, 0, sizeof *o);
  o->model = model;
  o->job = job;
  o->samples_max = samples_max;
  o->elements_max = elements_max;
  o->x = malloc(elements * sizeof *o->x);
  o->target = malloc(elements * sizeof *o->target);
  o->velocity = malloc(elements * sizeof *o->velocity);
  o->gradient = malloc(elements * sizeof *o->gradient);
  o->text = malloc(n * text * sizeof *o->text);
  o->text_rows_at = calloc(n, sizeof *o->text_rows_at);
  o->text_rows = calloc(n, sizeof *o->text_rows);
  o->timesteps = calloc(n, sizeof *o->timesteps);
  o->sigmas = calloc(n, sizeof *o->sigmas);
  o->masks = calloc(n, sizeof *o->masks);
  if (!o->x || !o->target || !o->velocity || !o->gradient || !o->text || !o->text_rows_at || !o->text_rows ||
      !o->timesteps || !o->sigmas || !o->masks) {
    ms_objective_release(o);
    return ms_error_set(error, MS_ENOMEM, "out of memory for a training batch of %d clips", samples_max);
  }
  return 0;
}

void ms_objective_release(struct ms_objective *o) {
  free(o->x);
  free(o->target);
  free(o->velocity);
  free(o->gradient);
  free(o->text);
  free(o->text_rows_at);
  free(o->text_rows);
  free(o->timesteps);
  free(o->sigmas);
  free(o->masks);
  memset(o, 0, sizeof *o);
}

static int set_text(struct ms_objective *o, int sample, const char *caption, struct ms_error *error) {
  size_t room = (size_t)ms_text_length(o->model->text) * ms_text_dim(o->model->text);
  float *states = o->text + (size_t)sample * room;
  int rows = ms_text_encode(o->model->text, caption, states, NULL, 0, error);
  if (rows < 0)
    return rows;
  o->text_rows_at[sample] = states;
  o->text_rows[sample] = rows;
  return 0;
}

struct mix {
  struct ms_objective *o;
  const struct ms_store *store;
  const int64_t *items;
  uint64_t draw;
  int fixed;
};

/* One sample's noisy latents and target. */
static void mix_sample(void *data, int64_t sample, void *scratch) {
  struct mix *mix = data;
  struct ms_objective *o = mix->o;
  int64_t count = ms_store_elements(mix->store);
  const float *clean = mix->store->latents + mix->items[sample] * count;
  float *x = o->x + sample * count, *target = o->target + sample * count;
  float s = (float)o->sigmas[sample];
  uint64_t stream = mix->fixed ? STREAM_FIXED + (uint64_t)mix->items[sample]
                               : STREAM_NOISE + mix->draw * 4096 + (uint64_t)sample;
  ms_random_normal_fill(o->job->seed, stream, 0, target, count);
  for (int64_t i = 0; i < count; i++) {
    float noise = target[i];
    x[i] = (1 - s) * clean[i] + s * noise;
    target[i] = noise - clean[i];
  }
}

static void finish_batch(struct ms_objective *o, const struct ms_store *store, const int64_t *items,
                         int samples, uint64_t draw, int fixed) {
  struct mix mix = {o, store, items, draw, fixed};
  int64_t volume = (int64_t)store->lattice[0] * store->lattice[1] * store->lattice[2];
  for (int i = 0; i < samples; i++) {
    o->timesteps[i] = (float)(o->sigmas[i] * 1000);
    o->masks[i] = store->masks ? store->masks + items[i] * volume : NULL;
  }
  ms_pool_run(o->model->compute->pool, mix_sample, &mix, samples);
  o->batch = (struct ms_dit_batch){.samples = samples,
                                   .latents = o->x,
                                   .timesteps = o->timesteps,
                                   .text = o->text_rows_at,
                                   .text_rows = o->text_rows,
                                   .coarse = store->bucket.coarse};
  memcpy(o->batch.lattice, store->lattice, sizeof o->batch.lattice);
}

int ms_objective_make(struct ms_objective *o, const struct ms_store *store, const int64_t *items, int samples,
                      uint64_t draw, struct ms_error *error) {
  const struct ms_train_job *job = o->job;
  for (int i = 0; i < samples; i++) {
    struct ms_random random = {.seed = job->seed, .stream = STREAM_CHOICE + draw * 4096 + (uint64_t)i};
    double u = ms_random_uniform(&random), k = 1;
    int64_t caption = ms_random_below(&random, MS_STORE_CAPTIONS);
    int empty = ms_random_uniform(&random) < job->empty_caption;
    int code;
    if (job->sigma_shifts)
      k = job->sigma_shift[ms_random_below(&random, job->sigma_shifts)];
    o->sigmas[i] = (store->bucket.sigma_max > 0 ? store->bucket.sigma_max : 1) * k * u / (1 + (k - 1) * u);
    code = set_text(o, i, empty ? "" : store->captions[items[i] * MS_STORE_CAPTIONS + caption], error);
    if (code < 0)
      return code;
  }
  finish_batch(o, store, items, samples, draw, 0);
  return 0;
}

int ms_objective_make_fixed(struct ms_objective *o, const struct ms_store *store, const int64_t *items,
                            const double *sigmas, int samples, struct ms_error *error) {
  for (int i = 0; i < samples; i++) {
    int code = set_text(o, i, store->captions[items[i] * MS_STORE_CAPTIONS], error);
    if (code < 0)
      return code;
    o->sigmas[i] = sigmas[i];
  }
  finish_batch(o, store, items, samples, 0, 1);
  return 0;
}

double ms_objective_loss(struct ms_objective *o, double scale) {
  const struct ms_dit_batch *batch = &o->batch;
  int64_t volume = (int64_t)batch->lattice[0] * batch->lattice[1] * batch->lattice[2];
  int channels = ms_dit_config(o->model->dit)->out_channels;
  double weight_sum = 0, sum = 0;
  float subject = (float)o->job->subject_weight;
  for (int s = 0; s < batch->samples; s++)
    for (int64_t i = 0; i < volume; i++)
      weight_sum += o->masks[s] && o->masks[s][i] ? 1 + subject : 1;
  for (int s = 0; s < batch->samples; s++)
    for (int c = 0; c < channels; c++) {
      int64_t base = ((int64_t)s * channels + c) * volume;
      double line = 0;
      for (int64_t i = 0; i < volume; i++) {
        float w = o->masks[s] && o->masks[s][i] ? 1 + subject : 1;
        float difference = o->velocity[base + i] - o->target[base + i];
        line += (double)(w * difference * difference);
        if (scale > 0)
          o->gradient[base + i] = (float)(scale * 2 / (weight_sum * channels)) * w * difference;
      }
      sum += line;
    }
  return sum / (weight_sum * channels);
}
