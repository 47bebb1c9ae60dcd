/* The check of a folder of clips, and captions edited in place. */
#include <glib/gstdio.h>
#include <string.h>

#include "harness.h"
#include "msa-dataset.h"
#include "msa-error.h"
#include "room.h"

static gboolean check_folder(const char *folder, const char *missing, GListStore *rows, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_dataset_check_async(folder, missing, rows, NULL, room_done, &result);
  return msa_dataset_check_finish(room_wait(&result), error);
}

static MsaDatasetClip *find(GListStore *rows, const char *name) {
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(rows)); i++) {
    g_autoptr(MsaDatasetClip) clip = g_list_model_get_item(G_LIST_MODEL(rows), i);
    if (!strcmp(msa_dataset_clip_get_name(clip), name))
      return clip; /* the list holds it */
  }
  return NULL;
}

static gboolean set_caption(MsaDatasetClip *clip, const char *caption, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_dataset_clip_set_caption_async(clip, caption, room_done, &result);
  return msa_dataset_clip_set_caption_finish(clip, room_wait(&result), error);
}

static void count_cb(GObject *object, GParamSpec *spec, gpointer data) {
  ++*(int *)data;
}

static void check_rows(const char *folder, GListStore *rows) {
  g_autoptr(GError) error = NULL;
  check_ok(check_folder(folder, "error", rows, &error), "the folder is looked at %s",
           error ? error->message : "");
  check_ok(g_list_model_get_n_items(G_LIST_MODEL(rows)) == 4, "four files are rows, captions are not");
  MsaDatasetClip *good = find(rows, "a.mp4"), *bare = find(rows, "b.mp4"), *text = find(rows, "c.mp4"),
                 *latin = find(rows, "d.mp4");
  g_assert(good && bare && text && latin);
  check_ok(msa_dataset_clip_get_usable(good) && !msa_dataset_clip_get_reason(good) &&
               msa_dataset_clip_get_width(good) == 96 && msa_dataset_clip_get_height(good) == 64 &&
               msa_dataset_clip_get_frames(good) == 9 && msa_dataset_clip_get_fps(good) == 8 &&
               !strcmp(msa_dataset_clip_get_caption(good), "a red ball"),
           "a good one says what it is");
  check_ok(!msa_dataset_clip_get_usable(bare) && msa_dataset_clip_get_reason(bare) &&
               !*msa_dataset_clip_get_caption(bare),
           "one without a caption: %s", msa_dataset_clip_get_reason(bare));
  check_ok(!msa_dataset_clip_get_usable(text) && msa_dataset_clip_get_reason(text),
           "one that is no video: %s", msa_dataset_clip_get_reason(text));
  check_ok(!msa_dataset_clip_get_usable(latin), "one whose caption is not UTF-8: %s",
           msa_dataset_clip_get_reason(latin));
}

static void check_captions(const char *folder, GListStore *rows) {
  g_autoptr(GError) error = NULL, bad = NULL, full = NULL;
  MsaDatasetClip *bare = find(rows, "b.mp4"), *text = find(rows, "c.mp4");
  g_autofree char *path = g_build_filename(folder, "b.txt", NULL);
  char *written = NULL;
  int told = 0;
  g_signal_connect(bare, "notify::usable", G_CALLBACK(count_cb), &told);
  check_ok(set_caption(bare, " a café,\nseen from above ", &error), "a caption is written %s",
           error ? error->message : "");
  g_file_get_contents(path, &written, NULL, NULL);
  check_ok(!g_strcmp0(written, "a café, seen from above\n"), "in one line");
  g_free(written);
  check_ok(msa_dataset_clip_get_usable(bare) && told == 1 && !msa_dataset_clip_get_reason(bare) &&
               !strcmp(msa_dataset_clip_get_caption(bare), "a café, seen from above"),
           "so the clip can be used");
  check_ok(room_count(folder) == 8, "and nothing else lies beside it (%u)", room_count(folder));
  check_ok(!set_caption(bare, "\xff\xfe", &bad) && bad, "text that is not UTF-8 is refused");
  check_ok(set_caption(bare, "", NULL) && !msa_dataset_clip_get_usable(bare),
           "an empty one takes it away again");
  check_ok(set_caption(text, "a caption", NULL) && !msa_dataset_clip_get_usable(text),
           "a caption makes no video of what is none");

  GAsyncResult *results[8] = {NULL};
  for (int i = 0; i < 8; i++) {
    g_autofree char *caption = g_strdup_printf("number %d", i);
    msa_dataset_clip_set_caption_async(bare, caption, room_done, &results[i]);
  }
  for (int i = 0; i < 8; i++) {
    room_wait(&results[i]);
    g_object_unref(results[i]);
  }
  g_file_get_contents(path, &written, NULL, NULL);
  check_ok(!g_strcmp0(written, "number 7\n") && !strcmp(msa_dataset_clip_get_caption(bare), "number 7"),
           "of many in a row the last one stays");
  g_free(written);

  g_autofree char *moved = room_path("moved");
  g_rename(folder, moved);
  const gboolean lost = set_caption(bare, "into nothing", &full);
  check_ok(!lost && !strcmp(msa_dataset_clip_get_caption(bare), "number 7"), "a folder that is gone: %s",
           full ? full->message : "");
  g_rename(moved, folder);
}

static void check_choices(const char *folder) {
  g_autoptr(GListStore) rows = g_list_store_new(MSA_TYPE_DATASET_CLIP),
                        none = g_list_store_new(MSA_TYPE_DATASET_CLIP);
  g_autoptr(GError) empty = NULL, missing = NULL;
  g_autofree char *bare = room_path("bare"), *path = room_path("bare/x.mp4"), *nowhere = room_path("nowhere");
  g_autoptr(GCancellable) cancellable = g_cancellable_new();
  g_autoptr(GAsyncResult) result = NULL;
  g_autoptr(GError) stopped = NULL;
  g_mkdir(bare, 0700);
  gboolean good = check_folder(bare, "error", none, &empty);
  check_ok(!good && g_error_matches(empty, MSA_ERROR, MSA_ERROR_INPUT), "an empty folder: %s",
           empty ? empty->message : "");
  room_clip(path, 3, NULL);
  g_clear_error(&empty);
  good = check_folder(bare, "error", none, &empty);
  check_ok(!good && empty && g_list_model_get_n_items(G_LIST_MODEL(none)) == 1, "none that can be used: %s",
           empty ? empty->message : "");
  check_ok(check_folder(bare, "empty", rows, NULL), "unless captions may be missing");
  good = check_folder(nowhere, "error", rows, &missing);
  check_ok(!good && missing, "no folder: %s", missing ? missing->message : "");
  g_cancellable_cancel(cancellable);
  msa_dataset_check_async(folder, "error", rows, cancellable, room_done, &result);
  good = msa_dataset_check_finish(room_wait(&result), &stopped);
  check_ok(!good && g_error_matches(stopped, G_IO_ERROR, G_IO_ERROR_CANCELLED) &&
               g_list_model_get_n_items(G_LIST_MODEL(rows)) == 1,
           "a check that is stopped adds no rows");
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  g_autofree char *folder = room_path("set");
  static const char *const names[] = {"a.mp4", "b.mp4", "d.mp4"};
  g_mkdir(folder, 0700);
  for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
    g_autofree char *path = g_build_filename(folder, names[i], NULL);
    room_clip(path, 9, NULL);
  }
  g_autofree char *caption = room_path("set/a.txt"), *text = room_path("set/c.mp4"),
                  *words = room_path("set/c.txt"), *latin = room_path("set/d.txt");
  room_write(caption, "a red ball\n");
  room_write(text, "no video");
  room_write(words, "no video");
  room_write(latin, "caf\xe9");
  g_autoptr(GListStore) rows = g_list_store_new(MSA_TYPE_DATASET_CLIP);
  check_rows(folder, rows);
  check_captions(folder, rows);
  check_choices(folder);
  return room_end();
}
