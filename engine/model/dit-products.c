/* Packs and products of the DiT: many small ones share one run over the pool, since a run costs some
 * microseconds. */
#include <assert.h>
#include <string.h>

#include "model/dit-private.h"

/* Elements of a pack that are worth a task. */
#define PACK_ELEMENTS 65536
/* Rows and columns of C in a task of products with long sums: a task reads its share of both operands from
 * far memory once. */
#define PRODUCT_SIDE 256

static int64_t round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

size_t ms_dit_pack_bytes(const struct ms_dit *dit, enum msk_precision precision, int64_t n, int64_t k) {
  return dit->compute->product[precision].pack_b_bytes(n, k);
}

size_t ms_dit_product_scratch(const struct ms_dit *dit, enum msk_precision precision, int64_t m, int64_t n,
                              int64_t k) {
  /* a float32 A that is stored transposed is what needs most */
  struct msk_product product = {.m = m, .n = n, .k = k, .a_ld = k, .c_ld = n};
  struct msk_product transposed = {.m = m, .n = n, .k = k, .a_ld = m, .c_ld = n, .a_transposed = 1};
  size_t one = dit->compute->product[precision].scratch_bytes(&product);
  size_t two = dit->compute->product[precision].scratch_bytes(&transposed);
  return one > two ? one : two;
}

struct run {
  struct ms_dit *dit;
  void *list;
  int count;
};

int64_t ms_dit_pack_step(const struct ms_dit *dit, enum msk_precision precision, int64_t n, int64_t k,
                         int merged) {
  int64_t pieces = (n * k + PACK_ELEMENTS - 1) / PACK_ELEMENTS,
          step = dit->compute->product[precision].n_step,
          exact = dit->compute->product[MSK_PRECISION_F32].n_step;
  /* a merged piece is a range of columns of a float32 product too; steps are powers of two */
  return round_up((n + pieces - 1) / pieces, merged && exact > step ? exact : step);
}

static void pack_task(void *data, int64_t task, void *scratch) {
  struct run *run = data;
  struct dit_pack *item = run->list;
  struct msk_pack pack;
  int low = 0, high = run->count - 1;
  int64_t n0, n1;
  while (low < high) { /* the last item that begins at this task or before */
    int middle = (low + high + 1) / 2;
    if (item[middle].first_task <= task)
      low = middle;
    else
      high = middle - 1;
  }
  item += low;
  n0 = (task - item->first_task) * item->step;
  n1 = n0 + item->step < item->pack.n ? n0 + item->step : item->pack.n;
  pack = item->matrix ? ms_dit_merge(run->dit, item, n0, n1, scratch) : item->pack;
  run->dit->compute->product[item->precision].pack_b(&pack, n0, n1, item->dst);
}

void ms_dit_pack_all(struct ms_dit *dit, struct dit_pack *list, int count) {
  struct run run = {dit, list, count};
  int64_t tasks = 0;
  for (int i = 0; i < count; i++) {
    struct dit_pack *item = &list[i];
    item->step = ms_dit_pack_step(dit, item->precision, item->pack.n, item->pack.k, item->matrix != NULL);
    item->first_task = tasks;
    tasks += (item->pack.n + item->step - 1) / item->step;
  }
  ms_pool_run(dit->compute->pool, pack_task, &run, tasks);
}

static void product_task(void *data, int64_t task, void *scratch) {
  struct run *run = data;
  struct dit_product *item = run->list;
  int64_t m0, m1, n0, n1, columns;
  int i = 0;
  while (i + 1 < run->count && item[i + 1].first_task <= task)
    i++;
  item += i;
  columns = (item->product.n + item->n_step - 1) / item->n_step;
  m0 = (task - item->first_task) / columns * item->m_step;
  n0 = (task - item->first_task) % columns * item->n_step;
  m1 = m0 + item->m_step;
  n1 = n0 + item->n_step;
  run->dit->compute->product[item->precision].run(&item->product, m0,
                                                  m1 < item->product.m ? m1 : item->product.m, n0,
                                                  n1 < item->product.n ? n1 : item->product.n, scratch);
}

/* Numbers the tasks of all items; returns how many. */
static int64_t split_products(struct ms_dit *dit, struct dit_product *list, int count, int64_t side) {
  int64_t tasks = 0;
  for (int i = 0; i < count; i++) {
    struct dit_product *item = &list[i];
    const struct msk_product_ops *ops = &dit->compute->product[item->precision];
    item->m_step = round_up(side, ops->m_step);
    item->n_step = round_up(PRODUCT_SIDE, ops->n_step);
    item->first_task = tasks;
    tasks += (item->product.m + item->m_step - 1) / item->m_step *
             ((item->product.n + item->n_step - 1) / item->n_step);
  }
  return tasks;
}

void ms_dit_product_all(struct ms_dit *dit, struct dit_product *list, int count) {
  struct run run = {dit, list, count};
  int64_t tasks = split_products(dit, list, count, PRODUCT_SIDE),
          threads = ms_pool_threads(dit->compute->pool);
  size_t scratch = 0;
  for (int64_t side = PRODUCT_SIDE / 2; side >= 32 && tasks < 4 * threads; side /= 2)
    tasks = split_products(dit, list, count, side);
  for (int i = 0; i < count; i++) {
    size_t bytes = dit->compute->product[list[i].precision].scratch_bytes(&list[i].product);
    if (bytes > scratch)
      scratch = bytes;
  }
  ms_pool_reserve(dit->compute->pool, scratch);
  ms_pool_run(dit->compute->pool, product_task, &run, tasks);
}

void ms_dit_linear(struct ms_dit *dit, const struct dit_linear *linear) {
  const struct dit_matrix *matrix = linear->matrix;
  struct msk_product product = {
      .m = linear->rows,
      .n = matrix->n,
      .k = matrix->k,
      .a = linear->x,
      .a_type = linear->x_type,
      .a_ld = matrix->k,
      .b = matrix->forward,
      .c = linear->y,
      .c_type = linear->y_type,
      .c_ld = matrix->n,
      .bias = matrix->bias_values,
      .pre = linear->raw,
      .pre_type = linear->raw_type,
      .pre_ld = matrix->n,
      .act = linear->act,
      .residual = linear->residual,
      .residual_ld = matrix->n,
  };
  ms_compute_product(dit->compute, matrix->precision, &product);
}

void ms_dit_add_bias_sums(struct ms_dit *dit, const struct dit_matrix *matrix, const float *sums, int64_t ld,
                          int64_t rows, float *grad) {
  int64_t n = matrix->n / matrix->parts;
  for (int i = 0; i < matrix->parts; i++)
    if (ms_dit_is_trained(dit, matrix->bias + i))
      dit->compute->norm.column_sum(sums + i * n, ld, n, rows,
                                    grad + dit->params.list[matrix->bias + i].offset);
}

void ms_dit_linear_backward(struct ms_dit *dit, const struct dit_matrix *matrix, const void *x,
                            enum msk_type x_type, const float *dy, int64_t rows, float *dx, int accumulate,
                            float *grad) {
  struct msk_pack pack = {
      .n = matrix->k, .k = rows, .src = x, .type = x_type, .ld = matrix->k, .transposed = 1};
  struct msk_product weight = {
      .m = matrix->n,
      .n = matrix->k,
      .k = rows,
      .a = dy,
      .a_ld = matrix->n,
      .a_transposed = 1,
      .b = dit->run.grads.packed,
      .c = grad + dit->params.list[matrix->weight].offset,
      .c_ld = matrix->k,
      .accumulate = 1,
  };
  if (ms_dit_is_trained(dit, matrix->weight)) {
    ms_compute_pack(dit->compute, matrix->precision, &pack, dit->run.grads.packed);
    ms_compute_product(dit->compute, matrix->precision, &weight);
  }
  ms_dit_add_bias_sums(dit, matrix, dy, matrix->n, rows, grad);
  if (dx) {
    struct msk_product input = {
        .m = rows,
        .n = matrix->k,
        .k = matrix->n,
        .a = dy,
        .a_ld = matrix->n,
        .b = matrix->backward,
        .c = dx,
        .c_ld = matrix->k,
        .accumulate = accumulate,
    };
    ms_compute_product(dit->compute, matrix->precision, &input);
  }
}
