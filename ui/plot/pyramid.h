/* Extremes of any range of a growing array in a few dozen comparisons.
 *
 *   struct msu_pyramid pyramid = {0};
 *   msu_pyramid_update (&pyramid, y, length, first_changed);
 *   struct msu_extremes e = msu_pyramid_range (&pyramid, y, from, to);
 *   ...
 *   msu_pyramid_clear (&pyramid);
 *
 * Level l holds the extremes of blocks of 16^(l+1) values: a fifteenth of the array's length in all.
 * Appending touches the last block of each level alone. Values that are not finite count for nothing. */
#pragma once
#include <glib.h>

struct msu_extremes {
  double low, high; /* low > high: no finite value */
  double positive;  /* the smallest value above zero, +infinity if none; for logarithmic scales */
};

#define MSU_PYRAMID_BITS 4
#define MSU_PYRAMID_LEVELS 14 /* 16^15 values */

struct msu_pyramid {
  struct {
    struct msu_extremes *blocks; /* owned */
    gsize count, room;
  } levels[MSU_PYRAMID_LEVELS];
  gsize length;
};

/* values[0 .. length) is the array as it is now; it equals what the last update saw up to `first`. */
void msu_pyramid_update(struct msu_pyramid *pyramid, const double *values, gsize length, gsize first);
/* Extremes of values[from .. to), the array of the last update. */
struct msu_extremes msu_pyramid_range(const struct msu_pyramid *pyramid, const double *values, gsize from,
                                      gsize to);
void msu_pyramid_clear(struct msu_pyramid *pyramid);

#define MSU_EXTREMES_NONE ((struct msu_extremes){INFINITY, -INFINITY, INFINITY})
