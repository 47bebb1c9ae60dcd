/* The DiT's parameters: what a configuration may be, their names and starts, and the matrices made of them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/dit-private.h"

int64_t ms_dit_window_points(const struct ms_attention_config *attention) {
  return (int64_t)attention->window[0] * attention->window[1] * attention->window[2];
}

const struct ms_attention_config *ms_dit_offset_attention(const struct ms_dit_config *config, int layer) {
  if (config->attention[layer].kind == MS_ATTENTION_DSA)
    return &config->attention[layer];
  return config->coarse_attention[layer].kind == MS_ATTENTION_DSA ? &config->coarse_attention[layer] : NULL;
}

static int check_attention(const struct ms_dit_config *config, const struct ms_attention_config *attention,
                           int layer, struct ms_error *error) {
  if (attention->kind == MS_ATTENTION_DENSE)
    return 0;
  for (int i = 0; i < 3; i++)
    if (attention->window[i] < 1 || attention->window[i] > 1024)
      return ms_error_set(error, MS_EUSAGE, "attention window of layer %d of %d: %d is not a size", layer + 1,
                          config->layers, attention->window[i]);
  if (attention->kind == MS_ATTENTION_WINDOW)
    return 0;
  if (ms_dit_window_points(attention) > 4096)
    return ms_error_set(error, MS_EUSAGE, "attention window of layer %d of %d has more than 4096 points",
                        layer + 1, config->layers);
  if (attention->groups < 1 || config->heads % attention->groups)
    return ms_error_set(error, MS_EUSAGE, "layer %d of %d: %d offset groups do not divide %d heads",
                        layer + 1, config->layers, attention->groups, config->heads);
  for (int i = 0; i < 3; i++)
    if (!(attention->bounds[i] > 0) || !isfinite(attention->bounds[i]))
      return ms_error_set(error, MS_EUSAGE, "layer %d of %d: offset bounds must be above 0", layer + 1,
                          config->layers);
  return 0;
}

int ms_dit_check_config(const struct ms_dit_config *config, struct ms_error *error) {
  const int sizes[] = {config->dim,         config->ffn,          config->heads,    config->layers,
                       config->in_channels, config->out_channels, config->patch[0], config->patch[1],
                       config->patch[2],    config->text_dim,     config->text_len, config->freq_dim};
  int head_dim, code;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (sizes[i] < 1 || sizes[i] > 1 << 20)
      return ms_error_set(error, MS_EUSAGE, "a size of the model is %d", sizes[i]);
  if (config->layers > MS_MAX_LAYERS)
    return ms_error_set(error, MS_EUSAGE, "%d layers are more than %d", config->layers, MS_MAX_LAYERS);
  if (config->dim % config->heads)
    return ms_error_set(error, MS_EUSAGE, "%d heads do not divide a width of %d", config->heads, config->dim);
  head_dim = config->dim / config->heads;
  if (head_dim % 8 || head_dim > 256)
    return ms_error_set(error, MS_EUSAGE, "%d channels a head: a multiple of 8, at most 256, is possible",
                        head_dim);
  if (config->freq_dim % 2)
    return ms_error_set(error, MS_EUSAGE, "freq_dim %d is odd", config->freq_dim);
  if (!(config->eps >= 0) || !isfinite(config->eps))
    return ms_error_set(error, MS_EUSAGE, "eps is not a number of 0 or more");
  if (config->lora_rank < 0 || config->lora_rank > 4096)
    return ms_error_set(error, MS_EUSAGE, "adapters of rank %d: 1 to 4096 are possible", config->lora_rank);
  if (!(config->lora_alpha >= 0) || !isfinite(config->lora_alpha))
    return ms_error_set(error, MS_EUSAGE, "alpha of the adapters is not a number of 0 or more");
  for (int i = 0; i < config->layers; i++) {
    const struct ms_attention_config *a = &config->attention[i], *b = &config->coarse_attention[i];
    if ((code = check_attention(config, a, i, error)) < 0 ||
        (code = check_attention(config, b, i, error)) < 0)
      return code;
    if (a->kind == MS_ATTENTION_DSA && b->kind == MS_ATTENTION_DSA &&
        (a->mode != b->mode || a->groups != b->groups || memcmp(a->window, b->window, sizeof a->window)))
      return ms_error_set(
          error, MS_EUSAGE,
          "layer %d of %d: attention and coarse attention share offsets and need the same window", i + 1,
          config->layers);
  }
  return 0;
}

/* Adds parameters; remembers whether one failed. */
struct list {
  struct ms_params *params;
  int layer, failed;
};

static int add(struct list *list, const char *name, int ndim, const int64_t *dims, enum ms_param_kind kind,
               enum ms_param_start start, double scale) {
  char full[128]; /* ms_params_add keeps 95 */
  struct ms_param *param;
  int i;
  if (list->layer >= 0)
    snprintf(full, sizeof full, "blocks.%d.%s", list->layer, name);
  else
    snprintf(full, sizeof full, "%s", name);
  i = ms_params_add(list->params, full, ndim, dims);
  if (i < 0) {
    list->failed = 1;
    return 0;
  }
  param = &list->params->list[i];
  param->layer = list->layer;
  param->kind = kind;
  param->start = start;
  param->start_scale = (float)scale;
  return i;
}

static int add_vector(struct list *list, const char *name, int64_t n, enum ms_param_start start) {
  return add(list, name, 1, &n, MS_PARAM_VECTOR, start, 1);
}

/* A matrix of `parts` weights [n,k] side by side, then their biases. names: "self_attn.q" and so on. */
static void add_matrix(struct list *list, struct dit_matrix *matrix, const char *const *names, int parts,
                       int64_t n, int64_t k, double scale) {
  const int64_t dims[2] = {n, k};
  char name[80];
  memset(matrix, 0, sizeof *matrix);
  matrix->parts = parts;
  matrix->n = n * parts;
  matrix->k = k;
  for (int i = 0; i < parts; i++) {
    int at;
    snprintf(name, sizeof name, "%s.weight", names[i]);
    at = add(list, name, 2, dims, MS_PARAM_MATRIX, scale > 0 ? MS_START_FAN_IN : MS_START_ZERO, scale);
    if (i == 0)
      matrix->weight = at;
  }
  for (int i = 0; i < parts; i++) {
    int at;
    snprintf(name, sizeof name, "%s.bias", names[i]);
    at = add_vector(list, name, n, MS_START_ZERO);
    if (i == 0)
      matrix->bias = at;
  }
}

static void add_one(struct list *list, struct dit_matrix *matrix, const char *name, int64_t n, int64_t k,
                    double scale) {
  add_matrix(list, matrix, &name, 1, n, k, scale);
}

static void add_adapters(struct list *list, struct dit_matrix *matrix, const char *const *names, int rank) {
  const int64_t a[2] = {rank, matrix->k}, b[2] = {matrix->n / matrix->parts, rank};
  char name[80];
  for (int i = 0; i < matrix->parts; i++) {
    int at;
    snprintf(name, sizeof name, "%s.lora_A.weight", names[i]);
    at = add(list, name, 2, a, MS_PARAM_MATRIX, MS_START_UNIFORM_FAN_IN, 1);
    if (i == 0)
      matrix->adapters = at;
    snprintf(name, sizeof name, "%s.lora_B.weight", names[i]);
    add(list, name, 2, b, MS_PARAM_MATRIX, MS_START_ZERO, 1);
  }
}

static int add_modulation(struct list *list, const char *name, int64_t rows, int64_t dim) {
  const int64_t dims[3] = {1, rows, dim};
  int i = add(list, name, 3, dims, MS_PARAM_VECTOR, MS_START_NORMAL, 0.02);
  if (rows == 6 && !list->failed)
    list->params->list[i].start_gates = dim;
  return i;
}

static const char *const self[] = {"self_attn.q", "self_attn.k", "self_attn.v"};
static const char *const cross[] = {"cross_attn.k", "cross_attn.v"};

/* The last parameters of a layer: what is trained lies side by side. */
static void add_layer_adapters(struct ms_dit *dit, struct list *list, int i) {
  static const char *const names[] = {"self_attn.o", "cross_attn.q", "cross_attn.o", "ffn.0", "ffn.2"};
  struct dit_layer *layer = &dit->layers[i];
  struct dit_matrix *const single[] = {&layer->out, &layer->cross_q, &layer->cross_out, &layer->up,
                                       &layer->down};
  int rank = dit->config.lora_rank;
  add_adapters(list, &layer->qkv, self, rank);
  add_adapters(list, &layer->cross_kv, cross, rank);
  for (size_t j = 0; j < sizeof single / sizeof *single; j++)
    add_adapters(list, single[j], &names[j], rank);
}

static void add_layer(struct ms_dit *dit, struct list *list, int i) {
  const struct ms_dit_config *c = &dit->config;
  const struct ms_attention_config *offsets = ms_dit_offset_attention(c, i);
  struct dit_layer *layer = &dit->layers[i];
  double branch = 1 / sqrt(3.0 * c->layers); /* three branches a layer add to the residual stream */
  list->layer = i;
  layer->modulation = add_modulation(list, "modulation", 6, c->dim);
  add_matrix(list, &layer->qkv, self, 3, c->dim, c->dim, 1);
  layer->norm_q = add_vector(list, "self_attn.norm_q.weight", c->dim, MS_START_ONE);
  layer->norm_k = add_vector(list, "self_attn.norm_k.weight", c->dim, MS_START_ONE);
  add_one(list, &layer->out, "self_attn.o", c->dim, c->dim, branch);
  layer->norm3_weight = add_vector(list, "norm3.weight", c->dim, MS_START_ONE);
  layer->norm3_bias = add_vector(list, "norm3.bias", c->dim, MS_START_ZERO);
  add_one(list, &layer->cross_q, "cross_attn.q", c->dim, c->dim, 1);
  add_matrix(list, &layer->cross_kv, cross, 2, c->dim, c->dim, 1);
  layer->cross_norm_q = add_vector(list, "cross_attn.norm_q.weight", c->dim, MS_START_ONE);
  layer->cross_norm_k = add_vector(list, "cross_attn.norm_k.weight", c->dim, MS_START_ONE);
  add_one(list, &layer->cross_out, "cross_attn.o", c->dim, c->dim, branch);
  add_one(list, &layer->up, "ffn.0", c->ffn, c->dim, 1);
  add_one(list, &layer->down, "ffn.2", c->dim, c->ffn, branch);
  layer->offsets = offsets != NULL;
  if (offsets) {
    const int64_t conv[5] = {c->dim, 1, 3, 3, 3};
    int64_t points = offsets->mode == MSK_SLIDE_SHIFT ? 1 : ms_dit_window_points(offsets);
    layer->conv_weight =
        add(list, "self_attn.offset.conv.weight", 5, conv, MS_PARAM_MATRIX, MS_START_UNIFORM_FAN_IN, 1);
    layer->conv_bias = add_vector(list, "self_attn.offset.conv.bias", c->dim, MS_START_ZERO);
    if (!list->failed) { /* PyTorch starts this bias as the weight: +-1 / sqrt (fan in), which a vector does
                            not know */
      struct ms_param *bias = &list->params->list[layer->conv_bias];
      bias->start = MS_START_UNIFORM_FAN_IN;
      bias->start_scale = (float)(1 / sqrt(27.0));
    }
    layer->offset_norm_weight = add_vector(list, "self_attn.offset.norm.weight", c->dim, MS_START_ONE);
    layer->offset_norm_bias = add_vector(list, "self_attn.offset.norm.bias", c->dim, MS_START_ZERO);
    add_one(list, &layer->offset_out, "self_attn.offset.out", (int64_t)offsets->groups * points * 3, c->dim,
            0);
  }
  if (c->lora_rank > 0) {
    for (int j = 0; j < list->params->count; j++)
      if (list->params->list[j].layer == i)
        list->params->list[j].kind = MS_PARAM_FROZEN;
    add_layer_adapters(dit, list, i);
  }
}

int ms_dit_list_params(struct ms_dit *dit, struct ms_error *error) {
  const struct ms_dit_config *c = &dit->config;
  struct list list = {.params = &dit->params, .layer = -1};
  const int64_t patch[5] = {c->dim, c->in_channels, c->patch[0], c->patch[1], c->patch[2]},
                places[2] = {c->dim, 15};
  int64_t points = (int64_t)c->patch[0] * c->patch[1] * c->patch[2];
  dit->patch_in = c->in_channels * points;
  dit->patch_out = c->out_channels * points;
  dit->patch_weight = add(&list, "patch_embedding.weight", 5, patch, MS_PARAM_MATRIX, MS_START_FAN_IN, 1);
  dit->patch = (struct dit_matrix){
      .weight = dit->patch_weight, .parts = 1, .n = c->dim, .k = dit->patch_in, .exact = 1};
  dit->patch.bias = add_vector(&list, "patch_embedding.bias", c->dim, MS_START_ZERO);
  if (c->coordinate_features) {
    dit->coordinate_weight =
        add(&list, "coordinate_embedding.weight", 2, places, MS_PARAM_MATRIX, MS_START_FAN_IN, 1);
    dit->patch.k += 15;
  }
  add_one(&list, &dit->text0, "text_embedding.0", c->dim, c->text_dim, 1);
  add_one(&list, &dit->text2, "text_embedding.2", c->dim, c->dim, 1);
  add_one(&list, &dit->time0, "time_embedding.0", c->dim, c->freq_dim, 1);
  add_one(&list, &dit->time2, "time_embedding.2", c->dim, c->dim, 1);
  if (c->pooled_text) {
    add_one(&list, &dit->pooled0, "pooled_embedding.0", c->dim, c->text_dim, 1);
    add_one(&list, &dit->pooled2, "pooled_embedding.2", c->dim, c->dim, 1);
  }
  add_one(&list, &dit->projection, "time_projection.1", 6 * (int64_t)c->dim, c->dim, 0.3);
  /* the head before the blocks: what belongs to no block is one range */
  add_one(&list, &dit->head, "head.head", dit->patch_out, c->dim, 0);
  dit->head_modulation = add_modulation(&list, "head.modulation", 2, c->dim);
  for (int i = 0; i < list.params->count && c->lora_rank > 0; i++)
    list.params->list[i].kind = MS_PARAM_FROZEN;
  for (int i = 0; i < c->layers; i++)
    add_layer(dit, &list, i);
  /* the time path, the first and the last matrix work in float32, as in Wan */
  dit->time0.exact = dit->time2.exact = dit->projection.exact = dit->pooled0.exact = dit->pooled2.exact =
      dit->head.exact = 1;
  if (list.failed)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the list of the model's parameters");
  return 0;
}

int ms_dit_is_trained(const struct ms_dit *dit, int param) {
  return dit->params.list[param].kind != MS_PARAM_FROZEN;
}

int ms_dit_is_adapter(const struct ms_dit *dit, int param) {
  return dit->config.lora_rank > 0 && strstr(dit->params.list[param].name, ".lora_") != NULL;
}

int ms_dit_is_outer_trained(const struct ms_dit *dit) {
  int first, end;
  ms_dit_shard_params(dit, -1, &first, &end);
  for (int i = first; i < end; i++)
    if (ms_dit_is_trained(dit, i))
      return 1;
  return 0;
}

void ms_dit_shard_params(const struct ms_dit *dit, int shard, int *first, int *end) {
  *first = shard < 0 ? 0 : dit->layers[shard].modulation;
  *end = shard + 1 < dit->config.layers ? dit->layers[shard + 1].modulation : dit->params.count;
}

void ms_dit_shard_range(const struct ms_dit *dit, int shard, int64_t *begin, int64_t *count) {
  int first, end;
  ms_dit_shard_params(dit, shard, &first, &end);
  *begin = dit->params.list[first].offset;
  *count = (end < dit->params.count ? dit->params.list[end].offset : dit->params.total) - *begin;
}

void ms_dit_shard_matrices(struct ms_dit *dit, int shard, dit_matrix_fn fn, void *data) {
  struct dit_layer *layer = shard < 0 ? NULL : &dit->layers[shard];
  if (!layer) {
    struct dit_matrix *const outer[] = {&dit->patch, &dit->text0,      &dit->text2, &dit->time0,
                                        &dit->time2, &dit->projection, &dit->head};
    for (size_t i = 0; i < sizeof outer / sizeof *outer; i++)
      fn(dit, outer[i], data);
    if (dit->config.pooled_text) {
      fn(dit, &dit->pooled0, data);
      fn(dit, &dit->pooled2, data);
    }
  } else {
    struct dit_matrix *const inner[] = {&layer->qkv,       &layer->out, &layer->cross_q, &layer->cross_kv,
                                        &layer->cross_out, &layer->up,  &layer->down};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
      fn(dit, inner[i], data);
    if (layer->offsets)
      fn(dit, &layer->offset_out, data);
  }
}

void ms_dit_each_matrix(struct ms_dit *dit, dit_matrix_fn fn, void *data) {
  for (int shard = -1; shard < dit->config.layers; shard++)
    ms_dit_shard_matrices(dit, shard, fn, data);
}
