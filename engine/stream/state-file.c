#include "stream/state-file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "weights/safetensors.h"

#define HASHED ((size_t)1 << 20) /* bytes that go into the sum at a time, from the beginning of a tensor */
#define TENSORS 8

/* One part of one piece at a time in memory. */
struct cursor {
  struct ms_shard_store *store;
  int shard, piece;
  enum ms_state_part part;
  void *memory; /* of the piece */
  int code;
  struct ms_error why;
};

static int open_cursor(struct cursor *c, struct ms_shard_store *store, struct ms_error *error) {
  *c = (struct cursor){.store = store, .shard = -2};
  c->memory =
      aligned_alloc(MS_DISK_ALIGN, (size_t)ms_disk_round(store->params.piece * (int64_t)sizeof(float)));
  return c->memory ? 0 : ms_error_set(error, MS_ENOMEM, "out of memory for a piece of the model's state");
}

static size_t element_size(const struct ms_shard_store *store, enum ms_state_part part) {
  return part == MS_STATE_M || part == MS_STATE_V           ? ms_state_bytes(store, part, 1)
         : part == MS_STATE_WEIGHTS || part == MS_STATE_LOW ? 2
                                                            : 4;
}

/* Elements of a part for so many parameters. */
static int64_t elements(enum ms_state_part part, int64_t count) {
  return part == MS_STATE_M_SCALE || part == MS_STATE_V_SCALE
             ? (count + MSK_ADAMW_BLOCK - 1) / MSK_ADAMW_BLOCK
             : count;
}

static void widen(const uint16_t *from, float *to, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    to[i] = msk_bf16_to_f32(from[i]);
}

/* What the piece has: its memory in the host, or read. */
static const void *look_at(struct cursor *c, int number, int index, enum ms_state_part part) {
  const struct ms_shard *shard = ms_shard_store_at(c->store, number);
  const struct ms_piece *piece = &shard->pieces[index];
  const void *home = NULL;
  if (shard->home == MS_HOME_HOST)
    home = part == MS_STATE_WEIGHTS
               ? (const void *)(shard->weights + piece->begin)
               : ms_state_at(c->store, shard->state + index * c->store->block_bytes, part, piece->count);
  if (home && !(piece->fresh && part != MS_STATE_WEIGHTS))
    return home;
  if (c->shard == number && c->piece == index && c->part == part)
    return c->memory;
  c->shard = number;
  c->piece = index;
  c->part = part;
  if (!piece->fresh || part == MS_STATE_WEIGHTS) {
    c->code = ms_shard_read_part(c->store, number, index, part, c->memory, &c->why);
  } else if (part == MS_STATE_AVERAGE) { /* of a piece that was never updated: the weights */
    uint16_t *weights = aligned_alloc(MS_DISK_ALIGN, (size_t)ms_disk_round(piece->count * 2));
    if (!weights)
      c->code = ms_error_set(&c->why, MS_ENOMEM, "out of memory for a piece of the model's state");
    else if (shard->home == MS_HOME_HOST)
      memcpy(weights, shard->weights + piece->begin, (size_t)piece->count * 2);
    else
      c->code = ms_shard_read_part(c->store, number, index, MS_STATE_WEIGHTS, weights, &c->why);
    if (c->code == 0)
      widen(weights, c->memory, piece->count);
    free(weights);
  } else {
    memset(c->memory, 0, ms_state_bytes(c->store, part, piece->count));
  }
  return c->memory;
}

/* Elements [begin, begin + count) of a part of what this rank owns of a shard. */
static void copy_own(struct cursor *c, int number, enum ms_state_part part, int64_t begin, int64_t count,
                     void *out) {
  const struct ms_shard *shard = ms_shard_store_at(c->store, number);
  size_t size = element_size(c->store, part);
  int64_t step = elements(part, c->store->params.piece);
  while (count > 0 && c->code == 0) {
    int index = (int)(begin / step);
    int64_t at = begin % step, has = elements(part, shard->pieces[index].count) - at,
            n = count < has ? count : has;
    const void *from = look_at(c, number, index, part);
    if (c->code == 0)
      memcpy(out, (const char *)from + (size_t)at * size, (size_t)n * size);
    out = (char *)out + (size_t)n * size;
    begin += n;
    count -= n;
  }
}

/* What rank 0 asks of another: elements of a part of what it owns. shard -2: nothing more. The answer is a
 * code, then the values or the failure. */
struct request {
  int64_t shard, part, begin, count;
};

static void fetch(struct cursor *c, int rank, const struct request *request, void *out) {
  struct ms_group *g = c->store->params.group;
  int64_t code;
  g->send(g->data, request, (int)sizeof *request, rank);
  g->receive(g->data, &code, (int)sizeof code, rank);
  if (code == 0)
    g->receive(g->data, out,
               (int)(request->count * (int64_t)element_size(c->store, (enum ms_state_part)request->part)),
               rank);
  else
    g->receive(g->data, &c->why, (int)sizeof c->why, rank);
  c->code = (int)code;
}

int ms_state_serve(struct ms_shard_store *store, struct ms_error *error) {
  struct ms_group *g = store->params.group;
  struct cursor cursor = {0};
  struct request request;
  void *values = NULL;
  int64_t room = 0, code = open_cursor(&cursor, store, &cursor.why);
  for (g->receive(g->data, &request, (int)sizeof request, 0); request.shard > -2;
       g->receive(g->data, &request, (int)sizeof request, 0)) {
    int64_t bytes = request.count * (int64_t)element_size(store, (enum ms_state_part)request.part);
    if (bytes > room) {
      free(values);
      values = malloc((size_t)bytes);
      room = values ? bytes : 0;
    }
    if (code == 0 && !values)
      code = ms_error_set(&cursor.why, MS_ENOMEM, "out of memory for a piece of the model's state");
    if (code == 0) {
      copy_own(&cursor, (int)request.shard, (enum ms_state_part)request.part, request.begin, request.count,
               values);
      code = cursor.code;
    }
    g->send(g->data, &code, (int)sizeof code, 0);
    g->send(g->data, code == 0 ? values : (void *)&cursor.why,
            code == 0 ? (int)bytes : (int)sizeof cursor.why, 0);
  }
  free(values);
  free(cursor.memory);
  return code < 0 ? ms_error_set(error, (int)code, "%s", cursor.why.message) : 0;
}

void ms_state_served(struct ms_shard_store *store) {
  const struct request nothing = {.shard = -2};
  struct ms_group *g = store->params.group;
  for (int r = 1; r < g->size; r++)
    g->send(g->data, &nothing, (int)sizeof nothing, r);
}

/* Elements [begin, begin + count) of a part of all that has a state in a shard. */
static void copy_part(struct cursor *c, int number, enum ms_state_part part, int64_t begin, int64_t count,
                      void *out) {
  const struct ms_shard *shard = ms_shard_store_at(c->store, number);
  int64_t share = shard->share, step = elements(part, share);
  while (count > 0 && c->code == 0) {
    int rank = (int)(begin / step);
    int64_t at = begin % step, left = shard->all_owned - rank * share,
            has = elements(part, left < share ? left : share) - at, n = count < has ? count : has;
    struct request request = {number, part, at, n};
    if (rank == ms_group_rank(c->store->params.group))
      copy_own(c, number, part, at, n, out);
    else
      fetch(c, rank, &request, out);
    out = (char *)out + (size_t)n * element_size(c->store, part);
    begin += n;
    count -= n;
  }
}

struct tensor_list {
  struct ms_tensor_out out[TENSORS];
  enum ms_state_part parts[TENSORS];
  int count;
};

static void list_tensors(const struct ms_shard_store *store, struct tensor_list *list) {
  static const char *const names[] = {"weights", "low", "m", "v", "m_scale", "v_scale", "average"};
  int small = store->params.moment_bits == 8;
  list->count = 0;
  for (enum ms_state_part part = MS_STATE_WEIGHTS; part < MS_STATE_GRADIENT; part++) {
    enum ms_dtype dtype = part == MS_STATE_WEIGHTS                              ? MS_DTYPE_BF16
                          : part == MS_STATE_LOW                                ? MS_DTYPE_U16
                          : small && (part == MS_STATE_M || part == MS_STATE_V) ? MS_DTYPE_U8
                                                                                : MS_DTYPE_F32;
    int64_t total = 0;
    if (part >= MS_STATE_LOW && ms_state_bytes(store, part, 1) == 0)
      continue;
    for (int i = 0; i <= store->params.layers; i++)
      total += elements(part, store->shards[i].all_owned);
    list->parts[list->count] = part;
    list->out[list->count++] = (struct ms_tensor_out){names[part], dtype, 1, {total}, NULL};
  }
}

double ms_state_file_bytes(const struct ms_shard_store *store) {
  struct tensor_list list;
  double bytes = 4096;
  list_tensors(store, &list);
  for (int i = 0; i < list.count; i++)
    bytes += (double)list.out[i].dims[0] * (double)ms_dtype_size(list.out[i].dtype);
  return bytes;
}

struct saving {
  struct cursor cursor;
  const struct tensor_list *list;
  uint64_t sum;
};

static int fill_state(void *data, int tensor, int64_t begin, int64_t count, void *out,
                      struct ms_error *error) {
  struct saving *s = data;
  const struct ms_shard_store *store = s->cursor.store;
  enum ms_state_part part = s->list->parts[tensor];
  size_t size = element_size(store, part), bytes = (size_t)count * size;
  char *to = out;
  for (int i = 0; i <= store->params.layers && count > 0; i++) {
    int64_t has = elements(part, store->shards[i].all_owned), n = has - begin;
    if (n <= 0) {
      begin -= has;
      continue;
    }
    n = n < count ? n : count;
    copy_part(&s->cursor, i - 1, part, begin, n, to);
    to += (size_t)n * size;
    count -= n;
    begin = 0;
  }
  if (s->cursor.code < 0)
    return ms_error_set(error, s->cursor.code, "%s", s->cursor.why.message);
  for (size_t at = 0; at < bytes; at += HASHED) {
    uint64_t hash = ms_hash_block((char *)out + at, bytes - at < HASHED ? bytes - at : HASHED);
    s->sum = ms_hash_bytes(s->sum, &hash, sizeof hash);
  }
  return 0;
}

int ms_state_file_write(struct ms_shard_store *store, const char *path, uint64_t *sum,
                        struct ms_error *error) {
  struct tensor_list list;
  struct saving saving = {.list = &list, .sum = MS_HASH_START};
  int code = open_cursor(&saving.cursor, store, error);
  if (code < 0)
    return code;
  list_tensors(store, &list);
  code = ms_safetensors_write_with(path, list.out, list.count, NULL, fill_state, &saving, error);
  *sum = saving.sum;
  free(saving.cursor.memory);
  return code;
}

/* A file whose values add up. It is read twice, and a disk may give other bytes the second time: these are
 * compared with what was added up, a block at a time. */
struct checked {
  struct ms_safetensors *file;
  uint64_t *hashes;                  /* of the blocks of all tensors, in order of the data */
  unsigned char *block;              /* [HASHED] */
  const struct ms_tensor_view *view; /* whose block `number` is in `block`; NULL: none */
  int64_t number;
};

static int64_t block_elements(const struct ms_tensor_view *view) {
  return (int64_t)(HASHED / ms_dtype_size(view->dtype));
}

static int64_t blocks_of(const struct ms_tensor_view *view) {
  return (view->count + block_elements(view) - 1) / block_elements(view);
}

static int read_block(struct checked *c, const struct ms_tensor_view *view, int64_t number, uint64_t *hash,
                      struct ms_error *error) {
  int64_t step = block_elements(view), at = number * step,
          n = view->count - at < step ? view->count - at : step;
  int code = ms_safetensors_read(c->file, view, at, n, c->block, error);
  c->view = NULL;
  if (code == 0)
    *hash = ms_hash_block(c->block, (size_t)n * ms_dtype_size(view->dtype));
  return code;
}

/* Elements [begin, begin + count) of a tensor. */
static int read_checked(struct checked *c, const struct ms_tensor_view *view, int64_t begin, int64_t count,
                        void *out, struct ms_error *error) {
  size_t size = ms_dtype_size(view->dtype);
  int64_t step = block_elements(view), first = 0;
  for (int i = 0; ms_safetensors_at(c->file, i) != view; i++)
    first += blocks_of(ms_safetensors_at(c->file, i));
  while (count > 0) {
    int64_t number = begin / step, at = begin % step, n = step - at < count ? step - at : count;
    if (c->view != view || c->number != number) {
      uint64_t hash = 0;
      int code = read_block(c, view, number, &hash, error);
      if (code < 0)
        return code;
      if (hash != c->hashes[first + number])
        return ms_error_set(error, MS_EINPUT, "\"%.300s\" is damaged: it is not what it was a moment ago",
                            ms_safetensors_path(c->file));
      c->view = view;
      c->number = number;
    }
    memcpy(out, c->block + (size_t)at * size, (size_t)n * size);
    out = (char *)out + (size_t)n * size;
    begin += n;
    count -= n;
  }
  return 0;
}

static void close_checked(struct checked *c) {
  ms_safetensors_close(&c->file);
  free(c->hashes);
  free(c->block);
}

static int add_up(struct checked *c, uint64_t sum, struct ms_error *error) {
  uint64_t found = MS_HASH_START, *hash = c->hashes;
  for (int i = 0; i < ms_safetensors_count(c->file); i++) {
    const struct ms_tensor_view *view = ms_safetensors_at(c->file, i);
    for (int64_t j = 0; j < blocks_of(view); j++, hash++) {
      int code = read_block(c, view, j, hash, error);
      if (code < 0)
        return code;
      found = ms_hash_bytes(found, hash, sizeof *hash);
    }
  }
  if (found != sum)
    return ms_error_set(error, MS_EINPUT, "\"%.300s\" is damaged: its values do not add up",
                        ms_safetensors_path(c->file));
  return 0;
}

/* Also after a failure the caller closes. */
static int open_checked(struct checked *c, const char *path, const struct tensor_list *list, uint64_t sum,
                        struct ms_error *error) {
  int64_t blocks = 0;
  int code;
  *c = (struct checked){0};
  code = ms_safetensors_open(&c->file, path, error);
  if (code < 0)
    return code;
  for (int i = 0; i < list->count; i++) {
    const struct ms_tensor_view *view = ms_safetensors_find(c->file, list->out[i].name);
    if (!view || view->dtype != list->out[i].dtype || view->count != list->out[i].dims[0])
      return ms_error_set(
          error, MS_EINPUT,
          "\"%.300s\" was saved by a run of another model or other settings: \"%s\" does not fit", path,
          list->out[i].name);
  }
  for (int i = 0; i < ms_safetensors_count(c->file); i++)
    blocks += blocks_of(ms_safetensors_at(c->file, i));
  c->hashes = malloc((size_t)(blocks + 1) * sizeof *c->hashes);
  c->block = malloc(HASHED);
  if (!c->hashes || !c->block)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a piece of the model's state");
  return add_up(c, sum, error);
}

/* Puts a piece's parts where they belong. block: memory for its state; weights: of the whole shard. */
static int put_piece(struct ms_shard_store *store, int number, int index, struct checked *file,
                     const struct tensor_list *list, const int64_t *begins, uint16_t *weights, void *block,
                     struct ms_error *error) {
  struct ms_shard *shard = ms_shard_store_at(store, number);
  struct ms_piece *piece = &shard->pieces[index];
  int code = 0;
  for (int i = 0; i < list->count && code == 0; i++) {
    enum ms_state_part part = list->parts[i];
    void *to = part == MS_STATE_WEIGHTS ? (void *)(weights + piece->begin)
                                        : ms_state_at(store, block, part, piece->count);
    code = read_checked(file, ms_safetensors_find(file->file, list->out[i].name),
                        begins[i] + elements(part, piece->begin - shard->all_first),
                        elements(part, piece->count), to, error);
  }
  if (code == 0 && shard->home == MS_HOME_DISK)
    code = ms_shard_write_piece(store, number, index, weights, block, error);
  piece->fresh = piece->pending = 0;
  return code;
}

/* The weights that have their state on other ranks, of which all have all. weights: of the whole shard, for
 * one on the disk also those that have none. */
static int put_weights(struct ms_shard_store *store, int number, struct checked *file, int64_t begin,
                       uint16_t *weights, struct ms_error *error) {
  const struct ms_shard *shard = ms_shard_store_at(store, number);
  int disk = shard->home == MS_HOME_DISK,
      code = disk ? ms_shard_read_weights(store, number, weights, error) : 0;
  if (code == 0)
    code = read_checked(file, ms_safetensors_find(file->file, "weights"), begin, shard->all_owned,
                        weights + shard->all_first, error);
  return code == 0 && disk ? ms_shard_write_gathered(store, number, weights, error) : code;
}

static int put_all(struct ms_shard_store *store, struct checked *file, const struct tensor_list *list,
                   struct ms_error *error) {
  int64_t begins[TENSORS] = {0}, widest = 0;
  uint16_t *weights = NULL;
  void *block;
  int code = 0;
  for (int i = 0; i <= store->params.layers; i++)
    if (store->shards[i].layout.count > widest)
      widest = store->shards[i].layout.count;
  weights = aligned_alloc(MS_DISK_ALIGN, (size_t)ms_disk_round(widest * (int64_t)sizeof *weights));
  block = aligned_alloc(MS_DISK_ALIGN, store->block_bytes + MS_DISK_ALIGN);
  if (!weights || !block)
    code = ms_error_set(error, MS_ENOMEM, "out of memory for a layer of the model's state");
  for (int i = 0; i <= store->params.layers && code == 0; i++) {
    struct ms_shard *shard = &store->shards[i];
    int host = shard->home == MS_HOME_HOST;
    if (store->params.group && shard->all_owned)
      code = put_weights(store, i - 1, file, begins[0], host ? shard->weights : weights, error);
    for (int j = 0; j < shard->piece_count && code == 0; j++)
      code = put_piece(store, i - 1, j, file, list, begins, host ? shard->weights : weights,
                       host ? shard->state + j * store->block_bytes : block, error);
    for (int t = 0; t < list->count; t++)
      begins[t] += elements(list->parts[t], shard->all_owned);
  }
  free(weights);
  free(block);
  return code;
}

int ms_state_file_read(struct ms_shard_store *store, const char *path, uint64_t sum, struct ms_error *error) {
  struct checked file;
  struct tensor_list list;
  int code;
  list_tensors(store, &list);
  code = open_checked(&file, path, &list, sum, error);
  if (code == 0)
    code = put_all(store, &file, &list, error);
  close_checked(&file);
  return code;
}

/* Weights as they would be exported. */
struct ms_state_values {
  struct cursor cursor;
  uint16_t *frozen; /* weights of the shard at hand, where some have no state */
  int frozen_shard;
  float *values;
};

int ms_state_values_open(struct ms_state_values **out, struct ms_shard_store *store, struct ms_error *error) {
  struct ms_state_values *v = calloc(1, sizeof *v);
  int64_t widest = 0;
  int code;
  *out = v;
  if (!v)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a piece of the model's state");
  v->frozen_shard = -2;
  code = open_cursor(&v->cursor, store, error);
  for (int i = 0; i <= store->params.layers; i++)
    if (store->shards[i].home == MS_HOME_DISK && store->shards[i].all_owned < store->shards[i].layout.count &&
        store->shards[i].layout.count > widest)
      widest = store->shards[i].layout.count;
  v->values = malloc(HASHED);
  v->frozen = widest ? aligned_alloc(MS_DISK_ALIGN, (size_t)ms_disk_round(widest * 2)) : NULL;
  if (code == 0 && (!v->values || (widest && !v->frozen)))
    code = ms_error_set(error, MS_ENOMEM, "out of memory for a piece of the model's state");
  if (code < 0)
    ms_state_values_close(out);
  return code;
}

void ms_state_values_close(struct ms_state_values **pointer) {
  struct ms_state_values *v = *pointer;
  if (!v)
    return;
  *pointer = NULL;
  free(v->values);
  free(v->frozen);
  free(v->cursor.memory);
  free(v);
}

static int shard_of(const struct ms_shard_store *store, int64_t at) {
  for (int i = 0; i <= store->params.layers; i++)
    if (at >= store->shards[i].layout.begin &&
        at < store->shards[i].layout.begin + store->shards[i].layout.count)
      return i - 1;
  return -1;
}

/* Weights without a state, of a shard that may lie on the disk. */
static void copy_frozen(struct ms_state_values *v, int number, int64_t begin, int64_t count, uint16_t *out) {
  const struct ms_shard *shard = ms_shard_store_at(v->cursor.store, number);
  const uint16_t *from = shard->weights;
  if (shard->home == MS_HOME_DISK) {
    if (v->frozen_shard != number) {
      v->cursor.code = ms_shard_read_weights(v->cursor.store, number, v->frozen, &v->cursor.why);
      v->frozen_shard = number;
    }
    from = v->frozen;
  }
  if (v->cursor.code == 0)
    memcpy(out, from + begin, (size_t)count * sizeof *out);
}

int ms_state_values_read(struct ms_state_values *v, int64_t begin, int64_t count, uint16_t *out,
                         struct ms_error *error) {
  struct ms_shard_store *store = v->cursor.store;
  int number = shard_of(store, begin);
  const struct ms_shard *shard = ms_shard_store_at(store, number);
  int64_t at = begin - shard->layout.begin, first = shard->all_first, end = first + shard->all_owned;
  while (count > 0 && v->cursor.code == 0) {
    int owned = at >= first && at < end;
    int64_t to = owned                       ? end
                 : end > first && at < first ? first
                                             : shard->layout.count,
            n = to - at < count ? to - at : count;
    if (!owned) {
      copy_frozen(v, number, at, n, out);
    } else if (!store->params.average) {
      copy_part(&v->cursor, number, MS_STATE_WEIGHTS, at - first, n, out);
    } else {
      n = n < (int64_t)(HASHED / sizeof(float)) ? n : (int64_t)(HASHED / sizeof(float));
      copy_part(&v->cursor, number, MS_STATE_AVERAGE, at - first, n, v->values);
      for (int64_t i = 0; i < n && v->cursor.code == 0; i++)
        out[i] = msk_f32_to_bf16(v->values[i]);
    }
    at += n;
    out += n;
    count -= n;
  }
  return v->cursor.code < 0 ? ms_error_set(error, v->cursor.code, "%s", v->cursor.why.message) : 0;
}

struct exporting {
  struct ms_state_values *values;
  const struct ms_params *params;
};

static int fill_export(void *data, int tensor, int64_t begin, int64_t count, void *out,
                       struct ms_error *error) {
  struct exporting *e = data;
  return ms_state_values_read(e->values, e->params->list[tensor].offset + begin, count, out, error);
}

int ms_state_file_export(struct ms_shard_store *store, const struct ms_params *params, const char *path,
                         struct ms_error *error) {
  struct ms_tensor_out *tensors = calloc((size_t)params->count + 1, sizeof *tensors);
  struct exporting e = {.params = params};
  int code = ms_state_values_open(&e.values, store, error);
  if (code == 0 && !tensors)
    code = ms_error_set(error, MS_ENOMEM, "cannot write \"%.300s\": out of memory", path);
  for (int i = 0; i < params->count && code == 0; i++) {
    tensors[i] = (struct ms_tensor_out){
        .name = params->list[i].name, .dtype = MS_DTYPE_BF16, .ndim = params->list[i].ndim};
    memcpy(tensors[i].dims, params->list[i].dims, sizeof params->list[i].dims);
  }
  if (code == 0)
    code = ms_safetensors_write_with(path, tensors, params->count, NULL, fill_export, &e, error);
  ms_state_values_close(&e.values);
  free(tensors);
  return code;
}
