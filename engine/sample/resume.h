/* Going on with a job that a stopped or killed run saved. */
#pragma once
#include "ms-generate.h"

/* Reads the job in asked->resume into *saved (released by the caller, also after a failure) and puts its
 * settings into *job, with the output and keep_latents of `asked` where they are set. MS_EUSAGE names a
 * setting of `asked` that is not the saved job's. */
int ms_resume_read(const struct ms_generate_job *asked, struct ms_saved_job *saved,
                   struct ms_generate_job *job, struct ms_error *error);
