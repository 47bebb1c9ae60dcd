#include "model/text.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/text-net.h"

#define MAX_WIDTH 65536
#define MAX_LAYERS 256
/* Deviations of fresh embeddings: words differ more than places. */
#define START_WORD 0.5f
#define START_PLACE 0.1f

static int read_number(const json_t *config, const char *key, int64_t fallback, int64_t high, int64_t *out,
                       struct ms_error *error) {
  const json_t *item = json_object_get(config, key);
  *out = item ? json_integer_value(item) : fallback;
  if (item && (!json_is_integer(item) || *out < 1 || *out > high))
    return ms_error_set(error, MS_EINPUT, "\"text.%s\" must be a whole number from 1 to %lld", key,
                        (long long)high);
  return 0;
}

static int read_config(struct ms_text *text, const json_t *config, struct ms_error *error) {
  const json_t *kind = json_object_get(config, "kind");
  int64_t layers;
  int result;
  if (!json_is_object(config))
    return ms_error_set(error, MS_EINPUT, "\"text\" is missing or not an object");
  if (kind && (!json_is_string(kind) || strcmp(json_string_value(kind), "words")))
    return ms_error_set(error, MS_EINPUT, "\"text.kind\" must be \"words\"");
  if ((result = read_number(config, "dim", 128, MAX_WIDTH, &text->dim, error)) < 0 ||
      (result = read_number(config, "ffn", 2 * text->dim, MAX_WIDTH, &text->ffn, error)) < 0 ||
      (result = read_number(config, "heads", 4, 1024, &text->heads, error)) < 0 ||
      (result = read_number(config, "layers", 2, MAX_LAYERS, &layers, error)) < 0)
    return result;
  if (text->dim % text->heads || text->dim / text->heads % 8 || text->dim / text->heads > 256)
    return ms_error_set(error, MS_EINPUT,
                        "\"text.dim\" %lld over \"text.heads\" %lld must be a multiple of 8 and at most 256",
                        (long long)text->dim, (long long)text->heads);
  text->layer_count = (int)layers;
  return ms_tokenizer_open(&text->tokenizer, config, error);
}

int ms_text_linear_list(struct ms_text_linear *linear, struct ms_params *params, const char *name,
                        int64_t out, int64_t in, int bias) {
  char full[96];
  int64_t dims[2] = {out, in};
  linear->in = in;
  linear->out = out;
  linear->bias = -1;
  snprintf(full, sizeof full, "%s.weight", name);
  linear->weight = ms_params_add(params, full, 2, dims);
  if (linear->weight < 0)
    return linear->weight;
  params->list[linear->weight].start = MS_START_FAN_IN;
  if (bias) {
    snprintf(full, sizeof full, "%s.bias", name);
    linear->bias = ms_params_add(params, full, 1, &out);
  }
  return bias && linear->bias < 0 ? linear->bias : 0;
}

static int list_norm(struct ms_text_norm *norm, struct ms_params *params, const char *name, int64_t dim) {
  char full[96];
  snprintf(full, sizeof full, "%s.weight", name);
  norm->weight = ms_params_add(params, full, 1, &dim);
  snprintf(full, sizeof full, "%s.bias", name);
  norm->bias = ms_params_add(params, full, 1, &dim);
  if (norm->weight < 0 || norm->bias < 0)
    return MS_ENOMEM;
  params->list[norm->weight].start = MS_START_ONE;
  return 0;
}

static int list_table(struct ms_params *params, const char *name, int64_t rows, int64_t dim, float start) {
  int64_t dims[2] = {rows, dim};
  int index = ms_params_add(params, name, 2, dims);
  if (index < 0)
    return index;
  params->list[index].kind = MS_PARAM_VECTOR; /* a table, not a matrix: no decay */
  params->list[index].start = MS_START_NORMAL;
  params->list[index].start_scale = start;
  return index;
}

static int list_parameters(struct ms_text *text) {
  struct ms_params *params = &text->params;
  int bad = 0;
  text->embedding = list_table(params, "embedding.weight", text->tokenizer.vocabulary, text->dim, START_WORD);
  text->position = list_table(params, "position.weight", text->tokenizer.length, text->dim, START_PLACE);
  bad |= text->embedding < 0 || text->position < 0;
  for (int i = 0; i < text->layer_count; i++) {
    struct ms_text_layer *layer = &text->layers[i];
    int first = params->count;
    char name[64];
    snprintf(name, sizeof name, "layers.%d.norm1", i);
    bad |= list_norm(&layer->norm1, params, name, text->dim);
    snprintf(name, sizeof name, "layers.%d.attention.qkv", i);
    bad |= ms_text_linear_list(&layer->qkv, params, name, 3 * text->dim, text->dim, 1);
    snprintf(name, sizeof name, "layers.%d.attention.o", i);
    bad |= ms_text_linear_list(&layer->o, params, name, text->dim, text->dim, 1);
    snprintf(name, sizeof name, "layers.%d.norm2", i);
    bad |= list_norm(&layer->norm2, params, name, text->dim);
    snprintf(name, sizeof name, "layers.%d.mlp.0", i);
    bad |= ms_text_linear_list(&layer->fc1, params, name, text->ffn, text->dim, 1);
    snprintf(name, sizeof name, "layers.%d.mlp.2", i);
    bad |= ms_text_linear_list(&layer->fc2, params, name, text->dim, text->ffn, 1);
    for (int p = first; p < params->count; p++)
      params->list[p].layer = i;
  }
  bad |= list_norm(&text->norm, params, "norm", text->dim);
  return bad;
}

int ms_text_open(struct ms_text **out, struct ms_compute *compute, const json_t *config,
                 struct ms_error *error) {
  struct ms_text *text = calloc(1, sizeof *text);
  int result;
  *out = NULL;
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory while opening the text encoder");
  text->compute = compute;
  ms_params_init(&text->params);
  if ((result = read_config(text, config, error)) < 0)
    goto fail;
  text->layers = calloc((size_t)text->layer_count, sizeof *text->layers);
  if (!text->layers || list_parameters(text)) {
    result = ms_error_set(error, MS_ENOMEM, "out of memory while opening the text encoder");
    goto fail;
  }
  *out = text;
  return 0;
fail:
  ms_text_close(&text);
  return result;
}

static void release_norm(struct ms_text_norm *norm) {
  free(norm->factors);
  free(norm->offsets);
  norm->factors = norm->offsets = NULL;
}

void ms_text_linear_release(struct ms_text_linear *linear) {
  free(linear->offsets);
  free(linear->forward);
  free(linear->backward);
  linear->offsets = NULL;
  linear->forward = linear->backward = NULL;
}

static void release_packed(struct ms_text *text) {
  for (int i = 0; text->layers && i < text->layer_count; i++) {
    struct ms_text_layer *layer = &text->layers[i];
    release_norm(&layer->norm1);
    release_norm(&layer->norm2);
    ms_text_linear_release(&layer->qkv);
    ms_text_linear_release(&layer->o);
    ms_text_linear_release(&layer->fc1);
    ms_text_linear_release(&layer->fc2);
  }
  release_norm(&text->norm);
  for (int i = 0; i < text->labels; i++)
    ms_text_linear_release(&text->classify[i]);
  ms_text_buffers_close(&text->one);
  ms_text_buffers_close(&text->batch);
}

void ms_text_close(struct ms_text **pointer) {
  struct ms_text *text = *pointer;
  if (!text)
    return;
  release_packed(text);
  free(text->layers);
  ms_tokenizer_release(&text->tokenizer);
  ms_params_release(&text->params);
  free(text);
  *pointer = NULL;
}

struct ms_params *ms_text_params(struct ms_text *text) {
  return &text->params;
}

static int prepare_norm(struct ms_text *text, struct ms_text_norm *norm, struct ms_error *error) {
  size_t bytes = ((size_t)text->dim * sizeof(float) + 63) / 64 * 64;
  if ((!norm->factors && !(norm->factors = aligned_alloc(64, bytes))) ||
      (!norm->offsets && !(norm->offsets = aligned_alloc(64, bytes))))
    return ms_error_set(error, MS_ENOMEM, "out of memory while preparing the text encoder");
  ms_params_read_f32(&text->params, norm->weight, norm->factors);
  ms_params_read_f32(&text->params, norm->bias, norm->offsets);
  return 0;
}

int ms_text_prepare(struct ms_text *text, enum msk_precision precision, int training,
                    struct ms_error *error) {
  int result;
  assert(text->params.data);
  if (text->prepared && (text->precision != precision || text->prepared != (training ? 2 : 1)))
    release_packed(text);
  text->precision = precision;
  text->type = precision == MSK_PRECISION_BF16 ? MSK_BF16 : MSK_F32;
  for (int i = 0; i < text->layer_count; i++) {
    struct ms_text_layer *layer = &text->layers[i];
    if ((result = prepare_norm(text, &layer->norm1, error)) < 0 ||
        (result = prepare_norm(text, &layer->norm2, error)) < 0 ||
        (result = ms_text_linear_pack(text, &layer->qkv, training, error)) < 0 ||
        (result = ms_text_linear_pack(text, &layer->o, training, error)) < 0 ||
        (result = ms_text_linear_pack(text, &layer->fc1, training, error)) < 0 ||
        (result = ms_text_linear_pack(text, &layer->fc2, training, error)) < 0)
      return result;
  }
  for (int i = 0; training && i < text->labels; i++)
    if ((result = ms_text_linear_pack(text, &text->classify[i], 1, error)) < 0)
      return result;
  if ((result = prepare_norm(text, &text->norm, error)) < 0)
    return result;
  text->prepared = training ? 2 : 1;
  return 0;
}

int ms_text_dim(const struct ms_text *text) {
  return (int)text->dim;
}

int ms_text_length(const struct ms_text *text) {
  return text->tokenizer.length;
}

int ms_text_tokenize(const struct ms_text *text, const char *prompt, int *tokens, char *skipped,
                     size_t size) {
  return ms_tokenizer_run(&text->tokenizer, prompt, tokens, skipped, size);
}

int ms_text_left_out(const struct ms_text *text, const char *prompt) {
  return ms_tokenizer_left_out(&text->tokenizer, prompt);
}

int ms_text_encode(struct ms_text *text, const char *prompt, float *out, char *skipped, size_t size,
                   struct ms_error *error) {
  struct ms_text_buffers *b;
  int count, result;
  assert(text->prepared);
  if ((result = ms_text_buffers_open(&text->one, text, text->tokenizer.length, 1, 0, error)) < 0)
    return result;
  b = text->one;
  count = ms_tokenizer_run(&text->tokenizer, prompt, b->tokens, skipped, size);
  for (int i = 0; i < count; i++)
    b->places[i] = i;
  b->starts[0] = 0;
  b->starts[1] = count;
  ms_text_forward(text, b, 1);
  ms_text_final_norm(text, b->x, count, out, NULL);
  result = ms_pool_stopped(text->compute->pool, "cancelled", error);
  return result < 0 ? result : count;
}
