/* The trace that the engine has left in a run's folder, as a file of the person's. */
#include <glib/gi18n-lib.h>

#include "core/main-thread.h"
#include "msa-error.h"
#include "runs/run-private.h"

struct copy {
  char *from, *to, *name;
};

static void copy_free(gpointer data) {
  struct copy *copy = data;
  g_free(copy->from);
  g_free(copy->to);
  g_free(copy->name);
  g_free(copy);
}

static void copy_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct copy *copy = data;
  g_autoptr(GFile) from = g_file_new_for_path(copy->from), to = g_file_new_for_path(copy->to);
  g_autoptr(GError) failure = NULL;
  MSA_ASSERT_OFF_MAIN();
  if (!g_file_test(copy->from, G_FILE_TEST_EXISTS))
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_INPUT,
                            _("The run \"%s\" has no trace yet: it is kept when a run ends or is paused"),
                            copy->name);
  else if (g_file_copy(from, to, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, &failure))
    g_task_return_boolean(task, TRUE);
  else
    g_task_return_new_error(task, MSA_ERROR, MSA_ERROR_OUTPUT,
                            _("\"%s\" cannot be written: %s; choose another folder"), copy->to,
                            failure->message);
}

void msa_run_save_trace_async(MsaRun *run, const char *path, GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = g_task_new(run, NULL, callback, data);
  struct copy *copy = g_new0(struct copy, 1);
  MSA_ASSERT_MAIN();
  copy->from = g_build_filename(msa_run_get_folder(run), MSA_TRACE_FILE, NULL);
  copy->to = g_strdup(path);
  copy->name = g_strdup(msa_run_get_name(run));
  g_task_set_source_tag(task, msa_run_save_trace_async);
  g_task_set_task_data(task, copy, copy_free);
  g_task_run_in_thread(task, copy_work);
}

gboolean msa_run_save_trace_finish(MsaRun *run, GAsyncResult *result, GError **error) {
  return g_task_propagate_boolean(G_TASK(result), error);
}
