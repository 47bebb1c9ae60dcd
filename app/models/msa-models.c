/* The list of models, and taking one in or out. */
#include "msa-models.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "core/bridge.h"
#include "core/errors.h"
#include "core/folders.h"
#include "core/main-thread.h"
#include "core/quiet.h"
#include "core/words.h"
#include "library/trash.h"
#include "models/models-private.h"
#include "ms-models.h"

#define PART ".import-"

struct _MsaModels {
  GObject parent;
  char *own, *runs, *trash;
  GPtrArray *models; /* of MsaModel */
  guint reload;      /* number of the last look; an older one that comes later is not used */
};

static GType models_get_item_type(GListModel *model) {
  return MSA_TYPE_MODEL;
}

static guint models_get_n_items(GListModel *model) {
  return MSA_MODELS(model)->models->len;
}

static gpointer models_get_item(GListModel *model, guint position) {
  GPtrArray *models = MSA_MODELS(model)->models;
  return position < models->len ? g_object_ref(models->pdata[position]) : NULL;
}

static void list_model_init(GListModelInterface *interface) {
  interface->get_item_type = models_get_item_type;
  interface->get_n_items = models_get_n_items;
  interface->get_item = models_get_item;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(MsaModels, msa_models, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(G_TYPE_LIST_MODEL, list_model_init))

static void msa_models_finalize(GObject *object) {
  MsaModels *models = MSA_MODELS(object);
  g_free(models->own);
  g_free(models->runs);
  g_free(models->trash);
  g_ptr_array_unref(models->models);
  G_OBJECT_CLASS(msa_models_parent_class)->finalize(object);
}

static void msa_models_class_init(MsaModelsClass *class) {
  G_OBJECT_CLASS(class)->finalize = msa_models_finalize;
}

static void msa_models_init(MsaModels *models) {
  models->models = g_ptr_array_new_with_free_func(g_object_unref);
}

MsaModels *msa_models_new(const struct msa_studio_folders *folders) {
  MsaModels *models = g_object_new(MSA_TYPE_MODELS, NULL);
  models->own = g_strdup(folders->models);
  models->runs = g_strdup(folders->runs);
  models->trash = g_build_filename(folders->home, "trash", NULL);
  msa_models_reload(models);
  return models;
}

MsaModel *msa_models_find(MsaModels *models, const char *name) {
  for (guint i = 0; name && i < models->models->len; i++) {
    MsaModel *model = models->models->pdata[i];
    if (!strcmp(msa_model_get_reference(model), name) || !strcmp(msa_model_get_folder(model), name))
      return model;
  }
  return NULL;
}

/* Objects of models that are as they were stay, with their verdicts; where nothing is new nothing is told. */
static void take_facts(MsaModels *models, GPtrArray *facts) {
  GPtrArray *list = g_ptr_array_new_with_free_func(g_object_unref);
  const guint before = models->models->len;
  gboolean same = facts->len == before;
  for (guint i = 0; i < facts->len; i++) {
    struct msa_model_facts *new = facts->pdata[i];
    MsaModel *known = msa_models_find(models, new->folder);
    if (known && msa_model_facts_equal(msa_model_get_facts(known), new)) {
      same = same && models->models->pdata[i] == known;
      g_ptr_array_add(list, g_object_ref(known));
      msa_model_facts_free(new);
    } else {
      same = FALSE;
      g_ptr_array_add(list, msa_model_new(new));
    }
  }
  g_ptr_array_set_free_func(facts, NULL); /* they are taken */
  g_ptr_array_unref(models->models);
  models->models = list;
  if (!same)
    g_list_model_items_changed(G_LIST_MODEL(models), 0, before, list->len);
}

static void list_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const MsaModels *models = source; /* its folders never change */
  g_task_return_pointer(task, msa_model_facts_list(models->own, models->runs),
                        (GDestroyNotify)g_ptr_array_unref);
}

static void listed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  MsaModels *models = MSA_MODELS(source);
  g_autoptr(GPtrArray) facts = g_task_propagate_pointer(G_TASK(result), NULL);
  if (facts && GPOINTER_TO_UINT(data) == models->reload)
    take_facts(models, facts);
}

void msa_models_reload(MsaModels *models) {
  MSA_ASSERT_MAIN();
  g_autoptr(GTask) task = g_task_new(models, NULL, listed_cb, GUINT_TO_POINTER(++models->reload));
  g_task_run_in_thread(task, list_work);
}

/* Import. */
struct import {
  struct msa_bridge *bridge;
  char *from, *own;
};

static void import_free(gpointer data) {
  struct import *import = data;
  msa_bridge_unref(import->bridge);
  g_free(import->from);
  g_free(import->own);
  g_free(import);
}

/* A person may point at the folder or at a file in it. */
static char *model_folder_of(const char *from, GError **error) {
  g_autofree char *name = g_path_get_basename(from);
  if (g_file_test(from, G_FILE_TEST_IS_DIR))
    return g_strdup(from);
  if (!g_file_test(from, G_FILE_TEST_EXISTS)) {
    g_set_error(error, MSA_ERROR, MSA_ERROR_INPUT, _("There is no “%s” any more: choose another."), from);
    return NULL;
  }
  g_autofree char *folder = g_path_get_dirname(from), *config = g_build_filename(folder, "model.json", NULL);
  if ((g_str_has_suffix(name, ".json") || g_str_has_suffix(name, ".safetensors")) &&
      g_file_test(config, G_FILE_TEST_EXISTS))
    return g_steal_pointer(&folder);
  g_set_error(error, MSA_ERROR, MSA_ERROR_INPUT,
              _("“%s” is no model: choose a folder that holds model.json and its .safetensors files."), from);
  return NULL;
}

/* A name that nothing else has, so that jobs which name it find this one. */
static char *free_name(const char *folder, const char *own) {
  char data[4096];
  g_autofree char *whole = g_canonicalize_filename(folder, NULL), *base = g_path_get_basename(whole);
  msa_data_folder(data, sizeof data);
  for (int i = 1;; i++) {
    g_autofree char *name = i > 1 ? g_strdup_printf("%s-%d", base, i) : g_strdup(base);
    g_autofree char *shipped = g_build_filename(data, "models", name, NULL),
                    *mine = g_build_filename(own, name, NULL);
    if (!g_file_test(shipped, G_FILE_TEST_EXISTS) && !g_file_test(mine, G_FILE_TEST_EXISTS))
      return g_steal_pointer(&name);
  }
}

static gboolean has_room(const char *folder, const char *own, GError **error) {
  struct ms_model_info info;
  struct statvfs disk;
  if (ms_model_info_read(&info, folder, NULL) < 0) /* importing it says what is wrong */
    return TRUE;
  const guint64 bytes = info.bytes;
  ms_model_info_release(&info);
  if (statvfs(own, &disk) < 0 || (guint64)disk.f_bavail * disk.f_frsize > bytes)
    return TRUE;
  g_autofree char *needed = msa_words_bytes(bytes),
                  *there = msa_words_bytes((guint64)disk.f_bavail * disk.f_frsize);
  g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
              _("The model takes %s, but only %s are free in “%s”. Make room and try again."), needed, there,
              own);
  return FALSE;
}

static void copied_cb(void *data, const struct ms_progress *progress) {
  msa_bridge_tell(data, progress->total > 0 ? (double)progress->done / (double)progress->total : 0,
                  progress->seconds > 0.2 ? progress->seconds_left : -1);
}

static void discard(const char *folder) {
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_unlink(path);
  }
  g_rmdir(folder);
}

/* What an import left that ended with the program. One that is younger may be another window's. */
static void discard_old_parts(const char *own) {
  g_autoptr(GDir) dir = g_dir_open(own, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    g_autofree char *path = g_build_filename(own, name, NULL);
    struct stat info;
    if (g_str_has_prefix(name, PART) && stat(path, &info) == 0 && time(NULL) - info.st_mtime > 24 * 3600)
      discard(path);
  }
}

static gboolean import_model(const struct import *import, GError **error) {
  const struct ms_hooks hooks = {
      .data = import->bridge, .progress = copied_cb, .cancel = msa_bridge_cancel(import->bridge)};
  struct ms_error failure = {0};
  g_autofree char *folder = model_folder_of(import->from, error);
  if (!folder)
    return FALSE;
  if (g_mkdir_with_parents(import->own, 0777) < 0) {
    g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
                _("The folder “%s” cannot be made: %s. Check who may write there."), import->own,
                g_strerror(errno));
    return FALSE;
  }
  discard_old_parts(import->own);
  if (!has_room(folder, import->own, error))
    return FALSE;
  /* It grows under a name that no list shows, so that what is listed is whole, also after a crash. */
  g_autofree char *part = g_strdup_printf("%s/" PART "%08x", import->own, g_random_int());
  if (ms_model_import(folder, part, &hooks, &failure) < 0)
    return msa_error_set_from_engine(error, &failure);
  g_autofree char *name = free_name(folder, import->own), *to = g_build_filename(import->own, name, NULL);
  if (g_rename(part, to) == 0)
    return TRUE;
  g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
              _("The folder “%s” cannot be made: %s. Check who may write there."), to, g_strerror(errno));
  discard(part);
  return FALSE;
}

static void import_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  GError *error = NULL;
  if (import_model(data, &error))
    g_task_return_boolean(task, TRUE);
  else
    g_task_return_error(task, error);
}

void msa_models_import_async(MsaModels *models, const char *from, MsaExportProgress progress,
                             gpointer progress_data, GCancellable *cancellable, GAsyncReadyCallback callback,
                             gpointer data) {
  g_autoptr(GTask) task = g_task_new(models, cancellable, callback, data);
  struct import *import = g_new0(struct import, 1);
  MSA_ASSERT_MAIN();
  import->bridge = msa_bridge_new(cancellable, progress, progress_data);
  import->from = g_strdup(from);
  import->own = g_strdup(models->own);
  g_task_set_source_tag(task, msa_models_import_async);
  g_task_set_task_data(task, import, import_free);
  g_task_set_check_cancellable(task, FALSE); /* a model that is whole in its place stays */
  msa_task_run_quietly(task, import_work);
}

gboolean msa_models_import_finish(MsaModels *models, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_models_import_async), FALSE);
  if (!g_task_propagate_boolean(G_TASK(result), error))
    return FALSE;
  msa_models_reload(models);
  return TRUE;
}

/* Remove and restore. */
struct removal {
  char *folder, *trash, *location;
};

static void removal_free(gpointer data) {
  struct removal *removal = data;
  g_free(removal->folder);
  g_free(removal->trash);
  g_free(removal->location);
  g_free(removal);
}

static GTask *removal_new(MsaModels *models, const char *folder, const char *location, gpointer tag,
                          GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(models, NULL, callback, data);
  struct removal *removal = g_new0(struct removal, 1);
  removal->folder = g_strdup(folder);
  removal->trash = g_strdup(models->trash);
  removal->location = g_strdup(location);
  g_task_set_source_tag(task, tag);
  g_task_set_task_data(task, removal, removal_free);
  return task;
}

static void remove_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct removal *removal = data;
  GError *error = NULL;
  char *location = msa_trash_move(removal->folder, removal->trash, &error);
  if (location)
    g_task_return_pointer(task, location, g_free);
  else
    g_task_return_error(task, error);
}

void msa_models_remove_async(MsaModels *models, MsaModel *model, GAsyncReadyCallback callback,
                             gpointer data) {
  MSA_ASSERT_MAIN();
  g_autoptr(GTask) task =
      removal_new(models, msa_model_get_folder(model), NULL, msa_models_remove_async, callback, data);
  if (msa_model_get_own(model))
    g_task_run_in_thread(task, remove_work);
  else
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_USAGE,
                            _("“%s” came with the program and cannot be removed."),
                            msa_model_get_name(model));
}

char *msa_models_remove_finish(MsaModels *models, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_models_remove_async), NULL);
  char *location = g_task_propagate_pointer(G_TASK(result), error);
  if (location)
    msa_models_reload(models);
  return location;
}

static void restore_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct removal *removal = data;
  GError *error = NULL;
  if (msa_trash_restore(removal->location, removal->folder, &error))
    g_task_return_boolean(task, TRUE);
  else
    g_task_return_error(task, error);
}

void msa_models_restore_async(MsaModels *models, const char *location, const char *folder,
                              GAsyncReadyCallback callback, gpointer data) {
  MSA_ASSERT_MAIN();
  g_autoptr(GTask) task = removal_new(models, folder, location, msa_models_restore_async, callback, data);
  g_task_run_in_thread(task, restore_work);
}

gboolean msa_models_restore_finish(MsaModels *models, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_models_restore_async), FALSE);
  if (!g_task_propagate_boolean(G_TASK(result), error))
    return FALSE;
  msa_models_reload(models);
  return TRUE;
}
