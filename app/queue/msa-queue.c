/* The queue's list and what a person asks of it. */
#include "msa-queue.h"

#include <math.h>

#include "core/main-thread.h"
#include "core/rooms.h"
#include "queue/job-private.h"
#include "queue/queue-self.h"

static GType queue_get_item_type(GListModel *model) {
  return MSA_TYPE_JOB;
}

static guint queue_get_n_items(GListModel *model) {
  return MSA_QUEUE(model)->jobs->len;
}

static gpointer queue_get_item(GListModel *model, guint position) {
  MsaQueue *self = MSA_QUEUE(model);
  return position < self->jobs->len ? g_object_ref(self->jobs->pdata[position]) : NULL;
}

static void list_model_init(GListModelInterface *interface) {
  interface->get_item_type = queue_get_item_type;
  interface->get_n_items = queue_get_n_items;
  interface->get_item = queue_get_item;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(MsaQueue, msa_queue, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(G_TYPE_LIST_MODEL, list_model_init))

static GParamSpec *properties[QUEUE_PROPERTIES];
enum { JOB_ENDED, SIGNALS };
static guint signals[SIGNALS];

static void msa_queue_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsaQueue *self = MSA_QUEUE(object);
  switch (id) {
  case QUEUE_PAUSED:
    g_value_set_boolean(value, self->paused);
    break;
  case QUEUE_RUNNING:
    g_value_set_object(value, self->running);
    break;
  case QUEUE_SECONDS_LEFT:
    g_value_set_double(value, self->seconds_left);
    break;
  case QUEUE_FRACTION:
    g_value_set_double(value, self->fraction);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void msa_queue_set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
  if (id == QUEUE_PAUSED)
    msa_queue_set_paused(MSA_QUEUE(object), g_value_get_boolean(value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

static void msa_queue_dispose(GObject *object) {
  MsaQueue *self = MSA_QUEUE(object);
  g_clear_handle_id(&self->tick_source, g_source_remove);
  if (self->task)
    atomic_store(&self->task->cancel, 1);
  msa_queue_forget_task(self);
  g_clear_object(&self->running);
  g_clear_object(&self->run);
  g_clear_object(&self->taken);
  g_clear_object(&self->runs);
  g_clear_object(&self->library);
  g_clear_object(&self->models);
  g_clear_object(&self->planner);
  G_OBJECT_CLASS(msa_queue_parent_class)->dispose(object);
}

static void msa_queue_finalize(GObject *object) {
  MsaQueue *self = MSA_QUEUE(object);
  g_ptr_array_unref(self->interrupted);
  g_ptr_array_unref(self->jobs);
  G_OBJECT_CLASS(msa_queue_parent_class)->finalize(object);
}

static void msa_queue_class_init(MsaQueueClass *klass) {
  const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  object_class->get_property = msa_queue_get_property;
  object_class->set_property = msa_queue_set_property;
  object_class->dispose = msa_queue_dispose;
  object_class->finalize = msa_queue_finalize;
  properties[QUEUE_PAUSED] = g_param_spec_boolean("paused", NULL, NULL, FALSE, flags | G_PARAM_WRITABLE);
  properties[QUEUE_RUNNING] = g_param_spec_object("running", NULL, NULL, MSA_TYPE_JOB, flags);
  properties[QUEUE_SECONDS_LEFT] =
      g_param_spec_double("seconds-left", NULL, NULL, -1, G_MAXDOUBLE, -1, flags);
  properties[QUEUE_FRACTION] = g_param_spec_double("fraction", NULL, NULL, 0, 1, 0, flags);
  g_object_class_install_properties(object_class, QUEUE_PROPERTIES, properties);
  signals[JOB_ENDED] = g_signal_new("job-ended", MSA_TYPE_QUEUE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                    G_TYPE_NONE, 1, MSA_TYPE_JOB);
}

static void msa_queue_init(MsaQueue *self) {
  self->jobs = g_ptr_array_new_with_free_func(g_object_unref);
  self->interrupted = g_ptr_array_new();
}

MsaQueue *msa_queue_new(struct msa_store *store, struct msa_engine *engine, MsaLibrary *library,
                        MsaModels *models, MsaPlanner *planner, GListStore *runs) {
  MsaQueue *self = g_object_new(MSA_TYPE_QUEUE, NULL);
  self->store = store;
  self->engine = engine;
  self->library = g_object_ref(library);
  self->models = g_object_ref(models);
  self->planner = g_object_ref(planner);
  g_signal_connect_object(planner, "notify::ready", G_CALLBACK(msa_queue_forecast_all), self,
                          G_CONNECT_SWAPPED);
  g_signal_connect_object(models, "items-changed", G_CALLBACK(msa_queue_forecast_all), self,
                          G_CONNECT_SWAPPED);
  self->runs = g_object_ref(runs);
  return self;
}

void msa_queue_notify(MsaQueue *self, enum queue_property property) {
  g_object_notify_by_pspec(G_OBJECT(self), properties[property]);
}

void msa_queue_tell_ended(MsaQueue *self, MsaJob *job) {
  g_signal_emit(self, signals[JOB_ENDED], 0, job);
}

/* Places in the list. */

static gboolean find_job(MsaQueue *self, MsaJob *job, guint *position) {
  return g_ptr_array_find(self->jobs, job, position);
}

static void insert_job(MsaQueue *self, MsaJob *job, guint position) {
  g_ptr_array_insert(self->jobs, (gint)position, g_object_ref(job));
  g_list_model_items_changed(G_LIST_MODEL(self), position, 0, 1);
}

void msa_queue_unlist(MsaQueue *self, MsaJob *job) {
  guint position;
  g_ptr_array_remove(self->interrupted, job);
  if (!find_job(self, job, &position))
    return;
  g_ptr_array_remove_index(self->jobs, position);
  g_list_model_items_changed(G_LIST_MODEL(self), position, 1, 0);
}

void msa_queue_relist(MsaQueue *self, MsaJob *job, guint position) {
  g_autoptr(MsaJob) keep = g_object_ref(job);
  g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(gint64));
  guint from;
  if (!find_job(self, job, &from) || from == position)
    return;
  g_ptr_array_remove_index(self->jobs, from);
  g_ptr_array_insert(self->jobs, (gint)position, g_object_ref(job));
  const guint first = MIN(from, position), count = MAX(from, position) - first + 1;
  g_list_model_items_changed(G_LIST_MODEL(self), first, count, count);
  for (guint i = 0; i < self->jobs->len; i++) {
    const gint64 id = msa_job_get_id(self->jobs->pdata[i]);
    g_array_append_val(ids, id);
  }
  msa_store_order_jobs(self->store, (const gint64 *)(void *)ids->data, ids->len);
}

static guint head(MsaQueue *self) {
  return self->running ? 1 : 0;
}

void msa_queue_halt(MsaQueue *self) {
  if (self->paused)
    return;
  self->paused = self->paused_by_itself = TRUE;
  msa_queue_notify(self, QUEUE_PAUSED);
}

MsaRun *msa_queue_find_run(MsaQueue *self, gint64 id) {
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(self->runs)); i++) {
    g_autoptr(MsaRun) run = g_list_model_get_item(G_LIST_MODEL(self->runs), i);
    if (msa_run_get_id(run) == id)
      return run;
  }
  return NULL;
}

/* What is asked for. */

struct adding {
  MsaQueue *queue;
  MsaJob *job;
  struct msa_run_row run;
};

static void add_run(MsaQueue *self, struct adding *adding, const char *folder) {
  struct msa_run_row row = adding->run;
  row.folder = (char *)folder;
  g_autoptr(MsaRun) run = msa_run_new(self->store, &row, msa_job_get_train(adding->job));
  msa_run_set_job(run, adding->job);
  g_list_store_insert(self->runs, 0, run);
}

static void added_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct adding *adding = data;
  MsaQueue *self = adding->queue;
  g_autoptr(GError) error = NULL;
  g_autofree char *folder = msa_store_add_job_finish(result, &error);
  if (!self->runs) { /* the studio is gone; the store has the job */
    msa_job_set_state(adding->job, MSA_JOB_CANCELLED, NULL);
  } else if (!folder) {
    msa_job_set_state(adding->job, MSA_JOB_FAILED, error->message);
    msa_queue_tell_ended(self, adding->job);
  } else if (msa_job_get_state(adding->job) == MSA_JOB_CANCELLED) {
    msa_store_remove_job(self->store, msa_job_get_id(adding->job), MSA_JOB_CANCELLED, NULL);
  } else {
    if (msa_job_get_train(adding->job))
      add_run(self, adding, folder);
    insert_job(self, adding->job, self->jobs->len);
    msa_queue_forecast(self, adding->job);
    msa_queue_update_time(self);
    msa_queue_start_next(self);
  }
  g_free(adding->run.name);
  g_free(adding->run.params);
  g_object_unref(adding->job);
  g_object_unref(self);
  g_free(adding);
}

/* The time of adding, made unique: known at once, and never used twice. */
static gint64 new_id(MsaQueue *self) {
  self->last_id = MAX(self->last_id + 1, g_get_real_time());
  return self->last_id;
}

static MsaJob *add(MsaQueue *self, MsaJob *job, char *params) {
  struct msa_job_row row = {
      .id = msa_job_get_id(job), .kind = msa_job_get_kind(job), .state = MSA_JOB_QUEUED, .params = params};
  const MsaTrainParams *train = msa_job_get_train(job);
  if (self->closing) { /* a last key stroke while the window goes */
    msa_job_set_state(job, MSA_JOB_CANCELLED, NULL);
    g_free(params);
    return job;
  }
  struct adding *adding = g_new0(struct adding, 1);
  adding->queue = g_object_ref(self);
  adding->job = g_object_ref(job);
  if (train)
    adding->run = (struct msa_run_row){.id = row.id,
                                       .name = g_strdup(train->name ? train->name : "run"),
                                       .params = g_strdup(params),
                                       .state = MSA_JOB_QUEUED,
                                       .steps = train->steps,
                                       .loss = NAN};
  msa_store_add_job_async(self->store, &row, train ? &adding->run : NULL, added_cb, adding);
  g_free(params);
  return job;
}

MsaJob *msa_queue_add_generate(MsaQueue *self, const MsaGenerateParams *params) {
  MSA_ASSERT_MAIN();
  if (params->prompt && *params->prompt)
    msa_library_use_prompt(self->library, params->prompt);
  return add(self, msa_job_new(new_id(self), params, NULL), msa_generate_params_to_json(params));
}

MsaJob *msa_queue_add_train(MsaQueue *self, const MsaTrainParams *params) {
  MSA_ASSERT_MAIN();
  return add(self, msa_job_new(new_id(self), NULL, params), msa_train_params_to_json(params));
}

static void queue_again(MsaQueue *self, MsaJob *job) {
  if (job == self->taken)
    g_clear_object(&self->taken);
  g_ptr_array_remove(self->interrupted, job);
  msa_job_set_state(job, MSA_JOB_QUEUED, NULL);
  msa_store_set_job_state(self->store, msa_job_get_id(job), MSA_JOB_QUEUED, NULL);
}

void msa_queue_set_paused(MsaQueue *self, gboolean paused) {
  MSA_ASSERT_MAIN();
  if (self->paused == !!paused)
    return;
  self->paused = !!paused;
  self->paused_by_itself = FALSE;
  while (!paused && self->interrupted->len)
    queue_again(self, self->interrupted->pdata[0]);
  msa_queue_notify(self, QUEUE_PAUSED);
  msa_queue_update_time(self);
  msa_queue_start_next(self);
}

gboolean msa_queue_get_paused(MsaQueue *queue) {
  return queue->paused;
}

MsaJob *msa_queue_get_running(MsaQueue *queue) {
  return queue->running;
}

double msa_queue_get_seconds_left(MsaQueue *queue) {
  return queue->seconds_left;
}

void msa_queue_pause_job(MsaQueue *self, MsaJob *job) {
  MSA_ASSERT_MAIN();
  if (job == self->running) {
    msa_queue_stop_running(self, WISH_PAUSE);
  } else if (msa_job_get_state(job) == MSA_JOB_QUEUED) {
    msa_job_set_state(job, MSA_JOB_PAUSED, NULL);
    msa_store_set_job_state(self->store, msa_job_get_id(job), MSA_JOB_PAUSED, NULL);
  }
  msa_queue_update_time(self);
}

void msa_queue_resume_job(MsaQueue *self, MsaJob *job) {
  MSA_ASSERT_MAIN();
  if (job == self->running && self->wish == WISH_PAUSE) {
    self->wish = WISH_RESUME;
  } else if (msa_job_get_state(job) == MSA_JOB_PAUSED) {
    queue_again(self, job);
    msa_queue_relist(self, job, head(self));
    if (self->paused_by_itself) /* it waited for nothing but this */
      msa_queue_set_paused(self, FALSE);
    msa_queue_update_time(self);
    msa_queue_start_next(self);
  }
}

void msa_queue_retry_job(MsaQueue *self, MsaJob *job) {
  MSA_ASSERT_MAIN();
  if (msa_job_get_state(job) != MSA_JOB_FAILED || !find_job(self, job, NULL))
    return;
  queue_again(self, job);
  if (self->paused_by_itself) {
    msa_queue_relist(self, job, head(self));
    msa_queue_set_paused(self, FALSE);
  }
  msa_queue_update_time(self);
  msa_queue_start_next(self);
}

void msa_queue_cancel_job(MsaQueue *self, MsaJob *job) {
  g_autoptr(MsaJob) keep = g_object_ref(job);
  MSA_ASSERT_MAIN();
  if (job == self->running) {
    msa_queue_stop_running(self, WISH_CANCEL);
  } else if (find_job(self, job, NULL)) {
    msa_queue_cancel_now(self, job);
  } else if (msa_job_get_state(job) == MSA_JOB_QUEUED) { /* on its way into the store */
    msa_job_set_state(job, MSA_JOB_CANCELLED, NULL);
    msa_queue_tell_ended(self, job);
  }
  msa_queue_update_time(self);
}

void msa_queue_take_job(MsaQueue *self, MsaJob *job) {
  MSA_ASSERT_MAIN();
  if (!msa_job_get_generate(job))
    return;
  if (job == self->running && self->wish != WISH_CANCEL) {
    atomic_store(&self->task->take, 1);
    msa_job_set_state(job, MSA_JOB_STOPPING, NULL);
  } else if (msa_job_get_state(job) == MSA_JOB_PAUSED && find_job(self, job, NULL)) {
    g_set_object(&self->taken, job);
    msa_queue_start_next(self);
  }
}

void msa_queue_move_job(MsaQueue *self, MsaJob *job, guint position) {
  guint waiting = 0, last = 0, from;
  MSA_ASSERT_MAIN();
  if (!find_job(self, job, &from) || job == self->running)
    return;
  /* the place of the waiting job that is there now; the job itself does not count */
  for (guint i = 0; i < self->jobs->len; i++) {
    MsaJob *other = self->jobs->pdata[i];
    if (other == job || other == self->running)
      continue;
    if (msa_job_get_state(other) != MSA_JOB_QUEUED)
      continue;
    if (waiting++ == position) {
      msa_queue_relist(self, job, i > from ? i - 1 : i);
      return;
    }
    last = i;
  }
  if (waiting)
    msa_queue_relist(self, job, last > from ? last : last + 1);
}

gboolean msa_queue_edit_job(MsaQueue *self, MsaJob *job, const MsaGenerateParams *params) {
  g_autofree char *json = NULL;
  MSA_ASSERT_MAIN();
  if (msa_job_get_state(job) != MSA_JOB_QUEUED || !msa_job_get_generate(job) || !find_job(self, job, NULL))
    return FALSE;
  json = msa_generate_params_to_json(params);
  msa_job_set_generate(job, params);
  msa_queue_forecast(self, job);
  msa_store_set_job_params(self->store, msa_job_get_id(job), json);
  msa_queue_update_time(self);
  return TRUE;
}

/* Setting up and closing. */

static MsaJob *job_of_row(const struct msa_job_row *row) {
  g_autoptr(MsaGenerateParams) generate = NULL;
  g_autoptr(MsaTrainParams) train = NULL;
  g_autoptr(GError) error = NULL;
  if (row->kind == MSA_JOB_TRAIN)
    train = msa_train_params_from_json(row->params, &error);
  else
    generate = msa_generate_params_from_json(row->params, &error);
  /* settings that this version cannot read: the job can be seen and cancelled */
  if (!train && !generate) {
    generate = msa_generate_params_new();
    generate->prompt = g_strdup("");
  }
  MsaJob *job = msa_job_new(row->id, generate, train);
  const gboolean known =
      row->state == MSA_JOB_QUEUED || row->state == MSA_JOB_PAUSED || row->state == MSA_JOB_FAILED;
  if (error)
    msa_job_set_state(job, MSA_JOB_FAILED, error->message);
  else
    msa_job_set_state(job, known ? row->state : MSA_JOB_PAUSED, row->error);
  msa_job_set_fraction(job, row->fraction);
  return job;
}

void msa_queue_fill(MsaQueue *self, GPtrArray *rows) {
  gboolean unfinished = FALSE;
  MSA_ASSERT_MAIN();
  for (guint i = 0; i < rows->len; i++) {
    const struct msa_job_row *row = rows->pdata[i];
    MsaJob *job = job_of_row(row);
    MsaRun *run = row->kind == MSA_JOB_TRAIN ? msa_queue_find_run(self, row->id) : NULL;
    if (run)
      msa_run_set_job(run, job);
    if (row->interrupted)
      g_ptr_array_add(self->interrupted, job);
    unfinished = unfinished || row->interrupted || row->state == MSA_JOB_QUEUED;
    g_ptr_array_add(self->jobs, job);
    self->last_id = MAX(self->last_id, row->id);
  }
  g_list_model_items_changed(G_LIST_MODEL(self), 0, 0, rows->len);
  self->open = TRUE;
  if (unfinished)
    msa_queue_halt(self);
  msa_queue_forecast_all(self);
  msa_queue_start_next(self);
}

void msa_queue_close(MsaQueue *self, void (*done)(gpointer data), gpointer data) {
  MSA_ASSERT_MAIN();
  self->closing = TRUE;
  if (!self->running) {
    done(data);
    return;
  }
  self->closed = done;
  self->closed_data = data;
  msa_queue_stop_running(self, self->wish == WISH_CANCEL ? WISH_CANCEL : WISH_CLOSE);
}
