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
#define AT_ONCE 32  /* files that are moved before the store hears of them */

struct _MsaLibrary {
  GObject parent;
  struct msa_store *store; /* NULL: closed */
  char *user_models, *trash;
  GPtrArray *clips;   /* of MsaClip, newest first */
  GPtrArray *prompts; /* of char *, newest first, ends in NULL */
  GQueue moves;       /* of GTask: clips on their way into the trash or out; the first is under way */
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
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_STORE,
                            _("The library is closed. Start MegaSlide Studio again."));
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

static gint newer_first(gconstpointer a, gconstpointer b) {
  MsaClip *x = *(MsaClip *const *)a, *y = *(MsaClip *const *)b;
  return x == y ? 0 : is_newer(x, y) ? -1 : 1;
}

/* Takes the array. What differs is told of as one change, however many clips it is: lists that are made from
 * this one go through all they have at each. */
static void set_clips(MsaLibrary *library, GPtrArray *clips) {
  g_autoptr(GPtrArray) old = library->clips;
  guint before = 0, removed = old->len, added = clips->len;
  while (before < removed && before < added && old->pdata[before] == clips->pdata[before])
    before++;
  while (removed > before && added > before && old->pdata[removed - 1] == clips->pdata[added - 1]) {
    removed--;
    added--;
  }
  library->clips = clips;
  if (removed > before || added > before)
    g_list_model_items_changed(G_LIST_MODEL(library), before, removed - before, added - before);
}

/* Puts clips where their dates say; those that are listed stay where they are. Sorts the array. */
static void put_in_place(MsaLibrary *library, GPtrArray *clips) {
  const GPtrArray *old = library->clips;
  g_autoptr(GHashTable) listed = g_hash_table_new(NULL, NULL);
  GPtrArray *all = g_ptr_array_new_full(old->len + clips->len, g_object_unref);
  guint position = 0;
  for (guint i = 0; i < old->len; i++)
    g_hash_table_add(listed, old->pdata[i]);
  g_ptr_array_sort(clips, newer_first);
  for (guint i = 0; i < clips->len; i++) {
    if (g_hash_table_contains(listed, clips->pdata[i]))
      continue;
    while (position < old->len && !is_newer(clips->pdata[i], old->pdata[position]))
      g_ptr_array_add(all, g_object_ref(old->pdata[position++]));
    g_ptr_array_add(all, g_object_ref(clips->pdata[i]));
  }
  while (position < old->len)
    g_ptr_array_add(all, g_object_ref(old->pdata[position++]));
  set_clips(library, all);
}

/* Returns those that were in the list: the others are on their way out already. */
static GPtrArray *take_out(MsaLibrary *library, const GPtrArray *clips) {
  const GPtrArray *old = library->clips;
  g_autoptr(GHashTable) leaving = g_hash_table_new(NULL, NULL);
  GPtrArray *kept = g_ptr_array_new_full(old->len, g_object_unref);
  GPtrArray *out = g_ptr_array_new_with_free_func(g_object_unref);
  for (guint i = 0; i < clips->len; i++)
    g_hash_table_add(leaving, clips->pdata[i]);
  for (guint i = 0; i < old->len; i++)
    g_ptr_array_add(g_hash_table_contains(leaving, old->pdata[i]) ? out : kept, g_object_ref(old->pdata[i]));
  set_clips(library, kept);
  return out;
}

MsaClip *msa_library_insert(MsaLibrary *library, const struct msa_clip_row *row) {
  MSA_ASSERT_MAIN();
  g_autoptr(GPtrArray) one = g_ptr_array_new();
  MsaClip *clip = msa_clip_new(row);
  g_ptr_array_add(one, clip);
  put_in_place(library, one);
  g_object_unref(clip);
  return clip; /* the list has it */
}

void msa_library_set_starred(MsaLibrary *library, MsaClip *clip, gboolean starred) {
  MSA_ASSERT_MAIN();
  if (msa_clip_get_starred(clip) == !!starred || !library->store)
    return;
  msa_store_set_starred(library->store, msa_clip_get_id(clip), starred);
  msa_clip_set_starred(clip, starred);
}

/* Trash and restore: the files on a worker, then the store, then the list. Moves of clips take turns, so that
 * one that is undone while it goes on is undone whole. */
struct move {
  GPtrArray *clips; /* of MsaClip */
  gboolean back;    /* out of the trash */
  char *trash;      /* our own, used where the disk has none */
  char **locations; /* by clip: where it lies in the trash; NULL: it is not there */
  GError **errors;  /* by clip; NULL: none */
  guint from, next; /* the clips that the worker has */
  guint left;       /* answers of the store that are awaited, and one while the worker goes on */
};

static void move_free(gpointer data) {
  struct move *move = data;
  for (guint i = 0; i < move->clips->len; i++) {
    g_free(move->locations[i]);
    g_clear_error(&move->errors[i]);
  }
  g_ptr_array_unref(move->clips);
  g_free(move->locations);
  g_free(move->errors);
  g_free(move->trash);
  g_free(move);
}

static void move_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  struct move *move = data;
  for (guint i = move->from; i < move->next; i++) {
    const char *path = msa_clip_get_path(move->clips->pdata[i]);
    if (!move->back)
      move->locations[i] = msa_trash_move(path, move->trash, &move->errors[i]);
    else if (move->locations[i])
      msa_trash_restore(move->locations[i], path, &move->errors[i]);
  }
  g_task_return_boolean(task, TRUE);
}

static void move_begin(MsaLibrary *library);

/* Clips that could not be moved away are shown again, as are those that are back. */
static void move_end(GTask *whole) {
  g_autoptr(MsaLibrary) library = g_object_ref(g_task_get_source_object(whole));
  g_autoptr(GPtrArray) shown = g_ptr_array_new();
  const struct move *move = g_task_get_task_data(whole);
  const GError *error = NULL;
  for (guint i = 0; i < move->clips->len; i++) {
    if (move->back ? move->locations[i] && !move->errors[i] : move->errors[i] != NULL)
      g_ptr_array_add(shown, move->clips->pdata[i]);
    if (!error)
      error = move->errors[i];
  }
  put_in_place(library, shown);
  if (error)
    g_task_return_error(whole, g_error_copy(error));
  else
    g_task_return_boolean(whole, TRUE);
  g_object_unref(g_queue_pop_head(&library->moves));
  move_begin(library);
}

static void move_answered(GTask *whole) {
  struct move *move = g_task_get_task_data(whole);
  if (--move->left == 0)
    move_end(whole);
}

struct told {
  GTask *whole;
  guint clip;
};

static void told_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct told *told = data;
  struct move *move = g_task_get_task_data(told->whole);
  MsaClip *clip = move->clips->pdata[told->clip];
  if (msa_store_set_trashed_finish(result, &move->errors[told->clip])) {
    if (move->back)
      msa_clip_set_missing(clip, !*move->locations[told->clip]);
    msa_clip_set_trashed(clip, move->back ? NULL : move->locations[told->clip]);
  }
  move_answered(told->whole);
  g_object_unref(told->whole);
  g_free(told);
}

static void moved_cb(GObject *source, GAsyncResult *result, gpointer data);

/* The store hears of each few, so that little is left untold if the program ends meanwhile. */
static void move_some(GTask *whole) {
  g_autoptr(GTask) task = g_task_new(g_task_get_source_object(whole), NULL, moved_cb, whole);
  struct move *move = g_task_get_task_data(whole);
  move->from = move->next;
  move->next = MIN(move->from + AT_ONCE, move->clips->len);
  g_task_set_task_data(task, move, NULL);
  g_task_run_in_thread(task, move_work);
}

static void moved_cb(GObject *source, GAsyncResult *result, gpointer data) {
  MsaLibrary *library = MSA_LIBRARY(source);
  GTask *whole = data;
  struct move *move = g_task_get_task_data(whole);
  if (!library->store) {
    for (guint i = move->from; i < move->clips->len; i++)
      if (!move->errors[i])
        g_set_error_literal(&move->errors[i], MSA_ERROR, MSA_ERROR_STORE,
                            _("The library is closed. Start MegaSlide Studio again."));
    move->next = move->clips->len;
  }
  for (guint i = move->from; i < move->next; i++)
    if (move->locations[i] && !move->errors[i]) {
      struct told *told = g_new0(struct told, 1);
      told->whole = g_object_ref(whole);
      told->clip = i;
      move->left++;
      msa_store_set_trashed_async(library->store, msa_clip_get_id(move->clips->pdata[i]),
                                  move->back ? NULL : move->locations[i], told_cb, told);
    }
  if (move->next < move->clips->len)
    move_some(whole);
  else
    move_answered(whole);
}

/* The next one's turn. */
static void move_begin(MsaLibrary *library) {
  GTask *whole = g_queue_peek_head(&library->moves);
  struct move *move = whole ? g_task_get_task_data(whole) : NULL;
  if (!whole)
    return;
  move->left = 1;
  for (guint i = 0; move->back && i < move->clips->len; i++)
    move->locations[i] = g_strdup(msa_clip_get_trashed(move->clips->pdata[i]));
  move_some(whole);
}

/* Takes the array. */
static void move_add(MsaLibrary *library, GPtrArray *clips, gboolean back, GAsyncReadyCallback callback,
                     gpointer data) {
  GTask *whole = g_task_new(library, NULL, callback, data);
  struct move *move = g_new0(struct move, 1);
  move->clips = clips;
  move->back = back;
  move->trash = g_strdup(library->trash);
  move->locations = g_new0(char *, clips->len + 1);
  move->errors = g_new0(GError *, clips->len + 1);
  g_task_set_source_tag(whole, move_add);
  g_task_set_task_data(whole, move, move_free);
  g_queue_push_tail(&library->moves, whole);
  if (library->moves.length == 1)
    move_begin(library);
}

static gboolean move_finish(GAsyncResult *result, guint *moved, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, move_add), FALSE);
  const struct move *move = g_task_get_task_data(G_TASK(result));
  if (moved) {
    *moved = 0;
    for (guint i = 0; i < move->clips->len; i++)
      *moved += move->locations[i] && !move->errors[i];
  }
  return g_task_propagate_boolean(G_TASK(result), error);
}

void msa_library_trash_many_async(MsaLibrary *library, GPtrArray *clips, GAsyncReadyCallback callback,
                                  gpointer data) {
  MSA_ASSERT_MAIN();
  move_add(library, take_out(library, clips), FALSE, callback, data);
}

gboolean msa_library_trash_many_finish(MsaLibrary *library, GAsyncResult *result, guint *moved,
                                       GError **error) {
  return move_finish(result, moved, error);
}

void msa_library_restore_many_async(MsaLibrary *library, GPtrArray *clips, GAsyncReadyCallback callback,
                                    gpointer data) {
  MSA_ASSERT_MAIN();
  GPtrArray *own = g_ptr_array_new_full(clips->len, g_object_unref);
  for (guint i = 0; i < clips->len; i++)
    g_ptr_array_add(own, g_object_ref(clips->pdata[i]));
  move_add(library, own, TRUE, callback, data);
}

gboolean msa_library_restore_many_finish(MsaLibrary *library, GAsyncResult *result, guint *moved,
                                         GError **error) {
  return move_finish(result, moved, error);
}

void msa_library_trash_async(MsaLibrary *library, MsaClip *clip, GAsyncReadyCallback callback,
                             gpointer data) {
  g_autoptr(GPtrArray) one = g_ptr_array_new();
  g_ptr_array_add(one, clip);
  msa_library_trash_many_async(library, one, callback, data);
}

gboolean msa_library_trash_finish(MsaLibrary *library, GAsyncResult *result, GError **error) {
  return move_finish(result, NULL, error);
}

void msa_library_restore_async(MsaLibrary *library, MsaClip *clip, GAsyncReadyCallback callback,
                               gpointer data) {
  g_autoptr(GPtrArray) one = g_ptr_array_new();
  g_ptr_array_add(one, clip);
  msa_library_restore_many_async(library, one, callback, data);
}

gboolean msa_library_restore_finish(MsaLibrary *library, GAsyncResult *result, GError **error) {
  return move_finish(result, NULL, error);
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
