#include "store/runs.h"

#include <math.h>
#include <string.h>

#include "core/slug.h"
#include "store/store-private.h"

struct msa_run_row *msa_run_row_copy(const struct msa_run_row *row) {
  struct msa_run_row *copy = g_memdup2(row, sizeof *row);
  copy->name = g_strdup(row->name);
  copy->folder = g_strdup(row->folder);
  copy->params = g_strdup(row->params);
  copy->error = g_strdup(row->error);
  return copy;
}

void msa_run_row_free(struct msa_run_row *row) {
  g_free(row->name);
  g_free(row->folder);
  g_free(row->params);
  g_free(row->error);
  g_free(row);
}

static void free_row(gpointer row) {
  msa_run_row_free(row);
}

static gboolean folder_is_taken(struct msa_store *store, const char *path, gboolean *taken, GError **error) {
  sqlite3_stmt *statement = msa_store_prepare(store, "SELECT 1 FROM runs WHERE folder = ?", error);
  if (!statement)
    return FALSE;
  msa_store_bind(statement, "s", path);
  *taken = msa_store_step(statement) || g_file_test(path, G_FILE_TEST_EXISTS);
  return msa_store_finish(store, statement, error);
}

gboolean msa_store_insert_run(struct msa_store *store, struct msa_run_row *row, GError **error) {
  g_autofree char *stem = msa_slug(row->name, 60, "run");
  gboolean taken = TRUE;
  for (int i = 1; taken; i++) {
    g_autofree char *name = i == 1 ? g_strdup(stem) : g_strdup_printf("%s-%d", stem, i);
    g_free(row->folder);
    row->folder = g_build_filename(store->folders->runs, name, NULL);
    if (!folder_is_taken(store, row->folder, &taken, error))
      return FALSE;
  }
  return msa_store_exec(store, error,
                        "INSERT INTO runs (id, name, folder, params, state, step, steps, loss, seconds) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        "isssiiidd", row->id, row->name, row->folder, row->params, (gint64)row->state,
                        row->step, row->steps, row->loss, row->seconds);
}

gboolean msa_store_end_run(struct msa_store *store, gint64 run, enum msa_job_state state,
                           const char *sentence, GError **error) {
  return msa_store_exec(store, error, "UPDATE runs SET state = ?, error = ? WHERE id = ?", "isi",
                        (gint64)state, sentence, run);
}

static gboolean list_work(struct msa_store *store, gpointer data, GError **error) {
  GPtrArray *rows = data;
  sqlite3_stmt *statement =
      msa_store_prepare(store,
                        "SELECT id, name, folder, params, state, step, steps, loss, seconds, error "
                        "FROM runs ORDER BY id DESC",
                        error);
  if (!statement)
    return FALSE;
  while (msa_store_step(statement)) {
    struct msa_run_row *row = g_new0(struct msa_run_row, 1);
    row->id = sqlite3_column_int64(statement, 0);
    row->name = msa_store_dup_text(statement, 1);
    row->folder = msa_store_dup_text(statement, 2);
    row->params = msa_store_dup_text(statement, 3);
    row->state = (enum msa_job_state)sqlite3_column_int(statement, 4);
    if (row->state == MSA_JOB_RUNNING || row->state == MSA_JOB_STOPPING || row->state < MSA_JOB_QUEUED ||
        row->state > MSA_JOB_CANCELLED)
      row->state = MSA_JOB_PAUSED;
    row->step = sqlite3_column_int64(statement, 5);
    row->steps = sqlite3_column_int64(statement, 6);
    row->loss = sqlite3_column_type(statement, 7) == SQLITE_NULL ? NAN : sqlite3_column_double(statement, 7);
    row->seconds = sqlite3_column_double(statement, 8);
    row->error = g_strdup((const char *)sqlite3_column_text(statement, 9));
    g_ptr_array_add(rows, row);
  }
  return msa_store_finish(store, statement, error);
}

void msa_store_list_runs_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  g_task_set_task_data(task, g_ptr_array_new_with_free_func(free_row), (GDestroyNotify)g_ptr_array_unref);
  msa_store_push_task(store, list_work, task);
}

GPtrArray *msa_store_list_runs_finish(GAsyncResult *result, GError **error) {
  GPtrArray *rows = g_task_get_task_data(G_TASK(result));
  return g_task_propagate_boolean(G_TASK(result), error) ? g_ptr_array_ref(rows) : NULL;
}

static gboolean set_work(struct msa_store *store, gpointer data, GError **error) {
  const struct msa_run_row *row = data;
  return msa_store_exec(
      store, error, "UPDATE runs SET state = ?, step = ?, loss = ?, seconds = ?, error = ? WHERE id = ?",
      "iiddsi", (gint64)row->state, row->step, row->loss, row->seconds, row->error, row->id);
}

void msa_store_set_run(struct msa_store *store, const struct msa_run_row *row) {
  msa_store_push(store, set_work, msa_run_row_copy(row), free_row);
}

static gboolean forget_work(struct msa_store *store, gpointer data, GError **error) {
  return msa_store_exec(store, error, "DELETE FROM runs WHERE id = ?", "i", *(const gint64 *)data);
}

void msa_store_forget_run(struct msa_store *store, gint64 run) {
  msa_store_push(store, forget_work, g_memdup2(&run, sizeof run), g_free);
}

struct points {
  gint64 run;
  GArray *list;
};

static void points_free(gpointer data) {
  struct points *points = data;
  g_array_unref(points->list);
  g_free(points);
}

/* 0: error is set, or there is none and make is FALSE. */
static gint64 series_number(struct msa_store *store, gint64 run, const char *name, gboolean make,
                            GError **error) {
  gint64 number = 0;
  if (make && !msa_store_exec(store, error, "INSERT OR IGNORE INTO series (run, name) VALUES (?, ?)", "is",
                              run, name))
    return 0;
  sqlite3_stmt *statement =
      msa_store_prepare(store, "SELECT id FROM series WHERE run = ? AND name = ?", error);
  if (!statement)
    return 0;
  msa_store_bind(statement, "is", run, name);
  if (msa_store_step(statement))
    number = sqlite3_column_int64(statement, 0);
  return msa_store_finish(store, statement, error) ? number : 0;
}

/* All points of one name, which follow each other in no order with those of others. */
static gboolean add_series(struct msa_store *store, const struct points *points, const char *name,
                           GError **error) {
  const gint64 series = series_number(store, points->run, name, TRUE, error);
  gboolean first = TRUE, good = series != 0;
  sqlite3_stmt *insert =
      good ? msa_store_prepare(store, "INSERT OR REPLACE INTO metrics (series, step, value) VALUES (?, ?, ?)",
                               error)
           : NULL;
  if (!insert)
    return FALSE;
  for (guint i = 0; i < points->list->len && good; i++) {
    const struct msa_point *point = &g_array_index(points->list, struct msa_point, i);
    if (point->name != name)
      continue;
    if (first)
      good = msa_store_exec(store, error, "DELETE FROM metrics WHERE series = ? AND step >= ?", "ii", series,
                            point->step);
    first = FALSE;
    msa_store_bind(insert, "iid", series, point->step, point->value);
    msa_store_step(insert);
    good = good && (sqlite3_reset(insert) == SQLITE_OK || msa_store_failed(store, error));
  }
  sqlite3_finalize(insert);
  return good;
}

static gboolean add_points_work(struct msa_store *store, gpointer data, GError **error) {
  const struct points *points = data;
  g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
  for (guint i = 0; i < points->list->len; i++) {
    const char *name = g_array_index(points->list, struct msa_point, i).name;
    if (g_hash_table_add(seen, (gpointer)name) && !add_series(store, points, name, error))
      return FALSE;
  }
  return TRUE;
}

void msa_store_add_points(struct msa_store *store, gint64 run, GArray *list) {
  struct points *points = g_new0(struct points, 1);
  points->run = run;
  points->list = g_array_ref(list);
  msa_store_push(store, add_points_work, points, points_free);
}

void msa_points_block_clear(struct msa_points_block *block) {
  g_clear_pointer(&block->name, g_free);
  g_clear_pointer(&block->x, g_free);
  g_clear_pointer(&block->y, g_free);
}

static void block_free(gpointer data) {
  msa_points_block_clear(data);
  g_free(data);
}

static gboolean read_work(struct msa_store *store, gpointer data, GError **error) {
  struct msa_points_block *block = data;
  g_autoptr(GError) why = NULL;
  const gint64 series = series_number(store, block->run, block->name, FALSE, &why);
  block->count = 0;
  if (why) {
    g_propagate_error(error, g_steal_pointer(&why));
    return FALSE;
  }
  if (!series)
    return TRUE;
  sqlite3_stmt *statement = msa_store_prepare(
      store, "SELECT step, value FROM metrics WHERE series = ? AND step > ? ORDER BY step LIMIT ?", error);
  if (!statement)
    return FALSE;
  msa_store_bind(statement, "iii", series, block->after, (gint64)block->most);
  while (msa_store_step(statement) && block->count < block->most) {
    block->x[block->count] = (double)sqlite3_column_int64(statement, 0);
    block->y[block->count] = sqlite3_column_double(statement, 1);
    block->count++;
  }
  return msa_store_finish(store, statement, error);
}

static void block_init(struct msa_points_block *block, gint64 run, const char *name, gint64 after,
                       gsize most) {
  *block = (struct msa_points_block){.run = run, .after = after, .name = g_strdup(name), .most = most};
  block->x = g_new(double, most);
  block->y = g_new(double, most);
}

void msa_store_read_points_async(struct msa_store *store, gint64 run, const char *name, gint64 after,
                                 gsize most, GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  struct msa_points_block *block = g_new0(struct msa_points_block, 1);
  block_init(block, run, name, after, most);
  g_task_set_task_data(task, block, block_free);
  g_task_set_priority(task, G_PRIORITY_DEFAULT_IDLE);
  msa_store_push_task(store, read_work, task);
}

const struct msa_points_block *msa_store_read_points_finish(GAsyncResult *result, GError **error) {
  return g_task_propagate_boolean(G_TASK(result), error) ? g_task_get_task_data(G_TASK(result)) : NULL;
}

gboolean msa_store_read_points(struct msa_store *store, struct msa_points_block *block, GError **error) {
  return msa_store_wait(store, read_work, block, error);
}

struct names {
  gint64 run;
  GPtrArray *list;
};

static gboolean names_work(struct msa_store *store, gpointer data, GError **error) {
  struct names *names = data;
  sqlite3_stmt *statement =
      msa_store_prepare(store, "SELECT name FROM series WHERE run = ? ORDER BY id", error);
  if (!statement)
    return FALSE;
  msa_store_bind(statement, "i", names->run);
  while (msa_store_step(statement))
    g_ptr_array_add(names->list, msa_store_dup_text(statement, 0));
  return msa_store_finish(store, statement, error);
}

char **msa_store_read_names(struct msa_store *store, gint64 run, GError **error) {
  struct names names = {run, g_ptr_array_new()};
  const gboolean good = msa_store_wait(store, names_work, &names, error);
  g_ptr_array_add(names.list, NULL);
  char **list = (char **)g_ptr_array_free(names.list, FALSE);
  if (good)
    return list;
  g_strfreev(list);
  return NULL;
}

struct sampling {
  gint64 run;
  struct msa_sample_row row;
};

static void sampling_free(gpointer data) {
  struct sampling *sampling = data;
  g_free(sampling->row.prompt);
  g_free(sampling->row.path);
  g_free(sampling);
}

static gboolean add_sample_work(struct msa_store *store, gpointer data, GError **error) {
  const struct sampling *sampling = data;
  return msa_store_exec(store, error,
                        "INSERT OR REPLACE INTO samples (run, step, prompt, path) VALUES (?, ?, ?, ?)",
                        "iiss", sampling->run, sampling->row.step, sampling->row.prompt, sampling->row.path);
}

void msa_store_add_sample(struct msa_store *store, gint64 run, gint64 step, const char *prompt,
                          const char *path) {
  struct sampling *sampling = g_new0(struct sampling, 1);
  *sampling = (struct sampling){run, {step, g_strdup(prompt), g_strdup(path)}};
  msa_store_push(store, add_sample_work, sampling, sampling_free);
}

static void sample_row_free(gpointer data) {
  struct msa_sample_row *row = data;
  g_free(row->prompt);
  g_free(row->path);
  g_free(row);
}

static gboolean list_samples_work(struct msa_store *store, gpointer data, GError **error) {
  struct names *samples = data;
  sqlite3_stmt *statement = msa_store_prepare(
      store, "SELECT step, prompt, path FROM samples WHERE run = ? ORDER BY step, prompt", error);
  if (!statement)
    return FALSE;
  msa_store_bind(statement, "i", samples->run);
  while (msa_store_step(statement)) {
    struct msa_sample_row *row = g_new0(struct msa_sample_row, 1);
    row->step = sqlite3_column_int64(statement, 0);
    row->prompt = msa_store_dup_text(statement, 1);
    row->path = msa_store_dup_text(statement, 2);
    g_ptr_array_add(samples->list, row);
  }
  return msa_store_finish(store, statement, error);
}

static void names_free(gpointer data) {
  struct names *names = data;
  g_ptr_array_unref(names->list);
  g_free(names);
}

void msa_store_list_samples_async(struct msa_store *store, gint64 run, GAsyncReadyCallback callback,
                                  gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  struct names *samples = g_new0(struct names, 1);
  *samples = (struct names){run, g_ptr_array_new_with_free_func(sample_row_free)};
  g_task_set_task_data(task, samples, names_free);
  msa_store_push_task(store, list_samples_work, task);
}

GPtrArray *msa_store_list_samples_finish(GAsyncResult *result, GError **error) {
  const struct names *samples = g_task_get_task_data(G_TASK(result));
  return g_task_propagate_boolean(G_TASK(result), error) ? g_ptr_array_ref(samples->list) : NULL;
}
