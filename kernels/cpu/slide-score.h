/* Private to the AVX-512 files of the slide family: scores of window points from scores of cells, and weights
 * of points back onto cells.
 *
 * Score rows are [lane][cell of the halo]. A lane gathers the 8 corners of its point as 4 pairs of neighbours
 * in x; planes and lines that no lane reads are skipped, which changes no bit: their weights are exactly 0.
 * (Skewing the rows into [relative cell][lane] and weighting whole boxes of cells needs no gathers for a
 * point, but was slower from two cells an axis on.) */
#pragma once
#include "slide-tile.h"

/* A value and its derivatives by t, y, x. */
struct slide_jet {
  __m512 value, slope[3];
};

/* Offset of corner pair (t, y). */
static inline __m512i slide_corner_pair(const struct slide_tile *tile, const struct slide_point *point, int t,
                                        int y) {
  __m512i offset = point->cell[0];
  if (t)
    offset = _mm512_mask_add_epi32(offset, point->upper[0], offset, _mm512_set1_epi32(tile->stride_t));
  if (y)
    offset = _mm512_mask_add_epi32(offset, point->upper[1], offset, _mm512_set1_epi32(tile->stride_y));
  return offset;
}

/* values at the offset and at the next cell */
static inline void slide_pair_read(const float *rows, __m512i offset, __m512 *lower, __m512 *upper) {
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  __m512 a = _mm512_castsi512_ps(_mm512_i32gather_epi64(_mm512_castsi512_si256(offset), rows, 4));
  __m512 b = _mm512_castsi512_ps(_mm512_i32gather_epi64(_mm512_extracti64x4_epi64(offset, 1), rows, 4));
  *lower = _mm512_permutex2var_ps(a, even, b);
  *upper = _mm512_permutex2var_ps(a, odd, b);
}

static inline void slide_pair_add(float *rows, __m512i offset, __m512 amount, __m512 lower, __m512 upper) {
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  __m256i first = _mm512_castsi512_si256(offset), second = _mm512_extracti64x4_epi64(offset, 1);
  __m512 a = _mm512_castsi512_ps(_mm512_i32gather_epi64(first, rows, 4));
  __m512 b = _mm512_castsi512_ps(_mm512_i32gather_epi64(second, rows, 4));
  a = _mm512_fmadd_ps(_mm512_permutex2var_ps(amount, low, amount), _mm512_permutex2var_ps(lower, low, upper),
                      a);
  b = _mm512_fmadd_ps(_mm512_permutex2var_ps(amount, high, amount),
                      _mm512_permutex2var_ps(lower, high, upper), b);
  _mm512_i32scatter_epi64(rows, first, _mm512_castps_si512(a), 4);
  _mm512_i32scatter_epi64(rows, second, _mm512_castps_si512(b), 4);
}

static inline void slide_corner_weights(const struct slide_point *point, __m512 w[3][2]) {
  for (int a = 0; a < 3; a++) {
    w[a][0] = _mm512_sub_ps(_mm512_set1_ps(1), point->fraction[a]);
    w[a][1] = point->fraction[a];
  }
}

/* The sampled score of a point. */
static inline __m512 slide_corner_value(const struct slide_tile *tile, const struct slide_point *point,
                                        const float *rows) {
  __m512 w[3][2], plane[2], value;
  int ts = point->upper[0] ? 2 : 1, ys = point->upper[1] ? 2 : 1;
  slide_corner_weights(point, w);
  for (int t = 0; t < ts; t++) {
    __m512 line[2];
    for (int y = 0; y < ys; y++) {
      __m512 lower, upper;
      slide_pair_read(rows, slide_corner_pair(tile, point, t, y), &lower, &upper);
      line[y] = _mm512_fmadd_ps(w[2][1], upper, _mm512_mul_ps(w[2][0], lower));
    }
    plane[t] = _mm512_mul_ps(w[1][0], line[0]);
    if (ys == 2)
      plane[t] = _mm512_fmadd_ps(w[1][1], line[1], plane[t]);
  }
  value = _mm512_mul_ps(w[0][0], plane[0]);
  return ts == 2 ? _mm512_fmadd_ps(w[0][1], plane[1], value) : value;
}

/* rows += amount times the weights of the point's corners. */
static inline void slide_corner_add(const struct slide_tile *tile, const struct slide_point *point,
                                    __m512 amount, float *rows) {
  __m512 w[3][2];
  int ts = point->upper[0] ? 2 : 1, ys = point->upper[1] ? 2 : 1;
  slide_corner_weights(point, w);
  for (int t = 0; t < ts; t++) {
    __m512 plane = _mm512_mul_ps(amount, w[0][t]);
    for (int y = 0; y < ys; y++)
      slide_pair_add(rows, slide_corner_pair(tile, point, t, y), _mm512_mul_ps(plane, w[1][y]), w[2][0],
                     w[2][1]);
  }
}

static inline struct slide_jet slide_corner_jet(const struct slide_tile *tile,
                                                const struct slide_point *point, const float *rows) {
  __m512 w[3][2], value[2], slope_y[2], slope_x[2];
  struct slide_jet jet;
  slide_corner_weights(point, w);
  for (int t = 0; t < 2; t++) {
    __m512 line[2], line_x[2];
    for (int y = 0; y < 2; y++) {
      __m512 lower, upper;
      slide_pair_read(rows, slide_corner_pair(tile, point, t, y), &lower, &upper);
      line[y] = _mm512_fmadd_ps(w[2][1], upper, _mm512_mul_ps(w[2][0], lower));
      line_x[y] = _mm512_maskz_sub_ps(point->upper[2], upper, lower);
    }
    value[t] = _mm512_fmadd_ps(w[1][1], line[1], _mm512_mul_ps(w[1][0], line[0]));
    slope_y[t] = _mm512_maskz_sub_ps(point->upper[1], line[1], line[0]);
    slope_x[t] = _mm512_fmadd_ps(w[1][1], line_x[1], _mm512_mul_ps(w[1][0], line_x[0]));
  }
  jet.value = _mm512_fmadd_ps(w[0][1], value[1], _mm512_mul_ps(w[0][0], value[0]));
  jet.slope[0] = _mm512_maskz_sub_ps(point->upper[0], value[1], value[0]);
  jet.slope[1] = _mm512_fmadd_ps(w[0][1], slope_y[1], _mm512_mul_ps(w[0][0], slope_y[0]));
  jet.slope[2] = _mm512_fmadd_ps(w[0][1], slope_x[1], _mm512_mul_ps(w[0][0], slope_x[0]));
  return jet;
}
