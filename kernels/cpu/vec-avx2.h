/* Vectors of 8 float32 lanes: the names of vec-avx512.h (which says what they mean) for AVX2 and FMA. */
#pragma once
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define VEC 8
#define vec_f32 __m256
#define vec_i32 __m256i
#define VEC_INLINE static inline __attribute__((always_inline))
#define VEC_FULL(n) (__builtin_constant_p(n) && (n) == VEC)

VEC_INLINE __m256i vec_first(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

VEC_INLINE vec_f32 vec_set(float x) {
  return _mm256_set1_ps(x);
}

VEC_INLINE vec_f32 vec_load(const float *p) {
  return _mm256_loadu_ps(p);
}

VEC_INLINE void vec_store(float *p, vec_f32 v) {
  _mm256_storeu_ps(p, v);
}

VEC_INLINE void vec_stream(float *p, vec_f32 v) {
  _mm256_stream_ps(p, v);
}

VEC_INLINE vec_f32 vec_load_n(const float *p, int n) {
  return VEC_FULL(n) ? vec_load(p) : _mm256_maskload_ps(p, vec_first(n));
}

VEC_INLINE void vec_store_n(float *p, int n, vec_f32 v) {
  if (VEC_FULL(n))
    vec_store(p, v);
  else
    _mm256_maskstore_ps(p, vec_first(n), v);
}

VEC_INLINE vec_f32 vec_keep_n(vec_f32 v, int n) {
  return VEC_FULL(n) ? v : _mm256_and_ps(v, _mm256_castsi256_ps(vec_first(n)));
}

/* AVX2 masks no 16-bit words: a tail goes through a buffer. */
VEC_INLINE __m128i vec_half_n(const uint16_t *p, int n) {
  uint16_t tail[VEC] = {0};
  if (VEC_FULL(n))
    return _mm_loadu_si128((const __m128i *)p);
  memcpy(tail, p, (size_t)n * sizeof *p);
  return _mm_loadu_si128((const __m128i *)tail);
}

VEC_INLINE vec_i32 vec_load_u16_n(const uint16_t *p, int n) {
  return _mm256_cvtepu16_epi32(vec_half_n(p, n));
}

VEC_INLINE vec_i32 vec_load_s16_n(const uint16_t *p, int n) {
  return _mm256_cvtepi16_epi32(vec_half_n(p, n));
}

VEC_INLINE void vec_store_u16_n(uint16_t *p, int n, vec_i32 v) {
  __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xffff));
  __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  uint16_t tail[VEC];
  if (VEC_FULL(n)) {
    _mm_storeu_si128((__m128i *)p, half);
    return;
  }
  _mm_storeu_si128((__m128i *)tail, half);
  memcpy(p, tail, (size_t)n * sizeof *p);
}

VEC_INLINE __m128i vec_bytes_n(const uint8_t *p, int n) {
  uint8_t tail[VEC] = {0};
  if (VEC_FULL(n))
    return _mm_loadl_epi64((const __m128i *)p);
  memcpy(tail, p, (size_t)n);
  return _mm_loadl_epi64((const __m128i *)tail);
}

VEC_INLINE vec_i32 vec_load_u8_n(const uint8_t *p, int n) {
  return _mm256_cvtepu8_epi32(vec_bytes_n(p, n));
}

VEC_INLINE vec_i32 vec_load_s8_n(const uint8_t *p, int n) {
  return _mm256_cvtepi8_epi32(vec_bytes_n(p, n));
}

VEC_INLINE void vec_store_u8_n(uint8_t *p, int n, vec_i32 v) {
  __m256i low = _mm256_and_si256(v, _mm256_set1_epi32(0xff));
  __m128i half = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  uint8_t tail[VEC];
  half = _mm_packus_epi16(half, half);
  if (VEC_FULL(n)) {
    _mm_storel_epi64((__m128i *)p, half);
    return;
  }
  _mm_storel_epi64((__m128i *)tail, half);
  memcpy(p, tail, (size_t)n);
}

VEC_INLINE vec_i32 vec_set_i32(int x) {
  return _mm256_set1_epi32(x);
}

VEC_INLINE vec_i32 vec_add_i32(vec_i32 a, vec_i32 b) {
  return _mm256_add_epi32(a, b);
}

VEC_INLINE vec_i32 vec_mul_i32(vec_i32 a, vec_i32 b) {
  return _mm256_mullo_epi32(a, b);
}

VEC_INLINE vec_i32 vec_count(void) {
  return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}

VEC_INLINE vec_i32 vec_larger_bits(vec_i32 largest, vec_f32 v) {
  __m256i bits = _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(0x7fffffff));
  return _mm256_max_epi32(largest, bits);
}

VEC_INLINE int vec_largest_i32(vec_i32 v) {
  __m128i s = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_max_epi32(s, _mm_shuffle_epi32(s, 0x4e));
  return _mm_cvtsi128_si32(_mm_max_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

VEC_INLINE vec_i32 vec_pick(vec_i32 mask, vec_i32 a, vec_i32 b) {
  return _mm256_or_si256(_mm256_and_si256(mask, a), _mm256_andnot_si256(mask, b));
}

VEC_INLINE vec_i32 vec_and_i32(vec_i32 a, vec_i32 b) {
  return _mm256_and_si256(a, b);
}

VEC_INLINE vec_i32 vec_or_i32(vec_i32 a, vec_i32 b) {
  return _mm256_or_si256(a, b);
}

VEC_INLINE vec_i32 vec_shift_left(vec_i32 a, int bits) {
  return _mm256_slli_epi32(a, bits);
}

VEC_INLINE vec_i32 vec_shift_right(vec_i32 a, int bits) {
  return _mm256_srli_epi32(a, bits);
}

VEC_INLINE vec_i32 vec_bits(vec_f32 v) {
  return _mm256_castps_si256(v);
}

VEC_INLINE vec_f32 vec_from_bits(vec_i32 v) {
  return _mm256_castsi256_ps(v);
}

VEC_INLINE vec_i32 vec_if_number(vec_f32 v, vec_i32 a, vec_i32 b) {
  return _mm256_blendv_epi8(a, b, vec_bits(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)));
}

VEC_INLINE vec_f32 vec_fma(vec_f32 a, vec_f32 b, vec_f32 c) {
  return _mm256_fmadd_ps(a, b, c);
}

VEC_INLINE vec_f32 vec_fms(vec_f32 a, vec_f32 b, vec_f32 c) {
  return _mm256_fmsub_ps(a, b, c);
}

VEC_INLINE vec_f32 vec_fnma(vec_f32 a, vec_f32 b, vec_f32 c) {
  return _mm256_fnmadd_ps(a, b, c);
}

VEC_INLINE vec_f32 vec_sqrt(vec_f32 v) {
  return _mm256_sqrt_ps(v);
}

VEC_INLINE vec_f32 vec_clamp(vec_f32 v, float low, float high) {
  return _mm256_max_ps(vec_set(low), _mm256_min_ps(vec_set(high), v));
}

VEC_INLINE vec_f32 vec_round(vec_f32 v) {
  return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

/* In two factors, so that results near the ends of the range do not overflow or vanish early: |n| below 252.
 */
VEC_INLINE vec_f32 vec_scale2(vec_f32 v, vec_f32 n) {
  __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1), bias = _mm256_set1_epi32(127);
  __m256i rest = _mm256_sub_epi32(whole, half);
  v *= vec_from_bits(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
  return v * vec_from_bits(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
}

VEC_INLINE vec_f32 vec_reciprocal(vec_f32 v) {
  return vec_set(1) / v;
}

VEC_INLINE float vec_sum(vec_f32 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

VEC_INLINE vec_f32 vec_rotate(vec_f32 v, vec_f32 cos_sin, int backward) {
  vec_f32 c = _mm256_moveldup_ps(cos_sin), s = _mm256_movehdup_ps(cos_sin);
  vec_f32 crossed = _mm256_permute_ps(v, 0xb1) * s;
  return backward ? _mm256_fmsubadd_ps(v, c, crossed) : _mm256_fmaddsub_ps(v, c, crossed);
}

#define vec_f64 __m256d
#define vec_f64_set(x) _mm256_set1_pd(x)

VEC_INLINE vec_f64 vec_add_squares(vec_f64 sum, vec_f32 v, int upper) {
  __m256d d = _mm256_cvtps_pd(upper ? _mm256_extractf128_ps(v, 1) : _mm256_castps256_ps128(v));
  return _mm256_fmadd_pd(d, d, sum);
}

VEC_INLINE double vec_sum_f64(vec_f64 v) {
  __m128d s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
}
