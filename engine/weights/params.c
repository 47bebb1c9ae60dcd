#include "weights/params.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

void ms_params_init(struct ms_params *params) {
  memset(params, 0, sizeof *params);
}

void ms_params_release(struct ms_params *params) {
  free(params->list);
  free(params->data);
  memset(params, 0, sizeof *params);
}

int ms_params_add(struct ms_params *params, const char *name, int ndim, const int64_t *dims) {
  struct ms_param *param;
  assert(ndim >= 1 && ndim <= MS_MAX_DIMS && !params->data);
  if (params->count == params->room) {
    int room = params->room ? params->room * 2 : 64;
    struct ms_param *list = realloc(params->list, (size_t)room * sizeof *list);
    if (!list)
      return MS_ENOMEM;
    params->list = list;
    params->room = room;
  }
  param = &params->list[params->count];
  memset(param, 0, sizeof *param);
  snprintf(param->name, sizeof param->name, "%s", name);
  param->ndim = ndim;
  param->count = 1;
  for (int i = 0; i < ndim; i++) {
    param->dims[i] = dims[i];
    param->count *= dims[i];
  }
  param->offset = params->total;
  param->layer = -1;
  param->kind = ndim == 1 ? MS_PARAM_VECTOR : MS_PARAM_MATRIX;
  param->start_scale = 1;
  params->total += (param->count + 31) / 32 * 32;
  return params->count++;
}

int ms_params_allocate(struct ms_params *params, enum msk_type type, struct ms_error *error) {
  size_t bytes = ((size_t)params->total * msk_type_size(type) + 63) / 64 * 64;
  params->type = type;
  params->data = aligned_alloc(64, bytes ? bytes : 64);
  if (!params->data)
    return ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for weights", (double)bytes / 1048576);
  memset(params->data, 0, bytes);
  return 0;
}

/* Random numbers that one element takes. */
static uint64_t draws(enum ms_param_start start) {
  return start == MS_START_FAN_IN || start == MS_START_NORMAL ? 2 : start == MS_START_UNIFORM_FAN_IN;
}

void ms_params_start_part(const struct ms_params *params, int i, uint64_t seed, enum msk_type type,
                          int64_t begin, int64_t count, void *out) {
  const struct ms_param *param = &params->list[i];
  double fan_in = param->ndim > 1 ? (double)(param->count / param->dims[0]) : 1;
  struct ms_random random = {
      .seed = seed, .stream = (uint64_t)i + 1, .position = (uint64_t)begin * draws(param->start)};
  for (int64_t j = begin; j < begin + count; j++) {
    double value = 0;
    switch (param->start) {
    case MS_START_ZERO:
      break;
    case MS_START_ONE:
      value = 1;
      break;
    case MS_START_FAN_IN:
      value = ms_random_normal(&random) * param->start_scale / sqrt(fan_in);
      break;
    case MS_START_NORMAL:
      value = ms_random_normal(&random) * param->start_scale;
      break;
    case MS_START_UNIFORM_FAN_IN:
      value = ms_random_range(&random, -1, 1) * param->start_scale / sqrt(fan_in);
      break;
    }
    value += param->start_mean;
    if (param->start_gates && j / param->start_gates % 3 == 2)
      value += 1;
    if (type == MSK_F32)
      ((float *)out)[j - begin] = (float)value;
    else
      ((uint16_t *)out)[j - begin] = msk_f32_to_bf16((float)value);
  }
}

void ms_params_start(const struct ms_params *params, int i, uint64_t seed, enum msk_type type, void *out) {
  ms_params_start_part(params, i, seed, type, 0, params->list[i].count, out);
}

void ms_params_randomize(struct ms_params *params, uint64_t seed) {
  for (int i = 0; i < params->count; i++)
    ms_params_start(params, i, seed, params->type, ms_params_at(params, i));
}

const struct ms_param *ms_params_find(const struct ms_params *params, const char *name) {
  for (int i = 0; i < params->count; i++)
    if (!strcmp(params->list[i].name, name))
      return &params->list[i];
  return NULL;
}

void ms_params_read_f32(const struct ms_params *params, int i, float *out) {
  const struct ms_param *param = &params->list[i];
  const void *data = ms_params_at(params, i);
  for (int64_t j = 0; j < param->count; j++)
    out[j] =
        params->type == MSK_F32 ? ((const float *)data)[j] : msk_bf16_to_f32(((const uint16_t *)data)[j]);
}

int ms_params_index(const struct ms_params *params, int64_t at) {
  int low = 0, high = params->count;
  while (high - low > 1) {
    int middle = (low + high) / 2;
    if (params->list[middle].offset <= at)
      low = middle;
    else
      high = middle;
  }
  return low;
}
