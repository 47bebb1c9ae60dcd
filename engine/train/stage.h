/* What the stages of a recipe share: an optimizer over some parameters with schedule, checkpoints and
 * reports. */
#pragma once
#include <jansson.h>
#include "ms-job.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

struct ms_stage_loop {
  const char *phase; /* name for progress and for the folder of checkpoints, "codec" */
  char folder[1100];
  struct ms_train_job job; /* schedule: steps, lr, final_lr, warmup, ema */
  struct ms_optimizer optimizer;
  struct ms_checkpoint_state state; /* of the optimizer */
  struct ms_checkpoint at;
  float *grad; /* [total], owned */
  const struct ms_hooks *hooks;
  double start;
};

/* Reads the schedule from settings (steps, lr, warmup, ema, weight_decay, save_every, seed), opens the
 * optimizer over params, resumes from output/<phase>/checkpoints if there are any. */
int ms_stage_open(struct ms_stage_loop *loop, const char *phase, const json_t *settings,
                  struct ms_compute *compute, struct ms_params *params, const char *output,
                  const struct ms_hooks *hooks, struct ms_error *error);
/* After the gradients of a step lie in loop->grad: update, count, report, save when due. */
int ms_stage_update(struct ms_stage_loop *loop, double loss, const char *figure, double value,
                    struct ms_error *error);
/* Writes the averaged weights to output/file as bf16. */
int ms_stage_finish(struct ms_stage_loop *loop, const char *output, const char *file, struct ms_error *error);
void ms_stage_release(struct ms_stage_loop *loop);
