#include "weights/safetensors.h"

#include <assert.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

static int by_size_and_name(const void *a, const void *b) {
  const struct ms_tensor_out *const *x = a, *const *y = b;
  size_t x_size = ms_dtype_size((*x)->dtype), y_size = ms_dtype_size((*y)->dtype);
  if (x_size != y_size)
    return x_size > y_size ? -1 : 1;
  return strcmp((*x)->name, (*y)->name);
}

static int by_key(const void *a, const void *b) {
  return strcmp(((const char *const *const *)a)[0][0], ((const char *const *const *)b)[0][0]);
}

static size_t tensor_bytes(const struct ms_tensor_out *tensor) {
  size_t bytes = ms_dtype_size(tensor->dtype);
  for (int i = 0; i < tensor->ndim; i++)
    bytes *= (size_t)tensor->dims[i];
  return bytes;
}

/* Metadata as a JSON object in order of the keys, or NULL: out of memory or not UTF-8. */
static json_t *metadata_object(const char *const *metadata) {
  json_t *object = json_object();
  const char *const **pairs;
  size_t n = 0;
  while (metadata[2 * n])
    n++;
  pairs = calloc(n + 1, sizeof *pairs);
  for (size_t i = 0; pairs && i < n; i++)
    pairs[i] = metadata + 2 * i;
  if (pairs)
    qsort(pairs, n, sizeof *pairs, by_key);
  for (size_t i = 0; object && i < n; i++)
    if (!pairs || json_object_set_new(object, pairs[i][0], json_string(pairs[i][1])) < 0) {
      json_decref(object);
      object = NULL;
    }
  free(pairs);
  return object;
}

static json_t *tensor_object(const struct ms_tensor_out *tensor, size_t begin) {
  json_t *shape = json_array();
  for (int i = 0; i < tensor->ndim; i++)
    json_array_append_new(shape, json_integer(tensor->dims[i]));
  return json_pack("{s:s, s:o, s:[I,I]}", "dtype", ms_dtype_name(tensor->dtype), "shape", shape,
                   "data_offsets", (json_int_t)begin, (json_int_t)(begin + tensor_bytes(tensor)));
}

/* The header as text padded with spaces to a multiple of 8, so that the data is aligned; NULL: out of memory,
 * or a text that is not UTF-8. */
static char *header_text(const struct ms_tensor_out *const *order, int count, const char *const *metadata,
                         size_t *length) {
  json_t *header = json_object();
  size_t at = 0, size;
  char *text = NULL;
  if (metadata && metadata[0] && json_object_set_new(header, "__metadata__", metadata_object(metadata)) < 0)
    goto done;
  for (int i = 0; i < count; i++) {
    if (json_object_set_new(header, order[i]->name, tensor_object(order[i], at)) < 0)
      goto done;
    at += tensor_bytes(order[i]);
    assert(i == 0 || strcmp(order[i]->name, order[i - 1]->name));
  }
  size = json_dumpb(header, NULL, 0, JSON_COMPACT);
  *length = (size + 7) / 8 * 8;
  text = size ? malloc(*length) : NULL;
  if (text) {
    json_dumpb(header, text, size, JSON_COMPACT);
    memset(text + size, ' ', *length - size);
  }
done:
  json_decref(header);
  return text;
}

/* Values that are made on the way pass through a buffer of this many bytes. */
#define PIECE (1 << 20)

static int write_filled(struct ms_file_out *out, const struct ms_tensor_out *tensor, int index,
                        ms_tensor_fill_fn fill, void *data, void *piece, struct ms_error *error) {
  size_t size = ms_dtype_size(tensor->dtype);
  int64_t total = (int64_t)(tensor_bytes(tensor) / size), step = PIECE / (int64_t)size;
  int code = 0;
  for (int64_t at = 0; code == 0 && at < total; at += step) {
    int64_t n = total - at < step ? total - at : step;
    code = fill(data, index, at, n, piece, error);
    if (code == 0)
      code = ms_file_out_write(out, piece, (size_t)n * size, error);
  }
  return code;
}

static int write_file(const char *path, const struct ms_tensor_out *tensors, int count,
                      const char *const *metadata, ms_tensor_fill_fn fill, void *data, int quick,
                      struct ms_error *error) {
  const struct ms_tensor_out **order = calloc((size_t)count + 1, sizeof *order);
  struct ms_file_out out = {0};
  unsigned char prefix[8];
  char *header = NULL;
  void *piece = fill ? malloc(PIECE) : NULL;
  size_t length;
  int code;
  if (!order || (fill && !piece)) {
    code = ms_error_set(error, MS_ENOMEM, "cannot write \"%.300s\": out of memory", path);
    goto done;
  }
  for (int i = 0; i < count; i++)
    order[i] = &tensors[i];
  qsort(order, (size_t)count, sizeof *order, by_size_and_name);
  header = header_text(order, count, metadata, &length);
  if (!header) {
    code = ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": a name is not UTF-8, or out of memory",
                        path);
    goto done;
  }
  for (int i = 0; i < 8; i++)
    prefix[i] = (unsigned char)((uint64_t)length >> 8 * i);
  code = ms_file_out_open(&out, path, error);
  if (code == 0)
    code = ms_file_out_write(&out, prefix, sizeof prefix, error);
  if (code == 0)
    code = ms_file_out_write(&out, header, length, error);
  for (int i = 0; code == 0 && i < count; i++) {
    if (order[i]->data)
      code = ms_file_out_write(&out, order[i]->data, tensor_bytes(order[i]), error);
    else if (fill)
      code = write_filled(&out, order[i], (int)(order[i] - tensors), fill, data, piece, error);
    else
      assert(tensor_bytes(order[i]) == 0);
  }
  if (code == 0)
    code = quick ? ms_file_out_publish(&out, error) : ms_file_out_commit(&out, error);
done:
  ms_file_out_abandon(&out);
  free(piece);
  free(header);
  free(order);
  return code;
}

int ms_safetensors_write_with(const char *path, const struct ms_tensor_out *tensors, int count,
                              const char *const *metadata, ms_tensor_fill_fn fill, void *data,
                              struct ms_error *error) {
  return write_file(path, tensors, count, metadata, fill, data, 0, error);
}

int ms_safetensors_write_quick(const char *path, const struct ms_tensor_out *tensors, int count,
                               const char *const *metadata, struct ms_error *error) {
  return write_file(path, tensors, count, metadata, NULL, NULL, 1, error);
}

int ms_safetensors_write(const char *path, const struct ms_tensor_out *tensors, int count,
                         const char *const *metadata, struct ms_error *error) {
  return write_file(path, tensors, count, metadata, NULL, NULL, 0, error);
}
