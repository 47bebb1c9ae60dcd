/* What every instruction set shares of AdamW with 8-bit moments, so that all of them give the same bits: the
 * format (msk-adamw.h says what it means), the random numbers, the scales. */
#pragma once
#include <math.h>
#include <stdint.h>

#include "msk-adamw.h"

#define BLOCK MSK_ADAMW_BLOCK
/* A code's bits are bits 20 to 26 (v: to 27) of a float32 between LOW and 2, whose other exponent bits are
 * constant. */
#define CODE_SHIFT 20
#define M_LOW 0x1p-15f
#define M_LOW_BITS 0x38000000
#define V_LOW 0x1p-31f
#define V_LOW_BITS 0x30000000
/* The largest magnitude of a block, in units of its scale: one code below the last, so that a rounding error
 * in the quotient cannot reach past it. */
#define TOP 1.75f
/* A smaller scale is kept as zero: the products with it would leave the normal numbers. */
#define M_LEAST 0x1p-100f
#define V_LEAST 0x1p-80f

struct adamw_factors {
  float grad_scale, beta1, rest1, beta2, rest2, decay, step, root_scale, eps;
};

/* What the step of a block takes from its old scales. */
struct adamw_old {
  float m, m_low, v; /* of the float32 of a code: beta1 scale, what LOW makes of it, beta2 scale */
  float v_low;       /* what LOW makes of that, less the term that keeps v from vanishing */
};

static inline struct adamw_old adamw_old(const struct adamw_factors *k, float m_scale, float v_scale) {
  float m = k->beta1 * m_scale, v = k->beta2 * v_scale;
  return (struct adamw_old){m, M_LOW * m, v, V_LOW * v - k->rest2 * (V_LOW * v_scale)};
}

static inline struct adamw_factors adamw_factors(const struct msk_adamw *p) {
  return (struct adamw_factors){
      .grad_scale = (float)p->grad_scale,
      .beta1 = (float)p->beta1,
      .rest1 = (float)(1 - p->beta1),
      .beta2 = (float)p->beta2,
      .rest2 = (float)(1 - p->beta2),
      .decay = (float)(p->lr * p->decay),
      .step = (float)(p->lr / p->correction1),
      .root_scale = (float)(1 / sqrt(p->correction2)),
      .eps = (float)p->eps,
  };
}

/* The scale of a block whose largest magnitude has these bits, and its reciprocal (0 for 0). */
static inline float adamw_scale(uint32_t largest_bits, float least, float *inverse) {
  union {
    uint32_t u;
    float f;
  } largest = {.u = largest_bits > 0x7f7fffffu ? 0x7f7fffffu : largest_bits};
  float scale = largest.f * (1 / TOP);
  if (scale < least)
    scale = 0;
  *inverse = scale > 0 ? 1 / scale : 0;
  return scale;
}

/* The 32 random bits of element i of a block are start + i stride modulo 2^32: for any two elements they are
 * independent (of differences of an even i, all but the last few bits), and no more than that enters the mean
 * and the variance of a sum. */
struct adamw_draws {
  uint32_t start, stride;
};

/* The finalizer of splitmix64 (Steele, Lea and Flood 2014). */
static inline uint64_t adamw_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* index: the flat index of the block's first element. */
static inline struct adamw_draws adamw_draws(uint32_t seed, int64_t index) {
  uint64_t x = adamw_mix(adamw_mix(seed + 0x9e3779b97f4a7c15u) + (uint64_t)index);
  return (struct adamw_draws){.start = (uint32_t)x, .stride = (uint32_t)(x >> 32) | 1};
}
