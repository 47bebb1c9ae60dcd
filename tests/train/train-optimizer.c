/* The optimizer: AdamW in double beside it, clipping, frozen parameters, the moving average, refusal of what
 * is not finite, and save and resume to the bit. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "scratch.h"
#include "train/optimizer.h"

/* float32 moments and weights after ten steps against double; bf16 parameters keep the float32 master in two
 * halves. */
#define TOLERANCE 2e-6

struct fixture {
  struct ms_compute compute;
  struct ms_params params;
  struct ms_optimizer optimizer;
  float *grad;
};

static void die(const struct ms_error *error) {
  fprintf(stderr, "%s\n", error->message);
  exit(99);
}

/* A matrix larger than one piece of work, vectors, and a frozen matrix between them. */
static void fixture_open(struct fixture *f, enum msk_type type, int threads, float clip, float ema) {
  static const int64_t large[2] = {300, 301}, small[2] = {7, 9}, length = 45;
  struct ms_optimizer_params settings = ms_optimizer_params_default();
  struct ms_error error = {0};
  unsigned sets[8], flags = sets[check_sets(sets) - 1];
  int frozen;
  if (ms_compute_open(&f->compute, threads, flags, &error) < 0)
    die(&error);
  ms_params_init(&f->params);
  ms_params_add(&f->params, "small.weight", 2, small);
  ms_params_add(&f->params, "small.bias", 1, &length);
  frozen = ms_params_add(&f->params, "frozen.weight", 2, small);
  ms_params_add(&f->params, "large.weight", 2, large);
  ms_params_add(&f->params, "large.bias", 1, &length);
  f->params.list[frozen].kind = MS_PARAM_FROZEN;
  for (int i = 0; i < f->params.count; i++)
    f->params.list[i].start = MS_START_NORMAL;
  if (ms_params_allocate(&f->params, type, &error) < 0)
    die(&error);
  ms_params_randomize(&f->params, 3);
  settings.clip_norm = clip;
  settings.ema = ema;
  settings.decay = 0.1f;
  if (ms_optimizer_open(&f->optimizer, &f->compute, &f->params, &settings, &error) < 0)
    die(&error);
  f->grad = calloc((size_t)f->params.total, sizeof *f->grad);
}

static void fixture_close(struct fixture *f) {
  free(f->grad);
  ms_optimizer_release(&f->optimizer);
  ms_params_release(&f->params);
  ms_compute_release(&f->compute);
}

static void set_gradient(struct fixture *f, int step) {
  for (int i = 0; i < f->params.count; i++)
    for (int64_t j = 0; j < f->params.list[i].count; j++)
      f->grad[f->params.list[i].offset + j] =
          (float)(sin(0.37 * (double)(j + 31 * i) + step) * (1 + (double)(j % 5)));
}

static double rate(int step) {
  return 1e-2 / (1 + step);
}

static void step(struct fixture *f, int number) {
  struct ms_error error = {0};
  set_gradient(f, number);
  if (ms_optimizer_step(&f->optimizer, f->grad, rate(number), NULL, &error) < 0)
    die(&error);
}

static void read_master(const struct fixture *f, float *out) {
  if (f->params.type == MSK_F32)
    memcpy(out, f->params.data, (size_t)f->params.total * 4);
  else
    f->compute.adamw.join(f->params.data, f->optimizer.lo, out, f->params.total);
}

static void check_against_double(enum msk_type type) {
  const char *name = type == MSK_F32 ? "float32" : "split master";
  struct fixture f;
  double *w, *m, *v, *average, want_norm = 0, clip = 2.5, ema = 0.6, norm;
  float *got, *start;
  int64_t total;
  struct ms_error error = {0};
  fixture_open(&f, type, 2, (float)clip, (float)ema);
  total = f.params.total;
  w = calloc((size_t)total, sizeof *w);
  m = calloc((size_t)total, sizeof *m);
  v = calloc((size_t)total, sizeof *v);
  average = calloc((size_t)total, sizeof *average);
  got = check_alloc_f32(total);
  start = check_alloc_f32(total);
  read_master(&f, start);
  for (int64_t i = 0; i < total; i++)
    w[i] = average[i] = start[i];
  for (int n = 0; n < 10; n++) {
    double scale, keep = fmin((float)ema, (1.0 + n) / (10.0 + n)), beta1 = f.optimizer.settings.beta1,
                  beta2 = f.optimizer.settings.beta2;
    set_gradient(&f, n);
    want_norm = 0;
    for (int i = 0; i < f.params.count; i++)
      for (int64_t j = 0; j < f.params.list[i].count && f.params.list[i].kind != MS_PARAM_FROZEN; j++)
        want_norm += (double)f.grad[f.params.list[i].offset + j] * f.grad[f.params.list[i].offset + j];
    want_norm = sqrt(want_norm);
    scale = want_norm > clip ? clip / want_norm : 1;
    for (int i = 0; i < f.params.count; i++) {
      const struct ms_param *param = &f.params.list[i];
      for (int64_t at = param->offset; at < param->offset + param->count && param->kind != MS_PARAM_FROZEN;
           at++) {
        double g = f.grad[at] * scale;
        if (param->kind == MS_PARAM_MATRIX)
          w[at] -= rate(n) * (double)f.optimizer.settings.decay * w[at];
        m[at] = beta1 * m[at] + (1 - beta1) * g;
        v[at] = beta2 * v[at] + (1 - beta2) * g * g;
        w[at] -= rate(n) / (1 - pow(beta1, n + 1)) * m[at] /
                 (sqrt(v[at] / (1 - pow(beta2, n + 1))) + (double)f.optimizer.settings.eps);
      }
    }
    for (int64_t i = 0; i < total; i++)
      average[i] = keep * average[i] + (1 - keep) * w[i];
    if (ms_optimizer_step(&f.optimizer, f.grad, rate(n), &norm, &error) < 0)
      die(&error);
  }
  check_ok(fabs(norm - want_norm) < 1e-9 * want_norm, "%s: norm %.9g, in double %.9g", name, norm, want_norm);
  read_master(&f, got);
  check_relative_l2(got, w, total, TOLERANCE, "%s: weights after ten steps", name);
  check_ok(!memcmp(got + f.params.list[2].offset, start + f.params.list[2].offset,
                   (size_t)f.params.list[2].count * 4),
           "%s: frozen weights stay", name);
  check_relative_l2(f.optimizer.m, m, total, TOLERANCE, "%s: first moment", name);
  check_relative_l2(f.optimizer.v, v, total, TOLERANCE, "%s: second moment", name);
  ms_optimizer_read_average(&f.optimizer, got);
  check_relative_l2(got, average, total, TOLERANCE, "%s: moving average", name);
  free(w);
  free(m);
  free(v);
  free(average);
  fixture_close(&f);
  check_free_all();
}

static int same_state(const struct fixture *a, const struct fixture *b) {
  size_t total = (size_t)a->params.total;
  return a->optimizer.step == b->optimizer.step &&
         !memcmp(a->params.data, b->params.data, total * msk_type_size(a->params.type)) &&
         !memcmp(a->optimizer.m, b->optimizer.m, total * 4) &&
         !memcmp(a->optimizer.v, b->optimizer.v, total * 4) &&
         (!a->optimizer.lo || !memcmp(a->optimizer.lo, b->optimizer.lo, total * 2)) &&
         (!a->optimizer.ema || !memcmp(a->optimizer.ema, b->optimizer.ema, total * 4));
}

static void check_resume(enum msk_type type, float ema) {
  const char *name = type == MSK_F32 ? "float32" : "split master";
  struct fixture straight, first, second, other;
  struct ms_error error = {0};
  uint64_t sum = 0;
  fixture_open(&straight, type, 1, 1, ema);
  fixture_open(&first, type, 3, 1, ema);
  fixture_open(&second, type, 2, 1, ema);
  for (int n = 0; n < 9; n++)
    step(&straight, n);
  for (int n = 0; n < 4; n++)
    step(&first, n);
  if (ms_optimizer_save(&first.optimizer, scratch_path("state.safetensors"), &sum, &error) < 0)
    die(&error);
  memset(second.params.data, 0, (size_t)second.params.total * msk_type_size(type));
  if (ms_optimizer_load(&second.optimizer, scratch_path("state.safetensors"), sum, &error) < 0)
    die(&error);
  check_ok(same_state(&first, &second), "%s, average %g: loaded is saved", name, ema);
  for (int n = 4; n < 9; n++)
    step(&second, n);
  check_ok(same_state(&straight, &second),
           "%s, average %g: four steps, save, load, five steps are nine steps", name, ema);
  fixture_open(&other, type == MSK_F32 ? MSK_BF16 : MSK_F32, 1, 1, ema);
  check_ok(ms_optimizer_load(&other.optimizer, scratch_path("state.safetensors"), sum, &error) == MS_EINPUT &&
               error.message[0],
           "%s: a state of another type is refused: %.40s...", name, error.message);
  fixture_close(&straight);
  fixture_close(&first);
  fixture_close(&second);
  fixture_close(&other);
}

static void check_not_finite(enum msk_type type, float bad) {
  struct fixture f, same;
  struct ms_error error = {0};
  double norm = 5;
  fixture_open(&f, type, 2, 1, 0.9f);
  fixture_open(&same, type, 2, 1, 0.9f);
  step(&f, 0);
  step(&same, 0);
  set_gradient(&f, 1);
  f.grad[f.params.list[3].offset + 70000] = bad;
  check_ok(ms_optimizer_step(&f.optimizer, f.grad, 1e-3, &norm, &error) == MS_ENOTFINITE &&
               strstr(error.message, "large.weight"),
           "a gradient of %g is refused: %s", (double)bad, error.message);
  check_ok(same_state(&f, &same) && norm == 5, "and nothing is touched");
  set_gradient(&f, 1);
  f.grad[f.params.list[2].offset] = bad;
  check_ok(ms_optimizer_step(&f.optimizer, f.grad, 1e-3, &norm, &error) == 0 && isfinite(norm),
           "a frozen parameter's gradient is not read");
  fixture_close(&f);
  fixture_close(&same);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  scratch_begin();
  for (enum msk_type type = MSK_F32; type <= MSK_BF16; type++) {
    check_against_double(type);
    check_resume(type, 0);
    check_resume(type, 0.9f);
    check_not_finite(type, NAN);
    check_not_finite(type, INFINITY);
  }
  scratch_end();
  return check_end();
}
