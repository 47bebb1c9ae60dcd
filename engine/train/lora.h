/* What method lora leaves: the adapters as a file of their own, and the model with them merged in.
 *
 * lora.safetensors holds bf16 tensors named "diffusion_model." + the matrix's name in the model +
 * ".lora_A.weight" [rank,in] and ".lora_B.weight" [out,rank], as peft and diffusers do; a matrix becomes
 * W + alpha / rank B A. Where alpha is not the rank each matrix also has an ".alpha" [1], float32. The file's
 * metadata has "rank" and "alpha".
 *
 * Values are those of the store's average if it keeps one, else of its weights, rounded to bf16. No update
 * may wait. */
#pragma once
#include "base/compute.h"
#include "model/dit.h"
#include "stream/shard-store.h"

#define MS_LORA_FILE "lora.safetensors"

/* MS_EOUTPUT; MS_EINPUT if the working state cannot be read. */
int ms_lora_write(struct ms_dit *dit, struct ms_shard_store *store, const char *path, struct ms_error *error);
/* The DiT's part of a model folder, of a network without adapters: what the kernels were given while
 * training, bit for bit. Some rows of a matrix are in memory at a time. */
int ms_lora_write_merged(struct ms_dit *dit, const struct ms_compute *compute, struct ms_shard_store *store,
                         const char *path, struct ms_error *error);
