/* The gate's backward pass, sums over rows and the plain element-wise slots over vectors. */
#pragma once

VEC_INLINE void gate_body(const float *dy, int64_t dy_ld, const float *b, int64_t b_ld, int rows,
                          const float *gate, float *db, int64_t db_ld, float *dgate, int64_t i, int n) {
  vec_f32 g = vec_load_n(gate + i, n), sum = vec_set(0);
  for (int k = 0; k < rows; k++) {
    vec_f32 d = vec_load_n(dy + k * dy_ld + i, n);
    if (dgate)
      sum = vec_fma(d, vec_load_n(b + k * b_ld + i, n), sum);
    vec_store_n(db + k * db_ld + i, n, d * g);
  }
  if (dgate)
    vec_store_n(dgate + i, n, vec_load_n(dgate + i, n) + sum);
}

static void gate_backward(const float *dy, int64_t dy_ld, const float *b, int64_t b_ld, const float *gate,
                          int64_t c, int64_t rows, float *db, int64_t db_ld, float *dgate) {
  for (; rows >= ROWS; rows -= ROWS) {
    VEC_ROW(c, gate_body, dy, dy_ld, b, b_ld, ROWS, gate, db, db_ld, dgate);
    dy += ROWS * dy_ld;
    b += ROWS * b_ld;
    db += ROWS * db_ld;
  }
  for (; rows > 0; rows--, dy += dy_ld, b += b_ld, db += db_ld)
    VEC_ROW(c, gate_body, dy, dy_ld, b, b_ld, 1, gate, db, db_ld, dgate);
}

VEC_INLINE void column_body(const float *x, int64_t ld, int rows, float *out, int64_t i, int n) {
  vec_f32 sum = vec_load_n(x + i, n);
  for (int k = 1; k < rows; k++)
    sum += vec_load_n(x + k * ld + i, n);
  vec_store_n(out + i, n, vec_load_n(out + i, n) + sum);
}

static void column_sum(const float *x, int64_t ld, int64_t c, int64_t rows, float *out) {
  for (; rows >= 2 * ROWS; rows -= 2 * ROWS, x += 2 * ROWS * ld)
    VEC_ROW(c, column_body, x, ld, 2 * ROWS, out);
  for (; rows > 0; rows--, x += ld)
    VEC_ROW(c, column_body, x, ld, 1, out);
}

VEC_INLINE void sum_body(const float *x, float *y, int64_t i, int n) {
  vec_store_n(y + i, n, vec_load_n(y + i, n) + vec_load_n(x + i, n));
}

static void add(const float *x, float *y, int64_t n) {
  VEC_ROW(n, sum_body, x, y);
}

VEC_INLINE void axpby_body(vec_f32 a, const float *x, vec_f32 b, float *y, int64_t i, int n) {
  vec_store_n(y + i, n, vec_fma(a, vec_load_n(x + i, n), b * vec_load_n(y + i, n)));
}

static void axpby(float a, const float *x, float b, float *y, int64_t n) {
  vec_f32 va = vec_set(a), vb = vec_set(b);
  VEC_ROW(n, axpby_body, va, x, vb, y);
}

VEC_INLINE void squares_body(const float *x, vec_f64 *even, vec_f64 *odd, int64_t i, int n) {
  vec_f32 v = vec_load_n(x + i, n);
  *even = vec_add_squares(*even, v, 0);
  *odd = vec_add_squares(*odd, v, 1);
}

static double sum_squares(const float *x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; i += 4096) {
    int64_t count = n - i < 4096 ? n - i : 4096, j = 0;
    vec_f64 s0 = vec_f64_set(0), s1 = s0, s2 = s0, s3 = s0;
    for (; j + 2 * VEC <= count; j += 2 * VEC) {
      squares_body(x + i, &s0, &s1, j, VEC);
      squares_body(x + i, &s2, &s3, j + VEC, VEC);
    }
    VEC_ROW(count - j, squares_body, x + i + j, &s0, &s1);
    total += vec_sum_f64((s0 + s1) + (s2 + s3));
  }
  return total;
}
