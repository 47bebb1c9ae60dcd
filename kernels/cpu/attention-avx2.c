/* Attention with float32 arithmetic on AVX2: blocks of 16 queries, register tiles of 6 x 16. */
#include <immintrin.h>
#include "attention.h"

#define W 8
#define ROWS 6
#define vec __m256
#define vec_set(x) _mm256_set1_ps(x)
#define vec_load(p) _mm256_load_ps(p)
#define vec_store(p, v) _mm256_store_ps(p, v)
#define vec_add(a, b) _mm256_add_ps(a, b)
#define vec_sub(a, b) _mm256_sub_ps(a, b)
#define vec_mul(a, b) _mm256_mul_ps(a, b)
#define vec_max(a, b) _mm256_max_ps(a, b)
#define vec_fma(a, b, c) _mm256_fmadd_ps(a, b, c)

static inline __m256 vec_bf16(__m256 x) {
  __m256i u = _mm256_castps_si256(x), odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  u = _mm256_add_epi32(_mm256_add_epi32(u, odd), _mm256_set1_epi32(0x7fff));
  return _mm256_castsi256_ps(_mm256_and_si256(u, _mm256_set1_epi32((int)0xffff0000)));
}

/* Minimax polynomial of 2^f, f = x - floor (x), relative error 8e-8; 0 below 2^-126; x is at most 127. */
static inline __m256 vec_exp2(__m256 x) {
  const __m256 least = vec_set(-126);
  __m256 tiny = _mm256_cmp_ps(x, least, _CMP_LT_OQ); /* a comparison that leaves NaN alone */
  __m256 floor = _mm256_round_ps(_mm256_max_ps(least, x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m256 f = vec_sub(x, floor);
  __m256 y = _mm256_fmadd_ps(vec_set(0.00187757667f), f, vec_set(0.00898934009f));
  y = _mm256_fmadd_ps(y, f, vec_set(0.0558263181f));
  y = _mm256_fmadd_ps(y, f, vec_set(0.240153617f));
  y = _mm256_fmadd_ps(y, f, vec_set(0.693153073f));
  y = _mm256_fmadd_ps(y, f, vec_set(0.999999925f));
  y = _mm256_mul_ps(y, _mm256_castsi256_ps(_mm256_slli_epi32(
                           _mm256_add_epi32(_mm256_cvtps_epi32(floor), _mm256_set1_epi32(127)), 23)));
  return _mm256_andnot_ps(tiny, y);
}

static inline __attribute__((always_inline)) void vec_transpose(__m256 r[8]) {
  __m256 t[8];
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int j = 0; j < 2; j++) {
      r[i + 2 * j] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0x44);
      r[i + 2 * j + 1] = _mm256_shuffle_ps(t[i + j], t[i + j + 2], 0xee);
    }
  for (int j = 0; j < 4; j++) {
    t[j] = _mm256_permute2f128_ps(r[j], r[j + 4], 0x20);
    t[j + 4] = _mm256_permute2f128_ps(r[j], r[j + 4], 0x31);
  }
  memcpy(r, t, sizeof t);
}

#include "attention-f32.h"

void msk_attention_init_avx2(struct msk_attention_ops *f32, struct msk_attention_ops *bf16) {
  set_tables(f32, bf16, "avx2");
}
