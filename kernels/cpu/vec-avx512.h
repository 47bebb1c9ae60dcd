/* Vectors of 16 float32 lanes for bodies that are written once and compiled per instruction set; vec-avx2.h
 * has the same names with 8 lanes. Calls ending in _n touch the first n lanes only (loads give zero
 * elsewhere); with a constant n of VEC they are the plain instruction. Vectors add, multiply and divide with
 * C's operators. */
#pragma once
#include <immintrin.h>
#include <stdint.h>

#define VEC 16
#define vec_f32 __m512
#define vec_i32 __m512i
#define VEC_INLINE static inline __attribute__((always_inline))
#define VEC_FULL(n) (__builtin_constant_p(n) && (n) == VEC)

VEC_INLINE __mmask16 vec_first(int n) {
  return (__mmask16)((1u << n) - 1);
}

VEC_INLINE vec_f32 vec_set(float x) {
  return _mm512_set1_ps(x);
}

VEC_INLINE vec_f32 vec_load(const float *p) {
  return _mm512_loadu_ps(p);
}

VEC_INLINE void vec_store(float *p, vec_f32 v) {
  _mm512_storeu_ps(p, v);
}

/* Past the cache; p is aligned to the vector. */
VEC_INLINE void vec_stream(float *p, vec_f32 v) {
  _mm512_stream_ps(p, v);
}

VEC_INLINE vec_f32 vec_load_n(const float *p, int n) {
  return VEC_FULL(n) ? vec_load(p) : _mm512_maskz_loadu_ps(vec_first(n), p);
}

VEC_INLINE void vec_store_n(float *p, int n, vec_f32 v) {
  if (VEC_FULL(n))
    vec_store(p, v);
  else
    _mm512_mask_storeu_ps(p, vec_first(n), v);
}

/* Zero in the lanes from n on. */
VEC_INLINE vec_f32 vec_keep_n(vec_f32 v, int n) {
  return VEC_FULL(n) ? v : _mm512_maskz_mov_ps(vec_first(n), v);
}

/* 16-bit words, zero-extended to a lane each. */
VEC_INLINE vec_i32 vec_load_u16_n(const uint16_t *p, int n) {
  __m256i half =
      VEC_FULL(n) ? _mm256_loadu_si256((const __m256i *)p) : _mm256_maskz_loadu_epi16(vec_first(n), p);
  return _mm512_cvtepu16_epi32(half);
}

VEC_INLINE vec_i32 vec_load_s16_n(const uint16_t *p, int n) {
  __m256i half =
      VEC_FULL(n) ? _mm256_loadu_si256((const __m256i *)p) : _mm256_maskz_loadu_epi16(vec_first(n), p);
  return _mm512_cvtepi16_epi32(half);
}

/* The low 16 bits of every lane. */
VEC_INLINE void vec_store_u16_n(uint16_t *p, int n, vec_i32 v) {
  __m256i half = _mm512_cvtepi32_epi16(v);
  if (VEC_FULL(n))
    _mm256_storeu_si256((__m256i *)p, half);
  else
    _mm256_mask_storeu_epi16(p, vec_first(n), half);
}

/* Bytes, extended to a lane each. */
VEC_INLINE vec_i32 vec_load_u8_n(const uint8_t *p, int n) {
  return _mm512_cvtepu8_epi32(VEC_FULL(n) ? _mm_loadu_si128((const __m128i *)p)
                                          : _mm_maskz_loadu_epi8(vec_first(n), p));
}

VEC_INLINE vec_i32 vec_load_s8_n(const uint8_t *p, int n) {
  return _mm512_cvtepi8_epi32(VEC_FULL(n) ? _mm_loadu_si128((const __m128i *)p)
                                          : _mm_maskz_loadu_epi8(vec_first(n), p));
}

/* The low 8 bits of every lane. */
VEC_INLINE void vec_store_u8_n(uint8_t *p, int n, vec_i32 v) {
  if (VEC_FULL(n))
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(v));
  else
    _mm_mask_storeu_epi8(p, vec_first(n), _mm512_cvtepi32_epi8(v));
}

VEC_INLINE vec_i32 vec_set_i32(int x) {
  return _mm512_set1_epi32(x);
}

VEC_INLINE vec_i32 vec_add_i32(vec_i32 a, vec_i32 b) {
  return _mm512_add_epi32(a, b);
}

/* The low 32 bits of the product. */
VEC_INLINE vec_i32 vec_mul_i32(vec_i32 a, vec_i32 b) {
  return _mm512_mullo_epi32(a, b);
}

/* 0, 1, 2, ... */
VEC_INLINE vec_i32 vec_count(void) {
  return _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

/* The magnitude of a number or the bits of largest, whichever is larger. */
VEC_INLINE vec_i32 vec_larger_bits(vec_i32 largest, vec_f32 v) {
  return _mm512_castps_si512(_mm512_range_ps(_mm512_castsi512_ps(largest), v, 0x0b));
}

VEC_INLINE int vec_largest_i32(vec_i32 v) {
  return _mm512_reduce_max_epi32(v);
}

/* The bits of a where mask has ones, those of b elsewhere. */
VEC_INLINE vec_i32 vec_pick(vec_i32 mask, vec_i32 a, vec_i32 b) {
  return _mm512_ternarylogic_epi32(mask, a, b, 0xca);
}

VEC_INLINE vec_i32 vec_and_i32(vec_i32 a, vec_i32 b) {
  return _mm512_and_si512(a, b);
}

VEC_INLINE vec_i32 vec_or_i32(vec_i32 a, vec_i32 b) {
  return _mm512_or_si512(a, b);
}

VEC_INLINE vec_i32 vec_shift_left(vec_i32 a, int bits) {
  return _mm512_slli_epi32(a, bits);
}

VEC_INLINE vec_i32 vec_shift_right(vec_i32 a, int bits) {
  return _mm512_srli_epi32(a, bits);
}

VEC_INLINE vec_i32 vec_bits(vec_f32 v) {
  return _mm512_castps_si512(v);
}

VEC_INLINE vec_f32 vec_from_bits(vec_i32 v) {
  return _mm512_castsi512_ps(v);
}

/* a where v is a number, b where it is NaN. */
VEC_INLINE vec_i32 vec_if_number(vec_f32 v, vec_i32 a, vec_i32 b) {
  return _mm512_mask_mov_epi32(a, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), b);
}

VEC_INLINE vec_f32 vec_fma(vec_f32 a, vec_f32 b, vec_f32 c) { /* a b + c */
  return _mm512_fmadd_ps(a, b, c);
}

VEC_INLINE vec_f32 vec_fms(vec_f32 a, vec_f32 b, vec_f32 c) { /* a b - c */
  return _mm512_fmsub_ps(a, b, c);
}

VEC_INLINE vec_f32 vec_fnma(vec_f32 a, vec_f32 b, vec_f32 c) { /* c - a b */
  return _mm512_fnmadd_ps(a, b, c);
}

VEC_INLINE vec_f32 vec_sqrt(vec_f32 v) {
  return _mm512_sqrt_ps(v);
}

/* v held in [low, high]; NaN stays NaN (the instructions return their second operand then). */
VEC_INLINE vec_f32 vec_clamp(vec_f32 v, float low, float high) {
  return _mm512_max_ps(vec_set(low), _mm512_min_ps(vec_set(high), v));
}

VEC_INLINE vec_f32 vec_round(vec_f32 v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* v 2^n for integral n. */
VEC_INLINE vec_f32 vec_scale2(vec_f32 v, vec_f32 n) {
  return _mm512_scalef_ps(v, n);
}

/* 1 / v to about an ulp, for v below 2^126. */
VEC_INLINE vec_f32 vec_reciprocal(vec_f32 v) {
  vec_f32 r = _mm512_rcp14_ps(v);
  return vec_fma(r, vec_fnma(v, r, vec_set(1)), r);
}

VEC_INLINE float vec_sum(vec_f32 v) {
  return _mm512_reduce_add_ps(v);
}

/* Even and odd elements of [re, im, re, im, ...] rotated: (a c - b s, a s + b c), or backwards (a c + b s, b
 * c - a s). */
VEC_INLINE vec_f32 vec_rotate(vec_f32 v, vec_f32 cos_sin, int backward) {
  vec_f32 c = _mm512_moveldup_ps(cos_sin), s = _mm512_movehdup_ps(cos_sin);
  vec_f32 crossed = _mm512_permute_ps(v, 0xb1) * s;
  return backward ? _mm512_fmsubadd_ps(v, c, crossed) : _mm512_fmaddsub_ps(v, c, crossed);
}

#define vec_f64 __m512d
#define vec_f64_set(x) _mm512_set1_pd(x)

/* sum + squares of the 8 doubles at one half of the lanes. */
VEC_INLINE vec_f64 vec_add_squares(vec_f64 sum, vec_f32 v, int upper) {
  __m512d d = _mm512_cvtps_pd(upper ? _mm512_extractf32x8_ps(v, 1) : _mm512_castps512_ps256(v));
  return _mm512_fmadd_pd(d, d, sum);
}

VEC_INLINE double vec_sum_f64(vec_f64 v) {
  return _mm512_reduce_add_pd(v);
}
