/* Private to the AVX-512 files of the slide family: forward and backward in score space.
 *
 * The including file defines the dense products over 32-cell blocks before it includes this one:
 *   ENGINE_DEPTH                  head_dim is padded to a multiple of it
 *   engine_element                type of a packed element
 *   engine_begin, engine_end      around all products of a call
 *   engine_pack_scores            32 rows of K (or V) as the operand of scores
 *   engine_pack_sums              32 rows of V (or K) as the operand of sums over cells
 *   engine_query, _query_across   rows of q (or dO) as the operand of scores, and of the sums over lanes
 *   engine_scores                 rows [lane][cell] = query . cells
 *   engine_sums                   out [lane][d] = sum over cells of rows times cells
 *   engine_outer                  accumulators of cells += sum over lanes of rows times queries
 *   engine_flush                  adds the accumulators of a block to rows of dk or dv
 *
 * A call's scratch is laid out by one function that also measures it. Backward goes head by head through the
 * frames of queries: a ring holds the packed frames they reach, accumulators hold the sum of one frame of
 * queries and are then added to dk and dv, so that where calls start and end changes no bit if they start at
 * frames. */
#pragma once
#include "slide-score.h"

#include <assert.h>
#include <string.h>

#define SLIDE_LOG2E 1.44269504089f

static int64_t slide_depth(const struct msk_slide *p) {
  return slide_round_up(p->head_dim, ENGINE_DEPTH);
}

static int64_t slide_offset_length(const struct msk_slide *p) {
  return 3 * (p->mode == MSK_SLIDE_POINT ? msk_slide_window_points(p) : 1);
}

static int64_t slide_near_max(const struct msk_slide *p) {
  int64_t cells = 1;
  for (int a = 0; a < 3; a++) {
    int64_t size = p->window[a] + 2 * slide_reach(p, a) + 1;
    cells *= size < SLIDE_BOX_AXIS ? size : SLIDE_BOX_AXIS;
  }
  return cells;
}

struct slide_work {
  __m512 *raw, *tangents, *doffsets, *scores;
  struct slide_point *points;
  int32_t *list;
  float *rows[4];
  __m512 *near[4];
  engine_element *narrow[3], *query[4]; /* rows as operands; q, dO and the same across */
  float *out;
  engine_element *form[4]; /* backward: rings of K and V for scores, K for sums, V unused by sums */
  float *sums[2];          /* backward: accumulators of dk, dv */
};

static void *slide_take(size_t *used, char *base, int64_t bytes) {
  char *start = base ? base + *used : NULL;
  *used += (size_t)slide_round_up(bytes, MSK_ALIGN);
  return start;
}

static size_t slide_lay(struct slide_work *w, const struct msk_slide *p, int backward, char *base) {
  size_t used = 0;
  int64_t points = msk_slide_window_points(p), length = slide_round_up(slide_offset_length(p), SLIDE_LANES);
  int64_t blocks = slide_blocks_max(p), depth = slide_depth(p), cells = blocks * SLIDE_BLOCK;
  int64_t ring = slide_frames(p) * slide_grid(p).frame * depth;
  int64_t vector = sizeof(__m512), element = sizeof(engine_element);
  memset(w, 0, sizeof *w);
  w->raw = slide_take(&used, base, length * vector);
  w->points = slide_take(&used, base, points * (int64_t)sizeof(struct slide_point));
  w->list = slide_take(&used, base, blocks * (int64_t)sizeof(int32_t));
  w->scores = slide_take(&used, base, points * vector);
  w->out = slide_take(&used, base, SLIDE_LANES * depth * (int64_t)sizeof(float));
  for (int i = 0; i < (backward ? 4 : 1); i++) {
    w->rows[i] = slide_take(&used, base, SLIDE_LANES * (cells + SLIDE_LANES) * (int64_t)sizeof(float));
    w->near[i] = slide_take(&used, base, slide_near_max(p) * vector);
    w->query[i] = slide_take(&used, base, SLIDE_LANES * depth * element);
  }
  for (int i = 0; i < (backward ? 3 : 1); i++)
    w->narrow[i] = slide_take(&used, base, SLIDE_LANES * (cells + 2 * SLIDE_BLOCK) * element);
  if (!backward)
    return used;
  w->tangents = slide_take(&used, base, length * vector);
  w->doffsets = slide_take(&used, base, length * vector);
  for (int i = 0; i < 3; i++)
    w->form[i] = slide_take(&used, base, ring * element);
  for (int i = 0; i < 2; i++)
    w->sums[i] = slide_take(&used, base, ring * (int64_t)sizeof(float));
  return used;
}

/* Rows of a packed block: the first token and how many; the rest of the block is empty. */
static int64_t slide_block_tokens(const struct msk_slide *p, int64_t frame, int64_t block, int64_t *first) {
  struct slide_grid g = slide_grid(p);
  int64_t cell = block * SLIDE_BLOCK, area = p->lattice[1] * p->lattice[2], count;
  if (p->lattice[2] <= SLIDE_WIDE) {
    *first = frame * area + cell;
    count = area - cell;
  } else {
    *first = frame * area + cell / g.row * p->lattice[2] + cell % g.row;
    count = p->lattice[2] - cell % g.row;
  }
  return count < 0 ? 0 : count < SLIDE_BLOCK ? count : SLIDE_BLOCK;
}

/* One frame of one head: x points at the head's channels of row 0. */
static void slide_pack_frame(const struct msk_slide *p, const float *x, int64_t ld, int64_t frame,
                             int for_sums, engine_element *packed) {
  int64_t depth = slide_depth(p), blocks = slide_grid(p).frame / SLIDE_BLOCK;
  for (int64_t block = 0; block < blocks; block++) {
    int64_t first, count = slide_block_tokens(p, frame, block, &first);
    if (for_sums)
      engine_pack_sums(x + first * ld, ld, count, p->head_dim, depth, packed + block * SLIDE_BLOCK * depth);
    else
      engine_pack_scores(x + first * ld, ld, count, p->head_dim, depth, packed + block * SLIDE_BLOCK * depth);
  }
}

static size_t slide_pack_bytes(const struct msk_slide *p) {
  int64_t cells = p->lattice[0] * slide_grid(p).frame * slide_depth(p) * (p->heads / p->groups);
  return (size_t)cells * 2 * sizeof(engine_element);
}

static void slide_pack(const struct msk_slide *p, int64_t group, void *packed_group) {
  int64_t heads = p->heads / p->groups, frame = slide_grid(p).frame * slide_depth(p);
  engine_element *to = packed_group;
  for (int64_t h = 0; h < heads; h++)
    for (int v = 0; v < 2; v++)
      for (int64_t t = 0; t < p->lattice[0]; t++, to += frame)
        slide_pack_frame(p, (v ? p->v : p->k) + (group * heads + h) * p->head_dim, v ? p->v_ld : p->k_ld, t,
                         v, to);
}

static void slide_clear_rows(const struct slide_tile *tile, float *rows) {
  memset(rows, 0, (size_t)(SLIDE_LANES * tile->ld) * sizeof *rows);
}

static void slide_clear_near(const struct slide_tile *tile, __m512 *near) {
  memset(near, 0, (size_t)(tile->size[0] * tile->size[1] * tile->size[2]) * sizeof *near);
}

/* Reads beside a row's last cell meet its slack, which must be finite. */
static void slide_clear_slack(const struct slide_tile *tile, float *rows) {
  for (int64_t lane = 0; lane < SLIDE_LANES; lane++)
    _mm512_storeu_ps(rows + (lane + 1) * tile->ld - SLIDE_LANES, _mm512_setzero_ps());
}

static void slide_forward_weights(const struct msk_slide *p, const struct slide_tile *tile,
                                  const struct slide_skew *skew, struct slide_work *w, __m512 *top,
                                  __m512 *total) {
  int64_t count = msk_slide_window_points(p);
  __m512 factor = _mm512_set1_ps(p->scale * SLIDE_LOG2E), largest = _mm512_set1_ps(-INFINITY),
         sum = _mm512_setzero_ps();
  float *rows = w->rows[0];
  __m512 *near = w->near[0];
  if (tile->box)
    slide_skew_read(skew, tile, rows, near);
  for (int64_t j = 0; j < count; j++) {
    __m512 score = tile->box ? slide_box_value(tile, &w->points[j], near)
                             : slide_corner_value(tile, &w->points[j], rows);
    w->scores[j] = score = _mm512_mul_ps(score, factor);
    largest = _mm512_max_ps(largest, score);
  }
  slide_clear_rows(tile, rows);
  if (tile->box)
    slide_clear_near(tile, near);
  for (int64_t j = 0; j < count; j++) {
    __m512 weight = slide_exp2(_mm512_sub_ps(w->scores[j], largest));
    sum = _mm512_add_ps(sum, weight);
    if (tile->box)
      slide_box_add(tile, &w->points[j], weight, near);
    else
      slide_corner_add(tile, &w->points[j], weight, rows);
  }
  if (tile->box)
    slide_skew_write(skew, tile, near, rows);
  *top = largest;
  *total = sum;
}

static void slide_forward_head(const struct msk_slide *p, const struct slide_tile *tile,
                               const struct slide_skew *skew, int64_t head, const engine_element *k,
                               const engine_element *v, struct slide_work *w) {
  int64_t depth = slide_depth(p), first = head * p->head_dim;
  float totals[SLIDE_LANES] __attribute__((aligned(64))), tops[SLIDE_LANES] __attribute__((aligned(64)));
  __m512 top, total;
  engine_query(p->q + tile->token * p->q_ld + first, p->q_ld, tile->count, p->head_dim, depth, w->query[0]);
  engine_scores(w->query[0], depth, k, w->list, tile->blocks, w->rows[0], tile->ld);
  slide_clear_slack(tile, w->rows[0]);
  slide_forward_weights(p, tile, skew, w, &top, &total);
  engine_sums(w->rows[0], tile->ld, tile->blocks, w->narrow[0], v, w->list, depth, w->out);
  _mm512_store_ps(totals, total);
  _mm512_store_ps(tops, top);
  for (int64_t lane = 0; lane < tile->count; lane++) {
    float *o = p->o + (tile->token + lane) * p->o_ld + first;
    __m512 inverse = _mm512_set1_ps(1 / totals[lane]);
    for (int64_t d = 0; d < p->head_dim; d += SLIDE_LANES)
      _mm512_mask_storeu_ps(o + d, slide_first(p->head_dim - d),
                            _mm512_mul_ps(inverse, _mm512_loadu_ps(w->out + lane * depth + d)));
    if (p->lse)
      p->lse[(tile->token + lane) * p->heads + head] = tops[lane] / SLIDE_LOG2E + logf(totals[lane]);
  }
}

static void slide_tile_prepare(struct slide_tile *tile, struct slide_skew *skew, const struct msk_slide *p,
                               int64_t group, int backward, struct slide_work *w) {
  if (p->z)
    slide_load_offsets(tile, p, group, slide_offset_length(p), w->raw);
  slide_tile_place(tile, p, w->raw, backward, w->points, w->tangents);
  assert(tile->blocks <= slide_blocks_max(p));
  slide_tile_list(tile, p, backward ? slide_frames(p) : 0, w->list);
  skew->offset = slide_lane_offsets(tile, p);
  if (tile->box)
    slide_skew_begin(skew, tile);
  else
    slide_corner_offsets(tile, skew->offset, msk_slide_window_points(p), w->points);
}

static size_t slide_forward_scratch(const struct msk_slide *p) {
  struct slide_work w;
  return slide_lay(&w, p, 0, NULL);
}

static void slide_forward(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1, void *scratch) {
  struct slide_work w;
  struct slide_tile tile;
  struct slide_skew skew;
  int64_t heads = p->heads / p->groups, form = p->lattice[0] * slide_grid(p).frame * slide_depth(p);
  const engine_element *packed =
      (const engine_element *)((const char *)p->packed + (size_t)group * slide_pack_bytes(p));
  slide_lay(&w, p, 0, scratch);
  engine_begin();
  for (int64_t token = i0; token < i1; token += tile.count) {
    slide_tile_cut(&tile, p, token, i1);
    slide_tile_prepare(&tile, &skew, p, group, 0, &w);
    for (int64_t h = 0; h < heads; h++)
      slide_forward_head(p, &tile, &skew, group * heads + h, packed + 2 * h * form,
                         packed + (2 * h + 1) * form, &w);
  }
  engine_end();
}

/* Rows of P and of scale dS, and the derivatives of the offsets (added to). */
static void slide_backward_weights(const struct msk_slide *p, const struct slide_tile *tile,
                                   const struct slide_skew *skew, struct slide_work *w, __m512 lse,
                                   __m512 mean) {
  int64_t count = msk_slide_window_points(p);
  __m512 factor = _mm512_set1_ps(p->scale * SLIDE_LOG2E), scale = _mm512_set1_ps(p->scale);
  if (tile->box) {
    slide_skew_read(skew, tile, w->rows[0], w->near[0]);
    slide_skew_read(skew, tile, w->rows[1], w->near[1]);
    slide_clear_near(tile, w->near[2]);
    slide_clear_near(tile, w->near[3]);
  }
  slide_clear_rows(tile, w->rows[2]);
  slide_clear_rows(tile, w->rows[3]);
  for (int64_t j = 0; j < count; j++) {
    const struct slide_point *point = &w->points[j];
    struct slide_jet score, value;
    __m512 *doffset = w->doffsets + (p->mode == MSK_SLIDE_POINT ? 3 * j : 0);
    if (tile->box) {
      slide_box_jets(tile, point, w->near[0], w->near[1], &score, &value);
    } else {
      score = slide_corner_jet(tile, point, w->rows[0]);
      value = slide_corner_jet(tile, point, w->rows[1]);
    }
    __m512 weight = slide_exp2(_mm512_fmsub_ps(score.value, factor, lse));
    __m512 dscore = _mm512_mul_ps(_mm512_mul_ps(weight, scale), _mm512_sub_ps(value.value, mean));
    for (int a = 0; a < 3; a++)
      doffset[a] = _mm512_add_ps(
          doffset[a], _mm512_fmadd_ps(dscore, score.slope[a], _mm512_mul_ps(weight, value.slope[a])));
    if (tile->box) {
      slide_box_add(tile, point, weight, w->near[2]);
      slide_box_add(tile, point, dscore, w->near[3]);
    } else {
      slide_corner_add(tile, point, weight, w->rows[2]);
      slide_corner_add(tile, point, dscore, w->rows[3]);
    }
  }
  if (tile->box) {
    slide_skew_write(skew, tile, w->near[2], w->rows[2]);
    slide_skew_write(skew, tile, w->near[3], w->rows[3]);
  }
}

/* dO . o and the logarithm to base 2 of the softmax sums. */
static void slide_backward_means(const struct msk_slide *p, const struct slide_tile *tile, int64_t head,
                                 __m512 *lse, __m512 *mean) {
  float logs[SLIDE_LANES] __attribute__((aligned(64))), means[SLIDE_LANES] __attribute__((aligned(64)));
  for (int64_t lane = 0; lane < SLIDE_LANES; lane++) {
    int64_t token = tile->token + (lane < tile->count ? lane : tile->count - 1);
    const float *d_o = p->d_o + token * p->d_o_ld + head * p->head_dim,
                *o = p->o + token * p->o_ld + head * p->head_dim;
    __m512 sum = _mm512_setzero_ps();
    for (int64_t d = 0; d < p->head_dim; d += SLIDE_LANES) {
      __mmask16 mask = slide_first(p->head_dim - d);
      sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, d_o + d), _mm512_maskz_loadu_ps(mask, o + d), sum);
    }
    means[lane] = lane < tile->count ? _mm512_reduce_add_ps(sum) : 0;
    logs[lane] = lane < tile->count ? p->lse[token * p->heads + head] * SLIDE_LOG2E : 0;
  }
  *lse = _mm512_load_ps(logs);
  *mean = _mm512_load_ps(means);
}

/* dz of the tile: written by the group's first head, added to by the others. */
static void slide_write_doffsets(const struct msk_slide *p, const struct slide_tile *tile, int64_t group,
                                 int add, struct slide_work *w) {
  int64_t length = slide_offset_length(p);
  for (int64_t i = 0; i < length; i += SLIDE_LANES) {
    __m512i r[SLIDE_LANES];
    __mmask16 mask = slide_first(length - i);
    for (int64_t k = 0; k < SLIDE_LANES; k++) {
      __m512 moved = w->doffsets[i + k];
      if (p->z)
        moved =
            _mm512_mul_ps(moved, _mm512_fnmadd_ps(w->tangents[i + k], w->tangents[i + k], _mm512_set1_ps(1)));
      r[k] = _mm512_castps_si512(moved);
    }
    slide_transpose(r);
    for (int64_t lane = 0; lane < tile->count; lane++) {
      float *dz = p->dz + (tile->token + lane) * p->dz_ld + group * length + i;
      __m512 value = _mm512_castsi512_ps(r[lane]);
      if (add)
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, dz));
      _mm512_mask_storeu_ps(dz, mask, value);
    }
  }
}

static void slide_backward_tile(const struct msk_slide *p, const struct slide_tile *tile,
                                const struct slide_skew *skew, int64_t group, int64_t head,
                                struct slide_work *w) {
  int64_t depth = slide_depth(p), first = head * p->head_dim, token = tile->token;
  int64_t length = slide_round_up(slide_offset_length(p), SLIDE_LANES);
  __m512 lse, mean;
  engine_query(p->q + token * p->q_ld + first, p->q_ld, tile->count, p->head_dim, depth, w->query[0]);
  engine_query(p->d_o + token * p->d_o_ld + first, p->d_o_ld, tile->count, p->head_dim, depth, w->query[1]);
  engine_query_across(p->q + token * p->q_ld + first, p->q_ld, tile->count, p->head_dim, depth, w->query[2]);
  engine_query_across(p->d_o + token * p->d_o_ld + first, p->d_o_ld, tile->count, p->head_dim, depth,
                      w->query[3]);
  engine_scores(w->query[0], depth, w->form[0], w->list, tile->blocks, w->rows[0], tile->ld);
  engine_scores(w->query[1], depth, w->form[1], w->list, tile->blocks, w->rows[1], tile->ld);
  slide_clear_slack(tile, w->rows[0]);
  slide_clear_slack(tile, w->rows[1]);
  slide_backward_means(p, tile, head, &lse, &mean);
  memset(w->doffsets, 0, (size_t)length * sizeof(__m512));
  slide_backward_weights(p, tile, skew, w, lse, mean);
  if (p->dz)
    slide_write_doffsets(p, tile, group, head % (p->heads / p->groups) != 0, w);
  engine_sums(w->rows[3], tile->ld, tile->blocks, w->narrow[0], w->form[2], w->list, depth, w->out);
  for (int64_t lane = 0; lane < tile->count; lane++)
    for (int64_t d = 0; d < p->head_dim; d += SLIDE_LANES)
      _mm512_mask_storeu_ps(p->dq + (token + lane) * p->dq_ld + first + d, slide_first(p->head_dim - d),
                            _mm512_loadu_ps(w->out + lane * depth + d));
  engine_outer(w->rows[3], tile->ld, tile->blocks, w->narrow[1], w->query[2], w->list, depth, w->sums[0]);
  engine_outer(w->rows[2], tile->ld, tile->blocks, w->narrow[2], w->query[3], w->list, depth, w->sums[1]);
}

/* Adds the accumulators of a frame of cells to dk and dv. */
static void slide_flush_frame(const struct msk_slide *p, int64_t head, int64_t frame, const float *dk,
                              const float *dv) {
  int64_t depth = slide_depth(p), blocks = slide_grid(p).frame / SLIDE_BLOCK, channel = head * p->head_dim;
  for (int64_t block = 0; block < blocks; block++) {
    int64_t first, count = slide_block_tokens(p, frame, block, &first), from = block * SLIDE_BLOCK * depth;
    engine_flush(dk + from, count, p->head_dim, depth, p->dk + first * p->dk_ld + channel, p->dk_ld);
    engine_flush(dv + from, count, p->head_dim, depth, p->dv + first * p->dv_ld + channel, p->dv_ld);
  }
}

static size_t slide_backward_scratch(const struct msk_slide *p) {
  struct slide_work w;
  return slide_lay(&w, p, 1, NULL);
}

static void slide_backward_head(const struct msk_slide *p, int64_t group, int64_t head, int64_t i0,
                                int64_t i1, struct slide_work *w) {
  struct slide_tile tile;
  struct slide_skew skew;
  int64_t area = p->lattice[1] * p->lattice[2], ring = slide_frames(p),
          frame = slide_grid(p).frame * slide_depth(p);
  int64_t packed = 0; /* frames below this one are in the ring, as far as the queries reach */
  for (int64_t t = i0 / area; t * area < i1; t++) {
    int64_t base = msk_slide_base(t, p->window[0], p->lattice[0]), reach = slide_reach(p, 0);
    int64_t low = base > reach ? base - reach : 0, high = base + p->window[0] + reach + 1;
    int64_t start = t * area > i0 ? t * area : i0, end = (t + 1) * area < i1 ? (t + 1) * area : i1;
    high = high < p->lattice[0] ? high : p->lattice[0];
    for (int64_t f = packed > low ? packed : low; f < high; f++) {
      slide_pack_frame(p, p->k + head * p->head_dim, p->k_ld, f, 0, w->form[0] + f % ring * frame);
      slide_pack_frame(p, p->v + head * p->head_dim, p->v_ld, f, 0, w->form[1] + f % ring * frame);
      slide_pack_frame(p, p->k + head * p->head_dim, p->k_ld, f, 1, w->form[2] + f % ring * frame);
    }
    packed = high;
    memset(w->sums[0], 0, (size_t)(ring * frame) * sizeof(float));
    memset(w->sums[1], 0, (size_t)(ring * frame) * sizeof(float));
    for (int64_t token = start; token < end; token += tile.count) {
      slide_tile_cut(&tile, p, token, end);
      slide_tile_prepare(&tile, &skew, p, group, 1, w);
      slide_backward_tile(p, &tile, &skew, group, head, w);
    }
    for (int64_t f = low; f < high; f++)
      slide_flush_frame(p, head, f, w->sums[0] + f % ring * frame, w->sums[1] + f % ring * frame);
  }
}

static void slide_backward(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1, void *scratch) {
  struct slide_work w;
  int64_t heads = p->heads / p->groups;
  slide_lay(&w, p, 1, scratch);
  engine_begin();
  for (int64_t head = group * heads; head < (group + 1) * heads; head++)
    slide_backward_head(p, group, head, i0, i1, &w);
  engine_end();
}
