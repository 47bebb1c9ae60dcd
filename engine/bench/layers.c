/* Whole DiT layers: the time of a network with three layers less that of one with a single layer, halved, so
 * that embedding and head do not count. Self-attention is dense, windowed or 3D-DSA; the share of 3D-DSA with
 * its offset head in its layer is told in a row of its own: what the layer takes beyond the same layer with
 * 1x1x1 windows, whose attention costs next to nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
  int backward;
} kinds[] = {
    {"dense", {.kind = MS_ATTENTION_DENSE}, 1},
    {"window 1x1x1", {.kind = MS_ATTENTION_WINDOW, .window = {1, 1, 1}}, 0},
    {"window 3x4x4", {.kind = MS_ATTENTION_WINDOW, .window = {3, 4, 4}}, 1},
    {"dsa shift 3x5x5",
     {.kind = MS_ATTENTION_DSA,
      .mode = MSK_SLIDE_SHIFT,
      .window = {3, 5, 5},
      .bounds = {1, 4, 4},
      .groups = 4},
     1},
    {"dsa point 3x5x5",
     {.kind = MS_ATTENTION_DSA,
      .mode = MSK_SLIDE_POINT,
      .window = {3, 5, 5},
      .bounds = {1, 4, 4},
      .groups = 4},
     1},
};

struct layer_case {
  struct ms_dit *dit;
  struct ms_dit_batch batch;
  float *velocity, *grad;
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

/* Seconds of forward, and of forward and backward, of a network with so many layers. The offset heads' last
 * weights are random, so that windows slide and stretch. */
static int time_network(struct ms_bench_run *run, const struct layer_shape *shape, int kind, int layers,
                        double seconds[2], double *flops) {
  struct ms_dit_config *config = calloc(1, sizeof *config);
  struct layer_case c = {.error = run->error};
  struct ms_params *params;
  int64_t volume = (int64_t)shape->lattice[0] * shape->lattice[1] * shape->lattice[2] * 16 * shape->samples;
  float *latents = ms_bench_floats(volume),
        *text = ms_bench_floats((int64_t)shape->text_len * shape->text_dim), times[16];
  const float *texts[16];
  int rows[16];
  if (!config || !latents || !text)
    c.code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of layers");
  if (c.code == 0) {
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
    c.code = ms_dit_open(&c.dit, &run->compute, config, run->error);
  }
  if (c.code == 0) {
    params = ms_dit_params(c.dit);
    for (int i = 0; i < params->count; i++)
      if (strstr(params->list[i].name, ".offset.out.weight")) {
        params->list[i].start = MS_START_FAN_IN;
        params->list[i].start_scale = 1;
      }
    c.code = ms_params_allocate(params, MSK_BF16, run->error);
  }
  if (c.code == 0) {
    ms_params_randomize(params, 7);
    c.grad = kinds[kind].backward ? ms_bench_bytes((size_t)params->total * sizeof *c.grad) : NULL;
    c.velocity = ms_bench_floats(volume);
    if (!c.velocity || (kinds[kind].backward && !c.grad))
      c.code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of layers");
  }
  if (c.code == 0)
    c.code = ms_dit_prepare(c.dit, MSK_PRECISION_BF16, kinds[kind].backward, run->error);
  if (c.code == 0) {
    for (int i = 0; i < shape->samples; i++) {
      times[i] = 500;
      texts[i] = text;
      rows[i] = shape->text_len;
    }
    c.batch = (struct ms_dit_batch){
        .samples = shape->samples, .latents = latents, .timesteps = times, .text = texts, .text_rows = rows};
    memcpy(c.batch.lattice, shape->lattice, sizeof c.batch.lattice);
    *flops = ms_dit_forward_flops(c.dit, shape->lattice, 0) * shape->samples;
    seconds[0] = ms_bench_time(run_forward, &c);
    seconds[1] = kinds[kind].backward && c.code == 0 ? ms_bench_time(run_both, &c) : 0;
  }
  free(c.grad);
  free(c.velocity);
  ms_dit_close(&c.dit);
  free(latents);
  free(text);
  free(config);
  return c.code;
}

int ms_bench_layers(struct ms_bench_run *run) {
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const struct layer_shape *shape = &shapes[s];
    double bare = 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      double one[2] = {0}, three[2] = {0}, flops_one = 0, flops_three = 0, forward, both, flops;
      char label[96];
      int code = time_network(run, shape, (int)k, 1, one, &flops_one);
      if (code == 0)
        code = time_network(run, shape, (int)k, 3, three, &flops_three);
      if (code == 0)
        code = ms_bench_cancelled(run);
      if (code < 0)
        return code;
      forward = (three[0] - one[0]) / 2;
      both = (three[1] - one[1]) / 2;
      flops = (flops_three - flops_one) / 2;
      snprintf(label, sizeof label, "%s, %d tokens, %s", shape->name,
               shape->samples * shape->lattice[0] * shape->lattice[1] * shape->lattice[2] / 4, kinds[k].name);
      if (k == 1)
        bare = forward;
      ms_bench_row(run, "layer forward", label, run->compute.product[MSK_PRECISION_BF16].name, forward, flops,
                   0, "bf16");
      if (kinds[k].backward)
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
