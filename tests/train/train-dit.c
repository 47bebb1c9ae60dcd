/* The diffusion transformer where no reference implementation goes: 3D-DSA with its offset head, windows,
 * pooled text, coordinate features, short-side positions. Gradients against finite differences of the C
 * reference; kernels and threads against each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "harness.h"
#include "model/dit.h"
#include "msk-cpu.h"

/* The loss is a sum of some hundred float32 outputs, each good to about 1e-6; the step moves it by about 1e-2
 * of itself, so the difference quotient is good to about 1e-4. The four-point formula leaves steps of the
 * fifth order. Sampling at shifted points has a kink at every cell border: a few coordinates cross one within
 * the step, and change the quotient by their share; so steps are smaller there, and the rounding shows more.
 */
#define SMOOTH_TOLERANCE 1e-3
#define SMOOTH_STEP 4e-3
#define KINKED_TOLERANCE 1e-2
#define KINKED_STEP 5e-4

struct setup {
  const char *name;
  struct ms_dit_config config;
  int samples, lattice[3];
};

static struct ms_dit_config small(enum ms_attention_kind kind, enum msk_slide_mode mode, int t, int y, int x,
                                  int extras) {
  struct ms_dit_config c = {
      .dim = 32,
      .ffn = 48,
      .heads = 4,
      .layers = 2,
      .in_channels = 3,
      .out_channels = 2,
      .patch = {1, 2, 2},
      .text_dim = 10,
      .text_len = 5,
      .freq_dim = 16,
      .eps = 1e-6f,
      .positions = extras ? MS_POSITIONS_SHORT_SIDE : MS_POSITIONS_INTEGER,
      .coordinate_features = extras,
      .pooled_text = extras,
  };
  for (int i = 0; i < c.layers; i++) {
    struct ms_attention_config a = {
        .kind = kind, .mode = mode, .window = {t, y, x}, .bounds = {0.75f, 1.5f, 2}, .groups = 2};
    c.attention[i] = c.coarse_attention[i] = a;
  }
  return c;
}

struct world {
  struct ms_compute compute;
  struct ms_dit *dit;
  struct ms_dit_batch batch;
  float *latents, *timesteps, *weights, *out, *text[64];
  const float *text_in[64];
  int text_rows[64];
  int64_t in_count, out_count;
};

static uint64_t hash_of(const char *name) { /* FNV-1a */
  uint64_t h = 0xcbf29ce484222325u;
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * 0x100000001b3u;
  return h;
}

/* Everything random, also what training starts at zero, or its gradient would not be seen. A parameter's
 * values depend on its name alone, so that models with and without an offset head share the others. */
static void fill_params(struct ms_params *params) {
  for (int i = 0; i < params->count; i++) {
    const struct ms_param *p = &params->list[i];
    float *x = ms_params_at(params, i);
    double fan_in = (double)(p->count / p->dims[0]),
           scale = p->kind == MS_PARAM_VECTOR ? 0.2 : 1 / sqrt(fan_in);
    if (strstr(p->name, "offset.out"))
      scale = 0.5;
    ms_random_normal_fill(77, hash_of(p->name), 0, x, p->count);
    for (int64_t j = 0; j < p->count; j++)
      x[j] = (float)(x[j] * scale + (p->start == MS_START_ONE));
  }
}

static int open_world(struct world *w, const struct setup *s, unsigned flags, int threads,
                      enum msk_precision precision) {
  struct ms_error error = {0};
  int64_t points = (int64_t)s->lattice[0] * s->lattice[1] * s->lattice[2];
  memset(w, 0, sizeof *w);
  if (ms_compute_open(&w->compute, threads, flags, &error) < 0 ||
      ms_dit_open(&w->dit, &w->compute, &s->config, &error) < 0 ||
      ms_params_allocate(ms_dit_params(w->dit), MSK_F32, &error) < 0) {
    check_ok(0, "%s: %s", s->name, error.message);
    return 0;
  }
  fill_params(ms_dit_params(w->dit));
  if (ms_dit_prepare(w->dit, precision, 1, &error) < 0) {
    check_ok(0, "%s: %s", s->name, error.message);
    return 0;
  }
  w->in_count = s->samples * s->config.in_channels * points;
  w->out_count = s->samples * s->config.out_channels * points;
  w->latents = check_alloc_f32(w->in_count);
  w->weights = check_alloc_f32(w->out_count);
  w->out = check_alloc_f32(w->out_count);
  w->timesteps = check_alloc_f32(s->samples);
  ms_random_normal_fill(1, 1, 0, w->latents, w->in_count);
  ms_random_normal_fill(1, 2, 0, w->weights, w->out_count);
  for (int i = 0; i < s->samples; i++) {
    w->timesteps[i] = 100.0f + 211.5f * (float)i;
    w->text_rows[i] = 1 + i % s->config.text_len;
    w->text[i] = check_alloc_f32(w->text_rows[i] * s->config.text_dim);
    ms_random_normal_fill(1, 3 + (uint64_t)i, 0, w->text[i], w->text_rows[i] * s->config.text_dim);
    w->text_in[i] = w->text[i];
  }
  w->batch = (struct ms_dit_batch){.samples = s->samples,
                                   .lattice = {s->lattice[0], s->lattice[1], s->lattice[2]},
                                   .latents = w->latents,
                                   .timesteps = w->timesteps,
                                   .text = w->text_in,
                                   .text_rows = w->text_rows};
  return 1;
}

static void close_world(struct world *w) {
  ms_dit_close(&w->dit);
  ms_compute_release(&w->compute);
}

static double loss_of(struct world *w) {
  struct ms_error error = {0};
  double sum = 0;
  ms_dit_prepare(w->dit, MSK_PRECISION_F32, 1, &error);
  if (ms_dit_forward(w->dit, &w->batch, 0, w->out, &error) < 0) {
    check_ok(0, "forward: %s", error.message);
    return NAN;
  }
  for (int64_t i = 0; i < w->out_count; i++)
    sum += (double)w->out[i] * w->weights[i];
  return sum;
}

/* A set of numbers moved together: pieces of memory with their gradients and a random direction. */
struct piece {
  float *x;
  const float *gradient;
  float *start, *direction;
  int64_t count;
};

static double moved(struct world *w, struct piece *pieces, int count, double step) {
  for (int p = 0; p < count; p++)
    for (int64_t i = 0; i < pieces[p].count; i++)
      pieces[p].x[i] = (float)(pieces[p].start[i] + step * pieces[p].direction[i]);
  return loss_of(w);
}

static void check_direction(struct world *w, struct piece *pieces, int count, const char *setup,
                            const char *what) {
  int kinked = ms_dit_config(w->dit)->attention[0].kind == MS_ATTENTION_DSA;
  double tolerance = kinked ? KINKED_TOLERANCE : SMOOTH_TOLERANCE, step = kinked ? KINKED_STEP : SMOOTH_STEP;
  double predicted = 0, norm = 0, quotient;
  for (int p = 0; p < count; p++)
    for (int64_t i = 0; i < pieces[p].count; i++)
      norm += (double)pieces[p].gradient[i] * pieces[p].gradient[i];
  norm = sqrt(norm);
  for (int p = 0; p < count; p++) {
    pieces[p].start = check_alloc_f32(pieces[p].count);
    pieces[p].direction = check_alloc_f32(pieces[p].count);
    memcpy(pieces[p].start, pieces[p].x, (size_t)pieces[p].count * sizeof(float));
    for (int64_t i = 0; i < pieces[p].count; i++) {
      /* half along the gradient, so that the derivative is large, half anywhere, so that a false component
       * shows */
      double scale = fabs(pieces[p].start[i]) > 0.05 ? fabs(pieces[p].start[i]) : 0.05;
      double random = ms_random_normal(
          &(struct ms_random){.seed = 9, .stream = (uint64_t)p, .position = (uint64_t)(2 * i)});
      pieces[p].direction[i] = (float)(pieces[p].gradient[i] / norm + 0.3 * scale * random);
      predicted += (double)pieces[p].direction[i] * pieces[p].gradient[i];
    }
  }
  quotient = (8 * (moved(w, pieces, count, step) - moved(w, pieces, count, -step)) -
              (moved(w, pieces, count, 2 * step) - moved(w, pieces, count, -2 * step))) /
             (12 * step);
  for (int p = 0; p < count; p++)
    memcpy(pieces[p].x, pieces[p].start, (size_t)pieces[p].count * sizeof(float));
  check_ok(norm > 0 && fabs(quotient - predicted) <= tolerance * fabs(predicted),
           "%s: %s: derivative %.6g, by differences %.6g", setup, what, predicted, quotient);
}

static void check_setup(const struct setup *s) {
  static const char *const groups[] = {"",
                                       "offset.conv.weight",
                                       "offset.conv.bias",
                                       "offset.norm.weight",
                                       "offset.norm.bias",
                                       "offset.out",
                                       "pooled_embedding",
                                       "coordinate",
                                       "patch_embedding",
                                       "self_attn.q",
                                       "self_attn.k.weight",
                                       "self_attn.v",
                                       "modulation",
                                       "text_embedding",
                                       "time_"};
  struct world w;
  struct ms_params *params;
  struct ms_error error = {0};
  struct piece pieces[256];
  float *grad, *dlatents, *dtext[64];
  if (!open_world(&w, s, 0, 2, MSK_PRECISION_F32))
    return;
  params = ms_dit_params(w.dit);
  grad = check_alloc_f32(params->total);
  dlatents = check_alloc_f32(w.in_count);
  for (int i = 0; i < s->samples; i++)
    dtext[i] = check_alloc_f32(w.text_rows[i] * s->config.text_dim);
  memset(grad, 0, (size_t)params->total * sizeof *grad);
  if (ms_dit_forward(w.dit, &w.batch, 1, w.out, &error) < 0 ||
      ms_dit_backward(w.dit, &w.batch, w.weights, grad, dlatents, dtext, &error) < 0) {
    check_ok(0, "%s: %s", s->name, error.message);
    return;
  }
  for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
    int count = 0;
    for (int i = 0; i < params->count; i++)
      if (strstr(params->list[i].name, groups[g]))
        pieces[count++] = (struct piece){ms_params_at(params, i), grad + params->list[i].offset, NULL, NULL,
                                         params->list[i].count};
    if (count)
      check_direction(&w, pieces, count, s->name, groups[g][0] ? groups[g] : "all parameters");
  }
  pieces[0] = (struct piece){w.latents, dlatents, NULL, NULL, w.in_count};
  check_direction(&w, pieces, 1, s->name, "latents");
  for (int i = 0; i < s->samples; i++)
    pieces[i] = (struct piece){w.text[i], dtext[i], NULL, NULL, w.text_rows[i] * s->config.text_dim};
  check_direction(&w, pieces, s->samples, s->name, "text");
  close_world(&w);
  check_free_all();
}

/* Velocity and gradient of a world, in memory that outlives it. */
static void pass(const struct setup *s, unsigned flags, int threads, enum msk_precision precision,
                 float **out, float **grad, int64_t *out_count, int64_t *grad_count) {
  struct world w;
  struct ms_error error = {0};
  if (!open_world(&w, s, flags, threads, precision))
    return;
  *grad_count = ms_dit_params(w.dit)->total;
  *out_count = w.out_count;
  *grad = check_alloc_f32(*grad_count);
  *out = w.out;
  memset(*grad, 0, (size_t)*grad_count * sizeof(float));
  if (ms_dit_forward(w.dit, &w.batch, 1, *out, &error) < 0 ||
      ms_dit_backward(w.dit, &w.batch, w.weights, *grad, NULL, NULL, &error) < 0)
    check_ok(0, "%s: %s", s->name, error.message);
  close_world(&w);
}

/* Threads change no bit; other kernels only roundings. */
static void check_kernels(const struct setup *s) {
  float *want, *want_grad, *got, *grad, *again, *again_grad;
  int64_t count, total;
  unsigned sets[8];
  int set_count = check_sets(sets);
  for (int bf16 = 0; bf16 < 2; bf16++) {
    enum msk_precision precision = bf16 ? MSK_PRECISION_BF16 : MSK_PRECISION_F32;
    pass(s, 0, 1, MSK_PRECISION_F32, &want, &want_grad, &count, &total);
    for (int i = 0; i < set_count; i++) {
      pass(s, sets[i], 1, precision, &got, &grad, &count, &total);
      check_relative_l2_f32(got, want, count, bf16 ? 2.24e-2 : 1e-5, "%s: %s %s: velocity", s->name,
                            check_set_name(sets[i]), bf16 ? "bf16" : "f32");
      /* where a coordinate lies near a cell border, rounding decides for one of two one-sided derivatives;
       * products in bf16 move coordinates by hundredths of a token, so as many of them change cells */
      check_relative_l2_f32(grad, want_grad, total, bf16 ? 0.1 : 1e-4, "%s: %s %s: gradient", s->name,
                            check_set_name(sets[i]), bf16 ? "bf16" : "f32");
      pass(s, sets[i], 3, precision, &again, &again_grad, &count, &total);
      check_bytes(again, got, (size_t)count * sizeof *got, "%s: %s: velocity with 3 threads", s->name,
                  check_set_name(sets[i]));
      check_bytes(again_grad, grad, (size_t)total * sizeof *grad, "%s: %s: gradient with 3 threads", s->name,
                  check_set_name(sets[i]));
    }
    check_free_all();
  }
}

static void velocity_of(const struct setup *s, int zero_offsets, float **out, int64_t *count) {
  struct world w;
  struct ms_error error = {0};
  if (!open_world(&w, s, msk_cpu_detect(), 2, MSK_PRECISION_F32))
    return;
  for (int i = 0; i < ms_dit_params(w.dit)->count && zero_offsets; i++)
    if (strstr(ms_dit_params(w.dit)->list[i].name, "offset.out"))
      memset(ms_params_at(ms_dit_params(w.dit), i), 0,
             (size_t)ms_dit_params(w.dit)->list[i].count * sizeof(float));
  ms_dit_prepare(w.dit, MSK_PRECISION_F32, 0, &error);
  if (ms_dit_forward(w.dit, &w.batch, 0, w.out, &error) < 0)
    check_ok(0, "%s: %s", s->name, error.message);
  if (zero_offsets) {
    float means[MS_MAX_LAYERS] = {1};
    ms_dit_offset_means(w.dit, means);
    check_ok(means[0] == 0, "zero offsets have mean 0");
  }
  *out = w.out;
  *count = w.out_count;
  close_world(&w);
}

/* A window as large as the lattice is dense attention; so is 3D-DSA at zero offsets. */
static void check_equalities(void) {
  struct setup dense = {"dense", small(MS_ATTENTION_DENSE, 0, 1, 1, 1, 1), 2, {3, 8, 10}};
  struct setup window = {"whole window", small(MS_ATTENTION_WINDOW, 0, 9, 9, 9, 1), 2, {3, 8, 10}};
  struct setup dsa = {"whole dsa", small(MS_ATTENTION_DSA, MSK_SLIDE_POINT, 3, 4, 5, 1), 2, {3, 8, 10}};
  float *want, *got, *zero;
  int64_t count;
  velocity_of(&dense, 0, &want, &count);
  velocity_of(&window, 0, &got, &count);
  check_relative_l2_f32(got, want, count, 1e-5, "a window over the whole lattice is dense attention");
  velocity_of(&dsa, 1, &zero, &count);
  check_relative_l2_f32(zero, want, count, 1e-5,
                        "3D-DSA at zero offsets over the whole lattice is dense attention");
  check_free_all();
}

/* Weights kept in bf16 are the rounded weights, no more and no less. */
static void check_bf16_weights(void) {
  struct setup s = {"bf16 weights", small(MS_ATTENTION_DSA, MSK_SLIDE_POINT, 3, 3, 3, 1), 2, {3, 8, 10}};
  struct ms_dit *low = NULL;
  struct ms_error error = {0};
  struct ms_params *from, *to;
  struct world w;
  float *want;
  if (!open_world(&w, &s, msk_cpu_detect(), 2, MSK_PRECISION_F32))
    return;
  want = check_alloc_f32(w.out_count);
  from = ms_dit_params(w.dit);
  if (ms_dit_open(&low, &w.compute, &s.config, &error) < 0 ||
      ms_params_allocate(ms_dit_params(low), MSK_BF16, &error) < 0) {
    check_ok(0, "%s", error.message);
    return;
  }
  to = ms_dit_params(low);
  for (int64_t i = 0; i < from->total; i++) {
    uint16_t h = msk_f32_to_bf16(((float *)from->data)[i]);
    ((uint16_t *)to->data)[i] = h;
    ((float *)from->data)[i] = msk_bf16_to_f32(h);
  }
  ms_dit_prepare(w.dit, MSK_PRECISION_BF16, 0, &error);
  ms_dit_prepare(low, MSK_PRECISION_BF16, 0, &error);
  ms_dit_forward(w.dit, &w.batch, 0, want, &error);
  ms_dit_forward(low, &w.batch, 0, w.out, &error);
  check_ok(error.code == 0, "bf16 weights: both run");
  check_bytes(w.out, want, (size_t)w.out_count * sizeof *want, "bf16 weights are the rounded weights");
  ms_dit_close(&low);
  close_world(&w);
  check_free_all();
}

static void check_calls(void) {
  struct setup s = {"calls", small(MS_ATTENTION_DSA, MSK_SLIDE_POINT, 3, 3, 3, 1), 1, {3, 8, 10}};
  struct world w;
  struct ms_error error = {0};
  atomic_int cancel = 1;
  float *want;
  if (!open_world(&w, &s, msk_cpu_detect(), 2, MSK_PRECISION_F32))
    return;
  want = check_alloc_f32(w.out_count);
  ms_dit_forward(w.dit, &w.batch, 0, want, &error);
  w.batch.text_slot = 2;
  ms_dit_forward(w.dit, &w.batch, 0, w.out, &error);
  check_bytes(w.out, want, (size_t)w.out_count * sizeof *want, "a text kept under a number gives the same");
  w.text[0][0] += 1;
  ms_dit_forward(w.dit, &w.batch, 0, w.out, &error);
  check_ok(error.code == 0 && memcmp(w.out, want, (size_t)w.out_count * sizeof *want),
           "pooled text is read anew, its keys are kept until forgotten");
  w.text[0][0] -= 1;
  check_ok(ms_dit_backward(w.dit, &w.batch, w.weights, want, NULL, NULL, &error) == MS_EUSAGE,
           "backward without forward is refused");
  error.code = 0;
  ms_pool_set_cancel(w.compute.pool, &cancel);
  check_ok(ms_dit_forward(w.dit, &w.batch, 0, w.out, &error) == MS_ECANCELLED, "a cancelled pass says so");
  ms_pool_set_cancel(w.compute.pool, NULL);
  error.code = 0;
  w.latents[5] = NAN;
  check_ok(ms_dit_forward(w.dit, &w.batch, 0, w.out, &error) == MS_ENOTFINITE &&
               strstr(error.message, "layer 1 of"),
           "a value that is not finite is named: %s", error.message);
  error.code = 0;
  w.batch.lattice[1] = 7;
  check_ok(ms_dit_forward(w.dit, &w.batch, 0, w.out, &error) == MS_EUSAGE,
           "a lattice between patches is refused");
  w.batch.lattice[1] = 8;
  check_ok(ms_dit_activation_bytes(w.dit, &w.batch, 1) > ms_dit_activation_bytes(w.dit, &w.batch, 0),
           "training needs more memory than inference");
  close_world(&w);
  check_free_all();
}

/* The starter's sizes: 6 layers, 256 wide, 4 heads; clips of 64x64x9 and 192x160x33 with a 4x8x8 codec. */
static struct setup starter(enum ms_attention_kind kind, int samples, int t, int y, int x) {
  struct setup s = {"starter", small(kind, MSK_SLIDE_POINT, 3, 3, 3, 1), samples, {t, y, x}};
  s.config.dim = 256;
  s.config.ffn = 1024;
  s.config.layers = 6;
  s.config.in_channels = s.config.out_channels = 16;
  s.config.text_dim = 128;
  s.config.text_len = 20;
  s.config.freq_dim = 256;
  for (int i = 0; i < s.config.layers; i++) {
    s.config.attention[i] = s.config.attention[0];
    s.config.attention[i].groups = 4;
    s.config.coarse_attention[i] = s.config.attention[i];
  }
  return s;
}

struct timed {
  struct world w;
  float *grad;
};

static void time_prepare(void *data) {
  struct timed *t = data;
  ms_dit_prepare(t->w.dit, MSK_PRECISION_BF16, 1, NULL);
}

static void time_forward(void *data) {
  struct timed *t = data;
  ms_dit_forward(t->w.dit, &t->w.batch, 0, t->w.out, NULL);
}

static void time_step(void *data) {
  struct timed *t = data;
  ms_dit_forward(t->w.dit, &t->w.batch, 1, t->w.out, NULL);
  ms_dit_backward(t->w.dit, &t->w.batch, t->w.weights, t->grad, NULL, NULL, NULL);
}

static void bench(void) {
  const struct setup list[] = {
      starter(MS_ATTENTION_DENSE, 32, 3, 8, 8), starter(MS_ATTENTION_DENSE, 5, 9, 20, 12),
      starter(MS_ATTENTION_DSA, 32, 3, 8, 8), starter(MS_ATTENTION_DSA, 5, 9, 20, 12)};
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    struct timed t;
    char name[96];
    double flops;
    if (!open_world(&t.w, &list[i], msk_cpu_detect(), 0, MSK_PRECISION_BF16))
      return;
    flops = list[i].samples * ms_dit_forward_flops(t.w.dit, list[i].lattice, 0);
    t.grad = check_alloc_f32(ms_dit_params(t.w.dit)->total);
    memset(t.grad, 0, (size_t)ms_dit_params(t.w.dit)->total * sizeof(float));
    snprintf(name, sizeof name, "%s %dx%dx%d batch %d",
             list[i].config.attention[0].kind == MS_ATTENTION_DSA ? "dsa" : "dense", list[i].lattice[0],
             list[i].lattice[1], list[i].lattice[2], list[i].samples);
    check_bench("prepare", check_time(time_prepare, &t), 0, 10.0 * (double)ms_dit_params(t.w.dit)->total);
    printf("# %s\n", name);
    check_bench("forward", check_time(time_forward, &t), flops, 0);
    check_bench("forward and backward", check_time(time_step, &t), 3 * flops, 0);
    close_world(&t.w);
    check_free_all();
  }
}

int main(int argc, char **argv) {
  const struct setup setups[] = {
      {"dense", small(MS_ATTENTION_DENSE, 0, 1, 1, 1, 1), 2, {3, 8, 10}},
      {"windows", small(MS_ATTENTION_WINDOW, 0, 2, 3, 2, 0), 2, {3, 8, 10}},
      {"dsa point", small(MS_ATTENTION_DSA, MSK_SLIDE_POINT, 3, 3, 3, 1), 2, {3, 8, 10}},
      {"dsa shift", small(MS_ATTENTION_DSA, MSK_SLIDE_SHIFT, 3, 3, 3, 1), 3, {3, 8, 10}},
      {"dsa cut", small(MS_ATTENTION_DSA, MSK_SLIDE_POINT, 3, 5, 3, 0), 2, {2, 8, 6}},
      /* samples of more rows than a block */
      {"dense lines", small(MS_ATTENTION_DENSE, 0, 1, 1, 1, 0), 2, {3, 16, 18}},
      {"windows lines", small(MS_ATTENTION_WINDOW, 0, 2, 3, 4, 1), 1, {3, 16, 18}},
      {"dsa lines", small(MS_ATTENTION_DSA, MSK_SLIDE_POINT, 3, 3, 3, 0), 1, {3, 16, 18}},
      {"dsa cut lines", small(MS_ATTENTION_DSA, MSK_SLIDE_POINT, 5, 3, 3, 0), 1, {3, 16, 18}},
  };
  check_begin(argc, argv);
  if (check_bench_wanted()) {
    bench();
    return check_end();
  }
  for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
    check_setup(&setups[i]);
    check_kernels(&setups[i]);
  }
  check_equalities();
  check_bf16_weights();
  check_calls();
  return check_end();
}
