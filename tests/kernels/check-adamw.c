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

/* The state of a split master with 8-bit moments. */
struct state8 {
  uint16_t *hi, *lo;
  uint8_t *m, *v;
  float *m_scale, *v_scale;
};

static int64_t blocks_of(int64_t n) {
  return (n + MSK_ADAMW_BLOCK - 1) / MSK_ADAMW_BLOCK;
}

static struct state8 state8_of(const struct msk_adamw_ops *ops, const float *w, int64_t n) {
  struct state8 s = {words(n),
                     words(n),
                     check_alloc((size_t)n),
                     check_alloc((size_t)n),
                     check_alloc_f32(blocks_of(n)),
                     check_alloc_f32(blocks_of(n))};
  ops->split(w, s.hi, s.lo, n);
  memset(s.m, 0, (size_t)n);
  memset(s.v, 0, (size_t)n);
  memset(s.m_scale, 0, (size_t)blocks_of(n) * 4);
  memset(s.v_scale, 0, (size_t)blocks_of(n) * 4);
  return s;
}

static void step8(const struct msk_adamw_ops *ops, const struct msk_adamw *p, const void *grad,
                  enum msk_type type, struct state8 *s, int64_t begin, int64_t end, uint32_t seed) {
  ops->step_split8(p, (const char *)grad + begin * (int64_t)msk_type_size(type), type, s->hi + begin,
                   s->lo + begin, s->m + begin, s->v + begin, s->m_scale + begin / MSK_ADAMW_BLOCK,
                   s->v_scale + begin / MSK_ADAMW_BLOCK, begin + 1000, seed, end - begin);
}

static int same8(const struct state8 *a, const struct state8 *b, int64_t n) {
  return !memcmp(a->hi, b->hi, (size_t)n * 2) && !memcmp(a->lo, b->lo, (size_t)n * 2) &&
         !memcmp(a->m, b->m, (size_t)n) && !memcmp(a->v, b->v, (size_t)n) &&
         !memcmp(a->m_scale, b->m_scale, (size_t)blocks_of(n) * 4) &&
         !memcmp(a->v_scale, b->v_scale, (size_t)blocks_of(n) * 4);
}

static float gradient_of(const char *kind, int64_t i) {
  if (!strcmp(kind, "zero"))
    return i % 3 ? 0.0f : -0.0f;
  if (!strcmp(kind, "huge")) /* squares beyond float32 */
    return (float)check_uniform(-3e38, 3e38);
  if (!strcmp(kind, "tiny")) /* squares below float32 */
    return (float)check_uniform(-1e-24, 1e-24);
  if (!strcmp(kind, "denormal"))
    return (float)check_uniform(-1e-38, 1e-38);
  if (!strcmp(kind, "lonely"))
    return i % 300 == 7 ? 1.0f : 0.0f;
  return i % 7 == 0 ? 0 : (float)(check_uniform(-1, 1) * pow(10, check_uniform(-9, 2)));
}

/* What a set makes of a step from the state that it has, against the formulas in double: the moments within
 * the bounds of one rounding; the weights within four roundings of theirs, and 6.2e-5 of the step with the
 * magnitudes of m's terms. For what keeps v from vanishing is the difference of two numbers of 1 / (1 -
 * beta2) its size, 1,000 here: two roundings of 2^-24 become 1.2e-4 of v, half as much of the step. */
static void check_step8(const struct msk_adamw_ops *ops, const struct msk_adamw *p, const float *g,
                        struct state8 *s, uint32_t seed, const char *what, int64_t n) {
  float *m = check_alloc_f32(n), *v = check_alloc_f32(n), *m2 = check_alloc_f32(n), *v2 = check_alloc_f32(n),
        *w = check_alloc_f32(n), *floors = check_alloc_f32(blocks_of(n));
  double *before = check_alloc((size_t)n * 8), w_worst = 0, m_worst = 0, v_worst = 0;
  ops->read_moments8(s->m, s->v, s->m_scale, s->v_scale, m, v, n);
  ops->join(s->hi, s->lo, w, n);
  memcpy(floors, s->v_scale, (size_t)blocks_of(n) * 4);
  for (int64_t i = 0; i < n; i++)
    before[i] = w[i];
  step8(ops, p, g, MSK_F32, s, 0, n, seed);
  ops->join(s->hi, s->lo, w, n);
  ops->read_moments8(s->m, s->v, s->m_scale, s->v_scale, m2, v2, n);
  for (int64_t i = 0; i < n; i++) {
    double d = g[i] * p->grad_scale, m1 = p->beta1 * m[i] + (1 - p->beta1) * d;
    double v1 = p->beta2 * v[i] + (1 - p->beta2) * (d * d + 0x1p-31 * floors[i / MSK_ADAMW_BLOCK]);
    double m_scale = s->m_scale[i / MSK_ADAMW_BLOCK], v_scale = s->v_scale[i / MSK_ADAMW_BLOCK];
    double m_bound = (fabs(m1) + 0x1p-15 * m_scale) / 8, v_bound = (v1 + 0x1p-31 * v_scale) / 8;
    double rate = p->lr / p->correction1 / (sqrt(v1 / p->correction2) + p->eps);
    double w1 = before[i] - p->lr * p->decay * before[i] - rate * m1;
    double terms = rate * (p->beta1 * fabs(m[i]) + (1 - p->beta1) * fabs(d));
    double w_bound = 0x1p-22 * fmax(fabs(w1), fabs(before[i])) + 6.2e-5 * terms;
    if (m_scale == 0)
      m_bound = 0x1p-99;
    if (v_scale == 0)
      v_bound = 0x1p-79;
    w_worst = fmax(w_worst, fabs(w[i] - w1) / w_bound);
    m_worst = fmax(m_worst, fabs(m2[i] - m1) / m_bound);
    v_worst = fmax(v_worst, fabs(v2[i] - v1) / v_bound);
  }
  check_ok(w_worst <= 1, "%s: weights at %.3f of their bound", what, w_worst);
  check_ok(m_worst <= 1 + 1e-5 && v_worst <= 1 + 1e-5, "%s: rounding of m at %.3f of its bound, of v at %.3f",
           what, m_worst, v_worst);
}

/* Bit for bit the reference, in one range or two, after any history. */
static void test_steps8(const struct msk_adamw_ops *ops, const char *set, int64_t n) {
  static const char *const kinds[] = {"wide", "zero", "huge", "tiny", "denormal", "lonely"};
  struct msk_adamw_ops c;
  msk_adamw_init(&c, 0);
  for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
    float *g = check_alloc_f32(n), *w = check_alloc_f32(n);
    uint16_t *half = words(n);
    int64_t cut = n / 3 / MSK_ADAMW_BLOCK * MSK_ADAMW_BLOCK;
    struct state8 s, parts, want;
    int same = 1;
    char what[96];
    check_fill(w, n, 0.05);
    s = state8_of(ops, w, n);
    parts = state8_of(ops, w, n);
    want = state8_of(ops, w, n);
    for (int step = 1; step <= 6; step++) {
      struct msk_adamw p = params_at(step);
      uint32_t seed = (uint32_t)check_below(0x100000000);
      enum msk_type type = step % 2 ? MSK_F32 : MSK_BF16;
      for (int64_t i = 0; i < n; i++) /* two steps without, so that both what begins and what fades is seen */
        g[i] = step < 3 || step == 5 ? gradient_of(kinds[kind], i) : 0;
      if (step == 6)
        for (int64_t i = 0; i < n; i++)
          g[i] = gradient_of("wide", i);
      check_to_bf16(g, half, n);
      step8(&c, &p, type == MSK_F32 ? (const void *)g : half, type, &want, 0, n, seed);
      step8(ops, &p, type == MSK_F32 ? (const void *)g : half, type, &s, 0, n, seed);
      step8(ops, &p, type == MSK_F32 ? (const void *)g : half, type, &parts, cut, n, seed);
      step8(ops, &p, type == MSK_F32 ? (const void *)g : half, type, &parts, 0, cut, seed);
      same &= same8(&s, &want, n) && same8(&parts, &want, n);
    }
    check_ok(same, "step_split8 %s [%d] %s gradients: the reference's bits, whole and in two ranges", set,
             (int)n, kinds[kind]);
    if (strcmp(kinds[kind], "huge")) {
      struct msk_adamw p = params_at(7);
      for (int64_t i = 0; i < n; i++)
        g[i] = gradient_of(kinds[kind], i);
      snprintf(what, sizeof what, "step_split8 %s [%d] %s gradients", set, (int)n, kinds[kind]);
      check_step8(ops, &p, g, &s, 5, what, n);
    }
    check_free_all();
  }
}

/* Zero stays zero, a value beyond float32 leaves finite moments, and what is finite stays so. */
static void test_ends8(const struct msk_adamw_ops *ops, const char *set) {
  int64_t n = 1000;
  float *g = check_alloc_f32(n), *w = check_alloc_f32(n), *m = check_alloc_f32(n), *v = check_alloc_f32(n);
  struct state8 s;
  struct msk_adamw p = params_at(2);
  int zero = 1, finite = 1;
  p.decay = 0;
  check_fill(w, n, 0.05);
  s = state8_of(ops, w, n);
  for (int64_t i = 0; i < n; i++)
    g[i] = i == 300 || i == 999 ? 1e3f : 0;
  for (int step = 0; step < 20; step++)
    step8(ops, &p, g, MSK_F32, &s, 0, n, (uint32_t)step);
  ops->read_moments8(s.m, s.v, s.m_scale, s.v_scale, m, v, n);
  ops->join(s.hi, s.lo, g, n);
  for (int64_t i = 0; i < n; i++)
    if (i != 300 && i != 999) /* v is no more than what keeps it from vanishing */
      zero &= m[i] == 0 && v[i] <= 3e-10 * 1e6 && g[i] == w[i];
  check_ok(zero && m[300] > 0 && m[999] > 0, "step_split8 %s: without a gradient moments and weights stay",
           set);
  for (int64_t i = 0; i < n; i++)
    g[i] = i % 2 ? 3.4e38f : 1e-3f;
  for (int step = 0; step < 5; step++)
    step8(ops, &p, g, MSK_F32, &s, 0, n, (uint32_t)step);
  ops->read_moments8(s.m, s.v, s.m_scale, s.v_scale, m, v, n);
  ops->join(s.hi, s.lo, w, n);
  for (int64_t i = 0; i < n; i++)
    finite &= isfinite(m[i]) && isfinite(v[i]) && isfinite(w[i]);
  check_ok(finite, "step_split8 %s: the largest gradients leave finite moments", set);
  check_free_all();
}

/* The mean over many seeds is the value: within 5 standard deviations of the mean of a rounding whose
 * deviation is at most half a step. Neighbours round independently: so do the means of their products. */
static void test_mean8(const struct msk_adamw_ops *ops, const char *set) {
  enum { N = 300, SEEDS = 4096 };
  float *g = check_alloc_f32(N), *w = check_alloc_f32(N), *m = check_alloc_f32(N), *v = check_alloc_f32(N);
  double m_sum[N] = {0}, v_sum[N] = {0}, pairs[16] = {0}, m_worst = 0, v_worst = 0, pair_worst = 0;
  struct msk_adamw p = params_at(2);
  p.grad_scale = 1;
  for (int i = 0; i < N; i++) {
    g[i] = i == 17 || i == 270 ? 1.0f : (float)(pow(10, check_uniform(-3, -0.1)));
    w[i] = 0;
  }
  for (int seed = 0; seed < SEEDS; seed++) {
    struct state8 s = state8_of(ops, w, N);
    step8(ops, &p, g, MSK_F32, &s, 0, N, (uint32_t)seed);
    ops->read_moments8(s.m, s.v, s.m_scale, s.v_scale, m, v, N);
    for (int i = 0; i < N; i++) {
      m_sum[i] += m[i];
      v_sum[i] += v[i];
    }
    for (int d = 1; d < 16; d++) {
      double unit = 1.0 / 16 * (1 - p.beta1); /* half a step, relative */
      pairs[d] += (m[100] / g[100] - (1 - p.beta1)) / unit * (m[100 + d] / g[100 + d] - (1 - p.beta1)) / unit;
    }
  }
  for (int i = 0; i < N; i++) {
    double m1 = (1 - p.beta1) * g[i], v1 = (1 - p.beta2) * g[i] * g[i], deviations = 5 / sqrt(SEEDS);
    m_worst = fmax(m_worst, fabs(m_sum[i] / SEEDS - m1) / (m1 / 16 * deviations));
    v_worst = fmax(v_worst, fabs(v_sum[i] / SEEDS - v1) / (v1 / 16 * deviations));
  }
  for (int d = 1; d < 16; d++)
    pair_worst = fmax(pair_worst, fabs(pairs[d]) / SEEDS / (5 / sqrt(SEEDS)));
  check_ok(m_worst <= 1 && v_worst <= 1,
           "step_split8 %s: mean over seeds, m at %.2f and v at %.2f of the bound", set, m_worst, v_worst);
  check_ok(pair_worst <= 1, "step_split8 %s: roundings of neighbours are independent, %.2f of the bound", set,
           pair_worst);
  check_free_all();
}

/* v falls with its gradients although a step of beta2 = 0.999 is a hundredth of a code's: to nearest it would
 * stay. While it falls its variance, relative to its square, grows by less than 0.125 times 0.001 a step: in
 * 3,500 steps to a deviation of two thirds, of the mean of 249 elements 4.2 %; five of these. */
static void test_falling8(const struct msk_adamw_ops *ops, const char *set) {
  enum { N = 250 };
  float *g = check_alloc_f32(N), *w = check_alloc_f32(N), *m = check_alloc_f32(N), *v = check_alloc_f32(N);
  struct msk_adamw p = params_at(1);
  double want = 0, sum = 0;
  struct state8 s;
  memset(w, 0, N * sizeof *w);
  s = state8_of(ops, w, N);
  for (int step = 0; step < 4000; step++) {
    double next = step < 500 ? 1 : 0.05;
    for (int i = 0; i < N; i++)
      g[i] = i ? (float)next : 1; /* the first keeps the scale */
    want = p.beta2 * want + (1 - p.beta2) * next * next;
    step8(ops, &p, g, MSK_F32, &s, 0, N, (uint32_t)step);
  }
  ops->read_moments8(s.m, s.v, s.m_scale, s.v_scale, m, v, N);
  for (int i = 1; i < N; i++)
    sum += v[i] / (N - 1);
  check_ok(fabs(sum / want - 1) <= 0.21, "step_split8 %s: a falling v is %.3f of what it should be", set,
           sum / want);
  check_free_all();
}

/* Linear regression in mini-batches, features of very different sizes: the loss above the noise after 1,500
 * steps, with a rate that falls to zero. */
static double fitted(const struct msk_adamw_ops *ops, int bits, double beta2, uint64_t start) {
  enum { D = 600, BATCH = 32, STEPS = 1500 };
  float *w = check_alloc_f32(D), *g = check_alloc_f32(D), *m = check_alloc_f32(D), *v = check_alloc_f32(D);
  double truth[D], size[D], excess = 0;
  uint64_t random = start;
  struct state8 s;
  for (int i = 0; i < D; i++) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    truth[i] = (double)(random >> 40) * 0x1p-23 - 1;
    size[i] = pow(10, -2.0 * i / D);
    w[i] = m[i] = v[i] = 0;
  }
  s = state8_of(ops, w, D);
  for (int step = 1; step <= STEPS; step++) {
    struct msk_adamw p = {.lr = 0.02 * (1 - (double)(step - 1) / STEPS),
                          .beta1 = 0.9,
                          .beta2 = beta2,
                          .eps = 1e-8,
                          .correction1 = 1 - pow(0.9, step),
                          .correction2 = 1 - pow(beta2, step),
                          .grad_scale = 1.0 / BATCH};
    memset(g, 0, D * sizeof *g);
    ops->join(s.hi, s.lo, w, D);
    for (int b = 0; b < BATCH; b++) {
      double x[D], error = 0;
      for (int i = 0; i < D; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        x[i] = size[i] * ((double)(random >> 40) * 0x1p-23 - 1);
        error += x[i] * (w[i] - truth[i]);
      }
      error += (double)(random >> 40 & 0xff) / 255 - 0.5; /* noise */
      for (int i = 0; i < D; i++)
        g[i] += (float)(error * x[i]);
    }
    if (bits == 8)
      step8(ops, &p, g, MSK_F32, &s, 0, D, (uint32_t)step);
    else
      ops->step_split(&p, g, MSK_F32, s.hi, s.lo, m, v, D);
  }
  ops->join(s.hi, s.lo, w, D);
  for (int i = 0; i < D; i++)
    excess += size[i] * size[i] / 3 * (w[i] - truth[i]) * (w[i] - truth[i]);
  check_free_all();
  return excess;
}

static void test_convergence8(const struct msk_adamw_ops *ops, const char *set) {
  static const double betas[] = {0.99, 0.999};
  for (int i = 0; i < 2; i++) {
    double full = 0, eight = 0;
    for (uint64_t start = 1; start <= 4; start++) {
      full += fitted(ops, 32, betas[i], start);
      eight += fitted(ops, 8, betas[i], start);
    }
    check_ok(eight <= 1.05 * full,
             "step_split8 %s: a regression with beta2 %.3f ends at %.4f of 32-bit's loss", set, betas[i],
             eight / full);
  }
}

struct bench {
  const struct msk_adamw_ops *ops;
  struct msk_adamw p;
  float *g, *w, *m, *v;
  uint16_t *half, *hi, *lo;
  struct state8 s;
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

static void bench_split8_f32(void *d) {
  struct bench *k = d;
  step8(k->ops, &k->p, k->g, MSK_F32, &k->s, 0, k->n, 1);
}

static void bench_split8_bf16(void *d) {
  struct bench *k = d;
  step8(k->ops, &k->p, k->half, MSK_BF16, &k->s, 0, k->n, 1);
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
              {"step_split8 f32", bench_split8_f32, 16},
              {"step_split8 bf16", bench_split8_bf16, 14},
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
  k.s = state8_of(ops, k.w, k.n);
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
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      test_steps8(&ops, set, sizes[i]);
    test_ends8(&ops, set);
    test_mean8(&ops, set);
    test_falling8(&ops, set);
    test_convergence8(&ops, set);
    test_conversions(&ops, set);
    if (check_bench_wanted())
      bench_set(&ops, set);
  }
  return check_end();
}
