/* One job of the queue, as the main thread sees it. Every property notifies on the main thread; changes come
 * from the store and the engine thread, coalesced to at most one pending callback for all of them. */
#pragma once
#include "msa-clip.h"
#include "msa-frames.h"
#include "msa-params.h"

enum msa_job_kind { MSA_JOB_GENERATE, MSA_JOB_TRAIN };
enum msa_job_state {
  MSA_JOB_QUEUED,
  MSA_JOB_RUNNING,
  MSA_JOB_STOPPING, /* was asked to stop or pause; answers within a second */
  MSA_JOB_PAUSED,   /* keeps what it has done; resume goes on from there */
  MSA_JOB_DONE,
  MSA_JOB_FAILED,
  MSA_JOB_CANCELLED
};

#define MSA_TYPE_JOB (msa_job_get_type())
G_DECLARE_FINAL_TYPE(MsaJob, msa_job, MSA, JOB, GObject)

/* Properties (read only): "state" (int), "title" (string: prompt or name of the run), "phase" (string, as the
 * engine names it: "text", "sample", "decode", "train", ...), "done" and "total" (int64, of the phase),
 * "fraction" (double 0..1, of the whole job), "seconds-left" (double, < 0: not known), "error" (string or
 * NULL), "preview" (MsaFrames or NULL), "clip" (MsaClip or NULL: what a finished generate made, or the
 * partial clip that "take what is there" made). */
gint64 msa_job_get_id(MsaJob *job);
enum msa_job_kind msa_job_get_kind(MsaJob *job);
enum msa_job_state msa_job_get_state(MsaJob *job);
const char *msa_job_get_title(MsaJob *job);
const char *msa_job_get_phase(MsaJob *job);
gint64 msa_job_get_done(MsaJob *job);
gint64 msa_job_get_total(MsaJob *job);
double msa_job_get_fraction(MsaJob *job);
double msa_job_get_seconds_left(MsaJob *job);
const char *msa_job_get_error(MsaJob *job);
MsaFrames *msa_job_get_preview(MsaJob *job); /* borrowed */
MsaClip *msa_job_get_clip(MsaJob *job);      /* borrowed */
/* Of its kind, else NULL; borrowed, never changes for a running job. */
const MsaGenerateParams *msa_job_get_generate(MsaJob *job);
const MsaTrainParams *msa_job_get_train(MsaJob *job);
/* Words of the prompt that the model does not know, "" if none; known once it has run. */
const char *msa_job_get_skipped_words(MsaJob *job);
