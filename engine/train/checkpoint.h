/* Checkpoints of a run: OUT/checkpoints/step-000010/ with state.safetensors (optimizer and weights) and
 * state.json (step, samples drawn, running figures). A folder is made under another name and renamed when it
 * is complete, so what has the name is whole. */
#pragma once
#include <stdint.h>
#include "ms-train.h"
#include "train/optimizer.h"

struct ms_checkpoint {
  int64_t step;
  int64_t drawn[MS_TRAIN_MAX_BUCKETS]; /* samples that each bucket has given */
  double loss;                         /* smoothed */
  double first_validation_loss;        /* NaN: none */
};

/* Saves and removes all but the newest `keep` checkpoints. MS_EOUTPUT. */
int ms_checkpoint_save(const char *output, const struct ms_checkpoint *checkpoint,
                       const struct ms_optimizer *optimizer, int keep, struct ms_error *error);
/* Loads the newest. Returns 1, 0 (there is none) or an error. */
int ms_checkpoint_load(const char *output, struct ms_checkpoint *checkpoint, struct ms_optimizer *optimizer,
                       struct ms_error *error);
