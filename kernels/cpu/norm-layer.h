/* Layer norm over vectors. A row is read from memory once; mean, variance and result are three passes over it
 * in L1. The backward pass takes ROWS rows at a time, so that a column's gradient of scale and shift is
 * loaded and stored once for all of them. */
#pragma once

#define ROWS 4

VEC_INLINE void add_body(const float *x, vec_f32 *sum, int64_t i, int n) {
  *sum += vec_load_n(x + i, n);
}

VEC_INLINE void add_square_body(const float *x, vec_f32 mean, vec_f32 *sum, int64_t i, int n) {
  vec_f32 d = vec_keep_n(vec_load_n(x + i, n) - mean, n);
  *sum = vec_fma(d, d, *sum);
}

/* Four sums side by side hide the latency of the addition. */
static float sum_row(const float *x, int64_t c) {
  vec_f32 s0 = vec_set(0), s1 = s0, s2 = s0, s3 = s0;
  int64_t i = 0;
  for (; i + 4 * VEC <= c; i += 4 * VEC) {
    add_body(x, &s0, i, VEC);
    add_body(x, &s1, i + VEC, VEC);
    add_body(x, &s2, i + 2 * VEC, VEC);
    add_body(x, &s3, i + 3 * VEC, VEC);
  }
  VEC_ROW(c - i, add_body, x + i, &s0);
  return vec_sum((s0 + s1) + (s2 + s3));
}

static float sum_squares_row(const float *x, float mean, int64_t c) {
  vec_f32 s0 = vec_set(0), s1 = s0, s2 = s0, s3 = s0, m = vec_set(mean);
  int64_t i = 0;
  for (; i + 4 * VEC <= c; i += 4 * VEC) {
    add_square_body(x, m, &s0, i, VEC);
    add_square_body(x, m, &s1, i + VEC, VEC);
    add_square_body(x, m, &s2, i + 2 * VEC, VEC);
    add_square_body(x, m, &s3, i + 3 * VEC, VEC);
  }
  VEC_ROW(c - i, add_square_body, x + i, m, &s0);
  return vec_sum((s0 + s1) + (s2 + s3));
}

static float reciprocal_root(double mean_square, double eps) {
  return (float)(1 / sqrt(mean_square + eps));
}

VEC_INLINE vec_f32 scale_n(const float *scale, vec_f32 plus, int64_t i, int n) {
  if (!scale)
    return vec_set(1);
  return vec_load_n(scale + i, n) + plus;
}

VEC_INLINE void layer_norm_body(const float *x, const float *scale, const float *shift, vec_f32 plus,
                                vec_f32 mean, vec_f32 rstd, void *y, enum msk_type type, int64_t i, int n) {
  vec_f32 v = (vec_load_n(x + i, n) - mean) * rstd;
  vec_f32 add = shift ? vec_load_n(shift + i, n) : vec_set(0);
  v = vec_fma(v, scale_n(scale, plus, i, n), add);
  vec_store_as_n(y, type, i, n, v);
}

static void layer_norm(const struct msk_layer_norm *p, int64_t r0, int64_t r1) {
  vec_f32 plus = vec_set(p->one_plus ? 1 : 0);
  for (int64_t r = r0; r < r1; r++) {
    const float *x = p->x + r * p->x_ld;
    int64_t mod = p->scale || p->shift ? r / p->mod_rows * p->mod_ld : 0;
    const float *scale = p->scale ? p->scale + mod : NULL, *shift = p->shift ? p->shift + mod : NULL;
    char *y = (char *)p->y + (size_t)(r * p->y_ld) * msk_type_size(p->y_type);
    float mean = sum_row(x, p->c) / (float)p->c;
    float rstd = reciprocal_root(sum_squares_row(x, mean, p->c) / (double)p->c, p->eps);
    vec_f32 m = vec_set(mean), s = vec_set(rstd);
    if (p->y_type == MSK_F32)
      VEC_ROW(p->c, layer_norm_body, x, scale, shift, plus, m, s, y, MSK_F32);
    else
      VEC_ROW(p->c, layer_norm_body, x, scale, shift, plus, m, s, y, MSK_BF16);
    if (p->mean)
      p->mean[r] = mean;
    if (p->rstd)
      p->rstd[r] = rstd;
  }
}

/* Rows that share a modulation row, with the averages of g and of g xhat over each. */
struct layer_norm_rows {
  const float *x[ROWS], *dy[ROWS];
  float *dx[ROWS];
  float mean[ROWS], rstd[ROWS], sum[ROWS], dot[ROWS];
};

VEC_INLINE void layer_norm_dots_body(const float *x, const float *dy, const float *scale, vec_f32 plus,
                                     vec_f32 mean, vec_f32 *sum, vec_f32 *dot, int64_t i, int n) {
  vec_f32 g = vec_load_n(dy + i, n) * scale_n(scale, plus, i, n);
  *sum += g;
  *dot = vec_fma(g, vec_load_n(x + i, n) - mean, *dot);
}

VEC_INLINE void layer_norm_dx_body(const struct layer_norm_rows *rows, int count, const float *scale,
                                   vec_f32 plus, int accumulate, float *dmul, float *dadd, int64_t i, int n) {
  vec_f32 mul = scale_n(scale, plus, i, n), dm = vec_set(0), da = vec_set(0);
  for (int k = 0; k < count; k++) {
    vec_f32 rstd = vec_set(rows->rstd[k]), dy = vec_load_n(rows->dy[k] + i, n);
    vec_f32 xhat = (vec_load_n(rows->x[k] + i, n) - vec_set(rows->mean[k])) * rstd;
    vec_f32 d = vec_fma(dy, mul, vec_set(-rows->sum[k]));
    d = vec_fnma(xhat, vec_set(rows->dot[k]), d) * rstd;
    dm = vec_fma(dy, xhat, dm);
    da += dy;
    if (accumulate)
      d += vec_load_n(rows->dx[k] + i, n);
    vec_store_n(rows->dx[k] + i, n, d);
  }
  if (dmul)
    vec_store_n(dmul + i, n, vec_load_n(dmul + i, n) + dm);
  if (dadd)
    vec_store_n(dadd + i, n, vec_load_n(dadd + i, n) + da);
}

static void layer_norm_dots(const struct msk_layer_norm *p, int64_t r, const float *scale, vec_f32 plus,
                            struct layer_norm_rows *rows, int k) {
  vec_f32 sum[2] = {vec_set(0), vec_set(0)}, dot[2] = {vec_set(0), vec_set(0)};
  const float *x = p->x + r * p->x_ld, *dy = p->dy + r * p->dy_ld;
  vec_f32 mean = vec_set(p->mean[r]);
  int64_t i = 0;
  for (; i + 2 * VEC <= p->c; i += 2 * VEC) {
    layer_norm_dots_body(x, dy, scale, plus, mean, sum, dot, i, VEC);
    layer_norm_dots_body(x, dy, scale, plus, mean, sum + 1, dot + 1, i + VEC, VEC);
  }
  VEC_ROW(p->c - i, layer_norm_dots_body, x + i, dy + i, scale ? scale + i : NULL, plus, mean, sum, dot);
  rows->x[k] = x;
  rows->dy[k] = dy;
  rows->dx[k] = p->dx + r * p->dx_ld;
  rows->mean[k] = p->mean[r];
  rows->rstd[k] = p->rstd[r];
  rows->sum[k] = vec_sum(sum[0] + sum[1]) / (float)p->c;
  rows->dot[k] = vec_sum(dot[0] + dot[1]) * p->rstd[r] / (float)p->c;
}

static void layer_norm_backward(const struct msk_layer_norm *p, int64_t r0, int64_t r1, float *dmul,
                                float *dadd) {
  const float *scale = p->scale ? p->scale + r0 / p->mod_rows * p->mod_ld : NULL;
  vec_f32 plus = vec_set(p->one_plus ? 1 : 0);
  struct layer_norm_rows rows;
  int64_t r = r0;
  for (; r + ROWS <= r1; r += ROWS) {
    for (int k = 0; k < ROWS; k++)
      layer_norm_dots(p, r + k, scale, plus, &rows, k);
    VEC_ROW(p->c, layer_norm_dx_body, &rows, ROWS, scale, plus, p->accumulate, dmul, dadd);
  }
  for (; r < r1; r++) {
    layer_norm_dots(p, r, scale, plus, &rows, 0);
    VEC_ROW(p->c, layer_norm_dx_body, &rows, 1, scale, plus, p->accumulate, dmul, dadd);
  }
}
