/* What computes: the kernel tables chosen for this processor and the thread pool. One per engine; nothing is
 * global.
 *
 * `precision` says what matrix products and attention multiply in. The helpers below split a kernel over the
 * pool. */
#pragma once
#include "base/pool.h"
#include "msk-adamw.h"
#include "msk-attention.h"
#include "msk-conv.h"
#include "msk-norm.h"
#include "msk-product.h"
#include "msk-slide.h"

struct ms_compute {
  unsigned cpu_flags;
  struct ms_pool *pool;              /* owned */
  struct msk_product_ops product[2]; /* by enum msk_precision */
  struct msk_attention_ops attention[2];
  struct msk_slide_ops slide[2];
  struct msk_norm_ops norm;
  struct msk_conv_ops conv;
  struct msk_adamw_ops adamw;
};

/* cpu_flags: what msk_cpu_detect said, or fewer (0: the C reference). threads 0: all allowed processors. */
int ms_compute_open(struct ms_compute *compute, int threads, unsigned cpu_flags, struct ms_error *error);
/* The same without threads, for code that asks for sizes and computes nothing. */
int ms_compute_open_counting(struct ms_compute *compute, int threads, unsigned cpu_flags,
                             struct ms_error *error);
void ms_compute_release(struct ms_compute *compute);

/* Packs B / runs a product over the pool. Scratch is reserved as needed. The same bits for any number of
 * threads. */
void ms_compute_pack(struct ms_compute *compute, enum msk_precision precision, const struct msk_pack *pack,
                     void *dst);
void ms_compute_product(struct ms_compute *compute, enum msk_precision precision,
                        const struct msk_product *product);

/* Runs fn (data, begin, end, scratch) over [0,n) in pieces of `step` (the last one shorter). */
typedef void (*ms_range_fn)(void *data, int64_t begin, int64_t end, void *scratch);
void ms_compute_ranges(struct ms_compute *compute, int64_t n, int64_t step, ms_range_fn fn, void *data);
