#include "model/text-net.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of one task of a norm, and of one partial sum of its backward pass. */
#define NORM_ROWS 128

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static int reserve(void **memory, size_t bytes, struct ms_error *error) {
  if (*memory)
    return 0;
  *memory = aligned_alloc(64, (bytes + 63) / 64 * 64);
  return *memory ? 0 : ms_error_set(error, MS_ENOMEM, "out of memory while preparing the text encoder");
}

int ms_text_linear_pack(struct ms_text *text, struct ms_text_linear *linear, int training,
                        struct ms_error *error) {
  const struct msk_product_ops *ops = &text->compute->product[text->precision];
  struct msk_pack pack = {.n = linear->out,
                          .k = linear->in,
                          .src = ms_params_at(&text->params, linear->weight),
                          .type = text->params.type,
                          .ld = linear->in};
  struct msk_pack back = {.n = linear->in,
                          .k = linear->out,
                          .src = pack.src,
                          .type = pack.type,
                          .ld = linear->in,
                          .transposed = 1};
  int result;
  if (linear->bias >= 0) {
    if ((result = reserve((void **)&linear->offsets, (size_t)linear->out * sizeof(float), error)) < 0)
      return result;
    ms_params_read_f32(&text->params, linear->bias, linear->offsets);
  }
  if ((result = reserve(&linear->forward, ops->pack_b_bytes(pack.n, pack.k), error)) < 0)
    return result;
  ms_compute_pack(text->compute, text->precision, &pack, linear->forward);
  if (training) {
    if ((result = reserve(&linear->backward, ops->pack_b_bytes(back.n, back.k), error)) < 0)
      return result;
    ms_compute_pack(text->compute, text->precision, &back, linear->backward);
  }
  return 0;
}

static void take_layer(const struct ms_text *text, struct ms_text_buffers *b,
                       struct ms_text_layer_buffers *layer) {
  struct ms_arena *arena = &b->arena;
  int64_t rows = b->rows, dim = text->dim;
  size_t size = msk_type_size(text->type);
  layer->n1 = ms_arena_take(arena, (size_t)(rows * dim) * size);
  layer->n2 = b->keep ? ms_arena_take(arena, (size_t)(rows * dim) * size) : layer->n1;
  layer->stats = ms_arena_take_f32(arena, 4 * rows);
  layer->qkv = ms_arena_take_f32(arena, rows * 3 * dim);
  layer->lse = ms_arena_take_f32(arena, rows * text->heads);
  layer->attended = ms_arena_take_f32(arena, rows * dim);
  layer->pre = b->keep ? ms_arena_take_f32(arena, rows * text->ffn) : NULL;
  layer->act = ms_arena_take(arena, (size_t)(rows * text->ffn) * size);
}

static void take(const struct ms_text *text, struct ms_text_buffers *b) {
  struct ms_arena *arena = &b->arena;
  int64_t rows = b->rows, dim = text->dim, wide = larger(3 * dim, text->ffn), classes = 1;
  b->starts = ms_arena_take(arena, (size_t)(b->captions + 1) * sizeof *b->starts);
  b->tokens = ms_arena_take(arena, (size_t)rows * sizeof *b->tokens);
  b->places = ms_arena_take(arena, (size_t)rows * sizeof *b->places);
  b->x = ms_arena_take_f32(arena, rows * dim);
  if (!b->keep) {
    take_layer(text, b, &b->layers[0]);
    b->layers[0].x = b->layers[0].middle = b->x;
    for (int i = 1; i < text->layer_count; i++)
      b->layers[i] = b->layers[0];
    return;
  }
  for (int i = 0; i < text->layer_count; i++) {
    take_layer(text, b, &b->layers[i]);
    b->layers[i].x = ms_arena_take_f32(arena, rows * dim);
    b->layers[i].middle = ms_arena_take_f32(arena, rows * dim);
  }
  for (int i = 0; i < text->labels; i++)
    classes += text->classify[i].out;
  b->out_stats = ms_arena_take_f32(arena, 2 * rows);
  b->g = ms_arena_take_f32(arena, rows * dim);
  b->t = ms_arena_take_f32(arena, rows * dim);
  b->wide = ms_arena_take_f32(arena, rows * wide);
  b->states = ms_arena_take_f32(arena, b->captions * dim);
  b->out = ms_arena_take_f32(arena, b->captions * dim);
  b->dstates = ms_arena_take_f32(arena, b->captions * dim);
  b->logits = ms_arena_take_f32(arena, b->captions * classes);
  b->read = ms_arena_take(arena, (size_t)(rows * larger(wide, classes)) * sizeof(uint16_t));
  b->packed = ms_arena_take(
      arena, text->compute->product[text->precision].pack_b_bytes(larger(dim, text->ffn), rows));
}

int ms_text_buffers_open(struct ms_text_buffers **out, const struct ms_text *text, int64_t rows,
                         int64_t captions, int keep, struct ms_error *error) {
  struct ms_text_buffers *b = *out;
  size_t size;
  int result;
  if (b && b->rows >= rows && b->captions >= captions && b->labels == text->labels)
    return 0;
  ms_text_buffers_close(out);
  b = calloc(1, sizeof *b);
  if (!b || !(b->layers = calloc((size_t)text->layer_count, sizeof *b->layers))) {
    free(b);
    return ms_error_set(error, MS_ENOMEM, "out of memory in the text encoder");
  }
  b->rows = rows;
  b->captions = captions;
  b->labels = text->labels;
  b->keep = keep;
  take(text, b);
  size = b->arena.peak;
  memset(&b->arena, 0, sizeof b->arena);
  if ((result = ms_arena_open(&b->arena, size, error)) < 0) {
    free(b->layers);
    free(b);
    return result;
  }
  take(text, b);
  *out = b;
  return 0;
}

void ms_text_buffers_close(struct ms_text_buffers **pointer) {
  struct ms_text_buffers *b = *pointer;
  if (!b)
    return;
  ms_arena_release(&b->arena);
  ms_conv_work_release(&b->work);
  free(b->layers);
  free(b);
  *pointer = NULL;
}

struct rows_run {
  const struct ms_text *text;
  struct ms_text_buffers *b;
  const struct ms_text_layer_buffers *layer;
  struct msk_layer_norm norm;
  float *sums;
};

static void embed_rows(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct rows_run *run = data;
  const struct ms_params *params = &run->text->params;
  int64_t dim = run->text->dim;
  float *x = run->layer->x;
  for (int64_t row = begin; row < end; row++)
    for (int64_t i = 0; i < dim; i++) {
      int64_t word = run->b->tokens[row] * dim + i, place = run->b->places[row] * dim + i;
      const void *words = ms_params_at(params, run->text->embedding),
                 *places = ms_params_at(params, run->text->position);
      if (params->type == MSK_F32)
        x[row * dim + i] = ((const float *)words)[word] + ((const float *)places)[place];
      else
        x[row * dim + i] = msk_bf16_to_f32(((const uint16_t *)words)[word]) +
                           msk_bf16_to_f32(((const uint16_t *)places)[place]);
    }
}

static void norm_rows(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct rows_run *run = data;
  run->text->compute->norm.layer_norm(&run->norm, begin, end);
}

static void norm_run(const struct ms_text *text, const struct ms_text_norm *norm, const float *x,
                     int64_t rows, void *y, enum msk_type y_type, float *stats, int64_t stats_ld) {
  struct rows_run run = {.text = text};
  run.norm = (struct msk_layer_norm){
      .c = text->dim,
      .eps = MS_TEXT_EPS,
      .x = x,
      .x_ld = text->dim,
      .scale = norm->factors,
      .shift = norm->offsets,
      .mod_ld = text->dim,
      .mod_rows = rows,
      .y = y,
      .y_type = y_type,
      .y_ld = text->dim,
      .mean = stats,
      .rstd = stats ? stats + stats_ld : NULL,
  };
  ms_compute_ranges(text->compute, rows, NORM_ROWS, norm_rows, &run);
}

void ms_text_final_norm(const struct ms_text *text, const float *x, int64_t rows, float *y, float *stats) {
  norm_run(text, &text->norm, x, rows, y, MSK_F32, stats, rows);
}

void ms_text_linear_run(const struct ms_text *text, const struct ms_text_linear *linear, int64_t rows,
                        const void *x, enum msk_type x_type, const float *residual, float *y, float *pre,
                        void *act) {
  struct msk_product product = {
      .m = rows,
      .n = linear->out,
      .k = linear->in,
      .a = x,
      .a_type = x_type,
      .a_ld = linear->in,
      .b = linear->forward,
      .c = act ? act : y,
      .c_type = act ? text->type : MSK_F32,
      .c_ld = linear->out,
      .bias = linear->offsets,
      .pre = pre,
      .pre_type = MSK_F32,
      .pre_ld = linear->out,
      .act = act ? MSK_ACT_GELU_TANH : MSK_ACT_NONE,
      .residual = residual,
      .residual_ld = linear->out,
  };
  ms_compute_product(text->compute, text->precision, &product);
}

/* Attention of one caption; all heads. */
static struct msk_attention attention_of(const struct rows_run *run, int64_t caption) {
  const struct ms_text *text = run->text;
  int64_t start = run->b->starts[caption], n = run->b->starts[caption + 1] - start, dim = text->dim;
  float *qkv = run->layer->qkv + start * 3 * dim;
  return (struct msk_attention){
      .queries = n,
      .keys = n,
      .heads = text->heads,
      .head_dim = dim / text->heads,
      .scale = 1 / sqrtf((float)(dim / text->heads)),
      .q = qkv,
      .k = qkv + dim,
      .v = qkv + 2 * dim,
      .q_ld = 3 * dim,
      .k_ld = 3 * dim,
      .v_ld = 3 * dim,
      .o = run->layer->attended + start * dim,
      .o_ld = dim,
      .lse = run->layer->lse + start * text->heads,
  };
}

static void attend(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct rows_run *run = data;
  const struct msk_attention_ops *ops = &run->text->compute->attention[run->text->precision];
  for (int64_t caption = begin; caption < end; caption++) {
    struct msk_attention attention = attention_of(run, caption);
    size_t head_bytes = ops->pack_bytes(&attention);
    attention.packed = scratch;
    for (int64_t head = 0; head < attention.heads; head++) {
      ops->pack(&attention, head, (unsigned char *)scratch + head_bytes * (size_t)head);
      ops->forward(&attention, head, 0, attention.queries,
                   (unsigned char *)scratch + (head_bytes * (size_t)attention.heads + 63) / 64 * 64);
    }
  }
}

static void attend_back(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct rows_run *run = data;
  const struct msk_attention_ops *ops = &run->text->compute->attention[run->text->precision];
  for (int64_t caption = begin; caption < end; caption++) {
    struct msk_attention attention = attention_of(run, caption);
    int64_t start = run->b->starts[caption], dim = run->text->dim;
    float *dqkv = run->b->wide + start * 3 * dim;
    attention.d_o = run->b->t + start * dim;
    attention.d_o_ld = dim;
    attention.dq = dqkv;
    attention.dk = dqkv + dim;
    attention.dv = dqkv + 2 * dim;
    attention.dq_ld = attention.dk_ld = attention.dv_ld = 3 * dim;
    for (int64_t head = 0; head < attention.heads; head++)
      ops->backward(&attention, head, scratch);
  }
}

/* Scratch for the longest caption. */
static void reserve_attention(const struct rows_run *run, int64_t captions, int backward) {
  const struct msk_attention_ops *ops = &run->text->compute->attention[run->text->precision];
  size_t most = 0;
  for (int64_t caption = 0; caption < captions; caption++) {
    struct msk_attention attention = attention_of(run, caption);
    size_t bytes = backward ? ops->backward_scratch(&attention)
                            : ops->pack_bytes(&attention) * (size_t)attention.heads + 64 +
                                  ops->forward_scratch(&attention);
    most = bytes > most ? bytes : most;
  }
  ms_pool_reserve(run->text->compute->pool, most);
}

void ms_text_forward(const struct ms_text *text, struct ms_text_buffers *b, int64_t captions) {
  struct rows_run run = {.text = text, .b = b, .layer = b->layers};
  int64_t rows = b->starts[captions];
  ms_compute_ranges(text->compute, rows, NORM_ROWS, embed_rows, &run);
  for (int i = 0; i < text->layer_count; i++) {
    const struct ms_text_layer *layer = &text->layers[i];
    struct ms_text_layer_buffers *at = &b->layers[i];
    float *next = i + 1 < text->layer_count ? b->layers[i + 1].x : b->x;
    run.layer = at;
    norm_run(text, &layer->norm1, at->x, rows, at->n1, text->type, at->stats, rows);
    ms_text_linear_run(text, &layer->qkv, rows, at->n1, text->type, NULL, at->qkv, NULL, NULL);
    reserve_attention(&run, captions, 0);
    ms_compute_ranges(text->compute, captions, 1, attend, &run);
    ms_text_linear_run(text, &layer->o, rows, at->attended, MSK_F32, at->x, at->middle, NULL, NULL);
    norm_run(text, &layer->norm2, at->middle, rows, at->n2, text->type, at->stats + 2 * rows, rows);
    ms_text_linear_run(text, &layer->fc1, rows, at->n2, text->type, NULL, NULL, at->pre, at->act);
    ms_text_linear_run(text, &layer->fc2, rows, at->act, text->type, at->middle, next, NULL, NULL);
  }
}

int ms_text_linear_back(const struct ms_text *text, const struct ms_text_linear *linear,
                        struct ms_text_buffers *b, int64_t rows, const void *x, enum msk_type x_type,
                        const float *dy, float *dx, float *grad, struct ms_error *error) {
  struct msk_pack pack = {
      .n = linear->in, .k = rows, .src = x, .type = x_type, .ld = linear->in, .transposed = 1};
  struct msk_product product = {
      .m = linear->out,
      .n = linear->in,
      .k = rows,
      .a = text->type == MSK_BF16 ? b->read : dy,
      .a_type = text->type,
      .a_ld = linear->out,
      .a_transposed = 1,
      .b = b->packed,
      .c = grad + text->params.list[linear->weight].offset,
      .c_type = MSK_F32,
      .c_ld = linear->in,
      .accumulate = 1,
  };
  struct msk_product back = {
      .m = rows,
      .n = linear->in,
      .k = linear->out,
      .a = product.a,
      .a_type = text->type,
      .a_ld = linear->out,
      .b = linear->backward,
      .c = dx,
      .c_type = MSK_F32,
      .c_ld = linear->in,
  };
  int result = ms_conv_column_sums(
      text->compute, dy, linear->out, rows, text->type == MSK_BF16 ? b->read : NULL,
      linear->bias < 0 ? NULL : grad + text->params.list[linear->bias].offset, &b->work, error);
  if (result < 0)
    return result;
  ms_compute_pack(text->compute, text->precision, &pack, b->packed);
  ms_compute_product(text->compute, text->precision, &product);
  if (dx)
    ms_compute_product(text->compute, text->precision, &back);
  return 0;
}

static void norm_back_rows(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct rows_run *run = data;
  float *sums = run->sums + begin / NORM_ROWS * 2 * run->norm.c;
  memset(sums, 0, (size_t)(2 * run->norm.c) * sizeof(float));
  run->text->compute->norm.layer_norm_backward(&run->norm, begin, end, sums, sums + run->norm.c);
}

int ms_text_norm_back(const struct ms_text *text, const struct ms_text_norm *norm, struct ms_text_buffers *b,
                      int64_t rows, const float *x, const float *stats, const float *dy, float *dx,
                      int accumulate, float *grad, struct ms_error *error) {
  struct rows_run run = {.text = text};
  int64_t dim = text->dim, blocks = (rows + NORM_ROWS - 1) / NORM_ROWS;
  int result = ms_conv_work_sums(&b->work, (size_t)(blocks * 2 * dim), error);
  if (result < 0)
    return result;
  run.sums = b->work.sums;
  run.norm = (struct msk_layer_norm){
      .c = dim,
      .eps = MS_TEXT_EPS,
      .x = x,
      .x_ld = dim,
      .scale = norm->factors,
      .shift = norm->offsets,
      .mod_ld = dim,
      .mod_rows = rows,
      .mean = (float *)stats,
      .rstd = (float *)stats + rows,
      .dy = dy,
      .dy_ld = dim,
      .dx = dx,
      .dx_ld = dim,
      .accumulate = accumulate,
  };
  ms_compute_ranges(text->compute, rows, NORM_ROWS, norm_back_rows, &run);
  for (int64_t block = 0; block < blocks; block++)
    for (int64_t i = 0; i < dim; i++) {
      grad[text->params.list[norm->weight].offset + i] += run.sums[block * 2 * dim + i];
      grad[text->params.list[norm->bias].offset + i] += run.sums[block * 2 * dim + dim + i];
    }
  return 0;
}

static void gelu_back(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct rows_run *run = data;
  run->text->compute->norm.gelu_backward(run->layer->pre + begin, MSK_F32, run->b->wide + begin,
                                         run->b->wide + begin, end - begin);
}

int ms_text_backward(const struct ms_text *text, struct ms_text_buffers *b, int64_t captions, float *grad,
                     struct ms_error *error) {
  struct rows_run run = {.text = text, .b = b};
  int64_t rows = b->starts[captions], dim = text->dim;
  float *words = grad + text->params.list[text->embedding].offset,
        *places = grad + text->params.list[text->position].offset;
  for (int i = text->layer_count - 1; i >= 0; i--) {
    const struct ms_text_layer *layer = &text->layers[i];
    const struct ms_text_layer_buffers *at = &b->layers[i];
    int result;
    run.layer = at;
    if ((result = ms_text_linear_back(text, &layer->fc2, b, rows, at->act, text->type, b->g, b->wide, grad,
                                      error)) < 0)
      return result;
    ms_compute_ranges(text->compute, rows * text->ffn, 16384, gelu_back, &run);
    if ((result = ms_text_linear_back(text, &layer->fc1, b, rows, at->n2, text->type, b->wide, b->t, grad,
                                      error)) < 0 ||
        (result = ms_text_norm_back(text, &layer->norm2, b, rows, at->middle, at->stats + 2 * rows, b->t,
                                    b->g, 1, grad, error)) < 0 ||
        (result = ms_text_linear_back(text, &layer->o, b, rows, at->attended, MSK_F32, b->g, b->t, grad,
                                      error)) < 0)
      return result;
    reserve_attention(&run, captions, 1);
    ms_compute_ranges(text->compute, captions, 1, attend_back, &run);
    if ((result = ms_text_linear_back(text, &layer->qkv, b, rows, at->n1, text->type, b->wide, b->t, grad,
                                      error)) < 0 ||
        (result = ms_text_norm_back(text, &layer->norm1, b, rows, at->x, at->stats, b->t, b->g, 1, grad,
                                    error)) < 0)
      return result;
  }
  for (int64_t row = 0; row < rows; row++) /* in order of rows: words repeat */
    for (int64_t i = 0; i < dim; i++) {
      words[b->tokens[row] * dim + i] += b->g[row * dim + i];
      places[b->places[row] * dim + i] += b->g[row * dim + i];
    }
  return 0;
}
