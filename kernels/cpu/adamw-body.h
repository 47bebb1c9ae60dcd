/* AdamW and the conversions over vectors: 28 bytes a parameter pass once, and nothing is kept. Every array is
 * read and written in place, so stores that bypass the cache would save nothing; what helps is to fetch the
 * arrays ahead, since the processor's own prefetching starts anew at each page of each of them. */
#pragma once

/* Elements that the fetches run ahead of the arithmetic. */
#define AHEAD 512

struct adamw_terms {
  vec_f32 grad_scale, beta1, rest1, beta2, rest2, decay, step, root_scale, eps;
};

static struct adamw_terms adamw_terms(const struct msk_adamw *p) {
  struct adamw_factors f = adamw_factors(p);
  return (struct adamw_terms){
      .grad_scale = vec_set(f.grad_scale),
      .beta1 = vec_set(f.beta1),
      .rest1 = vec_set(f.rest1),
      .beta2 = vec_set(f.beta2),
      .rest2 = vec_set(f.rest2),
      .decay = vec_set(f.decay),
      .step = vec_set(f.step),
      .root_scale = vec_set(f.root_scale),
      .eps = vec_set(f.eps),
  };
}

VEC_INLINE vec_f32 adamw_n(const struct adamw_terms *k, vec_f32 g, vec_f32 w, float *m, float *v, int64_t i,
                           int n) {
  vec_f32 m1, v1;
  g *= k->grad_scale;
  m1 = vec_fma(k->beta1, vec_load_n(m + i, n), k->rest1 * g);
  v1 = vec_fma(k->beta2, vec_load_n(v + i, n), k->rest2 * g * g);
  vec_store_n(m + i, n, m1);
  vec_store_n(v + i, n, v1);
  w = vec_fnma(k->decay, w, w);
  return vec_fnma(k->step, m1 / vec_fma(vec_sqrt(v1), k->root_scale, k->eps), w);
}

/* A prefetch never faults, so it may run past the end. */
VEC_INLINE void fetch(const void *p, int64_t bytes) {
  _mm_prefetch((const char *)((uintptr_t)p + (uintptr_t)bytes), _MM_HINT_T0);
}

VEC_INLINE void step_f32_body(const struct adamw_terms *k, const float *grad, float *w, float *m, float *v,
                              int64_t i, int n) {
  vec_store_n(w + i, n, adamw_n(k, vec_load_n(grad + i, n), vec_load_n(w + i, n), m, v, i, n));
}

static void step_f32(const struct msk_adamw *p, const float *grad, float *w, float *m, float *v, int64_t n) {
  struct adamw_terms k = adamw_terms(p);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    int64_t ahead = (i + AHEAD) * 4;
    fetch(grad, ahead);
    fetch(w, ahead);
    fetch(m, ahead);
    fetch(v, ahead);
    for (int j = 0; j < 16; j += VEC)
      step_f32_body(&k, grad, w, m, v, i + j, VEC);
  }
  VEC_ROW(n - i, step_f32_body, &k, grad + i, w + i, m + i, v + i);
}

/* The split of a float32: hi and lo in the low halves of the lanes. */
VEC_INLINE vec_i32 high_words(vec_i32 bits) {
  return vec_shift_right(vec_add_i32(bits, vec_set_i32(0x8000)), 16);
}

VEC_INLINE vec_f32 joined_n(const uint16_t *hi, const uint16_t *lo, int64_t i, int n) {
  vec_i32 high = vec_shift_left(vec_load_u16_n(hi + i, n), 16);
  return vec_from_bits(vec_add_i32(high, vec_load_s16_n(lo + i, n)));
}

VEC_INLINE void store_split_n(uint16_t *hi, uint16_t *lo, vec_f32 w, int64_t i, int n) {
  vec_store_u16_n(hi + i, n, high_words(vec_bits(w)));
  vec_store_u16_n(lo + i, n, vec_bits(w));
}

VEC_INLINE void step_split_body(const struct adamw_terms *k, const void *grad, enum msk_type type,
                                uint16_t *hi, uint16_t *lo, float *m, float *v, int64_t i, int n) {
  vec_f32 g = vec_load_as_n(grad, type, i, n);
  store_split_n(hi, lo, adamw_n(k, g, joined_n(hi, lo, i, n), m, v, i, n), i, n);
}

VEC_INLINE void step_split_as(const struct adamw_terms *k, const void *grad, enum msk_type type, uint16_t *hi,
                              uint16_t *lo, float *m, float *v, int64_t n) {
  int64_t i = 0, size = type == MSK_F32 ? 4 : 2;
  for (; i + 32 <= n; i += 32) {
    int64_t ahead = i + AHEAD;
    fetch(grad, ahead * size);
    if (type == MSK_F32)
      fetch(grad, ahead * size + 64);
    fetch(hi, ahead * 2);
    fetch(lo, ahead * 2);
    fetch(m, ahead * 4);
    fetch(m, ahead * 4 + 64);
    fetch(v, ahead * 4);
    fetch(v, ahead * 4 + 64);
    for (int j = 0; j < 32; j += VEC)
      step_split_body(k, grad, type, hi, lo, m, v, i + j, VEC);
  }
  VEC_ROW(n - i, step_split_body, k, (const char *)grad + i * size, type, hi + i, lo + i, m + i, v + i);
}

static void step_split(const struct msk_adamw *p, const void *grad, enum msk_type grad_type, uint16_t *hi,
                       uint16_t *lo, float *m, float *v, int64_t n) {
  struct adamw_terms k = adamw_terms(p);
  if (grad_type == MSK_F32)
    step_split_as(&k, grad, MSK_F32, hi, lo, m, v, n);
  else
    step_split_as(&k, grad, MSK_BF16, hi, lo, m, v, n);
}

VEC_INLINE void split_body(const float *w, uint16_t *hi, uint16_t *lo, int64_t i, int n) {
  store_split_n(hi, lo, vec_load_n(w + i, n), i, n);
}

static void split(const float *w, uint16_t *hi, uint16_t *lo, int64_t n) {
  VEC_ROW(n, split_body, w, hi, lo);
}

VEC_INLINE void join_body(const uint16_t *hi, const uint16_t *lo, float *w, int64_t i, int n) {
  vec_store_n(w + i, n, joined_n(hi, lo, i, n));
}

static void join(const uint16_t *hi, const uint16_t *lo, float *w, int64_t n) {
  VEC_ROW(n, join_body, hi, lo, w);
}

VEC_INLINE void to_bf16_body(const float *x, uint16_t *y, int64_t i, int n) {
  vec_store_as_n(y, MSK_BF16, i, n, vec_load_n(x + i, n));
}

static void f32_to_bf16(const float *x, uint16_t *y, int64_t n) {
  VEC_ROW(n, to_bf16_body, x, y);
}

VEC_INLINE void to_f32_body(const uint16_t *x, float *y, int64_t i, int n) {
  vec_store_n(y + i, n, vec_load_bf16_n(x + i, n));
}

static void bf16_to_f32(const uint16_t *x, float *y, int64_t n) {
  VEC_ROW(n, to_f32_body, x, y);
}
