/* Private to the attention family: what its files share. */
#pragma once
#include <string.h>
#include "msk-attention.h"

/* Each sets the slots that its instruction set serves better than the step before. */
void msk_attention_init_avx2(struct msk_attention_ops *f32, struct msk_attention_ops *bf16);
void msk_attention_init_avx512(struct msk_attention_ops *f32, struct msk_attention_ops *bf16);
void msk_attention_init_avx512bf16(struct msk_attention_ops *f32, struct msk_attention_ops *bf16);
void msk_attention_init_amx(struct msk_attention_ops *f32, struct msk_attention_ops *bf16);

static inline int64_t attention_q_row(const struct msk_attention *p, int64_t i) {
  return p->q_rows ? p->q_rows[i] : i;
}

static inline int64_t attention_k_row(const struct msk_attention *p, int64_t j) {
  return p->k_rows ? p->k_rows[j] : j;
}

static inline int64_t attention_round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}
