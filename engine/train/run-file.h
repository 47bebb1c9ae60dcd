/* run.json: the settings and the clips of a run, so that --resume goes on with them.
 *
 * One JSON object: a key a setting (as in the table of run-file.c), "model" (folder), "dataset", "recipe",
 * and "clips", a list of hashes of the clips' names, where the source has names. */
#pragma once
#include <jansson.h>
#include "ms-train.h"

/* Settings of the run in job->output: those in job->unsaid are filled in, the others compared where another
 * value would change what the run computes. *kept owns texts of the job until json_decref; NULL if there is
 * no run.json, which is no failure, nor is a setting that an older one lacks. MS_EUSAGE names a setting that
 * differs and both values, MS_EINPUT what cannot be read. */
int ms_run_file_take(struct ms_train_job *job, json_t **kept, struct ms_error *error);
/* Tells hooks->log how many clips are gone or new since `kept` (may be NULL) was written. */
void ms_run_file_compare_clips(const json_t *kept, const struct ms_clip_source *source,
                               const struct ms_hooks *hooks);
/* Writes job->output/run.json. MS_EOUTPUT, MS_ENOMEM. */
int ms_run_file_write(const struct ms_train_job *job, const char *model_folder,
                      const struct ms_clip_source *source, struct ms_error *error);
