/* Private to the AVX-512 files of the slide family: the vector functions it needs, sixteen lanes at a time.
 */
#pragma once
#include <immintrin.h>
#include <stdint.h>

#define SLIDE_LANES 16

static inline int64_t slide_round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

static inline __mmask16 slide_first(int64_t n) {
  return n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1u << n) - 1);
}

/* e^r - 1 for |r| <= ln 2 / 2: Taylor series, the first term left out is below 6e-9 of r. */
static inline __m512 slide_small_expm1(__m512 r) {
  __m512 sum = _mm512_set1_ps(1 / 5040.f);
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1 / 720.f));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1 / 120.f));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1 / 24.f));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(1 / 6.f));
  sum = _mm512_fmadd_ps(sum, r, _mm512_set1_ps(0.5f));
  return _mm512_fmadd_ps(_mm512_mul_ps(sum, r), r, r);
}

/* 2^x, x <= 0 in use; underflows to 0. */
static inline __m512 slide_exp2(__m512 x) {
  __m512 whole, r;
  x = _mm512_max_ps(x, _mm512_set1_ps(-150));
  whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  r = _mm512_mul_ps(_mm512_sub_ps(x, whole), _mm512_set1_ps(0.69314718056f));
  return _mm512_scalef_ps(_mm512_add_ps(slide_small_expm1(r), _mm512_set1_ps(1)), whole);
}

/* tanh |x| = t / (t + 2) with t = e^(2 |x|) - 1. */
static inline __m512 slide_tanh_large(__m512 x) {
  const __m512 sign = _mm512_set1_ps(-0.f);
  __m512 twice = _mm512_andnot_ps(sign, x), whole, r, power, t, below, inverse;
  twice = _mm512_min_ps(_mm512_add_ps(twice, twice), _mm512_set1_ps(20));
  whole = _mm512_roundscale_ps(_mm512_mul_ps(twice, _mm512_set1_ps(1.44269504089f)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  /* ln 2 in two parts: whole * high is exact */
  r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0x1.62e4p-1f), twice);
  r = _mm512_fnmadd_ps(whole, _mm512_set1_ps(0x1.7f7d1cp-20f), r);
  power = _mm512_scalef_ps(_mm512_set1_ps(1), whole);
  t = _mm512_fmadd_ps(power, slide_small_expm1(r), _mm512_sub_ps(power, _mm512_set1_ps(1)));
  below = _mm512_add_ps(t, _mm512_set1_ps(2));
  inverse = _mm512_rcp14_ps(below);
  inverse = _mm512_fmadd_ps(_mm512_fnmadd_ps(below, inverse, _mm512_set1_ps(1)), inverse, inverse);
  return _mm512_or_ps(_mm512_mul_ps(t, inverse), _mm512_and_ps(sign, x));
}

/* Each lane chooses by its own value, so a result does not depend on its neighbours. tanh 0 is 0. */
static inline __m512 slide_tanh(__m512 x) {
  /* Taylor series; at 0.35 the first term left out is below 2e-8 of x */
  __m512 square = _mm512_mul_ps(x, x), sum = _mm512_set1_ps(-1382 / 155925.f);
  __mmask16 large = _mm512_cmp_ps_mask(_mm512_abs_ps(x), _mm512_set1_ps(0.35f), _CMP_NLE_UQ);
  sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(62 / 2835.f));
  sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(-17 / 315.f));
  sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(2 / 15.f));
  sum = _mm512_fmadd_ps(sum, square, _mm512_set1_ps(-1 / 3.f));
  sum = _mm512_fmadd_ps(_mm512_mul_ps(sum, square), x, x);
  return large ? _mm512_mask_mov_ps(sum, large, slide_tanh_large(x)) : sum;
}

/* The 16 x 16 matrix r[row] of 32-bit elements, transposed in place. */
static inline __attribute__((always_inline)) void slide_transpose(__m512i r[16]) {
  __m512i s[16];
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
  for (int i = 0; i < 4; i++) {
    s[i] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    s[i + 4] = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    s[i + 8] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    s[i + 12] = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; i++) {
    r[i] = _mm512_shuffle_i32x4(s[i], s[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_i32x4(s[i], s[i + 8], 0xdd);
    r[i + 4] = _mm512_shuffle_i32x4(s[i + 4], s[i + 12], 0x88);
    r[i + 12] = _mm512_shuffle_i32x4(s[i + 4], s[i + 12], 0xdd);
  }
}
