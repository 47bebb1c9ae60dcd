/* What model.json says beside the networks: format, names, sizes, lengths, rate and sampling. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/model-private.h"

struct reader {
  const char *path;
  const json_t *object;
  const char *name; /* put before the keys, "sampling." */
  int code;
  struct ms_error *error;
};

static void refuse(struct reader *reader, const char *key, const char *what) {
  if (!reader->code)
    reader->code = ms_error_set(reader->error, MS_EINPUT, "\"%.300s\": \"%s%s\" must be %s", reader->path,
                                reader->name, key, what);
}

static const char *read_text(struct reader *reader, const char *key) {
  const json_t *value = json_object_get(reader->object, key);
  if (value && !json_is_string(value))
    refuse(reader, key, "a text");
  return json_string_value(value);
}

static double read_number(struct reader *reader, const char *key, double low, double high, double fallback) {
  const json_t *value = json_object_get(reader->object, key);
  double number = json_number_value(value);
  char what[96];
  if (!value)
    return fallback;
  if (json_is_number(value) && number >= low && number <= high)
    return number;
  snprintf(what, sizeof what, "a number from %g to %g", low, high);
  refuse(reader, key, what);
  return fallback;
}

static int is_whole(const json_t *value, int low, int high) {
  return json_is_integer(value) && json_integer_value(value) >= low && json_integer_value(value) <= high;
}

static int read_whole(struct reader *reader, const char *key, int low, int high, int fallback) {
  const json_t *value = json_object_get(reader->object, key);
  char what[96];
  if (!value)
    return fallback;
  if (is_whole(value, low, high))
    return (int)json_integer_value(value);
  snprintf(what, sizeof what, "a whole number from %d to %d", low, high);
  refuse(reader, key, what);
  return fallback;
}

/* The first size and length of the lists are the defaults; all must be possible. */
static void read_sizes(struct reader *reader, struct ms_model_defaults *d) {
  const json_t *sizes = json_object_get(reader->object, "sizes"),
               *frames = json_object_get(reader->object, "frames"), *item;
  size_t i;
  d->width = d->height = 64;
  d->frames = 17;
  if (sizes && !json_array_size(sizes))
    refuse(reader, "sizes", "a list of [width, height]");
  json_array_foreach(sizes, i, item) {
    if (json_array_size(item) != 2 || !is_whole(json_array_get(item, 0), 16, 16384) ||
        !is_whole(json_array_get(item, 1), 16, 16384))
      refuse(reader, "sizes", "a list of [width, height], whole numbers from 16 to 16384");
  }
  if (frames && !json_array_size(frames))
    refuse(reader, "frames", "a list of whole numbers");
  json_array_foreach(frames, i, item) {
    if (!is_whole(item, 1, 100000))
      refuse(reader, "frames", "a list of whole numbers from 1 to 100000");
  }
  if (reader->code)
    return;
  if (sizes) {
    d->width = (int)json_integer_value(json_array_get(json_array_get(sizes, 0), 0));
    d->height = (int)json_integer_value(json_array_get(json_array_get(sizes, 0), 1));
  }
  if (frames)
    d->frames = (int)json_integer_value(json_array_get(frames, 0));
}

int ms_model_read_defaults(struct ms_model *model, struct ms_error *error) {
  struct ms_model_defaults *d = &model->defaults;
  struct reader root = {.path = model->path, .object = model->root, .name = "", .error = error};
  struct reader sampling = {.path = model->path,
                            .object = json_object_get(model->root, "sampling"),
                            .name = "sampling.",
                            .error = error};
  const char *format = read_text(&root, "format"), *sampler;
  if (format && strcmp(format, "megaslide-1"))
    refuse(&root, "format", "\"megaslide-1\"");
  read_text(&root, "name");
  read_text(&root, "family");
  read_text(&root, "license");
  read_sizes(&root, d);
  d->fps = read_number(&root, "fps", 0.1, 1000, 16);
  if (sampling.object && !json_is_object(sampling.object))
    refuse(&root, "sampling", "an object");
  if (root.code)
    return root.code;
  d->steps = read_whole(&sampling, "steps", 1, 1000, 25);
  d->guidance = read_number(&sampling, "guidance", 0, 100, 2);
  d->shift = read_number(&sampling, "shift", 0.01, 100, 4);
  d->base_side = read_whole(&sampling, "base_side", 16, 4096, 64);
  d->refine_sigma = read_number(&sampling, "refine_sigma", 0.001, 1, 0.4);
  d->refine_steps = read_whole(&sampling, "refine_steps", 1, 1000, 8);
  sampler = read_text(&sampling, "sampler");
  d->sampler = MS_SAMPLER_EULER;
  if (sampler && ms_sampler_kind_from_name(sampler, &d->sampler) < 0)
    refuse(&sampling, "sampler", "\"euler\", \"unipc\" or \"dpmpp\"");
  return sampling.code;
}
