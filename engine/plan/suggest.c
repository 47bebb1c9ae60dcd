/* Settings near the asked ones that fit, each found by making its plan. */
#include <math.h>
#include <string.h>

#include "plan/plan-private.h"

/* A size shrinks in steps of a thirty-second of the asked one. */
#define SIZE_STEPS 32

static void add(struct ms_plan *plan, enum ms_plan_change change, const struct ms_plan *found) {
  struct ms_plan_suggestion *s = &plan->suggestions[plan->suggestion_count++];
  *s = (struct ms_plan_suggestion){.change = change,
                                   .width = found->width,
                                   .height = found->height,
                                   .frames = found->frames,
                                   .batch = found->batch,
                                   .moment_bits = found->moment_bits,
                                   .host_bytes = found->host_bytes,
                                   .device_bytes = found->device_bytes,
                                   .seconds = found->seconds};
}

/* `side` scaled, to a multiple of what codec and patch need where that leaves anything. */
static int scaled(int side, double factor, int unit) {
  int down = (int)(side * factor) / unit * unit;
  return down < MS_GENERATE_MIN_SIDE ? MS_GENERATE_MIN_SIDE : down;
}

static void suggest_size(const struct ms_plan_case *c, ms_plan_attempt_fn attempt, void *data,
                         struct ms_plan *plan) {
  const int *patch = ms_dit_config(c->model.dit)->patch;
  int strides[3], unit;
  ms_codec_strides(c->model.codec, strides);
  unit = strides[1] * patch[1] % 2 ? 2 : strides[1] * patch[1];
  for (int i = 1; i < SIZE_STEPS; i++) {
    double factor = (double)(SIZE_STEPS - i) / SIZE_STEPS;
    int width = scaled(plan->width, factor, unit), height = scaled(plan->height, factor, unit);
    struct ms_plan found = *plan;
    if (width >= plan->width && height >= plan->height)
      continue;
    attempt(data, width, height, plan->frames, plan->batch, &found);
    if (found.fits) {
      add(plan, MS_PLAN_SIZE, &found);
      return;
    }
  }
}

static void suggest_frames(const struct ms_plan_case *c, ms_plan_attempt_fn attempt, void *data,
                           struct ms_plan *plan) {
  struct ms_plan found = *plan, best;
  int strides[3], low = 0, high;
  ms_codec_strides(c->model.codec, strides);
  high = (plan->frames - 1 + strides[0] - 1) / strides[0]; /* groups of frames behind the first: too many */
  attempt(data, plan->width, plan->height, 1, plan->batch, &found);
  if (!found.fits || high < 1)
    return;
  best = found;
  while (high - low > 1) {
    int middle = low + (high - low) / 2;
    attempt(data, plan->width, plan->height, 1 + middle * strides[0], plan->batch, &found);
    if (found.fits) {
      low = middle;
      best = found;
    } else {
      high = middle;
    }
  }
  add(plan, MS_PLAN_FRAMES, &best);
}

static void suggest_batch(ms_plan_attempt_fn attempt, void *data, struct ms_plan *plan) {
  for (int batch = plan->batch - 1; batch >= 1; batch = batch > 16 ? batch * 7 / 8 : batch - 1) {
    struct ms_plan found = *plan;
    attempt(data, plan->width, plan->height, plan->frames, batch, &found);
    if (found.fits) {
      add(plan, MS_PLAN_BATCH, &found);
      return;
    }
  }
}

static void suggest_moments(ms_plan_attempt_fn attempt, void *data, struct ms_plan *plan) {
  struct ms_plan found = *plan;
  found.moment_bits = 8;
  attempt(data, plan->width, plan->height, plan->frames, plan->batch, &found);
  if (found.fits)
    add(plan, MS_PLAN_MOMENTS, &found);
}

void ms_plan_suggest(const struct ms_plan_case *c, ms_plan_attempt_fn attempt, void *data,
                     struct ms_plan *plan) {
  plan->suggestion_count = 0;
  if (plan->fits)
    return;
  if (plan->batch > 1)
    suggest_batch(attempt, data, plan);
  suggest_frames(c, attempt, data, plan);
  suggest_size(c, attempt, data, plan);
  if (plan->moment_bits == 32)
    suggest_moments(attempt, data, plan);
}
