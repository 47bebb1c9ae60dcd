/* Private to the AVX-512 files of the slide family: sixteen tokens of one frame (a tile), where their points
 * lie, and which cells of the lattice they reach (the halo).
 *
 * Packed copies of K and V number the cells of a frame in lines of `row` cells; a frame is a whole number of
 * blocks of 32 cells. Blocks are anchored at the frame, so a cell has the same place in its block whatever
 * tile reads it: sums over cells then round the same way for every way of cutting tokens into tiles. Narrow
 * lattices put lines one after the other without gaps, and a halo is one stretch of a frame; wide ones start
 * each line at a block, and a halo is one stretch of each line. */
#pragma once
#include "slide.h"
#include "slide-vector.h"

#include <math.h>

#define SLIDE_BLOCK 32
#define SLIDE_TILE 32 /* tokens */
#define SLIDE_WIDE 64 /* lines longer than this start at a block */

struct slide_grid {
  int64_t row, frame; /* cells of a packed line and frame */
};

static inline struct slide_grid slide_grid(const struct msk_slide *p) {
  struct slide_grid g = {.row = p->lattice[2] <= SLIDE_WIDE ? p->lattice[2]
                                                            : slide_round_up(p->lattice[2], SLIDE_BLOCK)};
  g.frame = slide_round_up(p->lattice[1] * g.row, SLIDE_BLOCK);
  return g;
}

/* One window point of sixteen tokens. */
struct slide_point {
  __m512i cell[3]; /* c0; after slide_tile_offsets cell[0] is the offset of c0 in the score rows */
  __m512 fraction[3];
  __mmask16 upper[3]; /* the upper corner is read, at the next cell */
};

struct slide_tile {
  int64_t token, frame; /* first token; its frame */
  int64_t count;        /* tokens, at most 32; lanes beyond repeat the last one */
  int64_t halves;
  int64_t first[3], last[3]; /* hull of the cells reached */
  int64_t segments, segment_cells,
      segment_start; /* stretches per frame, cells of one (blocks), first cell in its line or frame */
  int64_t ld;        /* floats of a score row: cells and one vector of slack */
  int64_t blocks;
  int32_t stride_t, stride_y;
  /* set by the owner of the memory before slide_tile_place */
  struct slide_point *points; /* [2][K] */
  __m512 *tangents;           /* [2][length of z]: tanh (z / s), or NULL: not wanted */
  int32_t *list;              /* packed blocks in the order of a score row */
};

/* Cells that offsets can move a point by. Sizes must not depend on z, which callers set after they asked for
 * them. */
static inline int64_t slide_reach(const struct msk_slide *p, int axis) {
  int64_t reach = (int64_t)ceilf(p->bounds[axis]);
  return reach < p->lattice[axis] ? reach : p->lattice[axis];
}

/* Frames that the window of one token can reach, both corners included. */
static inline int64_t slide_frames(const struct msk_slide *p) {
  int64_t frames = p->window[0] + 2 * slide_reach(p, 0) + 1;
  return frames < p->lattice[0] ? frames : p->lattice[0];
}

/* Blocks of a tile's halo, at most. */
static inline int64_t slide_blocks_max(const struct msk_slide *p) {
  struct slide_grid g = slide_grid(p);
  int64_t span = (SLIDE_TILE - 1) / p->lattice[2] + 2;
  int64_t lines = p->window[1] + 2 * slide_reach(p, 1) + 1, cells = p->window[2] + 2 * slide_reach(p, 2) + 1;
  if (p->lattice[2] <= SLIDE_WIDE) {
    lines = lines + span < p->lattice[1] ? lines + span : p->lattice[1];
    cells = lines * g.row + 2 * SLIDE_BLOCK;
    cells = slide_round_up(cells < g.frame ? cells : g.frame, SLIDE_BLOCK);
    return slide_frames(p) * cells / SLIDE_BLOCK;
  }
  lines = lines < p->lattice[1] ? lines : p->lattice[1];
  cells = slide_round_up(cells + SLIDE_TILE + 2 * SLIDE_BLOCK, SLIDE_BLOCK);
  return slide_frames(p) * lines * (cells < g.row ? cells : g.row) / SLIDE_BLOCK;
}

/* First tokens of a range as one tile: within a frame, and within a line where lines are wide. */
static inline void slide_tile_cut(struct slide_tile *tile, const struct msk_slide *p, int64_t token,
                                  int64_t end) {
  int64_t line = p->lattice[2] > SLIDE_WIDE ? p->lattice[2] : p->lattice[1] * p->lattice[2];
  int64_t left = line - token % line;
  tile->token = token;
  tile->frame = token / (p->lattice[1] * p->lattice[2]);
  tile->count = end - token < left ? end - token : left;
  if (tile->count > SLIDE_TILE)
    tile->count = SLIDE_TILE;
  tile->halves = tile->count > SLIDE_LANES ? 2 : 1;
}

static inline int64_t slide_lane_token(const struct slide_tile *tile, int64_t half, int64_t lane) {
  int64_t i = half * SLIDE_LANES + lane;
  return tile->token + (i < tile->count ? i : tile->count - 1);
}

static inline int64_t slide_offset_length(const struct msk_slide *p) {
  return 3 * (p->mode == MSK_SLIDE_POINT ? msk_slide_window_points(p) : 1);
}

/* Offsets of half a tile, lanes innermost: raw[i] is element i of the rows of z. */
static inline void slide_load_offsets(const struct slide_tile *tile, const struct msk_slide *p, int64_t group,
                                      int64_t half, __m512 *raw) {
  int64_t length = slide_offset_length(p);
  for (int64_t i = 0; i < length; i += SLIDE_LANES) {
    __m512i r[SLIDE_LANES];
    __mmask16 mask = slide_first(length - i);
    for (int64_t lane = 0; lane < SLIDE_LANES; lane++) {
      int64_t token = slide_lane_token(tile, half, lane);
      r[lane] = _mm512_maskz_loadu_epi32(mask, p->z + token * p->z_ld + group * length + i);
    }
    slide_transpose(r);
    for (int64_t k = 0; k < SLIDE_LANES; k++)
      raw[i + k] = _mm512_castsi512_ps(r[k]);
  }
}

/* Delta split into whole cells and fraction; *tangent is tanh (z / s). */
static inline __m512i slide_split(__m512 z, float bound, __m512 *fraction, __m512 *tangent) {
  __m512 delta, whole;
  if (!_mm512_cmp_ps_mask(z, _mm512_setzero_ps(), _CMP_NEQ_UQ)) {
    *fraction = *tangent = _mm512_setzero_ps();
    return _mm512_setzero_si512();
  }
  *tangent = slide_tanh(_mm512_mul_ps(z, _mm512_set1_ps(1 / bound)));
  delta = _mm512_mul_ps(*tangent, _mm512_set1_ps(bound));
  whole = _mm512_roundscale_ps(delta, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  *fraction = _mm512_sub_ps(delta, whole);
  return _mm512_cvtps_epi32(whole);
}

struct slide_hull {
  __m512i first[3], last[3];
};

/* One axis of a point: clamps, and notes the hull. */
static inline void slide_place_axis(const struct msk_slide *p, int axis, __m512i cell, __m512 fraction,
                                    int both, struct slide_point *point, struct slide_hull *hull) {
  __m512i top = _mm512_set1_epi32((int)p->lattice[axis] - 1), one = _mm512_set1_epi32(1);
  __mmask16 inside =
      _mm512_cmpge_epi32_mask(cell, _mm512_setzero_si512()) & _mm512_cmplt_epi32_mask(cell, top);
  cell = _mm512_max_epi32(_mm512_min_epi32(cell, top), _mm512_setzero_si512());
  point->cell[axis] = cell;
  point->fraction[axis] = _mm512_maskz_mov_ps(inside, fraction);
  if (!both)
    inside = _mm512_mask_cmp_ps_mask(inside, fraction, _mm512_setzero_ps(), _CMP_GT_OQ);
  point->upper[axis] = inside;
  hull->first[axis] = _mm512_min_epi32(hull->first[axis], cell);
  hull->last[axis] = _mm512_max_epi32(hull->last[axis], _mm512_mask_add_epi32(cell, inside, cell, one));
}

/* Lattice index of each lane's window base. */
static inline void slide_half_bases(const struct slide_tile *tile, const struct msk_slide *p, int64_t half,
                                    __m512i base[3]) {
  int32_t at[3][SLIDE_LANES] __attribute__((aligned(64)));
  for (int64_t lane = 0; lane < SLIDE_LANES; lane++) {
    int64_t token = slide_lane_token(tile, half, lane);
    int64_t index[3] = {tile->frame, token / p->lattice[2] % p->lattice[1], token % p->lattice[2]};
    for (int a = 0; a < 3; a++)
      at[a][lane] = (int32_t)msk_slide_base(index[a], p->window[a], p->lattice[a]);
  }
  for (int a = 0; a < 3; a++)
    base[a] = _mm512_load_si512(at[a]);
}

/* The halo's shape from the hull of the cells. */
static inline void slide_tile_halo(struct slide_tile *tile, const struct msk_slide *p,
                                   const struct slide_hull *hull) {
  struct slide_grid g = slide_grid(p);
  int64_t start, end;
  for (int a = 0; a < 3; a++) {
    tile->first[a] = _mm512_reduce_min_epi32(hull->first[a]);
    tile->last[a] = _mm512_reduce_max_epi32(hull->last[a]);
  }
  if (p->lattice[2] <= SLIDE_WIDE) {
    start = tile->first[1] * g.row + tile->first[2];
    end = tile->last[1] * g.row + tile->last[2] + 1;
    tile->segments = 1;
    tile->stride_y = (int32_t)g.row;
  } else {
    start = tile->first[2];
    end = tile->last[2] + 1;
    tile->segments = tile->last[1] - tile->first[1] + 1;
  }
  tile->segment_start = start / SLIDE_BLOCK * SLIDE_BLOCK;
  tile->segment_cells = slide_round_up(end, SLIDE_BLOCK) - tile->segment_start;
  if (p->lattice[2] > SLIDE_WIDE)
    tile->stride_y = (int32_t)tile->segment_cells;
  tile->stride_t = (int32_t)(tile->segments * tile->segment_cells);
  tile->blocks = (tile->last[0] - tile->first[0] + 1) * tile->stride_t / SLIDE_BLOCK;
  tile->ld = tile->blocks * SLIDE_BLOCK + SLIDE_LANES;
}

/* Where the cell (t, y, x) of the lattice lies in a score row. */
static inline int64_t slide_tile_cell(const struct slide_tile *tile, const struct msk_slide *p, int64_t t,
                                      int64_t y, int64_t x) {
  int64_t line = p->lattice[2] <= SLIDE_WIDE ? y : y - tile->first[1];
  return (t - tile->first[0]) * tile->stride_t + line * tile->stride_y + x - tile->segment_start;
}

/* Packed blocks of the halo in the order of a score row. A ring of frames holds frame t at t % ring; ring 0:
 * at t. */
static inline void slide_tile_list(const struct slide_tile *tile, const struct msk_slide *p, int64_t ring) {
  int32_t *list = tile->list;
  struct slide_grid g = slide_grid(p);
  for (int64_t t = tile->first[0]; t <= tile->last[0]; t++)
    for (int64_t s = 0; s < tile->segments; s++) {
      int64_t line = p->lattice[2] <= SLIDE_WIDE ? 0 : (tile->first[1] + s) * g.row;
      int64_t block = ((ring ? t % ring : t) * g.frame + line + tile->segment_start) / SLIDE_BLOCK;
      for (int64_t i = 0; i < tile->segment_cells / SLIDE_BLOCK; i++)
        *list++ = (int32_t)(block + i);
    }
}

static inline void slide_half_place(const struct slide_tile *tile, const struct msk_slide *p, int64_t half,
                                    const __m512 *raw, int both, struct slide_hull *hull) {
  __m512i base[3], whole[3];
  __m512 fraction[3], tangent[3];
  __m512 *tangents =
      tile->tangents ? tile->tangents + half * slide_round_up(slide_offset_length(p), SLIDE_LANES) : NULL;
  struct slide_point *point = tile->points + half * msk_slide_window_points(p);
  int64_t at[3], z = 0, step = p->z && p->mode == MSK_SLIDE_POINT ? 3 : 0;
  slide_half_bases(tile, p, half, base);
  for (int a = 0; a < 3; a++) {
    whole[a] = _mm512_setzero_si512();
    fraction[a] = tangent[a] = _mm512_setzero_ps();
    if (p->z && !step)
      whole[a] = slide_split(raw[a], p->bounds[a], &fraction[a], &tangent[a]);
    if (tangents)
      tangents[a] = tangent[a];
  }
  for (at[0] = 0; at[0] < p->window[0]; at[0]++)
    for (at[1] = 0; at[1] < p->window[1]; at[1]++)
      for (at[2] = 0; at[2] < p->window[2]; at[2]++, point++, z += step)
        for (int a = 0; a < 3; a++) {
          if (step) {
            whole[a] = slide_split(raw[z + a], p->bounds[a], &fraction[a], &tangent[a]);
            if (tangents)
              tangents[z + a] = tangent[a];
          }
          __m512i cell = _mm512_add_epi32(_mm512_add_epi32(base[a], whole[a]), _mm512_set1_epi32((int)at[a]));
          slide_place_axis(p, a, cell, fraction[a], both, point, hull);
        }
}

/* cell[0] of every point becomes the offset of its lower corner in the score rows [32][ld]. */
static inline void slide_half_offsets(const struct slide_tile *tile, const struct msk_slide *p,
                                      int64_t half) {
  __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  __m512i stride_t = _mm512_set1_epi32(tile->stride_t), stride_y = _mm512_set1_epi32(tile->stride_y);
  int64_t count = msk_slide_window_points(p), origin = slide_tile_cell(tile, p, 0, 0, 0);
  struct slide_point *points = tile->points + half * count;
  lanes = _mm512_mullo_epi32(lanes, _mm512_set1_epi32((int)tile->ld));
  lanes = _mm512_add_epi32(lanes, _mm512_set1_epi32((int)(half * SLIDE_LANES * tile->ld + origin)));
  for (struct slide_point *point = points; point < points + count; point++) {
    __m512i offset = _mm512_add_epi32(lanes, point->cell[2]);
    offset = _mm512_add_epi32(offset, _mm512_mullo_epi32(point->cell[1], stride_y));
    point->cell[0] = _mm512_add_epi32(offset, _mm512_mullo_epi32(point->cell[0], stride_t));
  }
}

/* Places all points of a tile that slide_tile_cut began. both: upper corners are read even where they weigh
 * 0; ring: see slide_tile_list. raw is memory for the offsets of one half. */
static inline void slide_tile_place(struct slide_tile *tile, const struct msk_slide *p, int64_t group,
                                    int both, int64_t ring, __m512 *raw) {
  struct slide_hull hull;
  for (int a = 0; a < 3; a++) {
    hull.first[a] = _mm512_set1_epi32(INT32_MAX);
    hull.last[a] = _mm512_setzero_si512();
  }
  for (int64_t half = 0; half < tile->halves; half++) {
    if (p->z)
      slide_load_offsets(tile, p, group, half, raw);
    slide_half_place(tile, p, half, raw, both, &hull);
  }
  slide_tile_halo(tile, p, &hull);
  for (int64_t half = 0; half < tile->halves; half++)
    slide_half_offsets(tile, p, half);
  slide_tile_list(tile, p, ring);
}
