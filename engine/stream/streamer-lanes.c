/* The lanes' threads and the operations that they do. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/system.h"
#include "stream/streamer-private.h"

static int is_cancelled(const struct ms_streamer *s) {
  return s->p.cancel && atomic_load(s->p.cancel);
}

/* Under the lock: 1 the operation may begin, 0 not yet, -1 never. What was updated is still written when the
 * pass is stopping, so that a piece is never half of one step and half of the next. */
static int readiness(const struct ms_streamer *s, const struct ms_op *op) {
  int ready = 1;
  if (s->code < 0 && op->lane != MS_LANE_WRITE)
    return -1;
  if (s->stopping && op->lane != MS_LANE_WRITE)
    return -1;
  for (int i = 0; i < op->need_count; i++)
    if (!s->done[op->needs[i]]) {
      if (s->left[s->schedule->ops[op->needs[i]].lane])
        return -1;
      ready = 0;
    }
  return ready;
}

int ms_streamer_wait_op(struct ms_streamer *s, int index) {
  const struct ms_op *op = &s->schedule->ops[index];
  int ready;
  pthread_mutex_lock(&s->lock);
  while ((ready = readiness(s, op)) == 0)
    pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
  return ready < 0;
}

void ms_streamer_finish_op(struct ms_streamer *s, int index, double began) {
  const struct ms_op *op = &s->schedule->ops[index];
  struct ms_trace_event event = {op->kind, op->lane, op->layer,    op->piece,
                                 s->step,  began,    ms_seconds(), op->bytes};
  if (s->p.trace)
    ms_trace_add(s->p.trace, &event);
  pthread_mutex_lock(&s->lock);
  s->done[index] = 1;
  s->stats.busy[op->lane] += event.end - began;
  s->stats.bytes[op->lane] += op->bytes;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

void ms_streamer_fail(struct ms_streamer *s, int code, const struct ms_error *why) {
  pthread_mutex_lock(&s->lock);
  if (s->code == 0) {
    s->code = code;
    s->why = *why;
  }
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

static int read_input(struct ms_streamer *s, const struct ms_op *op, struct ms_error *error) {
  int code = ms_disk_file_read(&s->input_file, op->layer * s->input_bytes, s->inputs[op->buffer],
                               (size_t)s->input_bytes, error);
  if (code == 0 && ms_hash_block(s->inputs[op->buffer], (size_t)s->input_bytes) != s->input_hashes[op->layer])
    code =
        ms_error_set(error, MS_EINPUT,
                     "activations of layer %d in \"%.300s\" have changed on the disk: the step is not used; "
                     "--resume goes on from the last checkpoint",
                     op->layer + 1, s->input_file.folder);
  return code;
}

static int write_input(struct ms_streamer *s, const struct ms_op *op, struct ms_error *error) {
  s->input_hashes[op->layer] = ms_hash_block(s->inputs[op->buffer], (size_t)s->input_bytes);
  return ms_disk_file_write(&s->input_file, op->layer * s->input_bytes, s->inputs[op->buffer],
                            (size_t)s->input_bytes, error);
}

static uint16_t *slot_of(const struct ms_streamer *s, const struct ms_op *op) {
  return (uint16_t *)s->slots[op->slot];
}

/* Weights of a layer that has its home in the host, where averages of the others take a slot. */
static void copy_frozen(const struct ms_shard *shard, uint16_t *to) {
  int64_t end = shard->layout.first + shard->layout.owned;
  memcpy(to, shard->weights, (size_t)shard->layout.first * sizeof *to);
  memcpy(to + end, shard->weights + end, (size_t)(shard->layout.count - end) * sizeof *to);
}

static uint16_t *average_target(const struct ms_streamer *s, const struct ms_op *op) {
  return op->layer < 0 ? s->outer_average : slot_of(s, op);
}

static void round_average(struct ms_streamer *s, const struct ms_op *op) {
  struct ms_shard *shard = ms_shard_store_at(s->p.store, op->layer);
  const struct ms_piece *piece = &shard->pieces[op->piece];
  uint16_t *to = average_target(s, op);
  const float *average = op->buffer >= 0 ? (const float *)s->ring_blocks[op->buffer] : NULL;
  if (shard->home == MS_HOME_HOST && op->piece == 0)
    copy_frozen(shard, to);
  if (piece->fresh) { /* the weights themselves; those of layers on disk have been read into the slot */
    if (shard->home == MS_HOME_HOST)
      memcpy(to + piece->begin, shard->weights + piece->begin, (size_t)piece->count * sizeof *to);
    return;
  }
  if (!average)
    average = ms_state_at(s->p.store, shard->state + op->piece * s->p.store->block_bytes, MS_STATE_AVERAGE,
                          piece->count);
  s->p.compute->adamw.f32_to_bf16(average, to + piece->begin, piece->count);
}

static void update_piece(struct ms_streamer *s, const struct ms_op *op) {
  struct ms_shard_store *store = s->p.store;
  struct ms_shard *shard = ms_shard_store_at(store, op->layer);
  struct ms_piece *piece = &shard->pieces[op->piece];
  int disk = shard->home == MS_HOME_DISK;
  int64_t first = piece->begin - shard->layout.first;
  struct ms_update_piece work = {
      .params = s->p.params,
      .compute = s->p.compute,
      .pool = s->update_pool,
      .store = store,
      .flat = shard->layout.begin + piece->begin,
      .first = piece->begin - shard->all_first,
      .piece = piece,
      .weights = (disk ? slot_of(s, op) : shard->weights) + piece->begin,
      .block = disk ? s->ring_blocks[op->buffer] : shard->state + op->piece * store->block_bytes,
      .gradient = disk ? s->ring_gradients[op->buffer] : shard->gradient + first,
  };
  ms_update_run(&work, &s->update);
  if (!disk) {
    piece->fresh = 0;
    piece->pending = 0;
  }
}

static int read_average(struct ms_streamer *s, const struct ms_op *op, struct ms_error *error) {
  const struct ms_piece *piece = &ms_shard_store_at(s->p.store, op->layer)->pieces[op->piece];
  if (piece->fresh)
    return ms_shard_read_piece(s->p.store, op->layer, op->piece, slot_of(s, op), NULL, NULL, error);
  return ms_shard_read_part(s->p.store, op->layer, op->piece, MS_STATE_AVERAGE, s->ring_blocks[op->buffer],
                            error);
}

static int write_piece(struct ms_streamer *s, const struct ms_op *op, struct ms_error *error) {
  struct ms_piece *piece = &ms_shard_store_at(s->p.store, op->layer)->pieces[op->piece];
  int code = ms_shard_write_piece(s->p.store, op->layer, op->piece, slot_of(s, op),
                                  s->ring_blocks[op->buffer], error);
  if (code == 0) {
    piece->fresh = 0;
    piece->pending = 0;
  }
  return code;
}

static int do_op(struct ms_streamer *s, const struct ms_op *op, struct ms_error *error) {
  const struct ms_shard *shard = ms_shard_store_at(s->p.store, op->layer);
  int pending = op->piece >= 0 && shard->pieces[op->piece].pending, code;
  switch (op->kind) {
  case MS_OP_READ_STATE:
    if (!pending && s->kind == MS_STREAM_FLUSH && !s->p.store->params.group)
      return 0;
    return ms_shard_read_piece(s->p.store, op->layer, op->piece, slot_of(s, op),
                               pending ? s->ring_blocks[op->buffer] : NULL,
                               pending ? s->ring_gradients[op->buffer] : NULL, error);
  case MS_OP_READ_AVERAGE:
    return read_average(s, op, error);
  case MS_OP_READ_WEIGHTS:
    return ms_shard_read_weights(s->p.store, op->layer, slot_of(s, op), error);
  case MS_OP_UPDATE:
    if (s->kind == MS_STREAM_AVERAGE)
      round_average(s, op);
    else if (pending)
      update_piece(s, op);
    return 0;
  case MS_OP_WRITE_STATE:
    return pending ? write_piece(s, op, error) : 0;
  case MS_OP_WRITE_WEIGHTS:
    return ms_shard_write_gathered(s->p.store, op->layer, slot_of(s, op), error);
  case MS_OP_WRITE_GRADIENT:
    code = ms_shard_write_gradient(s->p.store, op->layer, s->gradients[op->buffer], error);
    return code;
  case MS_OP_READ_INPUT:
    return read_input(s, op, error);
  case MS_OP_WRITE_INPUT:
    return write_input(s, op, error);
  default:
    return ms_error_set(error, MS_EFAULT, "an operation that no lane knows");
  }
}

static void work(struct ms_streamer *s, enum ms_lane lane) {
  struct ms_error why = {0};
  for (int i = 0; i < s->schedule->count; i++) {
    const struct ms_op *op = &s->schedule->ops[i];
    double began;
    int code;
    if (op->lane != lane)
      continue;
    if (is_cancelled(s) && lane != MS_LANE_WRITE && s->kind != MS_STREAM_FLUSH)
      return;
    if (ms_streamer_wait_op(s, i))
      return;
    began = ms_seconds();
    code = do_op(s, op, &why);
    if (code < 0) {
      ms_streamer_fail(s, code, &why);
      return;
    }
    ms_streamer_finish_op(s, i, began);
  }
}

static void *lane_main(void *data) {
  struct streamer_lane *lane = data;
  struct ms_streamer *s = lane->streamer;
  for (;;) {
    pthread_mutex_lock(&s->lock);
    while (!s->quit && s->pass == lane->seen)
      pthread_cond_wait(&s->changed, &s->lock);
    lane->seen = s->pass;
    if (s->quit) {
      pthread_mutex_unlock(&s->lock);
      return NULL;
    }
    pthread_mutex_unlock(&s->lock);
    work(s, lane->lane);
    pthread_mutex_lock(&s->lock);
    s->left[lane->lane] = 1;
    s->working--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
  }
}

int ms_streamer_start_lanes(struct ms_streamer *s, struct ms_error *error) {
  static const enum ms_lane lanes[MS_LANE_THREADS] = {MS_LANE_READ, MS_LANE_WRITE, MS_LANE_HOST};
  for (int i = 0; i < MS_LANE_THREADS; i++) {
    s->lanes[i] = (struct streamer_lane){.streamer = s, .lane = lanes[i]};
    if (pthread_create(&s->lanes[i].thread, NULL, lane_main, &s->lanes[i]) != 0)
      return ms_error_set(error, MS_ENOMEM, "cannot start a thread that streams the model");
    s->lanes[i].started = 1;
  }
  return 0;
}

void ms_streamer_stop_lanes(struct ms_streamer *s) {
  pthread_mutex_lock(&s->lock);
  s->quit = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  for (int i = 0; i < MS_LANE_THREADS; i++)
    if (s->lanes[i].started)
      pthread_join(s->lanes[i].thread, NULL);
}
