/* Norms, rotary embedding, activations and sums: every set against formulas in double. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "msk-cpu.h"
#include "msk-norm.h"

#define FORWARD 2e-6
#define GRADIENT 1e-5

static double *doubles(int64_t n) {
  double *x = check_alloc((size_t)n * sizeof *x);
  memset(x, 0, (size_t)n * sizeof *x);
  return x;
}

static float *normal(int64_t n, double scale) {
  float *x = check_alloc_f32(n);
  check_fill(x, n, scale);
  return x;
}

static float *zeros(int64_t n) {
  float *x = check_alloc_f32(n);
  memset(x, 0, (size_t)n * sizeof *x);
  return x;
}

static float *copy_of(const float *x, int64_t n) {
  float *y = check_alloc_f32(n);
  memcpy(y, x, (size_t)n * sizeof *x);
  return y;
}

/* Rows [rows,c] at distance ld, the gaps between them left as the harness filled them. */
static float *padded(const float *x, int64_t rows, int64_t c, int64_t ld) {
  float *y = check_alloc_f32(rows * ld);
  for (int64_t r = 0; x && r < rows; r++)
    memcpy(y + r * ld, x + r * c, (size_t)c * sizeof *x);
  return y;
}

static float *packed(const float *x, int64_t rows, int64_t c, int64_t ld) {
  float *y = check_alloc_f32(rows * c);
  for (int64_t r = 0; r < rows; r++)
    memcpy(y + r * c, x + r * ld, (size_t)c * sizeof *x);
  return y;
}

static int gaps_untouched(const float *x, int64_t rows, int64_t c, int64_t ld) {
  static const uint32_t fill = 0xffffffffu;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = c; j < ld; j++)
      if (memcmp(x + r * ld + j, &fill, sizeof fill))
        return 0;
  return 1;
}

static int rounds_to(const uint16_t *got, const float *want, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (got[i] != msk_f32_to_bf16(want[i]))
      return 0;
  return 1;
}

/* mode 0: plain, 1: affine, 2: modulation by blocks of mod_rows rows */
static void reference_layer_norm(int64_t rows, int64_t c, double eps, const float *x, const float *scale,
                                 const float *shift, int mode, int64_t mod_rows, double *y, const float *dy,
                                 double *dx, double *dmul, double *dadd) {
  for (int64_t r = 0; r < rows; r++) {
    const float *xr = x + r * c, *g = dy + r * c;
    int64_t mod = mode == 2 ? r / mod_rows * c : 0;
    double mean = 0, variance = 0, sum = 0, dot = 0, rstd;
    for (int64_t j = 0; j < c; j++)
      mean += xr[j] / (double)c;
    for (int64_t j = 0; j < c; j++)
      variance += (xr[j] - mean) * (xr[j] - mean) / (double)c;
    rstd = 1 / sqrt(variance + eps);
    for (int64_t j = 0; j < c; j++) {
      double mul = mode == 0 ? 1.0 : mode == 1 ? (double)scale[j] : 1.0 + scale[mod + j];
      double hat = (xr[j] - mean) * rstd;
      y[r * c + j] = hat * mul + (mode ? shift[mod + j] : 0.0);
      sum += g[j] * mul / (double)c;
      dot += g[j] * mul * hat / (double)c;
      dmul[mod + j] += g[j] * hat;
      dadd[mod + j] += g[j];
    }
    for (int64_t j = 0; j < c; j++) {
      double mul = mode == 0 ? 1.0 : mode == 1 ? (double)scale[j] : 1.0 + scale[mod + j];
      dx[r * c + j] = rstd * (g[j] * mul - sum - (xr[j] - mean) * rstd * dot);
    }
  }
}

static void test_layer_norm(const struct msk_norm_ops *ops, const char *set, int64_t rows, int64_t c,
                            int mode) {
  int64_t n = rows * c, ld = c + 3, mod_rows = mode == 2 ? 5 : rows, mods = (rows + mod_rows - 1) / mod_rows;
  float *x = normal(n, 2), *scale = normal(mods * c, 0.5), *shift = normal(mods * c, 1), *dy = normal(n, 1);
  double *y = doubles(n), *dx = doubles(n), *dmul = doubles(mods * c), *dadd = doubles(mods * c);
  float *before = normal(n, 1), *gm = zeros(mods * c), *ga = zeros(mods * c);
  float *mean = check_alloc_f32(rows), *rstd = check_alloc_f32(rows);
  float *out = padded(NULL, rows, c, ld), *grad = padded(before, rows, c, ld);
  uint16_t *half = check_alloc((size_t)n * sizeof *half);
  struct msk_layer_norm p = {.c = c,
                             .eps = 1e-6f,
                             .x_ld = ld,
                             .scale = mode ? scale : NULL,
                             .shift = mode ? shift : NULL,
                             .mod_ld = c,
                             .mod_rows = mod_rows,
                             .one_plus = mode == 2,
                             .y = out,
                             .y_type = MSK_F32,
                             .y_ld = ld,
                             .mean = mean,
                             .rstd = rstd,
                             .dy_ld = ld,
                             .dx_ld = ld};
  for (int64_t r = 0; r < rows; r++) { /* rows far from the origin, as the residual stream has them */
    double offset = check_uniform(-20, 20);
    for (int64_t j = 0; j < c; j++)
      x[r * c + j] += (float)offset;
  }
  reference_layer_norm(rows, c, p.eps, x, scale, shift, mode, mod_rows, y, dy, dx, dmul, dadd);
  p.x = padded(x, rows, c, ld);
  p.dy = padded(dy, rows, c, ld);
  ops->layer_norm(&p, 0, rows / 2);
  ops->layer_norm(&p, rows / 2, rows);
  check_relative_l2(packed(out, rows, c, ld), y, n, FORWARD, "layer_norm %s [%d,%d] mode %d", set, (int)rows,
                    (int)c, mode);
  p.y = half;
  p.y_type = MSK_BF16;
  p.y_ld = c;
  ops->layer_norm(&p, 0, rows);
  check_ok(rounds_to(half, packed(out, rows, c, ld), n) && gaps_untouched(out, rows, c, ld),
           "layer_norm %s [%d,%d] mode %d: bfloat16 is the float32 result rounded", set, (int)rows, (int)c,
           mode);

  p.dx = grad;
  for (int accumulate = 0; accumulate < 2; accumulate++) {
    p.accumulate = accumulate;
    for (int64_t r = 0; r < rows; r += mod_rows) {
      float *m = accumulate ? NULL : gm + r / mod_rows * c * (mode == 2);
      float *a = accumulate ? NULL : ga + r / mod_rows * c * (mode == 2);
      ops->layer_norm_backward(&p, r, r + mod_rows < rows ? r + mod_rows : rows, m, a);
    }
    for (int64_t i = 0; i < n && accumulate; i++)
      dx[i] *= 2;
    if (c > 1) /* the gradient over one channel is zero but for rounding */
      check_relative_l2(packed(grad, rows, c, ld), dx, n, GRADIENT, "layer_norm %s [%d,%d] mode %d: dx%s",
                        set, (int)rows, (int)c, mode, accumulate ? " added" : "");
  }
  if (c > 1)
    check_relative_l2(gm, dmul, mods * c, GRADIENT, "layer_norm %s [%d,%d] mode %d: dmul", set, (int)rows,
                      (int)c, mode);
  check_relative_l2(ga, dadd, mods * c, GRADIENT, "layer_norm %s [%d,%d] mode %d: dadd", set, (int)rows,
                    (int)c, mode);
  check_ok(gaps_untouched(grad, rows, c, ld), "layer_norm %s [%d,%d] mode %d: nothing beside dx", set,
           (int)rows, (int)c, mode);
  check_free_all();
}

struct rope_case {
  int64_t lattice[3], heads;
  int pairs[3], weight, rope;
};

static float *table(int64_t positions, int64_t pairs, float *angles) {
  float *t = check_alloc_f32(positions * pairs * 2 + 1);
  for (int64_t i = 0; i < positions * pairs; i++) {
    angles[i] = (float)check_uniform(-3, 3);
    t[2 * i] = (float)cos(angles[i]);
    t[2 * i + 1] = (float)sin(angles[i]);
  }
  return t;
}

static void test_rms_rope(const struct msk_norm_ops *ops, const char *set, const struct rope_case *k) {
  int64_t pairs = k->pairs[0] + k->pairs[1] + k->pairs[2], c = 2 * pairs * k->heads;
  int64_t tokens = k->lattice[0] * k->lattice[1] * k->lattice[2], rows = 2 * tokens + 1, n = rows * c,
          ld = c + 5;
  float *x = normal(n, 1.5), *dy = normal(n, 1), *weight = normal(c, 1), *tables[3], *angles[3];
  float *dweight = zeros(c), *rstd = check_alloc_f32(rows);
  double *y = doubles(n), *dx = doubles(n), *dw = doubles(c);
  struct msk_rms_rope p = {.c = c,
                           .heads = k->heads,
                           .eps = 1e-6f,
                           .x_ld = ld,
                           .weight = k->weight ? weight : NULL,
                           .y_ld = ld,
                           .rstd = rstd,
                           .lattice = {k->lattice[0], k->lattice[1], k->lattice[2]},
                           .pairs_t = k->pairs[0],
                           .pairs_y = k->pairs[1],
                           .pairs_x = k->pairs[2],
                           .dy_ld = ld,
                           .dx_ld = ld};
  for (int a = 0; a < 3; a++) {
    angles[a] = check_alloc_f32(k->lattice[a] * k->pairs[a] + 1);
    tables[a] = table(k->lattice[a], k->pairs[a], angles[a]);
  }
  if (k->rope) {
    p.rope_t = tables[0];
    p.rope_y = tables[1];
    p.rope_x = tables[2];
  }
  for (int64_t r = 0; r < rows; r++) {
    int64_t token = r % tokens, hw = k->lattice[1] * k->lattice[2];
    int64_t at[3] = {token / hw, token % hw / k->lattice[2], token % k->lattice[2]};
    double square = 0, s = 1, dot = 0;
    for (int64_t j = 0; j < c; j++)
      square += (double)x[r * c + j] * x[r * c + j] / (double)c;
    if (k->weight)
      s = 1 / sqrt(square + p.eps);
    for (int64_t j = 0; j < c; j += 2) {
      int64_t pair = j / 2 % pairs;
      int part = pair < k->pairs[0] ? 0 : pair < k->pairs[0] + k->pairs[1] ? 1 : 2;
      double w0 = k->weight ? weight[j] : 1, w1 = k->weight ? weight[j + 1] : 1, co = 1, si = 0;
      double a = x[r * c + j] * s * w0, b = x[r * c + j + 1] * s * w1;
      double ga = dy[r * c + j], gb = dy[r * c + j + 1];
      for (int q = 0; q < part; q++)
        pair -= k->pairs[q];
      if (k->rope) {
        co = tables[part][(at[part] * k->pairs[part] + pair) * 2];
        si = tables[part][(at[part] * k->pairs[part] + pair) * 2 + 1];
      }
      y[r * c + j] = a * co - b * si;
      y[r * c + j + 1] = a * si + b * co;
      dx[r * c + j] = ga * co + gb * si;
      dx[r * c + j + 1] = gb * co - ga * si;
    }
    for (int64_t j = 0; j < c && k->weight; j++) {
      double hat = x[r * c + j] * s;
      dw[j] += dx[r * c + j] * hat;
      dx[r * c + j] *= weight[j];
      dot += dx[r * c + j] * hat / (double)c;
    }
    for (int64_t j = 0; j < c && k->weight; j++)
      dx[r * c + j] = s * (dx[r * c + j] - x[r * c + j] * s * dot);
  }
  for (int in_place = 0; in_place < 2; in_place++) {
    float *in = padded(x, rows, c, ld), *out = in_place ? in : padded(NULL, rows, c, ld);
    p.x = in;
    p.y = out;
    ops->rms_rope(&p, 0, rows / 3);
    ops->rms_rope(&p, rows / 3, rows);
    check_relative_l2(packed(out, rows, c, ld), y, n, FORWARD, "rms_rope %s [%d,%d] weight %d rope %d%s", set,
                      (int)rows, (int)c, k->weight, k->rope, in_place ? " in place" : "");
    check_ok(gaps_untouched(out, rows, c, ld), "rms_rope %s: nothing beside y", set);
  }
  p.x = padded(x, rows, c, ld);
  for (int in_place = 0; in_place < 2; in_place++) {
    float *in = padded(dy, rows, c, ld), *out = in_place ? in : padded(NULL, rows, c, ld);
    p.dy = in;
    p.dx = out;
    ops->rms_rope_backward(&p, 0, rows, k->weight && !in_place ? dweight : NULL);
    check_relative_l2(packed(out, rows, c, ld), dx, n, GRADIENT,
                      "rms_rope %s [%d,%d] weight %d rope %d: dx%s", set, (int)rows, (int)c, k->weight,
                      k->rope, in_place ? " in place" : "");
    check_ok(gaps_untouched(out, rows, c, ld), "rms_rope %s: nothing beside dx", set);
  }
  if (k->weight)
    check_relative_l2(dweight, dw, c, GRADIENT, "rms_rope %s [%d,%d] rope %d: dweight", set, (int)rows,
                      (int)c, k->rope);
  check_free_all();
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double silu_slope(double x) {
  return sigmoid(x) * (1 + x * sigmoid(-x));
}

static void test_l2_norm(const struct msk_norm_ops *ops, const char *set, int64_t rows, int64_t c, int silu) {
  int64_t n = rows * c;
  float *x = normal(n, 1), *gamma = normal(c, 1), *dy = normal(n, 1), *before = normal(n, 1);
  float *out = check_alloc_f32(n), *grad = copy_of(before, n), *dgamma = zeros(c);
  uint16_t *half = check_alloc((size_t)n * sizeof *half);
  double *y = doubles(n), *dx = doubles(n), *dg = doubles(c), *dg_size = doubles(c), off = 0, whole = 0;
  memset(x, 0, (size_t)c * sizeof *x); /* the first row is zero and stays it */
  for (int64_t r = 0; r < rows; r++) {
    double norm = 0, dot = 0;
    for (int64_t j = 0; j < c; j++)
      norm += (double)x[r * c + j] * x[r * c + j];
    norm = fmax(sqrt(norm), 1e-12);
    for (int64_t j = 0; j < c; j++) {
      int64_t i = r * c + j;
      double hat = x[i] / norm, z = hat * sqrt((double)c) * gamma[j], g = dy[i] * (silu ? silu_slope(z) : 1);
      y[i] = silu ? z * sigmoid(z) : z;
      dg[j] += g * hat * sqrt((double)c);
      dg_size[j] += fabs(g * hat) * sqrt((double)c);
      dx[i] = g * gamma[j] * sqrt((double)c);
      dot += dx[i] * hat;
    }
    for (int64_t j = 0; j < c; j++)
      dx[r * c + j] = (dx[r * c + j] - x[r * c + j] / norm * dot) / norm;
  }
  ops->l2_norm(x, gamma, c, rows, silu, out, MSK_F32);
  check_relative_l2(out, y, n, FORWARD, "l2_norm %s [%d,%d] silu %d", set, (int)rows, (int)c, silu);
  ops->l2_norm(x, gamma, c, rows, silu, half, MSK_BF16);
  check_ok(rounds_to(half, out, n), "l2_norm %s [%d,%d] silu %d: bfloat16", set, (int)rows, (int)c, silu);
  ops->l2_norm_backward(x, gamma, c, rows, silu, dy, grad, 0, dgamma);
  check_relative_l2(grad, dx, c, GRADIENT, "l2_norm %s [%d,%d] silu %d: dx of a zero row", set, (int)rows,
                    (int)c, silu);
  if (c > 1 && rows > 1) {
    check_relative_l2(grad + c, dx + c, n - c, GRADIENT, "l2_norm %s [%d,%d] silu %d: dx", set, (int)rows,
                      (int)c, silu);
    ops->l2_norm_backward(x + c, gamma, c, rows - 1, silu, dy + c, grad + c, 1, NULL);
    for (int64_t i = c; i < n; i++)
      dx[i] *= 2;
    check_relative_l2(grad + c, dx + c, n - c, GRADIENT, "l2_norm %s [%d,%d] silu %d: dx added", set,
                      (int)rows, (int)c, silu);
  }
  /* Rows may cancel each other out, most of all where there is one channel: the terms are the measure. */
  for (int64_t j = 0; j < c; j++) {
    off += (dgamma[j] - dg[j]) * (dgamma[j] - dg[j]);
    whole += dg_size[j] * dg_size[j];
  }
  check_ok(sqrt(off) <= GRADIENT * sqrt(whole), "l2_norm %s [%d,%d] silu %d: dgamma: %.2e of its terms", set,
           (int)rows, (int)c, silu, sqrt(off / whole));
  check_free_all();
}

#define ROOT_2_PI 0.79788456080286535588

static double gelu_of(double x) {
  return 0.5 * x * (1 + tanh(ROOT_2_PI * (x + 0.044715 * x * x * x)));
}

static double gelu_slope(double x) {
  double t = tanh(ROOT_2_PI * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * ROOT_2_PI * (1 + 3 * 0.044715 * x * x);
}

/* The largest error in units of 2^-24 times the operand's magnitude (or of one, where it is less for slopes).
 */
static double worst(const float *got, const float *x, const float *dy, double (*of)(double), int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double want = of(x[i]) * (dy ? dy[i] : 1), unit = dy ? fabs(dy[i]) : fabs(x[i]);
    double error = fabs(got[i] - want) / (unit + 1e-30) * 0x1p24;
    if (!(error <= most)) /* NaN counts */
      most = error;
  }
  return most;
}

static double silu_of(double x) {
  return x * sigmoid(x);
}

static void test_activations(const struct msk_norm_ops *ops, const char *set, int64_t n) {
  static const float ends[] = {0.f,   -0.f,   1e-38f, -1e-38f, 88.f,  -88.f,
                               104.f, -104.f, 1e4f,   -1e4f,   1e10f, -1e10f};
  float *x = check_alloc_f32(n), *dy = normal(n, 1), *y = check_alloc_f32(n), *in_place;
  uint16_t *half = check_alloc((size_t)n * sizeof *half);
  double error;
  check_fill_uniform(x, n, -12, 12);
  for (int64_t i = 0; i < n && i < (int64_t)(sizeof ends / sizeof *ends); i++)
    x[n - 1 - i] = ends[i];

  ops->gelu(x, y, MSK_F32, n);
  error = worst(y, x, NULL, gelu_of, n);
  check_ok(error <= 8, "gelu %s [%d]: %.1f units of the operand", set, (int)n, error);
  ops->gelu(x, half, MSK_BF16, n);
  check_ok(rounds_to(half, y, n), "gelu %s [%d]: bfloat16", set, (int)n);
  in_place = copy_of(x, n);
  ops->gelu(in_place, in_place, MSK_F32, n);
  check_bytes(in_place, y, (size_t)n * 4, "gelu %s [%d] in place", set, (int)n);

  ops->gelu_backward(x, MSK_F32, dy, y, n);
  error = worst(y, x, dy, gelu_slope, n - n / 8 - 1);
  check_ok(error <= 16, "gelu_backward %s [%d]: %.1f units of dy", set, (int)n, error);
  in_place = copy_of(dy, n);
  ops->gelu_backward(x, MSK_F32, in_place, in_place, n);
  check_bytes(in_place, y, (size_t)n * 4, "gelu_backward %s [%d] in place", set, (int)n);
  check_to_bf16(x, half, n);
  for (int64_t i = 0; i < n; i++)
    x[i] = msk_bf16_to_f32(half[i]);
  ops->gelu_backward(half, MSK_BF16, dy, y, n);
  in_place = check_alloc_f32(n);
  ops->gelu_backward(x, MSK_F32, dy, in_place, n);
  check_bytes(in_place, y, (size_t)n * 4, "gelu_backward %s [%d] of bfloat16", set, (int)n);

  ops->silu(x, y, n);
  error = worst(y, x, NULL, silu_of, n);
  check_ok(error <= 4, "silu %s [%d]: %.1f units of the operand", set, (int)n, error);
  ops->silu_backward(x, dy, y, n);
  error = worst(y, x, dy, silu_slope, n);
  check_ok(error <= 8, "silu_backward %s [%d]: %.1f units of dy", set, (int)n, error);
  x[0] = NAN;
  ops->silu(x, x, n);
  ops->gelu_backward(x, MSK_F32, dy, y, n);
  check_ok(isnan(x[0]) && isnan(y[0]), "activations %s [%d]: NaN stays NaN", set, (int)n);
  check_free_all();
}

static void test_sums(const struct msk_norm_ops *ops, const char *set, int64_t rows, int64_t c) {
  int64_t ld = c + 2, n = rows * ld;
  float *x = normal(n, 1), *b = normal(n, 1), *gate = normal(c, 1), *db = padded(NULL, rows, c, ld);
  float *columns = zeros(c), *dgate = zeros(c), *y = normal(n, 1), *sum = copy_of(y, n), *mix = copy_of(y, n);
  double *wc = doubles(c), *wg = doubles(c), *wdb = doubles(rows * c), *ws = doubles(n), *wm = doubles(n),
         square = 0, got;
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < c; j++) {
      wc[j] += x[r * ld + j];
      wg[j] += (double)x[r * ld + j] * b[r * ld + j];
      wdb[r * c + j] = (double)x[r * ld + j] * gate[j];
    }
  for (int64_t i = 0; i < n; i++) {
    ws[i] = (double)x[i] + y[i];
    wm[i] = 0.75 * x[i] - 1.25 * y[i];
    square += (double)x[i] * x[i];
  }
  ops->column_sum(x, ld, c, rows, columns);
  check_relative_l2(columns, wc, c, GRADIENT, "column_sum %s [%d,%d]", set, (int)rows, (int)c);
  ops->gate_backward(x, ld, b, ld, gate, c, rows, db, ld, dgate);
  check_relative_l2(dgate, wg, c, GRADIENT, "gate_backward %s [%d,%d]: dgate", set, (int)rows, (int)c);
  check_relative_l2(packed(db, rows, c, ld), wdb, rows * c, FORWARD, "gate_backward %s [%d,%d]: db", set,
                    (int)rows, (int)c);
  check_ok(gaps_untouched(db, rows, c, ld), "gate_backward %s: nothing beside db", set);
  ops->add(x, sum, n);
  check_relative_l2(sum, ws, n, 1e-7, "add %s [%d]", set, (int)n);
  ops->axpby(0.75f, x, -1.25f, mix, n);
  check_relative_l2(mix, wm, n, 2e-7, "axpby %s [%d]", set, (int)n);
  got = ops->sum_squares(x, n);
  check_ok(fabs(got - square) <= 1e-13 * square, "sum_squares %s [%d]: %.1e", set, (int)n,
           fabs(got / square - 1));
  if (n > 4096)
    check_ok(ops->sum_squares(x, 4096) + ops->sum_squares(x + 4096, n - 4096) == got || n > 8192,
             "sum_squares %s [%d]: in blocks", set, (int)n);
  check_free_all();
}

struct bench {
  const struct msk_norm_ops *ops;
  struct msk_layer_norm ln;
  struct msk_rms_rope rope;
  float *a, *b, *c, *gamma, *columns;
  uint16_t *half;
  int64_t rows, channels;
};

static void bench_ln(void *d) {
  struct bench *k = d;
  k->ops->layer_norm(&k->ln, 0, k->rows);
}
static void bench_ln_backward(void *d) {
  struct bench *k = d;
  k->ops->layer_norm_backward(&k->ln, 0, k->rows, k->columns, k->columns + k->channels);
}
static void bench_rope(void *d) {
  struct bench *k = d;
  k->ops->rms_rope(&k->rope, 0, k->rows);
}
static void bench_rope_backward(void *d) {
  struct bench *k = d;
  k->ops->rms_rope_backward(&k->rope, 0, k->rows, k->columns);
}
static void bench_l2(void *d) {
  struct bench *k = d;
  k->ops->l2_norm(k->a, k->gamma, k->channels, k->rows, 1, k->c, MSK_F32);
}
static void bench_l2_backward(void *d) {
  struct bench *k = d;
  k->ops->l2_norm_backward(k->a, k->gamma, k->channels, k->rows, 1, k->b, k->c, 0, k->columns);
}
static void bench_gelu(void *d) {
  struct bench *k = d;
  k->ops->gelu(k->a, k->c, MSK_F32, k->rows * k->channels);
}
static void bench_gelu_half(void *d) {
  struct bench *k = d;
  k->ops->gelu(k->a, k->half, MSK_BF16, k->rows * k->channels);
}
static void bench_gelu_backward(void *d) {
  struct bench *k = d;
  k->ops->gelu_backward(k->a, MSK_F32, k->b, k->c, k->rows * k->channels);
}
static void bench_silu(void *d) {
  struct bench *k = d;
  k->ops->silu(k->a, k->c, k->rows * k->channels);
}
static void bench_gate(void *d) {
  struct bench *k = d;
  k->ops->gate_backward(k->a, k->channels, k->b, k->channels, k->gamma, k->channels, k->rows, k->c,
                        k->channels, k->columns);
}
static void bench_columns(void *d) {
  struct bench *k = d;
  k->ops->column_sum(k->a, k->channels, k->channels, k->rows, k->columns);
}
static void bench_add(void *d) {
  struct bench *k = d;
  k->ops->add(k->a, k->b, k->rows * k->channels);
}
static void bench_squares(void *d) {
  struct bench *k = d;
  *(volatile double *)k->columns = k->ops->sum_squares(k->a, k->rows * k->channels);
}
static void bench_copy(void *d) {
  struct bench *k = d;
  memcpy(k->c, k->a, (size_t)(k->rows * k->channels) * 4);
}

static void bench_set(const struct msk_norm_ops *ops, const char *set) {
  static const struct {
    const char *name;
    void (*run)(void *);
    double bytes; /* an element */
  } runs[] = {
      {"copy", bench_copy, 8},
      {"layer_norm", bench_ln, 8},
      {"layer_norm_backward", bench_ln_backward, 12},
      {"rms_rope", bench_rope, 8},
      {"rms_rope_backward", bench_rope_backward, 12},
      {"l2_norm silu", bench_l2, 8},
      {"l2_norm_backward silu", bench_l2_backward, 12},
      {"gelu", bench_gelu, 8},
      {"gelu to bfloat16", bench_gelu_half, 6},
      {"gelu_backward", bench_gelu_backward, 12},
      {"silu", bench_silu, 8},
      {"gate_backward", bench_gate, 12},
      {"column_sum", bench_columns, 4},
      {"add", bench_add, 12},
      {"sum_squares", bench_squares, 4},
  };
  struct bench k = {.ops = ops, .rows = strcmp(set, "c") ? 8192 : 512, .channels = 1536};
  int64_t n = k.rows * k.channels, lattice[3] = {8, 32, 32};
  float *angles = check_alloc_f32(32 * 22);
  k.a = normal(n, 1);
  k.b = normal(n, 1);
  k.c = zeros(n);
  k.half = check_alloc((size_t)n * 2);
  memset(k.half, 0, (size_t)n * 2);
  k.gamma = normal(k.channels, 1);
  k.columns = zeros(2 * k.channels);
  k.ln = (struct msk_layer_norm){.c = k.channels,
                                 .eps = 1e-6f,
                                 .x = k.a,
                                 .x_ld = k.channels,
                                 .scale = k.gamma,
                                 .shift = k.gamma,
                                 .mod_ld = 0,
                                 .mod_rows = k.rows,
                                 .one_plus = 1,
                                 .y = k.c,
                                 .y_type = MSK_F32,
                                 .y_ld = k.channels,
                                 .mean = zeros(k.rows),
                                 .rstd = zeros(k.rows),
                                 .dy = k.b,
                                 .dy_ld = k.channels,
                                 .dx = k.c,
                                 .dx_ld = k.channels};
  k.rope = (struct msk_rms_rope){.c = k.channels,
                                 .heads = 12,
                                 .eps = 1e-6f,
                                 .x = k.a,
                                 .x_ld = k.channels,
                                 .weight = k.gamma,
                                 .y = k.c,
                                 .y_ld = k.channels,
                                 .rstd = zeros(k.rows),
                                 .pairs_t = 22,
                                 .pairs_y = 21,
                                 .pairs_x = 21,
                                 .rope_t = table(8, 22, angles),
                                 .rope_y = table(32, 21, angles),
                                 .rope_x = table(32, 21, angles),
                                 .dy = k.b,
                                 .dy_ld = k.channels,
                                 .dx = k.c,
                                 .dx_ld = k.channels};
  memcpy(k.rope.lattice, lattice, sizeof lattice);
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s %s [%d,%d]", runs[i].name, set, (int)k.rows, (int)k.channels);
    check_bench(name, check_time(runs[i].run, &k), 0, runs[i].bytes * (double)n);
  }
  check_free_all();
}

int main(int argc, char **argv) {
  static const int64_t widths[] = {1, 7, 16, 33, 96, 256, 1000, 1536};
  static const struct rope_case ropes[] = {
      {{2, 3, 4}, 12, {22, 21, 21}, 1, 1}, {{3, 2, 5}, 3, {12, 10, 10}, 1, 1},
      {{2, 2, 3}, 2, {3, 2, 1}, 1, 1},     {{2, 3, 2}, 5, {4, 0, 1}, 0, 1},
      {{1, 2, 3}, 4, {22, 21, 21}, 0, 1},  {{1, 3, 2}, 1, {9, 8, 7}, 1, 0},
      {{1, 1, 3}, 3, {22, 21, 21}, 1, 0},  {{1, 1, 2}, 1, {1, 1, 1}, 0, 0},
  };
  unsigned sets[8];
  int count;
  check_begin(argc, argv);
  count = check_sets(sets);
  for (int s = 0; s < count; s++) {
    const char *set = check_set_name(sets[s]);
    struct msk_norm_ops ops;
    if (sets[s] & MSK_CPU_AVX512BF16) /* no slots of its own */
      break;
    msk_norm_init(&ops, sets[s]);
    check_ok(!strcmp(ops.name, set), "table %s", set);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
      for (int mode = 0; mode < 3; mode++)
        test_layer_norm(&ops, set, 1 + check_below(12), widths[i], mode);
    for (size_t i = 0; i < sizeof ropes / sizeof *ropes; i++)
      test_rms_rope(&ops, set, ropes + i);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
      for (int silu = 0; silu < 2; silu++)
        test_l2_norm(&ops, set, 2 + check_below(5), widths[i], silu);
    test_activations(&ops, set, 1);
    test_activations(&ops, set, 37);
    test_activations(&ops, set, 10007);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
      test_sums(&ops, set, 1 + check_below(20), widths[i]);
    if (check_bench_wanted())
      bench_set(&ops, set);
  }
  return check_end();
}
