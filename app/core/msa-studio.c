#include "msa-studio.h"

#include "core/main-thread.h"
#include "core/probe.h"
#include "core/rooms.h"
#include "queue/queue-private.h"
#include "runs/run-private.h"

struct _MsaStudio {
  GObject parent;
  struct msa_studio_folders *folders;
  struct msa_store *store;
  struct msa_engine *engine;
  MsaLibrary *library;
  MsaModels *models;
  MsaPlanner *planner;
  GListStore *runs; /* of MsaRun */
  MsaQueue *queue;
  char **warnings;
  gboolean closing;
};

G_DEFINE_FINAL_TYPE(MsaStudio, msa_studio, G_TYPE_OBJECT)

enum { STORE_ERROR, SIGNALS };
static guint signals[SIGNALS];

struct threads {
  struct msa_engine *engine;
  struct msa_store *store;
  struct msa_studio_folders *folders;
};

/* Both threads end and are waited for; after that nobody calls the store's handler or the mailboxes. */
static void end_threads(const struct threads *threads) {
  MSA_ASSERT_OFF_MAIN();
  msa_engine_close(threads->engine);
  msa_store_close(threads->store);
}

static gpointer end_thread(gpointer data) {
  struct threads *threads = data;
  end_threads(threads);
  msa_store_free(threads->store);
  msa_studio_folders_free(threads->folders);
  g_free(threads);
  return NULL;
}

static void msa_studio_dispose(GObject *object) {
  MsaStudio *self = MSA_STUDIO(object);
  if (self->store)
    msa_store_on_error(self->store, NULL, NULL);
  g_clear_object(&self->queue);
  g_clear_object(&self->runs);
  g_clear_object(&self->planner);
  if (self->library)
    msa_library_close(self->library);
  g_clear_object(&self->library);
  g_clear_object(&self->models);
  G_OBJECT_CLASS(msa_studio_parent_class)->dispose(object);
}

static void msa_studio_finalize(GObject *object) {
  MsaStudio *self = MSA_STUDIO(object);
  if (self->closing) {
    msa_store_free(self->store);
    msa_studio_folders_free(self->folders);
  } else { /* nobody waited for the close: the threads end by themselves */
    struct threads *threads = g_new(struct threads, 1);
    *threads = (struct threads){self->engine, self->store, self->folders};
    g_thread_unref(g_thread_new("closing", end_thread, threads));
  }
  g_strfreev(self->warnings);
  G_OBJECT_CLASS(msa_studio_parent_class)->finalize(object);
}

static void msa_studio_class_init(MsaStudioClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  object_class->dispose = msa_studio_dispose;
  object_class->finalize = msa_studio_finalize;
  signals[STORE_ERROR] = g_signal_new("store-error", MSA_TYPE_STUDIO, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                      G_TYPE_NONE, 1, G_TYPE_STRING);
}

static void store_error_cb(const char *sentence, gpointer data) {
  g_signal_emit(data, signals[STORE_ERROR], 0, sentence);
}

/* A run that ended, also one that was stopped, has left a model. */
static void job_ended_cb(MsaModels *models, MsaJob *job) {
  if (msa_job_get_kind(job) == MSA_JOB_TRAIN)
    msa_models_reload(models);
}

static void msa_studio_init(MsaStudio *self) {
  MSA_ASSERT_MAIN();
  self->warnings = g_new0(char *, 1);
  self->folders = msa_studio_folders_new();
  self->store = msa_store_new(self->folders);
  msa_store_on_error(self->store, store_error_cb, self);
  self->engine = msa_engine_new(self->store, self->folders);
  self->library = msa_library_new(self->store, self->folders);
  self->models = msa_models_new(self->folders);
  self->planner = msa_planner_new(self->folders, self->models);
  self->runs = g_list_store_new(MSA_TYPE_RUN);
  self->queue =
      msa_queue_new(self->store, self->engine, self->library, self->models, self->planner, self->runs);
  g_signal_connect_object(self->queue, "job-ended", G_CALLBACK(job_ended_cb), self->models,
                          G_CONNECT_SWAPPED);
}

MsaStudio *msa_studio_new(void) {
  return g_object_new(MSA_TYPE_STUDIO, NULL);
}

/* Opening: everything is asked for at once, in this order, and filled in when the last answer is there. */

struct opening {
  GPtrArray *runs, *jobs, *clips; /* rows */
  char **prompts;
  GError *error; /* the first one */
};

static void opening_free(gpointer data) {
  struct opening *opening = data;
  g_clear_pointer(&opening->runs, g_ptr_array_unref);
  g_clear_pointer(&opening->jobs, g_ptr_array_unref);
  g_clear_pointer(&opening->clips, g_ptr_array_unref);
  g_strfreev(opening->prompts);
  g_clear_error(&opening->error);
  g_free(opening);
}

static GError **first_error(struct opening *opening) {
  return opening->error ? NULL : &opening->error;
}

static void store_opened_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  struct opening *opening = g_task_get_task_data(task);
  msa_store_open_finish(result, first_error(opening));
}

static void runs_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  struct opening *opening = g_task_get_task_data(task);
  opening->runs = msa_store_list_runs_finish(result, first_error(opening));
}

static void jobs_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  struct opening *opening = g_task_get_task_data(task);
  opening->jobs = msa_store_list_jobs_finish(result, first_error(opening));
}

static void clips_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  struct opening *opening = g_task_get_task_data(task);
  opening->clips = msa_store_list_clips_finish(result, first_error(opening));
}

static void fill_runs(MsaStudio *self, GPtrArray *rows) {
  g_autoptr(GPtrArray) runs = g_ptr_array_new_with_free_func(g_object_unref);
  for (guint i = 0; i < rows->len; i++) {
    const struct msa_run_row *row = rows->pdata[i];
    g_autoptr(MsaTrainParams) params = msa_train_params_from_json(row->params, NULL);
    if (!params)
      params = msa_train_params_new();
    g_ptr_array_add(runs, msa_run_new(self->store, row, params));
  }
  g_list_store_splice(self->runs, 0, g_list_model_get_n_items(G_LIST_MODEL(self->runs)), runs->pdata,
                      runs->len);
}

static void probe_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const MsaStudio *self = source;
  MSA_ASSERT_OFF_MAIN();
  g_task_return_pointer(task, msa_probe(self->folders), (GDestroyNotify)g_strfreev);
}

static void probed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GTask) task = data;
  MsaStudio *self = MSA_STUDIO(source);
  char **warnings = g_task_propagate_pointer(G_TASK(result), NULL);
  if (warnings) {
    g_strfreev(self->warnings);
    self->warnings = warnings;
  }
  g_task_return_boolean(task, TRUE);
}

static void prompts_cb(GObject *source, GAsyncResult *result, gpointer data) {
  GTask *task = data;
  MsaStudio *self = g_task_get_source_object(task);
  struct opening *opening = g_task_get_task_data(task);
  opening->prompts = msa_store_list_prompts_finish(result, first_error(opening));
  if (opening->error) {
    g_task_return_error(task, g_steal_pointer(&opening->error));
    g_object_unref(task);
    return;
  }
  msa_library_fill(self->library, opening->clips, (const char *const *)opening->prompts);
  fill_runs(self, opening->runs);
  msa_queue_fill(self->queue, opening->jobs);
  g_autoptr(GTask) probe = g_task_new(self, NULL, probed_cb, task);
  g_task_run_in_thread(probe, probe_work);
}

void msa_studio_open_async(MsaStudio *self, GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = g_task_new(self, NULL, callback, data);
  MSA_ASSERT_MAIN();
  g_task_set_source_tag(task, msa_studio_open_async);
  g_task_set_task_data(task, g_new0(struct opening, 1), opening_free);
  msa_store_open_async(self->store, store_opened_cb, g_object_ref(task));
  msa_store_list_runs_async(self->store, runs_cb, g_object_ref(task));
  msa_store_list_jobs_async(self->store, jobs_cb, g_object_ref(task));
  msa_store_list_clips_async(self->store, clips_cb, g_object_ref(task));
  msa_store_list_prompts_async(self->store, prompts_cb, g_object_ref(task));
}

gboolean msa_studio_open_finish(MsaStudio *studio, GAsyncResult *result, GError **error) {
  return g_task_propagate_boolean(G_TASK(result), error);
}

/* Closing. */

static void close_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  end_threads(data);
  g_task_return_boolean(task, TRUE);
}

static void queue_closed(gpointer data) {
  g_autoptr(GTask) task = data;
  MsaStudio *self = g_task_get_source_object(task);
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(self->runs)); i++) {
    g_autoptr(MsaRun) run = g_list_model_get_item(G_LIST_MODEL(self->runs), i);
    msa_run_detach(run);
  }
  g_task_run_in_thread(task, close_work);
}

void msa_studio_close_async(MsaStudio *self, GAsyncReadyCallback callback, gpointer data) {
  GTask *task = g_task_new(self, NULL, callback, data);
  struct threads *threads = g_new(struct threads, 1);
  MSA_ASSERT_MAIN();
  g_assert(!self->closing);
  self->closing = TRUE;
  *threads = (struct threads){self->engine, self->store, self->folders};
  g_task_set_source_tag(task, msa_studio_close_async);
  g_task_set_task_data(task, threads, g_free);
  msa_queue_close(self->queue, queue_closed, task);
}

gboolean msa_studio_close_finish(MsaStudio *studio, GAsyncResult *result, GError **error) {
  return g_task_propagate_boolean(G_TASK(result), error);
}

MsaQueue *msa_studio_get_queue(MsaStudio *studio) {
  return studio->queue;
}

MsaLibrary *msa_studio_get_library(MsaStudio *studio) {
  return studio->library;
}

MsaModels *msa_studio_get_models(MsaStudio *studio) {
  return studio->models;
}

MsaPlanner *msa_studio_get_planner(MsaStudio *studio) {
  return studio->planner;
}

GListModel *msa_studio_get_runs(MsaStudio *studio) {
  return G_LIST_MODEL(studio->runs);
}

void msa_studio_forget_run(MsaStudio *self, MsaRun *run) {
  guint position;
  MSA_ASSERT_MAIN();
  if (msa_run_get_job(run)) /* it is still in the queue */
    return;
  msa_run_detach(run);
  msa_store_forget_run(self->store, msa_run_get_id(run));
  if (g_list_store_find(self->runs, run, &position))
    g_list_store_remove(self->runs, position);
}

const char *const *msa_studio_get_warnings(MsaStudio *studio) {
  return (const char *const *)studio->warnings;
}

const char *msa_studio_get_clips_folder(MsaStudio *studio) {
  return studio->folders->clips;
}
