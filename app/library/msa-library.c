/* The list of clips, filled from the store and kept as it. */
#include "msa-library.h"

#include <glib/gi18n-lib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/main-thread.h"
#include "core/rooms.h"
#include "msa-error.h"
#include "library/clip-private.h"
#include "library/export-private.h"
#include "library/look.h"
#include "library/trash.h"

#define PROMPTS 200 /* as many as the store keeps */

struct _MsaLibrary {
  GObject parent;
  struct msa_store *store; /* NULL: closed */
  char *user_models, *trash;
  GPtrArray *clips;   /* of MsaClip, newest first */
  GPtrArray *prompts; /* of char *, newest first, ends in NULL */
};

enum { PROMPTS_CHANGED, SIGNALS };
static guint signals[SIGNALS];

static GType library_get_item_type(GListModel *model) {
  return MSA_TYPE_CLIP;
}

static guint library_get_n_items(GListModel *model) {
  return MSA_LIBRARY(model)->clips->len;
}

static gpointer library_get_item(GListModel *model, guint position) {
  GPtrArray *clips = MSA_LIBRARY(model)->clips;
  return position < clips->len ? g_object_ref(clips->pdata[position]) : NULL;
}

static void list_model_init(GListModelInterface *interface) {
  interface->get_item_type = library_get_item_type;
  interface->get_n_items = library_get_n_items;
  interface->get_item = library_get_item;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(MsaLibrary, msa_library, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(G_TYPE_LIST_MODEL, list_model_init))

static void msa_library_finalize(GObject *object) {
  MsaLibrary *library = MSA_LIBRARY(object);
  g_free(library->user_models);
  g_free(library->trash);
  g_ptr_array_unref(library->clips);
  g_ptr_array_unref(library->prompts);
  G_OBJECT_CLASS(msa_library_parent_class)->finalize(object);
}

static void msa_library_class_init(MsaLibraryClass *class) {
  G_OBJECT_CLASS(class)->finalize = msa_library_finalize;
  signals[PROMPTS_CHANGED] = g_signal_new("prompts-changed", MSA_TYPE_LIBRARY, G_SIGNAL_RUN_LAST, 0, NULL,
                                          NULL, NULL, G_TYPE_NONE, 0);
}

static void msa_library_init(MsaLibrary *library) {
  library->clips = g_ptr_array_new_with_free_func(g_object_unref);
  library->prompts = g_ptr_array_new_with_free_func(g_free);
  g_ptr_array_add(library->prompts, NULL);
}

static void probe_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  msa_export_probe();
  g_task_return_boolean(task, TRUE);
}

MsaLibrary *msa_library_new(struct msa_store *store, const struct msa_studio_folders *folders) {
  MsaLibrary *library = g_object_new(MSA_TYPE_LIBRARY, NULL);
  g_autoptr(GTask) task = g_task_new(NULL, NULL, NULL, NULL);
  library->store = store;
  library->user_models = g_strdup(folders->models);
  library->trash = g_build_filename(folders->home, "trash", NULL);
  g_task_run_in_thread(task, probe_work);
  return library;
}

void msa_library_close(MsaLibrary *library) {
  library->store = NULL;
}

/* Whether the store can still be told; if not, the task is ended. */
static gboolean is_open(MsaLibrary *library, GTask *task) {
  if (!library->store)
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_STORE, _("The library is closed."));
  return library->store != NULL;
}

/* Which files are gone, looked for off the main thread. */
struct census {
  GPtrArray *clips; /* of MsaClip; its paths never change, so the worker may read them */
  gboolean *gone;
};

static void census_free(gpointer data) {
  struct census *census = data;
  g_ptr_array_unref(census->clips);
  g_free(census->gone);
  g_free(census);
}

static void census_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  struct census *census = data;
  for (guint i = 0; i < census->clips->len; i++) {
    struct stat info;
    census->gone[i] = stat(msa_clip_get_path(census->clips->pdata[i]), &info) < 0;
  }
  g_task_return_boolean(task, TRUE);
}

static void census_cb(GObject *source, GAsyncResult *result, gpointer data) {
  const struct census *census = g_task_get_task_data(G_TASK(result));
  for (guint i = 0; i < census->clips->len; i++)
    msa_clip_set_missing(census->clips->pdata[i], census->gone[i]);
}

static void look_for_missing(MsaLibrary *library) {
  g_autoptr(GTask) task = g_task_new(library, NULL, census_cb, NULL);
  struct census *census = g_new0(struct census, 1);
  census->clips = g_ptr_array_new_full(library->clips->len, g_object_unref);
  for (guint i = 0; i < library->clips->len; i++)
    g_ptr_array_add(census->clips, g_object_ref(library->clips->pdata[i]));
  census->gone = g_new0(gboolean, library->clips->len + 1);
  g_task_set_task_data(task, census, census_free);
  g_task_run_in_thread(task, census_work);
}

void msa_library_fill(MsaLibrary *library, GPtrArray *rows, const char *const *prompts) {
  MSA_ASSERT_MAIN();
  const guint before = library->clips->len;
  for (guint i = 0; i < rows->len; i++)
    g_ptr_array_add(library->clips, msa_clip_new(rows->pdata[i]));
  g_list_model_items_changed(G_LIST_MODEL(library), before, 0, rows->len);
  g_ptr_array_set_size(library->prompts, 0);
  for (guint i = 0; prompts && prompts[i]; i++)
    g_ptr_array_add(library->prompts, g_strdup(prompts[i]));
  g_ptr_array_add(library->prompts, NULL);
  g_signal_emit(library, signals[PROMPTS_CHANGED], 0);
  look_for_missing(library);
}

static gboolean is_newer(MsaClip *a, MsaClip *b) {
  const gint64 x = msa_clip_get_created(a), y = msa_clip_get_created(b);
  return x != y ? x > y : msa_clip_get_id(a) > msa_clip_get_id(b);
}

/* Takes the reference. */
static void put_in_place(MsaLibrary *library, MsaClip *clip) {
  guint position = 0;
  while (position < library->clips->len && !is_newer(clip, library->clips->pdata[position]))
    position++;
  g_ptr_array_insert(library->clips, (int)position, clip);
  g_list_model_items_changed(G_LIST_MODEL(library), position, 0, 1);
}

MsaClip *msa_library_insert(MsaLibrary *library, const struct msa_clip_row *row) {
  MSA_ASSERT_MAIN();
  MsaClip *clip = msa_clip_new(row);
  put_in_place(library, clip);
  return clip;
}

void msa_library_set_starred(MsaLibrary *library, MsaClip *clip, gboolean starred) {
  MSA_ASSERT_MAIN();
  if (msa_clip_get_starred(clip) == !!starred || !library->store)
    return;
  msa_store_set_starred(library->store, msa_clip_get_id(clip), starred);
  msa_clip_set_starred(clip, starred);
}

/* Trash and restore: the file on a worker, then the store, then the list. */
struct move {
  MsaClip *clip;
  char *trash;    /* our own, used where the disk has none */
  char *location; /* where it lies in the trash */
};

static void move_free(gpointer data) {
  struct move *move = data;
  g_object_unref(move->clip);
  g_free(move->trash);
  g_free(move->location);
  g_free(move);
}

static GTask *move_new(MsaLibrary *library, MsaClip *clip, gpointer tag, GAsyncReadyCallback callback,
                       gpointer data) {
  GTask *task = g_task_new(library, NULL, callback, data);
  struct move *move = g_new0(struct move, 1);
  move->clip = g_object_ref(clip);
  move->trash = g_strdup(library->trash);
  move->location = g_strdup(msa_clip_get_trashed(clip));
  g_task_set_source_tag(task, tag);
  g_task_set_task_data(task, move, move_free);
  return task;
}

/* The file could not be moved, or the store not told: the clip is shown again. */
static void trash_failed(GTask *task, GError *error) {
  const struct move *move = g_task_get_task_data(task);
  put_in_place(g_task_get_source_object(task), g_object_ref(move->clip));
  g_task_return_error(task, error);
}

static void trashed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  const struct move *move = g_task_get_task_data(task);
  GError *error = NULL;
  if (!msa_store_set_trashed_finish(result, &error)) {
    trash_failed(task, error);
    return;
  }
  msa_clip_set_trashed(move->clip, move->location);
  g_task_return_boolean(task, TRUE);
}

static void trash_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  struct move *move = data;
  GError *error = NULL;
  move->location = msa_trash_move(msa_clip_get_path(move->clip), move->trash, &error);
  if (move->location)
    g_task_return_boolean(task, TRUE);
  else
    g_task_return_error(task, error);
}

static void trash_moved_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  const struct move *moved = g_task_get_task_data(G_TASK(result));
  struct move *move = g_task_get_task_data(task);
  GError *error = NULL;
  if (!g_task_propagate_boolean(G_TASK(result), &error)) {
    trash_failed(task, error);
    return;
  }
  move->location = g_strdup(moved->location);
  if (!is_open(MSA_LIBRARY(source), task))
    return;
  msa_store_set_trashed_async(MSA_LIBRARY(source)->store, msa_clip_get_id(move->clip), move->location,
                              trashed_cb, g_steal_pointer(&task));
}

void msa_library_trash_async(MsaLibrary *library, MsaClip *clip, GAsyncReadyCallback callback,
                             gpointer data) {
  GTask *whole = move_new(library, clip, msa_library_trash_async, callback, data);
  guint position;
  MSA_ASSERT_MAIN();
  if (!g_ptr_array_find(library->clips, clip, &position)) { /* it is on its way there already */
    g_task_return_boolean(whole, TRUE);
    g_object_unref(whole);
    return;
  }
  g_autoptr(GTask) task = move_new(library, clip, trash_work, trash_moved_cb, whole);
  g_ptr_array_remove_index(library->clips, position);
  g_list_model_items_changed(G_LIST_MODEL(library), position, 1, 0);
  g_task_run_in_thread(task, trash_work);
}

gboolean msa_library_trash_finish(MsaLibrary *library, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_library_trash_async), FALSE);
  return g_task_propagate_boolean(G_TASK(result), error);
}

static void restored_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  MsaLibrary *library = g_task_get_source_object(task);
  const struct move *move = g_task_get_task_data(task);
  GError *error = NULL;
  if (!msa_store_set_trashed_finish(result, &error)) {
    g_task_return_error(task, error);
    return;
  }
  msa_clip_set_missing(move->clip, !*move->location);
  msa_clip_set_trashed(move->clip, NULL);
  if (!g_ptr_array_find(library->clips, move->clip, NULL))
    put_in_place(library, g_object_ref(move->clip));
  g_task_return_boolean(task, TRUE);
}

static void restore_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct move *move = data;
  GError *error = NULL;
  if (msa_trash_restore(move->location, msa_clip_get_path(move->clip), &error))
    g_task_return_boolean(task, TRUE);
  else
    g_task_return_error(task, error);
}

static void restore_moved_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  const struct move *move = g_task_get_task_data(task);
  GError *error = NULL;
  if (!g_task_propagate_boolean(G_TASK(result), &error)) {
    g_task_return_error(task, error);
    return;
  }
  if (!is_open(MSA_LIBRARY(source), task))
    return;
  msa_store_set_trashed_async(MSA_LIBRARY(source)->store, msa_clip_get_id(move->clip), NULL, restored_cb,
                              g_steal_pointer(&task));
}

void msa_library_restore_async(MsaLibrary *library, MsaClip *clip, GAsyncReadyCallback callback,
                               gpointer data) {
  MSA_ASSERT_MAIN();
  GTask *whole = move_new(library, clip, msa_library_restore_async, callback, data);
  if (!msa_clip_get_trashed(clip)) { /* it never left */
    g_task_return_boolean(whole, TRUE);
    g_object_unref(whole);
    return;
  }
  g_autoptr(GTask) task = move_new(library, clip, restore_work, restore_moved_cb, whole);
  g_task_run_in_thread(task, restore_work);
}

gboolean msa_library_restore_finish(MsaLibrary *library, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_library_restore_async), FALSE);
  return g_task_propagate_boolean(G_TASK(result), error);
}

/* What look and add are about. */
struct file {
  char *path, *user_models;
  struct msa_clip_row row;
};

static void file_free(gpointer data) {
  struct file *file = data;
  g_free(file->path);
  g_free(file->user_models);
  msa_clip_row_clear(&file->row);
  g_free(file);
}

static GTask *file_new(MsaLibrary *library, const char *path, GCancellable *cancellable, gpointer tag,
                       GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(library, cancellable, callback, data);
  struct file *file = g_new0(struct file, 1);
  file->path = g_strdup(path);
  file->user_models = g_strdup(library->user_models);
  g_task_set_source_tag(task, tag);
  g_task_set_task_data(task, file, file_free);
  return task;
}

static void look_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct file *file = data;
  GError *error = NULL;
  MsaDropped *dropped = msa_look(file->path, file->user_models, &error);
  if (dropped)
    g_task_return_pointer(task, dropped, (GDestroyNotify)msa_dropped_free);
  else
    g_task_return_error(task, error);
}

void msa_library_look_async(MsaLibrary *library, const char *path, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = file_new(library, path, cancellable, msa_library_look_async, callback, data);
  g_task_run_in_thread(task, look_work);
}

MsaDropped *msa_library_look_finish(MsaLibrary *library, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_library_look_async), NULL);
  return g_task_propagate_pointer(G_TASK(result), error);
}

static MsaClip *find_path(MsaLibrary *library, const char *path) {
  for (guint i = 0; i < library->clips->len; i++)
    if (!strcmp(msa_clip_get_path(library->clips->pdata[i]), path))
      return library->clips->pdata[i];
  return NULL;
}

static void row_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  struct file *file = data;
  GError *error = NULL;
  struct msa_clip_row row;
  if (!msa_look_row(file->path, &row, &error)) {
    g_task_return_error(task, error);
    return;
  }
  row.kind = g_strdup(file->row.kind);
  if (file->row.prompt && !row.prompt)
    row.prompt = g_strdup(file->row.prompt);
  if (file->row.model && !row.model)
    row.model = g_strdup(file->row.model);
  msa_clip_row_clear(&file->row);
  file->row = row;
  file->row.created = g_get_real_time() / G_USEC_PER_SEC;
  g_task_return_boolean(task, TRUE);
}

static void stored_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  MsaLibrary *library = g_task_get_source_object(task);
  struct file *file = g_task_get_task_data(task);
  GError *error = NULL;
  file->row.id = msa_store_add_clip_finish(result, &error);
  if (file->row.id)
    g_task_return_pointer(task, g_object_ref(msa_library_insert(library, &file->row)), g_object_unref);
  else
    g_task_return_error(task, error);
}

static void row_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  MsaLibrary *library = MSA_LIBRARY(source);
  struct file *seen = g_task_get_task_data(G_TASK(result)), *file = g_task_get_task_data(task);
  GError *error = NULL;
  MsaClip *known;
  if (!g_task_propagate_boolean(G_TASK(result), &error)) {
    g_task_return_error(task, error);
  } else if ((known = find_path(library, file->path))) { /* it was added before */
    g_task_return_pointer(task, g_object_ref(known), g_object_unref);
  } else if (is_open(library, task)) {
    file->row = seen->row;
    memset(&seen->row, 0, sizeof seen->row);
    msa_store_add_clip_async(library->store, &file->row, stored_cb, g_steal_pointer(&task));
  }
}

static void add(MsaLibrary *library, const char *path, const char *kind, const char *prompt,
                const char *model, GAsyncReadyCallback callback, gpointer data) {
  GTask *whole = file_new(library, path, NULL, msa_library_add_async, callback, data);
  g_autoptr(GTask) task = file_new(library, path, NULL, row_work, row_cb, whole);
  struct file *file = g_task_get_task_data(task);
  MSA_ASSERT_MAIN();
  file->row.kind = g_strdup(kind);
  file->row.prompt = g_strdup(prompt);
  file->row.model = g_strdup(model);
  g_task_run_in_thread(task, row_work);
}

void msa_library_add_async(MsaLibrary *library, const char *path, GAsyncReadyCallback callback,
                           gpointer data) {
  g_autofree char *whole = g_canonicalize_filename(path, NULL);
  add(library, whole, "imported", NULL, NULL, callback, data);
}

MsaClip *msa_library_add_finish(MsaLibrary *library, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_library_add_async), NULL);
  return g_task_propagate_pointer(G_TASK(result), error);
}

static void sample_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaClip) clip = msa_library_add_finish(MSA_LIBRARY(source), result, &error);
  if (!clip)
    g_warning("a sample clip of training was not added to the library: %s", error->message);
}

void msa_library_add_sample(MsaLibrary *library, const char *path, const char *prompt, const char *model) {
  add(library, path, "sample", prompt, model, sample_cb, NULL);
}

const char *const *msa_library_get_prompts(MsaLibrary *library) {
  return (const char *const *)library->prompts->pdata;
}

void msa_library_use_prompt(MsaLibrary *library, const char *prompt) {
  MSA_ASSERT_MAIN();
  GPtrArray *prompts = library->prompts;
  for (guint i = 0; i + 1 < prompts->len; i++)
    if (!strcmp(prompts->pdata[i], prompt)) {
      g_ptr_array_remove_index(prompts, i);
      break;
    }
  g_ptr_array_insert(prompts, 0, g_strdup(prompt));
  if (prompts->len > PROMPTS + 1)
    g_ptr_array_remove_index(prompts, prompts->len - 2);
  if (library->store)
    msa_store_use_prompt(library->store, prompt);
  g_signal_emit(library, signals[PROMPTS_CHANGED], 0);
}
