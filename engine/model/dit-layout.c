/* Shapes of a call, its partition into blocks, and where its buffers are. */
#include <stdlib.h>
#include <string.h>

#include "model/dit-private.h"

/* Rows of a block. In training the partition decides how gradients are summed, so it must not know the
 * threads. */
#define TRAINING_ROWS 96
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
    p->samples = (int)((samples + p->blocks - 1) / p->blocks); /* as even as samples allow */
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

void ms_dit_shape(const struct ms_dit *dit, const struct ms_dit_batch *batch, int count, int keep,
                  struct dit_run *run) {
  int64_t target = TRAINING_ROWS;
  run->samples = batch->samples;
  run->count = count;
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
  run->whole = run->blocks.per_sample == 1;
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

static void layout_time(const struct ms_dit *dit, const struct dit_run *run, struct dit_time *time,
                        struct ms_arena *arena) {
  const struct ms_dit_config *c = &dit->config;
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
  time->head = ms_arena_take_f32(arena, s * 2 * dim);
  if (run->keep)
    time->dhead = ms_arena_take_f32(arena, s * 2 * dim);
}

/* What is every batch's own, and the parts of that which all work in after each other. */
static void layout_batches(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena) {
  const struct ms_dit_config *c = &dit->config;
  int64_t s = run->samples, dim = c->dim;
  struct dit_batch_run shared = {
      .text = {.slot = -1, .samples = run->samples, .training = run->keep, .held = 1}};
  shared.time.modulation = ms_arena_take_f32(arena, s * 6 * dim);
  if (run->keep) {
    shared.time.de = ms_arena_take_f32(arena, s * dim);
    shared.time.dhidden = ms_arena_take_f32(arena, s * dim);
    shared.time.dpooled = ms_arena_take_f32(arena, s * c->text_dim);
  }
  if (run->own_text)
    ms_dit_keys_layout(dit, &shared.text, arena);
  for (int i = 0; i < run->count; i++) {
    struct dit_batch_run own = shared;
    layout_time(dit, run, &own.time, arena);
    if (run->own_text)
      ms_dit_context_layout(dit, &own.text, arena);
    if (run->keep) {
      own.dx = ms_arena_take_f32(arena, run->rows * dim);
      own.dtime = ms_arena_take_f32(arena, s * 6 * dim);
      own.dcontext = ms_arena_take_f32(arena, run->text_rows * dim);
    }
    if (run->each)
      run->each[i] = own;
  }
}

void ms_dit_select(struct ms_dit *dit, int i) {
  const struct dit_batch_run *batch = &dit->run.each[i];
  dit->run.time = batch->time;
  dit->run.grads.dtime = batch->dtime;
  dit->run.grads.dcontext = batch->dcontext;
}

static void layout_windows(struct dit_run *run, struct ms_arena *arena) {
  int64_t most = 1;
  for (int i = 0; i < 3; i++)
    most *= run->lattice[i] + 1;
  run->window.rows = ms_arena_take(arena, (size_t)run->tokens * sizeof(int64_t));
  run->window.starts = ms_arena_take(arena, (size_t)(most + 1) * sizeof(int64_t));
  run->window.count = 0;
}

/* Activations that a backward pass reads. */
struct field {
  void **at;
  int64_t width;
  enum msk_type type;
};

#define FIELDS 40

/* Lists what a layer's backward pass needs of its forward pass: operands of the weights' gradients, or the
 * rest. width, cut: floats of z a token, of all points and of those that exist; 0: not wanted. */
static int list_acts(const struct ms_dit *dit, struct dit_acts *a, int64_t width, int64_t cut, int operand,
                     struct field *list) {
  enum msk_type low = ms_dit_low_type(dit);
  int64_t dim = dit->config.dim, ffn = dit->config.ffn, heads = dit->config.heads;
  const struct field operands[] = {{&a->u, dim, width ? MSK_F32 : low},
                                   {(void **)&a->attended, dim, MSK_F32},
                                   {&a->normed3, dim, low},
                                   {(void **)&a->crossed, dim, MSK_F32},
                                   {&a->modulated2, dim, low},
                                   {&a->hidden, ffn, low},
                                   {&a->offset_low, width ? dim : 0, low}};
  const struct field rest[] = {{(void **)&a->qkv, 3 * dim, MSK_F32},
                               {(void **)&a->q, 2 * dim, MSK_F32},
                               {(void **)&a->lse, heads, MSK_F32},
                               {(void **)&a->projected, dim, MSK_F32},
                               {(void **)&a->x1, dim, MSK_F32},
                               {(void **)&a->cross_raw, dim, MSK_F32},
                               {(void **)&a->cross_q, dim, MSK_F32},
                               {(void **)&a->cross_lse, heads, MSK_F32},
                               {(void **)&a->mean1, 1, MSK_F32},
                               {(void **)&a->rstd1, 1, MSK_F32},
                               {(void **)&a->rstd_q, 1, MSK_F32},
                               {(void **)&a->rstd_k, 1, MSK_F32},
                               {(void **)&a->mean3, 1, MSK_F32},
                               {(void **)&a->rstd3, 1, MSK_F32},
                               {(void **)&a->rstd_cross, 1, MSK_F32},
                               {(void **)&a->conv, width ? dim : 0, MSK_F32},
                               {(void **)&a->normed, width ? dim : 0, MSK_F32},
                               {(void **)&a->conv_mean, width ? 1 : 0, MSK_F32},
                               {(void **)&a->conv_rstd, width ? 1 : 0, MSK_F32},
                               {(void **)&a->z, width, MSK_F32},
                               {(void **)&a->z_cut, cut, MSK_F32}};
  const struct field *from = operand ? operands : rest;
  int count = operand ? (int)(sizeof operands / sizeof *operands) : (int)(sizeof rest / sizeof *rest);
  memcpy(list, from, (size_t)count * sizeof *list);
  return count;
}

/* Used by one block between its mix and its feed_back alone. */
static int list_brief(const struct ms_dit *dit, struct dit_acts *a, struct field *list) {
  const struct field brief[] = {{(void **)&a->x2, dit->config.dim, MSK_F32},
                                {(void **)&a->mean2, 1, MSK_F32},
                                {(void **)&a->rstd2, 1, MSK_F32},
                                {&a->hidden_raw, dit->config.ffn, ms_dit_low_type(dit)},
                                {(void **)&a->mlp, dit->config.dim, MSK_F32}};
  memcpy(list, brief, sizeof brief);
  return (int)(sizeof brief / sizeof *brief);
}

static int list_grads(const struct ms_dit *dit, struct dit_grads *g, int64_t width, int64_t cut,
                      struct field *list) {
  int64_t dim = dit->config.dim;
  const struct field rest[] = {{(void **)&g->dcrossed, dim, MSK_F32},
                               {(void **)&g->dattended, dim, MSK_F32},
                               {(void **)&g->du, width ? dim : 0, MSK_F32},
                               {(void **)&g->dz_cut, cut, MSK_F32}};
  memcpy(list, rest, sizeof rest);
  return (int)(sizeof rest / sizeof *rest);
}

static void take_fields(struct ms_arena *arena, const struct field *list, int count, int64_t rows) {
  for (int i = 0; i < count; i++)
    *list[i].at = list[i].width ? take(arena, rows * list[i].width, list[i].type) : NULL;
}

static void layout_acts(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena) {
  struct dit_acts *a = &run->acts;
  struct field list[FIELDS];
  int64_t rows = run->rows, rc = rows * dit->config.dim;
  int64_t width = widest_offsets(dit, run, 0), cut = widest_offsets(dit, run, 1);
  memset(a, 0, sizeof *a);
  if (run->keep)
    take_fields(arena, list, list_acts(dit, a, width, cut, 1, list), rows);
  if (run->whole)
    return;
  if (run->keep) {
    take_fields(arena, list, list_acts(dit, a, width, cut, 0, list), rows);
    return;
  }
  a->qkv = ms_arena_take_f32(arena, 3 * rc);
  if (width)
    a->u = ms_arena_take_f32(arena, rc);
  if (has_windows(dit, run))
    a->attended = ms_arena_take_f32(arena, rc);
}

/* Fields that are NULL, from a block's scratch, moved back by the rows before the block. */
static void own_fields(struct dit_scratch *scratch, const struct field *list, int count,
                       const struct dit_block *block) {
  for (int i = 0; i < count; i++)
    if (list[i].width && !*list[i].at)
      *list[i].at = (char *)ms_dit_take(scratch, block->rows * list[i].width, list[i].type) -
                    (size_t)(block->row * list[i].width) * msk_type_size(list[i].type);
}

void ms_dit_localize_forward(const struct ms_dit *dit, int layer, const struct dit_block *block,
                             struct dit_acts *a, struct dit_scratch *scratch) {
  int64_t dim = dit->config.dim;
  enum ms_attention_kind kind = dit->run.attention[layer].kind;
  const struct field list[] = {{(void **)&a->qkv, 3 * dim, MSK_F32},
                               {&a->u, kind == MS_ATTENTION_DSA ? dim : 0, MSK_F32},
                               {(void **)&a->attended, kind == MS_ATTENTION_WINDOW ? dim : 0, MSK_F32}};
  own_fields(scratch, list, 3, block);
  a->q = a->qkv;
  a->k = a->qkv + dim;
}

void ms_dit_localize_backward(const struct ms_dit *dit, int layer, const struct dit_block *block,
                              struct dit_acts *a, struct dit_grads *g, struct dit_scratch *scratch) {
  struct field list[FIELDS];
  int64_t width = 0, cut = 0;
  if (dit->run.attention[layer].kind == MS_ATTENTION_DSA) {
    width = dit->layers[layer].offset_out.n;
    cut = ms_dit_offset_width(dit, &dit->run, layer);
  }
  own_fields(scratch, list, list_acts(dit, a, width, cut == width ? 0 : cut, 0, list), block);
  own_fields(scratch, list, list_brief(dit, a, list), block);
  own_fields(scratch, list, list_grads(dit, g, width, cut == width ? 0 : cut, list), block);
  a->k = a->q + dit->config.dim;
  if (cut == width) {
    a->z_cut = a->z;
    g->dz_cut = g->dz;
  }
}

/* Packed transposed activations: all of a layer's weight gradients at once, or one of the outer matrices.
 * adapters: floats of grads.adapters. */
static size_t packed_bytes(const struct ms_dit *dit, const struct dit_run *run, int64_t *adapters) {
  size_t layer;
  const struct dit_matrix *const outer[] = {&dit->patch,   &dit->head,    &dit->text0,
                                            &dit->text2,   &dit->time0,   &dit->time2,
                                            &dit->pooled0, &dit->pooled2, &dit->projection};
  ms_dit_gradient_room(dit, run, &layer, adapters);
  for (size_t i = 0; i < sizeof outer / sizeof *outer; i++) {
    int64_t rows = i < 2 ? run->rows : i < 4 ? run->text_rows : run->samples;
    size_t bytes =
        ms_dit_pack_bytes(dit, outer[i]->exact ? MSK_PRECISION_F32 : dit->precision, outer[i]->k, rows);
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
  struct field list[FIELDS];
  int64_t adapters;
  size_t packed;
  memset(g, 0, sizeof *g);
  if (!run->keep)
    return;
  g->spare = ms_arena_take_f32(arena, rc);
  g->dmlp = ms_arena_take_f32(arena, rc);
  g->dhidden = ms_arena_take_f32(arena, rows * (hidden > outer ? hidden : outer));
  g->dcross_q = ms_arena_take_f32(arena, rc);
  g->dprojected = ms_arena_take_f32(arena, rc);
  g->dqkv = ms_arena_take_f32(arena, 3 * rc);
  if (width) {
    g->dconv = ms_arena_take_f32(arena, rc);
    g->dz = ms_arena_take_f32(arena, rows * width);
  }
  if (!run->whole)
    take_fields(arena, list, list_grads(dit, g, width, widest_offsets(dit, run, 1), list), rows);
  g->head_mean = ms_arena_take_f32(arena, rows);
  g->head_rstd = ms_arena_take_f32(arena, rows);
  g->block_sums = ms_arena_take_f32(arena, run->blocks.blocks * dit->sums.total);
  g->segment_sums = ms_arena_take_f32(arena, run->blocks.segments * 6 * c->dim);
  g->text_sums =
      ms_arena_take_f32(arena, (run->text_rows + MS_DIT_TEXT_ROWS - 1) / MS_DIT_TEXT_ROWS * 3 * c->dim);
  g->dtext = ms_arena_take_f32(arena, run->text_rows * c->text_dim);
  g->joined = ms_arena_take_f32(arena, dit->config.coordinate_features ? c->dim * dit->patch.k : 1);
  g->dkv = ms_arena_take_f32(arena, run->text_rows * 2 * c->dim);
  packed = packed_bytes(dit, run, &adapters);
  g->packed = ms_arena_take(arena, packed);
  g->adapters = ms_arena_take_f32(arena, adapters);
}

void ms_dit_layout(const struct ms_dit *dit, struct dit_run *run, struct ms_arena *arena) {
  size_t packed = 0;
  arena->used = arena->peak = 0;
  run->saved = NULL;
  if (!run->lent)
    run->saved = ms_arena_take_f32(arena, (run->keep ? dit->config.layers + 1 : 1) * run->count * run->rows *
                                              dit->config.dim);
  layout_batches(dit, run, arena);
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

/* Floats of a row that a block takes from its scratch at most. Stages of inference follow each other in the
 * same memory. */
static int64_t own_floats(const struct ms_dit *dit, const struct dit_run *run, int64_t width) {
  int64_t dim = dit->config.dim, stages = 6 * dim + dit->config.ffn + 2 * width,
          patches = dit->patch.k + dit->patch_out;
  if (!run->keep)
    return stages + patches + (run->whole ? 5 * dim : 0) + 8;
  /* what localize takes beyond that: x2, mlp, hidden_raw; for whole samples everything */
  stages += 2 * dim + dit->config.ffn + 2;
  return stages + patches + (run->whole ? 16 * dim + 3 * width + 2 * dit->config.heads : 0) + 24;
}

/* What one task may need: kernels' scratch, and the block's own buffers behind it. */
size_t ms_dit_scratch_bytes(const struct ms_dit *dit, const struct dit_run *run, size_t *kernels) {
  const struct ms_dit_config *c = &dit->config;
  int64_t m = run->blocks.rows, dim = c->dim, width = widest_offsets(dit, run, 0);
  const int64_t shapes[][2] = {{3 * dim, dim}, {dim, 3 * dim}, {dim, dim},   {2 * dim, dim}, {dim, 2 * dim},
                               {c->ffn, dim},  {dim, c->ffn},  {width, dim}, {dim, width}};
  const int64_t exact[][2] = {
      {dim, dit->patch.k}, {dit->patch.k, dim}, {dit->patch_out, dim}, {dim, dit->patch_out}};
  size_t need = 0, all, merge = ms_dit_merge_scratch(dit);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    if (shapes[i][0] && shapes[i][1])
      need = largest(need, ms_dit_product_scratch(dit, dit->precision, m, shapes[i][0], shapes[i][1]));
  for (size_t i = 0; i < sizeof exact / sizeof *exact; i++)
    need = largest(need, ms_dit_product_scratch(dit, MSK_PRECISION_F32, m, exact[i][0], exact[i][1]));
  for (int i = 0; i < c->layers; i++)
    need = largest(need, ms_dit_attention_scratch(dit, run, i));
  *kernels = (need + 63) / 64 * 64;
  all = *kernels + (size_t)m * (size_t)own_floats(dit, run, width) * sizeof(float) + 4096;
  return largest(all, merge); /* layers are packed between tasks */
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
      return ms_error_set(error, MS_EUSAGE, "a lattice of %dx%dx%d does not divide into patches of %dx%dx%d",
                          batch->lattice[0], batch->lattice[1], batch->lattice[2], c->patch[0], c->patch[1],
                          c->patch[2]);
    elements *= batch->lattice[i];
  }
  if (elements * (c->dim + c->ffn) > 0x1p50)
    return ms_error_set(error, MS_EUSAGE, "a lattice of %dx%dx%d is beyond all memory", batch->lattice[0],
                        batch->lattice[1], batch->lattice[2]);
  for (int s = 0; s < batch->samples; s++)
    if (batch->text_rows[s] < 0 || batch->text_rows[s] > c->text_len)
      return ms_error_set(error, MS_EUSAGE, "a text of %d rows where the model sees at most %d",
                          batch->text_rows[s], c->text_len);
  return 0;
}

int ms_dit_check_batches(const struct ms_dit *dit, const struct ms_dit_batch *batches, int count,
                         struct ms_error *error) {
  for (int i = 0; i < count; i++) {
    int code = check_batch(dit, &batches[i], error);
    if (code < 0)
      return code;
    if (batches[i].samples != batches->samples || !batches[i].coarse != !batches->coarse ||
        memcmp(batches[i].lattice, batches->lattice, sizeof batches->lattice))
      return ms_error_set(error, MS_EUSAGE, "batches of one pass differ in their shape");
  }
  return count < 1 ? ms_error_set(error, MS_EUSAGE, "a pass over %d batches", count) : 0;
}

static int make_room(struct ms_dit *dit, int count, struct ms_error *error) {
  if (count > dit->each_room) {
    free(dit->each);
    dit->each_room = 0;
    dit->each = calloc((size_t)count, sizeof *dit->each);
    if (!dit->each)
      return ms_error_set(error, MS_ENOMEM, "out of memory for %d batches", count);
    dit->each_room = count;
  }
  dit->run.each = dit->each;
  return 0;
}

int ms_dit_begin(struct ms_dit *dit, const struct ms_dit_batch *batches, int count, int keep, int lent,
                 struct ms_error *error) {
  struct dit_run *run = &dit->run;
  struct ms_arena measure = {0};
  size_t scratch;
  int code = make_room(dit, count, error);
  if (code < 0)
    return code;
  ms_dit_shape(dit, batches, count, keep, run);
  run->lent = lent;
  run->own_text = keep;
  for (int i = 0; i < count; i++)
    run->own_text |= batches[i].text_slot <= 0;
  ms_dit_layout(dit, run, &measure);
  if (measure.peak > run->arena.size) {
    ms_arena_release(&run->arena);
    if ((code = ms_arena_open(&run->arena, measure.peak, error)) < 0)
      return code;
  }
  ms_dit_layout(dit, run, &run->arena);
  scratch = ms_dit_scratch_bytes(dit, run, &run->kernel_scratch);
  if (ms_pool_reserve(dit->compute->pool, scratch) < 0)
    return ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for each thread",
                        (double)scratch / 1048576);
  atomic_store(&run->bad, 0);
  return 0;
}
