#include "weights/params-file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void shape_text(int ndim, const int64_t *dims, char *text, size_t size) {
  size_t at = (size_t)snprintf(text, size, "[");
  for (int i = 0; i < ndim && at < size; i++)
    at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? "," : "", (long long)dims[i]);
  if (at < size)
    snprintf(text + at, size - at, "]");
}

/* Equal once dimensions of 1 are left out. */
static int same_shape(const struct ms_param *param, const struct ms_tensor_view *view) {
  int i = 0, j = 0;
  for (;;) {
    while (i < param->ndim && param->dims[i] == 1)
      i++;
    while (j < view->ndim && view->dims[j] == 1)
      j++;
    if (i == param->ndim || j == view->ndim)
      return i == param->ndim && j == view->ndim;
    if (param->dims[i++] != view->dims[j++])
      return 0;
  }
}

/* Read, not looked at where the file is mapped: a disk that fails is an error then, not the process's end. */
static int convert(const struct ms_safetensors *file, const struct ms_tensor_view *view, enum msk_type type,
                   void *out, struct ms_error *error) {
  enum { PIECE = 4096 };
  unsigned char raw[PIECE * sizeof(double)];
  float piece[PIECE];
  int code = 0;
  if (view->dtype == (type == MSK_F32 ? MS_DTYPE_F32 : MS_DTYPE_BF16))
    return ms_safetensors_read(file, view, 0, view->count, out, error);
  for (int64_t at = 0; at < view->count && code == 0; at += PIECE) {
    struct ms_tensor_view part = *view;
    part.count = view->count - at < PIECE ? view->count - at : PIECE;
    part.data = raw;
    code = ms_safetensors_read(file, view, at, part.count, raw, error);
    if (code < 0)
      break;
    ms_tensor_read_f32(&part, type == MSK_F32 ? (float *)out + at : piece);
    for (int64_t i = 0; i < part.count && type != MSK_F32; i++)
      ((uint16_t *)out)[at + i] = msk_f32_to_bf16(piece[i]);
  }
  return code;
}

/* The first value that is no finite number, or -1: exponent bits all set. */
static int64_t first_bad(const void *values, enum msk_type type, int64_t count) {
  enum { PIECE = 4096 };
  for (int64_t at = 0; at < count; at += PIECE) {
    int64_t end = count - at < PIECE ? count : at + PIECE;
    unsigned bad = 0;
    for (int64_t i = at; i < end; i++) {
      uint32_t bits = type == MSK_F32 ? ((const uint32_t *)values)[i] >> 16 : ((const uint16_t *)values)[i];
      bad |= (bits & 0x7f80) == 0x7f80;
    }
    for (int64_t i = at; bad && i < end; i++) {
      uint32_t bits = type == MSK_F32 ? ((const uint32_t *)values)[i] >> 16 : ((const uint16_t *)values)[i];
      if ((bits & 0x7f80) == 0x7f80)
        return i;
    }
  }
  return -1;
}

static int refuse_value(const struct ms_param *param, const char *path, int64_t index,
                        struct ms_error *error) {
  int64_t place[MS_MAX_DIMS], rest = index;
  char text[160];
  for (int i = param->ndim - 1; i >= 0; i--) {
    place[i] = rest % param->dims[i];
    rest /= param->dims[i];
  }
  shape_text(param->ndim, place, text, sizeof text);
  return ms_error_set(error, MS_EINPUT,
                      "tensor \"%.120s\" of \"%.160s\" holds a value that is not finite at index %lld, %.80s",
                      param->name, path, (long long)index, text);
}

int ms_params_read(const struct ms_params *params, int index, struct ms_safetensors *const *files, int count,
                   const char *prefix, enum msk_type type, void *out, struct ms_error *error) {
  const struct ms_param *param = &params->list[index];
  const struct ms_tensor_view *view = NULL;
  char name[512], wanted[160], found[160];
  int64_t bad;
  int file, code;
  snprintf(name, sizeof name, "%s%s", prefix ? prefix : "", param->name);
  for (file = 0; file < count; file++) {
    view = ms_safetensors_find(files[file], name);
    if (view)
      break;
  }
  shape_text(param->ndim, param->dims, wanted, sizeof wanted);
  if (!view) {
    if (count == 1)
      return ms_error_set(error, MS_EINPUT, "tensor \"%.120s\" %.80s is missing in \"%.200s\"", name, wanted,
                          ms_safetensors_path(files[0]));
    return ms_error_set(error, MS_EINPUT,
                        "tensor \"%.120s\" %.80s is missing in all %d files (\"%.160s\" ...)", name, wanted,
                        count, count ? ms_safetensors_path(files[0]) : "");
  }
  if (!same_shape(param, view)) {
    shape_text(view->ndim, view->dims, found, sizeof found);
    return ms_error_set(error, MS_EINPUT, "tensor \"%.120s\" of \"%.160s\" has shape %.80s, wanted is %.80s",
                        name, ms_safetensors_path(files[file]), found, wanted);
  }
  code = convert(files[file], view, type, out, error);
  if (code < 0)
    return code;
  bad = first_bad(out, type, param->count);
  return bad < 0 ? 0 : refuse_value(param, ms_safetensors_path(files[file]), bad, error);
}

int ms_params_load(struct ms_params *params, struct ms_safetensors *const *files, int count,
                   const char *prefix, struct ms_error *error) {
  for (int i = 0; i < params->count; i++) {
    int code = ms_params_read(params, i, files, count, prefix, params->type, ms_params_at(params, i), error);
    if (code < 0)
      return code;
  }
  return 0;
}

struct values {
  const struct ms_params *params;
  const float *flat;
};

static int fill_bf16(void *data, int tensor, int64_t begin, int64_t count, void *out,
                     struct ms_error *error) {
  const struct values *values = data;
  const float *from = values->flat + values->params->list[tensor].offset + begin;
  for (int64_t i = 0; i < count; i++)
    ((uint16_t *)out)[i] = msk_f32_to_bf16(from[i]);
  return 0;
}

/* Tensors for the writer with dtype and data left open; NULL: out of memory. */
static struct ms_tensor_out *outline(const struct ms_params *params, const char *path,
                                     struct ms_error *error) {
  struct ms_tensor_out *tensors = calloc((size_t)params->count + 1, sizeof *tensors);
  if (!tensors) {
    ms_error_set(error, MS_ENOMEM, "cannot write \"%.300s\": out of memory", path);
    return NULL;
  }
  for (int i = 0; i < params->count; i++) {
    tensors[i].name = params->list[i].name;
    tensors[i].ndim = params->list[i].ndim;
    memcpy(tensors[i].dims, params->list[i].dims, sizeof params->list[i].dims);
  }
  return tensors;
}

int ms_params_save(const struct ms_params *params, const char *path, const char *const *metadata,
                   struct ms_error *error) {
  struct ms_tensor_out *tensors = outline(params, path, error);
  int code;
  if (!tensors)
    return MS_ENOMEM;
  for (int i = 0; i < params->count; i++) {
    tensors[i].dtype = params->type == MSK_F32 ? MS_DTYPE_F32 : MS_DTYPE_BF16;
    tensors[i].data = ms_params_at(params, i);
  }
  code = ms_safetensors_write(path, tensors, params->count, metadata, error);
  free(tensors);
  return code;
}

int ms_params_save_filled(const struct ms_params *params, ms_tensor_fill_fn fill, void *data,
                          const char *path, struct ms_error *error) {
  struct ms_tensor_out *tensors = outline(params, path, error);
  int code;
  if (!tensors)
    return MS_ENOMEM;
  for (int i = 0; i < params->count; i++)
    tensors[i].dtype = MS_DTYPE_BF16;
  code = ms_safetensors_write_with(path, tensors, params->count, NULL, fill, data, error);
  free(tensors);
  return code;
}

int ms_params_save_values(const struct ms_params *params, const float *values, enum ms_dtype dtype,
                          const char *path, const char *const *metadata, struct ms_error *error) {
  struct ms_tensor_out *tensors = outline(params, path, error);
  struct values source = {params, values};
  int code;
  if (!tensors)
    return MS_ENOMEM;
  assert(dtype == MS_DTYPE_F32 || dtype == MS_DTYPE_BF16);
  for (int i = 0; i < params->count; i++) {
    tensors[i].dtype = dtype;
    if (dtype == MS_DTYPE_F32)
      tensors[i].data = values + params->list[i].offset;
  }
  code = ms_safetensors_write_with(path, tensors, params->count, metadata, fill_bf16, &source, error);
  free(tensors);
  return code;
}
