#include "store/store-private.h"

#define PROMPTS_KEPT 200

struct msa_clip_row *msa_clip_row_copy(const struct msa_clip_row *row) {
  struct msa_clip_row *copy = g_memdup2(row, sizeof *row);
  copy->path = g_strdup(row->path);
  copy->prompt = g_strdup(row->prompt);
  copy->model = g_strdup(row->model);
  copy->kind = g_strdup(row->kind);
  copy->params = g_strdup(row->params);
  return copy;
}

void msa_clip_row_clear(struct msa_clip_row *row) {
  g_clear_pointer(&row->path, g_free);
  g_clear_pointer(&row->prompt, g_free);
  g_clear_pointer(&row->model, g_free);
  g_clear_pointer(&row->kind, g_free);
  g_clear_pointer(&row->params, g_free);
}

void msa_clip_row_free(struct msa_clip_row *row) {
  msa_clip_row_clear(row);
  g_free(row);
}

gint64 msa_store_insert_clip(struct msa_store *store, const struct msa_clip_row *row, GError **error) {
  const gint64 created = row->created ? row->created : g_get_real_time() / G_USEC_PER_SEC;
  if (!msa_store_exec(store, error,
                      "INSERT INTO clips (path, prompt, model, kind, params, created, seconds, bytes, width, "
                      "height, frames, fps, starred) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                      "sssssidiiiidi", row->path, row->prompt ? row->prompt : "",
                      row->model ? row->model : "", row->kind, row->params, created, row->seconds,
                      (gint64)row->bytes, (gint64)row->width, (gint64)row->height, (gint64)row->frames,
                      row->fps, (gint64)row->starred))
    return 0;
  return sqlite3_last_insert_rowid(store->db);
}

static void free_row(gpointer row) {
  msa_clip_row_free(row);
}

struct adding {
  struct msa_clip_row *row;
  gint64 id;
};

static void adding_free(gpointer data) {
  struct adding *adding = data;
  msa_clip_row_free(adding->row);
  g_free(adding);
}

static gboolean add_work(struct msa_store *store, gpointer data, GError **error) {
  struct adding *adding = data;
  adding->id = msa_store_insert_clip(store, adding->row, error);
  return adding->id != 0;
}

void msa_store_add_clip_async(struct msa_store *store, const struct msa_clip_row *row,
                              GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  struct adding *adding = g_new0(struct adding, 1);
  adding->row = msa_clip_row_copy(row);
  g_task_set_task_data(task, adding, adding_free);
  msa_store_push_task(store, add_work, task);
}

gint64 msa_store_add_clip_finish(GAsyncResult *result, GError **error) {
  const struct adding *adding = g_task_get_task_data(G_TASK(result));
  return g_task_propagate_boolean(G_TASK(result), error) ? adding->id : 0;
}

static gboolean list_work(struct msa_store *store, gpointer data, GError **error) {
  GPtrArray *rows = data;
  sqlite3_stmt *statement = msa_store_prepare(
      store,
      "SELECT id, path, prompt, model, kind, params, created, seconds, bytes, width, height, frames, fps, "
      "starred FROM clips WHERE trashed IS NULL ORDER BY created DESC, id DESC",
      error);
  if (!statement)
    return FALSE;
  while (msa_store_step(statement)) {
    struct msa_clip_row *row = g_new0(struct msa_clip_row, 1);
    row->id = sqlite3_column_int64(statement, 0);
    row->path = msa_store_dup_text(statement, 1);
    row->prompt = msa_store_dup_text(statement, 2);
    row->model = msa_store_dup_text(statement, 3);
    row->kind = msa_store_dup_text(statement, 4);
    row->params = g_strdup((const char *)sqlite3_column_text(statement, 5));
    row->created = sqlite3_column_int64(statement, 6);
    row->seconds = sqlite3_column_double(statement, 7);
    row->bytes = (guint64)sqlite3_column_int64(statement, 8);
    row->width = sqlite3_column_int(statement, 9);
    row->height = sqlite3_column_int(statement, 10);
    row->frames = sqlite3_column_int(statement, 11);
    row->fps = sqlite3_column_double(statement, 12);
    row->starred = sqlite3_column_int(statement, 13);
    g_ptr_array_add(rows, row);
  }
  return msa_store_finish(store, statement, error);
}

void msa_store_list_clips_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  g_task_set_task_data(task, g_ptr_array_new_with_free_func(free_row), (GDestroyNotify)g_ptr_array_unref);
  msa_store_push_task(store, list_work, task);
}

GPtrArray *msa_store_list_clips_finish(GAsyncResult *result, GError **error) {
  GPtrArray *rows = g_task_get_task_data(G_TASK(result));
  return g_task_propagate_boolean(G_TASK(result), error) ? g_ptr_array_ref(rows) : NULL;
}

struct change {
  gint64 clip;
  gboolean starred;
  char *trashed;
};

static void change_free(gpointer data) {
  struct change *change = data;
  g_free(change->trashed);
  g_free(change);
}

static gboolean starred_work(struct msa_store *store, gpointer data, GError **error) {
  const struct change *change = data;
  return msa_store_exec(store, error, "UPDATE clips SET starred = ? WHERE id = ?", "ii",
                        (gint64)change->starred, change->clip);
}

void msa_store_set_starred(struct msa_store *store, gint64 clip, gboolean starred) {
  struct change *change = g_new0(struct change, 1);
  change->clip = clip;
  change->starred = starred != FALSE;
  msa_store_push(store, starred_work, change, change_free);
}

static gboolean trashed_work(struct msa_store *store, gpointer data, GError **error) {
  const struct change *change = data;
  return msa_store_exec(store, error, "UPDATE clips SET trashed = ? WHERE id = ?", "si", change->trashed,
                        change->clip);
}

void msa_store_set_trashed_async(struct msa_store *store, gint64 clip, const char *trashed,
                                 GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  struct change *change = g_new0(struct change, 1);
  change->clip = clip;
  change->trashed = g_strdup(trashed);
  g_task_set_task_data(task, change, change_free);
  msa_store_push_task(store, trashed_work, task);
}

gboolean msa_store_set_trashed_finish(GAsyncResult *result, GError **error) {
  return g_task_propagate_boolean(G_TASK(result), error);
}

static gboolean use_prompt_work(struct msa_store *store, gpointer data, GError **error) {
  return msa_store_exec(store, error,
                        "INSERT INTO prompts (text, used) VALUES (?, ?) "
                        "ON CONFLICT (text) DO UPDATE SET used = excluded.used",
                        "si", (const char *)data, g_get_real_time()) &&
         msa_store_exec(store, error,
                        "DELETE FROM prompts WHERE used < (SELECT min (used) FROM "
                        "(SELECT used FROM prompts ORDER BY used DESC LIMIT ?))",
                        "i", (gint64)PROMPTS_KEPT);
}

void msa_store_use_prompt(struct msa_store *store, const char *prompt) {
  msa_store_push(store, use_prompt_work, g_strdup(prompt), g_free);
}

static gboolean prompts_work(struct msa_store *store, gpointer data, GError **error) {
  GPtrArray *prompts = data;
  sqlite3_stmt *statement =
      msa_store_prepare(store, "SELECT text FROM prompts ORDER BY used DESC, text", error);
  if (!statement)
    return FALSE;
  while (msa_store_step(statement))
    g_ptr_array_add(prompts, msa_store_dup_text(statement, 0));
  return msa_store_finish(store, statement, error);
}

void msa_store_list_prompts_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(NULL, NULL, callback, data);
  g_task_set_task_data(task, g_ptr_array_new_with_free_func(g_free), (GDestroyNotify)g_ptr_array_unref);
  msa_store_push_task(store, prompts_work, task);
}

char **msa_store_list_prompts_finish(GAsyncResult *result, GError **error) {
  const GPtrArray *prompts = g_task_get_task_data(G_TASK(result));
  if (!g_task_propagate_boolean(G_TASK(result), error))
    return NULL;
  char **list = g_new0(char *, prompts->len + 1);
  for (guint i = 0; i < prompts->len; i++)
    list[i] = g_strdup(prompts->pdata[i]);
  return list;
}
