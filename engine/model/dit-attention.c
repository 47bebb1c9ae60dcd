/* Self-attention of a layer: dense, in windows, or 3D-DSA, over rows q, k [R] and v in qkv. */
#include <string.h>

#include "model/dit-private.h"

static struct msk_attention dense(const struct ms_dit *dit, const struct dit_run *run, int64_t queries) {
  int64_t dim = dit->config.dim;
  return (struct msk_attention){
      .queries = queries,
      .keys = run->tokens,
      .heads = dit->config.heads,
      .head_dim = dim / dit->config.heads,
      .scale = dit->attention_scale,
      .q_ld = run->qk_ld,
      .k_ld = run->qk_ld,
      .v_ld = 3 * dim,
      .o_ld = dim,
  };
}

struct msk_slide ms_dit_slide(const struct ms_dit *dit, const struct dit_run *run, int layer) {
  const struct ms_attention_config *attention = &run->attention[layer];
  int64_t dim = dit->config.dim;
  struct msk_slide p = {
      .heads = dit->config.heads,
      .head_dim = dim / dit->config.heads,
      .groups = attention->groups,
      .mode = attention->mode,
      .scale = dit->attention_scale,
      .q_ld = run->qk_ld,
      .k_ld = run->qk_ld,
      .v_ld = 3 * dim,
      .o_ld = dim,
      .z_ld = ms_dit_offset_width(dit, run, layer),
  };
  for (int i = 0; i < 3; i++) {
    p.lattice[i] = run->lattice[i];
    p.window[i] = attention->window[i] < run->lattice[i] ? attention->window[i] : run->lattice[i];
    p.bounds[i] = attention->bounds[i];
  }
  return p;
}

/* Cuts an axis into windows: starts[i], the last one followed by the axis's length. A shifted axis begins
 * with half a window; that is the cyclic shift with its mask of Video Swin (Liu et al. 2022), since masked
 * parts never see each other. */
static int64_t cut_axis(int64_t length, int64_t window, int shifted, int64_t i) {
  int64_t shift = shifted && window < length ? window / 2 : 0,
          at = shift ? shift + (i - 1) * window : i * window;
  if (i == 0)
    return 0;
  return at < length ? at : length;
}

static void fill_windows(const struct dit_run *run, const struct ms_attention_config *attention, int shifted,
                         struct dit_window *window) {
  const int *n = run->lattice, *size = attention->window;
  int64_t *row = window->rows;
  window->count = 0;
  for (int64_t a = 0, t0; (t0 = cut_axis(n[0], size[0], shifted, a)) < n[0]; a++)
    for (int64_t b = 0, y0; (y0 = cut_axis(n[1], size[1], shifted, b)) < n[1]; b++)
      for (int64_t c = 0, x0; (x0 = cut_axis(n[2], size[2], shifted, c)) < n[2]; c++) {
        int64_t t1 = cut_axis(n[0], size[0], shifted, a + 1), y1 = cut_axis(n[1], size[1], shifted, b + 1);
        int64_t x1 = cut_axis(n[2], size[2], shifted, c + 1);
        window->starts[window->count++] = row - window->rows;
        for (int64_t t = t0; t < t1; t++)
          for (int64_t y = y0; y < y1; y++)
            for (int64_t x = x0; x < x1; x++)
              *row++ = (t * n[1] + y) * n[2] + x;
      }
  window->starts[window->count] = row - window->rows;
}

/* Keys of the largest window. */
static int64_t window_keys(const struct dit_run *run, const struct ms_attention_config *attention) {
  int64_t keys = 1;
  for (int i = 0; i < 3; i++)
    keys *= attention->window[i] < run->lattice[i] ? attention->window[i] : run->lattice[i];
  return keys;
}

static size_t aligned(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

size_t ms_dit_attention_bytes(const struct ms_dit *dit, const struct dit_run *run, int layer) {
  if (run->attention[layer].kind == MS_ATTENTION_DENSE) {
    struct msk_attention p = dense(dit, run, run->tokens);
    return dit->compute->attention[dit->precision].pack_bytes(&p) * (size_t)run->samples * (size_t)p.heads;
  }
  if (run->attention[layer].kind == MS_ATTENTION_DSA) {
    struct msk_slide p = ms_dit_slide(dit, run, layer);
    return dit->compute->slide[dit->precision].pack_bytes(&p) * (size_t)run->samples * (size_t)p.groups;
  }
  return 0;
}

static size_t largest(size_t a, size_t b) {
  return a > b ? a : b;
}

size_t ms_dit_attention_scratch(const struct ms_dit *dit, const struct dit_run *run, int layer) {
  const struct msk_attention_ops *ops = &dit->compute->attention[dit->precision];
  struct msk_attention p = dense(dit, run, run->blocks.rows), cross = p;
  size_t need;
  cross.keys = dit->config.text_len;
  need = ops->forward_scratch(&cross);
  cross.queries = run->tokens;
  if (run->keep)
    need = largest(need, ops->backward_scratch(&cross));
  if (run->attention[layer].kind == MS_ATTENTION_DSA) {
    const struct msk_slide_ops *slide = &dit->compute->slide[dit->precision];
    struct msk_slide s = ms_dit_slide(dit, run, layer);
    struct msk_depthwise conv = {.c = dit->config.dim};
    memcpy(conv.lattice, s.lattice, sizeof s.lattice);
    need = largest(need, slide->forward_scratch(&s));
    if (run->keep)
      need = largest(need, slide->backward_scratch(&s));
    return largest(need, dit->compute->conv.depthwise_scratch(&conv));
  }
  if (run->attention[layer].kind == MS_ATTENTION_WINDOW) {
    p.queries = p.keys = window_keys(run, &run->attention[layer]);
    need = largest(need, aligned(ops->pack_bytes(&p)) + ops->forward_scratch(&p));
  } else {
    need = largest(need, ops->forward_scratch(&p));
    p.queries = p.keys;
  }
  return run->keep ? largest(need, ops->backward_scratch(&p)) : need;
}

/* Points p at rows from `row` on, keys at the sample that begins at `first`. */
static void aim(const struct ms_dit *dit, struct msk_attention *p, const struct dit_acts *acts, int64_t row,
                int64_t first) {
  int64_t dim = dit->config.dim;
  p->q = acts->q + row * dit->run.qk_ld;
  p->k = acts->k + first * dit->run.qk_ld;
  p->v = acts->qkv + first * 3 * dim + 2 * dim;
}

static void pack_dense(struct ms_dit *dit, const struct dit_acts *acts, int64_t sample, int64_t head) {
  const struct msk_attention_ops *ops = &dit->compute->attention[dit->precision];
  struct msk_attention p = dense(dit, &dit->run, dit->run.tokens);
  int64_t first = sample * dit->run.tokens;
  aim(dit, &p, acts, first, first);
  ops->pack(&p, head, dit->run.packed + (size_t)(sample * p.heads + head) * ops->pack_bytes(&p));
}

static void aim_slide(const struct ms_dit *dit, struct msk_slide *p, const struct dit_acts *acts,
                      int64_t first) {
  int64_t dim = dit->config.dim;
  p->q = acts->q + first * dit->run.qk_ld;
  p->k = acts->k + first * dit->run.qk_ld;
  p->v = acts->qkv + first * 3 * dim + 2 * dim;
}

static void pack_slide(struct ms_dit *dit, int layer, const struct dit_acts *acts, int64_t sample,
                       int64_t group) {
  const struct msk_slide_ops *ops = &dit->compute->slide[dit->precision];
  struct msk_slide p = ms_dit_slide(dit, &dit->run, layer);
  aim_slide(dit, &p, acts, sample * dit->run.tokens);
  ops->pack(&p, group, dit->run.packed + (size_t)(sample * p.groups + group) * ops->pack_bytes(&p));
}

static void aim_window(const struct ms_dit *dit, struct msk_attention *p, const struct dit_acts *acts,
                       int64_t sample, int64_t i) {
  const struct dit_window *windows = &dit->run.window;
  int64_t first = sample * dit->run.tokens, dim = dit->config.dim;
  aim(dit, p, acts, first, first);
  p->queries = p->keys = windows->starts[i + 1] - windows->starts[i];
  p->q_rows = p->k_rows = windows->rows + windows->starts[i];
  p->o = acts->attended + first * dim;
  p->lse = acts->lse ? acts->lse + first * p->heads : NULL;
}

static void window_whole(struct ms_dit *dit, const struct dit_acts *acts, int64_t sample, int64_t window,
                         void *scratch) {
  const struct msk_attention_ops *ops = &dit->compute->attention[dit->precision];
  struct msk_attention p = dense(dit, &dit->run, 0);
  size_t bytes;
  aim_window(dit, &p, acts, sample, window);
  bytes = aligned(ops->pack_bytes(&p));
  for (int64_t head = 0; head < p.heads; head++) {
    ops->pack(&p, head, scratch);
    p.packed = (char *)scratch -
               (size_t)head * ops->pack_bytes(&p); /* forward looks for its head in a list of all */
    ops->forward(&p, head, 0, p.queries, (char *)scratch + bytes);
  }
}

void ms_dit_attention_prepare(struct ms_dit *dit, int layer) {
  struct dit_run *run = &dit->run;
  if (run->attention[layer].kind == MS_ATTENTION_WINDOW)
    fill_windows(run, &run->attention[layer], layer & 1, &run->window);
}

int64_t ms_dit_attention_parts(const struct ms_dit *dit, int layer) {
  const struct ms_attention_config *attention = &dit->run.attention[layer];
  switch (attention->kind) {
  case MS_ATTENTION_DSA:
    return attention->groups;
  case MS_ATTENTION_WINDOW:
    return dit->run.window.count;
  default:
    return dit->config.heads;
  }
}

void ms_dit_attention_pack(struct ms_dit *dit, int layer, const struct dit_acts *acts, int64_t sample,
                           int64_t part, void *scratch) {
  switch (dit->run.attention[layer].kind) {
  case MS_ATTENTION_DENSE:
    pack_dense(dit, acts, sample, part);
    break;
  case MS_ATTENTION_DSA:
    if (ms_dit_attention_bytes(dit, &dit->run, layer))
      pack_slide(dit, layer, acts, sample, part);
    break;
  case MS_ATTENTION_WINDOW:
    window_whole(dit, acts, sample, part, scratch);
    break;
  }
}

static void dense_segment(struct ms_dit *dit, const struct dit_acts *acts, const struct dit_block *segment,
                          float *attended, float *lse, void *scratch) {
  const struct msk_attention_ops *ops = &dit->compute->attention[dit->precision];
  struct msk_attention p = dense(dit, &dit->run, segment->rows);
  aim(dit, &p, acts, segment->row, segment->sample * dit->run.tokens);
  p.packed = dit->run.packed + (size_t)segment->sample * (size_t)p.heads * ops->pack_bytes(&p);
  p.o = attended;
  p.lse = lse;
  for (int64_t head = 0; head < p.heads; head++)
    ops->forward(&p, head, 0, p.queries, scratch);
}

static void slide_segment(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                          const struct dit_block *segment, const float *z, float *attended, float *lse,
                          void *scratch) {
  const struct msk_slide_ops *ops = &dit->compute->slide[dit->precision];
  struct msk_slide p = ms_dit_slide(dit, &dit->run, layer);
  aim_slide(dit, &p, acts, segment->sample * dit->run.tokens);
  p.packed = dit->run.packed + (size_t)segment->sample * (size_t)p.groups * ops->pack_bytes(&p);
  p.z = z - segment->token * p.z_ld;
  p.o = attended - segment->token * p.o_ld;
  p.lse = lse ? lse - segment->token * p.heads : NULL;
  for (int64_t group = 0; group < p.groups; group++)
    ops->forward(&p, group, segment->token, segment->token + segment->rows, scratch);
}

void ms_dit_attention_block(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                            const struct dit_block *block, const float *z, float *attended, float *lse,
                            void *scratch) {
  struct dit_run *run = &dit->run;
  for (int i = 0; i < block->samples; i++) {
    struct dit_block segment = ms_dit_segment_at(run, block, i);
    int64_t at = segment.row - block->row;
    float *o = attended + at * dit->config.dim, *l = lse ? lse + at * dit->config.heads : NULL;
    if (run->attention[layer].kind == MS_ATTENTION_DENSE)
      dense_segment(dit, acts, &segment, o, l, scratch);
    else if (run->attention[layer].kind == MS_ATTENTION_DSA)
      slide_segment(dit, layer, acts, &segment, z + at * ms_dit_offset_width(dit, run, layer), o, l, scratch);
  }
}

static void aim_gradients(const struct ms_dit *dit, struct msk_attention *p, const struct dit_grads *grads,
                          int64_t first) {
  int64_t dim = dit->config.dim;
  p->d_o = grads->dattended + first * dim;
  p->d_o_ld = dim;
  p->dq = grads->dqkv + first * 3 * dim;
  p->dk = p->dq + dim;
  p->dv = p->dk + dim;
  p->dq_ld = p->dk_ld = p->dv_ld = 3 * dim;
}

static void dense_backward(struct ms_dit *dit, const struct dit_acts *acts, const struct dit_grads *grads,
                           int64_t sample, int64_t head, void *scratch) {
  struct msk_attention p = dense(dit, &dit->run, dit->run.tokens);
  int64_t first = sample * dit->run.tokens;
  aim(dit, &p, acts, first, first);
  p.o = acts->attended + first * dit->config.dim;
  p.lse = acts->lse + first * p.heads;
  aim_gradients(dit, &p, grads, first);
  dit->compute->attention[dit->precision].backward(&p, head, scratch);
}

static void window_backward(struct ms_dit *dit, const struct dit_acts *acts, const struct dit_grads *grads,
                            int64_t sample, int64_t window, void *scratch) {
  struct msk_attention p = dense(dit, &dit->run, 0);
  aim_window(dit, &p, acts, sample, window);
  aim_gradients(dit, &p, grads, sample * dit->run.tokens);
  for (int64_t head = 0; head < p.heads; head++)
    dit->compute->attention[dit->precision].backward(&p, head, scratch);
}

static void slide_backward(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                           const struct dit_grads *grads, int64_t sample, int64_t group, void *scratch) {
  struct msk_slide p = ms_dit_slide(dit, &dit->run, layer);
  int64_t first = sample * dit->run.tokens, dim = dit->config.dim, width = dim / p.groups,
          column = group * width;
  aim_slide(dit, &p, acts, first);
  p.z = acts->z_cut + first * p.z_ld;
  p.o = acts->attended + first * dim;
  p.lse = acts->lse + first * p.heads;
  p.d_o = grads->dattended + first * dim;
  p.d_o_ld = dim;
  p.dq = grads->dqkv + first * 3 * dim;
  p.dk = p.dq + dim;
  p.dv = p.dk + dim;
  p.dq_ld = p.dk_ld = p.dv_ld = 3 * dim;
  p.dz = grads->dz_cut + first * p.z_ld;
  p.dz_ld = p.z_ld;
  for (int64_t i = 0; i < dit->run.tokens; i++) {
    memset(p.dk + i * 3 * dim + column, 0, (size_t)width * sizeof(float));
    memset(p.dv + i * 3 * dim + column, 0, (size_t)width * sizeof(float));
  }
  dit->compute->slide[dit->precision].backward(&p, group, 0, dit->run.tokens, scratch);
}

void ms_dit_attention_backward(struct ms_dit *dit, int layer, const struct dit_acts *acts,
                               const struct dit_grads *grads, int64_t sample, int64_t part, void *scratch) {
  switch (dit->run.attention[layer].kind) {
  case MS_ATTENTION_DENSE:
    dense_backward(dit, acts, grads, sample, part, scratch);
    break;
  case MS_ATTENTION_DSA:
    slide_backward(dit, layer, acts, grads, sample, part, scratch);
    break;
  case MS_ATTENTION_WINDOW:
    window_backward(dit, acts, grads, sample, part, scratch);
    break;
  }
}
