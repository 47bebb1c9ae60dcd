#include "fake-shards.h"

#include <math.h>
#include <stdio.h>

void fake_shard_add(struct ms_params *params, struct ms_shard_layout *l, int shard, int rows, int part) {
  const int64_t matrix[2] = {shard < 0 ? rows : 61 + shard, 131}, vector = 300 + 32 * shard;
  int begin = params->count;
  char name[40];
  snprintf(name, sizeof name, "shard%d.matrix", shard);
  ms_params_add(params, name, 2, matrix);
  if (part)
    params->list[begin].kind = MS_PARAM_FROZEN;
  snprintf(name, sizeof name, "shard%d.bias", shard);
  ms_params_add(params, name, 1, &vector);
  snprintf(name, sizeof name, "shard%d.out", shard);
  ms_params_add(params, name, 2, matrix);
  *l = (struct ms_shard_layout){.begin = params->list[begin].offset};
  l->count = params->total - l->begin;
  l->owned = part && shard < 0 ? 0 : params->total - params->list[begin + (part ? 1 : 0)].offset;
  l->first = l->count - l->owned;
}

int fake_shard_weights(void *data, int shard, uint16_t *weights, struct ms_error *error) {
  const struct ms_shard_layout *l = (const struct ms_shard_layout *)data + shard + 1;
  for (int64_t i = 0; i < l->count; i++) {
    uint64_t hash = (uint64_t)(l->begin + i + 1) * 0x9e3779b97f4a7c15u;
    weights[i] = msk_f32_to_bf16((float)((double)(hash >> 40) / (1 << 24) - 0.5));
  }
  return 0;
}

double fake_shard_weigh(const uint16_t *values, int64_t count, int64_t seed) {
  double sum = 0;
  for (int64_t i = 0; i < count; i++)
    sum += msk_bf16_to_f32(values[i]) * (double)((i * 7 + seed) % 13 - 6);
  return sum / (double)count;
}

struct ms_update fake_shard_update(int64_t step, double grad_scale) {
  return (struct ms_update){.adamw = {.lr = 0.01,
                                      .beta1 = 0.9,
                                      .beta2 = 0.99,
                                      .eps = 1e-8,
                                      .decay = 0.1,
                                      .correction1 = 1 - pow(0.9, (double)step + 1),
                                      .correction2 = 1 - pow(0.99, (double)step + 1),
                                      .grad_scale = grad_scale},
                            .average = 0.7f,
                            .seed = (uint32_t)step};
}
