/* Private to the AVX-512 files of the slide family: the backward pass in score space; see slide-run.h.
 *
 * It goes head by head through the frames of queries: a ring holds the packed frames they reach, accumulators
 * hold the sum of one frame of queries and are then added to dk and dv, so that where calls start and end
 * changes no bit if they start at frames. */
#pragma once
#include "slide-run.h"

/* Rows of P and of scale dS of half a tile, and the derivatives of the offsets. */
static void slide_backward_weights(const struct msk_slide *p, const struct slide_tile *tile, int64_t half,
                                   struct slide_work *w, __m512 lse, __m512 mean) {
  int64_t count = msk_slide_window_points(p), length = slide_round_up(slide_offset_length(p), SLIDE_LANES);
  __m512 factor = _mm512_set1_ps(p->scale * SLIDE_LOG2E), scale = _mm512_set1_ps(p->scale);
  slide_clear_rows(tile, half, w->rows[2]);
  slide_clear_rows(tile, half, w->rows[3]);
  memset(w->doffsets, 0, (size_t)length * sizeof(__m512));
  for (int64_t j = 0; j < count; j++) {
    const struct slide_point *point = &tile->points[half * count + j];
    struct slide_jet score = slide_corner_jet(tile, point, w->rows[0]);
    struct slide_jet value = slide_corner_jet(tile, point, w->rows[1]);
    __m512 *doffset = w->doffsets + (p->mode == MSK_SLIDE_POINT ? 3 * j : 0);
    __m512 weight = slide_exp2(_mm512_fmsub_ps(score.value, factor, lse));
    __m512 dscore = _mm512_mul_ps(_mm512_mul_ps(weight, scale), _mm512_sub_ps(value.value, mean));
    for (int a = 0; a < 3; a++)
      doffset[a] = _mm512_add_ps(
          doffset[a], _mm512_fmadd_ps(dscore, score.slope[a], _mm512_mul_ps(weight, value.slope[a])));
    slide_corner_add(tile, point, weight, w->rows[2]);
    slide_corner_add(tile, point, dscore, w->rows[3]);
  }
}

/* dO . o and the logarithm to base 2 of the softmax sums. */
static void slide_backward_means(const struct msk_slide *p, const struct slide_tile *tile, int64_t half,
                                 int64_t head, __m512 *lse, __m512 *mean) {
  float logs[SLIDE_LANES] __attribute__((aligned(64))), means[SLIDE_LANES] __attribute__((aligned(64)));
  for (int64_t lane = 0; lane < SLIDE_LANES; lane++) {
    int64_t token = slide_lane_token(tile, half, lane);
    int used = half * SLIDE_LANES + lane < tile->count;
    const float *d_o = p->d_o + token * p->d_o_ld + head * p->head_dim;
    const float *o = p->o + token * p->o_ld + head * p->head_dim;
    __m512 sum = _mm512_setzero_ps();
    for (int64_t d = 0; d < p->head_dim; d += SLIDE_LANES) {
      __mmask16 mask = slide_first(p->head_dim - d);
      sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, d_o + d), _mm512_maskz_loadu_ps(mask, o + d), sum);
    }
    means[lane] = used ? _mm512_reduce_add_ps(sum) : 0;
    logs[lane] = used ? p->lse[token * p->heads + head] * SLIDE_LOG2E : 0;
  }
  *lse = _mm512_load_ps(logs);
  *mean = _mm512_load_ps(means);
}

/* dz of half a tile: written by the group's first head, added to by the others. */
static void slide_write_doffsets(const struct msk_slide *p, const struct slide_tile *tile, int64_t half,
                                 int64_t group, int add, struct slide_work *w) {
  int64_t length = slide_offset_length(p), first = half * SLIDE_LANES;
  const __m512 *tangents = tile->tangents + half * slide_round_up(length, SLIDE_LANES);
  for (int64_t i = 0; i < length; i += SLIDE_LANES) {
    __m512i r[SLIDE_LANES];
    __mmask16 mask = slide_first(length - i);
    for (int64_t k = 0; k < SLIDE_LANES; k++) {
      __m512 moved = w->doffsets[i + k];
      if (p->z)
        moved = _mm512_mul_ps(moved, _mm512_fnmadd_ps(tangents[i + k], tangents[i + k], _mm512_set1_ps(1)));
      r[k] = _mm512_castps_si512(moved);
    }
    slide_transpose(r);
    for (int64_t lane = 0; lane < SLIDE_LANES && first + lane < tile->count; lane++) {
      float *dz = p->dz + (tile->token + first + lane) * p->dz_ld + group * length + i;
      __m512 value = _mm512_castsi512_ps(r[lane]);
      if (add)
        value = _mm512_add_ps(value, _mm512_maskz_loadu_ps(mask, dz));
      _mm512_mask_storeu_ps(dz, mask, value);
    }
  }
}

/* All of a tile but the sums over its lanes, whose operands it leaves in place n of the batch. */
static void slide_backward_tile(const struct msk_slide *p, int64_t group, int64_t head, int n,
                                struct slide_work *w) {
  const struct slide_tile *tile = &w->tile[n];
  int64_t depth = slide_depth(p), first = head * p->head_dim, token = tile->token;
  const float *q = p->q + token * p->q_ld + first, *d_o = p->d_o + token * p->d_o_ld + first;
  engine_query(q, p->q_ld, tile->count, p->head_dim, depth, w->query[0]);
  engine_query(d_o, p->d_o_ld, tile->count, p->head_dim, depth, w->query[1]);
  engine_query_across(q, p->q_ld, tile->count, p->head_dim, depth, w->query_across[n][0]);
  engine_query_across(d_o, p->d_o_ld, tile->count, p->head_dim, depth, w->query_across[n][1]);
  engine_scores(w->query[0], tile->halves, depth, w->form[0], tile->list, tile->blocks, w->rows[0], tile->ld);
  engine_scores(w->query[1], tile->halves, depth, w->form[1], tile->list, tile->blocks, w->rows[1], tile->ld);
  slide_clear_slack(tile, w->rows[0]);
  slide_clear_slack(tile, w->rows[1]);
  for (int64_t half = 0; half < tile->halves; half++) {
    __m512 lse, mean;
    slide_backward_means(p, tile, half, head, &lse, &mean);
    slide_backward_weights(p, tile, half, w, lse, mean);
    if (p->dz)
      slide_write_doffsets(p, tile, half, group, head % (p->heads / p->groups) != 0, w);
  }
  engine_sums(w->rows[3], tile->halves, tile->ld, tile->blocks, w->narrow, w->form[2], tile->list, depth,
              w->out);
  for (int64_t lane = 0; lane < tile->count; lane++)
    for (int64_t d = 0; d < p->head_dim; d += SLIDE_LANES)
      _mm512_mask_storeu_ps(p->dq + (token + lane) * p->dq_ld + first + d, slide_first(p->head_dim - d),
                            _mm512_loadu_ps(w->out + lane * depth + d));
  engine_across(w->rows[3], tile->halves, tile->ld, tile->blocks, w->across[n][0]);
  engine_across(w->rows[2], tile->halves, tile->ld, tile->blocks, w->across[n][1]);
}

/* Sums of a batch over its lanes, block by block: an accumulator is fetched once, and adds up the tiles in
 * their order. */
static void slide_backward_outer(const struct msk_slide *p, int count, struct slide_work *w) {
  int64_t blocks = slide_ring_cells(p) / SLIDE_BLOCK, depth = slide_depth(p);
  for (int n = 0; n < count; n++) {
    memset(w->where[n], 0xff, (size_t)blocks * sizeof(int32_t));
    for (int64_t i = 0; i < w->tile[n].blocks; i++)
      w->where[n][w->tile[n].list[i]] = (int32_t)i;
  }
  for (int64_t block = 0; block < blocks; block++)
    for (int i = 0; i < 2; i++) {
      struct engine_part parts[SLIDE_BATCH];
      int used = 0;
      for (int n = 0; n < count; n++)
        if (w->where[n][block] >= 0)
          parts[used++] = (struct engine_part){
              w->across[n][i] + w->where[n][block] * SLIDE_TILE * SLIDE_BLOCK, w->query_across[n][i]};
      if (used)
        engine_outer(parts, used, depth, w->sums[i] + block * SLIDE_BLOCK * depth);
    }
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
    while (start < end) {
      int count = slide_batch_prepare(p, group, 1, SLIDE_BATCH, &start, end, w);
      for (int n = 0; n < count; n++)
        slide_backward_tile(p, group, head, n, w);
      slide_backward_outer(p, count, w);
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
