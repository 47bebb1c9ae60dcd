/* The engine thread: every engine call of the queue, one job after the other, below everything else in
 * priority. */
#pragma once
#include <stdatomic.h>

#include "core/studio-folders.h"
#include "msa-params.h"
#include "queue/mailbox.h"

/* One start of a job. The main thread makes it and keeps a reference to stop it; nothing but the two flags
 * changes after that. */
struct msa_task {
  gatomicrefcount references;
  gint64 id;
  MsaGenerateParams *generate; /* one of the two */
  MsaTrainParams *train;
  char *folder;      /* of the run */
  atomic_int cancel; /* stop, keep what there is */
  atomic_int take;   /* make a clip of what there is */
  struct msa_mailbox *mailbox;
};
/* Copies; takes the mailbox. */
struct msa_task *msa_task_new(gint64 id, const MsaGenerateParams *generate, const MsaTrainParams *train,
                              const char *folder, struct msa_mailbox *mailbox);
struct msa_task *msa_task_ref(struct msa_task *task);
void msa_task_unref(struct msa_task *task);

struct msa_engine;
/* Store and folders are borrowed. */
struct msa_engine *msa_engine_new(struct msa_store *store, const struct msa_studio_folders *folders);
/* Any thread; returns at once. The task's mailbox gets the end. */
void msa_engine_run(struct msa_engine *engine, struct msa_task *task);
/* Ends the thread after what it was given, frees. Waits: not on the main thread. */
void msa_engine_close(struct msa_engine *engine);
