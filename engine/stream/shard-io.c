/* Shards from and to disk, with the hashes that tell what was written from what is read. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "stream/shard-store.h"

static int damaged(const struct ms_shard_store *store, const struct ms_shard *shard, const char *what,
                   struct ms_error *error) {
  return ms_error_set(
      error, MS_EINPUT,
      "the working state of layer %d in \"%.300s\" has changed on the disk (%s): its values are "
      "not used; --resume goes on from the last checkpoint",
      (int)(shard - store->shards), shard->file.folder, what);
}

static size_t rounded(size_t bytes) {
  return (size_t)ms_disk_round((int64_t)bytes);
}

/* Weights [begin, begin + count) of the shard from or into memory for just them. */
static int transfer_weights(const struct ms_shard *shard, int write, int64_t begin, int64_t count,
                            uint16_t *weights, struct ms_error *error) {
  size_t bytes = (size_t)count * sizeof *weights;
  int64_t at = begin * (int64_t)sizeof *weights;
  /* whole pages, so that they go past the cache; the last page of a shard is padded on both sides */
  if (at % MS_DISK_ALIGN == 0 && (begin + count == shard->layout.count || bytes % MS_DISK_ALIGN == 0))
    bytes = rounded(bytes);
  if (write)
    return ms_disk_file_write(&shard->file, at, weights, bytes, error);
  return ms_disk_file_read(&shard->file, at, weights, bytes, error);
}

static uint64_t hash_weights(const uint16_t *weights, int64_t begin, int64_t count) {
  return ms_hash_block(weights + begin, (size_t)count * sizeof *weights);
}

/* The weights that have no state, before and behind those that have. */
static void frozen_ranges(const struct ms_shard *shard, int64_t ranges[2][2]) {
  const struct ms_shard_layout *l = &shard->layout;
  int64_t first = l->owned ? l->first : l->count;
  ranges[0][0] = 0;
  ranges[0][1] = first;
  ranges[1][0] = first + l->owned;
  ranges[1][1] = l->count - ranges[1][0];
}

int ms_shard_store_fill(struct ms_shard_store *store, int number, ms_shard_read_fn read, void *data,
                        struct ms_error *error) {
  struct ms_shard *shard = ms_shard_store_at(store, number);
  uint16_t *weights = shard->weights;
  int64_t ranges[2][2];
  int code;
  if (shard->home == MS_HOME_DISK && store->params.read)
    return 0;
  if (!weights) {
    weights = aligned_alloc(MS_DISK_ALIGN, rounded((size_t)shard->layout.count * sizeof *weights));
    if (!weights)
      return ms_error_set(error, MS_ENOMEM, "out of memory for a layer of the model");
    memset((char *)weights + (size_t)shard->layout.count * sizeof *weights, 0,
           rounded((size_t)shard->layout.count * sizeof *weights) -
               (size_t)shard->layout.count * sizeof *weights);
  }
  code = read(data, number, weights, error);
  if (code == 0 && shard->home == MS_HOME_DISK)
    code = transfer_weights(shard, 1, 0, shard->layout.count, weights, error);
  frozen_ranges(shard, ranges);
  for (int i = 0; i < 2; i++)
    shard->frozen_hash[i] = hash_weights(weights, ranges[i][0], ranges[i][1]);
  for (int i = 0; i < shard->piece_count; i++) {
    struct ms_piece *piece = &shard->pieces[i];
    piece->fresh = 1;
    piece->pending = 0;
    piece->hash[MS_STATE_WEIGHTS] = hash_weights(weights, piece->begin, piece->count);
  }
  shard->filled = code == 0;
  if (shard->home == MS_HOME_DISK)
    free(weights);
  return code;
}

/* From elsewhere, each time the same. */
static int read_again(struct ms_shard_store *store, int number, uint16_t *weights, struct ms_error *error) {
  struct ms_shard *shard = ms_shard_store_at(store, number);
  int code = store->params.read(store->params.read_data, number, weights, error);
  uint64_t hash = hash_weights(weights, 0, shard->layout.count);
  if (code == 0 && shard->filled && hash != shard->frozen_hash[0])
    return ms_error_set(error, MS_EINPUT,
                        "the weights of layer %d are not those that were read before: the model's file was "
                        "changed, or the disk is at fault; --resume goes on",
                        number + 1);
  if (code == 0) {
    shard->frozen_hash[0] = hash;
    shard->filled = 1;
  }
  return code;
}

int ms_shard_read_weights(struct ms_shard_store *store, int number, uint16_t *weights,
                          struct ms_error *error) {
  const struct ms_shard *shard = ms_shard_store_at(store, number);
  int64_t ranges[2][2];
  int code;
  if (store->params.read)
    return read_again(store, number, weights, error);
  code = transfer_weights(shard, 0, 0, shard->layout.count, weights, error);
  if (code < 0)
    return code;
  frozen_ranges(shard, ranges);
  for (int i = 0; i < 2; i++)
    if (hash_weights(weights, ranges[i][0], ranges[i][1]) != shard->frozen_hash[i])
      return damaged(store, shard, "weights", error);
  for (int i = 0; i < shard->piece_count; i++)
    if (hash_weights(weights, shard->pieces[i].begin, shard->pieces[i].count) !=
        shard->pieces[i].hash[MS_STATE_WEIGHTS])
      return damaged(store, shard, "weights", error);
  return 0;
}

static int64_t block_at(const struct ms_shard_store *store, const struct ms_shard *shard, int piece) {
  return shard->state_at + piece * (int64_t)store->block_bytes;
}

int ms_shard_read_part(struct ms_shard_store *store, int number, int index, enum ms_state_part part, void *to,
                       struct ms_error *error) {
  const struct ms_shard *shard = ms_shard_store_at(store, number);
  const struct ms_piece *piece = &shard->pieces[index];
  size_t bytes = ms_state_bytes(store, part, piece->count);
  int64_t at = block_at(store, shard, index) + (int64_t)ms_state_offset(store, part, piece->count);
  int code;
  if (part == MS_STATE_GRADIENT)
    at = shard->gradient_at + (piece->begin - shard->layout.first) * (int64_t)sizeof(float);
  if (part == MS_STATE_WEIGHTS)
    code = transfer_weights(shard, 0, piece->begin, piece->count, to, error);
  else
    code = ms_disk_file_read(&shard->file, at, to, rounded(bytes), error);
  if (code == 0 && ms_hash_block(to, bytes) != piece->hash[part])
    return damaged(store, shard, "optimizer state", error);
  return code;
}

int ms_shard_read_piece(struct ms_shard_store *store, int number, int index, uint16_t *weights, void *block,
                        float *gradient, struct ms_error *error) {
  const struct ms_shard *shard = ms_shard_store_at(store, number);
  const struct ms_piece *piece = &shard->pieces[index];
  int code = ms_shard_read_part(store, number, index, MS_STATE_WEIGHTS, weights + piece->begin, error);
  if (code == 0 && block && !piece->fresh) {
    code = ms_disk_file_read(&shard->file, block_at(store, shard, index), block,
                             ms_state_offset(store, MS_STATE_GRADIENT, piece->count), error);
    for (enum ms_state_part part = MS_STATE_LOW; code == 0 && part < MS_STATE_GRADIENT; part++)
      if (ms_hash_block(ms_state_at(store, block, part, piece->count),
                        ms_state_bytes(store, part, piece->count)) != piece->hash[part])
        return damaged(store, shard, "optimizer state", error);
  }
  if (code == 0 && gradient)
    code = ms_shard_read_part(store, number, index, MS_STATE_GRADIENT, gradient, error);
  return code;
}

int ms_shard_write_piece(struct ms_shard_store *store, int number, int index, const uint16_t *weights,
                         const void *block, struct ms_error *error) {
  struct ms_shard *shard = ms_shard_store_at(store, number);
  struct ms_piece *piece = &shard->pieces[index];
  int code;
  piece->hash[MS_STATE_WEIGHTS] = hash_weights(weights, piece->begin, piece->count);
  for (enum ms_state_part part = MS_STATE_LOW; part < MS_STATE_GRADIENT; part++)
    piece->hash[part] = ms_hash_block((const char *)block + ms_state_offset(store, part, piece->count),
                                      ms_state_bytes(store, part, piece->count));
  code = transfer_weights(shard, 1, piece->begin, piece->count, (uint16_t *)weights + piece->begin, error);
  if (code == 0)
    code = ms_disk_file_write(&shard->file, block_at(store, shard, index), block,
                              ms_state_offset(store, MS_STATE_GRADIENT, piece->count), error);
  if (code < 0)
    store->broken = 1;
  return code;
}

int ms_shard_write_gathered(struct ms_shard_store *store, int number, const uint16_t *weights,
                            struct ms_error *error) {
  struct ms_shard *shard = ms_shard_store_at(store, number);
  const struct ms_shard_layout *l = &shard->layout;
  int64_t ends[2][2] = {{shard->all_first, l->owned ? l->first : shard->all_first + shard->all_owned},
                        {l->first + l->owned, shard->all_first + shard->all_owned}};
  int64_t frozen[2][2];
  int code = 0;
  frozen_ranges(shard, frozen);
  for (int i = 0; i < 2 && code == 0; i++) {
    shard->frozen_hash[i] = hash_weights(weights, frozen[i][0], frozen[i][1]);
    if (ends[i][1] > ends[i][0] && (i == 0 || l->owned))
      code = transfer_weights(shard, 1, ends[i][0], ends[i][1] - ends[i][0], (uint16_t *)weights + ends[i][0],
                              error);
  }
  if (code < 0)
    store->broken = 1;
  return code;
}

int ms_shard_write_gradient(struct ms_shard_store *store, int number, const float *gradient,
                            struct ms_error *error) {
  struct ms_shard *shard = ms_shard_store_at(store, number);
  for (int i = 0; i < shard->piece_count; i++) {
    struct ms_piece *piece = &shard->pieces[i];
    piece->hash[MS_STATE_GRADIENT] =
        ms_hash_block(gradient + (piece->begin - shard->layout.first), (size_t)piece->count * sizeof(float));
  }
  return ms_disk_file_write(&shard->file, shard->gradient_at, gradient,
                            rounded((size_t)shard->layout.owned * sizeof(float)), error);
}
