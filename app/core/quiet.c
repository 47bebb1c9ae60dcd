#include "core/quiet.h"

#include <sys/resource.h>
#include <unistd.h>

#define NICE 5

void msa_be_quiet(void) {
  setpriority(PRIO_PROCESS, (id_t)gettid(), NICE); /* on Linux of the thread alone */
}

struct quiet {
  GTask *task;
  GTaskThreadFunc function;
};

static gpointer run(gpointer data) {
  struct quiet *quiet = data;
  msa_be_quiet();
  quiet->function(quiet->task, g_task_get_source_object(quiet->task), g_task_get_task_data(quiet->task),
                  g_task_get_cancellable(quiet->task));
  g_object_unref(quiet->task);
  g_free(quiet);
  return NULL;
}

void msa_task_run_quietly(GTask *task, GTaskThreadFunc function) {
  struct quiet *quiet = g_new(struct quiet, 1);
  quiet->task = g_object_ref(task);
  quiet->function = function;
  g_thread_unref(g_thread_new("quiet", run, quiet));
}
