/* What the DiT asks for: a layer when it is there, and what to do with what came of it. */
#include <math.h>
#include <string.h>

#include "base/system.h"
#include "stream/streamer-private.h"

#define CLEAR ((int64_t)4 << 20)

struct clearing {
  unsigned char *memory;
  int64_t bytes;
};

static void clear_part(void *data, int64_t task, void *scratch) {
  const struct clearing *c = data;
  int64_t at = task * CLEAR, bytes = c->bytes - at < CLEAR ? c->bytes - at : CLEAR;
  memset(c->memory + at, 0, (size_t)bytes);
}

static void clear(struct ms_streamer *s, float *memory, int64_t count) {
  struct clearing c = {(unsigned char *)memory, count * (int64_t)sizeof *memory};
  ms_pool_run(s->p.compute->pool, clear_part, &c, (c.bytes + CLEAR - 1) / CLEAR);
}

static struct ms_op *op_at(struct ms_streamer *s, enum ms_dit_pass pass, int shard) {
  return &s->schedule->ops[s->op_of[pass == MS_PASS_BACKWARD][shard + 1]];
}

static float *input_at(struct ms_streamer *s, int layer) {
  return s->schedule_params.inputs == MS_INPUT_DISK && s->kind == MS_STREAM_STEP ? s->inputs[layer % 3]
                                                                                 : NULL;
}

uint16_t *ms_streamer_weights(struct ms_streamer *s, const struct ms_op *op, int shard) {
  if (shard < 0 && s->kind == MS_STREAM_AVERAGE)
    return ms_shard_store_at(s->p.store, -1)->all_owned ? s->outer_average
                                                        : ms_shard_store_at(s->p.store, -1)->weights;
  return op->slot >= 0 ? (uint16_t *)s->slots[op->slot] : ms_shard_store_at(s->p.store, shard)->weights;
}

/* Where the gradient of a shard's owned parameters is made: a buffer, or its home. */
static float *gradient_of(struct ms_streamer *s, const struct ms_op *op, int shard) {
  if (shard < 0 || ms_shard_store_at(s->p.store, shard)->layout.owned == 0)
    return s->outer_gradient;
  return op->buffer >= 0 ? s->gradients[op->buffer] : ms_shard_store_at(s->p.store, shard)->gradient;
}

/* Where the DiT adds to the gradient of all that is trained of a shard, cleared, as seen from the shard's
 * beginning. In a group that is more than what this rank owns. */
static float *lend_gradient(struct ms_streamer *s, const struct ms_op *op, int shard, int anew) {
  const struct ms_shard *home = ms_shard_store_at(s->p.store, shard);
  float *gradient = s->p.store->params.group ? s->whole[shard < 0] : gradient_of(s, op, shard);
  if (anew)
    clear(s, gradient, home->all_owned);
  return gradient - home->all_first;
}

int ms_streamer_source_begin(void *data, enum ms_dit_pass pass, int shard, struct ms_dit_loan *loan,
                             struct ms_error *error) {
  struct ms_streamer *s = data;
  const struct ms_op *op = op_at(s, pass, shard);
  int layers = s->schedule_params.layers;
  double before = ms_seconds();
  memset(loan, 0, sizeof *loan);
  if (ms_streamer_wait_op(s, (int)(op - s->schedule->ops))) {
    pthread_mutex_lock(&s->lock);
    if (s->code < 0)
      ms_error_set(error, s->code, "%s", s->why.message);
    else
      ms_error_set(error, MS_ECANCELLED, "cancelled");
    pthread_mutex_unlock(&s->lock);
    return error ? error->code : MS_ECANCELLED;
  }
  s->op_began = ms_seconds();
  s->stats.waited += s->op_began - before;
  if (pass == MS_PASS_FORWARD && shard < layers)
    ms_streamer_gather(s, op, shard);
  if (shard < layers)
    loan->values = ms_streamer_weights(s, op, shard);
  if (pass == MS_PASS_FORWARD) {
    loan->x = shard >= 0 ? input_at(s, shard) : NULL;
    loan->y = shard < layers ? input_at(s, shard + 1) : NULL;
    return 0;
  }
  loan->x = shard >= 0 ? input_at(s, shard) : NULL;
  if (shard == layers) {
    memset(s->squares, 0, ((size_t)layers + 1) * sizeof *s->squares);
    memset(s->bad, 0, ((size_t)layers + 1) * sizeof *s->bad);
  }
  /* of what is no layer the head's gradient comes first, the rest last */
  loan->gradient = lend_gradient(s, op, shard == layers ? -1 : shard, shard >= 0);
  return 0;
}

/* The gradient is complete: its norm, and the way home where it was not made there. */
static void take_gradient(struct ms_streamer *s, const struct ms_op *op, int shard) {
  struct ms_shard *home = ms_shard_store_at(s->p.store, shard);
  const struct ms_shard_layout *l = &home->layout;
  const float *gradient = gradient_of(s, op, shard);
  double square;
  ms_streamer_reduce(s, gradient_of(s, op, shard), shard);
  if (!l->owned)
    return;
  square = ms_update_square(s->p.params, s->p.compute, s->p.compute->pool, l->begin + l->first, l->owned,
                            gradient, s->sums);
  s->squares[shard + 1] = square;
  if (!isfinite(square))
    s->bad[shard + 1] = ms_update_bad_gradient(s->p.params, l->begin + l->first, l->owned, gradient);
  if (home->home == MS_HOME_HOST && gradient != home->gradient)
    memcpy(home->gradient, gradient, (size_t)l->owned * sizeof *gradient);
}

int ms_streamer_source_end(void *data, enum ms_dit_pass pass, int shard, struct ms_error *error) {
  struct ms_streamer *s = data;
  const struct ms_op *op = op_at(s, pass, shard);
  if (pass == MS_PASS_BACKWARD && shard < s->schedule_params.layers)
    take_gradient(s, op, shard);
  ms_streamer_finish_op(s, (int)(op - s->schedule->ops), s->op_began);
  return 0;
}
