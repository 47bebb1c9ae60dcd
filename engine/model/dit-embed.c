/* The way in and the way out: latents to rows of patches and back, coordinate features, rotary tables, the
 * head. */
#include <math.h>
#include <string.h>

#include "model/dit-private.h"

#define PI 3.14159265358979323846
/* Short-side positions: angle of coordinate 1 in the fastest pair, and the base of the other pairs. */
#define SHORT_SIDE_ANGLE 2.5
#define SHORT_SIDE_BASE 100.0
#define WAN_BASE 10000.0

/* A token's place along an axis, -1..1 in time over the clip, in space scaled by the short side. */
static double coordinate(const int lattice[3], int axis, int i) {
  int side = lattice[1] < lattice[2] ? lattice[1] : lattice[2];
  if (axis == 0)
    return 2 * (i + 0.5) / lattice[0] - 1;
  return 2 * (i + 0.5 - lattice[axis] / 2.0) / side;
}

static void fill_rope(const struct ms_dit *dit, const int lattice[3], int axis, float *table) {
  int pairs = dit->pairs[axis], short_side = dit->config.positions == MS_POSITIONS_SHORT_SIDE;
  for (int i = 0; i < lattice[axis]; i++)
    for (int j = 0; j < pairs; j++) {
      double angle = short_side ? SHORT_SIDE_ANGLE * coordinate(lattice, axis, i) *
                                      pow(SHORT_SIDE_BASE, -(double)j / pairs)
                                : i * pow(WAN_BASE, -(double)j / pairs);
      *table++ = (float)cos(angle);
      *table++ = (float)sin(angle);
    }
}

/* Features of a token: t, y, x; then for k = 1, 2 the sines and the cosines of (pi/2) k times them. */
static void fill_places(const int lattice[3], float *out) {
  for (int t = 0; t < lattice[0]; t++)
    for (int y = 0; y < lattice[1]; y++)
      for (int x = 0; x < lattice[2]; x++) {
        const double place[3] = {coordinate(lattice, 0, t), coordinate(lattice, 1, y),
                                 coordinate(lattice, 2, x)};
        for (int a = 0; a < 3; a++) {
          out[a] = (float)place[a];
          for (int k = 1; k <= 2; k++) {
            out[6 * k - 3 + a] = (float)sin(PI / 2 * k * place[a]);
            out[6 * k + a] = (float)cos(PI / 2 * k * place[a]);
          }
        }
        out += 15;
      }
}

void ms_dit_fill_tables(struct ms_dit *dit) {
  struct dit_run *run = &dit->run;
  for (int axis = 0; axis < 3; axis++)
    fill_rope(dit, run->lattice, axis, run->rope[axis]);
  if (dit->config.coordinate_features)
    fill_places(run->lattice, run->places);
}

/* Copies between a token's patch and the video [channels,T,H,W]. Element (c, kt, ky, kx) of the patch is at
 * patch[c * c_step + ((kt * ph + ky) * pw + kx) * p_step]: Wan's first matrix has the channel outermost, its
 * last innermost. */
struct patching {
  const struct ms_dit *dit;
  int channels;
  int64_t c_step, p_step;
};

static const float *corner(const struct dit_run *run, const struct patching *p, const float *video,
                           int sample, int64_t token) {
  const int *size = run->latent, *patch = p->dit->config.patch;
  int64_t x = token % run->lattice[2], y = token / run->lattice[2] % run->lattice[1];
  int64_t t = token / ((int64_t)run->lattice[2] * run->lattice[1]);
  int64_t frame = (int64_t)sample * p->channels * size[0] + t * patch[0];
  return video + (frame * size[1] + y * patch[1]) * size[2] + x * patch[2];
}

static void read_patch(const struct dit_run *run, const struct patching *p, const float *from, float *patch) {
  const int *n = p->dit->config.patch;
  int64_t frame = (int64_t)run->latent[1] * run->latent[2];
  for (int c = 0; c < p->channels; c++)
    for (int kt = 0; kt < n[0]; kt++)
      for (int ky = 0; ky < n[1]; ky++)
        for (int kx = 0; kx < n[2]; kx++)
          patch[c * p->c_step + ((kt * n[1] + ky) * n[2] + kx) * p->p_step] =
              from[((int64_t)c * run->latent[0] + kt) * frame + ky * run->latent[2] + kx];
}

static void write_patch(const struct dit_run *run, const struct patching *p, const float *patch, float *to) {
  const int *n = p->dit->config.patch;
  int64_t frame = (int64_t)run->latent[1] * run->latent[2];
  for (int c = 0; c < p->channels; c++)
    for (int kt = 0; kt < n[0]; kt++)
      for (int ky = 0; ky < n[1]; ky++)
        for (int kx = 0; kx < n[2]; kx++)
          to[((int64_t)c * run->latent[0] + kt) * frame + ky * run->latent[2] + kx] =
              patch[c * p->c_step + ((kt * n[1] + ky) * n[2] + kx) * p->p_step];
}

struct outer { /* one run over blocks */
  struct ms_dit *dit;
  const float *video, *x;
  float *rows, *rows2, *out, *dx;
};

static struct patching patches_in(const struct ms_dit *dit) {
  int64_t points = dit->patch_in / dit->config.in_channels;
  return (struct patching){dit, dit->config.in_channels, points, 1};
}

static struct patching patches_out(const struct ms_dit *dit) {
  return (struct patching){dit, dit->config.out_channels, 1, dit->config.out_channels};
}

/* Patches of a block's rows, with the features of their places behind them. */
static void gather(const struct dit_run *run, const struct patching *p, const struct dit_block *block,
                   const float *video, float *rows, int64_t ld, const float *places) {
  for (int64_t i = 0; i < block->rows; i++) {
    int64_t at = block->token + i, token = at % run->tokens;
    int sample = block->sample + (int)(at / run->tokens);
    read_patch(run, p, corner(run, p, video, sample, token), rows + i * ld);
    if (places)
      memcpy(rows + i * ld + ld - 15, places + token * 15, 15 * sizeof *rows);
  }
}

static void scatter(const struct dit_run *run, const struct patching *p, const struct dit_block *block,
                    const float *rows, int64_t ld, float *video) {
  for (int64_t i = 0; i < block->rows; i++) {
    int64_t at = block->token + i;
    int sample = block->sample + (int)(at / run->tokens);
    write_patch(run, p, rows + i * ld, (float *)corner(run, p, video, sample, at % run->tokens));
  }
}

static void product(struct ms_dit *dit, const struct msk_product *p, enum msk_precision precision,
                    void *scratch) {
  dit->compute->product[precision].run(p, 0, p->m, 0, p->n, scratch);
}

static void embed_task(void *data, int64_t task, void *memory) {
  struct outer *outer = data;
  struct ms_dit *dit = outer->dit;
  struct dit_run *run = &dit->run;
  struct dit_block block = ms_dit_block_at(run, task);
  struct dit_scratch scratch = ms_dit_scratch(dit, run, memory);
  struct patching patching = patches_in(dit);
  float *rows = ms_dit_take(&scratch, block.rows * dit->patch.k, MSK_F32);
  struct msk_product p = {
      .m = block.rows,
      .n = dit->patch.n,
      .k = dit->patch.k,
      .a = rows,
      .a_ld = dit->patch.k,
      .b = dit->patch.forward,
      .c = outer->out + block.row * dit->patch.n,
      .c_ld = dit->patch.n,
      .bias = dit->patch.bias_values,
  };
  gather(run, &patching, &block, outer->video, rows, dit->patch.k,
         dit->config.coordinate_features ? run->places : NULL);
  product(dit, &p, MSK_PRECISION_F32, scratch.kernels);
}

void ms_dit_embed(struct ms_dit *dit, const float *latents, float *x) {
  struct outer outer = {.dit = dit, .video = latents, .out = x};
  ms_pool_run(dit->compute->pool, embed_task, &outer, dit->run.blocks.blocks);
}

/* LayerNorm of the head for `rows` rows, shift and scale of `time.head` from `sample` on. */
static struct msk_layer_norm head_norm(const struct ms_dit *dit, int sample, const float *x, float *y,
                                       float *mean, float *rstd) {
  int64_t dim = dit->config.dim;
  const float *modulation = dit->run.time.head + sample * 2 * dim;
  return (struct msk_layer_norm){
      .c = dim,
      .eps = dit->config.eps,
      .x = x,
      .x_ld = dim,
      .scale = modulation + dim,
      .shift = modulation,
      .mod_ld = 2 * dim,
      .mod_rows = dit->run.tokens,
      .one_plus = 1,
      .y = y,
      .y_type = MSK_F32,
      .y_ld = dim,
      .mean = mean,
      .rstd = rstd,
  };
}

static void head_task(void *data, int64_t task, void *memory) {
  struct outer *outer = data;
  struct ms_dit *dit = outer->dit;
  struct dit_run *run = &dit->run;
  struct dit_block block = ms_dit_block_at(run, task);
  struct dit_scratch scratch = ms_dit_scratch(dit, run, memory);
  struct patching patching = patches_out(dit);
  int64_t dim = dit->config.dim;
  float *rows = ms_dit_take(&scratch, block.rows * dim, MSK_F32),
        *out = ms_dit_take(&scratch, block.rows * dit->patch_out, MSK_F32);
  struct msk_layer_norm norm = head_norm(dit, block.sample, outer->x + block.row * dim, rows, NULL, NULL);
  struct msk_product p = {
      .m = block.rows,
      .n = dit->patch_out,
      .k = dim,
      .a = rows,
      .a_ld = dim,
      .b = dit->head.forward,
      .c = out,
      .c_ld = dit->patch_out,
      .bias = dit->head.bias_values,
  };
  dit->compute->norm.layer_norm(&norm, 0, block.rows);
  product(dit, &p, MSK_PRECISION_F32, scratch.kernels);
  if (!isfinite(dit->compute->norm.sum_squares(out, block.rows * dit->patch_out)))
    atomic_store(&run->bad, 1);
  scatter(run, &patching, &block, out, dit->patch_out, outer->out);
}

void ms_dit_head(struct ms_dit *dit, const float *x, float *velocity) {
  struct outer outer = {.dit = dit, .x = x, .out = velocity};
  ms_pool_run(dit->compute->pool, head_task, &outer, dit->run.blocks.blocks);
}

/* rows: dhead [R,patch_out]; rows2: the head's input, recomputed [R,C]; dx written. */
static void head_backward_task(void *data, int64_t task, void *memory) {
  struct outer *outer = data;
  struct ms_dit *dit = outer->dit;
  struct dit_run *run = &dit->run;
  struct dit_block block = ms_dit_block_at(run, task);
  struct dit_scratch scratch = ms_dit_scratch(dit, run, memory);
  struct patching patching = patches_out(dit);
  int64_t dim = dit->config.dim;
  float *dhead = outer->rows + block.row * dit->patch_out,
        *du = ms_dit_take(&scratch, block.rows * dim, MSK_F32);
  struct msk_product p = {
      .m = block.rows,
      .n = dim,
      .k = dit->patch_out,
      .a = dhead,
      .a_ld = dit->patch_out,
      .b = dit->head.backward,
      .c = du,
      .c_ld = dim,
  };
  gather(run, &patching, &block, outer->video, dhead, dit->patch_out, NULL);
  product(dit, &p, MSK_PRECISION_F32, scratch.kernels);
  for (int i = 0; i < block.samples; i++) {
    struct dit_block segment = ms_dit_segment_at(run, &block, i);
    int64_t at = segment.row * dim;
    float *sums = run->grads.segment_sums + segment.segment * 6 * dim;
    struct msk_layer_norm norm =
        head_norm(dit, segment.sample, outer->x + at, outer->rows2 + at, run->grads.head_mean + segment.row,
                  run->grads.head_rstd + segment.row);
    dit->compute->norm.layer_norm(&norm, 0, segment.rows);
    norm.dy = du + (segment.row - block.row) * dim;
    norm.dy_ld = dim;
    norm.dx = outer->dx + at;
    norm.dx_ld = dim;
    memset(sums, 0, (size_t)(2 * dim) * sizeof *sums);
    dit->compute->norm.layer_norm_backward(&norm, 0, segment.rows, sums + dim, sums);
  }
}

void ms_dit_head_backward(struct ms_dit *dit, const float *x, const float *dvelocity, float *dx,
                          float *grad) {
  struct dit_run *run = &dit->run;
  struct outer outer = {
      .dit = dit, .video = dvelocity, .x = x, .rows = run->grads.dhidden, .rows2 = run->grads.dmlp, .dx = dx};
  ms_pool_run(dit->compute->pool, head_backward_task, &outer, run->blocks.blocks);
  ms_dit_linear_backward(dit, &dit->head, outer.rows2, MSK_F32, outer.rows, run->rows, NULL, 0, grad);
}

/* rows: patches [R,patch.k]; out: dlatents or NULL. */
static void embed_backward_task(void *data, int64_t task, void *memory) {
  struct outer *outer = data;
  struct ms_dit *dit = outer->dit;
  struct dit_run *run = &dit->run;
  struct dit_block block = ms_dit_block_at(run, task);
  struct dit_scratch scratch = ms_dit_scratch(dit, run, memory);
  struct patching patching = patches_in(dit);
  int64_t k = dit->patch.k;
  gather(run, &patching, &block, outer->video, outer->rows + block.row * k, k,
         dit->config.coordinate_features ? run->places : NULL);
  if (outer->out) {
    float *dpatch = ms_dit_take(&scratch, block.rows * k, MSK_F32);
    struct msk_product p = {
        .m = block.rows,
        .n = k,
        .k = dit->patch.n,
        .a = outer->x + block.row * dit->patch.n,
        .a_ld = dit->patch.n,
        .b = dit->patch.backward,
        .c = dpatch,
        .c_ld = k,
    };
    product(dit, &p, MSK_PRECISION_F32, scratch.kernels);
    scatter(run, &patching, &block, dpatch, k, outer->out);
  }
}

/* The joint gradient of the patch matrix goes to its two parameters. */
static void add_joined(struct ms_dit *dit, const float *joined, float *grad) {
  int64_t in = dit->patch_in, k = dit->patch.k;
  float *weight = grad + dit->params.list[dit->patch_weight].offset;
  float *places = grad + dit->params.list[dit->coordinate_weight].offset;
  for (int64_t i = 0; i < dit->patch.n; i++) {
    for (int64_t j = 0; j < in; j++)
      weight[i * in + j] += joined[i * k + j];
    for (int64_t j = 0; j < 15; j++)
      places[i * 15 + j] += joined[i * k + in + j];
  }
}

void ms_dit_embed_backward(struct ms_dit *dit, const float *latents, const float *dx, float *grad,
                           float *dlatents) {
  struct dit_run *run = &dit->run;
  struct outer outer = {.dit = dit, .video = latents, .x = dx, .rows = run->grads.dhidden, .out = dlatents};
  struct msk_pack pack = {
      .n = dit->patch.k, .k = run->rows, .src = outer.rows, .ld = dit->patch.k, .transposed = 1};
  struct msk_product weight = {
      .m = dit->patch.n,
      .n = dit->patch.k,
      .k = run->rows,
      .a = dx,
      .a_ld = dit->patch.n,
      .a_transposed = 1,
      .b = run->grads.packed,
      .c = grad + dit->params.list[dit->patch_weight].offset,
      .c_ld = dit->patch.k,
      .accumulate = 1,
  };
  ms_pool_run(dit->compute->pool, embed_backward_task, &outer, run->blocks.blocks);
  ms_dit_add_bias_sums(dit, &dit->patch, dx, dit->patch.n, run->rows, grad);
  if (!ms_dit_is_trained(dit, dit->patch_weight))
    return;
  ms_compute_pack(dit->compute, MSK_PRECISION_F32, &pack, run->grads.packed);
  if (dit->config.coordinate_features) {
    weight.c = run->grads.joined;
    weight.accumulate = 0;
  }
  ms_compute_product(dit->compute, MSK_PRECISION_F32, &weight);
  if (dit->config.coordinate_features)
    add_joined(dit, run->grads.joined, grad);
}
