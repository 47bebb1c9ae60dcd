/* The text: padded to text_len rows, embedded once, then keys and values of a layer's cross-attention when
 * its turn comes. In sampling those of all layers are kept under the caller's number, since text and weights
 * stay the same for all steps; otherwise one layer's are held, and the backward pass makes them again. */
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
    int64_t at = layer % text->held;
    p.k = text->k + at * text->k_stride + row * text->k_ld;
    p.v = text->kv + (at * rows + row) * 2 * c->dim + c->dim;
    p.packed = text->packed + (size_t)(at * text->samples + sample) * (size_t)c->heads * text->packed_bytes;
  }
  return p;
}

void ms_dit_context_layout(const struct ms_dit *dit, struct dit_text *text, struct ms_arena *arena) {
  int64_t rows = (int64_t)text->samples * dit->config.text_len, dim = dit->config.dim;
  text->padded = ms_arena_take_f32(arena, rows * dit->config.text_dim);
  text->hidden_raw = ms_arena_take_f32(arena, rows * dim);
  text->hidden = ms_arena_take_f32(arena, rows * dim);
  text->context = ms_arena_take_f32(arena, rows * dim);
}

void ms_dit_keys_layout(const struct ms_dit *dit, struct dit_text *text, struct ms_arena *arena) {
  const struct ms_dit_config *c = &dit->config;
  int64_t rows = (int64_t)text->samples * c->text_len, dim = c->dim;
  struct msk_attention shape;
  text->kv = NULL;
  text->k_ld = text->training ? dim : 2 * dim;
  text->k_stride = rows * text->k_ld;
  shape = ms_dit_cross(dit, text, 0, 0);
  text->rstd = ms_arena_take_f32(arena, text->held * rows);
  text->kv = ms_arena_take_f32(arena, text->held * rows * 2 * dim);
  text->k = text->training ? ms_arena_take_f32(arena, text->held * rows * dim) : text->kv;
  text->packed_bytes = dit->compute->attention[dit->precision].pack_bytes(&shape);
  text->packed = ms_arena_take(arena, (size_t)text->held * (size_t)text->samples * (size_t)c->heads *
                                          text->packed_bytes);
}

void ms_dit_slot_layout(const struct ms_dit *dit, struct dit_text *text, struct ms_arena *arena) {
  text->held = dit->config.layers;
  ms_dit_context_layout(dit, text, arena);
  ms_dit_keys_layout(dit, text, arena);
}

struct text_run {
  struct ms_dit *dit;
  const struct dit_text *text;
  int layer;
  int64_t rows;
};

static struct msk_rms_rope key_norm(const struct ms_dit *dit, const struct dit_text *text, int layer) {
  int64_t rows = (int64_t)text->samples * dit->config.text_len, at = layer % text->held;
  return (struct msk_rms_rope){
      .c = dit->config.dim,
      .heads = dit->config.heads,
      .eps = dit->config.eps,
      .x = text->kv + at * rows * 2 * dit->config.dim,
      .x_ld = 2 * (int64_t)dit->config.dim,
      .weight = dit->vectors[dit->layers[layer].cross_norm_k],
      .y = text->k + at * text->k_stride,
      .y_ld = text->k_ld,
      .rstd = text->rstd + at * rows,
  };
}

static int64_t row_tasks(int64_t rows) {
  return (rows + MS_DIT_TEXT_ROWS - 1) / MS_DIT_TEXT_ROWS;
}

static void norm_task(void *data, int64_t task, void *memory) {
  struct text_run *run = data;
  int64_t r0 = task * MS_DIT_TEXT_ROWS,
          r1 = r0 + MS_DIT_TEXT_ROWS < run->rows ? r0 + MS_DIT_TEXT_ROWS : run->rows;
  struct msk_rms_rope norm = key_norm(run->dit, run->text, run->layer);
  run->dit->compute->norm.rms_rope(&norm, r0, r1);
}

static void pack_task(void *data, int64_t task, void *memory) {
  struct text_run *run = data;
  struct ms_dit *dit = run->dit;
  int64_t heads = dit->config.heads,
          first = (int64_t)(run->layer % run->text->held) * run->text->samples * heads;
  struct msk_attention p = ms_dit_cross(dit, run->text, run->layer, (int)(task / heads));
  dit->compute->attention[dit->precision].pack(
      &p, task % heads, run->text->packed + (size_t)(first + task) * run->text->packed_bytes);
}

void ms_dit_text_keys(struct ms_dit *dit, struct dit_text *text, int layer) {
  int64_t rows = (int64_t)text->samples * dit->config.text_len;
  struct text_run run = {dit, text, layer, rows};
  struct dit_linear keys = {.matrix = &dit->layers[layer].cross_kv,
                            .x = text->context,
                            .rows = rows,
                            .y = text->kv + layer % text->held * rows * 2 * dit->config.dim};
  if (text->slot > 0)
    return;
  ms_dit_linear(dit, &keys);
  ms_pool_run(dit->compute->pool, norm_task, &run, row_tasks(rows));
  ms_pool_run(dit->compute->pool, pack_task, &run, (int64_t)text->samples * dit->config.heads);
}

static void embed_text(struct ms_dit *dit, const struct ms_dit_batch *batch, struct dit_text *text) {
  const struct ms_dit_config *c = &dit->config;
  int64_t rows = (int64_t)text->samples * c->text_len, size = (int64_t)c->text_len * c->text_dim;
  enum msk_type low = ms_dit_low_type(dit);
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
}

static int slot_of(const struct ms_dit *dit, const struct ms_dit_batch *batch) {
  return dit->run.keep || batch->text_slot < 0 ? 0 : batch->text_slot;
}

static int make_slots(struct ms_dit *dit, int count, struct ms_error *error) {
  struct dit_text *slots;
  if (count <= dit->slot_count)
    return 0;
  slots = realloc(dit->slots, (size_t)count * sizeof *slots);
  if (!slots)
    return ms_error_set(error, MS_ENOMEM, "out of memory for texts");
  dit->slots = slots;
  for (; dit->slot_count < count; dit->slot_count++)
    ms_dit_text_init(&dit->slots[dit->slot_count]);
  return 0;
}

/* Memory of a slot that holds another text or none. */
static int empty_slot(struct ms_dit *dit, struct dit_text *text, int samples, struct ms_error *error) {
  struct ms_arena measure = {0};
  int code;
  text->slot = -1;
  text->samples = samples;
  text->training = 0;
  ms_dit_slot_layout(dit, text, &measure);
  if (measure.peak > text->arena.size) {
    ms_arena_release(&text->arena);
    if ((code = ms_arena_open(&text->arena, measure.peak, error)) < 0)
      return code;
  }
  text->arena.used = 0;
  ms_dit_slot_layout(dit, text, &text->arena);
  return 0;
}

int ms_dit_text_embed(struct ms_dit *dit, const struct ms_dit_batch *batches, struct ms_error *error) {
  struct dit_run *run = &dit->run;
  int code;
  for (int i = 0; i < run->count; i++)
    if ((code = make_slots(dit, slot_of(dit, &batches[i]), error)) < 0)
      return code;
  for (int i = 0; i < run->count; i++) {
    int slot = slot_of(dit, &batches[i]);
    struct dit_text *text = slot ? &dit->slots[slot - 1] : &run->each[i].text;
    run->each[i].used = text;
    if (slot && text->slot == slot && text->samples == run->samples)
      continue;
    if (slot && (code = empty_slot(dit, text, run->samples, error)) < 0)
      return code;
    embed_text(dit, &batches[i], text);
  }
  return 0;
}

void ms_dit_text_complete(struct ms_dit *dit, const struct ms_dit_batch *batches) {
  for (int i = 0; i < dit->run.count; i++)
    if (slot_of(dit, &batches[i]))
      dit->run.each[i].used->slot = slot_of(dit, &batches[i]);
}

/* In place on the keys' half of dkv; sums of a block of rows: of norm_k's gradient, then of the biases'. */
static void keys_backward_task(void *data, int64_t task, void *memory) {
  struct text_run *run = data;
  struct ms_dit *dit = run->dit;
  int64_t r0 = task * MS_DIT_TEXT_ROWS, dim = dit->config.dim;
  int64_t r1 = r0 + MS_DIT_TEXT_ROWS < run->rows ? r0 + MS_DIT_TEXT_ROWS : run->rows;
  struct msk_rms_rope norm = key_norm(dit, run->text, run->layer);
  float *sums = dit->run.grads.text_sums + task * 3 * dim, *dkv = dit->run.grads.dkv;
  norm.dy = norm.dx = dkv;
  norm.dy_ld = norm.dx_ld = 2 * dim;
  memset(sums, 0, (size_t)(3 * dim) * sizeof *sums);
  dit->compute->norm.rms_rope_backward(&norm, r0, r1, sums);
  dit->compute->norm.column_sum(dkv + r0 * 2 * dim, 2 * dim, 2 * dim, r1 - r0, sums + dim);
}

void ms_dit_text_keys_backward(struct ms_dit *dit, const struct dit_text *text, int layer, float *grad) {
  const struct dit_matrix *matrix = &dit->layers[layer].cross_kv;
  struct dit_grads *g = &dit->run.grads;
  int64_t rows = dit->run.text_rows, dim = dit->config.dim, tasks = row_tasks(rows);
  struct text_run run = {dit, text, layer, rows};
  struct msk_product context = {
      .m = rows,
      .n = dim,
      .k = 2 * dim,
      .a = g->dkv,
      .a_ld = 2 * dim,
      .b = matrix->backward,
      .c = g->dcontext,
      .c_ld = dim,
      .accumulate = layer < dit->config.layers - 1, /* the last layer comes first */
  };
  ms_pool_run(dit->compute->pool, keys_backward_task, &run, tasks);
  if (dit->run.outward)
    ms_compute_product(dit->compute, matrix->precision, &context);
  if (ms_dit_is_trained(dit, dit->layers[layer].cross_norm_k))
    dit->compute->norm.column_sum(g->text_sums, 3 * dim, dim, tasks,
                                  grad + dit->params.list[dit->layers[layer].cross_norm_k].offset);
  ms_dit_add_bias_sums(dit, matrix, g->text_sums + dim, 3 * dim, tasks, grad);
}

void ms_dit_text_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, const struct dit_text *text,
                          float *grad, float *const *dtext) {
  const struct ms_dit_config *c = &dit->config;
  struct dit_grads *g = &dit->run.grads;
  int64_t rows = dit->run.text_rows;
  enum msk_type low = ms_dit_low_type(dit);
  float *dhidden = g->dkv; /* the layers' keys and values are done */
  ms_dit_linear_backward(dit, &dit->text2, text->hidden, low, g->dcontext, rows, dhidden, 0, grad);
  dit->compute->norm.gelu_backward(text->hidden_raw, low, dhidden, dhidden, rows * c->dim);
  ms_dit_linear_backward(dit, &dit->text0, text->padded, MSK_F32, dhidden, rows, dtext ? g->dtext : NULL, 0,
                         grad);
  for (int s = 0; s < dit->run.samples && dtext; s++)
    memcpy(dtext[s], g->dtext + (int64_t)s * c->text_len * c->text_dim,
           (size_t)batch->text_rows[s] * (size_t)c->text_dim * sizeof(float));
}
