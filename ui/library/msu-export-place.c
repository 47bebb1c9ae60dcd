#include "library/msu-export-place.h"

struct place {
  char *folder, *name, *extension;
};

static void place_free(gpointer data) {
  struct place *place = data;
  g_free(place->folder);
  g_free(place->name);
  g_free(place->extension);
  g_free(place);
}

static char *default_folder(void) {
  const char *videos = g_get_user_special_dir(G_USER_DIRECTORY_VIDEOS);
  return videos ? g_strdup(videos) : g_build_filename(g_get_home_dir(), "Videos", NULL);
}

static void work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  struct place *place = data;
  g_autofree char *folder = place->folder ? g_strdup(place->folder) : default_folder();
  if (!place->folder && g_mkdir_with_parents(folder, 0755) < 0) {
    g_free(folder);
    folder = g_strdup(g_get_home_dir());
  }
  for (int number = 1;; number++) {
    g_autofree char *numbered =
        number > 1 ? g_strdup_printf("%s-%d", place->name, number) : g_strdup(place->name);
    g_autofree char *file =
        place->extension ? g_strconcat(numbered, ".", place->extension, NULL) : g_strdup(numbered);
    char *path = g_build_filename(folder, file, NULL);
    if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
      g_task_return_pointer(task, path, g_free);
      return;
    }
    g_free(path);
  }
}

void msu_export_place_async(const char *folder, const char *name, const char *extension,
                            GCancellable *cancellable, GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, data);
  struct place *place = g_new0(struct place, 1);
  place->folder = g_strdup(folder);
  place->name = g_strdup(name);
  place->extension = g_strdup(extension);
  g_task_set_source_tag(task, msu_export_place_async);
  g_task_set_task_data(task, place, place_free);
  g_task_run_in_thread(task, work);
}

char *msu_export_place_finish(GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msu_export_place_async), NULL);
  return g_task_propagate_pointer(G_TASK(result), error);
}
