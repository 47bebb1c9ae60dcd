/* Normalisation, rotary embedding and activations: everything that passes once over [rows, channels].
 *
 * Row kernels take a range of rows [r0,r1). Reductions over rows (gradients of weights, biases, scale and shift)
 * are *added* by a call to the caller's [channels] buffers in ascending order of rows; the caller gives each
 * fixed block of rows a buffer of its own and adds the blocks in order, so threads change no bit. */
#pragma once
#include "msk-types.h"

/* y = LN (x) * mul + add over c channels, LN without affine, biased variance.
 *   modulation: mul = 1 + scale[i / mod_rows], add = shift[i / mod_rows], rows of distance mod_ld (one_plus = 1)
 *   affine:     mul = weight, add = bias: mod_rows = number of rows or more, one_plus = 0
 * scale, shift NULL: plain LN. */
struct msk_layer_norm {
  int64_t c;
  float eps;
  const float *x;
  int64_t x_ld;
  const float *scale, *shift;
  int64_t mod_ld, mod_rows;
  int one_plus;
  void *y;
  enum msk_type y_type;
  int64_t y_ld;
  float *mean, *rstd; /* [rows], written by forward if not NULL, read by backward */
  /* backward */
  const float *dy;
  int64_t dy_ld;
  float *dx; /* dx += when accumulate is set, else dx = */
  int64_t dx_ld;
  int accumulate;
};

/* y = x * rsqrt (mean (x^2) + eps) * weight over c channels (the whole dim, all heads together), then, if rope_t is
 * given, rotates adjacent pairs (2i, 2i+1) of every head by the angle of its part: the first pairs_t pairs by the
 * row of rope_t for the token's t, then pairs_y by rope_y, then pairs_x by rope_x. A table row is
 * [pairs, 2] = cos, sin. Row r is token r % (T*H*W) of a [T,H,W] lattice. weight NULL: no normalisation, only the
 * rotation. Forward may run in place. */
struct msk_rms_rope {
  int64_t c, heads;
  float eps;
  const float *x;
  int64_t x_ld;
  const float *weight; /* [c] */
  float *y;
  int64_t y_ld;
  float *rstd; /* [rows], written by forward if not NULL, read by backward */
  int64_t lattice[3];
  int pairs_t, pairs_y, pairs_x;
  const float *rope_t, *rope_y, *rope_x; /* [T,pairs_t,2], [H,pairs_y,2], [W,pairs_x,2] */
  /* backward */
  const float *dy;
  int64_t dy_ld;
  float *dx;
  int64_t dx_ld; /* dx may be dy */
};

struct msk_norm_ops {
  const char *name;
  void (*layer_norm)(const struct msk_layer_norm *p, int64_t r0, int64_t r1);
  /* dx for rows [r0,r1), which share one modulation row; adds to dmul[c] (gradient of scale or weight) and dadd[c]
   * (of shift or bias) unless NULL. */
  void (*layer_norm_backward)(const struct msk_layer_norm *p, int64_t r0, int64_t r1, float *dmul, float *dadd);
  void (*rms_rope)(const struct msk_rms_rope *p, int64_t r0, int64_t r1);
  void (*rms_rope_backward)(const struct msk_rms_rope *p, int64_t r0, int64_t r1, float *dweight);
  /* VAE form: y = x / max (||x||_2, 1e-12) * sqrt (c) * gamma, then SiLU if silu is set; channels-last rows.
   * backward reads x again; dx = (or += with accumulate); adds to dgamma[c]. */
  void (*l2_norm)(const float *x, const float *gamma, int64_t c, int64_t rows, int silu, void *y, enum msk_type y_type);
  void (*l2_norm_backward)(const float *x, const float *gamma, int64_t c, int64_t rows, int silu, const float *dy,
                           float *dx, int accumulate, float *dgamma);
  /* Element-wise, n elements; may run in place. dx = dy * act'(x). */
  void (*gelu)(const float *x, void *y, enum msk_type y_type, int64_t n);
  void (*gelu_backward)(const void *x, enum msk_type x_type, const float *dy, float *dx, int64_t n);
  void (*silu)(const float *x, float *y, int64_t n);
  void (*silu_backward)(const float *x, const float *dy, float *dx, int64_t n);
  /* Gated residual y = x + gate * b over rows [r0,r1) and its backward: db = gate * dy; adds to dgate[c] the sum of
   * dy * b. The rows of one call share one gate row. */
  void (*gate_backward)(const float *dy, int64_t dy_ld, const float *b, int64_t b_ld, const float *gate, int64_t c,
                        int64_t rows, float *db, int64_t db_ld, float *dgate);
  /* out[c] += sum over rows of x[r,c], ascending. */
  void (*column_sum)(const float *x, int64_t ld, int64_t c, int64_t rows, float *out);
  /* y += x; y = a x + b y; n elements. */
  void (*add)(const float *x, float *y, int64_t n);
  void (*axpby)(float a, const float *x, float b, float *y, int64_t n);
  /* Sum of squares in double, fixed blocks of 4096 elements: split only at multiples of 4096. */
  double (*sum_squares)(const float *x, int64_t n);
};

void msk_norm_init(struct msk_norm_ops *ops, unsigned cpu_flags);
