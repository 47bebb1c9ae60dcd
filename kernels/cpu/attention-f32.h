/* Private: attention with float32 arithmetic for vectors of W lanes. For bf16 precision the same products run
 * on operands that were rounded to bfloat16. The file that includes this defines
 *
 *   W, vec (a vector of W floats), ROWS (rows of a register tile of ROWS x 2 vectors)
 *   vec_set (x), vec_load (p), vec_store (p, v), vec_add, vec_sub, vec_mul, vec_max (a, b), vec_fma (a, b,
 * c): a b + c vec_bf16 (x): x rounded to bfloat16, ties to even vec_exp2 (x), a few ulp; 0 far below the
 * range; vec_transpose (r): W x W
 *
 * Scores are kept transposed, S^T [key, query], in blocks of 2 W queries, so every product has the same form:
 * C [rows, 2 W] += A B with elements of A broadcast and rows of B loaded: S^T = K Q^T, O^T += V^T P^T, dP^T =
 * V dO^T, dQ^T += K^T dS^T (columns are queries), dV += P^T dO, dK += dS^T Q and maxima, sums and weights of
 * a query never leave their lane. */
#pragma once
#include <math.h>
#include "attention.h"

#define QUERIES (2 * W)
#define STRIP 256 /* keys */
#define LOG2_E 1.44269504f

/* Rows [i, i + rows) of C, rows <= ROWS. Element (r, l) of A is a[r * a_row + l * a_step]. */
static inline __attribute__((always_inline)) void product_rows(float *c, int64_t c_ld, const float *a,
                                                               int64_t a_row, int64_t a_step, const float *b,
                                                               int64_t b_ld, int64_t steps, int accumulate,
                                                               const int rows) {
  vec sum[ROWS][2];
  for (int r = 0; r < rows; r++)
    for (int h = 0; h < 2; h++)
      sum[r][h] = accumulate ? vec_load(c + r * c_ld + h * W) : vec_set(0);
  for (int64_t l = 0; l < steps; l++, a += a_step, b += b_ld) {
    vec b0 = vec_load(b), b1 = vec_load(b + W);
    for (int r = 0; r < rows; r++) {
      vec x = vec_set(a[r * a_row]);
      sum[r][0] = vec_fma(x, b0, sum[r][0]);
      sum[r][1] = vec_fma(x, b1, sum[r][1]);
    }
  }
  for (int r = 0; r < rows; r++)
    for (int h = 0; h < 2; h++)
      vec_store(c + r * c_ld + h * W, sum[r][h]);
}

static void product(float *c, int64_t c_ld, const float *a, int64_t a_row, int64_t a_step, const float *b,
                    int64_t b_ld, int64_t rows, int64_t steps, int accumulate) {
  int64_t r = 0;
  for (; r + ROWS <= rows; r += ROWS)
    product_rows(c + r * c_ld, c_ld, a + r * a_row, a_row, a_step, b, b_ld, steps, accumulate, ROWS);
  for (; r + 2 <= rows; r += 2)
    product_rows(c + r * c_ld, c_ld, a + r * a_row, a_row, a_step, b, b_ld, steps, accumulate, 2);
  if (r < rows)
    product_rows(c + r * c_ld, c_ld, a + r * a_row, a_row, a_step, b, b_ld, steps, accumulate, 1);
}

static inline void copy_row(float *to, const float *from, int64_t n, int bf16) {
  if (bf16)
    for (int64_t c = 0; c < n; c++)
      to[c] = msk_bf16_to_f32(msk_f32_to_bf16(from[c]));
  else
    memcpy(to, from, (size_t)n * sizeof *to);
}

/* Rows of one head side by side, [n, dim]. */
static void gather_keys(const struct msk_attention *p, const float *from, int64_t ld, float *to, int bf16) {
  for (int64_t j = 0; j < p->keys; j++)
    copy_row(to + j * p->head_dim, from + attention_k_row(p, j) * ld, p->head_dim, bf16);
}

static inline int64_t lanes_up(int64_t n) {
  return attention_round_up(n, QUERIES);
}

/* Rows of n queries from i0, zero padded: [2 W, dim rounded up to 2 W], and transposed [dim rounded up, 2 W].
 */
static void gather_queries(const struct msk_attention *p, const float *from, int64_t ld, int64_t i0,
                           int64_t n, float *rows, float *columns, int bf16) {
  int64_t dim = lanes_up(p->head_dim);
  for (int64_t i = 0; i < QUERIES; i++) {
    int64_t width = i < n ? p->head_dim : 0;
    if (width)
      copy_row(rows + i * dim, from + attention_q_row(p, i0 + i) * ld, width, bf16);
    memset(rows + i * dim + width, 0, (size_t)(dim - width) * sizeof *rows);
  }
  for (int64_t i = 0; i < QUERIES; i += W)
    for (int64_t c = 0; c < dim; c += W) {
      vec r[W];
      for (int l = 0; l < W; l++)
        r[l] = vec_load(rows + (i + l) * dim + c);
      vec_transpose(r);
      for (int l = 0; l < W; l++)
        vec_store(columns + (c + l) * QUERIES + i, r[l]);
    }
}

/* The reverse: n queries from i0 out of columns [dim rounded up, 2 W], times a factor per query. */
static void scatter_queries(const struct msk_attention *p, const float *columns, const float *factor,
                            int64_t i0, int64_t n, float *to, int64_t ld) {
  for (int64_t i = 0; i < n; i += W)
    for (int64_t c = 0; c < p->head_dim; c += W) {
      int64_t width = p->head_dim - c < W ? p->head_dim - c : W;
      float buffer[W] __attribute__((aligned(64)));
      vec r[W];
      for (int l = 0; l < W; l++)
        r[l] = vec_mul(vec_load(columns + (c + l) * QUERIES + i), vec_load(factor + i));
      vec_transpose(r);
      for (int l = 0; l < W && i + l < n; l++) {
        vec_store(buffer, r[l]);
        memcpy(to + attention_q_row(p, i0 + i + l) * ld + c, buffer, (size_t)width * sizeof *to);
      }
    }
}

static size_t pack_bytes(const struct msk_attention *p) {
  return attention_round_up(2 * p->keys * p->head_dim * (int64_t)sizeof(float), MSK_ALIGN);
}

static inline void pack(const struct msk_attention *p, int64_t head, void *packed_head, int bf16) {
  float *k = packed_head, *v = k + p->keys * p->head_dim;
  gather_keys(p, p->k + head * p->head_dim, p->k_ld, k, bf16);
  gather_keys(p, p->v + head * p->head_dim, p->v_ld, v, bf16);
}

static size_t forward_scratch(const struct msk_attention *p) {
  return (size_t)(3 * lanes_up(p->head_dim) + STRIP) * QUERIES * sizeof(float);
}

/* S^T of a strip becomes P^T; the maximum, the sum and O^T of both vectors of queries follow. */
static void forward_weights(float *s, int64_t n, float factor, float *o, int64_t dim, int first, vec max[2],
                            vec sum[2], int bf16) {
  for (int h = 0; h < 2; h++) {
    vec most = max[h], shrink, total;
    for (int64_t j = 0; j < n; j++)
      most = vec_max(most, vec_mul(vec_load(s + j * QUERIES + h * W), vec_set(factor)));
    shrink = vec_exp2(vec_sub(max[h], most));
    total = vec_mul(sum[h], shrink);
    max[h] = most;
    for (int64_t j = 0; j < n; j++) {
      float *at = s + j * QUERIES + h * W;
      vec weight = vec_exp2(vec_sub(vec_mul(vec_load(at), vec_set(factor)), most));
      total = vec_add(total, weight);
      vec_store(at, bf16 ? vec_bf16(weight) : weight);
    }
    sum[h] = total;
    for (int64_t c = 0; c < dim && !first; c++)
      vec_store(o + c * QUERIES + h * W, vec_mul(vec_load(o + c * QUERIES + h * W), shrink));
  }
}

static void forward_queries(const struct msk_attention *p, int64_t head, int64_t i0, int64_t n,
                            float *scratch, int bf16) {
  int64_t dim = lanes_up(p->head_dim);
  const float *k = (const float *)((const char *)p->packed + (size_t)head * pack_bytes(p));
  const float *v = k + p->keys * p->head_dim;
  float *rows = scratch, *q = rows + QUERIES * dim, *o = q + QUERIES * dim, *s = o + QUERIES * dim;
  float factor[QUERIES] __attribute__((aligned(64)));
  vec max[2], sum[2];
  gather_queries(p, p->q + head * p->head_dim, p->q_ld, i0, n, rows, q, bf16);
  for (int h = 0; h < 2; h++) {
    max[h] = vec_set(-INFINITY);
    sum[h] = vec_set(0);
  }
  for (int64_t j = 0; j < p->keys; j += STRIP) {
    int64_t keys = p->keys - j < STRIP ? p->keys - j : STRIP;
    product(s, QUERIES, k + j * p->head_dim, p->head_dim, 1, q, QUERIES, keys, p->head_dim, 0);
    forward_weights(s, keys, p->scale * LOG2_E, o, p->head_dim, j == 0, max, sum, bf16);
    product(o, QUERIES, v + j * p->head_dim, 1, p->head_dim, s, QUERIES, p->head_dim, keys, j > 0);
  }
  for (int h = 0; h < 2; h++) {
    vec_store(s + h * W, max[h]);
    vec_store(s + QUERIES + h * W, sum[h]);
  }
  for (int64_t i = 0; i < QUERIES; i++) {
    factor[i] = 1 / s[QUERIES + i];
    if (i < n && p->lse)
      p->lse[attention_q_row(p, i0 + i) * p->heads + head] = s[i] * 0.693147181f + logf(s[QUERIES + i]);
  }
  for (int64_t c = p->head_dim; c < dim; c++)
    memset(o + c * QUERIES, 0, QUERIES * sizeof *o);
  scatter_queries(p, o, factor, i0, n, p->o + head * p->head_dim, p->o_ld);
}

static inline void forward(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch,
                           int bf16) {
  for (int64_t i = q0; i < q1; i += QUERIES)
    forward_queries(p, head, i, q1 - i < QUERIES ? q1 - i : QUERIES, scratch, bf16);
}

struct backward_work {
  int64_t dim;                        /* head_dim rounded up to 2 W */
  float *k, *v;                       /* [keys, head_dim] */
  float *dk, *dv;                     /* [keys, dim] */
  float *q, *d_o;                     /* [2 W, dim] */
  float *q_columns, *do_columns, *dq; /* [dim, 2 W] */
  float *s, *dp;                      /* [STRIP, 2 W] */
  float *lse, *delta;                 /* [2 W]: lse in powers of 2 */
};

static size_t backward_layout(const struct msk_attention *p, char *scratch, struct backward_work *w) {
  int64_t dim = lanes_up(p->head_dim);
  size_t used = 0;
  w->dim = dim;
#define TAKE(field, n)                                                                                       \
  (w->field = (float *)(scratch + used),                                                                     \
   used += (size_t)attention_round_up((n) * (int64_t)sizeof(float), MSK_ALIGN))
  TAKE(k, p->keys * p->head_dim);
  TAKE(v, p->keys * p->head_dim);
  TAKE(dk, p->keys * dim);
  TAKE(dv, p->keys * dim);
  TAKE(q, QUERIES * dim);
  TAKE(d_o, QUERIES * dim);
  TAKE(q_columns, QUERIES * dim);
  TAKE(do_columns, QUERIES * dim);
  TAKE(dq, QUERIES * dim);
  TAKE(s, QUERIES * STRIP);
  TAKE(dp, QUERIES * STRIP);
  TAKE(lse, QUERIES);
  TAKE(delta, QUERIES);
#undef TAKE
  return used;
}

static size_t backward_scratch(const struct msk_attention *p) {
  struct backward_work w;
  return backward_layout(p, NULL, &w);
}

/* S^T becomes P^T, dP^T becomes dS^T. */
static void backward_weights(const struct backward_work *w, int64_t n, float factor, int bf16) {
  for (int h = 0; h < 2; h++) {
    vec lse = vec_load(w->lse + h * W), delta = vec_load(w->delta + h * W);
    for (int64_t j = 0; j < n; j++) {
      float *s = w->s + j * QUERIES + h * W, *dp = w->dp + j * QUERIES + h * W;
      vec weight = vec_exp2(vec_sub(vec_mul(vec_load(s), vec_set(factor)), lse));
      vec ds = vec_mul(weight, vec_sub(vec_load(dp), delta));
      vec_store(s, bf16 ? vec_bf16(weight) : weight);
      vec_store(dp, bf16 ? vec_bf16(ds) : ds);
    }
  }
}

static void backward_queries(const struct msk_attention *p, int64_t head, int64_t i0, int64_t n,
                             const struct backward_work *w, int bf16) {
  const int64_t dim = p->head_dim;
  float scale[QUERIES] __attribute__((aligned(64)));
  gather_queries(p, p->q + head * dim, p->q_ld, i0, n, w->q, w->q_columns, bf16);
  gather_queries(p, p->d_o + head * dim, p->d_o_ld, i0, n, w->d_o, w->do_columns, bf16);
  for (int64_t i = 0; i < QUERIES; i++) {
    float sum[8] = {0};
    w->lse[i] = INFINITY; /* weights of queries past the end are 0 */
    w->delta[i] = 0;
    scale[i] = p->scale;
    if (i < n) {
      const float *o = p->o + attention_q_row(p, i0 + i) * p->o_ld + head * dim;
      const float *d_o = p->d_o + attention_q_row(p, i0 + i) * p->d_o_ld + head * dim;
      for (int64_t c = 0; c < dim; c += 8)
        for (int64_t l = 0; l < 8; l++)
          sum[l] += o[c + l] * d_o[c + l];
      w->delta[i] = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
      w->lse[i] = p->lse[attention_q_row(p, i0 + i) * p->heads + head] * LOG2_E;
    }
  }
  for (int64_t j = 0; j < p->keys; j += STRIP) {
    int64_t keys = p->keys - j < STRIP ? p->keys - j : STRIP;
    const float *k = w->k + j * dim, *v = w->v + j * dim;
    product(w->s, QUERIES, k, dim, 1, w->q_columns, QUERIES, keys, dim, 0);
    product(w->dp, QUERIES, v, dim, 1, w->do_columns, QUERIES, keys, dim, 0);
    backward_weights(w, keys, p->scale * LOG2_E, bf16);
    for (int64_t c = 0; c < w->dim; c += QUERIES) {
      product(w->dv + j * w->dim + c, w->dim, w->s, QUERIES, 1, w->d_o + c, w->dim, keys, n, i0 > 0);
      product(w->dk + j * w->dim + c, w->dim, w->dp, QUERIES, 1, w->q + c, w->dim, keys, n, i0 > 0);
    }
    product(w->dq, QUERIES, k, 1, dim, w->dp, QUERIES, dim, keys, j > 0);
  }
  for (int64_t c = dim; c < w->dim; c++)
    memset(w->dq + c * QUERIES, 0, QUERIES * sizeof(float));
  scatter_queries(p, w->dq, scale, i0, n, p->dq + head * dim, p->dq_ld);
}

static inline void backward(const struct msk_attention *p, int64_t head, void *scratch, int bf16) {
  const int64_t dim = p->head_dim;
  struct backward_work w;
  backward_layout(p, scratch, &w);
  gather_keys(p, p->k + head * dim, p->k_ld, w.k, bf16);
  gather_keys(p, p->v + head * dim, p->v_ld, w.v, bf16);
  for (int64_t i = 0; i < p->queries; i += QUERIES)
    backward_queries(p, head, i, p->queries - i < QUERIES ? p->queries - i : QUERIES, &w, bf16);
  for (int64_t j = 0; j < p->keys; j++) {
    int64_t row = attention_k_row(p, j);
    float *dk = p->dk + row * p->dk_ld + head * dim, *dv = p->dv + row * p->dv_ld + head * dim;
    memcpy(dv, w.dv + j * w.dim, (size_t)dim * sizeof *dv);
    for (int64_t c = 0; c < dim; c++)
      dk[c] = w.dk[j * w.dim + c] * p->scale;
  }
}

static void pack_f32(const struct msk_attention *p, int64_t head, void *packed_head) {
  pack(p, head, packed_head, 0);
}

static void pack_bf16(const struct msk_attention *p, int64_t head, void *packed_head) {
  pack(p, head, packed_head, 1);
}

static void forward_f32(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch) {
  forward(p, head, q0, q1, scratch, 0);
}

static void forward_bf16(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch) {
  forward(p, head, q0, q1, scratch, 1);
}

static void backward_f32(const struct msk_attention *p, int64_t head, void *scratch) {
  backward(p, head, scratch, 0);
}

static void backward_bf16(const struct msk_attention *p, int64_t head, void *scratch) {
  backward(p, head, scratch, 1);
}

static void set_tables(struct msk_attention_ops *f32, struct msk_attention_ops *bf16, const char *name) {
  *f32 = (struct msk_attention_ops){.name = name,
                                    .precision = MSK_PRECISION_F32,
                                    .q_step = QUERIES,
                                    .pack_bytes = pack_bytes,
                                    .pack = pack_f32,
                                    .forward_scratch = forward_scratch,
                                    .forward = forward_f32,
                                    .backward_scratch = backward_scratch,
                                    .backward = backward_f32};
  *bf16 = *f32;
  bf16->precision = MSK_PRECISION_BF16;
  bf16->pack = pack_bf16;
  bf16->forward = forward_bf16;
  bf16->backward = backward_bf16;
}
