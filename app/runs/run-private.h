/* How the queue changes a run; inside the app only. Main thread only. */
#pragma once
#include "msa-run.h"
#include "queue/mailbox.h"
#include "store/runs.h"

/* In a run's folder, written whenever it ends or rests: a Chrome trace of its last steps. */
#define MSA_TRACE_FILE "trace.json"

/* The store is borrowed and outlives the run's use. Row and params are copied. */
MsaRun *msa_run_new(struct msa_store *store, const struct msa_run_row *row, const MsaTrainParams *params);
/* The job that trains it: the run follows its state. NULL: it left the queue. */
void msa_run_set_job(MsaRun *run, MsaJob *job);
/* Points and samples; kept in the store too, points with a delay of at most a second. */
void msa_run_take_news(MsaRun *run, const struct msa_news *news);
/* Writes what waits. */
void msa_run_flush(MsaRun *run);
/* Nothing is written or loaded any more: the store is about to be closed. */
void msa_run_detach(MsaRun *run);
struct msa_store *msa_run_get_store(MsaRun *run); /* NULL: detached */
/* Seconds a step of what it has done; < 0: not known. */
double msa_run_get_seconds_per_step(MsaRun *run);
