/* AdamW with 8-bit moments over vectors: a block is read, stepped and kept in the first-level cache as
 * float32 while its largest moments are found, then its codes are made. The arithmetic is that of adamw-c.c,
 * operation by operation. */
#pragma once

struct moments8 {
  float m[BLOCK], v[BLOCK];
  vec_i32 m_largest, v_largest; /* bits */
};

/* x with the sign of s. */
VEC_INLINE vec_f32 signed_as(vec_f32 x, vec_f32 s) {
  return vec_from_bits(vec_pick(vec_set_i32(0x7fffffff), vec_bits(x), vec_bits(s)));
}

struct old8 {
  vec_f32 m, m_low, v, v_low;
};

VEC_INLINE struct old8 old8_of(const struct adamw_factors *f, float m_scale, float v_scale) {
  struct adamw_old old = adamw_old(f, m_scale, v_scale);
  return (struct old8){vec_set(old.m), vec_set(old.m_low), vec_set(old.v), vec_set(old.v_low)};
}

/* New moments of old codes, as float32 in units of the scale; the new weights. */
VEC_INLINE vec_f32 step8(const struct adamw_terms *k, const struct old8 *old, vec_f32 g, vec_f32 w,
                         vec_f32 *m, vec_f32 *v) {
  g *= k->grad_scale;
  *m = vec_fma(k->rest1, g, vec_fms(*m, old->m, signed_as(old->m_low, *m)));
  *v = vec_fma(*v, old->v, vec_fms(k->rest2 * g, g, old->v_low));
  w = vec_fnma(k->decay, w, w);
  return vec_fnma(k->step, *m / vec_fma(vec_sqrt(*v), k->root_scale, k->eps), w);
}

VEC_INLINE void step8_body(const struct adamw_terms *k, const struct old8 *old, const void *grad,
                           enum msk_type type, uint16_t *hi, uint16_t *lo, const uint8_t *m, const uint8_t *v,
                           struct moments8 *b, int64_t i, int n) {
  vec_i32 m_code = vec_shift_left(vec_load_s8_n(m + i, n), CODE_SHIFT);
  vec_i32 v_code = vec_shift_left(vec_load_u8_n(v + i, n), CODE_SHIFT);
  vec_f32 m1 = vec_from_bits(vec_pick(vec_set_i32((int)0x87ffffffu), m_code, vec_set_i32(M_LOW_BITS)));
  vec_f32 v1 = vec_from_bits(vec_or_i32(v_code, vec_set_i32(V_LOW_BITS)));
  store_split_n(hi, lo, step8(k, old, vec_load_as_n(grad, type, i, n), joined_n(hi, lo, i, n), &m1, &v1), i,
                n);
  vec_store(b->m + i, m1);
  vec_store(b->v + i, v1);
  b->m_largest = vec_larger_bits(b->m_largest, m1);
  b->v_largest = vec_larger_bits(b->v_largest, v1);
}

VEC_INLINE void codes8_body(const struct moments8 *b, vec_f32 m_inverse, vec_f32 v_inverse, vec_i32 *draw,
                            vec_i32 stride, uint8_t *m, uint8_t *v, int64_t i, int n) {
  vec_f32 m1 = vec_load(b->m + i), v1 = vec_load(b->v + i);
  vec_i32 up = vec_shift_right(*draw, 32 - CODE_SHIFT);
  vec_i32 m_code = vec_add_i32(vec_bits(vec_fma(m1, m_inverse, signed_as(vec_set(M_LOW), m1))), up);
  vec_i32 v_code = vec_add_i32(vec_bits(vec_fma(v1, v_inverse, vec_set(V_LOW))), up);
  /* The sign moves down to the code, beside which lie the constant bits of the exponent. */
  m_code = vec_pick(vec_set_i32(INT32_MIN), m_code, vec_shift_left(m_code, 27 - 23));
  vec_store_u8_n(m + i, n, vec_shift_right(m_code, 24));
  vec_store_u8_n(v + i, n, vec_shift_right(v_code, CODE_SHIFT));
  *draw = vec_add_i32(*draw, stride);
}

VEC_INLINE void step8_block(const struct adamw_terms *k, const struct adamw_factors *f, const void *grad,
                            enum msk_type type, uint16_t *hi, uint16_t *lo, uint8_t *m, uint8_t *v,
                            float *m_scale, float *v_scale, struct adamw_draws draws, int n) {
  struct moments8 b __attribute__((aligned(64)));
  const struct old8 old = old8_of(f, *m_scale, *v_scale);
  vec_i32 stride = vec_set_i32((int)draws.stride);
  vec_i32 draw = vec_add_i32(vec_set_i32((int)draws.start), vec_mul_i32(vec_count(), stride));
  float m_inverse, v_inverse;
  b.m_largest = b.v_largest = vec_set_i32(0);
  if (n == BLOCK) {
    int64_t size = type == MSK_F32 ? 4 : 2;
    for (int64_t i = 0; i < BLOCK; i += 64) {
      int64_t ahead = i + AHEAD;
      for (int64_t line = 0; line < size; line++)
        fetch(grad, ahead * size + line * 64);
      for (int64_t line = 0; line < 2; line++) {
        fetch(hi, ahead * 2 + line * 64);
        fetch(lo, ahead * 2 + line * 64);
      }
      fetch(m, ahead);
      fetch(v, ahead);
      for (int64_t j = i; j < i + 64; j += VEC)
        step8_body(k, &old, grad, type, hi, lo, m, v, &b, j, VEC);
    }
  } else {
    VEC_ROW(n, step8_body, k, &old, grad, type, hi, lo, m, v, &b);
  }
  *m_scale = adamw_scale((uint32_t)vec_largest_i32(b.m_largest), M_LEAST, &m_inverse);
  *v_scale = adamw_scale((uint32_t)vec_largest_i32(b.v_largest), V_LEAST, &v_inverse);
  stride = vec_mul_i32(stride, vec_set_i32(VEC));
  VEC_ROW(n, codes8_body, &b, vec_set(m_inverse), vec_set(v_inverse), &draw, stride, m, v);
}

VEC_INLINE void step_split8_as(const struct msk_adamw *p, const void *grad, enum msk_type type, uint16_t *hi,
                               uint16_t *lo, uint8_t *m, uint8_t *v, float *m_scale, float *v_scale,
                               int64_t first, uint32_t seed, int64_t n) {
  struct adamw_factors f = adamw_factors(p);
  struct adamw_terms k = adamw_terms(p);
  int64_t i = 0, size = type == MSK_F32 ? 4 : 2;
  for (; i + BLOCK <= n; i += BLOCK)
    step8_block(&k, &f, (const char *)grad + i * size, type, hi + i, lo + i, m + i, v + i,
                m_scale + i / BLOCK, v_scale + i / BLOCK, adamw_draws(seed, first + i), BLOCK);
  if (i < n)
    step8_block(&k, &f, (const char *)grad + i * size, type, hi + i, lo + i, m + i, v + i,
                m_scale + i / BLOCK, v_scale + i / BLOCK, adamw_draws(seed, first + i), (int)(n - i));
}

static void step_split8(const struct msk_adamw *p, const void *grad, enum msk_type grad_type, uint16_t *hi,
                        uint16_t *lo, uint8_t *m, uint8_t *v, float *m_scale, float *v_scale, int64_t first,
                        uint32_t seed, int64_t n) {
  if (grad_type == MSK_F32)
    step_split8_as(p, grad, MSK_F32, hi, lo, m, v, m_scale, v_scale, first, seed, n);
  else
    step_split8_as(p, grad, MSK_BF16, hi, lo, m, v, m_scale, v_scale, first, seed, n);
}
