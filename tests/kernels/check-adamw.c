/* AdamW and conversions: every set against the formulas in double, and against the bits that the format
 * fixes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "msk-adamw.h"
#include "msk-cpu.h"

static uint32_t bits_of(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

static float from_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

static float *copy_of(const float *x, int64_t n) {
  float *y = check_alloc_f32(n);
  memcpy(y, x, (size_t)n * sizeof *x);
  return y;
}

static uint16_t *words(int64_t n) {
  return check_alloc((size_t)n * sizeof(uint16_t));
}

static struct msk_adamw params_at(int step) {
  return (struct msk_adamw){.lr = 3e-4 * step,
                            .beta1 = 0.9,
                            .beta2 = 0.999,
                            .eps = 1e-8,
                            .decay = 0.1,
                            .correction1 = 1 - pow(0.9, step),
                            .correction2 = 1 - pow(0.999, step),
                            .grad_scale = step == 2 ? 0.25 : 1};
}

/* Three steps from the same start: float32, split with float32 gradients, split with bfloat16 gradients. */
static void test_steps(const struct msk_adamw_ops *ops, const char *set, int64_t n) {
  float *g = check_alloc_f32(n), *w = check_alloc_f32(n), *m = check_alloc_f32(n), *v = check_alloc_f32(n);
  float *w2, *m2 = check_alloc_f32(n), *v2 = check_alloc_f32(n), *m3 = check_alloc_f32(n),
             *v3 = check_alloc_f32(n);
  float *joined = check_alloc_f32(n);
  uint16_t *half = words(n), *hi = words(n), *lo = words(n), *hi3 = words(n), *lo3 = words(n);
  double *rw = check_alloc((size_t)n * 8), *rm = check_alloc((size_t)n * 8), *rv = check_alloc((size_t)n * 8);
  int64_t cut = n / 3;
  check_fill(w, n, 0.05);
  for (int64_t i = 0; i < n; i++) {
    rw[i] = w[i];
    rm[i] = rv[i] = m[i] = v[i] = m2[i] = v2[i] = m3[i] = v3[i] = 0;
  }
  w2 = copy_of(w, n);
  ops->split(w, hi, lo, n);
  ops->split(w, hi3, lo3, n);
  for (int step = 1; step <= 3; step++) {
    struct msk_adamw p = params_at(step);
    for (int64_t i = 0; i < n; i++)
      g[i] = i % 7 == 0 ? 0 : (float)(check_uniform(-1, 1) * pow(10, check_uniform(-9, 2)));
    check_to_bf16(g, half, n);
    for (int64_t i = 0; i < n; i++) {
      double d;
      g[i] = msk_bf16_to_f32(half[i]); /* so that all three see one gradient */
      d = g[i] * p.grad_scale;
      rm[i] = p.beta1 * rm[i] + (1 - p.beta1) * d;
      rv[i] = p.beta2 * rv[i] + (1 - p.beta2) * d * d;
      rw[i] -= p.lr * p.decay * rw[i];
      rw[i] -= p.lr / p.correction1 * rm[i] / (sqrt(rv[i] / p.correction2) + p.eps);
    }
    ops->step_f32(&p, g, w, m, v, n);
    ops->step_f32(&p, g, w2, m2, v2, cut);
    ops->step_f32(&p, g + cut, w2 + cut, m2 + cut, v2 + cut, n - cut);
    check_bytes(w2, w, (size_t)n * 4, "step_f32 %s [%d] step %d in two ranges", set, (int)n, step);
    memcpy(m2, m, (size_t)n * 4);
    memcpy(v2, v, (size_t)n * 4);
    ops->step_split(&p, step == 2 ? (const void *)half : g, step == 2 ? MSK_BF16 : MSK_F32, hi, lo, m3, v3,
                    cut);
    ops->step_split(&p, step == 2 ? (const void *)(half + cut) : g + cut, step == 2 ? MSK_BF16 : MSK_F32,
                    hi + cut, lo + cut, m3 + cut, v3 + cut, n - cut);
    ops->join(hi, lo, joined, n);
    check_bytes(joined, w, (size_t)n * 4, "step_split %s [%d] step %d: float32 steps", set, (int)n, step);
    check_ok(!memcmp(m3, m, (size_t)n * 4) && !memcmp(v3, v, (size_t)n * 4),
             "step_split %s [%d] step %d: moments", set, (int)n, step);
  }
  check_relative_l2(w, rw, n, 2e-6, "step_f32 %s [%d]: weights", set, (int)n);
  check_relative_l2(m, rm, n, 2e-6, "step_f32 %s [%d]: first moments", set, (int)n);
  check_relative_l2(v, rv, n, 2e-6, "step_f32 %s [%d]: second moments", set, (int)n);
  check_free_all();
}

/* Every sixteenth-bit boundary, ties of both parities and signs, the largest finite value, infinity, NaN and
 * noise. */
static void test_conversions(const struct msk_adamw_ops *ops, const char *set) {
  static const uint32_t ends[] = {0,          0x80000000, 1,          0x7fff,     0x8000,     0x8001,
                                  0x3f808000, 0x3f818000, 0xbf808000, 0xbf818000, 0x3f807fff, 0x3f808001,
                                  0x7f7fffff, 0xff7fffff, 0x7f7f7fff, 0x7f7f8000, 0x7f800000, 0xff800000,
                                  0x7f800001, 0xff800001, 0x7fc00000, 0xffc00000, 0x7fffffff, 0xffffffff,
                                  0x7fbfffff, 0x7fff8000, 0x00800000, 0x007fffff};
  int64_t count = sizeof ends / sizeof *ends, n = 100003;
  float *x = check_alloc_f32(n), *y = check_alloc_f32(n);
  uint16_t *hi = words(n), *lo = words(n), *half = words(n);
  int split = 1, nearest = 1, even = 1, wide = 1;
  for (int64_t i = 0; i < n; i++) {
    uint32_t u = i < count ? ends[i] : (uint32_t)check_below(0x100000000);
    if (i >= count && i % 3 == 0)
      u = (u & 0xffff0000u) | 0x8000u; /* a tie */
    x[i] = from_bits(u);
  }
  ops->split(x, hi, lo, n);
  ops->join(hi, lo, y, n);
  check_bytes(y, x, (size_t)n * 4, "split, join %s: exact", set);
  for (int64_t i = 0; i < n; i++) {
    uint32_t u = bits_of(x[i]);
    split &= hi[i] == (uint16_t)((u + 0x8000u) >> 16) && lo[i] == (uint16_t)u;
    if (isfinite(x[i]) && fabsf(x[i]) < 0x1.fep127f && fabsf(x[i]) > 1e-37f) {
      float h = msk_bf16_to_f32(hi[i]), truncated = from_bits(u & 0xffff0000u);
      nearest &= fabs((double)h - x[i]) <= fabs((double)x[i] * 0x1p-8);
      nearest &= (u & 0xffffu) != 0x8000u || fabsf(h) > fabsf(truncated);
    }
  }
  check_ok(split, "split %s: hi and lo as defined", set);
  check_ok(nearest, "split %s: hi is the nearest bfloat16, ties away from zero", set);
  ops->f32_to_bf16(x, half, n);
  ops->bf16_to_f32(half, y, n);
  for (int64_t i = 0; i < n; i++) {
    even &= half[i] == msk_f32_to_bf16(x[i]) && isnan(x[i]) == isnan(y[i]);
    wide &= bits_of(y[i]) == (uint32_t)half[i] << 16;
  }
  check_ok(even, "f32_to_bf16 %s: nearest, ties to even, NaN stays NaN", set);
  check_ok(wide, "bf16_to_f32 %s: exact", set);
  for (int tail = 0; tail < 40; tail++) { /* the harness's guards see a store past the end */
    float *a = check_alloc_f32(tail);
    uint16_t *b = words(tail), *c = words(tail);
    ops->split(x, b, c, tail);
    ops->join(b, c, a, tail);
    split &= !memcmp(a, x, (size_t)tail * 4);
    ops->f32_to_bf16(x, b, tail);
    split &= !memcmp(b, half, (size_t)tail * 2);
    ops->bf16_to_f32(b, a, tail);
    split &= !memcmp(a, y, (size_t)tail * 4);
  }
  check_ok(split, "conversions %s: short arrays", set);
  check_free_all();
}

struct bench {
  const struct msk_adamw_ops *ops;
  struct msk_adamw p;
  float *g, *w, *m, *v;
  uint16_t *half, *hi, *lo;
  int64_t n;
};

static void bench_f32(void *d) {
  struct bench *k = d;
  k->ops->step_f32(&k->p, k->g, k->w, k->m, k->v, k->n);
}

static void bench_split_f32(void *d) {
  struct bench *k = d;
  k->ops->step_split(&k->p, k->g, MSK_F32, k->hi, k->lo, k->m, k->v, k->n);
}

static void bench_split_bf16(void *d) {
  struct bench *k = d;
  k->ops->step_split(&k->p, k->half, MSK_BF16, k->hi, k->lo, k->m, k->v, k->n);
}

/* The access pattern of a split step without its arithmetic: gradient read, hi, lo and moments read and
 * written. */
static void bench_touch(void *d) {
  struct bench *k = d;
  uint32_t *hi = (uint32_t *)k->hi, *lo = (uint32_t *)k->lo, *m = (uint32_t *)k->m, *v = (uint32_t *)k->v;
  const uint32_t *g = (const uint32_t *)k->g;
  for (int64_t i = 0; i < k->n; i += 32) {
    for (int j = 0; j < 16; j++) {
      hi[i / 2 + j] ^= 1;
      lo[i / 2 + j] ^= 1;
    }
    for (int j = 0; j < 32; j++) {
      m[i + j] ^= g[i + j] & 1;
      v[i + j] ^= g[i + j] & 1;
    }
  }
}

static void bench_split(void *d) {
  struct bench *k = d;
  k->ops->split(k->w, k->hi, k->lo, k->n);
}

static void bench_join(void *d) {
  struct bench *k = d;
  k->ops->join(k->hi, k->lo, k->w, k->n);
}

static void bench_narrow(void *d) {
  struct bench *k = d;
  k->ops->f32_to_bf16(k->w, k->half, k->n);
}

static void bench_widen(void *d) {
  struct bench *k = d;
  k->ops->bf16_to_f32(k->half, k->w, k->n);
}

static void bench_set(const struct msk_adamw_ops *ops, const char *set) {
  static const struct {
    const char *name;
    void (*run)(void *);
    double bytes;
  } runs[] = {{"no arithmetic", bench_touch, 28},
              {"step_f32", bench_f32, 28},
              {"step_split f32", bench_split_f32, 28},
              {"step_split bf16", bench_split_bf16, 26},
              {"split", bench_split, 8},
              {"join", bench_join, 8},
              {"f32_to_bf16", bench_narrow, 6},
              {"bf16_to_f32", bench_widen, 6}};
  struct bench k = {.ops = ops, .p = params_at(3), .n = 8 << 20};
  k.p.lr = 0;
  k.g = check_alloc_f32(k.n);
  k.w = check_alloc_f32(k.n);
  k.m = check_alloc_f32(k.n);
  k.v = check_alloc_f32(k.n);
  k.half = words(k.n);
  k.hi = words(k.n);
  k.lo = words(k.n);
  for (int64_t i = 0; i < k.n; i++) {
    k.g[i] = k.m[i] = (float)(i % 1000) * 1e-3f;
    k.w[i] = k.v[i] = 0.5f;
  }
  check_to_bf16(k.g, k.half, k.n);
  ops->split(k.w, k.hi, k.lo, k.n);
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s %s [%d]", runs[i].name, set, (int)k.n);
    check_bench(name, check_time(runs[i].run, &k), 0, runs[i].bytes * (double)k.n);
  }
  check_free_all();
}

int main(int argc, char **argv) {
  static const int64_t sizes[] = {1, 15, 16, 47, 1000, 30011};
  unsigned sets[8];
  int count;
  check_begin(argc, argv);
  count = check_sets(sets);
  for (int s = 0; s < count; s++) {
    const char *set = check_set_name(sets[s]);
    struct msk_adamw_ops ops;
    if (sets[s] & MSK_CPU_AVX512BF16) /* no slots of its own */
      break;
    msk_adamw_init(&ops, sets[s]);
    check_ok(!strcmp(ops.name, set), "table %s", set);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      test_steps(&ops, set, sizes[i]);
    test_conversions(&ops, set);
    if (check_bench_wanted())
      bench_set(&ops, set);
  }
  return check_end();
}
