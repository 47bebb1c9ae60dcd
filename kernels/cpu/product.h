/* What the implementations of the product family share: who implements it, and how one element of A and B is
 * found.
 *
 * Each msk_product_init_<set> overwrites the slots that this set does better than the sets below it. */
#pragma once
#include "msk-product.h"

void msk_product_init_avx2(struct msk_product_ops *f32, struct msk_product_ops *bf16);
void msk_product_init_avx512(struct msk_product_ops *f32, struct msk_product_ops *bf16);
void msk_product_init_avx512bf16(struct msk_product_ops *bf16);
void msk_product_init_amx(struct msk_product_ops *bf16);

static inline float msk_product_load(const void *x, enum msk_type type, int64_t i) {
  return type == MSK_F32 ? ((const float *)x)[i] : msk_bf16_to_f32(((const uint16_t *)x)[i]);
}

/* Where element (i, l) of A lies in a. */
static inline int64_t msk_product_a_at(const struct msk_product *p, int64_t i, int64_t l) {
  if (p->a_transposed)
    return l * p->a_ld + i;
  if (p->taps > 1) {
    int64_t k_tap = p->k / p->taps;
    return (i + p->tap_rows[l / k_tap]) * p->a_ld + l % k_tap;
  }
  return i * p->a_ld + l;
}

/* Where element (j, l) of B lies in src. */
static inline int64_t msk_product_b_at(const struct msk_pack *p, int64_t j, int64_t l) {
  if (!p->transposed)
    return j * p->ld + l;
  if (p->taps > 1) {
    int64_t n_tap = p->n / p->taps;
    return (l + p->tap_rows[j / n_tap]) * p->ld + j % n_tap;
  }
  return l * p->ld + j;
}
