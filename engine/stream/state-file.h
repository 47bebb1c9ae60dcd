/* The state of a run as a file, the same whatever the budget: what is owned of all shards, a part after the
 * other, as one-dimensional tensors of a safetensors file: "weights" (bf16), "low" (uint16), "m", "v"
 * (float32; or 8-bit codes with "m_scale" and "v_scale"), "average" (float32). Written and read piece by
 * piece. In a group rank 0 writes and exports, fetching what the others have from them, while they serve it;
 * and every rank reads. */
#pragma once
#include "stream/shard-store.h"
#include "weights/params.h"

/* Writes all of it; no update may wait. *sum: over the values, to be kept elsewhere. MS_EOUTPUT; MS_EINPUT if
 * the working state cannot be read. */
int ms_state_file_write(struct ms_shard_store *store, const char *path, uint64_t *sum,
                        struct ms_error *error);
/* Looks at all of it first: MS_EINPUT, and nothing is changed, if it is not whole, was saved by a run of
 * another model or other settings, or its values are not those of `sum`. A failure later (MS_EINPUT,
 * MS_EOUTPUT of the working state) leaves the store to be read again from another file. */
int ms_state_file_read(struct ms_shard_store *store, const char *path, uint64_t sum, struct ms_error *error);
/* The model's weights, their average if there is one, as the DiT's part of a model folder (bf16). */
int ms_state_file_export(struct ms_shard_store *store, const struct ms_params *params, const char *path,
                         struct ms_error *error);
/* Values of weights for such a file, or another that is made of them: their average if there is one, else the
 * weights. A piece of a shard is in memory at a time, and the weights of one shard where it has some without
 * a state on the disk. Once reading has failed it fails. */
struct ms_state_values;
int ms_state_values_open(struct ms_state_values **values, struct ms_shard_store *store,
                         struct ms_error *error);
void ms_state_values_close(struct ms_state_values **values);
/* [begin, begin + count) of the flat list, within one shard. */
int ms_state_values_read(struct ms_state_values *values, int64_t begin, int64_t count, uint16_t *out,
                         struct ms_error *error);
/* Ranks but the first, while that writes a state, exports or reads values: sends it what it asks for, until
 * it calls ms_state_served. A failure is told to the asker, for whom it is one of reading. */
int ms_state_serve(struct ms_shard_store *store, struct ms_error *error);
void ms_state_served(struct ms_shard_store *store);
double ms_state_file_bytes(const struct ms_shard_store *store); /* of such a state file */
