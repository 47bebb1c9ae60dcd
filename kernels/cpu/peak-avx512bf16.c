#include <immintrin.h>

#include "cpu/peak.h"

#define CHAINS 14

static double peak_bf16(int64_t n) {
  __m512 acc[CHAINS];
  __m512i x = _mm512_set1_epi16(0x3a81), y = x; /* about 2^-10 */
#pragma GCC unroll 14
  for (int i = 0; i < CHAINS; i++)
    acc[i] = _mm512_set1_ps((float)i);
  for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 14
    for (int i = 0; i < CHAINS; i++)
      acc[i] = _mm512_dpbf16_ps(acc[i], (__m512bh)x, (__m512bh)y);
    __asm__ volatile("" : "+v"(x), "+v"(y)); /* or the loop would be one step */
  }
#pragma GCC unroll 14
  for (int i = 0; i < CHAINS; i++)
    __asm__ volatile("" ::"v"(acc[i]));
  return (double)n * CHAINS * 32 * 2;
}

void msk_peak_init_avx512bf16(struct msk_peak_ops *ops) {
  ops->name = "avx512bf16";
  ops->bf16 = peak_bf16;
}
