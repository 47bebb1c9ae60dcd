/* Private to the AVX-512 files of the slide family: scores of window points from scores of cells, and weights
 * of points back onto cells.
 *
 * Score rows are [lane][cell of the halo]. In box mode they are first gathered into [relative cell][lane];
 * each point is then a weighted sum over its box of such vectors, weights being 0 outside a lane's own
 * corners. Otherwise each lane gathers its 8 corners, as 4 pairs of neighbours. Both do the same
 * multiply-adds in the same order, apart from terms that are exactly 0, so the choice changes no bit. */
#pragma once
#include "slide-tile.h"

/* Weights of the cells of a point's box along an axis. */
static inline void slide_axis_weights(const struct slide_point *point, int axis, __m512 *weights) {
  __m512 lower = _mm512_sub_ps(_mm512_set1_ps(1), point->fraction[axis]);
  for (int i = 0; i < point->size[axis]; i++) {
    __mmask16 at = _mm512_cmpeq_epi32_mask(point->cell[axis], _mm512_set1_epi32(point->low[axis] + i));
    __mmask16 after = _mm512_cmpeq_epi32_mask(point->cell[axis], _mm512_set1_epi32(point->low[axis] + i - 1));
    weights[i] = _mm512_mask_mov_ps(_mm512_maskz_mov_ps(after, point->fraction[axis]), at, lower);
  }
}

/* The same with the derivatives: -1 at the lower corner, 1 at the upper one. */
static inline void slide_axis_slopes(const struct slide_point *point, int axis, __m512 *weights,
                                     __m512 *slopes) {
  __m512 lower = _mm512_sub_ps(_mm512_set1_ps(1), point->fraction[axis]);
  for (int i = 0; i < point->size[axis]; i++) {
    __mmask16 at = _mm512_cmpeq_epi32_mask(point->cell[axis], _mm512_set1_epi32(point->low[axis] + i));
    __mmask16 after = _mm512_cmpeq_epi32_mask(point->cell[axis], _mm512_set1_epi32(point->low[axis] + i - 1));
    weights[i] = _mm512_mask_mov_ps(_mm512_maskz_mov_ps(after, point->fraction[axis]), at, lower);
    slopes[i] = _mm512_mask_mov_ps(_mm512_maskz_mov_ps(after & point->upper[axis], _mm512_set1_ps(1)),
                                   at & point->upper[axis], _mm512_set1_ps(-1));
  }
}

/* Box mode: what takes a relative cell to a place in the score rows. */
struct slide_skew {
  __m512i offset;                     /* place of relative cell (0,0,0), lane * ld included */
  __mmask16 valid[3][SLIDE_BOX_AXIS]; /* lanes for which the cell lies in the hull */
};

static inline __m512i slide_lane_offsets(const struct slide_tile *tile, const struct msk_slide *p) {
  __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i offset = _mm512_mullo_epi32(lane, _mm512_set1_epi32((int)tile->ld));
  offset = _mm512_add_epi32(offset, _mm512_set1_epi32((int)slide_tile_cell(tile, p, 0, 0, 0)));
  offset = _mm512_add_epi32(offset, _mm512_mullo_epi32(tile->origin[0], _mm512_set1_epi32(tile->stride_t)));
  offset = _mm512_add_epi32(offset, _mm512_mullo_epi32(tile->origin[1], _mm512_set1_epi32(tile->stride_y)));
  return _mm512_add_epi32(offset, tile->origin[2]);
}

static inline void slide_skew_begin(struct slide_skew *skew, const struct slide_tile *tile) {
  for (int a = 0; a < 3; a++)
    for (int64_t i = 0; i < tile->size[a]; i++) {
      __m512i cell = _mm512_add_epi32(tile->origin[a], _mm512_set1_epi32((int)(tile->low[a] + i)));
      skew->valid[a][i] = _mm512_cmpge_epi32_mask(cell, _mm512_set1_epi32((int)tile->first[a])) &
                          _mm512_cmple_epi32_mask(cell, _mm512_set1_epi32((int)tile->last[a]));
    }
}

/* near [relative cell][lane] from rows [lane][cell]. */
static inline void slide_skew_read(const struct slide_skew *skew, const struct slide_tile *tile,
                                   const float *rows, __m512 *near) {
  for (int64_t t = 0; t < tile->size[0]; t++)
    for (int64_t y = 0; y < tile->size[1]; y++) {
      __mmask16 line = skew->valid[0][t] & skew->valid[1][y];
      int64_t place =
          (tile->low[0] + t) * tile->stride_t + (tile->low[1] + y) * tile->stride_y + tile->low[2];
      for (int64_t x = 0; x < tile->size[2]; x++)
        *near++ = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), line & skew->valid[2][x], skew->offset,
                                           rows + place + x, 4);
    }
}

/* The way back; cells of rows that no lane relates to keep their value (0). */
static inline void slide_skew_write(const struct slide_skew *skew, const struct slide_tile *tile,
                                    const __m512 *near, float *rows) {
  for (int64_t t = 0; t < tile->size[0]; t++)
    for (int64_t y = 0; y < tile->size[1]; y++) {
      __mmask16 line = skew->valid[0][t] & skew->valid[1][y];
      int64_t place =
          (tile->low[0] + t) * tile->stride_t + (tile->low[1] + y) * tile->stride_y + tile->low[2];
      for (int64_t x = 0; x < tile->size[2]; x++)
        _mm512_mask_i32scatter_ps(rows + place + x, line & skew->valid[2][x], skew->offset, *near++, 4);
    }
}

/* First vector of the line (t, y) of a point's box. */
static inline int64_t slide_box_line(const struct slide_tile *tile, const struct slide_point *point,
                                     int64_t t, int64_t y) {
  return ((point->low[0] - tile->low[0] + t) * tile->size[1] + point->low[1] - tile->low[1] + y) *
             tile->size[2] +
         point->low[2] - tile->low[2];
}

static inline __m512 slide_add_weighted(int first, __m512 weight, __m512 value, __m512 sum) {
  return first ? _mm512_mul_ps(weight, value) : _mm512_fmadd_ps(weight, value, sum);
}

static inline __attribute__((always_inline)) __m512 slide_box_value_n(const struct slide_tile *tile,
                                                                      const struct slide_point *point,
                                                                      const __m512 *near, int nx) {
  __m512 w[3][SLIDE_BOX_AXIS], value = _mm512_setzero_ps();
  for (int a = 0; a < 3; a++)
    slide_axis_weights(point, a, w[a]);
  for (int t = 0; t < point->size[0]; t++) {
    __m512 plane = _mm512_setzero_ps();
    for (int y = 0; y < point->size[1]; y++) {
      const __m512 *line = near + slide_box_line(tile, point, t, y);
      __m512 sum = _mm512_mul_ps(w[2][0], line[0]);
      for (int x = 1; x < nx; x++)
        sum = _mm512_fmadd_ps(w[2][x], line[x], sum);
      plane = slide_add_weighted(!y, w[1][y], sum, plane);
    }
    value = slide_add_weighted(!t, w[0][t], plane, value);
  }
  return value;
}

static inline __m512 slide_box_value(const struct slide_tile *tile, const struct slide_point *point,
                                     const __m512 *near) {
  switch (point->size[2]) {
  case 1:
    return slide_box_value_n(tile, point, near, 1);
  case 2:
    return slide_box_value_n(tile, point, near, 2);
  case 3:
    return slide_box_value_n(tile, point, near, 3);
  }
  return slide_box_value_n(tile, point, near, point->size[2]);
}

/* near += amount times the weights of the point's corners. */
static inline void slide_box_add(const struct slide_tile *tile, const struct slide_point *point,
                                 __m512 amount, __m512 *near) {
  __m512 w[3][SLIDE_BOX_AXIS];
  for (int a = 0; a < 3; a++)
    slide_axis_weights(point, a, w[a]);
  for (int t = 0; t < point->size[0]; t++) {
    __m512 plane = _mm512_mul_ps(amount, w[0][t]);
    for (int y = 0; y < point->size[1]; y++) {
      __m512 *line = near + slide_box_line(tile, point, t, y), part = _mm512_mul_ps(plane, w[1][y]);
      for (int x = 0; x < point->size[2]; x++)
        line[x] = _mm512_fmadd_ps(part, w[2][x], line[x]);
    }
  }
}

/* A value and its derivatives by t, y, x. */
struct slide_jet {
  __m512 value, slope[3];
};

static inline __attribute__((always_inline)) struct slide_jet
slide_box_jet(const struct slide_tile *tile, const struct slide_point *point, __m512 (*w)[SLIDE_BOX_AXIS],
              __m512 (*s)[SLIDE_BOX_AXIS], const __m512 *near, int nx) {
  struct slide_jet jet = {0};
  for (int t = 0; t < point->size[0]; t++) {
    __m512 plane = _mm512_setzero_ps(), plane_y = plane, plane_x = plane;
    for (int y = 0; y < point->size[1]; y++) {
      const __m512 *line = near + slide_box_line(tile, point, t, y);
      __m512 sum = _mm512_mul_ps(w[2][0], line[0]), sum_x = _mm512_mul_ps(s[2][0], line[0]);
      for (int x = 1; x < nx; x++) {
        sum = _mm512_fmadd_ps(w[2][x], line[x], sum);
        sum_x = _mm512_fmadd_ps(s[2][x], line[x], sum_x);
      }
      plane = _mm512_fmadd_ps(w[1][y], sum, plane);
      plane_y = _mm512_fmadd_ps(s[1][y], sum, plane_y);
      plane_x = _mm512_fmadd_ps(w[1][y], sum_x, plane_x);
    }
    jet.value = _mm512_fmadd_ps(w[0][t], plane, jet.value);
    jet.slope[0] = _mm512_fmadd_ps(s[0][t], plane, jet.slope[0]);
    jet.slope[1] = _mm512_fmadd_ps(w[0][t], plane_y, jet.slope[1]);
    jet.slope[2] = _mm512_fmadd_ps(w[0][t], plane_x, jet.slope[2]);
  }
  return jet;
}

/* The jets of scores and of dO . v, which share all weights. */
static inline void slide_box_jets(const struct slide_tile *tile, const struct slide_point *point,
                                  const __m512 *near_k, const __m512 *near_v, struct slide_jet *score,
                                  struct slide_jet *value) {
  __m512 w[3][SLIDE_BOX_AXIS], s[3][SLIDE_BOX_AXIS];
  for (int a = 0; a < 3; a++)
    slide_axis_slopes(point, a, w[a], s[a]);
  if (point->size[2] == 2) {
    *score = slide_box_jet(tile, point, w, s, near_k, 2);
    *value = slide_box_jet(tile, point, w, s, near_v, 2);
  } else if (point->size[2] == 3) {
    *score = slide_box_jet(tile, point, w, s, near_k, 3);
    *value = slide_box_jet(tile, point, w, s, near_v, 3);
  } else {
    *score = slide_box_jet(tile, point, w, s, near_k, point->size[2]);
    *value = slide_box_jet(tile, point, w, s, near_v, point->size[2]);
  }
}

/* Gathered corners: cell[0] of every point becomes the offset of its lower corner, lane * ld included. */
static inline void slide_corner_offsets(const struct slide_tile *tile, __m512i lanes, int64_t count,
                                        struct slide_point *points) {
  __m512i stride_t = _mm512_set1_epi32(tile->stride_t), stride_y = _mm512_set1_epi32(tile->stride_y);
  for (int64_t j = 0; j < count; j++) {
    __m512i offset = _mm512_add_epi32(lanes, points[j].cell[2]);
    offset = _mm512_add_epi32(offset, _mm512_mullo_epi32(points[j].cell[1], stride_y));
    points[j].cell[0] = _mm512_add_epi32(offset, _mm512_mullo_epi32(points[j].cell[0], stride_t));
  }
}

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

static inline __m512 slide_corner_value(const struct slide_tile *tile, const struct slide_point *point,
                                        const float *rows) {
  __m512 w[3][2], value = _mm512_setzero_ps();
  slide_corner_weights(point, w);
  for (int t = 0; t < 2; t++) {
    __m512 plane = _mm512_setzero_ps();
    for (int y = 0; y < 2; y++) {
      __m512 lower, upper;
      slide_pair_read(rows, slide_corner_pair(tile, point, t, y), &lower, &upper);
      lower = _mm512_fmadd_ps(w[2][1], upper, _mm512_mul_ps(w[2][0], lower));
      plane = slide_add_weighted(!y, w[1][y], lower, plane);
    }
    value = slide_add_weighted(!t, w[0][t], plane, value);
  }
  return value;
}

static inline void slide_corner_add(const struct slide_tile *tile, const struct slide_point *point,
                                    __m512 amount, float *rows) {
  __m512 w[3][2];
  slide_corner_weights(point, w);
  for (int t = 0; t < 2; t++) {
    __m512 plane = _mm512_mul_ps(amount, w[0][t]);
    for (int y = 0; y < 2; y++)
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
