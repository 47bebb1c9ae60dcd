/* A training run: from the job in the store to a model in its folder. */
#include "core/engine-jobs.h"
#include "core/main-thread.h"
#include "queue/work.h"
#include "runs/run-private.h"
#include "store/jobs.h"

void msa_work_train(const struct msa_workplace *place, struct msa_task *task) {
  g_autofree char *params = msa_train_params_to_json(task->train);
  g_autofree char *output = NULL, *trace = NULL;
  g_autoptr(GError) failure = NULL;
  struct ms_train_result result;
  struct ms_train_job job;
  struct ms_machine machine;
  struct ms_error error = {0};
  const struct ms_hooks hooks = msa_work_hooks(task);
  MSA_ASSERT_OFF_MAIN();
  if (!msa_store_begin_job(place->store, task->id, params, NULL, &output, &failure)) {
    msa_mailbox_failed(task->mailbox, NULL, g_strdup(failure->message), TRUE);
    return;
  }
  int code = msa_engine_train_job(task->train, &job, &error);
  if (code == 0)
    code = msa_work_machine(place, NULL, task->train->host_memory, task->train->threads, &machine, &error);
  if (code == 0) {
    job.output = task->folder;
    trace = g_build_filename(task->folder, MSA_TRACE_FILE, NULL);
    job.trace = trace;
    /* the folder is this run's alone: if it is there, this run began it */
    job.resume = g_file_test(task->folder, G_FILE_TEST_IS_DIR);
    code = ms_train(&job, NULL, &machine, &hooks, &result, &error);
  }
  if (code < 0)
    msa_work_end(task, &error, NULL);
  else
    msa_mailbox_done(task->mailbox, NULL, NULL);
}
