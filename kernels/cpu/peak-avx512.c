#include <immintrin.h>

#include "cpu/peak-update.h"
#include "cpu/peak.h"

#define CHAINS 14

static double peak_f32(int64_t n) {
  __m512 acc[CHAINS], x = _mm512_set1_ps(0x1p-12f), y = x;
#pragma GCC unroll 14
  for (int i = 0; i < CHAINS; i++)
    acc[i] = _mm512_set1_ps((float)i);
  for (int64_t k = 0; k < n; k++) {
#pragma GCC unroll 14
    for (int i = 0; i < CHAINS; i++)
      acc[i] = _mm512_fmadd_ps(x, y, acc[i]);
    __asm__ volatile("" : "+v"(x), "+v"(y)); /* or the product would leave the loop */
  }
#pragma GCC unroll 14
  for (int i = 0; i < CHAINS; i++)
    __asm__ volatile("" ::"v"(acc[i]));
  return (double)n * CHAINS * 16 * 2;
}

static double copy(const float *x, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_store_ps(y + i, _mm512_load_ps(x + i));
  for (; i < n; i++)
    y[i] = x[i];
  return (double)n * 8;
}

static double copy_stream(const float *x, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_stream_ps(y + i, _mm512_load_ps(x + i));
  for (; i < n; i++)
    y[i] = x[i];
  _mm_sfence();
  return (double)n * 8;
}

static double triad(const float *x, float s, const float *z, float *y, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_store_ps(y + i, _mm512_fmadd_ps(_mm512_set1_ps(s), _mm512_load_ps(z + i), _mm512_load_ps(x + i)));
  for (; i < n; i++)
    y[i] = x[i] + s * z[i];
  return (double)n * 12;
}

static double update(const float *g, float *w, float *m, float *v, int64_t n) {
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    __m512 x = _mm512_load_ps(g + i);
    _mm512_store_ps(w + i, _mm512_add_ps(_mm512_load_ps(w + i), x));
    _mm512_store_ps(m + i, _mm512_add_ps(_mm512_load_ps(m + i), x));
    _mm512_store_ps(v + i, _mm512_add_ps(_mm512_load_ps(v + i), x));
  }
  for (; i < n; i++) {
    w[i] += g[i];
    m[i] += g[i];
    v[i] += g[i];
  }
  return (double)n * 28;
}

void msk_peak_init_avx512(struct msk_peak_ops *ops) {
  ops->name = "avx512";
  ops->f32 = peak_f32;
  ops->bf16 = peak_f32;
  ops->copy = copy;
  ops->copy_stream = copy_stream;
  ops->triad = triad;
  ops->update = update;
  ops->update_split = update_split;
}
