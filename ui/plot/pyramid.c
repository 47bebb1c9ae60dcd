#include "plot/pyramid.h"

#include <math.h>

static void join(struct msu_extremes *into, const struct msu_extremes *one) {
  into->low = MIN(into->low, one->low);
  into->high = MAX(into->high, one->high);
  into->positive = MIN(into->positive, one->positive);
}

static void join_values(struct msu_extremes *into, const double *values, gsize from, gsize to) {
  for (gsize i = from; i < to; i++)
    if (isfinite(values[i])) {
      into->low = MIN(into->low, values[i]);
      into->high = MAX(into->high, values[i]);
      if (values[i] > 0)
        into->positive = MIN(into->positive, values[i]);
    }
}

void msu_pyramid_update(struct msu_pyramid *pyramid, const double *values, gsize length, gsize first) {
  gsize below = length; /* entries of the level under this one */
  gsize from = MIN(first, pyramid->length);
  pyramid->length = length;
  for (int l = 0; l < MSU_PYRAMID_LEVELS; l++) {
    gsize count = (below + (1 << MSU_PYRAMID_BITS) - 1) >> MSU_PYRAMID_BITS;
    if (count > pyramid->levels[l].room) {
      pyramid->levels[l].room = MAX(count, 2 * pyramid->levels[l].room);
      pyramid->levels[l].blocks =
          g_renew(struct msu_extremes, pyramid->levels[l].blocks, pyramid->levels[l].room);
    }
    pyramid->levels[l].count = count;
    from >>= MSU_PYRAMID_BITS;
    for (gsize b = from; b < count; b++) {
      struct msu_extremes e = MSU_EXTREMES_NONE;
      gsize at = b << MSU_PYRAMID_BITS, end = MIN(at + (1 << MSU_PYRAMID_BITS), below);
      if (l == 0)
        join_values(&e, values, at, end);
      else
        for (gsize i = at; i < end; i++)
          join(&e, &pyramid->levels[l - 1].blocks[i]);
      pyramid->levels[l].blocks[b] = e;
    }
    below = count;
  }
}

struct msu_extremes msu_pyramid_range(const struct msu_pyramid *pyramid, const double *values, gsize from,
                                      gsize to) {
  const gsize mask = (1 << MSU_PYRAMID_BITS) - 1;
  struct msu_extremes e = MSU_EXTREMES_NONE;
  to = MIN(to, pyramid->length);
  if (from >= to)
    return e;
  /* Both ends walk to the next block boundary, then the rest is a range of the level above. */
  gsize left = MIN((from + mask) & ~mask, to), right = MAX(to & ~mask, left);
  join_values(&e, values, from, left);
  join_values(&e, values, right, to);
  from = left >> MSU_PYRAMID_BITS;
  to = right >> MSU_PYRAMID_BITS;
  for (int l = 0; l < MSU_PYRAMID_LEVELS && left < right; l++) {
    const struct msu_extremes *blocks = pyramid->levels[l].blocks;
    left = MIN((from + mask) & ~mask, to), right = MAX(to & ~mask, left);
    for (gsize i = from; i < left; i++)
      join(&e, &blocks[i]);
    for (gsize i = right; i < to; i++)
      join(&e, &blocks[i]);
    from = left >> MSU_PYRAMID_BITS;
    to = right >> MSU_PYRAMID_BITS;
  }
  return e;
}

void msu_pyramid_clear(struct msu_pyramid *pyramid) {
  for (int l = 0; l < MSU_PYRAMID_LEVELS; l++)
    g_free(pyramid->levels[l].blocks);
  *pyramid = (struct msu_pyramid){0};
}
