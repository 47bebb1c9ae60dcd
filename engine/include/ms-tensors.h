/* Reading weight files in the safetensors format: an 8-byte little-endian header length, a JSON header, raw
 * row-major data.
 *
 * Reading maps the file and trusts nothing: header size, JSON, dtype, shape products, offsets, overlaps and
 * the file's length are checked with overflow-safe arithmetic before a view is handed out. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ms-error.h"

enum ms_dtype {
  MS_DTYPE_BOOL,
  MS_DTYPE_U8,
  MS_DTYPE_I8,
  MS_DTYPE_F8_E4M3,
  MS_DTYPE_F8_E5M2,
  MS_DTYPE_I16,
  MS_DTYPE_U16,
  MS_DTYPE_F16,
  MS_DTYPE_BF16,
  MS_DTYPE_I32,
  MS_DTYPE_U32,
  MS_DTYPE_F32,
  MS_DTYPE_F64,
  MS_DTYPE_I64,
  MS_DTYPE_U64,
};
size_t ms_dtype_size(enum ms_dtype dtype);
const char *ms_dtype_name(enum ms_dtype dtype);

#define MS_TENSOR_MAX_DIMS 8

struct ms_tensor_view {
  const char *name; /* owned by the file object */
  enum ms_dtype dtype;
  int ndim;
  int64_t dims[MS_TENSOR_MAX_DIMS];
  int64_t count;    /* elements */
  const void *data; /* inside the mapping; alignment is only what the file gives: read with memcpy or the
                       calls below */
  size_t bytes;
};

struct ms_safetensors;

/* Returns 0, MS_EINPUT (missing, truncated, hostile: the message names the file and what is wrong) or
 * MS_ENOMEM. */
int ms_safetensors_open(struct ms_safetensors **file, const char *path, struct ms_error *error);
void ms_safetensors_close(struct ms_safetensors **file);
int ms_safetensors_count(const struct ms_safetensors *file);
const struct ms_tensor_view *ms_safetensors_at(const struct ms_safetensors *file,
                                               int i); /* in order of the data */
const struct ms_tensor_view *ms_safetensors_find(const struct ms_safetensors *file,
                                                 const char *name);                      /* NULL: none */
const char *ms_safetensors_metadata(const struct ms_safetensors *file, const char *key); /* NULL: none */
const char *ms_safetensors_path(const struct ms_safetensors *file);
/* Elements [begin, begin + count) of a view as the file has them, read past the mapping: what the disk cannot
 * give is an error here, where looking at the view's data would end the process. 0 or MS_EINPUT. */
int ms_safetensors_read(const struct ms_safetensors *file, const struct ms_tensor_view *view, int64_t begin,
                        int64_t count, void *out, struct ms_error *error);
/* Lets the system take back the memory that reading the view's data filled; reading it again costs a read
 * from the disk. */
void ms_safetensors_forget(const struct ms_tensor_view *view);

/* Converts any numeric dtype. out holds view->count elements. */
void ms_tensor_read_f32(const struct ms_tensor_view *view, float *out);
void ms_tensor_read_f64(const struct ms_tensor_view *view, double *out);
