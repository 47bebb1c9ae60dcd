/* The parameters of a network as one flat array with named, shaped parts.
 *
 * A network lists its parameters with ms_params_add in a fixed order (those of one layer side by side, so
 * that a layer is one range), then the owner allocates. The optimizer, checkpoints, EMA and clipping see only
 * the flat array. Gradients are a float32 array with the same offsets. */
#pragma once
#include <stdint.h>
#include "ms-error.h"
#include "msk-types.h"

#define MS_MAX_DIMS 6

enum ms_param_kind {
  MS_PARAM_MATRIX, /* multiplied; decays */
  MS_PARAM_VECTOR, /* bias, norm, table: no decay */
  MS_PARAM_FROZEN, /* not trained */
};

enum ms_param_start { /* how random weights start; see ms_params_randomize */
                      MS_START_ZERO,
                      MS_START_ONE,
                      MS_START_FAN_IN, /* normal, scale / sqrt (fan in); fan in = product of dims but the
                                          first */
                      MS_START_NORMAL, /* normal, scale */
                      MS_START_UNIFORM_FAN_IN, /* uniform +- scale / sqrt (fan in): PyTorch's default for
                                                  convolutions */
};

struct ms_param {
  char name[96];
  int ndim;
  int64_t dims[MS_MAX_DIMS]; /* row-major */
  int64_t count, offset;     /* elements; offset is a multiple of 32 */
  int layer;                 /* block number, or -1 */
  enum ms_param_kind kind;
  enum ms_param_start start;
  float start_scale, start_mean;
  int64_t start_gates; /* modulation tables [1,6,C]: C; rows 2 and 5, the gates, start 1 higher. 0: no such
                          table */
};

struct ms_params {
  struct ms_param *list; /* owned */
  int count, room;
  int64_t total;      /* elements of the flat array, padding included */
  enum msk_type type; /* of data */
  void *data;         /* [total], owned, 64-aligned; padding is zero */
};

void ms_params_init(struct ms_params *params);
void ms_params_release(struct ms_params *params);
/* Appends a parameter; returns its index or MS_ENOMEM. The name is copied (at most 95 bytes).
 * Defaults: layer -1, kind by ndim (1: vector), start zero. The returned parameter's fields may be changed
 * until allocation, through params->list[index]. */
int ms_params_add(struct ms_params *params, const char *name, int ndim, const int64_t *dims);
/* Allocates data, zeroed. */
int ms_params_allocate(struct ms_params *params, enum msk_type type, struct ms_error *error);
/* Fills every parameter as its `start` says, from seed, the same values whatever the type (rounded for bf16).
 */
void ms_params_randomize(struct ms_params *params, uint64_t seed);
/* The same for parameter i alone, as `type` into out [its count]; params->data is not touched. */
void ms_params_start(const struct ms_params *params, int i, uint64_t seed, enum msk_type type, void *out);
/* Its elements begin .. begin + count - 1 into out [count]: any part can be made alone, by any thread. */
void ms_params_start_part(const struct ms_params *params, int i, uint64_t seed, enum msk_type type,
                          int64_t begin, int64_t count, void *out);
const struct ms_param *ms_params_find(const struct ms_params *params, const char *name);
/* The last parameter that starts at or before element `at` of the flat array. */
int ms_params_index(const struct ms_params *params, int64_t at);
/* Where parameter i's values are, as stored. */
static inline void *ms_params_at(const struct ms_params *params, int i) {
  return (char *)params->data + (size_t)params->list[i].offset * msk_type_size(params->type);
}
/* Values of parameter i as float32 into out[count]. */
void ms_params_read_f32(const struct ms_params *params, int i, float *out);
