/* AdamW (Loshchilov and Hutter 2019) in one pass, and conversions between bfloat16, float32 and the split master.
 *
 * Split master: a float32 value is kept as hi, its bfloat16 rounded to nearest with ties away from zero
 * (hi = (bits + 0x8000) >> 16), and lo = (int16) bits, so that master = (hi << 16) + (int16) lo exactly. hi is the weight
 * that the network reads.
 *
 *   g = grad * grad_scale; w -= lr decay w; m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2
 *   w -= lr / (1 - b1^t) m / (sqrt (v / (1 - b2^t)) + eps)                 (decoupled, as torch.optim.AdamW) */
#pragma once
#include "msk-types.h"

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
  void (*step_split)(const struct msk_adamw *p, const void *grad, enum msk_type grad_type, uint16_t *hi, uint16_t *lo,
                     float *m, float *v, int64_t n);
  void (*split)(const float *w, uint16_t *hi, uint16_t *lo, int64_t n);
  void (*join)(const uint16_t *hi, const uint16_t *lo, float *w, int64_t n);
  /* round to nearest even */
  void (*f32_to_bf16)(const float *x, uint16_t *y, int64_t n);
  void (*bf16_to_f32)(const uint16_t *x, float *y, int64_t n);
};

void msk_adamw_init(struct msk_adamw_ops *ops, unsigned cpu_flags);
