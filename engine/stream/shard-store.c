#include "stream/shard-store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/arena.h"
#include "base/system.h"

/* Memory that a task of the pool touches first. */
#define TOUCH ((int64_t)16 << 20)

static size_t part_bytes(const struct ms_shard_store_params *p, enum ms_state_part part, int64_t n) {
  int small = p->moment_bits == 8;
  int64_t blocks = (n + MSK_ADAMW_BLOCK - 1) / MSK_ADAMW_BLOCK;
  switch (part) {
  case MS_STATE_WEIGHTS:
  case MS_STATE_LOW:
    return (size_t)n * sizeof(uint16_t);
  case MS_STATE_M:
  case MS_STATE_V:
    return (size_t)n * (small ? 1 : sizeof(float));
  case MS_STATE_M_SCALE:
  case MS_STATE_V_SCALE:
    return small ? (size_t)blocks * sizeof(float) : 0;
  case MS_STATE_AVERAGE:
    return p->average ? (size_t)n * sizeof(float) : 0;
  default:
    return (size_t)n * sizeof(float);
  }
}

size_t ms_state_bytes(const struct ms_shard_store *store, enum ms_state_part part, int64_t count) {
  return part_bytes(&store->params, part, count);
}

/* The block holds the parts from the low words to the average. */
static size_t part_offset(const struct ms_shard_store_params *p, enum ms_state_part part, int64_t n) {
  size_t at = 0;
  for (enum ms_state_part i = MS_STATE_LOW; i < part; i++)
    at += (size_t)ms_disk_round((int64_t)part_bytes(p, i, n));
  return at;
}

size_t ms_state_offset(const struct ms_shard_store *store, enum ms_state_part part, int64_t count) {
  return part_offset(&store->params, part, count);
}

size_t ms_state_block_bytes(int moment_bits, int average, int64_t count) {
  const struct ms_shard_store_params params = {.moment_bits = moment_bits, .average = average};
  return part_offset(&params, MS_STATE_GRADIENT, count);
}

struct touching {
  unsigned char *memory;
  int64_t bytes;
};

static void touch(void *data, int64_t task, void *scratch) {
  const struct touching *t = data;
  int64_t at = task * TOUCH, bytes = t->bytes - at < TOUCH ? t->bytes - at : TOUCH;
  memset(t->memory + at, 0, (size_t)bytes);
}

/* Zeroed memory whose pages are touched by all threads, so that they lie near those that use them. */
static void *take(struct ms_pool *pool, size_t bytes) {
  struct touching t = {.bytes = ms_disk_round((int64_t)bytes)};
  t.memory = ms_pages_take((size_t)t.bytes);
  if (t.memory)
    ms_pool_run(pool, touch, &t, (t.bytes + TOUCH - 1) / TOUCH);
  return t.memory;
}

static int make_pieces(struct ms_shard *shard, int64_t piece) {
  shard->piece_count = (int)((shard->layout.owned + piece - 1) / piece);
  shard->pieces = calloc((size_t)shard->piece_count + 1, sizeof *shard->pieces);
  for (int i = 0; shard->pieces && i < shard->piece_count; i++) {
    int64_t at = i * piece, left = shard->layout.owned - at;
    shard->pieces[i] = (struct ms_piece){
        .begin = shard->layout.first + at, .count = left < piece ? left : piece, .fresh = 1};
  }
  return shard->pieces ? 0 : -1;
}

/* This rank's part of what the layout says. */
static int take_share(struct ms_shard *shard, const struct ms_group *group, struct ms_error *error) {
  struct ms_shard_layout *l = &shard->layout;
  int64_t first;
  shard->all_first = l->first;
  shard->all_owned = l->owned;
  shard->share = ms_group_share(group, shard->all_owned, &first, &l->owned);
  l->first = shard->all_first + first;
  if (group && shard->all_owned > INT32_MAX)
    return ms_error_set(error, MS_EUSAGE, "layers of more than 2^31 parameters cannot be shared by ranks");
  return 0;
}

static int open_host(struct ms_shard_store *store, struct ms_shard *shard, struct ms_pool *pool) {
  const struct ms_shard_layout *l = &shard->layout;
  shard->weights = take(pool, (size_t)l->count * sizeof *shard->weights);
  if (!shard->weights)
    return -1;
  if (!shard->piece_count)
    return 0;
  shard->state = take(pool, (size_t)shard->piece_count * store->block_bytes);
  shard->gradient = take(pool, (size_t)l->owned * sizeof *shard->gradient);
  return shard->state && shard->gradient ? 0 : -1;
}

static int open_disk(struct ms_shard_store *store, struct ms_shard *shard, struct ms_error *error) {
  const struct ms_shard_layout *l = &shard->layout;
  if (store->params.read)
    return 0;
  shard->state_at = ms_disk_round(l->count * (int64_t)sizeof(uint16_t));
  shard->gradient_at = shard->state_at + shard->piece_count * (int64_t)store->block_bytes;
  return ms_disk_file_open(&shard->file, store->params.folder,
                           shard->gradient_at + ms_disk_round(l->owned * (int64_t)sizeof(float)), error);
}

int ms_shard_store_open(struct ms_shard_store **out, const struct ms_shard_store_params *params,
                        struct ms_pool *pool, struct ms_error *error) {
  struct ms_shard_store *store = calloc(1, sizeof *store);
  int code = 0;
  *out = NULL;
  if (store)
    store->shards = calloc((size_t)params->layers + 1, sizeof *store->shards);
  if (!store || !store->shards) {
    free(store);
    return ms_error_set(error, MS_ENOMEM, "out of memory for the model's state");
  }
  store->params = *params;
  store->block_bytes = part_offset(params, MS_STATE_GRADIENT, params->piece);
  for (int i = 0; i <= params->layers; i++)
    store->shards[i].file = (struct ms_disk_file){-1, -1, ""};
  for (int i = 0; i <= params->layers && code == 0; i++) {
    struct ms_shard *shard = &store->shards[i];
    shard->layout = params->layout[i];
    if (!params->moment_bits)
      shard->layout.owned = 0;
    code = take_share(shard, params->group, error);
    shard->home = i > 0 && params->homes ? params->homes[i - 1] : MS_HOME_HOST;
    if (code < 0)
      break;
    if (make_pieces(shard, params->piece) < 0 ||
        (shard->home == MS_HOME_HOST && open_host(store, shard, pool) < 0)) {
      char size[32];
      double bytes =
          (double)shard->layout.count * 2 + (double)shard->piece_count * (double)store->block_bytes;
      code = ms_error_set(error, MS_ENOMEM, "out of memory for %s of layer %d of the model",
                          ms_format_bytes(bytes, size, sizeof size), i);
    } else if (shard->home == MS_HOME_DISK) {
      code = open_disk(store, shard, error);
    }
  }
  store->params.layout = NULL;
  store->params.homes = NULL;
  store->params.folder = NULL;
  if (code < 0) {
    ms_shard_store_close(&store);
    return code;
  }
  *out = store;
  return 0;
}

void ms_shard_store_close(struct ms_shard_store **pointer) {
  struct ms_shard_store *store = *pointer;
  if (!store)
    return;
  *pointer = NULL;
  for (int i = 0; i <= store->params.layers; i++) {
    struct ms_shard *shard = &store->shards[i];
    free(shard->weights);
    free(shard->state);
    free(shard->gradient);
    free(shard->pieces);
    ms_disk_file_close(&shard->file);
  }
  free(store->shards);
  free(store);
}
