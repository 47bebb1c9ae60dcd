/* Private: forward attention in bfloat16, for whichever instruction multiplies tiles. The file that includes this defines
 *
 *   tiles_multiply (c, c_row, c_col, a, a_row, a_step, b, b_col, b_step, steps, cols, accumulate)
 *     C (2 x cols tiles) = or += sum over steps of A (2 tiles) B (cols tiles, 1 or 2); distances in elements
 *   tiles_begin (), tiles_end ()  around a call
 *
 * A block of 32 queries passes over blocks of keys: S^T = K Q^T, weights, O^T += V^T P^T. Where a bound on the scores
 * (|q| |k|) says that 2^s cannot leave the range of float32, weights are 2^s and no maximum is needed; otherwise the
 * maximum of each query runs along (online softmax). The choice is made per block of queries, so it does not depend on
 * how queries were split. */
#pragma once
#include "attention-tiles.h"

#define FORWARD_QUERIES 32
#define FORWARD_KEYS 128
/* 2^60 times a million keys times values to 2^40 stays finite; 2^-60 times values down to 2^-60 stays normal. */
#define SCORE_LIMIT 60.0f
#define LOG2_E 1.44269504f
#define LN_2 0.693147181f

/* Packed head: 64 bytes with the largest |k|^2, K as A tiles [key / 16][dim / 32], V^T as A tiles [key / 32][dim / 16]. */
struct forward_shape {
  int64_t keys, steps; /* keys rounded up to 32; dim / 32 rounded up */
};

static inline struct forward_shape forward_shape(const struct msk_attention *p) {
  return (struct forward_shape){attention_round_up(p->keys, 32), (p->head_dim + 31) / 32};
}

static size_t forward_pack_bytes(const struct msk_attention *p) {
  struct forward_shape f = forward_shape(p);
  return 64 + (size_t)(2 * f.keys * f.steps * 32) * sizeof(uint16_t);
}

static void forward_pack(const struct msk_attention *p, int64_t head, void *packed_head) {
  struct forward_shape f = forward_shape(p);
  struct attention_rows k = {p->k + head * p->head_dim, p->k_ld, p->keys, p->head_dim, p->k_rows};
  struct attention_rows v = {p->v + head * p->head_dim, p->v_ld, p->keys, p->head_dim, p->k_rows};
  uint16_t *k_tiles = (uint16_t *)packed_head + 32, *v_tiles = k_tiles + f.keys * f.steps * 32;
  __m512i r[16];
  *(float *)packed_head = attention_norm_bound(&k, 0, p->keys);
  for (int64_t j = 0; j < f.keys; j += 16)
    for (int64_t step = 0; step < f.steps; step++, k_tiles += TILE) {
      tile_read_rows(&k, j, step * 32, r);
      tile_store(k_tiles, r);
    }
  for (int64_t j = 0; j < f.keys; j += 32)
    for (int64_t c = 0; c < f.steps * 32; c += 16, v_tiles += TILE) {
      tile_read_pairs(&v, j, c, r);
      tile_transpose(r);
      tile_store(v_tiles, r);
    }
}

/* Scratch of forward, C tiles [query tile][row / 16]. */
struct forward_work {
  uint16_t *q, *p; /* B tiles [query tile][dim / 32], [query tile][key / 32] */
  float *s, *o;
};

static size_t forward_scratch(const struct msk_attention *p) {
  int64_t dim = attention_round_up(p->head_dim, 32);
  return (size_t)FORWARD_QUERIES * ((dim + FORWARD_KEYS) * sizeof(uint16_t) + (dim + FORWARD_KEYS) * sizeof(float));
}

static struct forward_work forward_work(const struct msk_attention *p, void *scratch) {
  int64_t dim = attention_round_up(p->head_dim, 32);
  struct forward_work w = {.s = scratch};
  w.o = w.s + FORWARD_QUERIES * FORWARD_KEYS;
  w.p = (uint16_t *)(w.o + FORWARD_QUERIES * dim);
  w.q = w.p + FORWARD_QUERIES * FORWARD_KEYS;
  return w;
}

/* Weights of n keys for 16 queries: P = 2^(factor s - max), as a B tile; sum += P. Rows up to a multiple of 32 become 0. */
static inline __m512 forward_weights(const float *s, uint16_t *p, int64_t n, __m512 factor, __m512 max, __m512 sum) {
  __m512 other = _mm512_setzero_ps();
  int64_t j = 0;
  for (; j + 2 <= n; j += 2) {
    __m512 even = attention_exp2(_mm512_fmsub_ps(_mm512_load_ps(s + j * 16), factor, max));
    __m512 odd = attention_exp2(_mm512_fmsub_ps(_mm512_load_ps(s + j * 16 + 16), factor, max));
    sum = _mm512_add_ps(sum, even);
    other = _mm512_add_ps(other, odd);
    _mm512_store_si512(p + j * 16, attention_interleave(even, odd));
  }
  if (j < n) {
    __m512 even = attention_exp2(_mm512_fmsub_ps(_mm512_load_ps(s + j * 16), factor, max));
    sum = _mm512_add_ps(sum, even);
    _mm512_store_si512(p + j * 16, attention_interleave(even, _mm512_setzero_ps()));
    j += 2;
  }
  for (; j & 31; j += 2)
    _mm512_store_si512(p + j * 16, _mm512_setzero_si512());
  return _mm512_add_ps(sum, other);
}

/* The larger of max and the scaled scores of n keys. */
static inline __m512 forward_max(const float *s, int64_t n, __m512 factor, __m512 max) {
  for (int64_t j = 0; j < n; j++)
    max = _mm512_max_ps(max, _mm512_mul_ps(_mm512_load_ps(s + j * 16), factor));
  return max;
}

/* O^T of 16 queries times a factor per query. */
static inline void forward_rescale(float *o, int64_t dim, __m512 factor) {
  if (_mm512_cmp_ps_mask(factor, _mm512_set1_ps(1), _CMP_NEQ_UQ))
    for (int64_t c = 0; c < dim; c++)
      _mm512_store_ps(o + c * 16, _mm512_mul_ps(_mm512_load_ps(o + c * 16), factor));
}

/* Writes up to 16 rows of o and lse from O^T, the sums of weights and what was subtracted from the scores. */
static inline void forward_finish(const struct msk_attention *p, int64_t head, int64_t i0, int64_t n, const float *o,
                                  __m512 sum, __m512 max) {
  __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1), sum);
  for (int64_t c = 0; c < p->head_dim; c += 16) {
    __mmask16 mask = attention_mask(p->head_dim - c);
    __m512i r[16];
    for (int l = 0; l < 16; l++)
      r[l] = _mm512_castps_si512(_mm512_mul_ps(_mm512_load_ps(o + (c + l) * 16), inverse));
    tile_transpose(r);
    for (int l = 0; l < 16; l++)
      if (l < n)
        _mm512_mask_storeu_ps(p->o + attention_q_row(p, i0 + l) * p->o_ld + head * p->head_dim + c, mask,
                              _mm512_castsi512_ps(r[l]));
  }
  if (p->lse) {
    float lse[16];
    _mm512_storeu_ps(lse, _mm512_mul_ps(_mm512_add_ps(attention_log2(sum), max), _mm512_set1_ps(LN_2)));
    for (int64_t l = 0; l < n; l++)
      p->lse[attention_q_row(p, i0 + l) * p->heads + head] = lse[l];
  }
}

static inline __attribute__((always_inline)) void forward_block(const struct msk_attention *p, int64_t head,
                                                                int64_t i0, int64_t n, struct forward_work w,
                                                                const int cols) {
  const struct forward_shape f = forward_shape(p);
  const uint16_t *packed = (const uint16_t *)((const char *)p->packed + (size_t)head * forward_pack_bytes(p));
  const uint16_t *k_tiles = packed + 32, *v_tiles = k_tiles + f.keys * f.steps * 32;
  const struct attention_rows q = {p->q + head * p->head_dim, p->q_ld, i0 + n, p->head_dim, p->q_rows};
  const int64_t dim = f.steps * 32;
  const __m512 factor = _mm512_set1_ps(p->scale * LOG2_E);
  const float k_norm = *(const float *)packed, reach = p->scale * LOG2_E;
  const int bounded = attention_norm_bound(&q, i0, i0 + n) * k_norm * reach * reach <= SCORE_LIMIT * SCORE_LIMIT;
  __m512 sum[2], max[2];
  for (int t = 0; t < cols; t++) {
    __m512i r[16];
    for (int64_t step = 0; step < f.steps; step++) {
      tile_read_rows(&q, i0 + t * 16, step * 32, r);
      tile_transpose(r);
      tile_store(w.q + (t * f.steps + step) * TILE, r);
    }
    sum[t] = _mm512_setzero_ps();
    max[t] = bounded ? _mm512_setzero_ps() : _mm512_set1_ps(-__builtin_inff());
  }
  for (int64_t j0 = 0; j0 < p->keys; j0 += FORWARD_KEYS) {
    int64_t keys = p->keys - j0 < FORWARD_KEYS ? p->keys - j0 : FORWARD_KEYS;
    int64_t key_steps = (keys + 31) / 32;
    for (int64_t j = 0; j < keys; j += 32)
      tiles_multiply(w.s + j * 16, TILE_C, FORWARD_KEYS * 16, k_tiles + (j0 + j) * f.steps * 32, f.steps * TILE, TILE,
                     w.q, f.steps * TILE, TILE, f.steps, cols, 0);
    for (int t = 0; t < cols; t++) {
      const float *s = w.s + t * FORWARD_KEYS * 16;
      if (!bounded) {
        __m512 next = forward_max(s, keys, factor, max[t]);
        __m512 shrink = attention_exp2(_mm512_sub_ps(max[t], next));
        max[t] = next;
        sum[t] = _mm512_mul_ps(sum[t], shrink);
        if (j0)
          forward_rescale(w.o + t * dim * 16, dim, shrink);
      }
      sum[t] = forward_weights(s, w.p + t * FORWARD_KEYS * 16, keys, factor, max[t], sum[t]);
    }
    for (int64_t c = 0; c < dim; c += 32)
      tiles_multiply(w.o + c * 16, TILE_C, dim * 16, v_tiles + j0 * dim + c * 32, TILE, 2 * f.steps * TILE, w.p,
                     FORWARD_KEYS * 16, TILE, key_steps, cols, j0 > 0);
  }
  for (int t = 0; t < cols; t++)
    forward_finish(p, head, i0 + t * 16, n - t * 16 < 16 ? n - t * 16 : 16, w.o + t * dim * 16, sum[t], max[t]);
}

static void forward(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch) {
  struct forward_work w = forward_work(p, scratch);
  tiles_begin();
  for (int64_t i = q0; i < q1; i += FORWARD_QUERIES)
    if (q1 - i > 16)
      forward_block(p, head, i, q1 - i < FORWARD_QUERIES ? q1 - i : FORWARD_QUERIES, w, 2);
    else
      forward_block(p, head, i, q1 - i, w, 1);
  tiles_end();
}
