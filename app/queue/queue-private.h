/* How the studio sets up the queue; inside the app only. Main thread only. */
#pragma once
#include "msa-library.h"
#include "msa-models.h"
#include "msa-planner.h"
#include "msa-queue.h"
#include "queue/engine.h"
#include "store/jobs.h"

/* All borrowed, and outlive the queue's use; runs holds MsaRun, newest first. */
MsaQueue *msa_queue_new(struct msa_store *store, struct msa_engine *engine, MsaLibrary *library,
                        MsaModels *models, MsaPlanner *planner, GListStore *runs);
/* Once, after the store is open: the jobs of last time, and the runs they train are in the list already. The
 * queue is paused if there are any that were not finished. */
void msa_queue_fill(MsaQueue *queue, GPtrArray *rows);
/* Stops the running job, so that the next start finds it as an interrupted one, and starts no other; then
 * calls done. */
void msa_queue_close(MsaQueue *queue, void (*done)(gpointer data), gpointer data);
