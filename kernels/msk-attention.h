/* Softmax attention of every query to every key of a list, scores never materialised (FlashAttention, Dao 2022).
 *
 * Serves dense self-attention, cross-attention and, through a table of rows, windows. Layouts: head h of row i is at
 * q[row_q(i) * q_ld + h * head_dim]. head_dim is a multiple of 8, at most 256. In bf16 precision q, k, v, P and dO, dS
 * are rounded to bfloat16 before each product; softmax and sums are float32.
 *
 *   S = scale q k^T; P = softmax (S); o = P v; lse = log sum exp S
 *   dv = P^T dO; dP = dO v^T; dS = P (dP - rowsum (dO o)); dq = scale dS k; dk = scale dS^T q  */
#pragma once
#include "msk-types.h"

struct msk_attention {
  int64_t queries, keys, heads, head_dim;
  float scale;
  const float *q, *k, *v;
  int64_t q_ld, k_ld, v_ld;
  const int64_t *q_rows, *k_rows; /* row of query or key i, or NULL: i itself. With them a window is gathered */
  float *o;                       /* rows as q */
  int64_t o_ld;
  float *lse; /* [row of q, heads], natural logarithm; NULL if no backward pass follows */
  const void *packed; /* [heads] x pack_bytes: written by pack, read by forward */
  /* backward: overwrites dq (rows as q), dk, dv (rows as k) */
  const float *d_o;
  int64_t d_o_ld;
  float *dq, *dk, *dv;
  int64_t dq_ld, dk_ld, dv_ld;
};

struct msk_attention_ops {
  const char *name;
  enum msk_precision precision;
  int64_t q_step; /* ranges of queries start at multiples of this */
  /* Keys and values of one head in the layout that forward reads. */
  size_t (*pack_bytes)(const struct msk_attention *p);
  void (*pack)(const struct msk_attention *p, int64_t head, void *packed_head);
  size_t (*forward_scratch)(const struct msk_attention *p);
  void (*forward)(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch);
  /* One head whole: one task, so that dk and dv have one owner. Reads q, k, v, o, lse, d_o. */
  size_t (*backward_scratch)(const struct msk_attention *p);
  void (*backward)(const struct msk_attention *p, int64_t head, void *scratch);
};

void msk_attention_init(struct msk_attention_ops *f32, struct msk_attention_ops *bf16, unsigned cpu_flags);
