/* The parts of the queue among themselves: the list (msa-queue.c), the job that runs (running.c) and how long
 * it all takes (forecast.c). Main thread only. */
#pragma once
#include "msa-queue.h"
#include "queue/queue-private.h"
#include "runs/run-private.h"

/* What is to become of the running job when it stops. */
enum wish { WISH_NONE, WISH_PAUSE, WISH_RESUME, WISH_CANCEL, WISH_CLOSE };

struct _MsaQueue {
  GObject parent;
  struct msa_store *store;
  struct msa_engine *engine;
  MsaLibrary *library;
  MsaModels *models;
  MsaPlanner *planner;
  GListStore *runs;
  GPtrArray *jobs;        /* of MsaJob */
  GPtrArray *interrupted; /* of MsaJob, borrowed from jobs: go on when the queue does */
  MsaJob *running;
  gint64 started;        /* when, monotonic */
  double kept_fraction;  /* of running, that the store has */
  struct msa_task *task; /* of running */
  MsaRun *run;           /* that it trains */
  MsaJob *taken;         /* a paused job of which a clip is wanted: runs next, even if the queue is paused */
  enum wish wish;
  gboolean open, paused, paused_by_itself, closing;
  double seconds_left, fraction;
  guint tick_source;
  gint64 last_id;
  void (*closed)(gpointer data);
  gpointer closed_data;
};

enum queue_property { QUEUE_PAUSED = 1, QUEUE_RUNNING, QUEUE_SECONDS_LEFT, QUEUE_FRACTION, QUEUE_PROPERTIES };

/* msa-queue.c */
void msa_queue_notify(MsaQueue *queue, enum queue_property property);
void msa_queue_tell_ended(MsaQueue *queue, MsaJob *job); /* emits "job-ended" */
void msa_queue_unlist(MsaQueue *queue, MsaJob *job);     /* out of the list, if it is in it */
void msa_queue_relist(MsaQueue *queue, MsaJob *job, guint position);
void msa_queue_halt(MsaQueue *queue);                   /* a pause that nobody asked for */
MsaRun *msa_queue_find_run(MsaQueue *queue, gint64 id); /* borrowed; NULL */

/* running.c */
void msa_queue_start_next(MsaQueue *queue);
void msa_queue_stop_running(MsaQueue *queue, enum wish wish);
void msa_queue_forget_task(MsaQueue *queue);
/* Out of the queue and the store, cancelled. */
void msa_queue_cancel_now(MsaQueue *queue, MsaJob *job);

/* forecast.c */
void msa_queue_update_time(MsaQueue *queue);
void msa_queue_forecast(MsaQueue *queue, MsaJob *job);
void msa_queue_forecast_all(MsaQueue *queue);
