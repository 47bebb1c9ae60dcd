#include "stream/streamer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/system.h"
#include "stream/streamer-private.h"

static size_t rounded(int64_t bytes) {
  return (size_t)ms_disk_round(bytes);
}

/* Slots and rings are needed where a layer has its home on disk; slots alone where averages take them. */
static int take_memory(struct ms_streamer *s) {
  const struct ms_schedule_params *p = &s->schedule_params;
  const struct ms_shard_store *store = s->p.store;
  int64_t widest = 0, owned = 0, gathered = 1, largest = s->p.store->shards[0].layout.count;
  int disk = 0, state = store->params.moment_bits > 0;
  size_t block = (size_t)store->block_bytes, average = (size_t)p->piece * sizeof(float);
  for (int l = 0; l < p->layers; l++) {
    const struct ms_shard *shard = ms_shard_store_at(store, l);
    widest = shard->layout.count > widest ? shard->layout.count : widest;
    disk |= shard->home == MS_HOME_DISK;
    owned = shard->layout.owned > owned ? shard->layout.owned : owned;
    gathered = shard->all_owned > gathered ? shard->all_owned : gathered;
  }
  largest = widest > largest ? widest : largest;
  for (int i = 0; i < p->slots && (disk || store->params.average); i++)
    if (!(s->slots[i] = ms_pages_take(rounded(widest * (int64_t)sizeof(uint16_t)))))
      return -1;
  for (int i = 0; i < p->ring && disk && state; i++) {
    s->ring_blocks[i] = ms_pages_take(block > average ? block : average);
    s->ring_gradients[i] = ms_pages_take((size_t)p->piece * sizeof(float));
    if (!s->ring_blocks[i] || !s->ring_gradients[i])
      return -1;
  }
  for (int i = 0; i < p->gradient_buffers && state && disk; i++)
    if (!(s->gradients[i] = ms_pages_take(rounded(owned * (int64_t)sizeof(float)))))
      return -1;
  if (state && store->params.group) {
    s->whole[0] = ms_pages_take(rounded(gathered * (int64_t)sizeof(float)));
    s->whole[1] = ms_pages_take(rounded(store->shards[0].all_owned * (int64_t)sizeof(float)));
    if (!s->whole[0] || !s->whole[1])
      return -1;
  }
  for (int i = 0; i < 3 && s->p.input_elements && p->inputs == MS_INPUT_DISK; i++)
    if (!(s->inputs[i] = ms_pages_take(rounded(s->p.input_elements * (int64_t)sizeof(float)))))
      return -1;
  if (state) {
    s->outer_average =
        store->params.average ? ms_pages_take(rounded(store->shards[0].layout.count * 2)) : NULL;
    s->outer_gradient = ms_pages_take(rounded(store->shards[0].layout.owned * (int64_t)sizeof(float)));
    s->sums = malloc((size_t)(ms_update_sums(largest) + 1) * sizeof *s->sums);
    if ((store->params.average && !s->outer_average) || !s->outer_gradient || !s->sums)
      return -1;
  }
  s->squares = calloc((size_t)p->layers + 1, sizeof *s->squares);
  s->bad = calloc((size_t)p->layers + 1, sizeof *s->bad);
  s->stale = calloc((size_t)p->layers + 1, 1);
  s->told =
      calloc((size_t)(1 + ms_group_size(store->params.group)) * 2 * ((size_t)p->layers + 1), sizeof *s->told);
  s->input_hashes = calloc((size_t)p->layers + 1, sizeof *s->input_hashes);
  s->op_of[0] = malloc(((size_t)p->layers + 2) * sizeof(int));
  s->op_of[1] = malloc(((size_t)p->layers + 2) * sizeof(int));
  return s->squares && s->bad && s->stale && s->told && s->input_hashes && s->op_of[0] && s->op_of[1] ? 0
                                                                                                      : -1;
}

int ms_streamer_open(struct ms_streamer **out, const struct ms_streamer_params *params,
                     struct ms_error *error) {
  struct ms_streamer *s = calloc(1, sizeof *s);
  int code = 0;
  *out = NULL;
  if (!s)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a streamer");
  s->p = *params;
  s->schedule_params = *params->schedule;
  s->source = (struct ms_dit_source){s, ms_streamer_source_begin, ms_streamer_source_end};
  s->input_file = (struct ms_disk_file){-1, -1, ""};
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  if (take_memory(s) < 0)
    code = ms_error_set(error, MS_ENOMEM, "out of memory for the layers that are under way");
  if (code == 0)
    code = ms_pool_open(&s->update_pool, ms_pool_threads(params->compute->pool), error);
  if (code == 0 && s->inputs[0]) {
    s->input_bytes = ms_disk_round(params->input_elements * (int64_t)sizeof(float));
    code =
        ms_disk_file_open(&s->input_file, params->folder, s->schedule_params.layers * s->input_bytes, error);
  }
  if (code == 0)
    code = ms_streamer_start_lanes(s, error);
  if (code < 0) {
    ms_streamer_close(&s);
    return code;
  }
  *out = s;
  return 0;
}

void ms_streamer_close(struct ms_streamer **pointer) {
  struct ms_streamer *s = *pointer;
  if (!s)
    return;
  *pointer = NULL;
  ms_streamer_stop_lanes(s);
  ms_pool_close(&s->update_pool);
  for (int i = 0; i < 64; i++) {
    free(s->slots[i]);
    free(s->ring_blocks[i]);
    free(s->ring_gradients[i]);
    free(s->gradients[i]);
  }
  for (int i = 0; i < 3; i++)
    free(s->inputs[i]);
  for (size_t i = 0; i < sizeof s->schedules / sizeof *s->schedules; i++)
    ms_schedule_release(&s->schedules[i]);
  free(s->whole[0]);
  free(s->whole[1]);
  free(s->outer_average);
  free(s->outer_gradient);
  free(s->sums);
  free(s->squares);
  free((void *)s->bad);
  free(s->stale);
  free(s->told);
  free(s->input_hashes);
  free(s->op_of[0]);
  free(s->op_of[1]);
  free(s->done);
  ms_disk_file_close(&s->input_file);
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->changed);
  free(s);
}

const struct ms_dit_source *ms_streamer_source(struct ms_streamer *s) {
  return &s->source;
}

/* The schedule of a kind of pass is made once. */
static int choose_schedule(struct ms_streamer *s, enum ms_stream_kind kind, struct ms_error *error) {
  struct ms_schedule_params params = s->schedule_params;
  struct ms_schedule *schedule = &s->schedules[(int)kind * 2 + s->waits];
  int code;
  params.update = s->waits;
  params.forward = kind != MS_STREAM_FLUSH || s->p.store->params.group;
  params.backward = kind == MS_STREAM_STEP;
  params.average = kind == MS_STREAM_AVERAGE;
  if (!s->inputs[0])
    params.inputs = MS_INPUT_DEVICE;
  if (!schedule->count && (code = ms_schedule_make(schedule, &params, error)) < 0)
    return code;
  if (schedule->count > s->done_room) {
    free(s->done);
    s->done = malloc((size_t)schedule->count);
    s->done_room = s->done ? schedule->count : 0;
    if (!s->done)
      return ms_error_set(error, MS_ENOMEM, "out of memory for the state of a step");
  }
  memset(s->done, 0, (size_t)schedule->count);
  for (int i = 0; i < schedule->count; i++)
    if (schedule->ops[i].lane == MS_LANE_COMPUTE)
      s->op_of[schedule->ops[i].kind == MS_OP_BACKWARD][schedule->ops[i].layer + 1] = i;
  s->schedule = schedule;
  return 0;
}

int ms_streamer_begin(struct ms_streamer *s, enum ms_stream_kind kind, struct ms_error *error) {
  int code = 0;
  if (kind == MS_STREAM_AVERAGE && !s->p.store->params.average)
    kind = MS_STREAM_FORWARD;
  if (s->p.store->broken && s->p.store->params.group)
    s->p.store->params.group->torn = 1;
  if (s->p.store->broken)
    return ms_error_set(error, MS_EOUTPUT,
                        "the working state could not be written: --resume goes on from the last checkpoint");
  if (kind == MS_STREAM_AVERAGE && s->waits)
    code = ms_streamer_flush(s, error);
  if (code < 0)
    return code;
  pthread_mutex_lock(&s->lock);
  code = choose_schedule(s, kind, error);
  if (code == 0) {
    s->kind = kind;
    s->code = s->stopping = 0;
    memset(&s->why, 0, sizeof s->why);
    memset(s->left, 0, sizeof s->left);
    memset(&s->stats, 0, sizeof s->stats);
    s->working = MS_LANE_THREADS;
    s->began = ms_seconds();
    s->pass++;
    pthread_cond_broadcast(&s->changed);
  } else if (s->p.store->params.group) {
    s->p.store->params.group->torn = 1;
  }
  pthread_mutex_unlock(&s->lock);
  return code;
}

static int still_pending(const struct ms_streamer *s) {
  for (int i = 0; i <= s->schedule_params.layers; i++)
    for (int j = 0; j < s->p.store->shards[i].piece_count; j++)
      if (s->p.store->shards[i].pieces[j].pending)
        return 1;
  return 0;
}

int ms_streamer_end(struct ms_streamer *s, int code, struct ms_error *error) {
  double waits_from = ms_seconds();
  if (code == MS_ENOTFINITE && s->p.store->params.group)
    ms_streamer_drain(s, NULL);
  pthread_mutex_lock(&s->lock);
  s->stopping = code < 0 && !(code == MS_ENOTFINITE && s->p.store->params.group);
  s->left[MS_LANE_COMPUTE] = 1;
  pthread_cond_broadcast(&s->changed);
  while (s->working > 0)
    pthread_cond_wait(&s->changed, &s->lock);
  s->stats.seconds = ms_seconds() - s->began;
  s->stats.waited += ms_seconds() - waits_from;
  if ((code == 0 || (code == MS_ENOTFINITE && s->p.store->params.group)) && s->code < 0)
    code = ms_error_set(error, s->code, "%s", s->why.message);
  pthread_mutex_unlock(&s->lock);
  if (s->p.store->params.group)
    code = ms_streamer_agree(s, code, error);
  if (s->waits)
    s->waits = still_pending(s);
  if (code == 0 && s->waits && s->p.cancel && atomic_load(s->p.cancel))
    code = ms_error_set(error, MS_ECANCELLED, "cancelled");
  return code;
}

int ms_streamer_flush(struct ms_streamer *s, struct ms_error *error) {
  int code;
  if (!s->waits)
    return 0;
  code = ms_streamer_begin(s, MS_STREAM_FLUSH, error);
  if (code < 0)
    return code;
  if (s->p.store->params.group)
    code = ms_streamer_drain(s, error);
  return ms_streamer_end(s, code, error);
}

double ms_streamer_norm(const struct ms_streamer *s, const char **name) {
  double sum = 0;
  *name = NULL;
  for (int i = 0; i <= s->schedule_params.layers; i++) {
    sum += s->squares[i];
    if (s->bad[i] && !*name)
      *name = s->bad[i];
  }
  return sqrt(sum);
}

void ms_streamer_put_update(struct ms_streamer *s, const struct ms_update *update) {
  s->update = *update;
  memset(s->stale, s->p.store->params.group != NULL, (size_t)s->schedule_params.layers + 1);
  for (int i = 0; i <= s->schedule_params.layers; i++)
    for (int j = 0; j < s->p.store->shards[i].piece_count; j++)
      s->p.store->shards[i].pieces[j].pending = 1;
  s->waits = 1;
}

int ms_streamer_waits(const struct ms_streamer *s) {
  return s->waits;
}

void ms_streamer_stats(const struct ms_streamer *s, struct ms_streamer_stats *stats) {
  *stats = s->stats;
}

void ms_streamer_set_step(struct ms_streamer *s, int64_t step) {
  s->step = step;
}
