/* How long a step takes: the trainer's own schedule, simulated at the machine's rates. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan-private.h"
#include "stream/timeline.h"

/* Bytes a second of a disk or a link that nobody measured. */
#define DISK_RATE 0.5e9
#define LINK_RATE 25e9

const char *ms_plan_lane_name(enum ms_plan_lane lane) {
  _Static_assert((int)MS_PLAN_READ == (int)MS_LANE_READ && (int)MS_PLAN_COMPUTE == (int)MS_LANE_COMPUTE &&
                     (int)MS_PLAN_LANES == (int)MS_LANES,
                 "lanes of the plan are those of the schedule");
  return ms_lane_name((enum ms_lane)lane);
}

double ms_plan_update_bytes(const struct ms_schedule_params *params) {
  return params->gradient_bytes + 2 * (params->weight_bytes + params->state_bytes);
}

/* Without a device the optimizer and the layers share the processor: neither hides the other. */
static void share_processor(struct ms_plan_times *times) {
  double busy = times->busy[MS_LANE_COMPUTE] + times->busy[MS_LANE_HOST];
  times->seconds = times->seconds > busy ? times->seconds : busy;
  times->exposed = times->seconds - busy;
}

/* Slabs come and go beside the layer they belong to: forward its input, backward the gradient of its output,
 * and back that of its input. (What a layer hands to the next, and its input in the backward pass, are in the
 * schedule.) */
static void add_slabs(const struct ms_plan_slab *slab, const struct ms_schedule_params *params,
                      const struct ms_timeline_rates *rates, struct ms_plan_times *times) {
  double once = (double)params->layers * (double)slab->input_bytes;
  double up = once * (1 + slab->halo) * (params->backward ? 2 : 1), down = once;
  times->bytes[MS_LANE_UP] += up;
  times->bytes[MS_LANE_DOWN] += down;
  times->busy[MS_LANE_UP] += up / rates->up;
  times->busy[MS_LANE_DOWN] += down / rates->down;
  for (int i = MS_LANE_UP; i <= MS_LANE_DOWN; i++)
    if (times->busy[i] > times->seconds) {
      times->exposed += times->busy[i] - times->seconds;
      times->seconds = times->busy[i];
    }
}

int ms_plan_times(const struct ms_rates *rates, const struct ms_schedule_params *params,
                  const struct ms_plan_work_seconds *work, const struct ms_plan_slab *slab,
                  struct ms_plan_times *times, struct ms_error *error) {
  double disk = rates->disk_read > 0 ? rates->disk_read : DISK_RATE, total = 0;
  struct ms_timeline_rates lanes = {.read = disk,
                                    .write = rates->disk_write > 0 ? rates->disk_write : disk,
                                    .disk = rates->disk_both,
                                    .update = rates->memory / ms_plan_update_bytes(params),
                                    .up = rates->link > 0 ? rates->link : LINK_RATE,
                                    .down = rates->link > 0 ? rates->link : LINK_RATE};
  struct ms_schedule_params full = *params;
  struct ms_schedule schedule = {0};
  struct ms_timeline timeline = {0};
  double *seconds = malloc(2 * (size_t)params->layers * sizeof *seconds);
  int code = seconds ? 0 : ms_error_set(error, MS_ENOMEM, "out of memory for a plan");
  memset(times, 0, sizeof *times);
  for (int l = 0; l < params->layers; l++)
    total += (double)params->counts[l];
  for (int l = 0; l < params->layers && code == 0; l++) {
    double part = (double)params->counts[l] / total;
    double pack = rates->pack > 0 && !params->device ? (double)params->counts[l] / rates->pack : 0;
    seconds[l] = work->forward * part + pack;
    seconds[params->layers + l] = work->backward * part + 2 * pack;
  }
  full.forward_seconds = seconds;
  full.backward_seconds = seconds + params->layers;
  if (code == 0)
    code = ms_schedule_make(&schedule, &full, error);
  if (code == 0)
    code = ms_timeline_run(&timeline, &schedule, &lanes, error);
  if (code == 0) {
    times->seconds = timeline.seconds;
    times->exposed = timeline.exposed;
    memcpy(times->busy, timeline.busy, sizeof times->busy);
    memcpy(times->bytes, schedule.bytes, sizeof times->bytes);
    if (!params->device)
      share_processor(times);
    else if (slab && slab->frames)
      add_slabs(slab, params, &lanes, times);
  }
  ms_timeline_release(&timeline);
  ms_schedule_release(&schedule);
  free(seconds);
  return code;
}

void ms_plan_put_times(const struct ms_plan_times *times, double times_over, struct ms_plan *plan) {
  double moved = 0;
  for (int i = 0; i < MS_LANES; i++) {
    plan->lane_seconds[i] += times_over * times->busy[i];
    plan->lane_bytes[i] += times_over * times->bytes[i];
    moved += times_over * times->bytes[i];
  }
  plan->moved_bytes += (uint64_t)moved;
  plan->exposed_transfer_seconds += times_over * times->exposed;
}
