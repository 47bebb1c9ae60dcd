/* The offset head of 3D-DSA: z = out (GELU (LayerNorm (depthwise convolution (u)))). Its last matrix has rows
 * for every point of the window that was asked for; on a lattice smaller than the window those of the points
 * that exist are used. */
#include <math.h>
#include <string.h>

#include "model/dit-private.h"

/* Tokens whose offsets go into the mean that is shown, at most about this many. */
#define WATCHED_TOKENS 16

int64_t ms_dit_offset_width(const struct ms_dit *dit, const struct dit_run *run, int layer) {
  const struct ms_attention_config *attention = &run->attention[layer];
  int64_t points = 1;
  if (attention->mode == MSK_SLIDE_POINT)
    for (int i = 0; i < 3; i++)
      points *= attention->window[i] < run->lattice[i] ? attention->window[i] : run->lattice[i];
  return attention->groups * points * 3;
}

/* Copies rows between the asked window and the one cut to the lattice, which begins at the same corner. */
static void cut_rows(const struct ms_attention_config *attention, const int lattice[3], float *full,
                     float *cut, int64_t rows, int back) {
  const int *window = attention->window;
  int size[3];
  for (int i = 0; i < 3; i++)
    size[i] = window[i] < lattice[i] ? window[i] : lattice[i];
  for (int64_t r = 0; r < rows * attention->groups; r++, full += ms_dit_window_points(attention) * 3)
    for (int t = 0; t < size[0]; t++)
      for (int y = 0; y < size[1]; y++, cut += size[2] * 3) {
        float *at = full + ((int64_t)t * window[1] + y) * window[2] * 3;
        if (back)
          memcpy(at, cut, (size_t)size[2] * 3 * sizeof *at);
        else
          memcpy(cut, at, (size_t)size[2] * 3 * sizeof *at);
      }
}

/* Sum of the lengths of Delta = s tanh (z / s) over watched tokens, divided by the points of a token. */
static double watch(const struct ms_attention_config *attention, const float *z, int64_t width,
                    const struct dit_block *block, int64_t tokens) {
  int64_t step = tokens > WATCHED_TOKENS ? tokens / WATCHED_TOKENS : 1;
  double sum = 0;
  for (int64_t i = 0; i < block->rows; i++) {
    if (block->sample != 0 || block->token + i >= tokens || (block->token + i) % step)
      continue;
    for (int64_t j = 0; j < width; j += 3) {
      double square = 0;
      for (int a = 0; a < 3; a++) {
        float s = attention->bounds[a], delta = s * tanhf(z[i * width + j + a] / s);
        square += (double)delta * delta;
      }
      sum += sqrt(square) * 3 / width;
    }
  }
  return sum;
}

int64_t ms_dit_offset_watched(const struct dit_run *run) {
  int64_t step = run->tokens > WATCHED_TOKENS ? run->tokens / WATCHED_TOKENS : 1;
  return (run->tokens + step - 1) / step;
}

static struct msk_layer_norm offset_norm(const struct ms_dit *dit, int layer, int64_t rows) {
  int64_t dim = dit->config.dim;
  return (struct msk_layer_norm){
      .c = dim,
      .eps = dit->config.eps,
      .x_ld = dim,
      .scale = dit->vectors[dit->layers[layer].offset_norm_weight],
      .shift = dit->vectors[dit->layers[layer].offset_norm_bias],
      .mod_rows = rows,
      .y_ld = dim,
      .dy_ld = dim,
      .dx_ld = dim,
  };
}

static struct msk_depthwise convolution(const struct ms_dit *dit, int layer) {
  const struct dit_run *run = &dit->run;
  return (struct msk_depthwise){
      .lattice = {run->lattice[0], run->lattice[1], run->lattice[2]},
      .c = dit->config.dim,
      .weight = dit->vectors[dit->layers[layer].conv_weight],
      .bias = dit->vectors[dit->layers[layer].conv_bias],
  };
}

void ms_dit_offset_block(struct ms_dit *dit, int layer, const float *u, const struct dit_block *block,
                         int64_t index, const struct dit_offset_rows *rows, void *scratch) {
  struct dit_run *run = &dit->run;
  const struct dit_matrix *out = &dit->layers[layer].offset_out;
  const struct ms_attention_config *attention = &run->attention[layer];
  int64_t dim = dit->config.dim, width = run->lattice[2];
  enum msk_type low = ms_dit_low_type(dit);
  struct msk_layer_norm norm = offset_norm(dit, layer, block->rows);
  struct msk_product p = {
      .m = block->rows,
      .n = out->n,
      .k = dim,
      .a = rows->low,
      .a_type = low,
      .a_ld = dim,
      .b = out->forward,
      .c = rows->z,
      .c_ld = out->n,
      .bias = out->bias_values,
  };
  for (int i = 0; i < block->samples; i++) {
    struct dit_block segment = ms_dit_segment_at(run, block, i);
    struct msk_depthwise conv = convolution(dit, layer);
    conv.x = u + (segment.row - segment.token) * dim;
    conv.y = rows->conv + (segment.row - block->row - segment.token) * dim;
    dit->compute->conv.depthwise(&conv, segment.token / width, (segment.token + segment.rows) / width,
                                 scratch);
  }
  norm.x = rows->conv;
  norm.y = rows->normed;
  norm.mean = rows->mean;
  norm.rstd = rows->rstd;
  dit->compute->norm.layer_norm(&norm, 0, block->rows);
  dit->compute->norm.gelu(rows->normed, rows->low, low, block->rows * dim);
  dit->compute->product[out->precision].run(&p, 0, p.m, 0, p.n, scratch);
  if (rows->z_cut != rows->z)
    cut_rows(attention, run->lattice, rows->z, rows->z_cut, block->rows, 0);
  if (index >= 0)
    run->offset_sum[index] =
        watch(attention, rows->z_cut, ms_dit_offset_width(dit, run, layer), block, run->tokens);
}

void ms_dit_offset_rows_backward(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                                 const struct dit_grads *grads, const struct dit_block *block, float *sums,
                                 struct dit_scratch *scratch) {
  struct dit_run *run = &dit->run;
  const struct dit_matrix *out = &dit->layers[layer].offset_out;
  int64_t dim = dit->config.dim, at = block->row * dim;
  float *dz = grads->dz + block->row * out->n, *d = ms_dit_take(scratch, block->rows * dim, MSK_F32);
  struct msk_layer_norm norm = offset_norm(dit, layer, block->rows);
  struct msk_product p = {
      .m = block->rows,
      .n = dim,
      .k = out->n,
      .a = dz,
      .a_ld = out->n,
      .b = out->backward,
      .c = d,
      .c_ld = dim,
  };
  if (grads->dz_cut != grads->dz) {
    memset(dz, 0, (size_t)(block->rows * out->n) * sizeof *dz);
    cut_rows(&run->attention[layer], run->lattice, dz,
             grads->dz_cut + block->row * ms_dit_offset_width(dit, run, layer), block->rows, 1);
  }
  dit->compute->norm.column_sum(dz, out->n, out->n, block->rows, sums + dit->sums.offset_bias);
  dit->compute->product[out->precision].run(&p, 0, p.m, 0, p.n, scratch->kernels);
  dit->compute->norm.gelu_backward(acts->normed + at, MSK_F32, d, d, block->rows * dim);
  norm.x = acts->conv + at;
  norm.mean = acts->conv_mean + block->row;
  norm.rstd = acts->conv_rstd + block->row;
  norm.dy = d;
  norm.dx = grads->dconv + at;
  dit->compute->norm.layer_norm_backward(&norm, 0, block->rows, sums + dit->sums.offset_norm_weight,
                                         sums + dit->sums.offset_norm_bias);
}

void ms_dit_offset_conv_rows(struct ms_dit *dit, int layer, const struct dit_grads *grads, int64_t sample,
                             int64_t l0, int64_t l1, void *scratch) {
  struct msk_depthwise conv = convolution(dit, layer);
  int64_t at = sample * dit->run.tokens * conv.c;
  conv.dy = grads->dconv + at;
  conv.dx = grads->du + at;
  conv.accumulate = 1;
  dit->compute->conv.depthwise_backward_x(&conv, l0, l1, scratch);
}

#define CHANNELS 16 /* of a task */

struct conv_run {
  struct ms_dit *dit;
  int layer;
  const struct dit_acts *acts;
  const struct dit_grads *grads;
  float *grad;
};

static void conv_weights_task(void *data, int64_t task, void *scratch) {
  struct conv_run *run = data;
  struct ms_dit *dit = run->dit;
  const struct dit_layer *layer = &dit->layers[run->layer];
  struct msk_depthwise conv = convolution(dit, run->layer);
  int64_t lines = conv.lattice[0] * conv.lattice[1], size = dit->run.tokens * conv.c;
  int64_t c0 = task * CHANNELS, c1 = c0 + CHANNELS < conv.c ? c0 + CHANNELS : conv.c;
  for (int64_t sample = 0; sample < dit->run.samples; sample++) {
    conv.x = (const float *)run->acts->u + sample * size;
    conv.dy = run->grads->dconv + sample * size;
    dit->compute->conv.depthwise_backward_w(&conv, 0, lines, c0, c1,
                                            run->grad + dit->params.list[layer->conv_weight].offset,
                                            run->grad + dit->params.list[layer->conv_bias].offset);
  }
}

void ms_dit_offset_conv_weights(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                                const struct dit_grads *grads, float *grad) {
  struct conv_run run = {dit, layer, acts, grads, grad};
  ms_pool_run(dit->compute->pool, conv_weights_task, &run, (dit->config.dim + CHANNELS - 1) / CHANNELS);
}
