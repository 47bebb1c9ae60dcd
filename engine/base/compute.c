#include "base/compute.h"

#include <assert.h>
#include <string.h>

static void fill_tables(struct ms_compute *compute, unsigned cpu_flags) {
  memset(compute, 0, sizeof *compute);
  compute->cpu_flags = cpu_flags;
  msk_product_init(&compute->product[MSK_PRECISION_F32], &compute->product[MSK_PRECISION_BF16], cpu_flags);
  msk_attention_init(&compute->attention[MSK_PRECISION_F32], &compute->attention[MSK_PRECISION_BF16],
                     cpu_flags);
  msk_slide_init(&compute->slide[MSK_PRECISION_F32], &compute->slide[MSK_PRECISION_BF16], cpu_flags);
  msk_norm_init(&compute->norm, cpu_flags);
  msk_conv_init(&compute->conv, cpu_flags);
  msk_adamw_init(&compute->adamw, cpu_flags);
}

int ms_compute_open(struct ms_compute *compute, int threads, unsigned cpu_flags, struct ms_error *error) {
  fill_tables(compute, cpu_flags);
  return ms_pool_open(&compute->pool, threads, error);
}

int ms_compute_open_counting(struct ms_compute *compute, int threads, unsigned cpu_flags,
                             struct ms_error *error) {
  fill_tables(compute, cpu_flags);
  return ms_pool_open_counting(&compute->pool, threads, error);
}

void ms_compute_release(struct ms_compute *compute) {
  ms_pool_close(&compute->pool);
  memset(compute, 0, sizeof *compute);
}

struct range_run {
  int64_t n, step;
  ms_range_fn fn;
  void *data;
};

static void range_task(void *data, int64_t task, void *scratch) {
  struct range_run *run = data;
  int64_t begin = task * run->step, end = begin + run->step;
  run->fn(run->data, begin, end < run->n ? end : run->n, scratch);
}

void ms_compute_ranges(struct ms_compute *compute, int64_t n, int64_t step, ms_range_fn fn, void *data) {
  struct range_run run = {n, step, fn, data};
  assert(step > 0);
  ms_pool_run(compute->pool, range_task, &run, (n + step - 1) / step);
}

struct pack_run {
  const struct msk_product_ops *ops;
  const struct msk_pack *pack;
  void *dst;
};

static void pack_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct pack_run *run = data;
  run->ops->pack_b(run->pack, begin, end, run->dst);
}

static int64_t round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

void ms_compute_pack(struct ms_compute *compute, enum msk_precision precision, const struct msk_pack *pack,
                     void *dst) {
  struct pack_run run = {&compute->product[precision], pack, dst};
  int64_t pieces = 4 * ms_pool_threads(compute->pool);
  /* below about 32 thousand elements a second thread costs more than it saves */
  int64_t step = pack->n * pack->k < 32768 ? pack->n : (pack->n + pieces - 1) / pieces;
  ms_compute_ranges(compute, pack->n, round_up(step, run.ops->n_step), pack_range, &run);
}

struct product_run {
  const struct msk_product_ops *ops;
  const struct msk_product *product;
  int64_t m_step, n_step, n_pieces;
};

static void product_task(void *data, int64_t task, void *scratch) {
  struct product_run *run = data;
  int64_t m0 = task / run->n_pieces * run->m_step, n0 = task % run->n_pieces * run->n_step;
  int64_t m1 = m0 + run->m_step, n1 = n0 + run->n_step;
  run->ops->run(run->product, m0, m1 < run->product->m ? m1 : run->product->m, n0,
                n1 < run->product->n ? n1 : run->product->n, scratch);
}

/* Pieces of a product: enough for the pool to balance, large enough that packing A is paid back. */
#define PRODUCT_ROWS 256

void ms_compute_product(struct ms_compute *compute, enum msk_precision precision,
                        const struct msk_product *product) {
  struct product_run run = {&compute->product[precision], product, 0, 0, 1};
  int64_t threads = ms_pool_threads(compute->pool), pieces;
  /* as many for each thread */
  pieces = round_up((product->m + PRODUCT_ROWS - 1) / PRODUCT_ROWS, threads);
  run.m_step = round_up((product->m + pieces - 1) / pieces, run.ops->m_step);
  pieces = (product->m + run.m_step - 1) / run.m_step;
  run.n_step = round_up(product->n, run.ops->n_step);
  if (pieces < threads) { /* few rows: split columns instead */
    run.n_step = round_up((product->n + threads - 1) / threads, run.ops->n_step);
    run.n_pieces = (product->n + run.n_step - 1) / run.n_step;
  }
  if (product->m * product->n * product->k < 65536) { /* too small to share */
    run.m_step = round_up(product->m, run.ops->m_step);
    run.n_step = round_up(product->n, run.ops->n_step);
    run.n_pieces = 1;
    pieces = 1;
  }
  ms_pool_reserve(compute->pool, run.ops->scratch_bytes(product));
  ms_pool_run(compute->pool, product_task, &run, pieces * run.n_pieces);
}
