/* Shards of a model that is none, for tests of what streams them: a matrix, a vector and a matrix each, with
 * sizes that divide into nothing evenly. */
#pragma once
#include "stream/shard-store.h"
#include "stream/update.h"
#include "weights/params.h"

/* Lists a shard's parameters behind those in params; the first matrix of shard -1 has `rows` rows. part: that
 * matrix is frozen, and so is all of shard -1. */
void fake_shard_add(struct ms_params *params, struct ms_shard_layout *layout, int shard, int rows, int part);
/* An ms_shard_read_fn: weights made of their places. data: the layouts of all shards, -1 first. */
int fake_shard_weights(void *data, int shard, uint16_t *weights, struct ms_error *error);
/* A mean over weights that tells any of them that is another. */
double fake_shard_weigh(const uint16_t *values, int64_t count, int64_t seed);
/* AdamW of a step. */
struct ms_update fake_shard_update(int64_t step, double grad_scale);
