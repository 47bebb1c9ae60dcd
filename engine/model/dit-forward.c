/* One layer forward: enter, keys packed, mix. See dit-private.h. */
#include <math.h>
#include <string.h>

#include "model/dit-private.h"

/* The block's rows of a buffer that holds all rows, or memory of its own. */
static void *rows_of(void *all, const struct dit_block *block, int64_t ld, enum msk_type type,
                     struct dit_scratch *scratch) {
  if (all)
    return (char *)all + (size_t)(block->row * ld) * msk_type_size(type);
  return ms_dit_take(scratch, block->rows * ld, type);
}

/* As rows_of, but what no backward pass needs stays NULL. */
static float *kept(float *all, const struct dit_block *block, int64_t ld) {
  return all ? all + block->row * ld : NULL;
}

static const float *modulation(const struct ms_dit *dit, int sample, int row) {
  return dit->run.time.modulation + ((int64_t)sample * 6 + row) * dit->config.dim;
}

/* LayerNorm with shift and scale from rows `row` and row + 1 of the modulation. */
static void modulate(const struct dit_layer_run *run, const struct dit_block *block, int row, const float *x,
                     void *y, enum msk_type type, float *mean, float *rstd) {
  const struct ms_dit *dit = run->dit;
  int64_t dim = dit->config.dim;
  struct msk_layer_norm norm = {
      .c = dim,
      .eps = dit->config.eps,
      .x = x,
      .x_ld = dim,
      .scale = modulation(dit, block->sample, row + 1),
      .shift = modulation(dit, block->sample, row),
      .mod_ld = 6 * dim,
      .mod_rows = dit->run.tokens,
      .one_plus = 1,
      .y = y,
      .y_type = type,
      .y_ld = dim,
      .mean = mean,
      .rstd = rstd,
  };
  dit->compute->norm.layer_norm(&norm, 0, block->rows);
}

static struct msk_product product(const struct dit_matrix *matrix, int64_t rows, const void *a,
                                  enum msk_type a_type, void *c, enum msk_type c_type) {
  return (struct msk_product){
      .m = rows,
      .n = matrix->n,
      .k = matrix->k,
      .a = a,
      .a_type = a_type,
      .a_ld = matrix->k,
      .b = matrix->forward,
      .c = c,
      .c_type = c_type,
      .c_ld = matrix->n,
      .bias = matrix->bias_values,
      .pre_ld = matrix->n,
      .gate_rows = rows,
      .residual_ld = matrix->n,
  };
}

static void multiply(const struct ms_dit *dit, const struct dit_matrix *matrix, const struct msk_product *p,
                     void *scratch) {
  dit->compute->product[matrix->precision].run(p, 0, p->m, 0, p->n, scratch);
}

void ms_dit_enter_block(const struct dit_layer_run *run, const struct dit_block *block,
                        struct dit_scratch scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  const struct dit_acts *acts = run->acts;
  int64_t dim = dit->config.dim;
  enum msk_type type =
      dit->run.attention[run->layer].kind == MS_ATTENTION_DSA ? MSK_F32 : ms_dit_low_type(dit);
  void *u = rows_of(acts->u, block, dim, type, &scratch);
  struct msk_product p =
      product(&layer->qkv, block->rows, u, type, acts->qkv + block->row * 3 * dim, MSK_F32);
  struct msk_rms_rope rope = {
      .c = dim,
      .heads = dit->config.heads,
      .eps = dit->config.eps,
      .x = acts->qkv,
      .x_ld = 3 * dim,
      .weight = dit->vectors[layer->norm_q],
      .y = acts->q,
      .y_ld = dit->run.qk_ld,
      .rstd = acts->rstd_q,
      .lattice = {dit->run.lattice[0], dit->run.lattice[1], dit->run.lattice[2]},
      .pairs_t = dit->pairs[0],
      .pairs_y = dit->pairs[1],
      .pairs_x = dit->pairs[2],
      .rope_t = dit->run.rope[0],
      .rope_y = dit->run.rope[1],
      .rope_x = dit->run.rope[2],
  };
  modulate(run, block, 0, acts->x + block->row * dim, u, type, kept(acts->mean1, block, 1),
           kept(acts->rstd1, block, 1));
  multiply(dit, &layer->qkv, &p, scratch.kernels);
  dit->compute->norm.rms_rope(&rope, block->row, block->row + block->rows);
  rope.x += dim;
  rope.y = acts->k;
  rope.weight = dit->vectors[layer->norm_k];
  rope.rstd = acts->rstd_k;
  dit->compute->norm.rms_rope(&rope, block->row, block->row + block->rows);
}

/* A product whose result goes through a gate (row of the modulation; -1: none) onto the residual stream, rows
 * `from` to `to`. A gate belongs to a sample, so a block of several samples asks for one every `tokens` rows.
 */
static void branch(const struct dit_layer_run *run, const struct dit_block *block,
                   const struct dit_matrix *matrix, const void *a, enum msk_type a_type, int gate, float *raw,
                   const float *from, float *to, void *scratch) {
  struct ms_dit *dit = run->dit;
  struct msk_product p = product(matrix, block->rows, a, a_type, to, MSK_F32);
  if (gate >= 0) {
    p.gate = modulation(dit, block->sample, gate);
    p.gate_ld = 6 * (int64_t)dit->config.dim;
    p.gate_rows = dit->run.tokens;
  }
  p.pre = raw;
  p.residual = from;
  multiply(dit, matrix, &p, scratch);
}

/* Self-attention of the block and its projection; x1 gets the stream behind it. */
static void attend(const struct dit_layer_run *run, const struct dit_block *block, int64_t index, float *x1,
                   struct dit_scratch scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_acts *acts = run->acts;
  int64_t dim = dit->config.dim;
  float *attended = rows_of(acts->attended, block, dim, MSK_F32, &scratch);
  struct dit_offset_rows offset = {0};
  if (dit->run.attention[run->layer].kind == MS_ATTENTION_DSA) {
    int64_t full = dit->layers[run->layer].offset_out.n,
            cut = ms_dit_offset_width(dit, &dit->run, run->layer);
    offset.conv = rows_of(acts->conv, block, dim, MSK_F32, &scratch);
    offset.normed = rows_of(acts->normed, block, dim, MSK_F32, &scratch);
    offset.low = rows_of(acts->offset_low, block, dim, ms_dit_low_type(dit), &scratch);
    offset.z = rows_of(acts->z, block, full, MSK_F32, &scratch);
    offset.z_cut = cut == full ? offset.z : rows_of(acts->z_cut, block, cut, MSK_F32, &scratch);
    offset.mean = kept(acts->conv_mean, block, 1);
    offset.rstd = kept(acts->conv_rstd, block, 1);
    /* offsets are watched on the way through, not when a layer is computed again */
    ms_dit_offset_block(dit, run->layer, acts->u, block, acts->y ? index : -1, &offset, scratch.kernels);
  }
  ms_dit_attention_block(dit, run->layer, acts, block, offset.z_cut, attended,
                         kept(acts->lse, block, dit->config.heads), scratch.kernels);
  branch(run, block, &dit->layers[run->layer].out, attended, MSK_F32, 2, kept(acts->projected, block, dim),
         acts->x + block->row * dim, x1, scratch.kernels);
}

static void cross(const struct dit_layer_run *run, const struct dit_block *block, const float *x1, float *x2,
                  struct dit_scratch scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  const struct dit_acts *acts = run->acts;
  const struct msk_attention_ops *ops = &dit->compute->attention[dit->precision];
  int64_t dim = dit->config.dim;
  enum msk_type low = ms_dit_low_type(dit);
  void *normed = rows_of(acts->normed3, block, dim, low, &scratch);
  float *raw = rows_of(acts->cross_raw, block, dim, MSK_F32, &scratch);
  float *q = acts->cross_q ? acts->cross_q + block->row * dim : raw,
        *crossed = rows_of(acts->crossed, block, dim, MSK_F32, &scratch);
  struct msk_layer_norm norm = {
      .c = dim,
      .eps = dit->config.eps,
      .x = x1,
      .x_ld = dim,
      .scale = dit->vectors[layer->norm3_weight],
      .shift = dit->vectors[layer->norm3_bias],
      .mod_rows = block->rows,
      .y = normed,
      .y_type = low,
      .y_ld = dim,
      .mean = kept(acts->mean3, block, 1),
      .rstd = kept(acts->rstd3, block, 1),
  };
  struct msk_product p = product(&layer->cross_q, block->rows, normed, low, raw, MSK_F32);
  struct msk_rms_rope rms = {
      .c = dim,
      .heads = dit->config.heads,
      .eps = dit->config.eps,
      .x = raw,
      .x_ld = dim,
      .weight = dit->vectors[layer->cross_norm_q],
      .y = q,
      .y_ld = dim,
      .rstd = kept(acts->rstd_cross, block, 1),
  };
  dit->compute->norm.layer_norm(&norm, 0, block->rows);
  multiply(dit, &layer->cross_q, &p, scratch.kernels);
  dit->compute->norm.rms_rope(&rms, 0, block->rows);
  for (int i = 0; i < block->samples; i++) {
    struct dit_block segment = ms_dit_segment_at(&dit->run, block, i);
    struct msk_attention a = ms_dit_cross(dit, run->text, run->layer, segment.sample);
    a.queries = segment.rows;
    a.q = q + (segment.row - block->row) * dim;
    a.o = crossed + (segment.row - block->row) * dim;
    a.lse = kept(acts->cross_lse, &segment, a.heads);
    for (int64_t head = 0; head < a.heads; head++)
      ops->forward(&a, head, 0, a.queries, scratch.kernels);
  }
  branch(run, block, &layer->cross_out, crossed, MSK_F32, -1, NULL, x1, x2, scratch.kernels);
}

static void feed(const struct dit_layer_run *run, const struct dit_block *block, const float *x2, float *y,
                 struct dit_scratch scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  const struct dit_acts *acts = run->acts;
  int64_t dim = dit->config.dim, ffn = dit->config.ffn;
  enum msk_type low = ms_dit_low_type(dit);
  void *modulated = rows_of(acts->modulated2, block, dim, low, &scratch),
       *hidden = rows_of(acts->hidden, block, ffn, low, &scratch);
  struct msk_product up = product(&layer->up, block->rows, modulated, low, hidden, low);
  up.act = MSK_ACT_GELU_TANH;
  if (acts->hidden_raw) {
    up.pre = rows_of(acts->hidden_raw, block, ffn, low, &scratch);
    up.pre_type = low;
  }
  modulate(run, block, 3, x2, modulated, low, kept(acts->mean2, block, 1), kept(acts->rstd2, block, 1));
  multiply(dit, &layer->up, &up, scratch.kernels);
  if (y) {
    branch(run, block, &layer->down, hidden, low, 5, kept(acts->mlp, block, dim), x2, y, scratch.kernels);
    if (!isfinite(dit->compute->norm.sum_squares(y, block->rows * dim)))
      atomic_store_explicit(&dit->run.bad, 1, memory_order_relaxed);
  } else { /* recomputed for its gradient: the stream behind the layer is not needed */
    struct msk_product down =
        product(&layer->down, block->rows, hidden, low, acts->mlp + block->row * dim, MSK_F32);
    multiply(dit, &layer->down, &down, scratch.kernels);
  }
}

/* In inference the stream is carried in y: each branch adds to it in place. */
void ms_dit_mix_block(const struct dit_layer_run *run, const struct dit_block *block, int64_t index,
                      struct dit_scratch scratch) {
  const struct dit_acts *acts = run->acts;
  int64_t at = block->row * run->dit->config.dim;
  float *y = acts->y ? acts->y + at : NULL, *x1 = acts->x1 ? acts->x1 + at : y,
        *x2 = acts->x2 ? acts->x2 + at : y;
  attend(run, block, index, x1, scratch);
  cross(run, block, x1, x2, scratch);
  feed(run, block, x2, y, scratch);
}

void ms_dit_pack_block(const struct dit_layer_run *run, const struct dit_block *block, void *scratch) {
  int64_t parts = ms_dit_attention_parts(run->dit, run->layer);
  for (int64_t i = 0; i < block->samples * parts; i++)
    ms_dit_attention_pack(run->dit, run->layer, run->acts, block->sample + i / parts, i % parts, scratch);
}

static void enter_task(void *data, int64_t task, void *memory) {
  struct dit_layer_run *run = data;
  struct dit_block block = ms_dit_block_at(&run->dit->run, task);
  ms_dit_enter_block(run, &block, ms_dit_scratch(run->dit, &run->dit->run, memory));
}

static void pack_task(void *data, int64_t task, void *memory) {
  struct dit_layer_run *run = data;
  int64_t parts = ms_dit_attention_parts(run->dit, run->layer);
  ms_dit_attention_pack(run->dit, run->layer, run->acts, task / parts, task % parts, memory);
}

static void mix_task(void *data, int64_t task, void *memory) {
  struct dit_layer_run *run = data;
  struct dit_block block = ms_dit_block_at(&run->dit->run, task);
  ms_dit_mix_block(run, &block, task, ms_dit_scratch(run->dit, &run->dit->run, memory));
}

/* Blocks of whole samples need not wait for each other. */
static void whole_task(void *data, int64_t task, void *memory) {
  struct dit_layer_run *run = data, own = *run;
  struct ms_dit *dit = run->dit;
  struct dit_block block = ms_dit_block_at(&dit->run, task);
  struct dit_scratch scratch = ms_dit_scratch(dit, &dit->run, memory);
  struct dit_acts acts = *run->acts;
  ms_dit_localize_forward(dit, run->layer, &block, &acts, &scratch);
  own.acts = &acts;
  ms_dit_enter_block(&own, &block, scratch);
  ms_dit_pack_block(&own, &block, scratch.kernels);
  ms_dit_mix_block(&own, &block, task, scratch);
}

void ms_dit_enter_all(struct dit_layer_run *run) {
  struct ms_dit *dit = run->dit;
  ms_pool_run(dit->compute->pool, enter_task, run, dit->run.blocks.blocks);
  ms_pool_run(dit->compute->pool, pack_task, run, dit->run.samples * ms_dit_attention_parts(dit, run->layer));
}

void ms_dit_layer_forward(struct ms_dit *dit, int layer, const struct dit_text *text,
                          const struct dit_acts *acts) {
  struct dit_layer_run run = {.dit = dit, .layer = layer, .text = text, .acts = acts};
  dit->run.qk_ld = 3 * (int64_t)dit->config.dim;
  ms_dit_attention_prepare(dit, layer);
  if (dit->run.whole) {
    ms_pool_run(dit->compute->pool, whole_task, &run, dit->run.blocks.blocks);
    return;
  }
  ms_dit_enter_all(&run);
  ms_pool_run(dit->compute->pool, mix_task, &run, dit->run.blocks.blocks);
}
