/* AdamW (Loshchilov and Hutter 2019) in one pass, and conversions between bfloat16, float32 and the split
 * master.
 *
 * Split master: a float32 value is kept as hi, its bfloat16 rounded to nearest with ties away from zero
 * (hi = (bits + 0x8000) >> 16), and lo = (int16) bits, so that master = (hi << 16) + (int16) lo exactly. hi
 * is the weight that the network reads.
 *
 *   g = grad * grad_scale; w -= lr decay w; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2
 *   w -= lr / (1 - b1^t) m / (sqrt (v / (1 - b2^t)) + eps)                 (decoupled, as torch.optim.AdamW)
 *
 * 8-bit moments: m and v as a byte each, in blocks of MSK_ADAMW_BLOCK elements with a float32 scale for m and
 * one for v, so that the whole state takes 6 bytes a parameter and 8 bytes a block. Blocks and scales as in
 * Dettmers, Lewis, Shleifer and Zettlemoyer 2022 (8-bit optimizers via block-wise quantization), who use
 * 2,048 elements a block, a tabulated code with a varying number of exponent bits, and rounding to nearest.
 * Here the codes are small floats that need no table, with E and M their exponent and mantissa bits, and L
 * the largest magnitude in the block: m: sign, 4 and 3 bits: +-scale (2^(E - 15) (1 + M / 8) - 2^-15), scale
 * = L / 1.75 v: 5 and 3 bits:         scale (2^(E - 31) (1 + M / 8) - 2^-31), scale = L / 1.75 so zero is a
 * code, and the steps near zero are those of the lowest octave. Rounding is stochastic, up or down to the two
 * codes around a value so that the mean is the value: to nearest, v would stay where it is whenever (1 - b2)
 * |g^2 - v| is below half a step. With |x| the value, a rounding errs by at most m: (|x| + 2^-15 scale) / 8
 * <= |x| / 8 + 2.2e-6 L;  v: (x + 2^-31 scale) / 8 <= x / 8 + 3.4e-11 L and by half of that in the root of
 * the mean square. m and v of an element are rounded by one random number, so that what is rounded up in the
 * quotient is so in its divisor too. The step itself takes the moments before rounding. A v that vanishes
 * before its m would make one huge step: g^2 is taken larger by 2^-31 of v's scale, which bounds v from below
 * at a root of 1.6e-5 of the block's largest. Scales of m below 2^-100 and of v below 2^-80 are kept as zero,
 * a scale beyond float32 as the largest that fits. Memory of zeros is the state before the first step. beta2
 * is at most 1 - 1e-6. */
#pragma once
#include "msk-types.h"

/* Elements that share a scale. */
#define MSK_ADAMW_BLOCK 256

/* In double, because 1 - beta2 of a float32 beta2 of 0.999 is wrong from the fifth digit on. */
struct msk_adamw {
  double lr, beta1, beta2, eps, decay;
  double correction1, correction2; /* 1 - beta1^t, 1 - beta2^t */
  double grad_scale;               /* clip factor over accumulation count */
};

struct msk_adamw_ops {
  const char *name;
  /* float32 weights. Elements are independent: split anywhere. */
  void (*step_f32)(const struct msk_adamw *p, const float *grad, float *w, float *m, float *v, int64_t n);
  /* split master; grad float32 or bf16 */
  void (*step_split)(const struct msk_adamw *p, const void *grad, enum msk_type grad_type, uint16_t *hi,
                     uint16_t *lo, float *m, float *v, int64_t n);
  /* split master with 8-bit moments; blocks begin at element 0, m_scale and v_scale are [ceil (n /
   * MSK_ADAMW_BLOCK)]. first: flat index of element 0, any; with the seed of the step it chooses the random
   * numbers, so a step has the same bits in whatever ranges it is done, if they begin at blocks, and with
   * every instruction set. Gradients are finite. */
  void (*step_split8)(const struct msk_adamw *p, const void *grad, enum msk_type grad_type, uint16_t *hi,
                      uint16_t *lo, uint8_t *m, uint8_t *v, float *m_scale, float *v_scale, int64_t first,
                      uint32_t seed, int64_t n);
  /* The values of 8-bit moments. */
  void (*read_moments8)(const uint8_t *m, const uint8_t *v, const float *m_scale, const float *v_scale,
                        float *m_value, float *v_value, int64_t n);
  void (*split)(const float *w, uint16_t *hi, uint16_t *lo, int64_t n);
  void (*join)(const uint16_t *hi, const uint16_t *lo, float *w, int64_t n);
  /* round to nearest even */
  void (*f32_to_bf16)(const float *x, uint16_t *y, int64_t n);
  void (*bf16_to_f32)(const uint16_t *x, float *y, int64_t n);
};

void msk_adamw_init(struct msk_adamw_ops *ops, unsigned cpu_flags);
