/* Clips of one size as the trainer needs them: encoded once by the codec, with captions and subject masks.
 *
 * Item i of a store is clip first + i % n of the source in its variant i / n, where n is the number of the
 * source's clips. */
#pragma once
#include "model/model.h"
#include "ms-clips.h"
#include "ms-job.h"
#include "ms-train.h"
#include "train/latents.h"

#define MS_STORE_CAPTIONS 3

struct ms_store {
  struct ms_train_bucket bucket;
  int lattice[3]; /* latent frames, height, width */
  int channels;
  int64_t tokens; /* of one clip */
  int64_t items;
  int64_t *clips; /* [items] number of the source's clip */
  float *latents; /* [items][channels, lattice] */
  uint8_t *masks; /* [items][lattice], 1 where the subject is, grown by a cell; NULL if the source has none */
  char **captions; /* [items * MS_STORE_CAPTIONS]; entries may repeat; each owned */
};

/* Reads and encodes `items` items of the clips listed in clip_numbers [clip_count]. cache (may be NULL):
 * where latents are looked for and kept, if the source says what its clips are. */
int ms_store_fill(struct ms_store *store, struct ms_model *model, const struct ms_clip_source *source,
                  const struct ms_train_bucket *bucket, const int64_t *clip_numbers, int64_t clip_count,
                  int64_t items, struct ms_latents_cache *cache, const struct ms_hooks *hooks,
                  struct ms_error *error);
void ms_store_release(struct ms_store *store);
static inline int64_t ms_store_elements(const struct ms_store *store) {
  return (int64_t)store->channels * store->lattice[0] * store->lattice[1] * store->lattice[2];
}
