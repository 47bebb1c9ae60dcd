/* A folder of clips as the trainer sees it, and captions that are written in place. */
#include "msa-dataset.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "core/bridge.h"
#include "core/errors.h"
#include "core/main-thread.h"
#include "core/quiet.h"
#include "ms-train.h"

struct _MsaDatasetClip {
  GObject parent;
  char *path; /* bytes of the file system */
  char *name; /* for a person */
  int width, height;
  gint64 frames; /* 0: the file is no video */
  double fps;
  gboolean empty_is_usable; /* as the check was asked to take a missing caption */
  char *caption, *reason;
  gboolean usable;
  guint asked;   /* number of the caption that was set last; main thread */
  guint written; /* of the one on disk; under captions_lock */
};

/* Captions of all clips are written one at a time, so that of two for one clip the later one stays. */
static GMutex captions_lock;

enum { PROP_CAPTION = 1, PROP_USABLE, PROP_REASON, PROPS };
static GParamSpec *properties[PROPS];

G_DEFINE_FINAL_TYPE(MsaDatasetClip, msa_dataset_clip, G_TYPE_OBJECT)

static void msa_dataset_clip_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsaDatasetClip *clip = MSA_DATASET_CLIP(object);
  switch (id) {
  case PROP_CAPTION:
    g_value_set_string(value, clip->caption);
    break;
  case PROP_USABLE:
    g_value_set_boolean(value, clip->usable);
    break;
  case PROP_REASON:
    g_value_set_string(value, clip->reason);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void msa_dataset_clip_finalize(GObject *object) {
  MsaDatasetClip *clip = MSA_DATASET_CLIP(object);
  g_free(clip->path);
  g_free(clip->name);
  g_free(clip->caption);
  g_free(clip->reason);
  G_OBJECT_CLASS(msa_dataset_clip_parent_class)->finalize(object);
}

static void msa_dataset_clip_class_init(MsaDatasetClipClass *class) {
  const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS;
  G_OBJECT_CLASS(class)->get_property = msa_dataset_clip_get_property;
  G_OBJECT_CLASS(class)->finalize = msa_dataset_clip_finalize;
  properties[PROP_CAPTION] = g_param_spec_string("caption", NULL, NULL, "", flags);
  properties[PROP_USABLE] = g_param_spec_boolean("usable", NULL, NULL, FALSE, flags);
  properties[PROP_REASON] = g_param_spec_string("reason", NULL, NULL, NULL, flags);
  g_object_class_install_properties(G_OBJECT_CLASS(class), PROPS, properties);
}

static void msa_dataset_clip_init(MsaDatasetClip *clip) {
}

const char *msa_dataset_clip_get_path(MsaDatasetClip *clip) {
  return clip->path;
}

const char *msa_dataset_clip_get_name(MsaDatasetClip *clip) {
  return clip->name;
}

int msa_dataset_clip_get_width(MsaDatasetClip *clip) {
  return clip->width;
}

int msa_dataset_clip_get_height(MsaDatasetClip *clip) {
  return clip->height;
}

gint64 msa_dataset_clip_get_frames(MsaDatasetClip *clip) {
  return clip->frames;
}

double msa_dataset_clip_get_fps(MsaDatasetClip *clip) {
  return clip->fps;
}

const char *msa_dataset_clip_get_caption(MsaDatasetClip *clip) {
  return clip->caption;
}

gboolean msa_dataset_clip_get_usable(MsaDatasetClip *clip) {
  return clip->usable;
}

const char *msa_dataset_clip_get_reason(MsaDatasetClip *clip) {
  return clip->reason;
}

/* Captions. */
struct writing {
  MsaDatasetClip *clip;
  char *caption;
  guint number;
};

static void writing_free(gpointer data) {
  struct writing *writing = data;
  g_object_unref(writing->clip);
  g_free(writing->caption);
  g_free(writing);
}

/* NAME.txt, where the trainer looks for it. */
static char *caption_path(const char *path) {
  const char *dot = strrchr(path, '.');
  if (!dot || strchr(dot, '/'))
    dot = path + strlen(path);
  return g_strdup_printf("%.*s.txt", (int)(dot - path), path);
}

static gboolean write_caption(const char *path, const char *caption, GError **error) {
  g_autofree char *target = caption_path(path),
                  *line = *caption ? g_strconcat(caption, "\n", NULL) : g_strdup("");
  g_autoptr(GError) failure = NULL;
  if (g_file_set_contents_full(target, line, -1, G_FILE_SET_CONTENTS_CONSISTENT | G_FILE_SET_CONTENTS_DURABLE,
                               0666, &failure))
    return TRUE;
  g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
              _("The caption cannot be written: %s. Check who may write in its folder."), failure->message);
  return FALSE;
}

static void caption_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct writing *writing = data;
  GError *error = NULL;
  gboolean good = TRUE;
  MSA_ASSERT_OFF_MAIN();
  g_mutex_lock(&captions_lock);
  if (writing->number > writing->clip->written) {
    good = write_caption(writing->clip->path, writing->caption, &error);
    if (good)
      writing->clip->written = writing->number;
  }
  g_mutex_unlock(&captions_lock);
  if (good)
    g_task_return_boolean(task, TRUE);
  else
    g_task_return_error(task, error);
}

static void set_reason(MsaDatasetClip *clip, gboolean usable, const char *reason) {
  if (g_strcmp0(clip->reason, reason)) {
    g_free(clip->reason);
    clip->reason = g_strdup(reason);
    g_object_notify_by_pspec(G_OBJECT(clip), properties[PROP_REASON]);
  }
  if (clip->usable != usable) {
    clip->usable = usable;
    g_object_notify_by_pspec(G_OBJECT(clip), properties[PROP_USABLE]);
  }
}

static void caption_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  MsaDatasetClip *clip = MSA_DATASET_CLIP(source);
  const struct writing *writing = g_task_get_task_data(G_TASK(result));
  GError *error = NULL;
  if (!g_task_propagate_boolean(G_TASK(result), &error)) {
    g_task_return_error(task, error);
    return;
  }
  if (writing->number == clip->asked) {
    g_free(clip->caption);
    clip->caption = g_strdup(writing->caption);
    g_object_notify_by_pspec(G_OBJECT(clip), properties[PROP_CAPTION]);
    if (clip->frames > 0) { /* a file that is no video stays unusable */
      const gboolean usable = *clip->caption || clip->empty_is_usable;
      set_reason(clip, usable, usable ? NULL : _("no caption"));
    }
  }
  g_task_return_boolean(task, TRUE);
}

void msa_dataset_clip_set_caption_async(MsaDatasetClip *clip, const char *caption,
                                        GAsyncReadyCallback callback, gpointer data) {
  GTask *whole = g_task_new(clip, NULL, callback, data);
  MSA_ASSERT_MAIN();
  g_task_set_source_tag(whole, msa_dataset_clip_set_caption_async);
  if (!g_utf8_validate(caption, -1, NULL)) {
    g_task_return_new_error(whole, MSA_ERROR, MSA_ERROR_INPUT, _("The caption is not UTF-8 text."));
    g_object_unref(whole);
    return;
  }
  g_autoptr(GTask) task = g_task_new(clip, NULL, caption_cb, whole);
  struct writing *writing = g_new0(struct writing, 1);
  writing->clip = g_object_ref(clip);
  writing->caption = g_strdelimit(g_strdup(caption), "\r\n\t", ' ');
  g_strstrip(writing->caption);
  writing->number = ++clip->asked;
  g_task_set_task_data(task, writing, writing_free);
  g_task_run_in_thread(task, caption_work);
}

gboolean msa_dataset_clip_set_caption_finish(MsaDatasetClip *clip, GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_dataset_clip_set_caption_async), FALSE);
  return g_task_propagate_boolean(G_TASK(result), error);
}

/* The check. Rows that are known wait in `known` until the one pending callback takes them to the list. */
struct check {
  char *folder;
  enum ms_missing_caption on_missing;
  GListStore *rows;
  struct msa_bridge *bridge;
  GMainContext *context;
  gint files, usable;
  GMutex lock; /* guards known and pending */
  GPtrArray *known;
  gboolean pending;
};

static void check_free(gpointer data) {
  struct check *check = data;
  g_free(check->folder);
  g_object_unref(check->rows);
  msa_bridge_unref(check->bridge);
  g_main_context_unref(check->context);
  g_mutex_clear(&check->lock);
  g_ptr_array_unref(check->known);
  g_free(check);
}

static gboolean rows_cb(gpointer data) {
  GTask *task = data;
  struct check *check = g_task_get_task_data(task);
  g_mutex_lock(&check->lock);
  g_autoptr(GPtrArray) known = g_steal_pointer(&check->known);
  check->known = g_ptr_array_new_with_free_func(g_object_unref);
  check->pending = FALSE;
  g_mutex_unlock(&check->lock);
  if (!g_cancellable_is_cancelled(g_task_get_cancellable(task)))
    g_list_store_splice(check->rows, g_list_model_get_n_items(G_LIST_MODEL(check->rows)), 0, known->pdata,
                        known->len);
  return G_SOURCE_REMOVE;
}

static void clip_cb(void *data, const struct ms_clip_check *found) {
  GTask *task = data;
  struct check *check = g_task_get_task_data(task);
  MsaDatasetClip *clip = g_object_new(MSA_TYPE_DATASET_CLIP, NULL);
  clip->path = g_strdup(found->path);
  clip->name = g_filename_display_name(found->name);
  clip->width = found->width;
  clip->height = found->height;
  clip->frames = found->frames;
  clip->fps = found->fps;
  clip->empty_is_usable = check->on_missing == MS_CAPTION_EMPTY;
  clip->caption = g_utf8_make_valid(found->caption ? found->caption : "", -1);
  clip->usable = found->usable;
  clip->reason = found->usable ? NULL : g_utf8_make_valid(_(found->reason), -1);
  check->files++;
  check->usable += found->usable;
  g_mutex_lock(&check->lock);
  g_ptr_array_add(check->known, clip);
  const gboolean was_pending = check->pending;
  check->pending = TRUE;
  g_mutex_unlock(&check->lock);
  if (was_pending)
    return;
  g_autoptr(GSource) source = g_idle_source_new();
  g_source_set_priority(source, G_PRIORITY_DEFAULT); /* of the task's end, so that all rows come before it */
  g_source_set_callback(source, rows_cb, g_object_ref(task), g_object_unref);
  g_source_attach(source, check->context);
}

static void check_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  struct check *check = data;
  struct ms_error failure = {0};
  GError *error = NULL;
  MSA_ASSERT_OFF_MAIN();
  if (ms_clip_folder_check(check->folder, check->on_missing, clip_cb, task, msa_bridge_cancel(check->bridge),
                           &failure) < 0) {
    msa_error_set_from_engine(&error, &failure);
    g_task_return_error(task, error);
  } else if (!check->files) {
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_INPUT,
                            _("“%s” holds no clips: choose a folder with video files."), check->folder);
  } else if (!check->usable) {
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_INPUT,
                            _("No clip of “%s” can be used; each row says why."), check->folder);
  } else {
    g_task_return_boolean(task, TRUE);
  }
}

void msa_dataset_check_async(const char *folder, const char *missing_caption, GListStore *rows,
                             GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, data);
  struct check *check = g_new0(struct check, 1);
  check->folder = g_strdup(folder);
  check->on_missing = !g_strcmp0(missing_caption, "empty")  ? MS_CAPTION_EMPTY
                      : !g_strcmp0(missing_caption, "skip") ? MS_CAPTION_SKIP
                                                            : MS_CAPTION_ERROR;
  check->rows = g_object_ref(rows);
  check->bridge = msa_bridge_new(cancellable, NULL, NULL);
  check->context = g_main_context_ref_thread_default();
  g_mutex_init(&check->lock);
  check->known = g_ptr_array_new_with_free_func(g_object_unref);
  g_task_set_source_tag(task, msa_dataset_check_async);
  g_task_set_task_data(task, check, check_free);
  msa_task_run_quietly(task, check_work);
}

gboolean msa_dataset_check_finish(GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_dataset_check_async), FALSE);
  return g_task_propagate_boolean(G_TASK(result), error);
}
