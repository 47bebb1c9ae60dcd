/* Private: bfloat16 tiles of the attention family, and the vector functions that work beside them.
 *
 * Scores are kept transposed, S^T [key, query]: a vector holds one key's scores for 16 queries, so maxima,
 * sums and weights of a query never leave their lane. A tile is 1 KB, contiguous: A tile [16 rows, 32 of the
 * summed dimension]             left operand, 16 x 64 bytes B tile [16 pairs of the summed dimension, 16
 * columns, 2] right operand C tile [16 rows, 16 columns] float32 From rows x [i, c] of a float32 matrix: A
 * (rows i, sum over c) converts rows; B (columns i, sum over c) is the same transposed as 16 x 16 pairs; B
 * (columns c, sum over i) interleaves pairs of rows; A (rows c, sum over i) is that transposed. Rows and
 * columns past the end are zero. */
#pragma once
#include "attention-avx512.h"

#define TILE 512   /* bf16 elements of an A or B tile */
#define TILE_C 256 /* floats of a C tile */

/* One head of q, k, v, dO... */
struct attention_rows {
  const float *base;
  int64_t ld, n, dim;
  const int64_t *rows;
};

static inline const float *attention_row(const struct attention_rows *x, int64_t i) {
  return x->base + (x->rows ? x->rows[i] : i) * x->ld;
}

static inline __attribute__((always_inline)) void tile_store(uint16_t *tile, const __m512i r[16]) {
  for (int i = 0; i < 16; i++)
    _mm512_store_si512(tile + i * 32, r[i]);
}

/* Two vectors as bf16, interleaved: element 2 i from even, 2 i + 1 from odd. Ties go away from zero. */
static inline __m512i attention_interleave(__m512 even, __m512 odd) {
  const __m512i half = _mm512_set1_epi32(0x8000);
  __m512i low = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(even), half), 16);
  return _mm512_mask_blend_epi16(0xaaaaaaaa, low, _mm512_add_epi32(_mm512_castps_si512(odd), half));
}

/* A block of rows and columns that lies inside and needs no table. */
static inline int attention_plain(const struct attention_rows *x, int64_t i0, int64_t rows, int64_t c0,
                                  int64_t columns) {
  return !x->rows && i0 + rows <= x->n && c0 + columns <= x->dim;
}

/* Rows [i0, i0 + 16), columns [c0, c0 + 32): the rows of an A tile. */
static inline __attribute__((always_inline)) void tile_read_rows(const struct attention_rows *x, int64_t i0,
                                                                 int64_t c0, __m512i r[16]) {
  if (attention_plain(x, i0, 16, c0, 32)) {
    const float *row = x->base + i0 * x->ld + c0;
    for (int i = 0; i < 16; i++, row += x->ld)
      r[i] = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(row + 16), _mm512_loadu_ps(row));
    return;
  }
  __mmask16 low = attention_mask(x->dim - c0), high = attention_mask(x->dim - c0 - 16);
  for (int i = 0; i < 16; i++) {
    r[i] = _mm512_setzero_si512();
    if (i0 + i < x->n) {
      const float *row = attention_row(x, i0 + i) + c0;
      r[i] = (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(high, row + 16),
                                          _mm512_maskz_loadu_ps(low, row));
    }
  }
}

/* Rows [i0, i0 + 32), columns [c0, c0 + 16): the rows of a B tile whose sum runs over i. */
static inline __attribute__((always_inline)) void tile_read_pairs(const struct attention_rows *x, int64_t i0,
                                                                  int64_t c0, __m512i r[16]) {
  if (attention_plain(x, i0, 32, c0, 16)) {
    const float *row = x->base + i0 * x->ld + c0;
    for (int i = 0; i < 16; i++, row += 2 * x->ld)
      r[i] = attention_interleave(_mm512_loadu_ps(row), _mm512_loadu_ps(row + x->ld));
    return;
  }
  __mmask16 mask = attention_mask(x->dim - c0);
  for (int i = 0; i < 16; i++) {
    __m512 even = _mm512_setzero_ps(), odd = even;
    if (i0 + 2 * i < x->n)
      even = _mm512_maskz_loadu_ps(mask, attention_row(x, i0 + 2 * i) + c0);
    if (i0 + 2 * i + 1 < x->n)
      odd = _mm512_maskz_loadu_ps(mask, attention_row(x, i0 + 2 * i + 1) + c0);
    r[i] = attention_interleave(even, odd);
  }
}

/* Squared Euclidean norms of rows [i0, i0 + 16); 0 past the end. */
static inline __m512 attention_norms(const struct attention_rows *x, int64_t i0) {
  __m512 r[16];
  for (int i = 0; i < 16; i++) {
    r[i] = _mm512_setzero_ps();
    if (i0 + i < x->n) {
      const float *row = attention_row(x, i0 + i);
      int64_t c = 0;
      for (; c + 16 <= x->dim; c += 16)
        r[i] = _mm512_fmadd_ps(_mm512_loadu_ps(row + c), _mm512_loadu_ps(row + c), r[i]);
      if (c < x->dim) {
        __m512 v = _mm512_maskz_loadu_ps(attention_mask(x->dim - c), row + c);
        r[i] = _mm512_fmadd_ps(v, v, r[i]);
      }
    }
  }
  /* Sums of all lanes of 16 vectors at once: halves, then quarters of 128 bits, then the four of them. */
  for (int i = 0; i < 16; i += 2)
    r[i] = _mm512_add_ps(_mm512_unpacklo_ps(r[i], r[i + 1]), _mm512_unpackhi_ps(r[i], r[i + 1]));
  for (int i = 0; i < 16; i += 4) {
    __m512d a = _mm512_castps_pd(r[i]), b = _mm512_castps_pd(r[i + 2]);
    r[i] =
        _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(a, b)), _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
  }
  for (int i = 0; i < 16; i += 8)
    r[i] =
        _mm512_add_ps(_mm512_shuffle_f32x4(r[i], r[i + 4], 0x88), _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd));
  return _mm512_add_ps(_mm512_shuffle_f32x4(r[0], r[8], 0x88), _mm512_shuffle_f32x4(r[0], r[8], 0xdd));
}

/* 2^x, relative error 8e-5: a twenty-fifth of the rounding to bf16 that follows. 0 below the range, infinity
 * above. Minimax polynomial of 2^f, f in [0,1). */
static inline __m512 attention_exp2(__m512 x) {
  __m512 f = _mm512_reduce_ps(x, 0x09); /* x - floor (x) */
  __m512 y = _mm512_fmadd_ps(_mm512_set1_ps(0.0780245227f), f, _mm512_set1_ps(0.226067155f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0.695833541f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0.999925219f));
  return _mm512_scalef_ps(y, x);
}

/* log2 x of normal positive x, a few ulp: x = 2^e m, m in [0.75,1.5), series of atanh ((m - 1) / (m + 1)). */
static inline __m512 attention_log2(__m512 x) {
  const __m512 one = _mm512_set1_ps(1);
  __m512 m = _mm512_getmant_ps(x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
  __m512 e = _mm512_getexp_ps(_mm512_div_ps(x, m));
  __m512 s = _mm512_div_ps(_mm512_sub_ps(m, one), _mm512_add_ps(m, one)), z = _mm512_mul_ps(s, s);
  __m512 y = _mm512_fmadd_ps(z, _mm512_set1_ps(2.8853900818f / 9), _mm512_set1_ps(2.8853900818f / 7));
  y = _mm512_fmadd_ps(y, z, _mm512_set1_ps(2.8853900818f / 5));
  y = _mm512_fmadd_ps(y, z, _mm512_set1_ps(2.8853900818f / 3));
  y = _mm512_fmadd_ps(y, z, _mm512_set1_ps(2.8853900818f));
  return _mm512_fmadd_ps(y, s, e);
}
