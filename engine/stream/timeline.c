#include "stream/timeline.h"

#include <stdlib.h>
#include <string.h>

static double duration(const struct ms_op *op, const struct ms_timeline_rates *rates, int *bad) {
  double rate = op->lane == MS_LANE_READ    ? rates->read
                : op->lane == MS_LANE_WRITE ? rates->write
                : op->lane == MS_LANE_UP    ? rates->up
                : op->lane == MS_LANE_DOWN  ? rates->down
                                            : rates->update;
  double amount = op->lane == MS_LANE_HOST ? (double)op->count : op->bytes;
  if (op->lane == MS_LANE_COMPUTE)
    return op->seconds;
  if (amount <= 0)
    return 0;
  if (rate <= 0)
    *bad = 1;
  return rate > 0 ? amount / rate : 0;
}

int ms_timeline_run(struct ms_timeline *t, const struct ms_schedule *schedule,
                    const struct ms_timeline_rates *rates, struct ms_error *error) {
  double free_at[MS_LANES] = {0}, disk = 0;
  int bad = 0;
  memset(t, 0, sizeof *t);
  t->begin = malloc(((size_t)schedule->count + 1) * sizeof *t->begin);
  t->end = malloc(((size_t)schedule->count + 1) * sizeof *t->end);
  if (!t->begin || !t->end) {
    ms_timeline_release(t);
    return ms_error_set(error, MS_ENOMEM, "out of memory for a timeline");
  }
  for (int i = 0; i < schedule->count; i++) {
    const struct ms_op *op = &schedule->ops[i];
    int on_disk = op->lane == MS_LANE_READ || op->lane == MS_LANE_WRITE;
    double start = free_at[op->lane], seconds = duration(op, rates, &bad);
    for (int j = 0; j < op->need_count; j++)
      if (t->end[op->needs[j]] > start)
        start = t->end[op->needs[j]];
    t->begin[i] = start;
    t->end[i] = free_at[op->lane] = start + seconds;
    t->busy[op->lane] += seconds;
    if (on_disk && rates->disk > 0)
      disk += op->bytes / rates->disk;
    if (t->end[i] > t->seconds)
      t->seconds = t->end[i];
  }
  /* a disk that reads and writes at once gives both together no more than its whole rate */
  if (disk > t->seconds)
    t->seconds = disk;
  t->exposed = t->seconds - t->busy[MS_LANE_COMPUTE];
  if (bad) {
    ms_timeline_release(t);
    return ms_error_set(error, MS_EUSAGE, "a rate of the disk, the link or the optimizer is missing");
  }
  return 0;
}

void ms_timeline_release(struct ms_timeline *t) {
  free(t->begin);
  free(t->end);
  memset(t, 0, sizeof *t);
}
