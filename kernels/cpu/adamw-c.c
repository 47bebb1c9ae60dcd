#include "msk-adamw.h"

#include <math.h>

#include "adamw-codes.h"
#include "adamw-sets.h"
#include "msk-cpu.h"

union word {
  uint32_t u;
  float f;
};

static uint16_t high_of(float w) {
  union word v = {.f = w};
  return (uint16_t)((v.u + 0x8000u) >> 16);
}

static uint16_t low_of(float w) {
  union word v = {.f = w};
  return (uint16_t)v.u;
}

static float joined(uint16_t hi, uint16_t lo) {
  union word v = {.u = ((uint32_t)hi << 16) + (uint32_t)(int32_t)(int16_t)lo};
  return v.f;
}

static float step_one(const struct msk_adamw *p, double grad, float w, float *m, float *v) {
  double g = grad * p->grad_scale, weight = w;
  double m1 = p->beta1 * *m + (1.0 - p->beta1) * g;
  double v1 = p->beta2 * *v + (1.0 - p->beta2) * g * g;
  weight -= p->lr * p->decay * weight;
  weight -= p->lr / p->correction1 * m1 / (sqrt(v1 / p->correction2) + p->eps);
  *m = (float)m1;
  *v = (float)v1;
  return (float)weight;
}

static void step_f32(const struct msk_adamw *p, const float *grad, float *w, float *m, float *v, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    w[i] = step_one(p, grad[i], w[i], m + i, v + i);
}

static void step_split(const struct msk_adamw *p, const void *grad, enum msk_type grad_type, uint16_t *hi,
                       uint16_t *lo, float *m, float *v, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    float g = grad_type == MSK_F32 ? ((const float *)grad)[i] : msk_bf16_to_f32(((const uint16_t *)grad)[i]);
    float w = step_one(p, g, joined(hi[i], lo[i]), m + i, v + i);
    hi[i] = high_of(w);
    lo[i] = low_of(w);
  }
}

/* Here every operation is float32 and rounds to nearest, in the order in which the other sets do it, for
 * their bits. Codes as float32 in units of the scale, LOW away from zero. */
static float unit_of_m(uint8_t code) {
  union word v = {.u = (uint32_t)(code & 0x80) << 24 | (uint32_t)(code & 0x7f) << CODE_SHIFT | M_LOW_BITS};
  return v.f;
}

static float unit_of_v(uint8_t code) {
  union word v = {.u = (uint32_t)code << CODE_SHIFT | V_LOW_BITS};
  return v.f;
}

static uint8_t code_of_m(float x, float inverse, uint32_t draw) {
  union word v = {.f = fmaf(x, inverse, copysignf(M_LOW, x))};
  v.u += draw >> (32 - CODE_SHIFT);
  return (uint8_t)(v.u >> 24 & 0x80) | (uint8_t)(v.u >> CODE_SHIFT & 0x7f);
}

static uint8_t code_of_v(float x, float inverse, uint32_t draw) {
  union word v = {.f = fmaf(x, inverse, V_LOW)};
  v.u += draw >> (32 - CODE_SHIFT);
  return (uint8_t)(v.u >> CODE_SHIFT);
}

static uint32_t larger_bits(uint32_t bits, float x) {
  union word v = {.f = fabsf(x)};
  return v.u > bits ? v.u : bits;
}

static void step_block8(const struct adamw_factors *k, const void *grad, enum msk_type grad_type,
                        uint16_t *hi, uint16_t *lo, uint8_t *m, uint8_t *v, float *m_scale, float *v_scale,
                        struct adamw_draws draws, int n) {
  const struct adamw_old old = adamw_old(k, *m_scale, *v_scale);
  float m1[BLOCK], v1[BLOCK], m_inverse, v_inverse;
  uint32_t m_bits = 0, v_bits = 0;
  for (int i = 0; i < n; i++) {
    float g = grad_type == MSK_F32 ? ((const float *)grad)[i] : msk_bf16_to_f32(((const uint16_t *)grad)[i]);
    float w = joined(hi[i], lo[i]), unit = unit_of_m(m[i]);
    g *= k->grad_scale;
    m1[i] = fmaf(k->rest1, g, fmaf(unit, old.m, -copysignf(old.m_low, unit)));
    v1[i] = fmaf(unit_of_v(v[i]), old.v, fmaf(k->rest2 * g, g, -old.v_low));
    m_bits = larger_bits(m_bits, m1[i]);
    v_bits = larger_bits(v_bits, v1[i]);
    w = fmaf(-k->decay, w, w);
    w = fmaf(-k->step, m1[i] / fmaf(sqrtf(v1[i]), k->root_scale, k->eps), w);
    hi[i] = high_of(w);
    lo[i] = low_of(w);
  }
  *m_scale = adamw_scale(m_bits, M_LEAST, &m_inverse);
  *v_scale = adamw_scale(v_bits, V_LEAST, &v_inverse);
  for (int i = 0; i < n; i++) {
    uint32_t draw = draws.start + (uint32_t)i * draws.stride;
    m[i] = code_of_m(m1[i], m_inverse, draw);
    v[i] = code_of_v(v1[i], v_inverse, draw);
  }
}

static void step_split8(const struct msk_adamw *p, const void *grad, enum msk_type grad_type, uint16_t *hi,
                        uint16_t *lo, uint8_t *m, uint8_t *v, float *m_scale, float *v_scale, int64_t first,
                        uint32_t seed, int64_t n) {
  struct adamw_factors k = adamw_factors(p);
  for (int64_t i = 0; i < n; i += BLOCK)
    step_block8(&k, (const char *)grad + i * (int64_t)msk_type_size(grad_type), grad_type, hi + i, lo + i,
                m + i, v + i, m_scale + i / BLOCK, v_scale + i / BLOCK, adamw_draws(seed, first + i),
                (int)(n - i < BLOCK ? n - i : BLOCK));
}

static void read_moments8(const uint8_t *m, const uint8_t *v, const float *m_scale, const float *v_scale,
                          float *m_value, float *v_value, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    float unit = unit_of_m(m[i]);
    m_value[i] = (unit - copysignf(M_LOW, unit)) * m_scale[i / BLOCK];
    v_value[i] = (unit_of_v(v[i]) - V_LOW) * v_scale[i / BLOCK];
  }
}

static void split(const float *w, uint16_t *hi, uint16_t *lo, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    hi[i] = high_of(w[i]);
    lo[i] = low_of(w[i]);
  }
}

static void join(const uint16_t *hi, const uint16_t *lo, float *w, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    w[i] = joined(hi[i], lo[i]);
}

static void f32_to_bf16(const float *x, uint16_t *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = msk_f32_to_bf16(x[i]);
}

static void bf16_to_f32(const uint16_t *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = msk_bf16_to_f32(x[i]);
}

void msk_adamw_init(struct msk_adamw_ops *ops, unsigned cpu_flags) {
  *ops = (struct msk_adamw_ops){
      .name = "c",
      .step_f32 = step_f32,
      .step_split = step_split,
      .step_split8 = step_split8,
      .read_moments8 = read_moments8,
      .split = split,
      .join = join,
      .f32_to_bf16 = f32_to_bf16,
      .bf16_to_f32 = bf16_to_f32,
  };
#if MSK_X86
  if (!(cpu_flags & MSK_CPU_AVX2))
    return;
  msk_adamw_init_avx2(ops);
  if (!(cpu_flags & MSK_CPU_AVX512))
    return;
  msk_adamw_init_avx512(ops);
#endif
}
