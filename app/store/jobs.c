#include "store/jobs.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "store/store-private.h"

void msa_job_row_free(struct msa_job_row *row) {
  g_free(row->params);
  g_free(row->output);
  g_free(row->error);
  g_free(row);
}

static void free_row(gpointer row) {
  msa_job_row_free(row);
}

static void remove_folder(const char *path) {
  GDir *dir = g_dir_open(path, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    g_autofree char *file = g_build_filename(path, name, NULL);
    g_unlink(file);
  }
  if (dir)
    g_dir_close(dir);
  g_rmdir(path);
}

void msa_store_drop_state(struct msa_store *store, gint64 job) {
  g_autofree char *number = g_strdup_printf("%" G_GINT64_FORMAT, job);
  g_autofree char *path = g_build_filename(store->folders->jobs, number, NULL);
  remove_folder(path);
}

struct adding {
  struct msa_job_row row;
  struct msa_run_row *run;
};

static void adding_free(gpointer data) {
  struct adding *adding = data;
  g_free(adding->row.params);
  if (adding->run)
    msa_run_row_free(adding->run);
  g_free(adding);
}

static gboolean add_work(struct msa_store *store, gpointer data, GError **error) {
  struct adding *adding = data;
  const struct msa_job_row *row = &adding->row;
  return msa_store_exec(store, error,
                        "INSERT INTO jobs (id, kind, place, state, params) VALUES "
                        "(?, ?, (SELECT coalesce (max (place), 0) + 1 FROM jobs), ?, ?)",
                        "iiis", row->id, (gint64)row->kind, (gint64)row->state, row->params) &&
         (!adding->run || msa_store_insert_run(store, adding->run, error));
}

void msa_store_add_job_async(struct msa_store *store, const struct msa_job_row *row,
                             const struct msa_run_row *run, GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  struct adding *adding = g_new0(struct adding, 1);
  adding->row = *row;
  adding->row.params = g_strdup(row->params);
  adding->run = run ? msa_run_row_copy(run) : NULL;
  g_task_set_task_data(task, adding, adding_free);
  msa_store_push_task(store, add_work, task);
}

char *msa_store_add_job_finish(GAsyncResult *result, GError **error) {
  const struct adding *adding = g_task_get_task_data(G_TASK(result));
  if (!g_task_propagate_boolean(G_TASK(result), error))
    return NULL;
  return g_strdup(adding->run ? adding->run->folder : "");
}

static void remove_strays(struct msa_store *store, GPtrArray *rows) {
  GDir *dir = g_dir_open(store->folders->jobs, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    const gint64 id = g_ascii_strtoll(name, NULL, 10);
    gboolean owned = id <= 0;
    for (guint i = 0; i < rows->len && !owned; i++)
      owned = ((const struct msa_job_row *)rows->pdata[i])->id == id;
    if (!owned)
      msa_store_drop_state(store, id);
  }
  if (dir)
    g_dir_close(dir);
}

static gboolean list_work(struct msa_store *store, gpointer data, GError **error) {
  GPtrArray *rows = data;
  /* The one that ran (1, 2: running, stopping) when its process ended: this one holds the lock. */
  sqlite3_stmt *statement =
      msa_store_prepare(store,
                        "SELECT id, kind, state, params, output, error, fraction FROM jobs "
                        "ORDER BY state IN (1, 2) DESC, place, id",
                        error);
  if (!statement)
    return FALSE;
  while (msa_store_step(statement)) {
    struct msa_job_row *row = g_new0(struct msa_job_row, 1);
    row->id = sqlite3_column_int64(statement, 0);
    row->kind = (enum msa_job_kind)sqlite3_column_int(statement, 1);
    row->state = (enum msa_job_state)sqlite3_column_int(statement, 2);
    row->interrupted = row->state == MSA_JOB_RUNNING || row->state == MSA_JOB_STOPPING;
    if (row->interrupted)
      row->state = MSA_JOB_PAUSED;
    row->params = msa_store_dup_text(statement, 3);
    row->output = g_strdup((const char *)sqlite3_column_text(statement, 4));
    row->error = g_strdup((const char *)sqlite3_column_text(statement, 5));
    row->fraction = sqlite3_column_double(statement, 6);
    g_ptr_array_add(rows, row);
  }
  if (!msa_store_finish(store, statement, error))
    return FALSE;
  remove_strays(store, rows);
  return TRUE;
}

void msa_store_list_jobs_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  g_task_set_task_data(task, g_ptr_array_new_with_free_func(free_row), (GDestroyNotify)g_ptr_array_unref);
  msa_store_push_task(store, list_work, task);
}

GPtrArray *msa_store_list_jobs_finish(GAsyncResult *result, GError **error) {
  GPtrArray *rows = g_task_get_task_data(G_TASK(result));
  return g_task_propagate_boolean(G_TASK(result), error) ? g_ptr_array_ref(rows) : NULL;
}

struct change {
  gint64 job;
  enum msa_job_state state;
  char *text;
};

static void change_free(gpointer data) {
  struct change *change = data;
  g_free(change->text);
  g_free(change);
}

static void push_change(struct msa_store *store, MsaStoreWork work, gint64 job, enum msa_job_state state,
                        const char *text) {
  struct change *change = g_new0(struct change, 1);
  change->job = job;
  change->state = state;
  change->text = g_strdup(text);
  msa_store_push(store, work, change, change_free);
}

static gboolean state_work(struct msa_store *store, gpointer data, GError **error) {
  const struct change *change = data;
  return msa_store_exec(store, error, "UPDATE jobs SET state = ?, error = ? WHERE id = ?", "isi",
                        (gint64)change->state, change->text, change->job);
}

void msa_store_set_job_state(struct msa_store *store, gint64 job, enum msa_job_state state,
                             const char *sentence) {
  push_change(store, state_work, job, state, sentence);
}

struct progress {
  gint64 job;
  double seconds, fraction;
};

static gboolean progress_work(struct msa_store *store, gpointer data, GError **error) {
  const struct progress *progress = data;
  return msa_store_exec(store, error,
                        "UPDATE jobs SET seconds = seconds + ?, fraction = max (fraction, ?) WHERE id = ?",
                        "ddi", progress->seconds, progress->fraction, progress->job);
}

void msa_store_add_progress(struct msa_store *store, gint64 job, double seconds, double fraction) {
  const struct progress progress = {job, seconds, fraction};
  msa_store_push(store, progress_work, g_memdup2(&progress, sizeof progress), g_free);
}

static gboolean params_work(struct msa_store *store, gpointer data, GError **error) {
  const struct change *change = data;
  if (!msa_store_exec(store, error,
                      "UPDATE jobs SET params = ?, output = NULL, seconds = 0, fraction = 0 WHERE id = ?",
                      "si", change->text, change->job))
    return FALSE;
  msa_store_drop_state(store, change->job);
  return TRUE;
}

void msa_store_set_job_params(struct msa_store *store, gint64 job, const char *params) {
  push_change(store, params_work, job, MSA_JOB_QUEUED, params);
}

static gboolean order_work(struct msa_store *store, gpointer data, GError **error) {
  const GArray *jobs = data;
  for (guint i = 0; i < jobs->len; i++)
    if (!msa_store_exec(store, error, "UPDATE jobs SET place = ? WHERE id = ?", "ii", (gint64)i,
                        g_array_index(jobs, gint64, i)))
      return FALSE;
  return TRUE;
}

void msa_store_order_jobs(struct msa_store *store, const gint64 *jobs, gsize count) {
  GArray *copy = g_array_sized_new(FALSE, FALSE, sizeof(gint64), (guint)count);
  g_array_append_vals(copy, jobs, (guint)count);
  msa_store_push(store, order_work, copy, (GDestroyNotify)g_array_unref);
}

static gboolean remove_work(struct msa_store *store, gpointer data, GError **error) {
  const struct change *change = data;
  if (!msa_store_exec(store, error, "DELETE FROM jobs WHERE id = ?", "i", change->job) ||
      !msa_store_end_run(store, change->job, change->state, change->text, error))
    return FALSE;
  msa_store_drop_state(store, change->job);
  return TRUE;
}

void msa_store_remove_job(struct msa_store *store, gint64 job, enum msa_job_state run_state,
                          const char *sentence) {
  push_change(store, remove_work, job, run_state, sentence);
}

struct beginning {
  gint64 job;
  const char *params, *stem;
  char *output;
};

static gboolean is_taken(struct msa_store *store, const char *path, gboolean *taken, GError **error) {
  sqlite3_stmt *statement = msa_store_prepare(store,
                                              "SELECT 1 FROM jobs WHERE output = ?1 UNION ALL "
                                              "SELECT 1 FROM clips WHERE path = ?1",
                                              error);
  if (!statement)
    return FALSE;
  msa_store_bind(statement, "s", path);
  *taken = msa_store_step(statement) || g_file_test(path, G_FILE_TEST_EXISTS);
  return msa_store_finish(store, statement, error);
}

/* A name of a clip in the trash is not given again: it may come back. */
static gboolean choose_output(struct msa_store *store, struct beginning *begin, GError **error) {
  gboolean taken = TRUE;
  for (int i = 1; taken; i++) {
    g_autofree char *name =
        i == 1 ? g_strdup_printf("%s.mp4", begin->stem) : g_strdup_printf("%s-%d.mp4", begin->stem, i);
    g_free(begin->output);
    begin->output = g_build_filename(store->folders->clips, name, NULL);
    if (!is_taken(store, begin->output, &taken, error))
      return FALSE;
  }
  return TRUE;
}

static gboolean begin_work(struct msa_store *store, gpointer data, GError **error) {
  struct beginning *begin = data;
  sqlite3_stmt *statement = msa_store_prepare(store, "SELECT output FROM jobs WHERE id = ?", error);
  if (!statement)
    return FALSE;
  msa_store_bind(statement, "i", begin->job);
  if (msa_store_step(statement))
    begin->output = g_strdup((const char *)sqlite3_column_text(statement, 0));
  if (!msa_store_finish(store, statement, error))
    return FALSE;
  if (!begin->output && begin->stem && !choose_output(store, begin, error))
    return FALSE;
  return msa_store_exec(store, error,
                        "UPDATE jobs SET state = ?, params = ?, output = ?, error = NULL WHERE id = ?",
                        "issi", (gint64)MSA_JOB_RUNNING, begin->params, begin->output, begin->job);
}

gboolean msa_store_begin_job(struct msa_store *store, gint64 job, const char *params, const char *stem,
                             char **output, GError **error) {
  struct beginning begin = {.job = job, .params = params, .stem = stem};
  const gboolean good = msa_store_wait(store, begin_work, &begin, error);
  if (good)
    *output = begin.output;
  else
    g_free(begin.output);
  return good;
}

struct finishing {
  gint64 job;
  struct msa_clip_row *row;
};

static gboolean add_earlier_seconds(struct msa_store *store, const struct finishing *finishing,
                                    GError **error) {
  sqlite3_stmt *statement = msa_store_prepare(store, "SELECT seconds FROM jobs WHERE id = ?", error);
  if (!statement)
    return FALSE;
  msa_store_bind(statement, "i", finishing->job);
  if (msa_store_step(statement))
    finishing->row->seconds += sqlite3_column_double(statement, 0);
  return msa_store_finish(store, statement, error);
}

static gboolean finish_work(struct msa_store *store, gpointer data, GError **error) {
  const struct finishing *finishing = data;
  if (!add_earlier_seconds(store, finishing, error))
    return FALSE;
  const gint64 clip = msa_store_insert_clip(store, finishing->row, error);
  if (!clip || !msa_store_exec(store, error, "DELETE FROM jobs WHERE id = ?", "i", finishing->job))
    return FALSE;
  finishing->row->id = clip;
  return TRUE;
}

static gboolean drop_work(struct msa_store *store, gpointer data, GError **error) {
  msa_store_drop_state(store, *(const gint64 *)data);
  return TRUE;
}

gboolean msa_store_finish_clip(struct msa_store *store, gint64 job, struct msa_clip_row *row,
                               GError **error) {
  struct finishing finishing = {job, row};
  if (!msa_store_wait(store, finish_work, &finishing, error))
    return FALSE;
  /* only now, that the clip is safe; if the program ends before, the next start removes it as a stray */
  return msa_store_wait(store, drop_work, &job, error);
}
