/* What the machine can do at best, for benchmarks to hold figures against: register-only multiply-adds of each instruction set, and sweeps
 * over memory. The caller times; threads call with buffers of their own. */
#pragma once
#include "msk-types.h"

struct msk_peak_ops {
  const char *f32_name;  /* "avx512 fma" ... */
  const char *bf16_name; /* "vdpbf16ps", "amx tiles", or NULL where there are no bf16 multiply-adds */
  const char *dot_name;  /* "vdpbf16ps" where there is one, or NULL: the vector dot product, also where tiles are faster */
  /* Each runs about `flops` floating-point operations (a multiply-add counts two) in registers and returns how many it ran. */
  double (*f32)(double flops);
  double (*bf16)(double flops);
  double (*dot)(double flops);
  /* y = x; reads and writes n floats. */
  void (*copy)(const float *x, float *y, int64_t n);
  /* Touches memory as AdamW on a split master with float32 gradients does, without its arithmetic: reads grad [n]; reads and writes hi, lo
   * (16 bits) and m, v (float32): 28 bytes an element. */
  void (*adamw_sweep)(const float *grad, uint16_t *hi, uint16_t *lo, float *m, float *v, int64_t n);
};

void msk_peak_init(struct msk_peak_ops *ops, unsigned cpu_flags);
