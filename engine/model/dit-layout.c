/* Shapes of a call, its partition into blocks, and where its buffers are. */
#include <string.h>

#include "model/dit-private.h"

/* Rows of a block. In training the partition decides how gradients are summed, so it must not know the threads. */
#define TRAINING_ROWS 128
#define MOST_ROWS 256
#define FEWEST_ROWS 64

enum msk_type ms_dit_low_type(const struct ms_dit *dit) {
  return dit->precision == MSK_PRECISION_BF16 ? MSK_BF16 : MSK_F32;
}

void ms_dit_partition(struct dit_partition *p, int samples, const int lattice[3], int64_t target) {
  int64_t lines = (int64_t)lattice[0] * lattice[1], width = lattice[2], tokens = lines * width;
  memset(p, 0, sizeof *p);
  p->segments = samples;
  if (tokens <= target) {
    p->samples = (int)(target / tokens < samples ? target / tokens : samples);
    p->lines = lines;
    p->per_sample = 1;
    p->blocks = (samples + p->samples - 1) / p->samples;
    p->rows = p->samples * tokens;
    return;
  }
  p->samples = 1;
  p->lines = target / width > 1 ? target / width : 1;
  p->per_sample = (lines + p->lines - 1) / p->lines;
  p->lines = (lines + p->per_sample - 1) / p->per_sample; /* as even as lines allow */
  p->per_sample = (lines + p->lines - 1) / p->lines;
  p->blocks = p->segments = p->per_sample * samples;
  p->rows = p->lines * width;
}

struct dit_block ms_dit_block_at(const struct dit_run *run, int64_t i) {
  const struct dit_partition *p = &run->blocks;
  struct dit_block block = {.samples = p->samples};
  if (p->per_sample > 1) {
    int64_t left;
    block.sample = (int)(i / p->per_sample);
    block.token = i % p->per_sample * p->rows;
    left = run->tokens - block.token;
    block.rows = left < p->rows ? left : p->rows;
    block.segment = i;
  } else {
    block.sample = (int)(i * p->samples);
    if (block.samples > run->samples - block.sample)
      block.samples = run->samples - block.sample;
    block.rows = block.samples * run->tokens;
    block.segment = block.sample;
  }
  block.row = block.sample * run->tokens + block.token;
  return block;
}

struct dit_block ms_dit_segment_at(const struct dit_run *run, const struct dit_block *block, int i) {
  struct dit_block segment = *block;
  if (block->samples == 1)
    return segment;
  segment.samples = 1;
  segment.sample += i;
  segment.segment += i;
  segment.row += i * run->tokens;
  segment.rows = run->tokens;
  return segment;
}

void ms_dit_shape(const struct ms_dit *dit, const struct ms_dit_batch *batch, int keep, struct dit_run *run) {
  int64_t target = TRAINING_ROWS;
  run->samples = batch->samples;
  run->coarse = batch->coarse;
  run->keep = keep;
  run->tokens = 1;
  for (int i = 0; i < 3; i++) {
    run->latent[i] = batch->lattice[i];
    run->lattice[i] = batch->lattice[i] / dit->config.patch[i];
    run->tokens *= run->lattice[i];
  }
  run->rows = run->tokens * run->samples;
  run->text_rows = (int64_t)run->samples * dit->config.text_len;
  run->attention = batch->coarse ? dit->config.coarse_attention : dit->config.attention;
  if (!keep) {
    target = run->rows / (3 * ms_pool_threads(dit->compute->pool));
    target = target > MOST_ROWS ? MOST_ROWS : target < FEWEST_ROWS ? FEWEST_ROWS : target;
  }
  ms_dit_partition(&run->blocks, run->samples, run->lattice, target);
}

static void *take(struct ms_arena *arena, int64_t elements, enum msk_type type) {
  return ms_arena_take(arena, (size_t)elements * msk_type_size(type));
}

/* Widest offsets of a layer, asked and cut. 0: no 3D-DSA in this call. */
static int64_t widest_offsets(const struct ms_dit *dit, const struct dit_run *run, int cut) {
  int64_t widest = 0;
  for (int i = 0; i < dit->config.layers; i++) {
    int64_t width = 0;
    if (run->attention[i].kind == MS_ATTENTION_DSA)
      width = cut ? ms_dit_offset_width(dit, run, i) : dit->layers[i].offset_out.n;
    if (width > widest)
      widest = width;
  }
  return widest;
}

static int has_windows(const struct ms_dit *dit, const struct dit_run *run) {
  for (int i = 0; i < dit->config.layers; i++)
    if (run->attention[i].kind == MS_ATTENTION_WINDOW)
      return 1;
  return 0;
}

static void layout_time(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena) {
  const struct ms_dit_config *c = &dit->config;
  struct dit_time *time = &run->time;
  int64_t s = run->samples, dim = c->dim;
  time->sinusoid = ms_arena_take_f32(arena, s * c->freq_dim);
  time->first_raw = ms_arena_take_f32(arena, s * dim);
  time->first = ms_arena_take_f32(arena, s * dim);
  time->e = ms_arena_take_f32(arena, s * dim);
  time->e_act = ms_arena_take_f32(arena, s * dim);
  time->e0 = ms_arena_take_f32(arena, s * 6 * dim);
  time->pooled_text = ms_arena_take_f32(arena, s * c->text_dim);
  time->pooled_raw = ms_arena_take_f32(arena, s * dim);
  time->pooled = ms_arena_take_f32(arena, s * dim);
  time->modulation = ms_arena_take_f32(arena, c->layers * s * 6 * dim);
  time->head = ms_arena_take_f32(arena, s * 2 * dim);
  if (!run->keep)
    return;
  time->de = ms_arena_take_f32(arena, s * dim);
  time->dhidden = ms_arena_take_f32(arena, s * dim);
  time->dpooled = ms_arena_take_f32(arena, s * c->text_dim);
  time->dhead = ms_arena_take_f32(arena, s * 2 * dim);
}

static void layout_windows(struct dit_run *run, struct ms_arena *arena) {
  int64_t most = 1;
  for (int i = 0; i < 3; i++)
    most *= run->lattice[i] + 1;
  run->window.rows = ms_arena_take(arena, (size_t)run->tokens * sizeof(int64_t));
  run->window.starts = ms_arena_take(arena, (size_t)(most + 1) * sizeof(int64_t));
  run->window.count = 0;
}

static void layout_acts(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena) {
  struct dit_acts *a = &run->acts;
  enum msk_type low = ms_dit_low_type(dit);
  int64_t rows = run->rows, rc = rows * dit->config.dim, rf = rows * dit->config.ffn;
  int64_t width = widest_offsets(dit, run, 0), cut = widest_offsets(dit, run, 1);
  memset(a, 0, sizeof *a);
  a->qkv = ms_arena_take_f32(arena, 3 * rc);
  a->q = a->qkv;
  a->qk_ld = 3 * (int64_t)dit->config.dim;
  if (width || run->keep)
    a->u = take(arena, rc, width ? MSK_F32 : low);
  if (has_windows(dit, run) || run->keep)
    a->attended = ms_arena_take_f32(arena, rc);
  if (run->keep) {
    float **const per_row[] = {&a->mean1, &a->rstd1, &a->rstd_q, &a->rstd_k, &a->mean3, &a->rstd3, &a->rstd_cross, &a->mean2, &a->rstd2,
                               &a->conv_mean, &a->conv_rstd};
    float **const wide[] = {&a->projected, &a->x1, &a->cross_raw, &a->cross_q, &a->crossed, &a->x2, &a->mlp};
    for (size_t i = 0; i < sizeof per_row / sizeof *per_row; i++)
      *per_row[i] = ms_arena_take_f32(arena, rows);
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++)
      *wide[i] = ms_arena_take_f32(arena, rc);
    a->q = ms_arena_take_f32(arena, 2 * rc);
    a->qk_ld = 2 * (int64_t)dit->config.dim;
    a->lse = ms_arena_take_f32(arena, rows * dit->config.heads);
    a->cross_lse = ms_arena_take_f32(arena, rows * dit->config.heads);
    a->normed3 = take(arena, rc, low);
    a->modulated2 = take(arena, rc, low);
    a->hidden_raw = take(arena, rf, low);
    a->hidden = take(arena, rf, low);
    if (width) {
      a->conv = ms_arena_take_f32(arena, rc);
      a->normed = ms_arena_take_f32(arena, rc);
      a->offset_low = take(arena, rc, low);
      a->z = ms_arena_take_f32(arena, rows * width);
      a->z_cut = ms_arena_take_f32(arena, rows * cut);
    }
  }
  a->k = a->q ? a->q + dit->config.dim : NULL;
}

/* Packed transposed activations: all of a layer's weight gradients at once, or one of the outer matrices. */
static size_t packed_bytes(const struct ms_dit *dit, const struct dit_run *run) {
  const struct ms_dit_config *c = &dit->config;
  size_t layer = 6 * ((ms_dit_pack_bytes(dit, dit->precision, c->dim, run->rows) + 63) / 64 * 64) +
                 (ms_dit_pack_bytes(dit, dit->precision, c->ffn, run->rows) + 63) / 64 * 64;
  const struct dit_matrix *const outer[] = {&dit->patch, &dit->head, &dit->text0, &dit->text2, &dit->time0, &dit->time2, &dit->pooled0,
                                            &dit->pooled2, &dit->projection};
  for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
    int64_t rows = i < 2 ? run->rows : i < 4 ? run->text_rows : run->samples;
    size_t bytes = ms_dit_pack_bytes(dit, outer[i]->exact ? MSK_PRECISION_F32 : dit->precision, outer[i]->k, rows);
    if (bytes > layer)
      layer = bytes;
  }
  return layer;
}

static void layout_grads(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena) {
  const struct ms_dit_config *c = &dit->config;
  struct dit_grads *g = &run->grads;
  int64_t rows = run->rows, rc = rows * c->dim, width = widest_offsets(dit, run, 0);
  /* the head and the embedding work in these too: [R,patch_out], [R,patch.k] */
  int64_t hidden = c->ffn, outer = dit->patch_out > dit->patch.k ? dit->patch_out : dit->patch.k;
  memset(g, 0, sizeof *g);
  if (!run->keep)
    return;
  g->dx[0] = ms_arena_take_f32(arena, rc);
  g->dx[1] = ms_arena_take_f32(arena, rc);
  g->dmlp = ms_arena_take_f32(arena, rc);
  g->dhidden = ms_arena_take_f32(arena, rows * (hidden > outer ? hidden : outer));
  g->dcrossed = ms_arena_take_f32(arena, rc);
  g->dcross_q = ms_arena_take_f32(arena, rc);
  g->dprojected = ms_arena_take_f32(arena, rc);
  g->dattended = ms_arena_take_f32(arena, rc);
  g->dqkv = ms_arena_take_f32(arena, 3 * rc);
  if (width) {
    g->du = ms_arena_take_f32(arena, rc);
    g->dconv = ms_arena_take_f32(arena, rc);
    g->dz = ms_arena_take_f32(arena, rows * width);
    g->dz_cut = ms_arena_take_f32(arena, rows * widest_offsets(dit, run, 1));
  }
  g->head_mean = ms_arena_take_f32(arena, rows);
  g->head_rstd = ms_arena_take_f32(arena, rows);
  g->block_sums = ms_arena_take_f32(arena, run->blocks.blocks * dit->sums.total);
  g->segment_sums = ms_arena_take_f32(arena, run->blocks.segments * 6 * c->dim);
  g->text_sums =
    ms_arena_take_f32(arena, c->layers * ((run->text_rows + MS_DIT_TEXT_ROWS - 1) / MS_DIT_TEXT_ROWS) * c->dim);
  g->dtext = ms_arena_take_f32(arena, run->text_rows * c->text_dim);
  g->joined = ms_arena_take_f32(arena, dit->config.coordinate_features ? c->dim * dit->patch.k : 1);
  g->dkv = ms_arena_take_f32(arena, c->layers * run->text_rows * 2 * c->dim);
  g->dtime = ms_arena_take_f32(arena, (int64_t)run->samples * 6 * c->dim);
  g->dcontext = ms_arena_take_f32(arena, run->text_rows * c->dim);
  g->packed = ms_arena_take(arena, packed_bytes(dit, run));
}

void ms_dit_layout(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena) {
  size_t packed = 0;
  arena->used = arena->peak = 0;
  run->saved = ms_arena_take_f32(arena, (run->keep ? dit->config.layers + 1 : 1) * run->rows * dit->config.dim);
  layout_time(dit, run, arena);
  for (int i = 0; i < 3; i++)
    run->rope[i] = ms_arena_take_f32(arena, (int64_t)run->lattice[i] * dit->pairs[i] * 2);
  run->places = ms_arena_take_f32(arena, dit->config.coordinate_features ? run->tokens * 15 : 1);
  run->offset_sum = ms_arena_take(arena, (size_t)run->blocks.blocks * sizeof(double));
  if (has_windows(dit, run))
    layout_windows(run, arena);
  layout_acts(dit, run, arena);
  layout_grads(dit, run, arena);
  for (int i = 0; i < dit->config.layers; i++) {
    size_t bytes = ms_dit_attention_bytes(dit, run, i);
    if (bytes > packed)
      packed = bytes;
  }
  run->packed = ms_arena_take(arena, packed);
}

static size_t largest(size_t a, size_t b) {
  return a > b ? a : b;
}

/* What one task may need: kernels' scratch, and the block's own buffers behind it. */
size_t ms_dit_scratch_bytes(const struct ms_dit *dit, const struct dit_run *run, size_t *kernels) {
  const struct ms_dit_config *c = &dit->config;
  int64_t m = run->blocks.rows, dim = c->dim, width = widest_offsets(dit, run, 0);
  const int64_t shapes[][2] = {{3 * dim, dim}, {dim, 3 * dim}, {dim, dim}, {2 * dim, dim}, {dim, 2 * dim}, {c->ffn, dim}, {dim, c->ffn},
                               {width, dim},   {dim, width}};
  const int64_t exact[][2] = {{dim, dit->patch.k}, {dit->patch.k, dim}, {dit->patch_out, dim}, {dim, dit->patch_out}};
  size_t need = 0;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (shapes[i][0] && shapes[i][1])
      need = largest(need, ms_dit_product_scratch(dit, dit->precision, m, shapes[i][0], shapes[i][1]));
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
    need = largest(need, ms_dit_product_scratch(dit, MSK_PRECISION_F32, m, exact[i][0], exact[i][1]));
  for (int i = 0; i < c->layers; i++)
    need = largest(need, ms_dit_attention_scratch(dit, run, i));
  *kernels = (need + 63) / 64 * 64;
  /* six buffers of the width, the MLP's hidden rows, offsets asked and cut, a patch; and rounding of each */
  return *kernels + (size_t)m * (size_t)(6 * dim + c->ffn + 2 * width + dit->patch_out + dit->patch.k + 8) * sizeof(float) + 4096;
}

struct dit_scratch ms_dit_scratch(const struct ms_dit *dit, const struct dit_run *run, void *scratch) {
  struct dit_scratch s = {.kernels = scratch, .next = (unsigned char *)scratch + run->kernel_scratch};
  return s;
}

void *ms_dit_take(struct dit_scratch *scratch, int64_t elements, enum msk_type type) {
  void *at = scratch->next;
  scratch->next += ((size_t)elements * msk_type_size(type) + 63) / 64 * 64;
  return at;
}

static int check_batch(const struct ms_dit *dit, const struct ms_dit_batch *batch, struct ms_error *error) {
  const struct ms_dit_config *c = &dit->config;
  double elements = batch->samples;
  if (batch->samples < 1)
    return ms_error_set(error, MS_EUSAGE, "a batch of %d samples", batch->samples);
  for (int i = 0; i < 3; i++) {
    if (batch->lattice[i] < 1 || batch->lattice[i] % c->patch[i])
      return ms_error_set(error, MS_EUSAGE, "a lattice of %dx%dx%d does not divide into patches of %dx%dx%d", batch->lattice[0],
                          batch->lattice[1], batch->lattice[2], c->patch[0], c->patch[1], c->patch[2]);
    elements *= batch->lattice[i];
  }
  if (elements * (c->dim + c->ffn) > 0x1p50)
    return ms_error_set(error, MS_EUSAGE, "a lattice of %dx%dx%d is beyond all memory", batch->lattice[0], batch->lattice[1],
                        batch->lattice[2]);
  for (int s = 0; s < batch->samples; s++)
    if (batch->text_rows[s] < 0 || batch->text_rows[s] > c->text_len)
      return ms_error_set(error, MS_EUSAGE, "a text of %d rows where the model sees at most %d", batch->text_rows[s], c->text_len);
  return 0;
}

int ms_dit_begin(struct ms_dit *dit, const struct ms_dit_batch *batch, int keep, struct ms_error *error) {
  struct dit_run *run = &dit->run;
  struct ms_arena measure = {0};
  size_t scratch;
  int code = check_batch(dit, batch, error);
  if (code < 0)
    return code;
  ms_dit_shape(dit, batch, keep, run);
  ms_dit_layout(dit, run, &measure);
  if (measure.peak > run->arena.size) {
    ms_arena_release(&run->arena);
    if ((code = ms_arena_open(&run->arena, measure.peak, error)) < 0)
      return code;
  }
  ms_dit_layout(dit, run, &run->arena);
  scratch = ms_dit_scratch_bytes(dit, run, &run->kernel_scratch);
  if (ms_pool_reserve(dit->compute->pool, scratch) < 0)
    return ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for each thread", (double)scratch / 1048576);
  atomic_store(&run->bad, 0);
  return 0;
}
