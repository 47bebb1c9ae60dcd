/* Gradients of a layer's parameters, after its tasks have left what they are made of in buffers of all rows:
 * matrices and adapters in a few runs over the pool, vectors from the blocks' partial sums. With s the scale
 * of an adapter, dB += s dy^T (x A^T) and dA += s (dy B)^T x: the products that a whole matrix would need are
 * not made for one that is frozen. */
#include "model/dit-private.h"

#define MATRICES 8                         /* of a layer, at most */
#define ADAPTERS (MATRICES * MS_DIT_PARTS) /* of a layer, at most */
#define PRODUCTS (MATRICES + 2 * ADAPTERS)

struct weight { /* one matrix's gradient: dy [rows,n], x [rows,k] */
  const struct dit_matrix *matrix;
  const float *dy;
  const void *x;
  enum msk_type type;
  int64_t rows;
};

/* What is multiplied, where not only sizes are asked for. */
struct operands {
  const struct dit_acts *acts;
  const struct dit_grads *grads;
  const float *dx, *context;
};

static int is_wanted(const struct ms_dit *dit, const struct dit_matrix *matrix) {
  int wanted = matrix->adapters > 0;
  for (int i = 0; i < matrix->parts; i++)
    wanted |= ms_dit_is_trained(dit, matrix->weight + i);
  return wanted;
}

static int list_weights(const struct ms_dit *dit, const struct dit_run *run, int number,
                        const struct operands *o, struct weight *list) {
  const struct dit_layer *layer = &dit->layers[number];
  const struct dit_acts *acts = o->acts;
  const struct dit_grads *g = o->grads;
  int offsets = run->attention[number].kind == MS_ATTENTION_DSA, count = 0;
  enum msk_type low = ms_dit_low_type(dit);
  const struct weight all[MATRICES] = {
      {&layer->up, g->dhidden, acts->modulated2, low, run->rows},
      {&layer->down, g->dmlp, acts->hidden, low, run->rows},
      {&layer->qkv, g->dqkv, acts->u, offsets ? MSK_F32 : low, run->rows},
      {&layer->out, g->dprojected, acts->attended, MSK_F32, run->rows},
      {&layer->cross_q, g->dcross_q, acts->normed3, low, run->rows},
      {&layer->cross_out, o->dx, acts->crossed, MSK_F32, run->rows},
      {&layer->cross_kv, g->dkv, o->context, MSK_F32, run->text_rows},
      {&layer->offset_out, g->dz, acts->offset_low, low, run->rows},
  };
  for (int i = 0; i < MATRICES - !offsets; i++)
    if (is_wanted(dit, all[i].matrix))
      list[count++] = all[i];
  return count;
}

static size_t packed_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix, int64_t columns,
                           int64_t rows) {
  enum msk_precision precision = matrix->exact ? MSK_PRECISION_F32 : dit->precision;
  return (ms_dit_pack_bytes(dit, precision, columns, rows) + 63) / 64 * 64;
}

void ms_dit_gradient_room(const struct ms_dit *dit, const struct dit_run *run, size_t *packed,
                          int64_t *floats) {
  const struct operands none = {&run->acts, &run->grads, NULL, NULL};
  *packed = 0;
  *floats = 0;
  for (int l = 0; l < dit->config.layers; l++) {
    struct weight list[MATRICES];
    int count = list_weights(dit, run, l, &none, list);
    size_t bytes = 0;
    int64_t size = 0;
    for (int i = 0; i < count; i++) {
      const struct dit_matrix *m = list[i].matrix;
      bytes += packed_bytes(dit, m, m->k, list[i].rows);
      for (int part = 0; part < m->parts && m->adapters; part++) {
        bytes += packed_bytes(dit, m, dit->config.lora_rank, list[i].rows);
        size += 2 * list[i].rows * dit->config.lora_rank;
      }
    }
    *packed = bytes > *packed ? bytes : *packed;
    *floats = size > *floats ? size : *floats;
  }
}

/* The first products: of whole matrices, and of x and dy with the adapters. */
struct work {
  struct dit_pack packs[ADAPTERS];
  struct dit_product products[PRODUCTS];
  int pack_count, product_count;
  unsigned char *packed;
  float *floats;
};

static void add_product(struct work *w, const struct dit_matrix *matrix, struct msk_product product) {
  w->products[w->product_count++] = (struct dit_product){.precision = matrix->precision, .product = product};
}

/* Packs x [rows,columns] transposed; returns where. */
static const void *add_pack(const struct ms_dit *dit, struct work *w, const struct dit_matrix *matrix,
                            const void *x, enum msk_type type, int64_t columns, int64_t rows) {
  void *to = w->packed;
  w->packs[w->pack_count++] = (struct dit_pack){
      .precision = matrix->precision,
      .pack = {.n = columns, .k = rows, .src = x, .type = type, .ld = columns, .transposed = 1},
      .dst = to,
  };
  w->packed += packed_bytes(dit, matrix, columns, rows);
  return to;
}

/* s (x A^T) and s (dy B) of an adapter: the second behind the first. */
static void add_adapter(const struct ms_dit *dit, struct work *w, const struct weight *weight, int part) {
  const struct dit_matrix *m = weight->matrix;
  int64_t rank = dit->config.lora_rank, n = m->n / m->parts;
  struct msk_product down = {
      .m = weight->rows,
      .n = rank,
      .k = m->k,
      .a = weight->x,
      .a_type = weight->type,
      .a_ld = m->k,
      .b = m->adapter[part].down,
      .c = w->floats,
      .c_ld = rank,
      .gate = dit->lora_scales,
      .gate_rows = weight->rows,
  };
  struct msk_product up = down;
  up.k = n;
  up.a = weight->dy + part * n;
  up.a_type = MSK_F32;
  up.a_ld = m->n;
  up.b = m->adapter[part].up;
  up.c = w->floats + weight->rows * rank;
  add_product(w, m, down);
  add_product(w, m, up);
  w->floats += 2 * weight->rows * rank;
}

/* The second products: both gradients of an adapter. */
static void add_adapter_gradients(const struct ms_dit *dit, struct work *w, const struct weight *weight,
                                  int part, const void *x, float *grad) {
  const struct dit_matrix *m = weight->matrix;
  const struct ms_param *param = &dit->params.list[m->adapters + 2 * part];
  int64_t rank = dit->config.lora_rank, n = m->n / m->parts;
  struct msk_product a = {
      .m = rank,
      .n = m->k,
      .k = weight->rows,
      .a = w->floats + weight->rows * rank,
      .a_ld = rank,
      .a_transposed = 1,
      .b = x,
      .c = grad + param[0].offset,
      .c_ld = m->k,
      .accumulate = 1,
  };
  struct msk_product b = {
      .m = n,
      .n = rank,
      .k = weight->rows,
      .a = weight->dy + part * n,
      .a_ld = m->n,
      .a_transposed = 1,
      .b = add_pack(dit, w, m, w->floats, MSK_F32, rank, weight->rows),
      .c = grad + param[1].offset,
      .c_ld = rank,
      .accumulate = 1,
  };
  add_product(w, m, a);
  add_product(w, m, b);
  w->floats += 2 * weight->rows * rank;
}

static void weight_gradients(const struct dit_layer_run *run, float *grad) {
  struct ms_dit *dit = run->dit;
  const struct operands operands = {run->acts, run->grads, run->dx, run->text->context};
  struct weight list[MATRICES];
  const void *x[MATRICES];
  struct work w = {.packed = run->grads->packed, .floats = run->grads->adapters};
  int count = list_weights(dit, &dit->run, run->layer, &operands, list), adapters = 0;
  for (int i = 0; i < count; i++) {
    const struct dit_matrix *m = list[i].matrix;
    x[i] = add_pack(dit, &w, m, list[i].x, list[i].type, m->k, list[i].rows);
    if (ms_dit_is_trained(dit, m->weight))
      add_product(&w, m,
                  (struct msk_product){.m = m->n,
                                       .n = m->k,
                                       .k = list[i].rows,
                                       .a = list[i].dy,
                                       .a_ld = m->n,
                                       .a_transposed = 1,
                                       .b = x[i],
                                       .c = grad + dit->params.list[m->weight].offset,
                                       .c_ld = m->k,
                                       .accumulate = 1});
    for (int part = 0; part < m->parts && m->adapters; part++, adapters++)
      add_adapter(dit, &w, &list[i], part);
  }
  ms_dit_pack_all(dit, w.packs, w.pack_count);
  ms_dit_product_all(dit, w.products, w.product_count);
  if (!adapters)
    return;
  w.pack_count = w.product_count = 0;
  w.floats = run->grads->adapters;
  for (int i = 0; i < count; i++)
    for (int part = 0; part < list[i].matrix->parts && list[i].matrix->adapters; part++)
      add_adapter_gradients(dit, &w, &list[i], part, x[i], grad);
  ms_dit_pack_all(dit, w.packs, w.pack_count);
  ms_dit_product_all(dit, w.products, w.product_count);
}

static void add_vector(const struct dit_layer_run *run, float *grad, int param, int64_t at) {
  struct ms_dit *dit = run->dit;
  const struct ms_param *p = &dit->params.list[param];
  if (ms_dit_is_trained(dit, param))
    dit->compute->norm.column_sum(run->grads->block_sums + at, dit->sums.total, p->count,
                                  dit->run.blocks.blocks, grad + p->offset);
}

/* Adds the blocks' and segments' partial sums to the gradients, in order. */
static void sum_blocks(const struct dit_layer_run *run, float *grad) {
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  const struct dit_sums *s = &dit->sums;
  int64_t blocks = dit->run.blocks.blocks, width = 6 * (int64_t)dit->config.dim,
          each = dit->run.blocks.per_sample;
  const float *sums = run->grads->block_sums;
  ms_dit_add_bias_sums(dit, &layer->qkv, sums + s->qkv_bias, s->total, blocks, grad);
  ms_dit_add_bias_sums(dit, &layer->out, sums + s->out_bias, s->total, blocks, grad);
  ms_dit_add_bias_sums(dit, &layer->cross_q, sums + s->cross_q_bias, s->total, blocks, grad);
  ms_dit_add_bias_sums(dit, &layer->cross_out, sums + s->cross_out_bias, s->total, blocks, grad);
  ms_dit_add_bias_sums(dit, &layer->up, sums + s->up_bias, s->total, blocks, grad);
  ms_dit_add_bias_sums(dit, &layer->down, sums + s->down_bias, s->total, blocks, grad);
  add_vector(run, grad, layer->norm_q, s->norm_q);
  add_vector(run, grad, layer->norm_k, s->norm_k);
  add_vector(run, grad, layer->cross_norm_q, s->cross_norm_q);
  add_vector(run, grad, layer->norm3_weight, s->norm3_weight);
  add_vector(run, grad, layer->norm3_bias, s->norm3_bias);
  if (dit->run.attention[run->layer].kind == MS_ATTENTION_DSA) {
    ms_dit_add_bias_sums(dit, &layer->offset_out, sums + s->offset_bias, s->total, blocks, grad);
    add_vector(run, grad, layer->offset_norm_weight, s->offset_norm_weight);
    add_vector(run, grad, layer->offset_norm_bias, s->offset_norm_bias);
  }
  if (ms_dit_is_trained(dit, layer->modulation))
    dit->compute->norm.column_sum(run->grads->segment_sums, width, width, dit->run.blocks.segments,
                                  grad + dit->params.list[layer->modulation].offset);
  for (int64_t i = 0; i < dit->run.samples; i++)
    dit->compute->norm.column_sum(run->grads->segment_sums + i * each * width, width, width, each,
                                  run->grads->dtime + i * width);
}

void ms_dit_layer_gradients(const struct dit_layer_run *run, float *grad) {
  struct ms_dit *dit = run->dit;
  if (dit->run.attention[run->layer].kind == MS_ATTENTION_DSA &&
      ms_dit_is_trained(dit, dit->layers[run->layer].conv_weight))
    ms_dit_offset_conv_weights(dit, run->layer, run->acts, run->grads, grad);
  weight_gradients(run, grad);
  sum_blocks(run, grad);
}
