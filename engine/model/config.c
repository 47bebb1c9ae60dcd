#include "model/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[] = {
    [MS_ATTENTION_DENSE] = "dense", [MS_ATTENTION_WINDOW] = "window", [MS_ATTENTION_DSA] = "dsa"};
static const char *const mode_names[] = {[MSK_SLIDE_POINT] = "point", [MSK_SLIDE_SHIFT] = "shift"};
static const char *const position_names[] = {
    [MS_POSITIONS_INTEGER] = "integer", [MS_POSITIONS_SHORT_SIDE] = "short-side"};

/* Reads values of one object; the first failure is recorded and stands. `name` is put before the keys in
 * messages. */
struct reader {
  const json_t *object;
  const char *name;
  int code;
  struct ms_error *error;
};

static void refuse(struct reader *reader, const char *key, const char *what) {
  if (!reader->code)
    reader->code =
        ms_error_set(reader->error, MS_EINPUT, "\"%s%s%s\" in the model's configuration must be %s",
                     reader->name, reader->name[0] ? "." : "", key, what);
}

static int whole(const json_t *value, int low, int high, int *out) {
  json_int_t n = json_integer_value(value);
  if (!json_is_integer(value) || n < low || n > high)
    return 0;
  *out = (int)n;
  return 1;
}

/* A key that is absent leaves *out as it is, unless it is required. */
static void read_int(struct reader *reader, const char *key, int required, int low, int high, int *out) {
  const json_t *value = json_object_get(reader->object, key);
  char what[80];
  if (!value && !required)
    return;
  snprintf(what, sizeof what, "a whole number from %d to %d", low, high);
  if (!whole(value, low, high, out))
    refuse(reader, key, what);
}

static void read_ints(struct reader *reader, const char *key, int low, int high, int out[3]) {
  const json_t *value = json_object_get(reader->object, key);
  char what[80];
  if (!value)
    return;
  snprintf(what, sizeof what, "three whole numbers from %d to %d", low, high);
  if (!json_is_array(value) || json_array_size(value) != 3) {
    refuse(reader, key, what);
    return;
  }
  for (int i = 0; i < 3; i++)
    if (!whole(json_array_get(value, (size_t)i), low, high, &out[i]))
      refuse(reader, key, what);
}

static void read_bounds(struct reader *reader, const char *key, float out[3]) {
  const json_t *value = json_object_get(reader->object, key);
  static const char what[] = "three numbers above 0, at most 1000";
  if (!value)
    return;
  if (!json_is_array(value) || json_array_size(value) != 3) {
    refuse(reader, key, what);
    return;
  }
  for (int i = 0; i < 3; i++) {
    double x = json_number_value(json_array_get(value, (size_t)i)); /* 0 for what is no number */
    if (!(x > 1e-6 && x <= 1000))
      refuse(reader, key, what);
    out[i] = (float)x;
  }
}

static void read_real(struct reader *reader, const char *key, float low, float high, float *out) {
  const json_t *value = json_object_get(reader->object, key);
  double x = json_number_value(value);
  char what[80];
  if (!value)
    return;
  snprintf(what, sizeof what, "a number from %g to %g", low, high);
  if (!json_is_number(value) || !(x >= low && x <= high))
    refuse(reader, key, what);
  *out = (float)x;
}

static void read_bool(struct reader *reader, const char *key, int *out) {
  const json_t *value = json_object_get(reader->object, key);
  if (!value)
    return;
  if (!json_is_boolean(value))
    refuse(reader, key, "true or false");
  *out = json_is_true(value);
}

static void read_name(struct reader *reader, const char *key, int required, const char *const *names,
                      int count, int *out) {
  const json_t *value = json_object_get(reader->object, key);
  const char *text = json_string_value(value);
  char what[128] = "";
  if (!value && !required)
    return;
  for (int i = 0; i < count; i++)
    if (text && !strcmp(text, names[i])) {
      *out = i;
      return;
    }
  for (int i = 0; i < count; i++)
    snprintf(what + strlen(what), sizeof what - strlen(what), "%s\"%s\"", i ? " or " : "", names[i]);
  refuse(reader, key, what);
}

struct ms_attention_config ms_attention_config_default(enum ms_attention_kind kind, int heads) {
  struct ms_attention_config attention = {.kind = kind};
  if (kind == MS_ATTENTION_DSA) {
    attention.mode = MSK_SLIDE_POINT;
    attention.window[0] = attention.window[1] = attention.window[2] = 3;
    attention.bounds[0] = 1;
    attention.bounds[1] = attention.bounds[2] = 4;
    attention.groups = heads < 4 ? heads : heads % 4 ? 1 : 4;
  } else if (kind == MS_ATTENTION_WINDOW) { /* the window of Video Swin, in tokens */
    attention.window[0] = 8;
    attention.window[1] = attention.window[2] = 7;
  }
  return attention;
}

int ms_attention_config_read(struct ms_attention_config *attention, int heads, const json_t *object,
                             const char *key, struct ms_error *error) {
  struct reader reader = {.object = object, .name = key, .error = error};
  int kind = 0, mode = 0;
  if (!json_is_object(object))
    return ms_error_set(error, MS_EINPUT,
                        "\"%s\" in the model's configuration must be an object with a \"kind\"", key);
  read_name(&reader, "kind", 1, kind_names, 3, &kind);
  *attention = ms_attention_config_default((enum ms_attention_kind)kind, heads);
  if (kind == MS_ATTENTION_DENSE)
    return reader.code;
  read_ints(&reader, "window", 1, 1024, attention->window);
  if (kind == MS_ATTENTION_DSA) {
    read_name(&reader, "mode", 0, mode_names, 2, &mode);
    attention->mode = (enum msk_slide_mode)mode;
    read_bounds(&reader, "bounds", attention->bounds);
    read_int(&reader, "groups", 0, 1, heads, &attention->groups);
    if (!reader.code && heads % attention->groups)
      refuse(&reader, "groups", "a divisor of the number of heads");
    if ((int64_t)attention->window[0] * attention->window[1] * attention->window[2] > 4096)
      refuse(&reader, "window", "of at most 4096 points");
  }
  return reader.code;
}

static int read_attention(struct ms_attention_config *list, int layers, int heads, const json_t *value,
                          const char *key, struct ms_error *error) {
  const json_t *items = json_is_array(value) ? value : json_object_get(value, "layers");
  if (items && (!json_is_array(items) || json_array_size(items) != (size_t)layers))
    return ms_error_set(error, MS_EINPUT,
                        "\"%s\" in the model's configuration must list one object for each of %d layers", key,
                        layers);
  for (int i = 0; i < layers; i++) {
    char name[64];
    int code;
    snprintf(name, sizeof name, items ? "%s[%d]" : "%s", key, i);
    code = ms_attention_config_read(&list[i], heads, items ? json_array_get(items, (size_t)i) : value, name,
                                    error);
    if (code < 0)
      return code;
  }
  return 0;
}

/* Two attentions of a layer with offsets have one offset head. */
static int share_offsets(const struct ms_attention_config *a, const struct ms_attention_config *b) {
  return a->kind != MS_ATTENTION_DSA || b->kind != MS_ATTENTION_DSA ||
         (a->mode == b->mode && a->groups == b->groups && !memcmp(a->window, b->window, sizeof a->window));
}

int ms_dit_config_read(struct ms_dit_config *config, const json_t *root, struct ms_error *error) {
  struct reader reader = {.object = root, .name = "", .error = error};
  const json_t *attention = json_object_get(root, "attention"),
               *coarse = json_object_get(root, "coarse_attention");
  int positions = 0, code;
  memset(config, 0, sizeof *config);
  if (!json_is_object(root))
    return ms_error_set(error, MS_EINPUT, "the model's configuration must be a JSON object");
  config->patch[0] = 1;
  config->patch[1] = config->patch[2] = 2;
  config->text_len = 512;
  config->freq_dim = 256;
  config->eps = 1e-6f;
  read_int(&reader, "dim", 1, 8, 65536, &config->dim);
  read_int(&reader, "ffn", 1, 1, 1 << 20, &config->ffn);
  read_int(&reader, "heads", 1, 1, 1024, &config->heads);
  read_int(&reader, "layers", 1, 1, MS_MAX_LAYERS, &config->layers);
  read_int(&reader, "in_channels", 1, 1, 4096, &config->in_channels);
  config->out_channels = config->in_channels;
  read_int(&reader, "out_channels", 0, 1, 4096, &config->out_channels);
  read_ints(&reader, "patch", 1, 16, config->patch);
  read_int(&reader, "text_dim", 1, 1, 65536, &config->text_dim);
  read_int(&reader, "text_len", 0, 1, 65536, &config->text_len);
  read_int(&reader, "freq_dim", 0, 2, 65536, &config->freq_dim);
  read_real(&reader, "eps", 0, 1, &config->eps);
  read_name(&reader, "positions", 0, position_names, 2, &positions);
  config->positions = (enum ms_positions)positions;
  read_bool(&reader, "coordinate_features", &config->coordinate_features);
  read_bool(&reader, "pooled_text", &config->pooled_text);
  if (!reader.code && config->dim % config->heads)
    refuse(&reader, "heads", "a divisor of \"dim\"");
  if (!reader.code && (config->dim / config->heads % 8 || config->dim / config->heads > 256))
    refuse(&reader, "heads", "such that dim / heads is a multiple of 8, at most 256");
  if (config->freq_dim % 2)
    refuse(&reader, "freq_dim", "even");
  if (reader.code)
    return reader.code;
  for (int i = 0; i < config->layers; i++)
    config->attention[i] = ms_attention_config_default(MS_ATTENTION_DENSE, config->heads);
  if (attention && (code = read_attention(config->attention, config->layers, config->heads, attention,
                                          "attention", error)) < 0)
    return code;
  memcpy(config->coarse_attention, config->attention, sizeof config->attention);
  if (!coarse)
    return 0;
  code = read_attention(config->coarse_attention, config->layers, config->heads, coarse, "coarse_attention",
                        error);
  for (int i = 0; i < config->layers && code == 0; i++)
    if (!share_offsets(&config->attention[i], &config->coarse_attention[i]))
      code = ms_error_set(
          error, MS_EINPUT,
          "\"coarse_attention\" in the model's configuration must have the mode, window and groups of "
          "\"attention\", whose offsets it shares (layer %d of %d)",
          i + 1, config->layers);
  return code;
}

static json_t *write_attention(const struct ms_attention_config *attention) {
  json_t *object = json_pack("{s:s}", "kind", kind_names[attention->kind]);
  if (attention->kind != MS_ATTENTION_DENSE)
    json_object_set_new(
        object, "window",
        json_pack("[i,i,i]", attention->window[0], attention->window[1], attention->window[2]));
  if (attention->kind == MS_ATTENTION_DSA) {
    json_object_set_new(object, "mode", json_string(mode_names[attention->mode]));
    json_object_set_new(object, "bounds",
                        json_pack("[f,f,f]", (double)attention->bounds[0], (double)attention->bounds[1],
                                  (double)attention->bounds[2]));
    json_object_set_new(object, "groups", json_integer(attention->groups));
  }
  return object;
}

static int same_attention(const struct ms_attention_config *a, const struct ms_attention_config *b) {
  if (a->kind != b->kind || a->kind == MS_ATTENTION_DENSE)
    return a->kind == b->kind;
  if (memcmp(a->window, b->window, sizeof a->window))
    return 0;
  return a->kind == MS_ATTENTION_WINDOW ||
         (a->mode == b->mode && a->groups == b->groups && !memcmp(a->bounds, b->bounds, sizeof a->bounds));
}

static json_t *write_list(const struct ms_attention_config *list, int layers) {
  json_t *array;
  int same = 1;
  for (int i = 1; i < layers; i++)
    same = same && same_attention(&list[0], &list[i]);
  if (same)
    return write_attention(&list[0]);
  array = json_array();
  for (int i = 0; i < layers; i++)
    json_array_append_new(array, write_attention(&list[i]));
  return array;
}

json_t *ms_dit_config_write(const struct ms_dit_config *config) {
  /* a decimal eps, not its float32 neighbour 9.99999997e-07 */
  double eps = rint(config->eps * 1e9) / 1e9;
  int coarse = 0;
  json_t *root = json_pack(
      "{s:i,s:i,s:i,s:i,s:i,s:i,s:[i,i,i],s:i,s:i,s:i,s:f,s:s,s:b,s:b}", "dim", config->dim, "ffn",
      config->ffn, "heads", config->heads, "layers", config->layers, "in_channels", config->in_channels,
      "out_channels", config->out_channels, "patch", config->patch[0], config->patch[1], config->patch[2],
      "text_dim", config->text_dim, "text_len", config->text_len, "freq_dim", config->freq_dim, "eps",
      (float)eps == config->eps ? eps : (double)config->eps, "positions", position_names[config->positions],
      "coordinate_features", config->coordinate_features, "pooled_text", config->pooled_text);
  if (!root)
    return NULL;
  json_object_set_new(root, "attention", write_list(config->attention, config->layers));
  for (int i = 0; i < config->layers; i++)
    coarse = coarse || !same_attention(&config->attention[i], &config->coarse_attention[i]);
  if (coarse)
    json_object_set_new(root, "coarse_attention", write_list(config->coarse_attention, config->layers));
  return root;
}

void ms_attention_config_describe(const struct ms_attention_config *attention, char *text, size_t size) {
  if (attention->kind == MS_ATTENTION_DENSE)
    snprintf(text, size, "dense");
  else
    snprintf(text, size, "%s %dx%dx%d",
             attention->kind == MS_ATTENTION_WINDOW ? "window"
             : attention->mode == MSK_SLIDE_POINT   ? "dsa point"
                                                    : "dsa shift",
             attention->window[0], attention->window[1], attention->window[2]);
}

int ms_attention_override(json_t *root, const char *kind, const char *name, struct ms_error *error) {
  json_t *attention = NULL;
  int bad;
  if (!strcmp(kind, "dense")) {
    attention = json_pack("{s:s}", "kind", "dense");
  } else if (!strcmp(kind, "window")) {
    attention = json_pack("{s:s, s:[i,i,i]}", "kind", "window", "window", 3, 4, 4);
  } else if (!strcmp(kind, "dsa")) {
    const char *now = json_string_value(json_object_get(json_object_get(root, "attention"), "kind"));
    if (!now || strcmp(now, "dsa"))
      return ms_error_set(error, MS_EUSAGE,
                          "model \"%s\" has no 3D-DSA weights: adapt it first, or leave --attention out",
                          name);
    attention = json_incref(json_object_get(root, "attention"));
  } else {
    return ms_error_set(error, MS_EUSAGE, "there is no attention \"%s\": use dense, window or dsa", kind);
  }
  bad = !attention || json_object_set(root, "coarse_attention", attention) < 0 ||
        json_object_set(root, "attention", attention) < 0;
  json_decref(attention);
  return bad ? ms_error_set(error, MS_ENOMEM, "out of memory") : 0;
}
