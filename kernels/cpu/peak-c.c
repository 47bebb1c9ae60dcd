#include <string.h>

#include "cpu/peak-update.h"
#include "cpu/peak.h"
#include "msk-cpu.h"

#define CHAINS 8 /* independent sums: more than the latency of a multiply and an add */

static double peak_f32(int64_t n) {
  volatile float start = 1, factor = 0x1p-12f; /* volatile: nothing is known to the compiler */
  float acc[CHAINS], x = factor, y = factor;
  for (int i = 0; i < CHAINS; i++)
    acc[i] = start;
  for (int64_t k = 0; k < n; k++)
    for (int i = 0; i < CHAINS; i++)
      acc[i] = acc[i] * x + y;
  for (int i = 1; i < CHAINS; i++)
    acc[0] += acc[i];
  start = acc[0];
  return (double)n * CHAINS * 2;
}

static double copy(const float *x, float *y, int64_t n) {
  memcpy(y, x, (size_t)n * sizeof *x);
  return (double)n * 8;
}

static double triad(const float *x, float s, const float *z, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = x[i] + s * z[i];
  return (double)n * 12;
}

static double update(const float *g, float *w, float *m, float *v, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    w[i] += g[i];
    m[i] += g[i];
    v[i] += g[i];
  }
  return (double)n * 28;
}

void msk_peak_init(struct msk_peak_ops *ops, unsigned cpu_flags) {
  *ops = (struct msk_peak_ops){
      .name = "c",
      .f32 = peak_f32,
      .bf16 = peak_f32,
      .copy = copy,
      .copy_stream = copy,
      .triad = triad,
      .update = update,
      .update_split = update_split,
  };
#if MSK_X86
  if (!(cpu_flags & MSK_CPU_AVX2))
    return;
  msk_peak_init_avx2(ops);
  if (!(cpu_flags & MSK_CPU_AVX512))
    return;
  msk_peak_init_avx512(ops);
  if (!(cpu_flags & MSK_CPU_AVX512BF16))
    return;
  msk_peak_init_avx512bf16(ops);
  if (!(cpu_flags & MSK_CPU_AMX))
    return;
  msk_peak_init_amx(ops);
#endif
}
