#include "plot/ticks.h"

#include <math.h>

static double nice_step(double range, int wanted) {
  double raw = range / MAX(wanted, 1), power = pow(10, floor(log10(raw)));
  double part = raw / power;
  /* the tolerance keeps 0.2 / 2 from becoming 0.2 */
  return (part <= 1 + 1e-9 ? 1 : part <= 2 + 1e-9 ? 2 : part <= 5 + 1e-9 ? 5 : 10) * power;
}

static void fill(struct msu_ticks *ticks, double low, double high, double step) {
  double first = ceil(low / step - 1e-6), last = floor(high / step + 1e-6);
  ticks->step = step;
  ticks->count = 0;
  for (double i = first; i <= last && ticks->count < MSU_TICKS_MAX; i++)
    ticks->at[ticks->count++] = i == 0 ? 0 : i * step;
}

static gboolean usable(struct msu_ticks *ticks, double low, double high, int *wanted) {
  ticks->count = 0;
  ticks->step = 0;
  *wanted = CLAMP(*wanted, 1, MSU_TICKS_MAX - 2);
  return isfinite(low) && isfinite(high) && low < high && isfinite(high - low);
}

void msu_ticks_linear(struct msu_ticks *ticks, double low, double high, int wanted, gboolean whole) {
  if (!usable(ticks, low, high, &wanted))
    return;
  double step = nice_step(high - low, wanted);
  if (!(step > 0) || step < 1e-12 * MAX(fabs(low), fabs(high)))
    return;
  fill(ticks, low, high, whole ? MAX(step, 1) : step);
}

void msu_ticks_bytes(struct msu_ticks *ticks, double low, double high, int wanted) {
  if (!usable(ticks, low, high, &wanted))
    return;
  /* the unit in which the largest mark will be written */
  double unit = 1;
  while (MAX(fabs(low), fabs(high)) >= 1024 * unit)
    unit *= 1024;
  fill(ticks, low, high, MAX(nice_step((high - low) / unit, wanted) * unit, 1));
}

/* Marks at `n` parts of every stride-th decade. */
static void fill_decades(struct msu_ticks *ticks, double low, double high, const double *parts, int n,
                         int stride) {
  ticks->count = 0;
  for (int d = (int)floor(log10(low)); d <= (int)ceil(log10(high)); d++)
    for (int i = 0; i < n && d % stride == 0 && ticks->count < MSU_TICKS_MAX; i++) {
      double at = parts[i] * pow(10, d);
      if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9))
        ticks->at[ticks->count++] = at;
    }
}

void msu_ticks_log(struct msu_ticks *ticks, double low, double high, int wanted) {
  static const double fine[] = {1, 2, 5}, coarse[] = {1};
  if (!usable(ticks, low, high, &wanted) || low <= 0)
    return;
  double decades = log10(high) - log10(low);
  if (3 * decades <= wanted + 1)
    fill_decades(ticks, low, high, fine, 3, 1);
  else
    fill_decades(ticks, low, high, coarse, 1, MAX(1, (int)ceil(decades / wanted)));
  if (ticks->count < 3 && decades < 1.5)
    msu_ticks_linear(ticks, low, high, wanted, FALSE);
}
