#include "msk-adamw.h"

#include <math.h>

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
