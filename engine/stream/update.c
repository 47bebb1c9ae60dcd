#include "stream/update.h"

#include <math.h>
#include <string.h>

/* Elements that one task sums or updates: part of the result of sums. */
#define PART 65536

/* The part of [*from,*to) that lies in a parameter; returns whether there is one. */
static int clip_to_param(const struct ms_param *param, int64_t *from, int64_t *to) {
  *from = param->offset > *from ? param->offset : *from;
  *to = param->offset + param->count < *to ? param->offset + param->count : *to;
  return *from < *to;
}

struct updating {
  const struct ms_update_piece *piece;
  const struct ms_update *update;
  uint16_t *lo;
  void *m, *v;
  float *m_scale, *v_scale, *average;
};

/* Elements [from,to) of the piece, all of one kind. */
static void update_run(const struct updating *u, enum ms_param_kind kind, int64_t from, int64_t to) {
  const struct ms_update_piece *p = u->piece;
  const struct msk_adamw_ops *ops = &p->compute->adamw;
  struct msk_adamw adamw = u->update->adamw;
  if (kind == MS_PARAM_FROZEN)
    return;
  if (kind != MS_PARAM_MATRIX)
    adamw.decay = 0;
  if (p->store->params.moment_bits == 8)
    ops->step_split8(&adamw, p->gradient + from, MSK_F32, p->weights + from, u->lo + from,
                     (uint8_t *)u->m + from, (uint8_t *)u->v + from, u->m_scale + from / MSK_ADAMW_BLOCK,
                     u->v_scale + from / MSK_ADAMW_BLOCK, p->first + from, u->update->seed, to - from);
  else
    ops->step_split(&adamw, p->gradient + from, MSK_F32, p->weights + from, u->lo + from,
                    (float *)u->m + from, (float *)u->v + from, to - from);
}

/* 8-bit moments share scales: a block is of the kind that it begins with. */
static void update_blocks(const struct updating *u, int64_t begin, int64_t end) {
  const struct ms_params *params = u->piece->params;
  for (int64_t at = begin; at < end;) {
    enum ms_param_kind kind = params->list[ms_params_index(params, u->piece->flat + at)].kind;
    int64_t to = at + MSK_ADAMW_BLOCK;
    while (to < end && params->list[ms_params_index(params, u->piece->flat + to)].kind == kind)
      to += MSK_ADAMW_BLOCK;
    to = to < end ? to : end;
    update_run(u, kind, at, to);
    at = to;
  }
}

static void update_part(void *data, int64_t task, void *scratch) {
  const struct updating *u = data;
  const struct ms_update_piece *p = u->piece;
  const struct ms_params *params = p->params;
  int64_t begin = task * PART, end = begin + PART < p->piece->count ? begin + PART : p->piece->count;
  if (p->piece->fresh && u->average)
    p->compute->adamw.bf16_to_f32(p->weights + begin, u->average + begin, end - begin);
  if (p->store->params.moment_bits == 8) {
    update_blocks(u, begin, end);
  } else {
    for (int i = ms_params_index(params, p->flat + begin);
         i < params->count && params->list[i].offset < p->flat + end; i++) {
      int64_t from = p->flat + begin, to = p->flat + end;
      if (clip_to_param(&params->list[i], &from, &to))
        update_run(u, params->list[i].kind, from - p->flat, to - p->flat);
    }
  }
  for (int64_t i = begin; u->average && i < end; i += 1024) {
    float master[1024];
    int64_t n = end - i < 1024 ? end - i : 1024;
    p->compute->adamw.join(p->weights + i, u->lo + i, master, n);
    p->compute->norm.axpby(1 - u->update->average, master, u->update->average, u->average + i, n);
  }
}

void ms_update_run(const struct ms_update_piece *p, const struct ms_update *update) {
  int64_t n = p->piece->count;
  struct updating u = {
      .piece = p,
      .update = update,
      .lo = ms_state_at(p->store, p->block, MS_STATE_LOW, n),
      .m = ms_state_at(p->store, p->block, MS_STATE_M, n),
      .v = ms_state_at(p->store, p->block, MS_STATE_V, n),
      .m_scale = ms_state_at(p->store, p->block, MS_STATE_M_SCALE, n),
      .v_scale = ms_state_at(p->store, p->block, MS_STATE_V_SCALE, n),
      .average = p->store->params.average ? ms_state_at(p->store, p->block, MS_STATE_AVERAGE, n) : NULL,
  };
  if (p->piece->fresh)
    memset(p->block, 0, ms_state_offset(p->store, MS_STATE_AVERAGE, n));
  ms_pool_run(p->pool, update_part, &u, (n + PART - 1) / PART);
}

struct squaring {
  const struct ms_params *params;
  const struct ms_compute *compute;
  int64_t flat, count;
  const float *gradient;
  double *sums;
};

static void square_part(void *data, int64_t task, void *scratch) {
  const struct squaring *s = data;
  int64_t begin = s->flat + task * PART,
          end = begin + PART < s->flat + s->count ? begin + PART : s->flat + s->count;
  double sum = 0;
  for (int i = ms_params_index(s->params, begin); i < s->params->count && s->params->list[i].offset < end;
       i++) {
    int64_t from = begin, to = end;
    if (s->params->list[i].kind != MS_PARAM_FROZEN && clip_to_param(&s->params->list[i], &from, &to))
      sum += s->compute->norm.sum_squares(s->gradient + (from - s->flat), to - from);
  }
  s->sums[task] = sum;
}

int64_t ms_update_sums(int64_t count) {
  return (count + PART - 1) / PART;
}

double ms_update_square(const struct ms_params *params, const struct ms_compute *compute,
                        struct ms_pool *pool, int64_t flat, int64_t count, const float *gradient,
                        double *sums) {
  struct squaring s = {params, compute, flat, count, gradient, sums};
  double sum = 0;
  ms_pool_run(pool, square_part, &s, ms_update_sums(count));
  for (int64_t i = 0; i < ms_update_sums(count); i++)
    sum += sums[i];
  return sum;
}

const char *ms_update_bad_gradient(const struct ms_params *params, int64_t flat, int64_t count,
                                   const float *gradient) {
  for (int i = ms_params_index(params, flat); i < params->count && params->list[i].offset < flat + count;
       i++) {
    int64_t from = flat, to = flat + count;
    if (params->list[i].kind == MS_PARAM_FROZEN || !clip_to_param(&params->list[i], &from, &to))
      continue;
    for (int64_t j = from; j < to; j++)
      if (!isfinite(gradient[j - flat]))
        return params->list[i].name;
  }
  return NULL;
}
