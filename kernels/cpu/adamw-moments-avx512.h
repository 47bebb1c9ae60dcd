/* Whole blocks of AdamW with 8-bit moments, 64 elements at a time, with AVX-512: the arithmetic of
 * adamw-moments.h, with fewer instructions around it, and with the root and the quotient of one block beside
 * the codes of the block before, which need neither.
 *
 * 64 elements are four vectors: element 2 i of the first 32 in lane i, element 2 i + 1 of them, and the same
 * of the last
 * 32. So a register of 32 words holds two vectors in the halves of its lanes. The words of 64 bytes, put in
 * the order 0, 16, 1, 17, ..., hold the first and third vector in their low bytes, the second and fourth in
 * their high bytes: widened to words these are the upper halves of the float32 of two vectors. */
#pragma once

#define GROUP 64

/* A block whose codes are not made yet, or one that is being stepped. */
struct wide_block {
  float m[BLOCK], v[BLOCK]; /* by groups, in the order of the vectors */
  vec_i32 draw, stride;     /* of the first vector of the next group; of one element */
  vec_f32 m_inverse, v_inverse;
  uint8_t *m_code, *v_code;
};

VEC_INLINE vec_i32 wide_load(const void *p) {
  return _mm512_loadu_si512(p);
}

VEC_INLINE vec_i32 wide_high_halves(void) {
  return vec_set_i32((int)0xffff0000u);
}

/* Upper halves of two vectors in one register, and back. */
VEC_INLINE vec_i32 wide_halves(vec_i32 even, vec_i32 odd) {
  return vec_pick(wide_high_halves(), odd, vec_shift_right(even, 16));
}

VEC_INLINE vec_f32 wide_half(vec_i32 words, int odd) {
  return vec_from_bits(odd ? vec_and_i32(words, wide_high_halves()) : vec_shift_left(words, 16));
}

VEC_INLINE vec_f32 wide_gradient(const void *grad, enum msk_type type, int64_t i, int half, int odd) {
  const vec_i32 even = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const float *f32 = (const float *)grad + i + half * 32;
  if (type == MSK_BF16)
    return wide_half(wide_load((const uint16_t *)grad + i + half * 32), odd);
  return _mm512_permutex2var_ps(vec_load(f32), odd ? vec_add_i32(even, vec_set_i32(1)) : even,
                                vec_load(f32 + 16));
}

/* lo is negative where rounding took hi up: taking that off leaves the upper half of the float32. */
VEC_INLINE vec_f32 wide_joined(vec_i32 upper, vec_i32 lo, int odd) {
  return vec_from_bits(odd ? vec_pick(wide_high_halves(), upper, vec_shift_right(lo, 16))
                           : vec_pick(wide_high_halves(), vec_shift_left(upper, 16), lo));
}

VEC_INLINE void wide_store_split(uint16_t *hi, uint16_t *lo, vec_i32 even, vec_i32 odd) {
  vec_i32 low = vec_pick(wide_high_halves(), vec_shift_left(odd, 16), even);
  _mm512_storeu_si512(lo, low);
  _mm512_storeu_si512(hi, _mm512_add_epi16(wide_halves(even, odd), _mm512_srli_epi16(low, 15)));
}

/* Vectors `odd` and 2 + odd of a group's codes, as the upper halves of float32. */
VEC_INLINE vec_i32 wide_m(vec_i32 codes, int odd) {
  vec_i32 placed = _mm512_srai_epi16(odd ? codes : _mm512_slli_epi16(codes, 8), 4);
  return vec_pick(_mm512_set1_epi16((short)0x87f0), placed, _mm512_set1_epi16(M_LOW_BITS >> 16));
}

VEC_INLINE vec_i32 wide_v(vec_i32 codes, int odd) {
  vec_i32 placed = odd ? _mm512_srli_epi16(codes, 4) : _mm512_slli_epi16(codes, 4);
  return vec_pick(_mm512_set1_epi16(0x0ff0), placed, _mm512_set1_epi16(V_LOW_BITS >> 16));
}

VEC_INLINE void wide_step(const struct adamw_terms *k, const struct old8 *old, const void *grad,
                          enum msk_type type, uint16_t *hi, uint16_t *lo, struct wide_block *b,
                          vec_i32 *m_largest, vec_i32 *v_largest, int64_t i) {
  const vec_i32 order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  vec_i32 m_codes = _mm512_permutexvar_epi16(order, wide_load(b->m_code + i));
  vec_i32 v_codes = _mm512_permutexvar_epi16(order, wide_load(b->v_code + i));
  vec_i32 m_half[2] = {wide_m(m_codes, 0), wide_m(m_codes, 1)};
  vec_i32 v_half[2] = {wide_v(v_codes, 0), wide_v(v_codes, 1)};
  int64_t size = type == MSK_F32 ? 4 : 2, ahead = i + AHEAD;
  for (int64_t line = 0; line < size; line++)
    fetch(grad, ahead * size + line * 64);
  for (int64_t line = 0; line < 2; line++) {
    fetch(hi, ahead * 2 + line * 64);
    fetch(lo, ahead * 2 + line * 64);
  }
  fetch(b->m_code, ahead);
  fetch(b->v_code, ahead);
#pragma GCC unroll 2
  for (int half = 0; half < 2; half++) {
    uint16_t *hi_at = hi + i + half * 32, *lo_at = lo + i + half * 32;
    vec_i32 low = wide_load(lo_at), next[2];
    vec_i32 upper = _mm512_add_epi16(wide_load(hi_at), _mm512_srai_epi16(low, 15));
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; odd++) {
      int64_t at = i + (half * 2 + odd) * VEC;
      vec_f32 m1 = wide_half(m_half[odd], half), v1 = wide_half(v_half[odd], half);
      next[odd] = vec_bits(
          step8(k, old, wide_gradient(grad, type, i, half, odd), wide_joined(upper, low, odd), &m1, &v1));
      vec_store(b->m + at, m1);
      vec_store(b->v + at, v1);
      *m_largest = vec_larger_bits(*m_largest, m1);
      *v_largest = vec_larger_bits(*v_largest, v1);
    }
    wide_store_split(hi_at, lo_at, next[0], next[1]);
  }
}

VEC_INLINE void wide_codes(struct wide_block *b, int64_t i) {
  const vec_i32 order = _mm512_set_epi16(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1, 30, 28,
                                         26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  const vec_i32 high_bytes = _mm512_set1_epi16((short)0xff00), sign = _mm512_set1_epi16((short)0x8000);
  vec_i32 m[4], v[4], draw[4];
  draw[0] = b->draw;
  draw[1] = vec_add_i32(draw[0], b->stride);
  draw[2] = vec_add_i32(draw[0], vec_shift_left(b->stride, 5));
  draw[3] = vec_add_i32(draw[1], vec_shift_left(b->stride, 5));
  b->draw = vec_add_i32(draw[0], vec_shift_left(b->stride, 6));
#pragma GCC unroll 4
  for (int j = 0; j < 4; j++) {
    vec_f32 m1 = vec_load(b->m + i + j * VEC), v1 = vec_load(b->v + i + j * VEC);
    vec_i32 up = vec_shift_right(draw[j], 32 - CODE_SHIFT);
    m[j] = vec_add_i32(vec_bits(vec_fma(m1, b->m_inverse, signed_as(vec_set(M_LOW), m1))), up);
    v[j] = vec_add_i32(vec_bits(vec_fma(v1, b->v_inverse, vec_set(V_LOW))), up);
  }
#pragma GCC unroll 2
  for (int j = 0; j < 2; j++) {
    m[j] = wide_halves(m[j], m[2 + j]);
    v[j] = wide_halves(v[j], v[2 + j]);
    m[j] = vec_pick(sign, m[j], _mm512_slli_epi16(m[j], 4)); /* sign and code in the high byte */
  }
  m[0] = vec_pick(high_bytes, m[1], _mm512_srli_epi16(m[0], 8));
  v[0] = vec_pick(high_bytes, _mm512_slli_epi16(v[1], 4), _mm512_srli_epi16(v[0], 4));
  _mm512_storeu_si512(b->m_code + i, _mm512_permutexvar_epi16(order, m[0]));
  _mm512_storeu_si512(b->v_code + i, _mm512_permutexvar_epi16(order, v[0]));
}

/* Each block is stepped while the codes of the one before are made. */
VEC_INLINE void wide_blocks(const struct msk_adamw *p, const void *grad, enum msk_type type, uint16_t *hi,
                            uint16_t *lo, uint8_t *m, uint8_t *v, float *m_scale, float *v_scale,
                            int64_t first, uint32_t seed, int64_t blocks) {
  struct wide_block two[2] __attribute__((aligned(64)));
  const struct adamw_factors f = adamw_factors(p);
  const struct adamw_terms k = adamw_terms(p);
  for (int64_t block = 0; block < blocks; block++) {
    struct wide_block *now = &two[block % 2], *before = &two[(block + 1) % 2];
    int64_t at = block * BLOCK;
    const struct old8 old = old8_of(&f, m_scale[block], v_scale[block]);
    const struct adamw_draws draws = adamw_draws(seed, first + at);
    const void *g = (const char *)grad + at * (type == MSK_F32 ? 4 : 2);
    vec_i32 m_largest = vec_set_i32(0), v_largest = m_largest;
    float m_inverse, v_inverse;
    now->m_code = m + at;
    now->v_code = v + at;
    for (int64_t i = 0; i < BLOCK; i += GROUP) {
      wide_step(&k, &old, g, type, hi + at, lo + at, now, &m_largest, &v_largest, i);
      if (block > 0)
        wide_codes(before, i);
    }
    m_scale[block] = adamw_scale((uint32_t)vec_largest_i32(m_largest), M_LEAST, &m_inverse);
    v_scale[block] = adamw_scale((uint32_t)vec_largest_i32(v_largest), V_LEAST, &v_inverse);
    now->m_inverse = vec_set(m_inverse);
    now->v_inverse = vec_set(v_inverse);
    now->stride = vec_set_i32((int)draws.stride);
    now->draw =
        vec_add_i32(vec_set_i32((int)draws.start), vec_mul_i32(vec_shift_left(vec_count(), 1), now->stride));
  }
  for (int64_t i = 0; i < BLOCK; i += GROUP)
    wide_codes(&two[(blocks + 1) % 2], i);
}

static void step_split8_wide(const struct msk_adamw *p, const void *grad, enum msk_type grad_type,
                             uint16_t *hi, uint16_t *lo, uint8_t *m, uint8_t *v, float *m_scale,
                             float *v_scale, int64_t first, uint32_t seed, int64_t n) {
  int64_t blocks = n / BLOCK, done = blocks * BLOCK;
  if (blocks && grad_type == MSK_F32)
    wide_blocks(p, grad, MSK_F32, hi, lo, m, v, m_scale, v_scale, first, seed, blocks);
  else if (blocks)
    wide_blocks(p, grad, MSK_BF16, hi, lo, m, v, m_scale, v_scale, first, seed, blocks);
  if (done < n)
    step_split8(p, (const char *)grad + done * (int64_t)msk_type_size(grad_type), grad_type, hi + done,
                lo + done, m + done, v + done, m_scale + blocks, v_scale + blocks, first + done, seed,
                n - done);
}
