/* Private: backward attention in bfloat16; see attention-bf16.h for what the including file defines.
 *
 * Blocks of keys pass over blocks of queries. For 32 x 32 scores at a time S^T = K Q^T and dP^T = V dO^T are
 * multiplied again, P^T and dS^T are stored as the operands of dV += P^T dO, dK += dS^T Q and dQ^T += K^T
 * dS^T. dK and dV of a block of keys stay in scratch while all queries pass; dQ^T is kept whole. */
#pragma once
#include "attention-bf16.h"

#define BACKWARD_KEYS 128
#define BACKWARD_QUERIES 256

struct backward_work {
  int64_t queries, steps, dim;      /* queries rounded up to 32; dim / 32 rounded up; steps * 32 */
  float *lse, *delta;               /* [queries] lse in powers of 2, rowsum (dO o) */
  float *dq;                        /* C tiles [query / 16][dim / 16] of dQ^T */
  float *dk, *dv;                   /* C tiles [key / 16][dim / 16] of a block of keys */
  float *s, *dp;                    /* C tiles of S^T and dP^T: [query tile][32 keys][16] */
  uint16_t *q_columns, *do_columns; /* B tiles [query / 16][dim / 32] */
  uint16_t *q_rows, *do_rows;       /* B tiles [query / 32][dim / 16] */
  uint16_t *k, *v;                  /* A tiles [key / 16][dim / 32] of a block of keys */
  uint16_t *k_columns;              /* A tiles [key / 32][dim / 16] of K^T */
  uint16_t *weights, *ds;           /* A tiles [key / 16][query / 32] of P^T, dS^T in a block */
  uint16_t *ds_columns;             /* B tiles [query / 16][key / 32] of dS^T in a block */
};

/* Lays scratch out; returns its size. */
static size_t backward_layout(const struct msk_attention *p, char *scratch, struct backward_work *w) {
  int64_t queries = attention_round_up(p->queries, 32), dim = attention_round_up(p->head_dim, 32);
  int64_t block = queries < BACKWARD_QUERIES ? queries : BACKWARD_QUERIES;
  int64_t keys = attention_round_up(p->keys, 32);
  size_t used = 0;
  keys = keys < BACKWARD_KEYS ? keys : BACKWARD_KEYS;
  *w = (struct backward_work){.queries = queries, .steps = dim / 32, .dim = dim};
#define TAKE(field, n)                                                                                       \
  (w->field = (void *)(scratch + used), used += ((size_t)(n) * sizeof *w->field + 63) / 64 * 64)
  TAKE(lse, queries);
  TAKE(delta, queries);
  TAKE(dq, queries * dim);
  TAKE(dk, keys * dim);
  TAKE(dv, keys * dim);
  TAKE(s, SCORES);
  TAKE(dp, SCORES);
  TAKE(q_columns, queries * dim);
  TAKE(do_columns, queries * dim);
  TAKE(q_rows, queries * dim);
  TAKE(do_rows, queries * dim);
  TAKE(k, keys * dim);
  TAKE(v, keys * dim);
  TAKE(k_columns, keys * dim);
  TAKE(weights, keys * block);
  TAKE(ds, keys * block);
  TAKE(ds_columns, keys * block);
#undef TAKE
  return used;
}

static size_t backward_scratch(const struct msk_attention *p) {
  struct backward_work w;
  return backward_layout(p, NULL, &w);
}

/* x as B tiles, once with rows as columns and once summed over rows. */
static void backward_pack_queries(const struct attention_rows *x, const struct backward_work *w,
                                  uint16_t *columns, uint16_t *rows) {
  __m512i r[16];
  for (int64_t i = 0; i < w->queries; i += 16)
    for (int64_t step = 0; step < w->steps; step++, columns += TILE) {
      tile_read_rows(x, i, step * 32, r);
      attention_transpose(r);
      tile_store(columns, r);
    }
  for (int64_t i = 0; i < w->queries; i += 32)
    for (int64_t c = 0; c < w->dim; c += 16, rows += TILE) {
      tile_read_pairs(x, i, c, r);
      tile_store(rows, r);
    }
}

/* Queries past the end get an infinite lse, so that their weights are 0. */
static void backward_pack_sums(const struct msk_attention *p, int64_t head, const struct backward_work *w) {
  for (int64_t i = 0; i < p->queries; i++) {
    int64_t row = attention_q_row(p, i);
    const float *o = p->o + row * p->o_ld + head * p->head_dim;
    const float *d_o = p->d_o + row * p->d_o_ld + head * p->head_dim;
    __m512 sum = _mm512_setzero_ps();
    for (int64_t c = 0; c < p->head_dim; c += 16) {
      __mmask16 mask = attention_mask(p->head_dim - c);
      sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, o + c), _mm512_maskz_loadu_ps(mask, d_o + c), sum);
    }
    w->delta[i] = _mm512_reduce_add_ps(sum);
    w->lse[i] = p->lse[row * p->heads + head] * LOG2_E;
  }
  for (int64_t i = p->queries; i < w->queries; i++) {
    w->lse[i] = __builtin_inff();
    w->delta[i] = 0;
  }
}

static void backward_pack_keys(const struct msk_attention *p, int64_t head, int64_t j0, int64_t keys,
                               const struct backward_work *w) {
  struct attention_rows k = {p->k + head * p->head_dim, p->k_ld, p->keys, p->head_dim, p->k_rows};
  struct attention_rows v = {p->v + head * p->head_dim, p->v_ld, p->keys, p->head_dim, p->k_rows};
  uint16_t *k_tile = w->k, *v_tile = w->v, *columns = w->k_columns;
  __m512i r[16];
  for (int64_t j = 0; j < keys; j += 16)
    for (int64_t step = 0; step < w->steps; step++, k_tile += TILE, v_tile += TILE) {
      tile_read_rows(&k, j0 + j, step * 32, r);
      tile_store(k_tile, r);
      tile_read_rows(&v, j0 + j, step * 32, r);
      tile_store(v_tile, r);
    }
  for (int64_t j = 0; j < keys; j += 32)
    for (int64_t c = 0; c < w->dim; c += 16, columns += TILE) {
      tile_read_pairs(&k, j0 + j, c, r);
      attention_transpose(r);
      tile_store(columns, r);
    }
}

/* P^T and dS^T of n <= 32 keys and 32 queries from i. The columns of ds_columns are permuted: column c of
 * tile t is query 8 (c / 4) + 4 t + c % 4, which spares an instruction per vector; backward_store_dq undoes
 * it. */
static inline __attribute__((always_inline)) void
backward_weights(const struct backward_work *w, int64_t i, int64_t n, __m512 factor, uint16_t *weights,
                 uint16_t *ds, int64_t key_tile, uint16_t *ds_columns, int64_t query_tile) {
  const __m512 lse0 = _mm512_load_ps(w->lse + i), lse1 = _mm512_load_ps(w->lse + i + 16);
  const __m512 delta0 = _mm512_load_ps(w->delta + i), delta1 = _mm512_load_ps(w->delta + i + 16);
  for (int64_t j = 0; j < 32; j += 2) {
    __m512i pair[2];
    for (int odd = 0; odd < 2; odd++) {
      int64_t key = j + odd, at = key / 16 * key_tile + key % 16 * 32;
      __m512i p = _mm512_setzero_si512();
      pair[odd] = p;
      if (key < n) {
        const float *s = w->s + key * 16, *dp = w->dp + key * 16;
        __m512 p0 = attention_exp2(_mm512_fmsub_ps(_mm512_load_ps(s), factor, lse0));
        __m512 p1 = attention_exp2(_mm512_fmsub_ps(_mm512_load_ps(s + 2 * TILE_C), factor, lse1));
        __m512 ds0 = _mm512_mul_ps(p0, _mm512_sub_ps(_mm512_load_ps(dp), delta0));
        __m512 ds1 = _mm512_mul_ps(p1, _mm512_sub_ps(_mm512_load_ps(dp + 2 * TILE_C), delta1));
        p = (__m512i)_mm512_cvtne2ps_pbh(p1, p0);
        pair[odd] = (__m512i)_mm512_cvtne2ps_pbh(ds1, ds0);
      }
      _mm512_store_si512(weights + at, p);
      _mm512_store_si512(ds + at, pair[odd]);
    }
    _mm512_store_si512(ds_columns + j * 16, _mm512_unpacklo_epi16(pair[0], pair[1]));
    _mm512_store_si512(ds_columns + query_tile + j * 16, _mm512_unpackhi_epi16(pair[0], pair[1]));
  }
}

static void backward_store_dq(const struct msk_attention *p, int64_t head, const struct backward_work *w) {
  const __m512 scale = _mm512_set1_ps(p->scale);
  for (int64_t tile = 0; tile * 16 < w->queries; tile++)
    for (int64_t c = 0; c < p->head_dim; c += 16) {
      __mmask16 mask = attention_mask(p->head_dim - c);
      __m512i r[16];
      for (int l = 0; l < 16; l++)
        r[l] = _mm512_load_si512(w->dq + (tile * w->dim + c + l) * 16);
      attention_transpose(r);
      for (int l = 0; l < 16; l++) {
        int64_t i = tile / 2 * 32 + l / 4 * 8 + tile % 2 * 4 + l % 4;
        if (i < p->queries)
          _mm512_mask_storeu_ps(p->dq + attention_q_row(p, i) * p->dq_ld + head * p->head_dim + c, mask,
                                _mm512_mul_ps(_mm512_castsi512_ps(r[l]), scale));
      }
    }
}

/* Rows [j0, j0 + n) of dk or dv from C tiles. */
static void backward_store_keys(const struct msk_attention *p, int64_t j0, int64_t n, const float *tiles,
                                int64_t dim, float *to, int64_t ld, float scale) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (int64_t j = 0; j < n; j++) {
    float *row = to + attention_k_row(p, j0 + j) * ld;
    const float *from = tiles + (j / 16 * dim + j % 16) * 16;
    int64_t c = 0;
    for (; c + 16 <= p->head_dim; c += 16)
      _mm512_storeu_ps(row + c, _mm512_mul_ps(_mm512_load_ps(from + c * 16), factor));
    if (c < p->head_dim)
      _mm512_mask_storeu_ps(row + c, attention_mask(p->head_dim - c),
                            _mm512_mul_ps(_mm512_load_ps(from + c * 16), factor));
  }
}

/* Queries [i0, i0 + queries) against the block of keys [j0, j0 + keys), both multiples of 32. */
static void backward_block(const struct msk_attention *p, const struct backward_work *w, int64_t i0,
                           int64_t queries, int64_t j0, int64_t keys) {
  const __m512 factor = _mm512_set1_ps(p->scale * LOG2_E);
  const int64_t tile_row = w->steps * TILE, dim = w->dim, query_steps = queries / 32, key_steps = keys / 32;
  for (int64_t i = 0; i < queries; i += 32)
    for (int64_t j = 0; j < keys; j += 32) {
      int64_t n = p->keys - j0 - j < 32 ? p->keys - j0 - j : 32, at = (j / 16 * query_steps + i / 32) * TILE;
      tiles_multiply(w->s, TILE_C, 2 * TILE_C, w->k + j * dim, tile_row, TILE, w->q_columns + (i0 + i) * dim,
                     tile_row, TILE, w->steps, 2, 0);
      tiles_multiply(w->dp, TILE_C, 2 * TILE_C, w->v + j * dim, tile_row, TILE,
                     w->do_columns + (i0 + i) * dim, tile_row, TILE, w->steps, 2, 0);
      backward_weights(w, i0 + i, n, factor, w->weights + at, w->ds + at, query_steps * TILE,
                       w->ds_columns + (i / 16 * key_steps + j / 32) * TILE, key_steps * TILE);
    }
  for (int64_t j = 0; j < keys; j += 32)
    for (int64_t c = 0; c < dim; c += 32) {
      const int64_t a = j / 16 * query_steps * TILE, b = i0 * dim + c / 16 * TILE, at = (j * dim + c * 16);
      tiles_multiply(w->dv + at, dim * 16, TILE_C, w->weights + a, query_steps * TILE, TILE, w->do_rows + b,
                     TILE, dim / 16 * TILE, query_steps, 2, i0 > 0);
      tiles_multiply(w->dk + at, dim * 16, TILE_C, w->ds + a, query_steps * TILE, TILE, w->q_rows + b, TILE,
                     dim / 16 * TILE, query_steps, 2, i0 > 0);
    }
  for (int64_t i = 0; i < queries; i += 32)
    for (int64_t c = 0; c < dim; c += 32)
      tiles_multiply(w->dq + ((i0 + i) * dim + c * 16), TILE_C, dim * 16, w->k_columns + c / 16 * TILE, TILE,
                     dim / 16 * TILE, w->ds_columns + i / 16 * key_steps * TILE, key_steps * TILE, TILE,
                     key_steps, 2, j0 > 0);
}

static void backward(const struct msk_attention *p, int64_t head, void *scratch) {
  const int64_t column = head * p->head_dim;
  const struct attention_rows q = {p->q + column, p->q_ld, p->queries, p->head_dim, p->q_rows};
  const struct attention_rows d_o = {p->d_o + column, p->d_o_ld, p->queries, p->head_dim, p->q_rows};
  struct backward_work w;
  backward_layout(p, scratch, &w);
  backward_pack_queries(&q, &w, w.q_columns, w.q_rows);
  backward_pack_queries(&d_o, &w, w.do_columns, w.do_rows);
  backward_pack_sums(p, head, &w);
  tiles_begin();
  for (int64_t j = 0; j < p->keys; j += BACKWARD_KEYS) {
    int64_t n = p->keys - j < BACKWARD_KEYS ? p->keys - j : BACKWARD_KEYS, keys = attention_round_up(n, 32);
    backward_pack_keys(p, head, j, keys, &w);
    for (int64_t i = 0; i < w.queries; i += BACKWARD_QUERIES)
      backward_block(p, &w, i, w.queries - i < BACKWARD_QUERIES ? w.queries - i : BACKWARD_QUERIES, j, keys);
    backward_store_keys(p, j, n, w.dk, w.dim, p->dk + column, p->dk_ld, p->scale);
    backward_store_keys(p, j, n, w.dv, w.dim, p->dv + column, p->dv_ld, 1);
  }
  tiles_end();
  backward_store_dq(p, head, &w);
}

static void set_table(struct msk_attention_ops *bf16, const char *name) {
  *bf16 = (struct msk_attention_ops){.name = name,
                                     .precision = MSK_PRECISION_BF16,
                                     .q_step = FORWARD_QUERIES,
                                     .pack_bytes = forward_pack_bytes,
                                     .pack = forward_pack,
                                     .forward_scratch = forward_scratch,
                                     .forward = forward,
                                     .backward_scratch = backward_scratch,
                                     .backward = backward};
}
