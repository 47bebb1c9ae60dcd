/* Activations and the L2 norm of the codec over vectors. With u = sqrt (2 / pi) (x + 0.044715 x^3),
 * gelu (x) = x sigmoid (2 u), so both activations need one exponential. */
#pragma once

/* 2 u and its derivative, negated as the sigmoid wants it. */
VEC_INLINE vec_f32 gelu_minus(vec_f32 x) {
  return x * vec_fma(vec_set(-0.0713548163f), x * x, vec_set(-1.59576912f));
}

VEC_INLINE vec_f32 gelu_minus_slope(vec_f32 x) {
  return vec_fma(vec_set(-0.214064449f), x * x, vec_set(-1.59576912f));
}

VEC_INLINE vec_f32 silu_of(vec_f32 x) {
  vec_f32 slope;
  return x * vec_sigmoid(-x, &slope);
}

VEC_INLINE vec_f32 silu_slope(vec_f32 x) {
  vec_f32 slope, s = vec_sigmoid(-x, &slope);
  return vec_fma(x, slope, s);
}

VEC_INLINE void gelu_body(const float *x, void *y, enum msk_type type, int64_t i, int n) {
  vec_f32 slope, v = vec_load_n(x + i, n);
  vec_store_as_n(y, type, i, n, v * vec_sigmoid(gelu_minus(v), &slope));
}

static void gelu(const float *x, void *y, enum msk_type y_type, int64_t n) {
  if (y_type == MSK_F32)
    VEC_ROW(n, gelu_body, x, y, MSK_F32);
  else
    VEC_ROW(n, gelu_body, x, y, MSK_BF16);
}

VEC_INLINE void gelu_backward_body(const void *x, enum msk_type type, const float *dy, float *dx, int64_t i,
                                   int n) {
  vec_f32 slope, v = vec_load_as_n(x, type, i, n), s = vec_sigmoid(gelu_minus(v), &slope);
  vec_store_n(dx + i, n, vec_load_n(dy + i, n) * vec_fnma(v * slope, gelu_minus_slope(v), s));
}

static void gelu_backward(const void *x, enum msk_type x_type, const float *dy, float *dx, int64_t n) {
  if (x_type == MSK_F32)
    VEC_ROW(n, gelu_backward_body, x, MSK_F32, dy, dx);
  else
    VEC_ROW(n, gelu_backward_body, x, MSK_BF16, dy, dx);
}

VEC_INLINE void silu_body(const float *x, float *y, int64_t i, int n) {
  vec_store_n(y + i, n, silu_of(vec_load_n(x + i, n)));
}

static void silu(const float *x, float *y, int64_t n) {
  VEC_ROW(n, silu_body, x, y);
}

VEC_INLINE void silu_backward_body(const float *x, const float *dy, float *dx, int64_t i, int n) {
  vec_store_n(dx + i, n, vec_load_n(dy + i, n) * silu_slope(vec_load_n(x + i, n)));
}

static void silu_backward(const float *x, const float *dy, float *dx, int64_t n) {
  VEC_ROW(n, silu_backward_body, x, dy, dx);
}

VEC_INLINE void l2_norm_body(const float *x, const float *gamma, vec_f32 factor, int act, void *y,
                             enum msk_type type, int64_t i, int n) {
  vec_f32 z = vec_load_n(x + i, n) * factor * vec_load_n(gamma + i, n);
  vec_store_as_n(y, type, i, n, act ? silu_of(z) : z);
}

static float norm_of(const float *x, int64_t c) {
  float norm = sqrtf(sum_squares_row(x, 0, c));
  return norm > 1e-12f ? norm : 1e-12f;
}

static void l2_norm(const float *x, const float *gamma, int64_t c, int64_t rows, int act, void *y,
                    enum msk_type y_type) {
  for (int64_t r = 0; r < rows; r++, x += c, y = (char *)y + (size_t)c * msk_type_size(y_type)) {
    vec_f32 factor = vec_set(sqrtf((float)c) / norm_of(x, c));
    if (act)
      VEC_ROW(c, l2_norm_body, x, gamma, factor, 1, y, y_type);
    else
      VEC_ROW(c, l2_norm_body, x, gamma, factor, 0, y, y_type);
  }
}

VEC_INLINE vec_f32 l2_upstream_n(const float *x, const float *gamma, vec_f32 factor, int act, const float *dy,
                                 int64_t i, int n) {
  vec_f32 g = vec_load_n(dy + i, n);
  if (act)
    g *= silu_slope(vec_load_n(x + i, n) * factor * vec_load_n(gamma + i, n));
  return g;
}

VEC_INLINE void l2_dot_body(const float *x, const float *gamma, vec_f32 factor, int act, const float *dy,
                            vec_f32 *dot, int64_t i, int n) {
  vec_f32 g = l2_upstream_n(x, gamma, factor, act, dy, i, n) * vec_load_n(gamma + i, n);
  *dot = vec_fma(g, vec_load_n(x + i, n), *dot);
}

VEC_INLINE void l2_dx_body(const float *x, const float *gamma, vec_f32 factor, int act, const float *dy,
                           vec_f32 dot, float *dx, int accumulate, float *dgamma, int64_t i, int n) {
  vec_f32 g = l2_upstream_n(x, gamma, factor, act, dy, i, n), v = vec_load_n(x + i, n);
  vec_f32 d = vec_fnma(v, dot, g * vec_load_n(gamma + i, n)) * factor;
  if (dgamma)
    vec_store_n(dgamma + i, n, vec_fma(g * factor, v, vec_load_n(dgamma + i, n)));
  if (accumulate)
    d += vec_load_n(dx + i, n);
  vec_store_n(dx + i, n, d);
}

static void l2_norm_backward(const float *x, const float *gamma, int64_t c, int64_t rows, int act,
                             const float *dy, float *dx, int accumulate, float *dgamma) {
  for (int64_t r = 0; r < rows; r++, x += c, dy += c, dx += c) {
    float norm = norm_of(x, c);
    vec_f32 factor = vec_set(sqrtf((float)c) / norm), dots = vec_set(0), dot;
    VEC_ROW(c, l2_dot_body, x, gamma, factor, act, dy, &dots);
    /* A norm held at its least value is a constant. */
    dot = vec_set(norm > 1e-12f ? vec_sum(dots) / norm / norm : 0);
    VEC_ROW(c, l2_dx_body, x, gamma, factor, act, dy, dot, dx, accumulate, dgamma);
  }
}
