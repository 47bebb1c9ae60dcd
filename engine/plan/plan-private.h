/* What the files of the planner share. */
#pragma once
#include "model/memory.h"
#include "model/model.h"
#include "ms-plan.h"
#include "plan/plan-version.h"
#include "stream/placement.h"

/* rates.c: the processor's name as the system tells it, and the number of threads that a job gets. */
void ms_rates_processor(char *name, size_t size);
int ms_rates_threads(const struct ms_machine *machine);

/* work.c: where the model FLOPs of one pass of one sample go; training: of both passes together. In inference
 * the text is encoded once a clip and left out here. */
struct ms_plan_work {
  double product, dense; /* dense: windows too */
  double slide;          /* as far from the lattice's edges, so less than its model FLOPs */
};
struct ms_plan_work ms_plan_pass_work(const struct ms_dit *dit, const int lattice[3], int coarse,
                                      int training);
/* Seconds of that pass for so many samples at once. */
double ms_plan_pass_seconds(const struct ms_rates *rates, struct ms_dit *dit, const int lattice[3],
                            int coarse, int samples, int training);

/* What a step takes beyond the best pass of the network, as a part of it: most passes are not the best, and
 * states, sampler, noise and loss come on top. Measured 0.1 to 0.15. */
#define MS_PLAN_STEP_SHARE 0.12

/* model.c: a model without its weights, and what a plan of it is held against. */
struct ms_plan_case {
  const struct ms_machine *machine;
  const struct ms_rates *rates;
  struct ms_compute compute;
  struct ms_model model;
  uint64_t weight_bytes; /* of the model's files; of a configuration, as they would be */
  int failed;            /* code of an attempt that could not be made: out of memory */
};
/* name: see ms-plan.h; attention: of every stage, or NULL; lora_rank: of adapters, or 0. Release also after a
 * failure. */
int ms_plan_open(struct ms_plan_case *c, const char *name, const char *attention, int lora_rank,
                 const struct ms_machine *machine, const struct ms_rates *rates, struct ms_error *error);
void ms_plan_release(struct ms_plan_case *c);
/* Limits of memory and disk into the plan; output (may be NULL): the file or folder that is written. */
void ms_plan_limits(const struct ms_plan_case *c, const char *output, struct ms_plan *plan);
/* Memory as computed for the CPU with everything resident. */
void ms_plan_put_resident(const struct ms_memory *need, struct ms_plan *plan);
/* A placement's bytes and homes into the plan. */
void ms_plan_put_placement(const struct ms_placement *placement, struct ms_plan *plan);
/* What this process holds beside the bare program, a window for example; of another machine's nothing. */
static inline uint64_t ms_plan_held(const struct ms_plan_case *c) {
  return c->rates->profile ? 0 : ms_memory_held();
}
/* Whether a device with memory of its own computes. */
static inline int ms_plan_has_device(const struct ms_plan_case *c) {
  return c->rates->profile && c->rates->device_memory > 0;
}
/* Holds the plan's bytes against its limits: fits, short_of, short_bytes. */
void ms_plan_judge(struct ms_plan *plan);

/* device.c: what a device needs to compute a layer of clips of `lattice` (before the patch), `samples` at
 * once.
 */
struct ms_plan_slab {
  int frames;           /* latent frames at a time; 0: all of them, of all samples */
  uint64_t working;     /* activations and scratch on the device */
  uint64_t slab_bytes;  /* of an input's part; 0: all of it */
  uint64_t input_bytes; /* of one layer's input, of all samples */
  double halo;          /* how much more is copied than slabs hold: frames beside them, as a part */
};
/* room: bytes of the device that are left for it; UINT64_MAX: no limit. The longest slab that fits, or a
 * frame.
 */
void ms_plan_slab(const struct ms_dit *dit, const int lattice[3], int coarse, int samples, int training,
                  uint64_t room, struct ms_plan_slab *slab);

/* step.c: one step, or one pass of sampling, over a placement, as the trainer's schedule runs it. */
struct ms_plan_times {
  double seconds, exposed, busy[MS_LANES], bytes[MS_LANES];
};
struct ms_plan_work_seconds { /* of all layers and all batches together */
  double forward, backward;
};
/* Bytes of memory that AdamW reads and writes a parameter. */
double ms_plan_update_bytes(const struct ms_schedule_params *params);
/* slab: NULL where none is needed. 0 or MS_ENOMEM. */
int ms_plan_times(const struct ms_rates *rates, const struct ms_schedule_params *params,
                  const struct ms_plan_work_seconds *work, const struct ms_plan_slab *slab,
                  struct ms_plan_times *times, struct ms_error *error);
void ms_plan_put_times(const struct ms_plan_times *times, double times_over, struct ms_plan *plan);

/* train.c: MS_EUSAGE, a setting that cannot be. */
int ms_plan_check_training(const struct ms_train_job *job, struct ms_error *error);

/* suggest.c: fills plan->suggestions. attempt makes the plan of the job with these sizes. */
typedef void (*ms_plan_attempt_fn)(void *data, int width, int height, int frames, int batch,
                                   struct ms_plan *plan);
void ms_plan_suggest(const struct ms_plan_case *c, ms_plan_attempt_fn attempt, void *data,
                     struct ms_plan *plan);
