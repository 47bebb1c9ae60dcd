/* Matrix products of every instruction set against sums in double, split against whole, and their speed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "msk-cpu.h"
#include "msk-product.h"

/* What one product uses. Zero is the plain one: A [m,k] and B [n,k] float32, C float32. */
struct trial {
  int64_t m, n, k;
  int a_transposed, a_bf16, b_transposed, b_bf16, c_bf16;
  int64_t taps, b_taps;
  int bias, pre, gate, residual, in_place, accumulate;
  enum msk_act act;
};

struct operand {
  void *data; /* float32 or bfloat16 */
  enum msk_type type;
  int64_t ld;
};

static int64_t tap_rows[27];

static struct operand operand_new(int64_t rows, int64_t columns, int bf16, double scale) {
  struct operand x = {.type = bf16 ? MSK_BF16 : MSK_F32, .ld = columns + check_below(3) * 5};
  float *values = check_alloc_f32(rows * x.ld);
  check_fill(values, rows * x.ld, scale);
  x.data = values;
  if (bf16) {
    x.data = check_alloc((size_t)(rows * x.ld) * 2);
    check_to_bf16(values, x.data, rows * x.ld);
  }
  return x;
}

static double value(const void *x, enum msk_type type, int64_t i) {
  return type == MSK_F32 ? (double)((const float *)x)[i] : (double)msk_bf16_to_f32(((const uint16_t *)x)[i]);
}

static double rounded(const void *x, enum msk_type type, int64_t i, enum msk_precision precision) {
  double v = value(x, type, i);
  return precision == MSK_PRECISION_F32 ? v : (double)msk_bf16_to_f32(msk_f32_to_bf16((float)v));
}

/* [m,k] and [n,k] in double, written out by the definitions in msk-product.h. */
static double *dense_a(const struct msk_product *p, enum msk_precision precision) {
  double *a = check_alloc((size_t)(p->m * p->k) * sizeof *a);
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t l = 0; l < p->k; l++) {
      int64_t at = p->a_transposed ? l * p->a_ld + i : i * p->a_ld + l;
      if (p->taps > 1)
        at = (i + p->tap_rows[l / (p->k / p->taps)]) * p->a_ld + l % (p->k / p->taps);
      a[i * p->k + l] = rounded(p->a, p->a_type, at, precision);
    }
  return a;
}

static double *dense_b(const struct msk_pack *p, enum msk_precision precision) {
  double *b = check_alloc((size_t)(p->n * p->k) * sizeof *b);
  for (int64_t j = 0; j < p->n; j++)
    for (int64_t l = 0; l < p->k; l++) {
      int64_t at = p->transposed ? l * p->ld + j : j * p->ld + l;
      if (p->taps > 1)
        at = (l + p->tap_rows[j / (p->n / p->taps)]) * p->ld + j % (p->n / p->taps);
      b[j * p->k + l] = rounded(p->src, p->type, at, precision);
    }
  return b;
}

static double activated(enum msk_act act, double x) {
  if (act == MSK_ACT_GELU_TANH)
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
  return act == MSK_ACT_SILU ? x / (1 + exp(-x)) : x;
}

static void expect(const struct msk_product *p, const double *a, const double *b, const float *old_c,
                   const float *residual, double *pre, double *c) {
  for (int64_t i = 0; i < p->m; i++)
    for (int64_t j = 0; j < p->n; j++) {
      double r = 0;
      for (int64_t l = 0; l < p->k; l++)
        r += a[i * p->k + l] * b[j * p->k + l];
      if (p->bias)
        r += (double)p->bias[j];
      pre[i * p->n + j] = r;
      r = activated(p->act, r);
      if (p->gate)
        r *= (double)p->gate[i / p->gate_rows * p->gate_ld + j];
      if (residual)
        r += (double)residual[i * p->residual_ld + j];
      c[i * p->n + j] = r + (p->accumulate ? (double)old_c[i * p->c_ld + j] : 0);
    }
}

/* The [m,n] values of an output, and whether what lies between its rows is as it was. */
static float *collect(const void *x, enum msk_type type, int64_t ld, const void *before, int64_t m, int64_t n,
                      int *untouched) {
  float *out = check_alloc_f32(m * n);
  size_t size = msk_type_size(type);
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < n; j++)
      out[i * n + j] = (float)value(x, type, i * ld + j);
    *untouched &= !memcmp((const char *)x + (size_t)(i * ld + n) * size,
                          (const char *)before + (size_t)(i * ld + n) * size, (size_t)(ld - n) * size);
  }
  return out;
}

/* Runs the product in random ranges, in a random order of rows and columns. */
static void run_split(const struct msk_product_ops *ops, const struct msk_product *p, void *scratch) {
  int64_t m_step = ops->m_step * (1 + check_below(3)), n_step = ops->n_step * (1 + check_below(3));
  int64_t m_pieces = (p->m + m_step - 1) / m_step, n_pieces = (p->n + n_step - 1) / n_step;
  for (int64_t t = m_pieces * n_pieces - 1; t >= 0; t--) {
    int64_t m0 = t % m_pieces * m_step, n0 = t / m_pieces * n_step;
    ops->run(p, m0, m0 + m_step < p->m ? m0 + m_step : p->m, n0, n0 + n_step < p->n ? n0 + n_step : p->n,
             scratch);
  }
}

static const char *describe(const struct trial *t, char text[200]) {
  static const char *const acts[] = {"", " gelu", " silu"};
  snprintf(text, 200, "%dx%dx%d%s%s%s%s%s%s%s%s%s%s%s%s%s", (int)t->m, (int)t->n, (int)t->k,
           t->a_transposed ? " a^T" : "", t->a_bf16 ? " a16" : "", t->b_transposed ? " b^T" : "",
           t->b_bf16 ? " b16" : "", t->c_bf16 ? " c16" : "", t->taps > 1 ? " taps" : "",
           t->b_taps > 1 ? " b-taps" : "", t->bias ? " bias" : "", t->pre ? " pre" : "", acts[t->act],
           t->gate ? " gate" : "", t->residual ? t->in_place ? " residual=c" : " residual" : "",
           t->accumulate ? " accumulate" : "");
  return text;
}

static void check_trial(const struct msk_product_ops *ops, const char *set, const struct trial *t) {
  char text[200];
  enum msk_precision precision = ops->precision;
  const char *name = precision == MSK_PRECISION_F32 ? "f32" : "bf16";
  int64_t reach = 40, k_tap = t->k / (t->taps > 1 ? t->taps : 1),
          n_tap = t->n / (t->b_taps > 1 ? t->b_taps : 1);
  for (int i = 0; i < 27; i++)
    tap_rows[i] = check_below(2 * reach) - reach;
  struct operand a = t->a_transposed ? operand_new(t->k, t->m, t->a_bf16, 1)
                                     : operand_new(t->m + (t->taps > 1 ? 2 * reach : 0), k_tap, t->a_bf16, 1);
  struct operand b = t->b_transposed
                         ? operand_new(t->k + (t->b_taps > 1 ? 2 * reach : 0), n_tap, t->b_bf16, 1)
                         : operand_new(t->n, t->k, t->b_bf16, 1);
  struct msk_pack pack = {
      .n = t->n, .k = t->k, .src = b.data, .type = b.type, .ld = b.ld, .transposed = t->b_transposed};
  if (t->b_taps > 1) {
    pack.taps = t->b_taps;
    pack.tap_rows = tap_rows;
    pack.src = (char *)b.data + (size_t)(reach * b.ld) * msk_type_size(b.type);
  }
  size_t packed_bytes = ops->pack_b_bytes(t->n, t->k);
  void *packed = check_alloc(packed_bytes), *packed_split = check_alloc(packed_bytes);
  ops->pack_b(&pack, 0, t->n, packed);
  for (int64_t n0 = 0; n0 < t->n; n0 += 2 * ops->n_step)
    ops->pack_b(&pack, n0, n0 + 2 * ops->n_step < t->n ? n0 + 2 * ops->n_step : t->n, packed_split);

  struct msk_product p = {.m = t->m,
                          .n = t->n,
                          .k = t->k,
                          .a = a.data,
                          .a_type = a.type,
                          .a_ld = a.ld,
                          .a_transposed = t->a_transposed,
                          .b = packed,
                          .act = t->act,
                          .accumulate = t->accumulate};
  if (t->taps > 1) {
    p.taps = t->taps;
    p.tap_rows = tap_rows;
    p.a = (char *)a.data + (size_t)(reach * a.ld) * msk_type_size(a.type);
  }
  struct operand c = operand_new(t->m, t->n, t->c_bf16, 1), before = c, pre = c, pre_before = c, residual = c;
  size_t c_bytes = (size_t)(t->m * c.ld) * msk_type_size(c.type);
  before.data = check_alloc(c_bytes);
  memcpy(before.data, c.data, c_bytes);
  p.c = c.data;
  p.c_type = c.type;
  p.c_ld = c.ld;
  if (t->bias) {
    float *bias = check_alloc_f32(t->n);
    check_fill(bias, t->n, 1);
    p.bias = bias;
  }
  if (t->pre) {
    pre = operand_new(t->m, t->n, t->pre == 2, 1);
    pre_before = pre;
    pre_before.data = check_alloc((size_t)(t->m * pre.ld) * msk_type_size(pre.type));
    memcpy(pre_before.data, pre.data, (size_t)(t->m * pre.ld) * msk_type_size(pre.type));
    p.pre = pre.data;
    p.pre_type = pre.type;
    p.pre_ld = pre.ld;
  }
  if (t->gate) {
    p.gate_rows = 1 + check_below(t->m + 3);
    struct operand gate = operand_new((t->m - 1) / p.gate_rows + 1, t->n, 0, 1);
    p.gate = gate.data;
    p.gate_ld = gate.ld;
  }
  if (t->residual) {
    residual = t->in_place ? c : operand_new(t->m, t->n, 0, 1);
    p.residual = residual.data;
    p.residual_ld = residual.ld;
  }
  double *want = check_alloc((size_t)(t->m * t->n) * 8), *want_pre = check_alloc((size_t)(t->m * t->n) * 8);
  expect(&p, dense_a(&p, precision), dense_b(&pack, precision), before.data,
         t->residual ? t->in_place ? before.data : residual.data : NULL, want_pre, want);

  void *scratch = check_alloc(ops->scratch_bytes(&p)), *split = check_alloc(c_bytes);
  int untouched = 1;
  run_split(ops, &p, scratch);
  memcpy(split, c.data, c_bytes);
  memcpy(c.data, before.data, c_bytes);
  p.b = packed_split;
  ops->run(&p, 0, t->m, 0, t->n, scratch);
  float *got = collect(c.data, c.type, c.ld, before.data, t->m, t->n, &untouched);
  check_relative_l2(got, want, t->m * t->n, t->c_bf16 ? 5e-3 : 2e-6, "%s %s %s", name, set,
                    describe(t, text));
  check_bytes(split, c.data, c_bytes, "%s %s %s split", name, set, text);
  if (t->pre) {
    got = collect(pre.data, pre.type, pre.ld, pre_before.data, t->m, t->n, &untouched);
    check_relative_l2(got, want_pre, t->m * t->n, t->pre == 2 ? 5e-3 : 2e-6, "%s %s %s: pre", name, set,
                      text);
  }
  check_ok(untouched, "%s %s %s: nothing written between rows", name, set, text);
  check_free_all();
}

static const int64_t odd[] = {1, 3, 17, 33, 100, 257};

static int coin(void) {
  return (int)check_below(2);
}

static void check_set(const struct msk_product_ops *ops, const char *set) {
  for (int i = 0; i < 6; i++) /* sizes, plainly */
    for (int j = 0; j < 6; j++) {
      struct trial t = {.m = odd[i], .n = odd[j], .k = odd[(i + 2 * j) % 6]};
      check_trial(ops, set, &t);
    }
  static const struct trial features[] = {
      {.m = 100, .n = 100, .k = 257, .a_transposed = 1},
      {.m = 257, .n = 33, .k = 100, .a_transposed = 1, .a_bf16 = 1},
      {.m = 33, .n = 100, .k = 257, .b_transposed = 1},
      {.m = 17, .n = 257, .k = 33, .b_transposed = 1, .b_bf16 = 1},
      {.m = 100, .n = 33, .k = 17, .a_bf16 = 1, .b_bf16 = 1},
      {.m = 64, .n = 96, .k = 200, .a_transposed = 1, .b_transposed = 1, .accumulate = 1},
      {.m = 300, .n = 48, .k = 9 * 32, .taps = 9, .bias = 1},
      {.m = 300, .n = 20, .k = 9 * 16, .taps = 9, .a_bf16 = 1},
      {.m = 129, .n = 20, .k = 27 * 3, .taps = 27, .residual = 1},
      {.m = 65, .n = 40, .k = 3 * 47, .taps = 3, .a_bf16 = 1, .accumulate = 1},
      {.m = 48, .n = 9 * 32, .k = 300, .a_transposed = 1, .b_transposed = 1, .b_taps = 9, .accumulate = 1},
      {.m = 20, .n = 9 * 20, .k = 129, .a_transposed = 1, .b_transposed = 1, .b_taps = 9, .b_bf16 = 1},
      {.m = 16, .n = 27 * 3, .k = 65, .b_transposed = 1, .b_taps = 27},
      {.m = 100, .n = 100, .k = 33, .bias = 1, .pre = 1, .act = MSK_ACT_GELU_TANH},
      {.m = 33, .n = 257, .k = 100, .bias = 1, .pre = 2, .act = MSK_ACT_GELU_TANH, .c_bf16 = 1},
      {.m = 33, .n = 35, .k = 100, .pre = 2, .act = MSK_ACT_SILU},
      {.m = 257, .n = 100, .k = 33, .bias = 1, .gate = 1, .residual = 1},
      {.m = 100, .n = 17, .k = 100, .bias = 1, .gate = 1, .residual = 1, .in_place = 1},
      {.m = 31,
       .n = 65,
       .k = 31,
       .bias = 1,
       .pre = 1,
       .act = MSK_ACT_SILU,
       .gate = 1,
       .residual = 1,
       .accumulate = 1},
      {.m = 70, .n = 64, .k = 4000},
      {.m = 600, .n = 70, .k = 150, .a_transposed = 1, .accumulate = 1},
      {.m = 130, .n = 300, .k = 96, .residual = 1},
      {.m = 100, .n = 200, .k = 129, .a_transposed = 1, .a_bf16 = 1},
      {.m = 90, .n = 150, .k = 9 * 16, .taps = 9, .bias = 1},
      {.m = 100, .n = 30, .k = 300, .a_transposed = 1},
      {.m = 40, .n = 16, .k = 320},
      {.m = 300,
       .n = 600,
       .k = 2100,
       .bias = 1,
       .act = MSK_ACT_GELU_TANH,
       .gate = 1,
       .residual = 1,
       .in_place = 1},
      {.m = 3, .n = 5, .k = 0, .bias = 1},
  };
  for (size_t i = 0; i < sizeof features / sizeof *features; i++)
    check_trial(ops, set, &features[i]);
  for (int i = 0; i < 24; i++) { /* everything with everything */
    struct trial t = {.m = 1 + check_below(140),
                      .n = 1 + check_below(140),
                      .k = 1 + check_below(300),
                      .a_bf16 = coin(),
                      .b_bf16 = coin(),
                      .c_bf16 = coin(),
                      .bias = coin(),
                      .pre = (int)check_below(3),
                      .gate = coin(),
                      .residual = coin(),
                      .act = (enum msk_act)check_below(3),
                      .b_transposed = coin()};
    if (coin())
      t.k *= t.taps = 1 + check_below(9);
    else
      t.a_transposed = coin();
    if (t.b_transposed && coin())
      t.n = (1 + t.n / 5) * (t.b_taps = 5);
    t.in_place = t.residual && !t.c_bf16 && coin();
    t.accumulate = !t.c_bf16 && coin();
    check_trial(ops, set, &t);
  }
}

/* Large and non-finite sums must leave the activations as in the definition. */
static void check_extremes(const struct msk_product_ops *ops, const char *set) {
  static const float bias[] = {0,   -0.0f, 1e-30f, 3,    -3,    9,        -9,  20,
                               -20, 100,   -100,   1e8f, -1e8f, INFINITY, NAN, 0.5f};
  float a[16] = {0}, c[16];
  double worst = 0;
  int special = 1;
  void *packed = check_alloc(ops->pack_b_bytes(16, 1));
  struct msk_pack pack = {.n = 16, .k = 1, .src = a, .type = MSK_F32, .ld = 1};
  struct msk_product p = {.m = 1,
                          .n = 16,
                          .k = 1,
                          .a = a,
                          .a_type = MSK_F32,
                          .a_ld = 1,
                          .b = packed,
                          .c = c,
                          .c_type = MSK_F32,
                          .c_ld = 16,
                          .bias = bias};
  ops->pack_b(&pack, 0, 16, packed);
  void *scratch = check_alloc(ops->scratch_bytes(&p));
  for (p.act = MSK_ACT_GELU_TANH; p.act <= MSK_ACT_SILU; p.act++) {
    ops->run(&p, 0, 1, 0, 16, scratch);
    for (int j = 0; j < 16; j++) {
      double want = activated(p.act, (double)bias[j]);
      if (isfinite(want))
        worst = fmax(worst, fabs((double)c[j] - want) / fmax(fabs((double)bias[j]), 1e-30));
      else
        special &= isnan(want) ? isnan(c[j]) : c[j] == (float)want;
    }
  }
  check_ok(worst < 4e-7, "%s %s activations of extreme sums: error %.1e of x",
           ops->precision ? "bf16" : "f32", set, worst);
  check_ok(special, "%s %s activations of infinity and NaN", ops->precision ? "bf16" : "f32", set);
  check_free_all();
}

/* ---- speed ---- */

struct timing {
  const struct msk_product_ops *ops;
  struct msk_product p;
  struct msk_pack pack;
  void *packed, *scratch;
  int64_t rows;
};

/* As the engine calls it: `rows` of A at a time. */
static void time_run(void *data) {
  struct timing *t = data;
  for (int64_t m0 = 0; m0 < t->p.m; m0 += t->rows)
    t->ops->run(&t->p, m0, m0 + t->rows < t->p.m ? m0 + t->rows : t->p.m, 0, t->p.n, t->scratch);
}

static void time_pack(void *data) {
  struct timing *t = data;
  t->ops->pack_b(&t->pack, 0, t->pack.n, t->packed);
}

static void bench_trial(const struct msk_product_ops *ops, const char *set, const struct trial *t) {
  char text[200], label[300];
  const char *name = ops->precision == MSK_PRECISION_F32 ? "f32" : "bf16";
  int64_t k_tap = t->k / (t->taps > 1 ? t->taps : 1);
  struct operand a = t->a_transposed ? operand_new(t->k, t->m, t->a_bf16, 1)
                                     : operand_new(t->m + (t->taps > 1 ? 200 : 0), k_tap, t->a_bf16, 1);
  struct operand b =
      t->b_transposed ? operand_new(t->k, t->n, t->b_bf16, 1) : operand_new(t->n, t->k, t->b_bf16, 1);
  struct operand c = operand_new(t->m, t->n, t->c_bf16, 1), pre = operand_new(t->m, t->n, t->pre == 2, 1);
  struct operand residual = operand_new(t->m, t->n, 0, 1);
  float *vector = check_alloc_f32(t->n);
  check_fill(vector, t->n, 1);
  for (int i = 0; i < 9; i++)
    tap_rows[i] = i / 3 * 66 + i % 3;
  struct timing timing = {.ops = ops, .rows = (256 + ops->m_step - 1) / ops->m_step * ops->m_step};
  timing.pack = (struct msk_pack){
      .n = t->n, .k = t->k, .src = b.data, .type = b.type, .ld = b.ld, .transposed = t->b_transposed};
  timing.packed = check_alloc(ops->pack_b_bytes(t->n, t->k));
  timing.p = (struct msk_product){.m = t->m,
                                  .n = t->n,
                                  .k = t->k,
                                  .a = a.data,
                                  .a_type = a.type,
                                  .a_ld = a.ld,
                                  .a_transposed = t->a_transposed,
                                  .taps = t->taps,
                                  .tap_rows = tap_rows,
                                  .b = timing.packed,
                                  .c = c.data,
                                  .c_type = c.type,
                                  .c_ld = c.ld,
                                  .act = t->act,
                                  .bias = t->bias ? vector : NULL,
                                  .pre = t->pre ? pre.data : NULL,
                                  .pre_type = pre.type,
                                  .pre_ld = pre.ld,
                                  .gate = t->gate ? vector : NULL,
                                  .gate_ld = t->n,
                                  .gate_rows = t->m,
                                  .residual = t->residual ? residual.data : NULL,
                                  .residual_ld = residual.ld,
                                  .accumulate = t->accumulate};
  timing.scratch = check_alloc(ops->scratch_bytes(&timing.p));
  snprintf(label, sizeof label, "%s %s %s", name, set, describe(t, text));
  double seconds = check_time(time_pack, &timing);
  double packed = (double)t->n * (double)t->k;
  snprintf(label, sizeof label, "%s %s pack of %s", name, set, text);
  check_bench(label, seconds, 0, packed * (double)(msk_type_size(b.type) + (ops->precision ? 2 : 4)));
  snprintf(label, sizeof label, "%s %s %s", name, set, text);
  seconds = check_time(time_run, &timing);
  check_bench(label, seconds, 2.0 * (double)t->m * packed, 0);
  check_free_all();
}

static void bench_set(const struct msk_product_ops *ops, const char *set) {
  static const struct trial shapes[] = {
      {.m = 2048, .n = 256, .k = 256, .bias = 1},
      {.m = 2048, .n = 256, .k = 256, .bias = 1, .gate = 1, .residual = 1, .in_place = 1},
      {.m = 2048, .n = 1024, .k = 256, .bias = 1, .pre = 2, .act = MSK_ACT_GELU_TANH, .c_bf16 = 1},
      {.m = 2048, .n = 256, .k = 1024, .a_bf16 = 1, .bias = 1, .gate = 1, .residual = 1, .in_place = 1},
      {.m = 2048, .n = 768, .k = 768, .bias = 1},
      {.m = 256, .n = 256, .k = 2048, .a_transposed = 1, .b_transposed = 1, .accumulate = 1},
      {.m = 1024, .n = 256, .k = 2048, .a_transposed = 1, .b_transposed = 1, .accumulate = 1},
      {.m = 510, .n = 1536, .k = 1536, .bias = 1},
      {.m = 510, .n = 8960, .k = 1536, .b_bf16 = 1, .bias = 1, .act = MSK_ACT_GELU_TANH, .c_bf16 = 1},
      {.m = 510,
       .n = 1536,
       .k = 8960,
       .a_bf16 = 1,
       .b_bf16 = 1,
       .bias = 1,
       .gate = 1,
       .residual = 1,
       .in_place = 1},
      {.m = 4096, .n = 16, .k = 9 * 16, .taps = 9, .bias = 1},
      {.m = 4096, .n = 64, .k = 9 * 64, .taps = 9, .bias = 1},
      {.m = 4096, .n = 256, .k = 9 * 256, .taps = 9, .bias = 1},
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    bench_trial(ops, set, &shapes[i]);
}

int main(int argc, char **argv) {
  unsigned sets[8];
  int n;
  check_begin(argc, argv);
  n = check_sets(sets);
  for (int i = 0; i < n; i++) {
    struct msk_product_ops ops[2];
    msk_product_init(&ops[MSK_PRECISION_F32], &ops[MSK_PRECISION_BF16], sets[i]);
    for (int precision = 0; precision < 2; precision++) {
      const char *set = check_set_name(sets[i]);
      /* a set that adds nothing to the one below has been seen */
      if (strcmp(ops[precision].name, set))
        continue;
      if (!check_bench_wanted()) {
        check_set(&ops[precision], set);
        check_extremes(&ops[precision], set);
      } else if (sets[i])
        bench_set(&ops[precision], set);
    }
  }
  return check_end();
}
