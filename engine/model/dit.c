#include "model/dit.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model/dit-private.h"

static void count_matrix(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  ++*(int *)data;
}

/* Places of the small gradients in a block's vector. */
static void place_sums(struct ms_dit *dit) {
  int64_t dim = dit->config.dim, widest = 0, at = 0;
  struct dit_sums *s = &dit->sums;
  const struct {
    int64_t *at, size;
  } places[] = {{&s->qkv_bias, 3 * dim},
                {&s->out_bias, dim},
                {&s->cross_q_bias, dim},
                {&s->cross_out_bias, dim},
                {&s->up_bias, dit->config.ffn},
                {&s->down_bias, dim},
                {&s->norm_q, dim},
                {&s->norm_k, dim},
                {&s->cross_norm_q, dim},
                {&s->norm3_weight, dim},
                {&s->norm3_bias, dim},
                {&s->offset_bias, 0},
                {&s->offset_norm_weight, dim},
                {&s->offset_norm_bias, dim}};
  for (int i = 0; i < dit->config.layers; i++)
    if (dit->layers[i].offsets && dit->layers[i].offset_out.n > widest)
      widest = dit->layers[i].offset_out.n;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    *places[i].at = at;
    at += ((places[i].at == &s->offset_bias ? widest : places[i].size) + 15) / 16 * 16;
  }
  s->total = at;
}

int ms_dit_open(struct ms_dit **out, struct ms_compute *compute, const struct ms_dit_config *config,
                struct ms_error *error) {
  struct ms_dit *dit;
  int matrices = 0, code, pairs;
  *out = NULL;
  if ((code = ms_dit_check_config(config, error)) < 0)
    return code;
  dit = calloc(1, sizeof *dit);
  if (!dit)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a model");
  dit->compute = compute;
  dit->config = *config;
  ms_params_init(&dit->params);
  ms_dit_text_init(&dit->text);
  pairs = config->dim / config->heads / 2;
  dit->pairs[1] = dit->pairs[2] = pairs / 3;
  dit->pairs[0] = pairs - 2 * (pairs / 3);
  dit->attention_scale = (float)(1 / sqrt((double)config->dim / config->heads));
  if ((code = ms_dit_list_params(dit, error)) < 0)
    goto fail;
  place_sums(dit);
  ms_dit_each_matrix(dit, count_matrix, &matrices);
  dit->pack_list = calloc((size_t)matrices * 2, sizeof *dit->pack_list);
  if (!dit->pack_list) {
    code = ms_error_set(error, MS_ENOMEM, "out of memory for a model");
    goto fail;
  }
  *out = dit;
  return 0;
fail:
  ms_dit_close(&dit);
  return code;
}

void ms_dit_close(struct ms_dit **pointer) {
  struct ms_dit *dit = *pointer;
  if (!dit)
    return;
  *pointer = NULL;
  ms_dit_forget_text(dit);
  free(dit->slots);
  ms_dit_text_release(&dit->text);
  ms_arena_release(&dit->run.arena);
  ms_params_release(&dit->params);
  free(dit->vectors);
  free(dit->vector_store);
  ms_arena_release(&dit->packed);
  free(dit->pack_list);
  free(dit);
}

struct ms_params *ms_dit_params(struct ms_dit *dit) {
  return &dit->params;
}

const struct ms_dit_config *ms_dit_config(const struct ms_dit *dit) {
  return &dit->config;
}

/* The layer's view of the buffers: where its input and output are. On the way through (not `recomputed`) only
 * what one stage hands to the next is written; the backward pass computes the layer again. */
static struct dit_acts layer_acts(struct ms_dit *dit, int layer, int recomputed) {
  struct dit_run *run = &dit->run;
  int64_t size = run->rows * dit->config.dim;
  struct dit_acts acts = run->acts;
  if (!recomputed) {
    struct dit_acts lean = {.qkv = acts.qkv, .q = acts.qkv};
    if (!run->whole &&
        run->attention[layer].kind == MS_ATTENTION_DSA) /* the convolution reads beyond a block */
      lean.u = acts.u;
    if (!run->whole && run->attention[layer].kind == MS_ATTENTION_WINDOW)
      lean.attended = acts.attended;
    acts = lean;
  }
  if (acts.q)
    acts.k = acts.q + dit->config.dim;
  acts.x = run->saved + (run->keep ? layer * size : 0);
  acts.y = recomputed ? NULL : run->saved + (run->keep ? (layer + 1) * size : 0);
  if (acts.z && run->attention[layer].kind == MS_ATTENTION_DSA &&
      ms_dit_offset_width(dit, run, layer) == dit->layers[layer].offset_out.n)
    acts.z_cut = acts.z;
  return acts;
}

static int stopped(struct ms_dit *dit, struct ms_error *error) {
  return ms_pool_cancelled(dit->compute->pool) ? ms_error_set(error, MS_ECANCELLED, "cancelled") : 0;
}

static void note_offsets(struct ms_dit *dit, int layer) {
  struct dit_run *run = &dit->run;
  double sum = 0;
  dit->offset_means[layer] = 0;
  if (run->attention[layer].kind != MS_ATTENTION_DSA)
    return;
  for (int64_t i = 0; i < run->blocks.blocks; i++)
    sum += run->offset_sum[i];
  dit->offset_means[layer] = (float)(sum / (double)ms_dit_offset_watched(run));
}

int ms_dit_forward(struct ms_dit *dit, const struct ms_dit_batch *batch, int keep, float *velocity,
                   struct ms_error *error) {
  struct dit_run *run = &dit->run;
  struct dit_text *text = NULL;
  int layers = dit->config.layers, code;
  assert(dit->prepared && (!keep || dit->training));
  run->ready = 0;
  if ((code = ms_dit_begin(dit, batch, keep, error)) < 0 ||
      (code = ms_dit_text_encode(dit, batch, &text, error)) < 0)
    return code;
  ms_dit_fill_tables(dit);
  ms_dit_time(dit, batch);
  ms_dit_embed(dit, batch->latents, run->saved);
  for (int i = 0; i < layers; i++) {
    struct dit_acts acts = layer_acts(dit, i, 0);
    if ((code = stopped(dit, error)) < 0)
      return code;
    ms_dit_layer_forward(dit, i, text, &acts);
    note_offsets(dit, i);
    if (atomic_load(&run->bad) && !stopped(dit, NULL))
      return ms_error_set(error, MS_ENOTFINITE,
                          "a value that is not finite came out of layer %d of %d of the transformer", i + 1,
                          layers);
    if (batch->layer_done)
      batch->layer_done(batch->layer_data, i);
  }
  ms_dit_head(dit, run->saved + (keep ? layers * run->rows * dit->config.dim : 0), velocity);
  if ((code = stopped(dit, error)) < 0)
    return code;
  if (atomic_load(&run->bad))
    return ms_error_set(error, MS_ENOTFINITE,
                        "a value that is not finite came out of the last matrix of the transformer");
  run->ready = keep;
  return 0;
}

/* The head's shift and scale: sums over each sample's segments. */
static void sum_head(struct ms_dit *dit) {
  struct dit_run *run = &dit->run;
  int64_t dim = dit->config.dim, each = run->blocks.per_sample;
  memset(run->time.dhead, 0, (size_t)(run->samples * 2 * dim) * sizeof(float));
  for (int64_t i = 0; i < run->samples; i++)
    dit->compute->norm.column_sum(run->grads.segment_sums + i * each * 6 * dim, 6 * dim, 2 * dim, each,
                                  run->time.dhead + i * 2 * dim);
}

int ms_dit_backward(struct ms_dit *dit, const struct ms_dit_batch *batch, const float *dvelocity, float *grad,
                    float *dlatents, float *const *dtext, struct ms_error *error) {
  struct dit_run *run = &dit->run;
  int layers = dit->config.layers, current = 0, code;
  int64_t size = run->rows * dit->config.dim;
  if (!run->ready || batch->samples != run->samples ||
      memcmp(batch->lattice, run->latent, sizeof run->latent))
    return ms_error_set(error, MS_EUSAGE, "a backward pass needs a forward pass of the same batch before it");
  run->ready = 0;
  memset(run->grads.dtime, 0, (size_t)(run->samples * 6 * dit->config.dim) * sizeof(float));
  ms_dit_head_backward(dit, run->saved + layers * size, dvelocity, run->grads.dx[current], grad);
  sum_head(dit);
  for (int i = layers - 1; i >= 0; i--) {
    struct dit_acts acts = layer_acts(dit, i, 1);
    if ((code = stopped(dit, error)) < 0)
      return code;
    ms_dit_layer_backward(dit, i, &dit->text, &acts, current, grad);
    current = !current;
  }
  ms_dit_embed_backward(dit, batch->latents, run->grads.dx[current], grad, dlatents);
  ms_dit_text_backward(dit, batch, grad, dtext);
  ms_dit_time_backward(dit, batch, run->time.dhead, grad, dtext);
  return stopped(dit, error);
}

void ms_dit_offset_means(const struct ms_dit *dit, float *out) {
  memcpy(out, dit->offset_means, (size_t)dit->config.layers * sizeof *out);
}

size_t ms_dit_activation_bytes(const struct ms_dit *dit, const struct ms_dit_batch *batch, int training) {
  struct dit_run *run = calloc(1, sizeof *run);
  struct dit_text text = {.samples = batch->samples, .training = training};
  struct ms_arena measure = {0}, text_measure = {0};
  size_t kernels, bytes;
  if (!run)
    return 0;
  ms_dit_shape(dit, batch, training, run);
  ms_dit_layout(dit, run, &measure);
  ms_dit_text_layout(dit, &text, &text_measure);
  bytes = measure.peak + text_measure.peak;
  bytes += (size_t)ms_pool_threads(dit->compute->pool) * ms_dit_scratch_bytes(dit, run, &kernels);
  free(run);
  return bytes;
}

/* Multiply-adds of self-attention for all tokens. A window or slide sees only what the lattice has. */
static double attention_work(const struct ms_dit *dit, const struct ms_attention_config *attention,
                             const int lattice[3]) {
  double tokens = 1, keys = 1, dim = dit->config.dim;
  for (int i = 0; i < 3; i++) {
    tokens *= lattice[i];
    keys *= attention->kind == MS_ATTENTION_DENSE || attention->window[i] > lattice[i] ? lattice[i]
                                                                                       : attention->window[i];
  }
  if (attention->kind == MS_ATTENTION_DSA) /* and the offset head */
    return tokens * dim *
           (2 * keys + 27 + (attention->mode == MSK_SLIDE_POINT ? 3 * keys : 3) * attention->groups);
  return 2 * tokens * keys * dim;
}

double ms_dit_attention_flops(const struct ms_dit *dit, const int lattice[3], int coarse,
                              enum ms_attention_kind kind) {
  const struct ms_dit_config *c = &dit->config;
  int size[3] = {lattice[0] / c->patch[0], lattice[1] / c->patch[1], lattice[2] / c->patch[2]};
  double work = 0;
  for (int i = 0; i < c->layers; i++) {
    const struct ms_attention_config *attention = coarse ? &c->coarse_attention[i] : &c->attention[i];
    if (attention->kind == kind)
      work += attention_work(dit, attention, size);
  }
  return 2 * work;
}

double ms_dit_forward_flops(const struct ms_dit *dit, const int lattice[3], int coarse) {
  const struct ms_dit_config *c = &dit->config;
  int size[3];
  double tokens = 1, dim = c->dim, text = c->text_len, work;
  for (int i = 0; i < 3; i++) {
    size[i] = lattice[i] / c->patch[i];
    tokens *= size[i];
  }
  work = tokens * dim * (double)(dit->patch.k + dit->patch_out);
  work += text * dim * (c->text_dim + dim) + dim * (c->freq_dim + dim + 6 * dim);
  if (c->pooled_text)
    work += dim * (c->text_dim + dim);
  for (int i = 0; i < c->layers; i++)
    work += tokens * dim * (6 * dim + 2.0 * c->ffn) + text * 2 * dim * dim + 2 * tokens * text * dim +
            attention_work(dit, coarse ? &c->coarse_attention[i] : &c->attention[i], size);
  return 2 * work;
}
