/* Attention, the reference: plain loops, double accumulators; and the ladder of instruction sets. */
#include "attention.h"

#include <math.h>

#include "msk-cpu.h"

/* The operand of a product: as it is, or rounded as bf16 precision asks. */
static inline double operand(double x, int bf16) {
  return bf16 ? msk_bf16_to_f32(msk_f32_to_bf16((float)x)) : x;
}

static double dot(const float *a, const float *b, int64_t n, int bf16) {
  double sum = 0;
  for (int64_t c = 0; c < n; c++)
    sum += operand(a[c], bf16) * operand(b[c], bf16);
  return sum;
}

static const float *k_at(const struct msk_attention *p, int64_t j, int64_t head) {
  return p->k + attention_k_row(p, j) * p->k_ld + head * p->head_dim;
}

static const float *v_at(const struct msk_attention *p, int64_t j, int64_t head) {
  return p->v + attention_k_row(p, j) * p->v_ld + head * p->head_dim;
}

static void forward(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch,
                    int bf16) {
  double *s = scratch, *o = s + p->keys;
  for (int64_t i = q0; i < q1; i++) {
    int64_t row = attention_q_row(p, i);
    const float *q = p->q + row * p->q_ld + head * p->head_dim;
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < p->keys; j++) {
      s[j] = p->scale * dot(q, k_at(p, j, head), p->head_dim, bf16);
      max = s[j] > max ? s[j] : max;
    }
    memset(o, 0, (size_t)p->head_dim * sizeof *o);
    for (int64_t j = 0; j < p->keys; j++) {
      double weight = exp(s[j] - max), factor = operand(weight, bf16);
      const float *v = v_at(p, j, head);
      sum += weight;
      for (int64_t c = 0; c < p->head_dim; c++)
        o[c] += factor * operand(v[c], bf16);
    }
    for (int64_t c = 0; c < p->head_dim; c++)
      p->o[row * p->o_ld + head * p->head_dim + c] = (float)(o[c] / sum);
    if (p->lse)
      p->lse[row * p->heads + head] = (float)(max + log(sum));
  }
}

static void backward(const struct msk_attention *p, int64_t head, void *scratch, int bf16) {
  int64_t n = p->head_dim;
  double *dk = scratch, *dv = dk + p->keys * n, *dq = dv + p->keys * n;
  memset(dk, 0, (size_t)(2 * p->keys * n) * sizeof *dk);
  for (int64_t i = 0; i < p->queries; i++) {
    int64_t row = attention_q_row(p, i);
    const float *q = p->q + row * p->q_ld + head * n, *o = p->o + row * p->o_ld + head * n;
    const float *d_o = p->d_o + row * p->d_o_ld + head * n;
    double lse = p->lse[row * p->heads + head], delta = dot(d_o, o, n, 0);
    memset(dq, 0, (size_t)n * sizeof *dq);
    for (int64_t j = 0; j < p->keys; j++) {
      const float *k = k_at(p, j, head), *v = v_at(p, j, head);
      double weight = exp(p->scale * dot(q, k, n, bf16) - lse);
      double ds = operand(weight * (dot(d_o, v, n, bf16) - delta), bf16) * p->scale;
      double factor = operand(weight, bf16);
      for (int64_t c = 0; c < n; c++) {
        dv[j * n + c] += factor * operand(d_o[c], bf16);
        dk[j * n + c] += ds * operand(q[c], bf16);
        dq[c] += ds * operand(k[c], bf16);
      }
    }
    for (int64_t c = 0; c < n; c++)
      p->dq[row * p->dq_ld + head * n + c] = (float)dq[c];
  }
  for (int64_t j = 0; j < p->keys; j++) {
    int64_t row = attention_k_row(p, j);
    for (int64_t c = 0; c < n; c++) {
      p->dk[row * p->dk_ld + head * n + c] = (float)dk[j * n + c];
      p->dv[row * p->dv_ld + head * n + c] = (float)dv[j * n + c];
    }
  }
}

static void forward_f32(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch) {
  forward(p, head, q0, q1, scratch, 0);
}

static void forward_bf16(const struct msk_attention *p, int64_t head, int64_t q0, int64_t q1, void *scratch) {
  forward(p, head, q0, q1, scratch, 1);
}

static void backward_f32(const struct msk_attention *p, int64_t head, void *scratch) {
  backward(p, head, scratch, 0);
}

static void backward_bf16(const struct msk_attention *p, int64_t head, void *scratch) {
  backward(p, head, scratch, 1);
}

static size_t forward_scratch(const struct msk_attention *p) {
  return (size_t)(p->keys + p->head_dim) * sizeof(double);
}

static size_t backward_scratch(const struct msk_attention *p) {
  return (size_t)((2 * p->keys + 1) * p->head_dim) * sizeof(double);
}

/* The reference reads k and v where they are. */
static size_t pack_bytes(const struct msk_attention *p) {
  return 0;
}

static void pack(const struct msk_attention *p, int64_t head, void *packed_head) {
}

void msk_attention_init(struct msk_attention_ops *f32, struct msk_attention_ops *bf16, unsigned cpu_flags) {
  *f32 = (struct msk_attention_ops){.name = "c",
                                    .precision = MSK_PRECISION_F32,
                                    .q_step = 1,
                                    .pack_bytes = pack_bytes,
                                    .pack = pack,
                                    .forward_scratch = forward_scratch,
                                    .forward = forward_f32,
                                    .backward_scratch = backward_scratch,
                                    .backward = backward_f32};
  *bf16 = *f32;
  bf16->precision = MSK_PRECISION_BF16;
  bf16->forward = forward_bf16;
  bf16->backward = backward_bf16;
#if MSK_X86
  if (!(cpu_flags & MSK_CPU_AVX2))
    return;
  msk_attention_init_avx2(f32, bf16);
  if (!(cpu_flags & MSK_CPU_AVX512))
    return;
  msk_attention_init_avx512(f32, bf16);
  if (!(cpu_flags & MSK_CPU_AVX512BF16))
    return;
  msk_attention_init_avx512bf16(f32, bf16);
  if (!(cpu_flags & MSK_CPU_AMX))
    return;
  msk_attention_init_amx(f32, bf16);
#endif
}
