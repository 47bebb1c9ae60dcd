/* Attention with float32 arithmetic on AVX-512: blocks of 32 queries, register tiles of 8 x 32. */
#include "attention-avx512.h"

#define W 16
#define ROWS 8
#define vec __m512
#define vec_set(x) _mm512_set1_ps(x)
#define vec_load(p) _mm512_load_ps(p)
#define vec_store(p, v) _mm512_store_ps(p, v)
#define vec_add(a, b) _mm512_add_ps(a, b)
#define vec_sub(a, b) _mm512_sub_ps(a, b)
#define vec_mul(a, b) _mm512_mul_ps(a, b)
#define vec_max(a, b) _mm512_max_ps(a, b)
#define vec_fma(a, b, c) _mm512_fmadd_ps(a, b, c)

static inline __m512 vec_bf16(__m512 x) {
  __m512i u = _mm512_castps_si512(x), odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  u = _mm512_add_epi32(_mm512_add_epi32(u, odd), _mm512_set1_epi32(0x7fff));
  return _mm512_castsi512_ps(_mm512_and_si512(u, _mm512_set1_epi32((int)0xffff0000)));
}

/* Minimax polynomial of 2^f, f = x - floor (x), relative error 8e-8. */
static inline __m512 vec_exp2(__m512 x) {
  __m512 f = _mm512_reduce_ps(x, 0x09);
  __m512 y = _mm512_fmadd_ps(vec_set(0.00187757667f), f, vec_set(0.00898934009f));
  y = _mm512_fmadd_ps(y, f, vec_set(0.0558263181f));
  y = _mm512_fmadd_ps(y, f, vec_set(0.240153617f));
  y = _mm512_fmadd_ps(y, f, vec_set(0.693153073f));
  y = _mm512_fmadd_ps(y, f, vec_set(0.999999925f));
  return _mm512_scalef_ps(y, x);
}

static inline __attribute__((always_inline)) void vec_transpose(__m512 r[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i++)
    t[i] = _mm512_castps_si512(r[i]);
  attention_transpose(t);
  for (int i = 0; i < 16; i++)
    r[i] = _mm512_castsi512_ps(t[i]);
}

#include "attention-f32.h"

void msk_attention_init_avx512(struct msk_attention_ops *f32, struct msk_attention_ops *bf16) {
  set_tables(f32, bf16, "avx512");
}
