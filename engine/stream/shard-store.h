/* The state of a model by shard: weights, and for training the low words of the split master, moments,
 * average and gradient. A shard's home is the host or a working file on disk; what has its home on disk takes
 * no memory here, only in the buffers of the streamer. Shard -1 (what belongs to no layer) is always in the
 * host.
 *
 *   code = ms_shard_store_open (&store, &params, pool, &error);
 *   for (shard = -1; shard < layers; shard++)
 *     code = ms_shard_store_fill (store, shard, read_weights, data, &error);
 *   ... ms_streamer_... (streamer.h) ...
 *   ms_shard_store_close (&store);
 *
 * State is updated in pieces: `owned` parameters of a shard from its parameter `first` on are cut into pieces
 * of `piece`. A piece's state is one block, a part after the other, each at a multiple of 4096 bytes:
 *   low words uint16, m and v float32 (or 8-bit codes with a float32 scale for 256 of each), average float32.
 * In a group of ranks all have all weights, and each has the state of its share. What lies on disk is checked
 * against hashes kept in memory whenever it is read. */
#pragma once
#include "base/pool.h"
#include "group/group.h"
#include "msk-adamw.h"
#include "stream/disk-file.h"
#include "stream/schedule.h"

enum ms_state_part {
  MS_STATE_WEIGHTS, /* bf16: the high words */
  MS_STATE_LOW,
  MS_STATE_M,
  MS_STATE_V,
  MS_STATE_M_SCALE,
  MS_STATE_V_SCALE,
  MS_STATE_AVERAGE,
  MS_STATE_GRADIENT,
  MS_STATE_PARTS
};

struct ms_shard_layout {
  int64_t begin, count; /* of the model's flat list of parameters */
  int64_t first, owned; /* the parameters with a state, from the shard's beginning; owned 0: none. Given to
                           open: of all ranks; in a shard: this rank's share of them */
};

/* Fills weights [count] of a shard from elsewhere, such as a model's file. */
typedef int (*ms_shard_read_fn)(void *data, int shard, uint16_t *weights, struct ms_error *error);

struct ms_shard_store_params {
  int layers;
  const struct ms_shard_layout *layout; /* [layers + 1], shard -1 first */
  const enum ms_home *homes;            /* [layers]; NULL: all in the host */
  int moment_bits;                      /* 32 or 8; 0: weights only, nothing is trained */
  int average;
  int64_t piece;         /* a multiple of 4096 */
  const char *folder;    /* for working files; NULL if no layer needs one */
  ms_shard_read_fn read; /* not NULL: weights of layers on disk are read by it each time (weights only) */
  void *read_data;
  struct ms_group *group; /* borrowed; NULL: alone */
};

struct ms_piece {
  int64_t begin, count; /* from the shard's beginning */
  int fresh;            /* never updated: low words and moments are zero, the average is the weights */
  int pending;          /* its gradient waits to be applied */
  uint64_t hash[MS_STATE_PARTS];
};

struct ms_shard {
  struct ms_shard_layout layout;
  int64_t all_first, all_owned; /* the parameters with a state on any rank */
  int64_t share;                /* a rank's, see group/group.h */
  enum ms_home home;
  uint16_t *weights;    /* [count], host */
  unsigned char *state; /* [pieces] blocks, host */
  float *gradient;      /* [owned], host */
  struct ms_piece *pieces;
  int piece_count;
  uint64_t frozen_hash[2]; /* of the weights before and behind the owned ones */
  int filled;
  struct ms_disk_file file;
  int64_t state_at, gradient_at; /* in the file; weights are at 0 */
};

struct ms_shard_store {
  struct ms_shard_store_params params; /* arrays are not kept */
  struct ms_shard *shards;             /* [layers + 1] */
  size_t block_bytes;                  /* of a whole piece's state */
  int broken; /* a write failed: what is on disk is neither before nor after a step */
};

int ms_shard_store_open(struct ms_shard_store **store, const struct ms_shard_store_params *params,
                        struct ms_pool *pool, struct ms_error *error);
void ms_shard_store_close(struct ms_shard_store **store);
static inline struct ms_shard *ms_shard_store_at(const struct ms_shard_store *store, int shard) {
  return &store->shards[shard + 1];
}
/* First weights; state starts anew. */
int ms_shard_store_fill(struct ms_shard_store *store, int shard, ms_shard_read_fn read, void *data,
                        struct ms_error *error);

/* Bytes of the block of a piece of `count` parameters, before there is a store. */
size_t ms_state_block_bytes(int moment_bits, int average, int64_t count);
/* Parts of a block of `count` parameters: bytes of one, and where they are in it. */
size_t ms_state_bytes(const struct ms_shard_store *store, enum ms_state_part part, int64_t count);
size_t ms_state_offset(const struct ms_shard_store *store, enum ms_state_part part, int64_t count);
static inline void *ms_state_at(const struct ms_shard_store *store, void *block, enum ms_state_part part,
                                int64_t count) {
  return (unsigned char *)block + ms_state_offset(store, part, count);
}

/* From and to disk, for one thread a direction. Buffers are aligned to 4096 and padded to a multiple of it.
 * MS_EINPUT: cannot be read, or what was read is not what was written. */
int ms_shard_read_weights(struct ms_shard_store *store, int shard, uint16_t *weights, struct ms_error *error);
/* Of a piece; weights: of the whole shard. block or gradient NULL: not wanted. */
int ms_shard_read_piece(struct ms_shard_store *store, int shard, int piece, uint16_t *weights, void *block,
                        float *gradient, struct ms_error *error);
int ms_shard_write_piece(struct ms_shard_store *store, int shard, int piece, const uint16_t *weights,
                         const void *block, struct ms_error *error);
/* One part of a piece's state, or its weights or gradient, into memory for just that. */
int ms_shard_read_part(struct ms_shard_store *store, int shard, int piece, enum ms_state_part part, void *to,
                       struct ms_error *error);
/* Of the shard's weights those that have their state on other ranks. weights: of the whole shard. */
int ms_shard_write_gathered(struct ms_shard_store *store, int shard, const uint16_t *weights,
                            struct ms_error *error);
/* gradient [owned] */
int ms_shard_write_gradient(struct ms_shard_store *store, int shard, const float *gradient,
                            struct ms_error *error);
