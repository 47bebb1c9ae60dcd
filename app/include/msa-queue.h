/* The queue: jobs in the order in which they run, on one engine thread per device.
 *
 * It is a GListModel of MsaJob: the running job first (or the interrupted one after a crash), then those that
 * wait; finished and cancelled jobs leave it ("job-ended" tells). Jobs are in the store before they are in
 * the list, and leave the store only when their file is verified, so that after a crash the queue is there,
 * paused, with the interrupted job first. All functions are called on the main thread and return at once. */
#pragma once
#include "msa-job.h"

#define MSA_TYPE_QUEUE (msa_queue_get_type())
G_DECLARE_FINAL_TYPE(MsaQueue, msa_queue, MSA, QUEUE, GObject)

/* Properties: "paused" (gboolean: nothing new is started), "running" (MsaJob or NULL), "seconds-left"
 * (double, of all jobs together, < 0: not known), "fraction" (of the running job; 0 without one). Signals:
 * "job-ended" (MsaJob): done, failed or cancelled. A failed job stays in the list until it is cancelled or
 * retried. */
MsaJob *msa_queue_add_generate(MsaQueue *queue, const MsaGenerateParams *params); /* new reference */
MsaJob *msa_queue_add_train(MsaQueue *queue, const MsaTrainParams *params);
/* A running job goes on; see pause_job. A queue that opens with unfinished jobs is paused; when it goes on,
 * so does the interrupted job. It also pauses when a job could not write (a full disk), so that the others do
 * not fail one after the other. */
void msa_queue_set_paused(MsaQueue *queue, gboolean paused);
gboolean msa_queue_get_paused(MsaQueue *queue);
MsaJob *msa_queue_get_running(MsaQueue *queue); /* borrowed */
double msa_queue_get_seconds_left(MsaQueue *queue);
/* Stops within a second and keeps what there is. resume_job puts it at the head of the queue again. If nobody
 * asked for the queue's pause, resume_job and retry_job end it. */
void msa_queue_pause_job(MsaQueue *queue, MsaJob *job);
void msa_queue_resume_job(MsaQueue *queue, MsaJob *job);
/* A failed job once more; what was sampled is not sampled again. */
void msa_queue_retry_job(MsaQueue *queue, MsaJob *job);
/* Stops within a second and leaves the queue; the latents or checkpoints are removed for a generate and stay
 * for a train job ("stop and keep": the output folder is a usable model). */
void msa_queue_cancel_job(MsaQueue *queue, MsaJob *job);
/* Stops a running or paused generate job with the step at hand and makes a clip of what the network saw in
 * it; job-ended follows, with the clip marked as partial. */
void msa_queue_take_job(MsaQueue *queue, MsaJob *job);
/* Position among the waiting jobs, 0 is next. */
void msa_queue_move_job(MsaQueue *queue, MsaJob *job, guint position);
/* A waiting generate job gets other settings. FALSE if it is not waiting any more. */
gboolean msa_queue_edit_job(MsaQueue *queue, MsaJob *job, const MsaGenerateParams *params);
