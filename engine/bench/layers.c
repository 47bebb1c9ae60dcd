/* Whole DiT layers: the time of a network with three layers less that of one with a single layer, halved, so
 * that embedding and head do not count. Self-attention is dense, windowed or 3D-DSA; the share of 3D-DSA with
 * its offset head in its layer is told in a row of its own: what the layer takes beyond the windowed one,
 * whose attention, timed alone, is taken off. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "bench/bench-private.h"
#include "model/dit.h"

struct layer_shape {
  const char *name;
  int dim, ffn, heads, text_dim, text_len, lattice[3], samples;
};

static const struct layer_shape shapes[] = {
    {"starter", 256, 1024, 4, 128, 24, {9, 12, 20}, 5},
    {"wan2.1-1.3b", 1536, 8960, 12, 4096, 512, {5, 34, 60}, 1},
};

static const struct {
  const char *name;
  struct ms_attention_config config;
} kinds[] = {
    {"dense", {.kind = MS_ATTENTION_DENSE}},
    {"window 3x4x4", {.kind = MS_ATTENTION_WINDOW, .window = {3, 4, 4}}},
    {"dsa shift 3x5x5",
     {.kind = MS_ATTENTION_DSA,
      .mode = MSK_SLIDE_SHIFT,
      .window = {3, 5, 5},
      .bounds = {1, 4, 4},
      .groups = 4}},
    {"dsa point 3x5x5",
     {.kind = MS_ATTENTION_DSA,
      .mode = MSK_SLIDE_POINT,
      .window = {3, 5, 5},
      .bounds = {1, 4, 4},
      .groups = 4}},
};

#define MOST_SAMPLES 16
#define LEAST_ROUNDS 4
#define SPEND_SECONDS 0.8

struct layer_case {
  struct ms_dit *dit;
  struct ms_dit_batch batch;
  float *latents, *text, *velocity, *grad, times[MOST_SAMPLES];
  const float *texts[MOST_SAMPLES];
  int rows[MOST_SAMPLES];
  int code;
  struct ms_error *error;
};

static void run_forward(void *data) {
  struct layer_case *c = data;
  if (c->code == 0)
    c->code = ms_dit_forward(c->dit, &c->batch, 0, c->velocity, c->error);
}

static void run_both(void *data) {
  struct layer_case *c = data;
  if (c->code == 0)
    c->code = ms_dit_forward(c->dit, &c->batch, 1, c->velocity, c->error);
  if (c->code == 0)
    c->code = ms_dit_backward(c->dit, &c->batch, c->velocity, c->grad, NULL, NULL, c->error);
}

/* Weights as random ones start, but matrices from a short list of numbers: drawing each would take longer
 * than the benchmark. The offset heads' last weights are not zero, so that windows slide and stretch. */
static int fill_weights(struct ms_compute *compute, struct ms_params *params) {
  enum { PIECE = 4096 };
  float *normals = ms_bench_floats(PIECE), *values = ms_bench_floats(PIECE);
  uint16_t *data = params->data;
  for (int i = 0; normals && values && i < params->count; i++) {
    const struct ms_param *param = &params->list[i];
    double fan_in = (double)param->count / (double)param->dims[0],
           scale = param->kind == MS_PARAM_MATRIX ? 1 / sqrt(fan_in) : 0.02;
    for (int64_t j = 0; j < PIECE; j++)
      values[j] = param->start == MS_START_ONE ? 1 : (float)(scale * normals[j]);
    for (int64_t at = 0; at < param->count; at += PIECE) {
      int64_t n = param->count - at < PIECE ? param->count - at : PIECE;
      compute->adamw.f32_to_bf16(values, data + param->offset + at, n);
    }
  }
  free(normals);
  free(values);
  return normals && values ? 0 : MS_ENOMEM;
}

/* A network with so many layers and a batch for it. Close also after a failure. */
static int open_case(struct ms_bench_run *run, const struct layer_shape *shape, int kind, int layers,
                     struct layer_case *c) {
  struct ms_dit_config *config = calloc(1, sizeof *config);
  int64_t volume = (int64_t)shape->lattice[0] * shape->lattice[1] * shape->lattice[2] * 16 * shape->samples;
  int code = config ? 0 : MS_ENOMEM;
  *c = (struct layer_case){.error = run->error};
  c->latents = ms_bench_floats(volume);
  c->velocity = ms_bench_floats(volume);
  c->text = ms_bench_floats((int64_t)shape->text_len * shape->text_dim);
  if (code == 0 && (!c->latents || !c->velocity || !c->text))
    code = MS_ENOMEM;
  if (code == 0) {
    *config = (struct ms_dit_config){.dim = shape->dim,
                                     .ffn = shape->ffn,
                                     .heads = shape->heads,
                                     .layers = layers,
                                     .in_channels = 16,
                                     .out_channels = 16,
                                     .patch = {1, 2, 2},
                                     .text_dim = shape->text_dim,
                                     .text_len = shape->text_len,
                                     .freq_dim = 256,
                                     .eps = 1e-6f};
    for (int i = 0; i < layers; i++)
      config->attention[i] = config->coarse_attention[i] = kinds[kind].config;
    code = ms_dit_open(&c->dit, &run->compute, config, run->error);
  }
  free(config);
  if (code == 0)
    code = ms_params_allocate(ms_dit_params(c->dit), MSK_BF16, run->error);
  if (code == 0) {
    struct ms_params *params = ms_dit_params(c->dit);
    c->grad = ms_bench_bytes((size_t)params->total * sizeof *c->grad);
    if (!c->grad || fill_weights(&run->compute, params) < 0)
      code = MS_ENOMEM;
  }
  if (code == 0)
    code = ms_dit_prepare(c->dit, MSK_PRECISION_BF16, 1, run->error);
  for (int i = 0; i < shape->samples; i++) {
    c->times[i] = 500;
    c->texts[i] = c->text;
    c->rows[i] = shape->text_len;
  }
  c->batch = (struct ms_dit_batch){.samples = shape->samples,
                                   .latents = c->latents,
                                   .timesteps = c->times,
                                   .text = c->texts,
                                   .text_rows = c->rows};
  memcpy(c->batch.lattice, shape->lattice, sizeof c->batch.lattice);
  return code == MS_ENOMEM ? ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of layers")
                           : code;
}

static void close_case(struct layer_case *c) {
  free(c->grad);
  free(c->velocity);
  free(c->latents);
  free(c->text);
  ms_dit_close(&c->dit);
}

/* Best seconds of fn on both networks, in turn, so that what else the machine does disturbs them alike. */
static void time_pair(void (*fn)(void *data), struct layer_case cases[2], double best[2]) {
  double spent = 0;
  best[0] = best[1] = 1e30;
  for (int i = 0; i < 1000 && (i < LEAST_ROUNDS || spent < SPEND_SECONDS); i++)
    for (int k = 0; k < 2; k++) {
      double start = ms_seconds(), seconds;
      fn(&cases[k]);
      seconds = ms_seconds() - start;
      spent += seconds;
      best[k] = seconds < best[k] ? seconds : best[k];
    }
}

/* Seconds of one layer's forward pass, and of both passes, and the former's FLOPs. */
static int time_layer(struct ms_bench_run *run, const struct layer_shape *shape, int kind, double *forward,
                      double *both, double *flops) {
  struct layer_case cases[2] = {0};
  double best[2];
  int code = open_case(run, shape, kind, 1, &cases[0]);
  if (code == 0)
    code = open_case(run, shape, kind, 3, &cases[1]);
  if (code == 0) {
    *flops = (ms_dit_forward_flops(cases[1].dit, shape->lattice, 0) -
              ms_dit_forward_flops(cases[0].dit, shape->lattice, 0)) /
             2 * shape->samples;
    time_pair(run_forward, cases, best);
    *forward = (best[1] - best[0]) / 2;
    time_pair(run_both, cases, best);
    *both = (best[1] - best[0]) / 2;
    code = cases[0].code < 0 ? cases[0].code : cases[1].code;
  }
  close_case(&cases[0]);
  close_case(&cases[1]);
  return code;
}

/* A windowed layer without its attention. */
static int rest_of_layer(struct ms_bench_run *run, const struct layer_shape *shape, double layer,
                         double *rest) {
  static const int64_t window[3] = {3, 4, 4};
  const int64_t lattice[3] = {shape->lattice[0], shape->lattice[1] / 2, shape->lattice[2] / 2};
  double attention = ms_bench_window(run, lattice, window, shape->heads, shape->dim / shape->heads);
  if (attention < 0)
    return (int)attention;
  *rest = layer - shape->samples * attention;
  return 0;
}

int ms_bench_layers(struct ms_bench_run *run) {
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const struct layer_shape *shape = &shapes[s];
    double bare = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      double forward = 0, both = 0, flops = 0;
      char label[96];
      int code = time_layer(run, shape, (int)k, &forward, &both, &flops);
      if (code == 0)
        code = ms_bench_cancelled(run);
      if (code < 0)
        return code;
      snprintf(label, sizeof label, "%s, %d tokens, %s", shape->name,
               shape->samples * shape->lattice[0] * shape->lattice[1] * shape->lattice[2] / 4, kinds[k].name);
      if (kinds[k].config.kind == MS_ATTENTION_WINDOW &&
          (code = rest_of_layer(run, shape, forward, &bare)) < 0)
        return code;
      ms_bench_row(run, "layer forward", label, run->compute.product[MSK_PRECISION_BF16].name, forward, flops,
                   0, "bf16");
      ms_bench_row(run, "layer forward + backward", label, run->compute.product[MSK_PRECISION_BF16].name,
                   both, 3 * flops, 0, "bf16");
      if (kinds[k].config.kind == MS_ATTENTION_DSA && forward > bare) {
        snprintf(label, sizeof label, "%s, %s: %.0f %% of its layer", shape->name, kinds[k].name,
                 100 * (forward - bare) / forward);
        ms_bench_row(run, "3d-dsa + offset head", label, run->compute.slide[MSK_PRECISION_BF16].name,
                     forward - bare, 0, 0, "");
      }
    }
  }
  return 0;
}
