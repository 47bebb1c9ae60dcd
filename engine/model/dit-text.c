/* The text: padded to text_len rows, embedded once, then keys and values of every layer's cross-attention. In
 * sampling they are kept under the caller's number, since text and weights stay the same for all steps. */
#include <stdlib.h>
#include <string.h>

#include "model/dit-private.h"

void ms_dit_text_init(struct dit_text *text) {
  memset(text, 0, sizeof *text);
  text->slot = -1;
}

void ms_dit_text_release(struct dit_text *text) {
  ms_arena_release(&text->arena);
  ms_dit_text_init(text);
}

void ms_dit_forget_text(struct ms_dit *dit) {
  for (int i = 0; i < dit->slot_count; i++)
    ms_dit_text_release(&dit->slots[i]);
}

struct msk_attention ms_dit_cross(const struct ms_dit *dit, const struct dit_text *text, int layer,
                                  int sample) {
  const struct ms_dit_config *c = &dit->config;
  int64_t rows = (int64_t)text->samples * c->text_len, row = (int64_t)sample * c->text_len,
          head_dim = c->dim / c->heads;
  struct msk_attention p = {
      .keys = c->text_len,
      .heads = c->heads,
      .head_dim = head_dim,
      .scale = dit->attention_scale,
      .k_ld = text->k_ld,
      .v_ld = 2 * (int64_t)c->dim,
      .q_ld = c->dim,
      .o_ld = c->dim,
  };
  if (text->kv) {
    p.k = text->k + layer * text->k_stride + row * text->k_ld;
    p.v = text->kv + (layer * rows + row) * 2 * c->dim + c->dim;
    p.packed = text->packed +
               (size_t)((int64_t)layer * text->samples + sample) * (size_t)c->heads * text->packed_bytes;
  }
  return p;
}

void ms_dit_text_layout(const struct ms_dit *dit, struct dit_text *text, struct ms_arena *arena) {
  const struct ms_dit_config *c = &dit->config;
  int64_t rows = (int64_t)text->samples * c->text_len, dim = c->dim;
  struct msk_attention shape;
  text->kv = NULL;
  text->k_ld = text->training ? dim : 2 * dim;
  shape = ms_dit_cross(dit, text, 0, 0);
  text->padded = ms_arena_take_f32(arena, rows * c->text_dim);
  text->hidden_raw = ms_arena_take_f32(arena, rows * dim);
  text->hidden = ms_arena_take_f32(arena, rows * dim);
  text->context = ms_arena_take_f32(arena, rows * dim);
  text->rstd = ms_arena_take_f32(arena, c->layers * rows);
  text->kv = ms_arena_take_f32(arena, c->layers * rows * 2 * dim);
  text->k = text->training ? ms_arena_take_f32(arena, c->layers * rows * dim) : text->kv;
  text->k_stride = rows * text->k_ld;
  text->packed_bytes = dit->compute->attention[dit->precision].pack_bytes(&shape);
  text->packed =
      ms_arena_take(arena, (size_t)c->layers * (size_t)text->samples * (size_t)c->heads * text->packed_bytes);
}

struct text_run {
  struct ms_dit *dit;
  struct dit_text *text;
  int64_t rows, per_layer; /* tasks of a layer */
  float *grad;
};

static struct msk_rms_rope key_norm(const struct ms_dit *dit, const struct dit_text *text, int64_t layer) {
  int64_t rows = (int64_t)text->samples * dit->config.text_len;
  return (struct msk_rms_rope){
      .c = dit->config.dim,
      .heads = dit->config.heads,
      .eps = dit->config.eps,
      .x = text->kv + layer * rows * 2 * dit->config.dim,
      .x_ld = 2 * (int64_t)dit->config.dim,
      .weight = dit->vectors[dit->layers[layer].cross_norm_k],
      .y = text->k + layer * text->k_stride,
      .y_ld = text->k_ld,
      .rstd = text->rstd + layer * rows,
  };
}

static void keys_task(void *data, int64_t task, void *memory) {
  struct text_run *run = data;
  struct ms_dit *dit = run->dit;
  int64_t layer = task / run->per_layer, r0 = task % run->per_layer * MS_DIT_TEXT_ROWS, dim = dit->config.dim;
  int64_t r1 = r0 + MS_DIT_TEXT_ROWS < run->rows ? r0 + MS_DIT_TEXT_ROWS : run->rows;
  const struct dit_matrix *matrix = &dit->layers[layer].cross_kv;
  struct msk_rms_rope norm = key_norm(dit, run->text, layer);
  struct msk_product p = {
      .m = r1 - r0,
      .n = matrix->n,
      .k = matrix->k,
      .a = run->text->context + r0 * dim,
      .a_ld = dim,
      .b = matrix->forward,
      .c = run->text->kv + (layer * run->rows + r0) * 2 * dim,
      .c_ld = 2 * dim,
      .bias = matrix->bias_values,
  };
  dit->compute->product[matrix->precision].run(&p, 0, p.m, 0, p.n, memory);
  dit->compute->norm.rms_rope(&norm, r0, r1);
}

static void pack_task(void *data, int64_t task, void *memory) {
  struct text_run *run = data;
  struct ms_dit *dit = run->dit;
  int64_t heads = dit->config.heads;
  int layer = (int)(task / heads / run->text->samples), sample = (int)(task / heads % run->text->samples);
  struct msk_attention p = ms_dit_cross(dit, run->text, layer, sample);
  dit->compute->attention[dit->precision].pack(&p, task % heads,
                                               run->text->packed + (size_t)task * run->text->packed_bytes);
}

static void embed_text(struct ms_dit *dit, const struct ms_dit_batch *batch, struct dit_text *text) {
  const struct ms_dit_config *c = &dit->config;
  int64_t rows = (int64_t)text->samples * c->text_len, size = (int64_t)c->text_len * c->text_dim;
  enum msk_type low = ms_dit_low_type(dit);
  struct text_run run = {dit, text, rows, (rows + MS_DIT_TEXT_ROWS - 1) / MS_DIT_TEXT_ROWS};
  struct dit_linear first = {.matrix = &dit->text0,
                             .x = text->padded,
                             .rows = rows,
                             .y = text->hidden,
                             .y_type = low,
                             .act = MSK_ACT_GELU_TANH,
                             .raw = text->hidden_raw,
                             .raw_type = low};
  struct dit_linear second = {
      .matrix = &dit->text2, .x = text->hidden, .x_type = low, .rows = rows, .y = text->context};
  memset(text->padded, 0, (size_t)(rows * c->text_dim) * sizeof(float));
  for (int s = 0; s < text->samples; s++)
    memcpy(text->padded + s * size, batch->text[s],
           (size_t)batch->text_rows[s] * (size_t)c->text_dim * sizeof(float));
  ms_dit_linear(dit, &first);
  ms_dit_linear(dit, &second);
  ms_pool_reserve(dit->compute->pool,
                  ms_dit_product_scratch(dit, dit->precision, MS_DIT_TEXT_ROWS, 2 * c->dim, c->dim));
  ms_pool_run(dit->compute->pool, keys_task, &run, c->layers * run.per_layer);
  ms_pool_run(dit->compute->pool, pack_task, &run, (int64_t)c->layers * text->samples * c->heads);
}

static struct dit_text *slot_of(struct ms_dit *dit, int slot) {
  struct dit_text *slots;
  if (slot <= 0)
    return &dit->text;
  if (slot <= dit->slot_count)
    return &dit->slots[slot - 1];
  slots = realloc(dit->slots, (size_t)slot * sizeof *slots);
  if (!slots)
    return NULL;
  dit->slots = slots;
  for (; dit->slot_count < slot; dit->slot_count++)
    ms_dit_text_init(&dit->slots[dit->slot_count]);
  return &slots[slot - 1];
}

int ms_dit_text_encode(struct ms_dit *dit, const struct ms_dit_batch *batch, struct dit_text **out,
                       struct ms_error *error) {
  int slot = dit->run.keep ? 0 : batch->text_slot, code;
  struct dit_text *text = slot_of(dit, slot);
  struct ms_arena measure = {0};
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory for texts");
  *out = text;
  if (slot > 0 && text->slot == slot && text->samples == batch->samples)
    return 0;
  text->slot = -1;
  text->samples = batch->samples;
  text->training = dit->run.keep;
  ms_dit_text_layout(dit, text, &measure);
  if (measure.peak > text->arena.size) {
    ms_arena_release(&text->arena);
    if ((code = ms_arena_open(&text->arena, measure.peak, error)) < 0)
      return code;
  }
  text->arena.used = 0;
  ms_dit_text_layout(dit, text, &text->arena);
  embed_text(dit, batch, text);
  if (!ms_pool_cancelled(dit->compute->pool))
    text->slot = slot;
  return 0;
}

/* In place on the keys' half of dkv; sums of norm_k's gradient per block of rows. */
static void keys_backward_task(void *data, int64_t task, void *memory) {
  struct text_run *run = data;
  struct ms_dit *dit = run->dit;
  int64_t layer = task / run->per_layer, r0 = task % run->per_layer * MS_DIT_TEXT_ROWS, dim = dit->config.dim;
  int64_t r1 = r0 + MS_DIT_TEXT_ROWS < run->rows ? r0 + MS_DIT_TEXT_ROWS : run->rows;
  struct msk_rms_rope norm = key_norm(dit, run->text, layer);
  float *sums = dit->run.grads.text_sums + task * dim;
  norm.dy = norm.dx = dit->run.grads.dkv + layer * run->rows * 2 * dim;
  norm.dy_ld = norm.dx_ld = 2 * dim;
  memset(sums, 0, (size_t)dim * sizeof *sums);
  dit->compute->norm.rms_rope_backward(&norm, r0, r1, sums);
}

/* dcontext of a block of rows: over the layers, last first. */
static void context_task(void *data, int64_t task, void *memory) {
  struct text_run *run = data;
  struct ms_dit *dit = run->dit;
  int64_t r0 = task * MS_DIT_TEXT_ROWS,
          r1 = r0 + MS_DIT_TEXT_ROWS < run->rows ? r0 + MS_DIT_TEXT_ROWS : run->rows, dim = dit->config.dim;
  for (int layer = dit->config.layers - 1; layer >= 0; layer--) {
    const struct dit_matrix *matrix = &dit->layers[layer].cross_kv;
    struct msk_product p = {
        .m = r1 - r0,
        .n = dim,
        .k = 2 * dim,
        .a = dit->run.grads.dkv + (layer * run->rows + r0) * 2 * dim,
        .a_ld = 2 * dim,
        .b = matrix->backward,
        .c = dit->run.grads.dcontext + r0 * dim,
        .c_ld = dim,
        .accumulate = layer < dit->config.layers - 1,
    };
    dit->compute->product[matrix->precision].run(&p, 0, p.m, 0, p.n, memory);
  }
}

static void bias_task(void *data, int64_t layer, void *memory) {
  struct text_run *run = data;
  struct ms_dit *dit = run->dit;
  int64_t dim = dit->config.dim;
  ms_dit_add_bias_sums(dit, &dit->layers[layer].cross_kv, dit->run.grads.dkv + layer * run->rows * 2 * dim,
                       2 * dim, run->rows, run->grad);
  dit->compute->norm.column_sum(dit->run.grads.text_sums + layer * run->per_layer * dim, dim, dim,
                                run->per_layer,
                                run->grad + dit->params.list[dit->layers[layer].cross_norm_k].offset);
}

void ms_dit_text_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, float *grad,
                          float *const *dtext) {
  const struct ms_dit_config *c = &dit->config;
  struct dit_text *text = &dit->text;
  struct dit_grads *g = &dit->run.grads;
  int64_t rows = dit->run.text_rows, dim = c->dim;
  enum msk_type low = ms_dit_low_type(dit);
  struct text_run run = {dit, text, rows, (rows + MS_DIT_TEXT_ROWS - 1) / MS_DIT_TEXT_ROWS, grad};
  struct dit_product weights[MS_MAX_LAYERS];
  struct msk_pack pack = {.n = dim, .k = rows, .src = text->context, .ld = dim, .transposed = 1};
  ms_pool_reserve(dit->compute->pool,
                  ms_dit_product_scratch(dit, dit->precision, MS_DIT_TEXT_ROWS, dim, 2 * dim));
  ms_pool_run(dit->compute->pool, keys_backward_task, &run, c->layers * run.per_layer);
  ms_pool_run(dit->compute->pool, context_task, &run, run.per_layer);
  ms_pool_run(dit->compute->pool, bias_task, &run, c->layers);
  ms_compute_pack(dit->compute, dit->precision, &pack, g->packed);
  for (int i = 0; i < c->layers; i++)
    weights[i] = (struct dit_product){
        .precision = dit->precision,
        .product = {.m = 2 * dim,
                    .n = dim,
                    .k = rows,
                    .a = g->dkv + i * rows * 2 * dim,
                    .a_ld = 2 * dim,
                    .a_transposed = 1,
                    .b = g->packed,
                    .c = grad + dit->params.list[dit->layers[i].cross_kv.weight].offset,
                    .c_ld = dim,
                    .accumulate = 1},
    };
  ms_dit_product_all(dit, weights, c->layers);
  /* keys and values are done: their gradients' memory holds those of the embedding */
  ms_dit_linear_backward(dit, &dit->text2, text->hidden, low, g->dcontext, rows, g->dkv, 0, grad);
  dit->compute->norm.gelu_backward(text->hidden_raw, low, g->dkv, g->dkv, rows * dim);
  ms_dit_linear_backward(dit, &dit->text0, text->padded, MSK_F32, g->dkv, rows, dtext ? g->dtext : NULL, 0,
                         grad);
  for (int s = 0; s < dit->run.samples && dtext; s++)
    memcpy(dtext[s], g->dtext + (int64_t)s * c->text_len * c->text_dim,
           (size_t)batch->text_rows[s] * (size_t)c->text_dim * sizeof(float));
}
