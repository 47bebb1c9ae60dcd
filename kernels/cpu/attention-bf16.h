/* Private: forward attention in bfloat16, for whichever instruction multiplies tiles: the file that includes
 * this defines the functions named tiles_.
 *
 * A block of 32 queries passes over strips of keys: S^T = K Q^T, weights P, O^T += V^T P^T. Instead of a
 * maximum, weights are taken relative to a bound: score <= B = |q| max |k|, and P = 2^(score - B + 60) cannot
 * overflow. If the largest score lies so far below the bound that the sum of weights is small, the block is
 * done again with running maxima (online softmax). That depends on the block alone, not on how queries were
 * split. */
#pragma once
#include "attention-tiles.h"

#define FORWARD_QUERIES 32
#define FORWARD_KEYS 512
/* 2^60 times a million keys times values to 2^40 is finite; beside a sum of 2^-60 what underflows is nothing.
 */
#define WEIGHT_TOP 60.0f
#define WEIGHT_LEAST 0x1p-60f
#define LOG2_E 1.44269504f
#define LN_2 0.693147181f

/* Of 16 or 32 queries: weights are 2^(factor s - shift), their sums so far. */
struct forward_state {
  __m512 factor, shift[2], sum[2];
};

/* Around a call. */
static inline void tiles_begin(void);
static inline void tiles_end(void);

/* C (2 x cols tiles) = or += sum over steps of A (2 tiles) B (cols tiles, 1 or 2); distances in elements. */
static inline void tiles_multiply(float *c, int64_t c_row, int64_t c_col, const uint16_t *a, int64_t a_row,
                                  int64_t a_step, const uint16_t *b, int64_t b_col, int64_t b_step,
                                  int64_t steps, const int cols, int accumulate);

/* next = the scores of 32 keys; meanwhile p = the weights of s, the scores of the 32 keys before. */
static inline void tiles_scores_weights(float *next, const uint16_t *k, const uint16_t *q, int64_t steps,
                                        const float *s, uint16_t *p, int64_t p_col,
                                        struct forward_state *state, const int cols);

/* Packed head: 64 bytes with the largest |k|^2, K as A tiles [key / 16][dim / 32], V^T as A tiles [key /
 * 32][dim / 16]. */
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
  __m512 most = _mm512_setzero_ps();
  for (int64_t j = 0; j < f.keys; j += 16) {
    most = _mm512_max_ps(most, attention_norms(&k, j));
    for (int64_t step = 0; step < f.steps; step++, k_tiles += TILE) {
      tile_read_rows(&k, j, step * 32, r);
      tile_store(k_tiles, r);
    }
  }
  *(float *)packed_head = _mm512_reduce_max_ps(most);
  for (int64_t j = 0; j < f.keys; j += 32)
    for (int64_t c = 0; c < f.steps * 32; c += 16, v_tiles += TILE) {
      tile_read_pairs(&v, j, c, r);
      attention_transpose(r);
      tile_store(v_tiles, r);
    }
}

/* Scratch of forward: B tiles of Q [query tile][dim / 32] and of P of a strip [query tile][key / 32]; C tiles
 * of S^T [key / 32][query tile][key / 16 % 2], two chunks of 32 keys in turn or a strip, and of O^T [query
 * tile][dim / 16]. */
struct forward_work {
  uint16_t *q, *p;
  float *s, *o;
  int64_t strip; /* keys of a strip, rounded up to 32 */
};

static int64_t forward_strip_keys(const struct msk_attention *p) {
  return p->keys < FORWARD_KEYS ? attention_round_up(p->keys, 32) : FORWARD_KEYS;
}

static size_t forward_scratch(const struct msk_attention *p) {
  size_t row = (size_t)(attention_round_up(p->head_dim, 32) + forward_strip_keys(p));
  return FORWARD_QUERIES * row * (sizeof(uint16_t) + sizeof(float));
}

static struct forward_work forward_work(const struct msk_attention *p, void *scratch) {
  int64_t dim = attention_round_up(p->head_dim, 32);
  struct forward_work w = {.s = scratch, .strip = forward_strip_keys(p)};
  w.o = w.s + FORWARD_QUERIES * w.strip;
  w.p = (uint16_t *)(w.o + FORWARD_QUERIES * dim);
  w.q = w.p + FORWARD_QUERIES * w.strip;
  return w;
}

#define SCORES 1024 /* floats of the scores of 32 keys and 32 queries */

/* Weights of keys 2 j and 2 j + 1 of a chunk, a row of the B tile p (p_col apart for the other 16 queries).
 */
static inline __attribute__((always_inline)) void forward_pair(const float *s, uint16_t *p, int64_t p_col,
                                                               int64_t j, struct forward_state *state,
                                                               const int cols) {
  for (int t = 0; t < cols; t++) {
    const float *at = s + t * 2 * TILE_C + j * 32;
    __m512 even = attention_exp2(_mm512_fmsub_ps(_mm512_load_ps(at), state->factor, state->shift[t]));
    __m512 odd = attention_exp2(_mm512_fmsub_ps(_mm512_load_ps(at + 16), state->factor, state->shift[t]));
    state->sum[t] = _mm512_add_ps(state->sum[t], _mm512_add_ps(even, odd));
    _mm512_store_si512(p + t * p_col + j * 32, attention_interleave(even, odd));
  }
}

/* Weights of n <= 32 keys; the rest of the chunk gets 0. */
static inline __attribute__((always_inline)) void forward_weights(const float *s, uint16_t *p, int64_t p_col,
                                                                  int64_t n, struct forward_state *state,
                                                                  const int cols) {
  for (int64_t j = 0; j < n / 2; j++)
    forward_pair(s, p, p_col, j, state, cols);
  for (int64_t j = n / 2; j < 16; j++)
    for (int t = 0; t < cols; t++) {
      __m512 even = _mm512_setzero_ps();
      if (2 * j < n)
        even = attention_exp2(
            _mm512_fmsub_ps(_mm512_load_ps(s + t * 2 * TILE_C + j * 32), state->factor, state->shift[t]));
      state->sum[t] = _mm512_add_ps(state->sum[t], even);
      _mm512_store_si512(p + t * p_col + j * 32, attention_interleave(even, _mm512_setzero_ps()));
    }
}

/* O^T of 16 queries times a factor per query. */
static inline void forward_rescale(float *o, int64_t dim, __m512 factor) {
  if (_mm512_cmp_ps_mask(factor, _mm512_set1_ps(1), _CMP_NEQ_UQ))
    for (int64_t c = 0; c < dim; c++)
      _mm512_store_ps(o + c * 16, _mm512_mul_ps(_mm512_load_ps(o + c * 16), factor));
}

/* Writes up to 16 rows of o and lse from O^T, the sums of weights and what was subtracted from the scores. */
static inline void forward_finish(const struct msk_attention *p, int64_t head, int64_t i0, int64_t n,
                                  const float *o, __m512 sum, __m512 max) {
  __m512 inverse = _mm512_div_ps(_mm512_set1_ps(1), sum);
  for (int64_t c = 0; c < p->head_dim; c += 16) {
    __mmask16 mask = attention_mask(p->head_dim - c);
    __m512i r[16];
    for (int l = 0; l < 16; l++)
      r[l] = _mm512_castps_si512(_mm512_mul_ps(_mm512_load_ps(o + (c + l) * 16), inverse));
    attention_transpose(r);
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

/* What a block of queries reads and where it works. */
struct forward_block {
  const uint16_t *k, *v; /* packed tiles */
  struct forward_work w;
  int64_t steps, dim, keys;
};

static inline __attribute__((always_inline)) void forward_scores(const struct forward_block *b, int64_t j,
                                                                 float *s, const int cols) {
  tiles_multiply(s, TILE_C, 2 * TILE_C, b->k + j * b->dim, b->steps * TILE, TILE, b->w.q, b->steps * TILE,
                 TILE, b->steps, cols, 0);
}

/* P of keys [j0, j0 + n), weights relative to the bound: scores of a chunk are multiplied beside the weights
 * of the chunk before. */
static inline __attribute__((always_inline)) void forward_strip(const struct forward_block *b, int64_t j0,
                                                                int64_t n, struct forward_state *state,
                                                                const int cols) {
  int64_t j = 0, p_col = b->w.strip * 16;
  forward_scores(b, j0, b->w.s, cols);
  for (; j + 32 < n; j += 32)
    tiles_scores_weights(b->w.s + (j / 32 + 1) % 2 * SCORES, b->k + (j0 + j + 32) * b->dim, b->w.q, b->steps,
                         b->w.s + j / 32 % 2 * SCORES, b->w.p + j * 16, p_col, state, cols);
  forward_weights(b->w.s + j / 32 % 2 * SCORES, b->w.p + j * 16, p_col, n - j, state, cols);
}

/* The same relative to running maxima. */
static inline __attribute__((always_inline)) void forward_strip_online(const struct forward_block *b,
                                                                       int64_t j0, int64_t n,
                                                                       struct forward_state *state,
                                                                       const int cols) {
  for (int64_t j = 0; j < n; j += 32)
    forward_scores(b, j0 + j, b->w.s + j / 32 * SCORES, cols);
  for (int t = 0; t < cols; t++) {
    __m512 most = state->shift[t], shrink;
    for (int64_t j = 0; j < n; j++)
      most = _mm512_max_ps(
          most, _mm512_mul_ps(_mm512_load_ps(b->w.s + j / 32 * SCORES + t * 2 * TILE_C + j % 32 * 16),
                              state->factor));
    shrink = attention_exp2(_mm512_sub_ps(state->shift[t], most));
    state->sum[t] = _mm512_mul_ps(state->sum[t], shrink);
    state->shift[t] = most;
    if (j0)
      forward_rescale(b->w.o + t * b->dim * 16, b->dim, shrink);
  }
  for (int64_t j = 0; j < n; j += 32)
    forward_weights(b->w.s + j / 32 * SCORES, b->w.p + j * 16, b->w.strip * 16, n - j < 32 ? n - j : 32,
                    state, cols);
}

static inline __attribute__((always_inline)) void
forward_keys(const struct forward_block *b, struct forward_state *state, int online, const int cols) {
  for (int64_t j0 = 0; j0 < b->keys; j0 += FORWARD_KEYS) {
    int64_t n = b->keys - j0 < FORWARD_KEYS ? b->keys - j0 : FORWARD_KEYS;
    if (online)
      forward_strip_online(b, j0, n, state, cols);
    else
      forward_strip(b, j0, n, state, cols);
    for (int64_t c = 0; c < b->dim; c += 32)
      tiles_multiply(b->w.o + c * 16, TILE_C, b->dim * 16, b->v + j0 * b->dim + c * 32, TILE,
                     2 * b->steps * TILE, b->w.p, b->w.strip * 16, TILE, (n + 31) / 32, cols, j0 > 0);
  }
}

/* n <= 16 cols queries from i0. */
static inline __attribute__((always_inline)) void forward_queries(const struct msk_attention *p, int64_t head,
                                                                  int64_t i0, int64_t n,
                                                                  struct forward_work w, const int cols) {
  const struct forward_shape f = forward_shape(p);
  const uint16_t *packed = (const uint16_t *)((const char *)p->packed + (size_t)head * forward_pack_bytes(p));
  const struct attention_rows q = {p->q + head * p->head_dim, p->q_ld, i0 + n, p->head_dim, p->q_rows};
  const struct forward_block b = {packed + 32, packed + 32 + f.keys * f.steps * 32, w, f.steps, f.steps * 32,
                                  p->keys};
  const float reach = p->scale * LOG2_E;
  struct forward_state state = {.factor = _mm512_set1_ps(reach)};
  __mmask16 lost = 0;
  for (int t = 0; t < cols; t++) {
    __m512i r[16];
    for (int64_t step = 0; step < f.steps; step++) {
      tile_read_rows(&q, i0 + t * 16, step * 32, r);
      attention_transpose(r);
      tile_store(w.q + (t * f.steps + step) * TILE, r);
    }
    /* A hundredth more, for the rounding of q and k. */
    __m512 bound = _mm512_mul_ps(attention_norms(&q, i0 + t * 16), _mm512_set1_ps(*(const float *)packed));
    bound = _mm512_fmsub_ps(_mm512_sqrt_ps(bound), _mm512_set1_ps(1.01f * __builtin_fabsf(reach)),
                            _mm512_set1_ps(WEIGHT_TOP));
    state.shift[t] = _mm512_max_ps(bound, _mm512_setzero_ps());
    state.sum[t] = _mm512_setzero_ps();
  }
  forward_keys(&b, &state, 0, cols);
  for (int t = 0; t < cols; t++)
    lost |= _mm512_cmp_ps_mask(state.sum[t], _mm512_set1_ps(WEIGHT_LEAST), _CMP_NGE_UQ);
  if (lost) {
    for (int t = 0; t < cols; t++) {
      state.shift[t] = _mm512_set1_ps(-__builtin_inff());
      state.sum[t] = _mm512_setzero_ps();
    }
    forward_keys(&b, &state, 1, cols);
  }
  for (int t = 0; t < cols; t++)
    forward_finish(p, head, i0 + t * 16, n - t * 16 < 16 ? n - t * 16 : 16, w.o + t * f.steps * 32 * 16,
                   state.sum[t], state.shift[t]);
}

static void forward(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch) {
  struct forward_work w = forward_work(p, scratch);
  tiles_begin();
  for (int64_t i = q0; i < q1; i += FORWARD_QUERIES)
    if (q1 - i > 16)
      forward_queries(p, head, i, q1 - i < FORWARD_QUERIES ? q1 - i : FORWARD_QUERIES, w, 2);
    else
      forward_queries(p, head, i, q1 - i, w, 1);
  tiles_end();
}
