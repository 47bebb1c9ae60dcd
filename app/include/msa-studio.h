/* The Studio without its window: queue, library, runs, models and planner over one store.
 *
 *   MsaStudio *studio = msa_studio_new ();
 *   msa_studio_open_async (studio, opened_cb, self);       // opens the store, fills the lists
 *   MsaJob *job = msa_queue_add_generate (msa_studio_get_queue (studio), params);
 *   g_signal_connect (job, "notify::preview", ...);
 *   ...
 *   msa_studio_close_async (studio, closed_cb, self);      // pauses the running job, waits for the threads
 *
 * Threads: the main thread never calls the engine, SQLite or the file system. One store thread does all SQL;
 * one engine thread (SCHED_BATCH, nice 10) does every engine call of the queue; loads, exports, checks and
 * plans run on a small pool. What they report is carried to the main thread by one pending idle callback that
 * holds the latest values. */
#pragma once
#include "msa-dataset.h"
#include "msa-error.h"
#include "msa-export.h"
#include "msa-library.h"
#include "msa-models.h"
#include "msa-planner.h"
#include "msa-queue.h"
#include "msa-run.h"

#define MSA_TYPE_STUDIO (msa_studio_get_type())
G_DECLARE_FINAL_TYPE(MsaStudio, msa_studio, MSA, STUDIO, GObject)

/* Signal "store-error" (string): something could not be written in the background (a full disk); a sentence.
 * Folders follow XDG: $XDG_DATA_HOME/megaslide/{studio.db,clips,models,runs}, $XDG_CACHE_HOME/megaslide. */
MsaStudio *msa_studio_new(void);
void msa_studio_open_async(MsaStudio *studio, GAsyncReadyCallback callback, gpointer data);
/* FALSE: the store cannot be opened (no rights, full disk, made by a newer version); says what to do. */
gboolean msa_studio_open_finish(MsaStudio *studio, GAsyncResult *result, GError **error);
void msa_studio_close_async(MsaStudio *studio, GAsyncReadyCallback callback, gpointer data);
gboolean msa_studio_close_finish(MsaStudio *studio, GAsyncResult *result, GError **error);

MsaQueue *msa_studio_get_queue(MsaStudio *studio); /* all borrowed, there from the start */
MsaLibrary *msa_studio_get_library(MsaStudio *studio);
MsaModels *msa_studio_get_models(MsaStudio *studio);
MsaPlanner *msa_studio_get_planner(MsaStudio *studio);
/* A GListModel of MsaRun, newest first. Removing a run from the list keeps its folder. */
GListModel *msa_studio_get_runs(MsaStudio *studio);
void msa_studio_forget_run(MsaStudio *studio, MsaRun *run);
/* Sentences of the start-up probe: no disk space, no encoder, folders not writable. NULL-terminated, empty if
 * all is well; known after open. */
const char *const *msa_studio_get_warnings(MsaStudio *studio);
const char *msa_studio_get_clips_folder(MsaStudio *studio);
