#include "queue/engine.h"

#include <malloc.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>

#include "core/folders.h"
#include "core/main-thread.h"
#include "queue/work.h"

#define NICE 10 /* below the rest of the program, at most 19 */

struct msa_engine {
  struct msa_workplace place;
  GThread *thread;
  GAsyncQueue *tasks;
};

struct msa_task *msa_task_new(gint64 id, const MsaGenerateParams *generate, const MsaTrainParams *train,
                              const char *folder, struct msa_mailbox *mailbox) {
  struct msa_task *task = g_new0(struct msa_task, 1);
  g_atomic_ref_count_init(&task->references);
  task->id = id;
  task->generate = msa_generate_params_copy(generate);
  task->train = msa_train_params_copy(train);
  task->folder = g_strdup(folder);
  task->mailbox = mailbox;
  return task;
}

struct msa_task *msa_task_ref(struct msa_task *task) {
  g_atomic_ref_count_inc(&task->references);
  return task;
}

void msa_task_unref(struct msa_task *task) {
  if (!g_atomic_ref_count_dec(&task->references))
    return;
  msa_generate_params_free(task->generate);
  msa_train_params_free(task->train);
  g_free(task->folder);
  msa_mailbox_unref(task->mailbox);
  g_free(task);
}

/* The kernels' threads are started by this one and inherit both. */
static void step_back(void) {
  const struct sched_param param = {0};
  sched_setscheduler(0, SCHED_BATCH, &param);
  setpriority(PRIO_PROCESS, (id_t)gettid(), MIN(19, getpriority(PRIO_PROCESS, (id_t)gettid()) + NICE));
}

static gpointer engine_thread(gpointer data) {
  struct msa_engine *engine = data;
  MSA_ASSERT_OFF_MAIN();
  step_back();
  msa_data_folder(engine->place.program_data, sizeof engine->place.program_data);
  for (;;) {
    struct msa_task *task = g_async_queue_pop(engine->tasks);
    if (!task->mailbox) { /* the end */
      g_free(task);
      return NULL;
    }
    if (task->generate)
      msa_work_generate(&engine->place, task);
    else
      msa_work_train(&engine->place, task);
    msa_task_unref(task);
    /* a model comes and goes with each job: without this the heap keeps its largest size for good */
    malloc_trim(0);
  }
}

struct msa_engine *msa_engine_new(struct msa_store *store, const struct msa_studio_folders *folders) {
  struct msa_engine *engine = g_new0(struct msa_engine, 1);
  engine->place.store = store;
  engine->place.folders = folders;
  engine->tasks = g_async_queue_new();
  engine->thread = g_thread_new("engine", engine_thread, engine);
  return engine;
}

void msa_engine_run(struct msa_engine *engine, struct msa_task *task) {
  g_async_queue_push(engine->tasks, msa_task_ref(task));
}

void msa_engine_close(struct msa_engine *engine) {
  MSA_ASSERT_OFF_MAIN();
  g_async_queue_push(engine->tasks, g_new0(struct msa_task, 1));
  g_thread_join(engine->thread);
  g_async_queue_unref(engine->tasks);
  g_free(engine);
}

int msa_work_machine(const struct msa_workplace *place, const char *device, guint64 host_memory, int threads,
                     struct ms_machine *machine, struct ms_error *error) {
  if (device && strcmp(device, "cpu"))
    return ms_error_set(error, MS_EDEVICE,
                        "this program was built without the device \"%s\": choose the processor", device);
  *machine = (struct ms_machine){.threads = threads,
                                 .host_memory = (size_t)host_memory,
                                 .data_folder = place->program_data,
                                 .user_folder = place->folders->models};
  return 0;
}

static void on_progress(void *data, const struct ms_progress *progress) {
  const struct msa_task *task = data;
  const char *phase = progress->phase;
  double left = progress->seconds_left;
  /* Only its steps tell how long a run will take. It encodes the clips that it learns from; a clip that is
   * made is written in the phase of that name. */
  if (task->train && strcmp(phase, "train")) {
    left = -1;
    phase = strcmp(phase, "encode") ? phase : "cache";
  }
  msa_mailbox_progress(task->mailbox, phase, progress->done, progress->total, progress->seconds, left);
}

static void on_preview(void *data, const struct ms_preview *preview) {
  const struct msa_task *task = data;
  MsaFrames *frames =
      msa_frames_new(preview->rgb, preview->width, preview->height, preview->frames, preview->fps);
  frames->step = preview->step;
  frames->steps = preview->steps;
  msa_mailbox_preview(task->mailbox, frames);
}

static void on_metrics(void *data, int64_t step, const struct ms_metric *metrics, int count) {
  const struct msa_task *task = data;
  for (int i = 0; i < count; i++)
    if (isfinite(metrics[i].value))
      msa_mailbox_point(task->mailbox, metrics[i].name, step, metrics[i].value);
}

static void on_sample(void *data, int64_t step, const char *prompt, const char *path) {
  const struct msa_task *task = data;
  msa_mailbox_sample(task->mailbox, step, prompt, path);
}

/* For those who look: G_MESSAGES_DEBUG=megaslide. */
static void on_log(void *data, enum ms_log_level level, const char *message) {
  const struct msa_task *task = data;
  g_info("job %" G_GINT64_FORMAT ": %s", task->id, message);
}

struct ms_hooks msa_work_hooks(struct msa_task *task) {
  return (struct ms_hooks){.data = task,
                           .progress = on_progress,
                           .preview = on_preview,
                           .metrics = on_metrics,
                           .sample = on_sample,
                           .log = on_log,
                           .cancel = &task->cancel};
}

void msa_work_end(struct msa_task *task, const struct ms_error *error, char *skipped) {
  if (error->code == MS_ECANCELLED)
    msa_mailbox_stopped(task->mailbox, skipped);
  else
    msa_mailbox_failed(task->mailbox, skipped,
                       g_strdup(error->message[0] ? error->message : ms_error_text(error->code)),
                       error->code == MS_EOUTPUT);
}
