#include <assert.h>
#include <math.h>

#include "cpu/product.h"
#include "msk-cpu.h"

/* The reference keeps B as [n,k], in the type of its precision, and one row of A, rounded likewise, in
 * scratch. Sums are in double; products of two float32 (or bf16) are exact there. */

static size_t pack_b_bytes_f32(int64_t n, int64_t k) {
  return (size_t)n * (size_t)k * sizeof(float);
}

static size_t pack_b_bytes_bf16(int64_t n, int64_t k) {
  return (size_t)n * (size_t)k * sizeof(uint16_t);
}

static void pack_b_f32(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  float *b = dst;
  for (int64_t j = n0; j < n1; j++)
    for (int64_t l = 0; l < pack->k; l++)
      b[j * pack->k + l] = msk_product_load(pack->src, pack->type, msk_product_b_at(pack, j, l));
}

static void pack_b_bf16(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  uint16_t *b = dst;
  for (int64_t j = n0; j < n1; j++)
    for (int64_t l = 0; l < pack->k; l++)
      b[j * pack->k + l] =
          msk_f32_to_bf16(msk_product_load(pack->src, pack->type, msk_product_b_at(pack, j, l)));
}

static size_t scratch_bytes(const struct msk_product *p) {
  return (size_t)p->k * sizeof(float);
}

static double activate(enum msk_act act, double x) {
  switch (act) {
  case MSK_ACT_GELU_TANH:
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  case MSK_ACT_SILU:
    return x / (1 + exp(-x));
  default:
    return x;
  }
}

static void store(void *x, enum msk_type type, int64_t i, double value) {
  if (type == MSK_F32)
    ((float *)x)[i] = (float)value;
  else
    ((uint16_t *)x)[i] = msk_f32_to_bf16((float)value);
}

static void finish(const struct msk_product *p, int64_t i, int64_t j, double r) {
  if (p->bias)
    r += (double)p->bias[j];
  if (p->pre)
    store(p->pre, p->pre_type, i * p->pre_ld + j, r);
  r = activate(p->act, r);
  if (p->gate)
    r *= (double)p->gate[i / p->gate_rows * p->gate_ld + j];
  if (p->residual)
    r += (double)p->residual[i * p->residual_ld + j];
  if (p->accumulate)
    r += (double)((const float *)p->c)[i * p->c_ld + j];
  store(p->c, p->c_type, i * p->c_ld + j, r);
}

static void row_of_a(const struct msk_product *p, int64_t i, enum msk_precision precision, float *row) {
  for (int64_t l = 0; l < p->k; l++) {
    float a = msk_product_load(p->a, p->a_type, msk_product_a_at(p, i, l));
    row[l] = precision == MSK_PRECISION_F32 ? a : msk_bf16_to_f32(msk_f32_to_bf16(a));
  }
}

static void run_rectangle(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                          float *row, enum msk_precision precision) {
  enum msk_type b_type = precision == MSK_PRECISION_F32 ? MSK_F32 : MSK_BF16;
  assert(!p->accumulate || p->c_type == MSK_F32);
  assert(!(p->a_transposed && p->taps > 1));
  for (int64_t i = m0; i < m1; i++) {
    row_of_a(p, i, precision, row);
    for (int64_t j = n0; j < n1; j++) {
      double sum = 0;
      for (int64_t l = 0; l < p->k; l++)
        sum += (double)row[l] * (double)msk_product_load(p->b, b_type, j * p->k + l);
      finish(p, i, j, sum);
    }
  }
}

static void run_f32(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                    void *scratch) {
  run_rectangle(p, m0, m1, n0, n1, scratch, MSK_PRECISION_F32);
}

static void run_bf16(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                     void *scratch) {
  run_rectangle(p, m0, m1, n0, n1, scratch, MSK_PRECISION_BF16);
}

void msk_product_init(struct msk_product_ops *f32, struct msk_product_ops *bf16, unsigned cpu_flags) {
  *f32 = (struct msk_product_ops){
      .name = "c",
      .precision = MSK_PRECISION_F32,
      .m_step = 1,
      .n_step = 1,
      .pack_b_bytes = pack_b_bytes_f32,
      .pack_b = pack_b_f32,
      .scratch_bytes = scratch_bytes,
      .run = run_f32,
  };
  *bf16 = (struct msk_product_ops){
      .name = "c",
      .precision = MSK_PRECISION_BF16,
      .m_step = 1,
      .n_step = 1,
      .pack_b_bytes = pack_b_bytes_bf16,
      .pack_b = pack_b_bf16,
      .scratch_bytes = scratch_bytes,
      .run = run_bf16,
  };
#if MSK_X86
  if (!(cpu_flags & MSK_CPU_AVX2))
    return;
  msk_product_init_avx2(f32, bf16);
  if (!(cpu_flags & MSK_CPU_AVX512))
    return;
  msk_product_init_avx512(f32, bf16);
  if (!(cpu_flags & MSK_CPU_AVX512BF16))
    return;
  msk_product_init_avx512bf16(bf16);
  if (!(cpu_flags & MSK_CPU_AMX))
    return;
  msk_product_init_amx(bf16);
#endif
}
