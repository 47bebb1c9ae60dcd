/* Depthwise 3x3x3 convolution of the offset head, channels last. (Dense convolutions are products with taps:
 * msk-product.h.)
 *
 *   y[t,y,x,c] = bias[c] + sum over (dt,dy,dx) in {-1,0,1} of w[c,dt+1,dy+1,dx+1] x[t+dt,y+dy,x+dx,c], zero outside */
#pragma once
#include "msk-types.h"

struct msk_depthwise {
  int64_t lattice[3], c;
  const float *x; /* [T,H,W,C]; indexed from the lattice's origin, so a slab may pass a pointer moved back */
  const float *weight, *bias; /* [C,27], [C] */
  float *y;                   /* [T,H,W,C] */
  const float *dy;
  float *dx; /* written, or added to with accumulate */
  int accumulate;
};

struct msk_conv_ops {
  const char *name;
  /* Lines [l0,l1) of the T*H lines of y. scratch: depthwise_scratch bytes. Each call packs the weights and the lines
   * around its range, which a range of a few lines repays, and one of whole planes best. */
  size_t (*depthwise_scratch)(const struct msk_depthwise *p);
  void (*depthwise)(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch);
  void (*depthwise_backward_x)(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch);
  /* Adds dweight[C,27] and dbias[C] of channels [c0,c1), multiples of 16 except the last, over lines [l0,l1). */
  void (*depthwise_backward_w)(const struct msk_depthwise *p, int64_t l0, int64_t l1, int64_t c0, int64_t c1,
                               float *dweight, float *dbias);
};

void msk_conv_init(struct msk_conv_ops *ops, unsigned cpu_flags);
