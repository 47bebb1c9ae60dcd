/* The store's side of the queue; see store.h for what all calls share. */
#pragma once
#include "store/runs.h"
#include "store/store.h"

struct msa_job_row {
  gint64 id;
  enum msa_job_kind kind;
  enum msa_job_state state;
  gboolean interrupted; /* paused because the program ended while it ran */
  char *params;         /* JSON */
  char *output;         /* of a clip, chosen when it was first started; NULL: not yet */
  char *error;          /* why it failed, or NULL */
  double fraction;      /* that was done when it was stopped */
};
void msa_job_row_free(struct msa_job_row *row);

/* The job comes last; a train job's run is added with it (its folder is chosen here: run->folder in the
 * answer). run NULL for a clip. */
void msa_store_add_job_async(struct msa_store *store, const struct msa_job_row *row,
                             const struct msa_run_row *run, GAsyncReadyCallback callback, gpointer data);
/* The run's folder, "" for a clip; NULL: failed. g_free. */
char *msa_store_add_job_finish(GAsyncResult *result, GError **error);

/* GPtrArray of struct msa_job_row in the order of the queue; owned by the caller. A job that was running when
 * the program ended comes first; it stays marked so until it runs again. States of clips that no job owns are
 * removed. */
void msa_store_list_jobs_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data);
GPtrArray *msa_store_list_jobs_finish(GAsyncResult *result, GError **error);

void msa_store_set_job_state(struct msa_store *store, gint64 job, enum msa_job_state state,
                             const char *sentence);
/* What a start that did not end has behind it. */
void msa_store_add_progress(struct msa_store *store, gint64 job, double seconds, double fraction);
/* Other settings: what was done with the old ones is dropped. */
void msa_store_set_job_params(struct msa_store *store, gint64 job, const char *params);
/* The order of the whole queue. */
void msa_store_order_jobs(struct msa_store *store, const gint64 *jobs, gsize count);
/* Out of the queue, with the unfinished clip's files. A run stays, with this state. */
void msa_store_remove_job(struct msa_store *store, gint64 job, enum msa_job_state run_state,
                          const char *sentence);

/* The job runs from now on. For a clip: *output is where it goes, kept with the job; a name with `stem` that
 * neither a file nor another job has, or the one that was chosen before. Waits. */
gboolean msa_store_begin_job(struct msa_store *store, gint64 job, const char *params, const char *stem,
                             char **output, GError **error);
/* The clip is in the library and the job is gone, or neither; row->id is set, and the seconds of earlier
 * starts are added to row->seconds. Waits. */
gboolean msa_store_finish_clip(struct msa_store *store, gint64 job, struct msa_clip_row *row, GError **error);
