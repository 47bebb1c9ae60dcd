/* The state of a run as a file, the same whatever the budget: what is owned of all shards, a part after the
 * other, as one-dimensional tensors of a safetensors file: "weights" (bf16), "low" (uint16), "m", "v"
 * (float32; or 8-bit codes with "m_scale" and "v_scale"), "average" (float32). Written and read piece by
 * piece. */
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
double ms_state_file_bytes(const struct ms_shard_store *store); /* of such a state file */
