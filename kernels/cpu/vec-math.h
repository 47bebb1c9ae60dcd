/* Rounding to bfloat16, exponential and sigmoid over the vectors of vec-avx2.h or vec-avx512.h, included
 * before. */
#pragma once

/* Calls body (..., i, n) for vectors of a row of c elements: n is VEC, then once the rest. */
#define VEC_ROW(c, body, ...)                                                                                \
  do {                                                                                                       \
    int64_t row_i = 0, row_c = (c);                                                                          \
    for (; row_i + VEC <= row_c; row_i += VEC)                                                               \
      body(__VA_ARGS__, row_i, VEC);                                                                         \
    if (row_i < row_c)                                                                                       \
      body(__VA_ARGS__, row_i, (int)(row_c - row_i));                                                        \
  } while (0)

/* Nearest, ties to even, NaN stays NaN: the bits of msk_f32_to_bf16 in the low half of every lane. */
VEC_INLINE vec_i32 vec_to_bf16(vec_f32 v) {
  vec_i32 bits = vec_bits(v), high = vec_shift_right(bits, 16);
  vec_i32 round = vec_add_i32(vec_and_i32(high, vec_set_i32(1)), vec_set_i32(0x7fff));
  return vec_if_number(v, vec_shift_right(vec_add_i32(bits, round), 16), vec_or_i32(high, vec_set_i32(0x40)));
}

VEC_INLINE vec_f32 vec_load_bf16_n(const uint16_t *p, int n) {
  return vec_from_bits(vec_shift_left(vec_load_u16_n(p, n), 16));
}

/* Element i and the n - 1 after it of a buffer of either type. */
VEC_INLINE vec_f32 vec_load_as_n(const void *p, enum msk_type type, int64_t i, int n) {
  return type == MSK_F32 ? vec_load_n((const float *)p + i, n) : vec_load_bf16_n((const uint16_t *)p + i, n);
}

VEC_INLINE void vec_store_as_n(void *p, enum msk_type type, int64_t i, int n, vec_f32 v) {
  if (type == MSK_F32)
    vec_store_n((float *)p + i, n, v);
  else
    vec_store_u16_n((uint16_t *)p + i, n, vec_to_bf16(v));
}

/* e^x, relative error below 2e-7 where the result is normal; the argument is held in [low, high]. With
 * n = round (x / ln 2) and r = x - n ln 2 (ln 2 in two parts, the first short enough for n times it to be
 * exact), e^x = 2^n (1 + r + r^2 q (r)), q fitted to 1e-8 on |r| <= ln 2 / 2. */
VEC_INLINE vec_f32 vec_exp(vec_f32 x, float low, float high) {
  vec_f32 n, r, q;
  x = vec_clamp(x, low, high);
  n = vec_round(x * vec_set(1.44269502f));
  r = vec_fnma(n, vec_set(0.693145751953125f), x);
  r = vec_fnma(n, vec_set(1.42860677e-6f), r);
  q = vec_fma(vec_set(0.00139262131f), r, vec_set(0.00836320315f));
  q = vec_fma(q, r, vec_set(0.0416665561f));
  q = vec_fma(q, r, vec_set(0.166665763f));
  q = vec_fma(q, r, vec_set(0.5f));
  q = vec_fma(q, r * r, r);
  return vec_scale2(q + vec_set(1), n);
}

/* s = 1 / (1 + e^minus_x), and s (1 - s) without the cancellation near s = 1; the ends are those of the
 * reciprocal. */
VEC_INLINE vec_f32 vec_sigmoid(vec_f32 minus_x, vec_f32 *slope) {
  vec_f32 e = vec_exp(minus_x, -87, 87), s = vec_reciprocal(vec_set(1) + e);
  *slope = e * s * s;
  return s;
}
