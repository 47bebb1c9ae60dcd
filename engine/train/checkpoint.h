/* Checkpoints of a run: OUT/checkpoints/step-000010/ with state.safetensors (optimizer and weights) and
 * state.json (step, samples drawn, running figures, the sum of the state's values). A folder is made under
 * another name and renamed when it is complete, so what has the name is whole. */
#pragma once
#include <stdint.h>
#include "ms-train.h"

struct ms_checkpoint {
  int64_t step, updates;               /* updates: those of the optimizer, which skipped steps lack */
  int64_t drawn[MS_TRAIN_MAX_BUCKETS]; /* samples that each bucket has given */
  double loss;                         /* smoothed */
  double first_validation_loss;        /* NaN: none */
};

/* What writes and reads state.safetensors. */
struct ms_checkpoint_state {
  void *data;
  int (*save)(void *data, const char *path, uint64_t *sum, struct ms_error *error);
  /* MS_EINPUT: the file is not what was saved, an older one may be. */
  int (*load)(void *data, const char *path, uint64_t sum, struct ms_error *error);
};

/* Saves, and removes all older ones but `keep` with this one. MS_EOUTPUT: those that were there stand. */
int ms_checkpoint_save(const char *output, const struct ms_checkpoint *checkpoint,
                       const struct ms_checkpoint_state *state, int keep, struct ms_error *error);
/* Loads the newest that is whole. One that is damaged is told to hooks->log, set aside under the name
 * "damaged-000010", and the one before is taken. Returns 1, 0 (there is none) or an error: of the newest, if
 * none can be loaded. */
int ms_checkpoint_load(const char *output, struct ms_checkpoint *checkpoint,
                       const struct ms_checkpoint_state *state, const struct ms_hooks *hooks,
                       struct ms_error *error);
/* The step of the newest checkpoint, whole or not, or -1. */
int64_t ms_checkpoint_newest(const char *output);
