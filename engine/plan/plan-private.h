/* What the files of the planner share. */
#pragma once
#include "model/memory.h"
#include "model/model.h"
#include "ms-plan.h"
#include "plan/plan-version.h"

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
};
/* name: see ms-plan.h; attention: of every stage, or NULL. Release also after a failure. */
int ms_plan_open(struct ms_plan_case *c, const char *name, const char *attention,
                 const struct ms_machine *machine, const struct ms_rates *rates, struct ms_error *error);
void ms_plan_release(struct ms_plan_case *c);
/* Limits of memory and disk into the plan; output (may be NULL): the file or folder that is written. */
void ms_plan_limits(const struct ms_plan_case *c, const char *output, struct ms_plan *plan);
/* Memory as computed for the CPU, put where the machine has it. */
void ms_plan_place(const struct ms_plan_case *c, const struct ms_memory *need, struct ms_plan *plan);
/* Holds the plan's bytes against its limits: fits, short_of, short_bytes. */
void ms_plan_judge(struct ms_plan *plan);

/* suggest.c: fills plan->suggestions. attempt makes the plan of the job with these sizes. */
typedef void (*ms_plan_attempt_fn)(void *data, int width, int height, int frames, int batch,
                                   struct ms_plan *plan);
void ms_plan_suggest(const struct ms_plan_case *c, ms_plan_attempt_fn attempt, void *data,
                     struct ms_plan *plan);
