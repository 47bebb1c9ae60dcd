/* The shards of a DiT from its weight file, one tensor in memory at a time: what a shard store is filled
 * with, and what it reads again and again when the model's own file is the layers' home. */
#pragma once
#include "model/dit.h"
#include "stream/shard-store.h"
#include "weights/params-file.h"

struct ms_dit_file {
  struct ms_dit *dit;          /* borrowed */
  struct ms_safetensors *file; /* owned */
  uint64_t seed;               /* of the start of adapters, which no such file has */
};

/* path: dit.safetensors of a model folder. MS_EINPUT: no such file, or not one. */
int ms_dit_file_open(struct ms_dit_file *file, struct ms_dit *dit, const char *path, struct ms_error *error);
void ms_dit_file_close(struct ms_dit_file *file);
/* An ms_shard_read_fn; data: the ms_dit_file. Padding between parameters is zero. MS_EINPUT names a tensor
 * that is missing, has another shape, or holds what is not finite. Another thread may compute meanwhile. */
int ms_dit_file_read(void *data, int shard, uint16_t *weights, struct ms_error *error);
/* The same from the DiT's own parameters in memory; data: the DiT. */
int ms_dit_memory_read(void *data, int shard, uint16_t *weights, struct ms_error *error);
