/* How the queue changes a job; inside the app only. Main thread only; each setter notifies what changed. */
#pragma once
#include "msa-job.h"
#include "queue/mailbox.h"

/* One of the two; copied. */
MsaJob *msa_job_new(gint64 id, const MsaGenerateParams *generate, const MsaTrainParams *train);
void msa_job_set_state(MsaJob *job, enum msa_job_state state, const char *error /* or NULL */);
void msa_job_set_clip(MsaJob *job, MsaClip *clip);
/* What an earlier start has done. */
void msa_job_set_fraction(MsaJob *job, double fraction);
/* Of a job that does not run yet. */
void msa_job_set_generate(MsaJob *job, const MsaGenerateParams *params);
void msa_job_set_seed(MsaJob *job, gint64 seed);
/* Progress, preview and skipped words. */
void msa_job_take_news(MsaJob *job, const struct msa_news *news);
/* A start from here on: progress of an earlier one is forgotten, but fraction and preview stay. */
void msa_job_begin(MsaJob *job);
/* Time passes between two reports. */
void msa_job_tick(MsaJob *job);
/* Seconds of the whole job, for its "seconds-left" while it waits; < 0: not known. */
void msa_job_set_estimate(MsaJob *job, double seconds);
double msa_job_get_estimate(MsaJob *job);
