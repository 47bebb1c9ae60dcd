/* Matrix products: C [m,n] = epilogue (A [m,k] B [n,k]^T).
 *
 * B is packed once (weights) or on the fly (activations, for weight gradients) into the layout of the
 * implementation; A is packed block by block inside `run`. Two tables exist, one multiplies in float32, one in
 * bfloat16 with float32 accumulation (operands rounded to nearest even). Each element of C is one chain of sums
 * over k in ascending order of fixed blocks, so splitting m and n over threads changes no bit.
 *
 *   y  [M,N]  = x [M,K] W[N,K]^T + b : a = x, b = pack (W)
 *   dx [M,K]  = dy [M,N] W           : a = dy, b = pack (W, transposed), n = K, k = N
 *   dW [N,K] += dy^T x               : a = dy, a_transposed, b = pack (x, transposed), m = N, n = K, k = M
 *
 * Taps make the same product a convolution: with `taps` > 1, k = taps * k_tap, and element (i, tap * k_tap + c)
 * of A is a[(i + tap_rows[tap]) * a_ld + c], so a padded channels-last image is convolved without being copied.
 * B taps (pack with taps) do the same for weight gradients: see msk_pack. */
#pragma once
#include "msk-types.h"

enum msk_act { MSK_ACT_NONE = 0, MSK_ACT_GELU_TANH = 1, MSK_ACT_SILU = 2 };

/* What to pack as B [n,k]. Element (j, l) is src[j * ld + l], or src[l * ld + j] if transposed.
 * With taps > 1 (transposed only): n = taps * n_tap and element (tap * n_tap + j, l) is
 * src[(l + tap_rows[tap]) * ld + j]. */
struct msk_pack {
  int64_t n, k;
  const void *src;
  enum msk_type type;
  int64_t ld;
  int transposed;
  int64_t taps; /* 0 or 1: none */
  const int64_t *tap_rows;
};

struct msk_product {
  int64_t m, n, k;
  const void *a;
  enum msk_type a_type;
  int64_t a_ld;
  int a_transposed; /* A is stored [k,m]: element (i, l) at a[l * a_ld + i]; no taps then */
  int64_t taps;     /* 0 or 1: none; k is a multiple of taps */
  const int64_t *tap_rows;
  const void *b; /* packed by the same table's pack_b */
  void *c;
  enum msk_type c_type;
  int64_t c_ld;
  /* Epilogue, in this order: r = acc; r += bias[j]; pre[i,j] = r; r = act (r); r *= gate; r += residual[i,j];
   * C[i,j] = r, or C[i,j] += r when accumulate is set (float32 C only). NULL leaves a step out. */
  const float *bias; /* [n] */
  void *pre;         /* [m,n] value before the activation, for the backward pass */
  enum msk_type pre_type;
  int64_t pre_ld;
  enum msk_act act;
  const float *gate; /* row i uses gate[(i / gate_rows) * gate_ld + j] */
  int64_t gate_ld, gate_rows;
  const float *residual; /* may be C itself */
  int64_t residual_ld;
  int accumulate;
};

struct msk_product_ops {
  const char *name;                 /* "c", "avx2", "avx512", "avx512bf16", "amx" */
  enum msk_precision precision;
  int64_t m_step, n_step;           /* ranges given to run and pack_b start at multiples of these */
  size_t (*pack_b_bytes)(int64_t n, int64_t k);
  /* Packs columns [n0,n1) of B into dst (the whole packed buffer, aligned to MSK_ALIGN). */
  void (*pack_b)(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst);
  /* Scratch bytes that one call of run needs. */
  size_t (*scratch_bytes)(const struct msk_product *p);
  /* Computes the rectangle [m0,m1) x [n0,n1) of C. No two concurrent calls may share scratch. */
  void (*run)(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1, void *scratch);
};

/* Fills both tables with the best implementations the flags allow (0: the C reference). */
void msk_product_init(struct msk_product_ops *f32, struct msk_product_ops *bf16, unsigned cpu_flags);
