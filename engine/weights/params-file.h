/* The parameters of a network from and to safetensors files. */
#pragma once
#include "weights/params.h"
#include "weights/safetensors.h"

/* Fills every parameter from the tensor named PREFIX + its name (prefix NULL: none) in the first of `files`
 * that has it, converting to params->type. Dimensions of 1 may come and go ([C,1,1] for [C]); all others must
 * agree. Other tensors in the files are ignored. Returns 0 or MS_EINPUT, whose message names the tensor, the
 * file and both shapes; the values are then partly loaded. The mapped pages that were read are given back. */
int ms_params_load(struct ms_params *params, struct ms_safetensors *const *files, int count,
                   const char *prefix, struct ms_error *error);
/* The same for one parameter, number `index`, as `type` into out [its count]. params->data is not touched. */
int ms_params_read(const struct ms_params *params, int index, struct ms_safetensors *const *files, int count,
                   const char *prefix, enum msk_type type, void *out, struct ms_error *error);
/* Writes all parameters in their own type (F32 or BF16). metadata as in ms_safetensors_write. MS_EOUTPUT. */
int ms_params_save(const struct ms_params *params, const char *path, const char *const *metadata,
                   struct ms_error *error);
/* Writes what `fill` makes of each parameter (ms_safetensors_write_with: tensor is the parameter's number),
 * as bf16; params->data is not touched. MS_EOUTPUT, or what fill returned. */
int ms_params_save_filled(const struct ms_params *params, ms_tensor_fill_fn fill, void *data,
                          const char *path, struct ms_error *error);
/* Writes `values` (params->total float32, at the parameters' offsets), for example an average of the weights,
 * as dtype: MS_DTYPE_F32, or MS_DTYPE_BF16 rounded to nearest even. Only the shapes of params are used.
 * MS_EOUTPUT. */
int ms_params_save_values(const struct ms_params *params, const float *values, enum ms_dtype dtype,
                          const char *path, const char *const *metadata, struct ms_error *error);
