/* Private to the AVX-512 files of the slide family: forward and backward in score space.
 *
 * The including file defines the dense products over 32-cell blocks before it includes this one:
 *   ENGINE_DEPTH                  head_dim is padded to a multiple of it
 *   engine_element                type of a packed element
 *   ENGINE_NARROW                 elements of a row that engine_sums keeps converted
 *   engine_begin, engine_end      around all products of a call
 *   engine_pack_scores            32 rows of K (or V) as the operand of scores
 *   engine_pack_sums              32 rows of V (or K) as the operand of sums over cells
 *   engine_query, _query_across   rows of q (or dO) as the operand of scores, and of the sums over lanes
 *   engine_scores                 rows [lane][cell] = query . cells
 *   engine_sums                   out [lane][d] = sum over cells of rows times cells
 *   engine_across                 rows as the operand of the sums over lanes, 32 * 32 elements a block
 *   struct engine_part            that operand of a block, and query_across
 *   engine_outer                  accumulator of a block += sum over parts and lanes of rows times queries
 *   engine_flush                  adds the accumulators of a block to rows of dk or dv
 *
 * A call's scratch is laid out by one function that also measures it. */
#pragma once
#include "slide-score.h"

#include <assert.h>
#include <string.h>

#define SLIDE_LOG2E 1.44269504089f

/* Tiles that go through a product together, so that the cells they share are fetched once. */
#define SLIDE_BATCH 4

static int64_t slide_depth(const struct msk_slide *p) {
  return slide_round_up(p->head_dim, ENGINE_DEPTH);
}

/* The memory of a call. */
struct slide_work {
  struct slide_tile tile[SLIDE_BATCH];
  __m512 *raw, *doffsets, *scores;
  float *rows[4]; /* scores, dO . v; weights P, scale dS */
  engine_element *query[2], *narrow,
      *form[3]; /* q, dO; rows as an operand; rings of K, V for scores and K for sums */
  float *out;
  /* backward, for the sums of a batch over its lanes */
  engine_element *across[SLIDE_BATCH][2], *query_across[SLIDE_BATCH][2]; /* dS and q, P and dO */
  int32_t *where[SLIDE_BATCH]; /* place in the tile's list of each block of the ring, or -1 */
  float *sums[2];              /* accumulators of dk, dv */
};

static void *slide_take(size_t *used, char *base, int64_t bytes) {
  char *start = base ? base + *used : NULL;
  *used += (size_t)slide_round_up(bytes, MSK_ALIGN);
  return start;
}

static int64_t slide_ring_cells(const struct msk_slide *p) {
  return slide_frames(p) * slide_grid(p).frame;
}

static void slide_lay_backward(struct slide_work *w, const struct msk_slide *p, size_t *used, char *base) {
  int64_t length = slide_round_up(slide_offset_length(p), SLIDE_LANES) * (int64_t)sizeof(__m512);
  int64_t depth = slide_depth(p), ring = slide_ring_cells(p), element = sizeof(engine_element);
  w->doffsets = slide_take(used, base, length);
  for (int i = 0; i < 3; i++)
    w->form[i] = slide_take(used, base, ring * depth * element);
  for (int i = 0; i < 2; i++)
    w->sums[i] = slide_take(used, base, ring * depth * (int64_t)sizeof(float));
  for (int n = 0; n < SLIDE_BATCH; n++) {
    w->tile[n].tangents = slide_take(used, base, 2 * length);
    w->where[n] = slide_take(used, base, ring / SLIDE_BLOCK * (int64_t)sizeof(int32_t));
    for (int i = 0; i < 2; i++) {
      w->across[n][i] = slide_take(used, base, SLIDE_TILE * slide_blocks_max(p) * SLIDE_BLOCK * element);
      w->query_across[n][i] = slide_take(used, base, SLIDE_TILE * depth * element);
    }
  }
}

static size_t slide_lay(struct slide_work *w, const struct msk_slide *p, int backward, char *base) {
  size_t used = 0;
  int64_t points = msk_slide_window_points(p), depth = slide_depth(p), vector = sizeof(__m512);
  int64_t blocks = slide_blocks_max(p), cells = blocks * SLIDE_BLOCK, element = sizeof(engine_element);
  memset(w, 0, sizeof *w);
  w->raw = slide_take(&used, base, slide_round_up(slide_offset_length(p), SLIDE_LANES) * vector);
  w->scores = slide_take(&used, base, points * vector);
  w->out = slide_take(&used, base, SLIDE_TILE * depth * (int64_t)sizeof(float));
  w->narrow = slide_take(&used, base, SLIDE_TILE * ENGINE_NARROW * element);
  for (int n = 0; n < SLIDE_BATCH; n++) {
    w->tile[n].points = slide_take(&used, base, 2 * points * (int64_t)sizeof(struct slide_point));
    w->tile[n].list = slide_take(&used, base, blocks * (int64_t)sizeof(int32_t));
  }
  for (int i = 0; i < (backward ? 4 : 1); i++) {
    w->rows[i] = slide_take(&used, base, SLIDE_TILE * (cells + SLIDE_LANES) * (int64_t)sizeof(float));
  }
  for (int i = 0; i < (backward ? 2 : 1); i++)
    w->query[i] = slide_take(&used, base, SLIDE_TILE * depth * element);
  if (backward)
    slide_lay_backward(w, p, &used, base);
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

/* Clears the rows of half a tile. */
static void slide_clear_rows(const struct slide_tile *tile, int64_t half, float *rows) {
  memset(rows + half * SLIDE_LANES * tile->ld, 0, (size_t)(SLIDE_LANES * tile->ld) * sizeof *rows);
}

/* Reads beside a row's last cell meet its slack, which must be finite. */
static void slide_clear_slack(const struct slide_tile *tile, float *rows) {
  for (int64_t lane = 0; lane < tile->halves * SLIDE_LANES; lane++)
    _mm512_storeu_ps(rows + (lane + 1) * tile->ld - SLIDE_LANES, _mm512_setzero_ps());
}

/* Scores of half a tile to weights, in place; *total is their sum, *top the largest score to base 2. */
static void slide_forward_weights(const struct msk_slide *p, const struct slide_tile *tile, int64_t half,
                                  struct slide_work *w, __m512 *top, __m512 *total) {
  int64_t count = msk_slide_window_points(p);
  const struct slide_point *points = tile->points + half * count;
  __m512 factor = _mm512_set1_ps(p->scale * SLIDE_LOG2E), largest = _mm512_set1_ps(-INFINITY),
         sum = _mm512_setzero_ps();
  for (int64_t j = 0; j < count; j++) {
    w->scores[j] = _mm512_mul_ps(slide_corner_value(tile, &points[j], w->rows[0]), factor);
    largest = _mm512_max_ps(largest, w->scores[j]);
  }
  slide_clear_rows(tile, half, w->rows[0]);
  for (int64_t j = 0; j < count; j++) {
    __m512 weight = slide_exp2(_mm512_sub_ps(w->scores[j], largest));
    sum = _mm512_add_ps(sum, weight);
    slide_corner_add(tile, &points[j], weight, w->rows[0]);
  }
  *top = largest;
  *total = sum;
}

static void slide_forward_head(const struct msk_slide *p, const struct slide_tile *tile, int64_t head,
                               const engine_element *k, const engine_element *v, struct slide_work *w) {
  int64_t depth = slide_depth(p), first = head * p->head_dim;
  float totals[SLIDE_TILE] __attribute__((aligned(64))), tops[SLIDE_TILE] __attribute__((aligned(64)));
  engine_query(p->q + tile->token * p->q_ld + first, p->q_ld, tile->count, p->head_dim, depth, w->query[0]);
  engine_scores(w->query[0], tile->halves, depth, k, tile->list, tile->blocks, w->rows[0], tile->ld);
  slide_clear_slack(tile, w->rows[0]);
  for (int64_t half = 0; half < tile->halves; half++) {
    __m512 top, total;
    slide_forward_weights(p, tile, half, w, &top, &total);
    _mm512_store_ps(totals + half * SLIDE_LANES, total);
    _mm512_store_ps(tops + half * SLIDE_LANES, top);
  }
  engine_sums(w->rows[0], tile->halves, tile->ld, tile->blocks, w->narrow, v, tile->list, depth, w->out);
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

/* Cuts and prepares the next tiles of a range, at most `most`; *token moves on. Returns how many. */
static int slide_batch_prepare(const struct msk_slide *p, int64_t group, int backward, int most,
                               int64_t *token, int64_t end, struct slide_work *w) {
  int count = 0;
  for (; count < most && *token < end; count++) {
    slide_tile_cut(&w->tile[count], p, *token, end);
    slide_tile_place(&w->tile[count], p, group, backward, backward ? slide_frames(p) : 0, w->raw);
    assert(w->tile[count].blocks <= slide_blocks_max(p));
    *token += w->tile[count].count;
  }
  return count;
}

static size_t slide_forward_scratch(const struct msk_slide *p) {
  struct slide_work w;
  return slide_lay(&w, p, 0, NULL);
}

static void slide_forward(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1, void *scratch) {
  struct slide_work w;
  int64_t heads = p->heads / p->groups, form = p->lattice[0] * slide_grid(p).frame * slide_depth(p);
  const engine_element *packed =
      (const engine_element *)((const char *)p->packed + (size_t)group * slide_pack_bytes(p));
  slide_lay(&w, p, 0, scratch);
  engine_begin();
  while (i0 < i1) {
    int count = slide_batch_prepare(p, group, 0, heads > 1 ? SLIDE_BATCH : 1, &i0, i1, &w);
    for (int64_t h = 0; h < heads; h++)
      for (int n = 0; n < count; n++)
        slide_forward_head(p, &w.tile[n], group * heads + h, packed + 2 * h * form,
                           packed + (2 * h + 1) * form, &w);
  }
  engine_end();
}
