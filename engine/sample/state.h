/* The saved state of a clip in the making, so that a stopped job goes on from its last step: JOB/job.json
 * (settings as they were resolved) and JOB/state.safetensors (latents, sampler history, stage and step). Both
 * are written whole or not at all. */
#pragma once
#include <jansson.h>
#include <stdint.h>
#include "ms-error.h"
#include "sample/sampler.h"

struct ms_sample_state {
  int stage, step; /* the next step to do; step == steps of the stage: the stage is done */
  int64_t count;
  float *latents;             /* borrowed */
  struct ms_sampler *sampler; /* borrowed; its history is saved and restored; may be NULL */
};

/* Makes the folder and writes job.json. */
int ms_state_begin(const char *folder, const json_t *job, struct ms_error *error);
int ms_state_save(const char *folder, const struct ms_sample_state *state, struct ms_error *error);
/* job.json of a folder; the caller decrefs. MS_EINPUT. */
int ms_state_read_job(const char *folder, json_t **job, struct ms_error *error);
/* Stage and step only. Returns 1, 0 (nothing saved yet) or MS_EINPUT. */
int ms_state_peek(const char *folder, int *stage, int *step, struct ms_error *error);
/* Fills latents (and the sampler's history). MS_EINPUT if the sizes do not fit. */
int ms_state_load(const char *folder, struct ms_sample_state *state, struct ms_error *error);
/* Removes the files and the folder. */
void ms_state_remove(const char *folder);
