/* Where the parts of a model lie: budgets from far too small to ample are kept to the byte, more memory is
 * never more traffic, homes are spread, and the schedule that is made from a placement moves what it says. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "stream/placement.h"

#define LAYERS 30
#define BLOCK 46000000

static int64_t counts[LAYERS], trained[LAYERS];

static struct ms_placement_job training_job(void) {
  for (int l = 0; l < LAYERS; l++) {
    counts[l] = BLOCK;
    trained[l] = BLOCK;
  }
  return (struct ms_placement_job){.layers = LAYERS,
                                   .counts = counts,
                                   .outer = 20000000,
                                   .outer_trained = 20000000,
                                   .training = 1,
                                   .moment_bits = 32,
                                   .host_fixed = 100 << 20,
                                   .working = 300 << 20,
                                   .input_bytes = 8 << 20};
}

static uint64_t sum(const struct ms_placement_bytes *b) {
  return b->fixed + b->working + b->outer + b->layers + b->slots + b->ring + b->gradients + b->inputs;
}

static int is_spread(const struct ms_placement *p) {
  int seen = 0;
  for (int l = 0; l < p->params.layers; l++) {
    double even = (double)(l + 1) * p->host_layers / p->params.layers;
    seen += p->params.homes[l] == MS_HOME_HOST;
    if (seen > even + 1 || seen < even - 1)
      return 0;
  }
  return seen == p->host_layers;
}

/* The disk's bytes of the schedule: what the placement says but for layers that are still in a slot when the
 * backward pass begins. */
static int schedule_agrees(const struct ms_placement *p) {
  struct ms_schedule schedule;
  struct ms_error error = {0};
  double disk, kept = (double)p->params.slots * BLOCK * 2;
  int good;
  if (ms_schedule_make(&schedule, &p->params, &error) < 0)
    return 0;
  disk = schedule.bytes[MS_LANE_READ] + schedule.bytes[MS_LANE_WRITE];
  good = disk <= p->disk_traffic * (1 + 1e-6) && disk >= p->disk_traffic * (1 - 1e-6) - kept;
  for (int i = 0; i < schedule.count && good; i++) {
    const struct ms_op *op = &schedule.ops[i];
    if (op->kind == MS_OP_UPDATE)
      good = op->slot < p->host_slots && op->buffer < p->ring;
    if (op->kind == MS_OP_WRITE_GRADIENT)
      good = op->buffer < p->host_gradients;
  }
  ms_schedule_release(&schedule);
  return good;
}

struct sweep {
  int fitting, bounded, summed, monotone, spread, scheduled, shorts;
  int host_layers, on_disk; /* of the last; none was seen */
  enum ms_input_home inputs;
};

static void one(struct sweep *s, const struct ms_placement_job *job, double *traffic, int *before) {
  struct ms_placement p;
  struct ms_error error = {0};
  if (ms_placement_make(&p, job, &error) < 0) {
    check_ok(0, "placed: %s", error.message);
    return;
  }
  s->summed &= p.host_bytes == sum(&p.host) && p.disk_bytes == sum(&p.disk) &&
               (!job->device || p.device_bytes == sum(&p.device));
  if (p.fits) {
    s->fitting++;
    s->bounded &= p.host_bytes <= job->host_budget &&
                  (!job->device_budget || p.device_bytes <= job->device_budget) && !p.short_of;
    s->monotone &= p.disk_traffic <= *traffic && (p.params.inputs != s->inputs || p.host_layers >= *before);
    s->spread &= is_spread(&p);
    s->scheduled &= schedule_agrees(&p);
    s->on_disk |= p.host_layers == 0;
    *traffic = p.disk_traffic;
    *before = s->host_layers = p.host_layers;
    s->inputs = p.params.inputs;
  } else {
    struct ms_placement_job more = *job;
    struct ms_placement q;
    uint64_t *budget = !strcmp(p.short_of, "host") ? &more.host_budget : &more.device_budget;
    *budget += p.short_bytes - 1;
    if (ms_placement_make(&q, &more, &error) == 0) {
      s->shorts &= !q.fits;
      ms_placement_release(&q);
    }
    *budget += 1;
    if (ms_placement_make(&q, &more, &error) == 0) {
      s->shorts &= q.fits || strcmp(q.short_of, p.short_of); /* or the other one is what is short then */
      ms_placement_release(&q);
    }
  }
  ms_placement_release(&p);
}

static void sweep(const char *what, struct ms_placement_job job) {
  struct sweep s = {.bounded = 1, .summed = 1, .monotone = 1, .spread = 1, .scheduled = 1, .shorts = 1};
  double traffic = 1e300;
  int before = 0;
  for (double budget = 64e6; budget < 64e9; budget *= 1.013) {
    job.host_budget = (uint64_t)budget;
    one(&s, &job, &traffic, &before);
  }
  check_ok(s.fitting > 100 && s.host_layers == LAYERS && s.on_disk, "%s: %d budgets from none to all fit",
           what, s.fitting);
  check_ok(s.bounded && s.summed, "%s: no budget is passed, and tiers add up", what);
  check_ok(s.monotone, "%s: more memory is never more traffic", what);
  check_ok(s.spread, "%s: homes are spread over the depth", what);
  check_ok(s.scheduled, "%s: the schedule moves what the placement says, in the buffers it has", what);
  check_ok(s.shorts, "%s: what is said to be missing is exactly that", what);
}

static void check_sweeps(void) {
  struct ms_placement_job job = training_job();
  sweep("training", job);
  job.average = 1;
  job.moment_bits = 8;
  sweep("with an average and 8-bit moments", job);
  job.input_bytes = (uint64_t)400 << 20;
  sweep("with large inputs", job);
  job = training_job();
  for (int l = 0; l < LAYERS; l++)
    trained[l] = 100000;
  job.trained = trained;
  sweep("offset heads alone", job);
  job = training_job();
  job.device = 1;
  job.device_budget = (uint64_t)2 << 30;
  sweep("on a device", job);
  job = training_job();
  job.training = 0;
  job.input_bytes = 0;
  sweep("sampling", job);
}

static void check_device(void) {
  struct ms_placement_job job = training_job();
  struct ms_placement p;
  struct ms_error error = {0};
  uint64_t before = UINT64_MAX;
  int good = 1;
  job.device = 1;
  job.host_budget = (uint64_t)64 << 30;
  for (uint64_t budget = (uint64_t)64 << 20; budget < (uint64_t)8 << 30; budget += (uint64_t)16 << 20) {
    job.device_budget = budget;
    if (ms_placement_make(&p, &job, &error) < 0)
      return;
    good &= !p.fits || p.device_bytes <= budget;
    good &= p.fits || (!strcmp(p.short_of, "device") && p.short_bytes < before &&
                       p.device_bytes == budget + p.short_bytes);
    before = p.short_bytes;
    ms_placement_release(&p);
  }
  check_ok(good, "the device's budget is kept too");
  job.device_budget = 0;
  check_ok(ms_placement_make(&p, &job, &error) == 0 && p.fits && p.params.inputs == MS_INPUT_DEVICE &&
               p.device_inputs == LAYERS + 1 && p.params.gradient_bytes == 2,
           "inputs stay on a device that has room");
  ms_placement_release(&p);
}

static void check_exact(void) {
  struct ms_placement_job job = training_job();
  struct ms_placement p;
  struct ms_error error = {0};
  job.average = 1;
  check_ok(ms_placement_home_bytes(&job, 4096, 4096, 4096) == 4096 * (2 + 2 + 4 + 4 + 4 + 4),
           "a home of 20 bytes a parameter");
  job.average = 0;
  job.moment_bits = 8;
  check_ok(ms_placement_home_bytes(&job, 1 << 20, 1 << 20, 1 << 20) ==
               (1 << 20) * (2 + 2 + 1 + 1 + 4) + 2 * 4 * 4096,
           "8-bit moments take a byte each and a scale for 256");
  check_ok(ms_placement_state_bytes(&job) == 4.03125, "which is 4.03 bytes beside the weight");
  job = training_job();
  check_ok(ms_placement_home_bytes(&job, 4096, 4097, 0) == 3 * 4096, "what is frozen is a weight alone");
  check_ok(ms_placement_make(&p, &job, &error) == 0 && p.fits && p.host_layers == LAYERS && !p.host_slots &&
               !p.ring && !p.host_gradients && p.disk_bytes == 0 && p.disk_traffic == 0,
           "without limits everything is in the host and there are no buffers");
  ms_placement_release(&p);
  job.average = 1;
  check_ok(ms_placement_make(&p, &job, &error) == 0 && p.host_slots >= 2,
           "but slots for passes with the average");
  ms_placement_release(&p);
  job.average = 0;
  job.host_budget = (uint64_t)3 << 30;
  job.device_budget = job.working + 2 * (2 * (uint64_t)BLOCK + 3 * 4096);
  check_ok(ms_placement_make(&p, &job, &error) == 0 && p.fits && p.host_slots == 2 &&
               p.device_bytes <= job.device_budget,
           "a limit of the working set keeps slots down");
  ms_placement_release(&p);
  job.host_budget = 0;
  job.device_budget = job.working / 2;
  check_ok(ms_placement_make(&p, &job, &error) == 0 && !p.fits && !strcmp(p.short_of, "device") &&
               p.short_bytes == job.working - job.device_budget,
           "where it is the working set that does not fit, slots do not add to it");
  ms_placement_release(&p);
  job.layers = 0;
  check_ok(ms_placement_make(&p, &job, &error) == MS_EUSAGE, "no layers: %s", error.message);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  check_exact();
  check_sweeps();
  check_device();
  return check_end();
}
