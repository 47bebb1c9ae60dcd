/* The networks that are timed to learn a machine's rates. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/system.h"
#include "plan/measure-private.h"

#define LEAST_CALLS 3
#define LEAST_ROUNDS 2
#define SPEND_SECONDS 0.06
#define SHORT_SECONDS 0.02
/* Offsets of the probes' windows before the bounds, in tokens: costs as much as those of trained models. */
#define OFFSETS 3.0

int ms_measure_best(int (*fn)(void *data, struct ms_error *error), void *data, double *seconds,
                    struct ms_error *error) {
  double spent = 0;
  *seconds = 1e30;
  for (int i = 0; i < 100 && (i < LEAST_CALLS || spent < SPEND_SECONDS); i++) {
    double start = ms_seconds(), took;
    int code = fn(data, error);
    if (code < 0)
      return code;
    took = ms_seconds() - start;
    spent += took;
    *seconds = took < *seconds ? took : *seconds;
  }
  return 0;
}

float *ms_measure_normals(int64_t count) {
  float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 63) / 64 * 64);
  if (x)
    for (int64_t i = 0; i < count; i += 4096) {
      int64_t n = count - i < 4096 ? count - i : 4096;
      if (i == 0)
        ms_random_normal_fill(1, 1, 0, x, n);
      else
        memcpy(x + i, x, (size_t)n * sizeof *x);
    }
  return x;
}

/* Small weights, and offsets that slide and stretch the windows. */
static void fill_weights(struct ms_compute *compute, struct ms_params *params) {
  enum { PIECE = 4096 };
  float values[PIECE];
  uint16_t *data = params->data, piece[PIECE];
  ms_random_normal_fill(2, 2, 0, values, PIECE);
  for (int i = 0; i < PIECE; i++)
    values[i] *= 0.02f;
  compute->adamw.f32_to_bf16(values, piece, PIECE);
  for (int64_t at = 0; at < params->total; at += PIECE)
    memcpy(data + at, piece, (size_t)(params->total - at < PIECE ? params->total - at : PIECE) * 2);
  for (int i = 0; i < params->count; i++) {
    const struct ms_param *param = &params->list[i];
    struct ms_random random = {.seed = 3, .stream = (uint64_t)i};
    if (!strstr(param->name, ".offset.out.bias"))
      continue;
    for (int64_t j = 0; j < param->count; j += PIECE) {
      int64_t n = param->count - j < PIECE ? param->count - j : PIECE;
      for (int64_t k = 0; k < n; k++)
        values[k] = (float)ms_random_range(&random, -OFFSETS, OFFSETS);
      compute->adamw.f32_to_bf16(values, data + param->offset + j, n);
    }
  }
}

int ms_probe_open(struct ms_measure *m, const struct ms_probe_shape *shape, struct ms_probe *probe) {
  struct ms_dit_config *config = calloc(1, sizeof *config);
  int64_t volume = (int64_t)MS_MEASURE_CHANNELS * shape->lattice[0] * shape->lattice[1] * shape->lattice[2];
  struct ms_params *params;
  double start = ms_seconds();
  int code = 0;
  memset(probe, 0, sizeof *probe);
  if (!config)
    return ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  *config = (struct ms_dit_config){.dim = shape->dim,
                                   .ffn = shape->ffn,
                                   .heads = shape->heads,
                                   .layers = shape->layers,
                                   .in_channels = MS_MEASURE_CHANNELS,
                                   .out_channels = MS_MEASURE_CHANNELS,
                                   .patch = {1, 2, 2},
                                   .text_dim = shape->text_dim,
                                   .text_len = shape->text_len,
                                   .freq_dim = 256,
                                   .eps = 1e-6f};
  for (int i = 0; i < shape->layers; i++)
    config->attention[i] = config->coarse_attention[i] = (struct ms_attention_config){
        .kind = shape->kind, .mode = MSK_SLIDE_POINT, .window = {3, 5, 5}, .bounds = {1, 4, 4}, .groups = 4};
  code = ms_dit_open(&probe->dit, &m->compute, config, m->error);
  free(config);
  if (code < 0)
    return code;
  params = ms_dit_params(probe->dit);
  code = ms_params_allocate(params, MSK_BF16, m->error);
  if (code == 0) {
    fill_weights(&m->compute, params);
    code = ms_dit_prepare(probe->dit, MSK_PRECISION_BF16, shape->training, m->error);
  }
  probe->load_seconds = ms_seconds() - start;
  probe->latents = ms_measure_normals(volume);
  probe->text = ms_measure_normals((int64_t)shape->text_len * shape->text_dim);
  probe->velocity = ms_measure_normals(volume);
  probe->grad = shape->training ? calloc((size_t)params->total, sizeof *probe->grad) : NULL;
  if (code == 0 && (!probe->latents || !probe->text || !probe->velocity || (shape->training && !probe->grad)))
    code = ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  if (code < 0)
    return code;
  probe->time = 500;
  probe->texts[0] = probe->text;
  probe->rows[0] = shape->text_len;
  probe->batch = (struct ms_dit_batch){.samples = 1,
                                       .latents = probe->latents,
                                       .timesteps = &probe->time,
                                       .text = probe->texts,
                                       .text_rows = probe->rows,
                                       .text_slot = shape->training ? 0 : 1};
  memcpy(probe->batch.lattice, shape->lattice, sizeof probe->batch.lattice);
  return code;
}

void ms_probe_close(struct ms_probe *probe) {
  ms_dit_close(&probe->dit);
  free(probe->latents);
  free(probe->text);
  free(probe->velocity);
  free(probe->grad);
}

static int run_forward(void *data, struct ms_error *error) {
  struct ms_probe *probe = data;
  return ms_dit_forward(probe->dit, &probe->batch, 0, probe->velocity, error);
}

static int run_training(void *data, struct ms_error *error) {
  struct ms_probe *probe = data;
  int code = ms_dit_forward(probe->dit, &probe->batch, 1, probe->velocity, error);
  return code < 0
             ? code
             : ms_dit_backward(probe->dit, &probe->batch, probe->latents, probe->grad, NULL, NULL, error);
}

int ms_measure_stopped(const struct ms_measure *m) {
  return m->hooks && m->hooks->cancel && atomic_load(m->hooks->cancel)
             ? ms_error_set(m->error, MS_ECANCELLED, "stopped while measuring this machine")
             : 0;
}

/* A pass, and if that was short two more at once: their weights are in the cache then, as they are when a
 * clip is made. */
static int read_once(struct ms_measure *m, struct ms_probe *probe, int training, struct ms_reading *reading) {
  double spent = 0;
  int code = 0;
  for (int i = 0; i < 3 && code == 0 && (i == 0 || spent < SHORT_SECONDS); i++) {
    double start = ms_seconds(), took;
    code = ms_measure_stopped(m);
    if (code == 0)
      code = (training ? run_training : run_forward)(probe, m->error);
    took = ms_seconds() - start;
    spent += took;
    if (took < reading->seconds)
      reading->seconds = took;
  }
  return code;
}

int ms_probes_read(struct ms_measure *m, const struct ms_probe_shape *shapes, int count, double spend,
                   struct ms_reading *readings) {
  struct ms_probe probes[MS_MEASURE_MOST_PROBES] = {0};
  double start;
  int code = 0;
  for (int i = 0; i < count && code == 0; i++) {
    code = ms_probe_open(m, &shapes[i], &probes[i]);
    readings[i] = (struct ms_reading){.seconds = 1e30, .load_seconds = probes[i].load_seconds};
  }
  start = ms_seconds();
  for (int round = 0; code == 0 && (round < LEAST_ROUNDS || ms_seconds() - start < spend); round++)
    for (int i = 0; i < count && code == 0; i++)
      code = read_once(m, &probes[i], shapes[i].training, &readings[i]);
  for (int i = 0; i < count; i++) {
    if (code == 0) {
      readings[i].work = ms_plan_pass_work(probes[i].dit, shapes[i].lattice, 0, shapes[i].training);
      readings[i].parameters = (double)ms_dit_params(probes[i].dit)->total;
    }
    ms_probe_close(&probes[i]);
  }
  return code;
}
