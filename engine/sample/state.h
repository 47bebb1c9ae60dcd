/* The saved state of a clip in the making, so that a stopped or killed job goes on from its last step with
 * the same bits. A folder: JOB/job.json             the settings as they were resolved, and the output
 *   JOB/state.safetensors    latents, sampler history, stage and step, on the disk for good
 *   JOB/latest-0.safetensors, latest-1.safetensors   the same of later steps, written in turn without waiting
 * for the disk: the older is removed first, since file systems that see a file replaced write the new one out
 * at once JOB/lock                 held by the process that works on the clip Files are written whole or not
 * at all and carry a checksum and the hash of the settings, so that what a power failure leaves of the latest
 * is known and an earlier one taken instead. */
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

struct ms_state_folder {
  char path[1100];
  uint64_t settings; /* hash of job.json's settings */
  int lock;          /* -1: not held */
  int turn;          /* which of the two latest files is written next */
};

/* Makes the folder, takes its lock and writes job.json; what an earlier clip left is removed. MS_EOUTPUT: it
 * cannot be made, or another run writes it. */
int ms_state_begin(struct ms_state_folder *state, const char *folder, const json_t *job,
                   struct ms_error *error);
/* Takes the lock of an existing folder whose job.json was read as `job`. */
int ms_state_resume(struct ms_state_folder *state, const char *folder, const json_t *job,
                    struct ms_error *error);
/* Gives the lock back. remove: the files and the folder go first. Harmless on a zeroed object whose lock is
 * -1. */
void ms_state_end(struct ms_state_folder *state, int remove);
/* quick: to one of the latest files. */
int ms_state_save(struct ms_state_folder *folder, const struct ms_sample_state *state, int quick,
                  struct ms_error *error);
/* job.json of a folder; the caller decrefs. MS_EINPUT. */
int ms_state_read_job(const char *folder, json_t **job, struct ms_error *error);
/* Stage and step of the newest whole state. Returns 1, 0 (nothing saved yet) or MS_EINPUT. */
int ms_state_peek(struct ms_state_folder *folder, int *stage, int *step, struct ms_error *error);
/* Fills latents (and the sampler's history) from it. MS_EINPUT if the sizes do not fit. */
int ms_state_load(struct ms_state_folder *folder, struct ms_sample_state *state, struct ms_error *error);
