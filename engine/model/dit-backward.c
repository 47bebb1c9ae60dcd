/* One layer backward: its activations are computed again from its input, then a block of rows is taken
 * through feed_back (MLP, down to what cross-attention gave), attend_back (cross-attention's query, down to
 * what self-attention gave) and enter_back (q, k, v and the first norm), with the backward passes of both
 * attentions between them. A block of whole samples goes through all of that in one task, and what only this
 * task needs stays in its scratch memory: traffic to memory, not arithmetic, is what a step of a small model
 * waits for. Then the weights' gradients (dit-gradients.c). */
#include <string.h>

#include "model/dit-private.h"

static const float *modulation(const struct ms_dit *dit, int sample, int row) {
  return dit->run.time.modulation + ((int64_t)sample * 6 + row) * dit->config.dim;
}

static float *block_sums(const struct dit_layer_run *run, int64_t block) {
  return run->grads->block_sums + block * run->dit->sums.total;
}

static float *segment_sums(const struct dit_layer_run *run, const struct dit_block *segment, int row) {
  return run->grads->segment_sums + (segment->segment * 6 + row) * run->dit->config.dim;
}

/* dx [rows,k] = dy [rows,n] W. */
static void multiply_back(const struct ms_dit *dit, const struct dit_matrix *matrix, const float *dy,
                          int64_t rows, float *dx, void *scratch) {
  struct msk_product p = {
      .m = rows,
      .n = matrix->k,
      .k = matrix->n,
      .a = dy,
      .a_ld = matrix->n,
      .b = matrix->backward,
      .c = dx,
      .c_ld = matrix->k,
  };
  dit->compute->product[matrix->precision].run(&p, 0, rows, 0, p.n, scratch);
}

/* db = gate dy, per segment; the gate's gradient goes to row `row` of the modulation. */
static void gate_back(const struct dit_layer_run *run, const struct dit_block *block, int row,
                      const float *dy, const float *b, float *db) {
  const struct ms_dit *dit = run->dit;
  int64_t dim = dit->config.dim;
  for (int i = 0; i < block->samples; i++) {
    struct dit_block s = ms_dit_segment_at(&dit->run, block, i);
    int64_t at = s.row * dim;
    dit->compute->norm.gate_backward(dy + at, dim, b + at, dim, modulation(dit, s.sample, row), dim, s.rows,
                                     db + at, dim, segment_sums(run, &s, row));
  }
}

/* Backward of a modulated LayerNorm: adds to dx. dy: of the block. */
static void modulate_back(const struct dit_layer_run *run, const struct dit_block *block, int row,
                          const float *x, const float *mean, const float *rstd, const float *dy, float *dx) {
  const struct ms_dit *dit = run->dit;
  int64_t dim = dit->config.dim;
  for (int i = 0; i < block->samples; i++) {
    struct dit_block s = ms_dit_segment_at(&dit->run, block, i);
    struct msk_layer_norm norm = {
        .c = dim,
        .eps = dit->config.eps,
        .x = x + s.row * dim,
        .x_ld = dim,
        .scale = modulation(dit, s.sample, row + 1),
        .shift = modulation(dit, s.sample, row),
        .mod_ld = 6 * dim,
        .mod_rows = dit->run.tokens,
        .one_plus = 1,
        .mean = (float *)mean + s.row,
        .rstd = (float *)rstd + s.row,
        .dy = dy + (s.row - block->row) * dim,
        .dy_ld = dim,
        .dx = dx + s.row * dim,
        .dx_ld = dim,
        .accumulate = 1,
    };
    dit->compute->norm.layer_norm_backward(&norm, 0, s.rows, segment_sums(run, &s, row + 1),
                                           segment_sums(run, &s, row));
  }
}

static void column_sum(const struct dit_layer_run *run, const float *x, int64_t columns, int64_t rows,
                       float *sums, int64_t at) {
  run->dit->compute->norm.column_sum(x, columns, columns, rows, sums + at);
}

static void feed_back(const struct dit_layer_run *run, const struct dit_block *block, int64_t index,
                      struct dit_scratch scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  const struct dit_acts *acts = run->acts;
  const struct dit_grads *g = run->grads;
  struct dit_block first = ms_dit_segment_at(&dit->run, block, 0);
  int64_t dim = dit->config.dim, ffn = dit->config.ffn, rows = block->rows, at = block->row * dim;
  enum msk_type low = ms_dit_low_type(dit);
  const void *raw = (const char *)acts->hidden_raw + (size_t)(block->row * ffn) * msk_type_size(low);
  float *sums = block_sums(run, index), *dhidden = g->dhidden + block->row * ffn,
        *d = ms_dit_take(&scratch, rows * dim, MSK_F32);
  memset(sums, 0, (size_t)dit->sums.total * sizeof *sums);
  memset(segment_sums(run, &first, 0), 0, (size_t)(block->samples * 6 * dim) * sizeof *sums);
  gate_back(run, block, 5, run->dx, acts->mlp, g->dmlp);
  column_sum(run, g->dmlp + at, dim, rows, sums, dit->sums.down_bias);
  multiply_back(dit, &layer->down, g->dmlp + at, rows, dhidden, scratch.kernels);
  dit->compute->norm.gelu_backward(raw, low, dhidden, dhidden, rows * ffn);
  column_sum(run, dhidden, ffn, rows, sums, dit->sums.up_bias);
  multiply_back(dit, &layer->up, dhidden, rows, d, scratch.kernels);
  modulate_back(run, block, 3, acts->x2, acts->mean2, acts->rstd2, d, run->dx);
  column_sum(run, run->dx + at, dim, rows, sums, dit->sums.cross_out_bias);
  multiply_back(dit, &layer->cross_out, run->dx + at, rows, g->dcrossed + at, scratch.kernels);
}

static void cross_back(const struct dit_layer_run *run, int64_t sample, int64_t head, void *scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_acts *acts = run->acts;
  const struct dit_grads *g = run->grads;
  int64_t dim = dit->config.dim, heads = dit->config.heads, row = sample * dit->run.tokens;
  struct msk_attention a = ms_dit_cross(dit, run->text, run->layer, (int)sample);
  a.queries = dit->run.tokens;
  a.q = acts->cross_q + row * dim;
  a.o = acts->crossed + row * dim;
  a.lse = acts->cross_lse + row * heads;
  a.d_o = g->dcrossed + row * dim;
  a.dq = g->dcross_q + row * dim;
  a.dk = g->dkv + sample * dit->config.text_len * 2 * dim;
  a.dv = a.dk + dim;
  a.d_o_ld = a.dq_ld = dim;
  a.dk_ld = a.dv_ld = 2 * dim;
  dit->compute->attention[dit->precision].backward(&a, head, scratch);
}

static void attend_back(const struct dit_layer_run *run, const struct dit_block *block, int64_t index,
                        struct dit_scratch scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  const struct dit_acts *acts = run->acts;
  const struct dit_grads *g = run->grads;
  int64_t dim = dit->config.dim, rows = block->rows, at = block->row * dim;
  float *sums = block_sums(run, index), *d = ms_dit_take(&scratch, rows * dim, MSK_F32);
  struct msk_rms_rope rms = {
      .c = dim,
      .heads = dit->config.heads,
      .eps = dit->config.eps,
      .x = acts->cross_raw + at,
      .x_ld = dim,
      .weight = dit->vectors[layer->cross_norm_q],
      .rstd = acts->rstd_cross + block->row,
      .dy = g->dcross_q + at,
      .dy_ld = dim,
      .dx = g->dcross_q + at,
      .dx_ld = dim,
  };
  struct msk_layer_norm norm = {
      .c = dim,
      .eps = dit->config.eps,
      .x = acts->x1 + at,
      .x_ld = dim,
      .scale = dit->vectors[layer->norm3_weight],
      .shift = dit->vectors[layer->norm3_bias],
      .mod_rows = rows,
      .mean = acts->mean3 + block->row,
      .rstd = acts->rstd3 + block->row,
      .dy = d,
      .dy_ld = dim,
      .dx = run->dx1 + at,
      .dx_ld = dim,
      .accumulate = 1,
  };
  dit->compute->norm.rms_rope_backward(&rms, 0, rows, sums + dit->sums.cross_norm_q);
  column_sum(run, g->dcross_q + at, dim, rows, sums, dit->sums.cross_q_bias);
  multiply_back(dit, &layer->cross_q, g->dcross_q + at, rows, d, scratch.kernels);
  /* dx stays as it is: the gradient of cross-attention's projection needs it */
  memcpy(run->dx1 + at, run->dx + at, (size_t)(rows * dim) * sizeof(float));
  dit->compute->norm.layer_norm_backward(&norm, 0, rows, sums + dit->sums.norm3_weight,
                                         sums + dit->sums.norm3_bias);
  gate_back(run, block, 2, run->dx1, acts->projected, g->dprojected);
  column_sum(run, g->dprojected + at, dim, rows, sums, dit->sums.out_bias);
  multiply_back(dit, &layer->out, g->dprojected + at, rows, g->dattended + at, scratch.kernels);
}

static void enter_back(const struct dit_layer_run *run, const struct dit_block *block, int64_t index,
                       struct dit_scratch scratch) {
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  const struct dit_acts *acts = run->acts;
  const struct dit_grads *g = run->grads;
  int64_t dim = dit->config.dim, rows = block->rows, end = block->row + rows;
  int offsets = dit->run.attention[run->layer].kind == MS_ATTENTION_DSA;
  float *sums = block_sums(run, index), *dqkv = g->dqkv + block->row * 3 * dim;
  float *du = offsets ? g->du + block->row * dim : ms_dit_take(&scratch, rows * dim, MSK_F32);
  struct msk_rms_rope rope = {
      .c = dim,
      .heads = dit->config.heads,
      .eps = dit->config.eps,
      .x = acts->qkv,
      .x_ld = 3 * dim,
      .weight = dit->vectors[layer->norm_q],
      .rstd = acts->rstd_q,
      .lattice = {dit->run.lattice[0], dit->run.lattice[1], dit->run.lattice[2]},
      .pairs_t = dit->pairs[0],
      .pairs_y = dit->pairs[1],
      .pairs_x = dit->pairs[2],
      .rope_t = dit->run.rope[0],
      .rope_y = dit->run.rope[1],
      .rope_x = dit->run.rope[2],
      .dy = g->dqkv,
      .dy_ld = 3 * dim,
      .dx = g->dqkv,
      .dx_ld = 3 * dim,
  };
  dit->compute->norm.rms_rope_backward(&rope, block->row, end, sums + dit->sums.norm_q);
  rope.x += dim;
  rope.weight = dit->vectors[layer->norm_k];
  rope.rstd = acts->rstd_k;
  rope.dy += dim;
  rope.dx += dim;
  dit->compute->norm.rms_rope_backward(&rope, block->row, end, sums + dit->sums.norm_k);
  column_sum(run, dqkv, 3 * dim, rows, sums, dit->sums.qkv_bias);
  multiply_back(dit, &layer->qkv, dqkv, rows, du, scratch.kernels);
  if (offsets)
    ms_dit_offset_rows_backward(dit, run->layer, acts, g, block, sums, &scratch);
  else
    modulate_back(run, block, 0, acts->x, acts->mean1, acts->rstd1, du, run->dx1);
}

/* The first norm, where the offset head has added to du. */
static void norm_back(const struct dit_layer_run *run, const struct dit_block *block) {
  modulate_back(run, block, 0, run->acts->x, run->acts->mean1, run->acts->rstd1,
                run->grads->du + block->row * run->dit->config.dim, run->dx1);
}

/* A block's own view of the activations and gradients: what no buffer of all rows holds is in its scratch. */
struct own {
  struct dit_layer_run run;
  struct dit_block block;
  struct dit_acts acts;
  struct dit_grads grads;
  struct dit_scratch scratch;
};

static void open_own(struct own *own, const struct dit_layer_run *run, int64_t index, void *memory) {
  own->run = *run;
  own->block = ms_dit_block_at(&run->dit->run, index);
  own->acts = *run->acts;
  own->grads = *run->grads;
  own->scratch = ms_dit_scratch(run->dit, &run->dit->run, memory);
  ms_dit_localize_backward(run->dit, run->layer, &own->block, &own->acts, &own->grads, &own->scratch);
  own->run.acts = &own->acts;
  own->run.grads = &own->grads;
}

static void whole_task(void *data, int64_t task, void *memory) {
  struct own own;
  struct ms_dit *dit = ((struct dit_layer_run *)data)->dit;
  const struct dit_block *block = &own.block;
  int64_t parts, heads = dit->config.heads;
  void *kernels;
  open_own(&own, data, task, memory);
  parts = ms_dit_attention_parts(dit, own.run.layer);
  kernels = own.scratch.kernels;
  ms_dit_enter_block(&own.run, block, own.scratch);
  ms_dit_pack_block(&own.run, block, kernels);
  ms_dit_mix_block(&own.run, block, task, own.scratch);
  feed_back(&own.run, block, task, own.scratch);
  for (int64_t i = 0; i < block->samples * heads; i++)
    cross_back(&own.run, block->sample + i / heads, i % heads, kernels);
  attend_back(&own.run, block, task, own.scratch);
  for (int64_t i = 0; i < block->samples * parts; i++)
    ms_dit_attention_backward(dit, own.run.layer, &own.acts, &own.grads, block->sample + i / parts, i % parts,
                              kernels);
  enter_back(&own.run, block, task, own.scratch);
  if (dit->run.attention[own.run.layer].kind == MS_ATTENTION_DSA) {
    for (int i = 0; i < block->samples; i++)
      ms_dit_offset_conv_rows(dit, own.run.layer, &own.grads, block->sample + i, 0,
                              (int64_t)dit->run.lattice[0] * dit->run.lattice[1], kernels);
    norm_back(&own.run, block);
  }
}

/* The same in pieces, for blocks that are parts of samples. */
static void mix_task(void *data, int64_t task, void *memory) {
  struct own own;
  open_own(&own, data, task, memory);
  ms_dit_mix_block(&own.run, &own.block, task, own.scratch);
  feed_back(&own.run, &own.block, task, own.scratch);
}

static void cross_task(void *data, int64_t task, void *memory) {
  const struct dit_layer_run *run = data;
  int64_t heads = run->dit->config.heads;
  cross_back(run, task / heads, task % heads, memory);
}

static void attend_task(void *data, int64_t task, void *memory) {
  struct own own;
  open_own(&own, data, task, memory);
  attend_back(&own.run, &own.block, task, own.scratch);
}

static void attention_task(void *data, int64_t task, void *memory) {
  const struct dit_layer_run *run = data;
  int64_t parts = ms_dit_attention_parts(run->dit, run->layer);
  ms_dit_attention_backward(run->dit, run->layer, run->acts, run->grads, task / parts, task % parts, memory);
}

static void enter_task(void *data, int64_t task, void *memory) {
  struct own own;
  open_own(&own, data, task, memory);
  enter_back(&own.run, &own.block, task, own.scratch);
}

static void norm_task(void *data, int64_t task, void *memory) {
  const struct dit_layer_run *run = data;
  struct dit_block block = ms_dit_block_at(&run->dit->run, task);
  norm_back(run, &block);
}

static void conv_task(void *data, int64_t task, void *memory) {
  const struct dit_layer_run *run = data;
  const struct dit_block block = ms_dit_block_at(&run->dit->run, task);
  int64_t width = run->dit->run.lattice[2];
  ms_dit_offset_conv_rows(run->dit, run->layer, run->grads, block.sample, block.token / width,
                          (block.token + block.rows) / width, memory);
}

static void back_in_pieces(struct dit_layer_run *run) {
  struct ms_dit *dit = run->dit;
  struct ms_pool *pool = dit->compute->pool;
  int64_t blocks = dit->run.blocks.blocks, samples = dit->run.samples;
  ms_dit_enter_all(run);
  ms_pool_run(pool, mix_task, run, blocks);
  ms_pool_run(pool, cross_task, run, samples * dit->config.heads);
  ms_pool_run(pool, attend_task, run, blocks);
  ms_pool_run(pool, attention_task, run, samples * ms_dit_attention_parts(dit, run->layer));
  ms_pool_run(pool, enter_task, run, blocks);
  if (dit->run.attention[run->layer].kind == MS_ATTENTION_DSA) {
    ms_pool_run(pool, conv_task, run, blocks);
    ms_pool_run(pool, norm_task, run, blocks);
  }
}

void ms_dit_layer_backward(struct ms_dit *dit, int layer, const struct dit_text *text,
                           const struct dit_acts *acts, float *dx, float *dx1, float *grad) {
  struct dit_grads grads = dit->run.grads;
  struct dit_layer_run run = {dit, layer, text, acts, &grads, dx, dx1};
  if (acts->z && acts->z_cut == acts->z)
    grads.dz_cut = grads.dz;
  dit->run.qk_ld = 2 * (int64_t)dit->config.dim;
  ms_dit_attention_prepare(dit, layer);
  if (dit->run.whole)
    ms_pool_run(dit->compute->pool, whole_task, &run, dit->run.blocks.blocks);
  else
    back_in_pieces(&run);
  ms_dit_text_keys_backward(dit, text, layer, grad);
  ms_dit_layer_gradients(&run, grad);
}
