/* The safetensors format: reading is the front door ms-tensors.h, writing is here. It goes to a temporary
 * file beside the target, which is synced and renamed, so that a file is there whole or not at all. */
#pragma once
#include "ms-tensors.h"

struct ms_tensor_out {
  const char *name;
  enum ms_dtype dtype;
  int ndim;
  int64_t dims[MS_TENSOR_MAX_DIMS];
  const void *data; /* NULL: asked for piece by piece, see ms_safetensors_write_with */
};
/* metadata: pairs key, value, NULL-terminated list, or NULL. Tensors are laid out by element size (largest
 * first), then name; the bytes depend on the contents alone. Returns 0 or MS_EOUTPUT (message names the path
 * and the system's reason). */
int ms_safetensors_write(const char *path, const struct ms_tensor_out *tensors, int count,
                         const char *const *metadata, struct ms_error *error);
/* The same without waiting for the disk (ms_file_out_publish). */
int ms_safetensors_write_quick(const char *path, const struct ms_tensor_out *tensors, int count,
                               const char *const *metadata, struct ms_error *error);

/* Fills out with elements begin .. begin + count - 1 of tensors[tensor], in its dtype. 0 or an error. */
typedef int (*ms_tensor_fill_fn)(void *data, int tensor, int64_t begin, int64_t count, void *out,
                                 struct ms_error *error);
/* The same for tensors whose values are made while they are written: those without data come from `fill`, so
 * that a model larger than memory can be converted. Where it fails there is no file, and what had the name
 * before keeps it. */
int ms_safetensors_write_with(const char *path, const struct ms_tensor_out *tensors, int count,
                              const char *const *metadata, ms_tensor_fill_fn fill, void *data,
                              struct ms_error *error);
