/* 3D Deformable Slide Attention: each token of a [T,H,W] lattice attends to a window of (kt,kh,kw) points that it
 * slides and stretches by learned offsets. DESIGN of the operator: DAT/Slide-Transformer style deformable windows with
 * trilinear sampling, exactly as below.
 *
 *   Delta = s tanh (z / s); b_a = clamp (i_a - k_a / 2, 0, L_a - k_a); u = b + r_j + Delta; p = clamp (u, 0, L - 1)
 *   k_j, v_j = trilinear samples of K, V at p; a_j = q . k_j scale; P = softmax over the K points; o = sum_j P_j v_j
 * Backward reads both corners of each axis (c0 = floor p, c1 = min (c0 + 1, L - 1)) even where a weight is 0; an axis
 * has no gradient where u < 0 or u > L - 1. Tokens are t-major; point j = (jt * kh + jh) * kw + jw; head m uses group
 * m / (heads / groups); z and dz hold (t, y, x).
 *
 * Row pointers are indexed by the token's number in the lattice; a caller that holds only a range of q, z or o passes a
 * pointer moved back accordingly. k and v cover the whole lattice (or all that the range can reach). */
#pragma once
#include "msk-types.h"

enum msk_slide_mode { MSK_SLIDE_POINT = 0, MSK_SLIDE_SHIFT = 1 };

struct msk_slide {
  int64_t lattice[3];
  int64_t window[3]; /* already clipped to the lattice */
  int64_t heads, head_dim, groups;
  enum msk_slide_mode mode;
  float bounds[3]; /* s, each > 0 */
  float scale;     /* 1 / sqrt (head_dim) */
  const float *q, *k, *v;
  int64_t q_ld, k_ld, v_ld;
  const float *z; /* point: [token, groups, K, 3]; shift: [token, groups, 3]; NULL: zero offsets */
  int64_t z_ld;   /* distance between tokens */
  float *o;
  int64_t o_ld;
  float *lse; /* [token, heads] or NULL */
  const void *packed; /* [groups] x pack_bytes: written by pack, read by forward */
  /* backward: dq, dz are written for the range; dk, dv are added to (the caller clears them) */
  const float *d_o;
  int64_t d_o_ld;
  float *dq, *dk, *dv, *dz;
  int64_t dq_ld, dk_ld, dv_ld, dz_ld;
};

struct msk_slide_ops {
  const char *name;
  enum msk_precision precision;
  int64_t token_step; /* ranges of tokens start at multiples of this, or at multiples of W */
  /* Sizes depend on the lattice, window, heads, head_dim, groups, mode and bounds alone: not on z, nor on any pointer. */
  size_t (*pack_bytes)(const struct msk_slide *p); /* per group; may be 0: pack is then not called. Reads all rows of k, v */
  void (*pack)(const struct msk_slide *p, int64_t group, void *packed_group);
  size_t (*forward_scratch)(const struct msk_slide *p);
  /* Tokens [i0,i1), the heads of one group. The same bits however tokens are cut into ranges. */
  void (*forward)(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1, void *scratch);
  size_t (*backward_scratch)(const struct msk_slide *p);
  /* Tokens [i0,i1), the heads of one group. Calls of one group must not run at the same time (dk, dv); calls in
   * ascending order of tokens give the same bits however the lattice is cut at frames (multiples of H W); ranges that
   * start within a frame are right too, but sum dk and dv in another order. Packs what it reads of k and v for itself, so
   * few long ranges are best. Reads o and lse of forward. */
  void (*backward)(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1, void *scratch);
};

void msk_slide_init(struct msk_slide_ops *f32, struct msk_slide_ops *bf16, unsigned cpu_flags);
