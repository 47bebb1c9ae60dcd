#include "model/dit.h"

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

static int open_adapters(struct ms_dit *dit, struct ms_error *error) {
  struct ms_dit_config *c = &dit->config;
  int widest = c->ffn > c->dim ? c->ffn : c->dim;
  widest = c->lora_rank > widest ? c->lora_rank : widest;
  if (c->lora_alpha == 0)
    c->lora_alpha = (float)c->lora_rank;
  dit->lora_scale = c->lora_alpha / (float)c->lora_rank;
  dit->lora_scales = malloc((size_t)widest * sizeof *dit->lora_scales);
  if (!dit->lora_scales)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a model");
  for (int i = 0; i < widest; i++)
    dit->lora_scales[i] = dit->lora_scale;
  return 0;
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
  pairs = config->dim / config->heads / 2;
  dit->pairs[1] = dit->pairs[2] = pairs / 3;
  dit->pairs[0] = pairs - 2 * (pairs / 3);
  dit->attention_scale = (float)(1 / sqrt((double)config->dim / config->heads));
  if (config->lora_rank > 0 && (code = open_adapters(dit, error)) < 0)
    goto fail;
  if ((code = ms_dit_list_params(dit, error)) < 0)
    goto fail;
  place_sums(dit);
  ms_dit_each_matrix(dit, count_matrix, &matrices);
  dit->pack_list = calloc((size_t)matrices * 2, sizeof *dit->pack_list);
  if (config->lora_rank > 0)
    dit->adapter_list = calloc((size_t)matrices * MS_DIT_PARTS * 3, sizeof *dit->adapter_list);
  if (!dit->pack_list || (config->lora_rank > 0 && !dit->adapter_list)) {
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
  ms_arena_release(&dit->run.arena);
  ms_params_release(&dit->params);
  free(dit->vectors);
  free(dit->vector_store);
  ms_arena_release(&dit->packed);
  free(dit->pack_list);
  free(dit->adapter_list);
  free(dit->lora_scales);
  free(dit->each);
  free(dit);
}

struct ms_params *ms_dit_params(struct ms_dit *dit) {
  return &dit->params;
}

const struct ms_dit_config *ms_dit_config(const struct ms_dit *dit) {
  return &dit->config;
}

void ms_dit_offset_means(const struct ms_dit *dit, float *out) {
  memcpy(out, dit->offset_means, (size_t)dit->config.layers * sizeof *out);
}

/* Activations of `count` batches, with the layers' inputs or without them. A text in a slot is counted once a
 * batch. */
static size_t bytes_of(const struct ms_dit *dit, const struct ms_dit_batch *batch, int count, int training,
                       int lent) {
  struct dit_run *run = calloc(1, sizeof *run);
  struct dit_text slot = {.samples = batch->samples};
  struct ms_arena measure = {0}, slots = {0};
  size_t kernels, bytes;
  if (!run)
    return 0;
  ms_dit_shape(dit, batch, count, training, run);
  run->lent = lent;
  run->own_text = training || batch->text_slot <= 0;
  ms_dit_layout(dit, run, &measure);
  if (!run->own_text)
    ms_dit_slot_layout(dit, &slot, &slots);
  bytes = measure.peak + (size_t)count * slots.peak;
  bytes += (size_t)ms_pool_threads(dit->compute->pool) * ms_dit_scratch_bytes(dit, run, &kernels);
  free(run);
  return bytes;
}

size_t ms_dit_activation_bytes(const struct ms_dit *dit, const struct ms_dit_batch *batch, int training) {
  return bytes_of(dit, batch, 1, training, 0);
}

size_t ms_dit_working_bytes(const struct ms_dit *dit, const struct ms_dit_batch *batch, int count,
                            int training) {
  return bytes_of(dit, batch, count, training, 1);
}

size_t ms_dit_input_bytes(const struct ms_dit *dit, const struct ms_dit_batch *batch, int count) {
  size_t floats = (size_t)count * (size_t)batch->samples * (size_t)dit->config.dim;
  for (int i = 0; i < 3; i++)
    floats *= (size_t)(batch->lattice[i] / dit->config.patch[i]);
  return floats * sizeof(float);
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
