#include "msa-run.h"

#include <math.h>
#include <string.h>

#include "core/main-thread.h"
#include "runs/run-private.h"

#define FLUSH_POINTS 200
#define FLUSH_MS 1000
#define LOAD_BLOCK                                                                                           \
  16384 /* points: a few milliseconds of the store's thread, some microseconds of the main one */

/* A curve on its way from the store. */
struct curve {
  MsaRun *run; /* borrowed; NULL: the run is gone */
  MsaSeries *series;
  gboolean loaded;
  GArray *waiting; /* of struct msa_point: came while it was loading */
};

struct _MsaRun {
  GObject parent;
  struct msa_store *store; /* NULL: detached */
  struct msa_run_row *row;
  MsaTrainParams *params;
  MsaJob *job;
  gulong state_handler, left_handler;
  GHashTable *curves; /* name -> struct curve */
  GPtrArray *samples; /* of MsaSample */
  gboolean samples_asked;
  GArray *unwritten; /* of struct msa_point */
  gint64 flushed;    /* when, monotonic */
  guint flush_source;
};

G_DEFINE_FINAL_TYPE(MsaRun, msa_run, G_TYPE_OBJECT)

enum { P_NAME = 1, P_STATE, P_STEP, P_STEPS, P_LOSS, P_SECONDS_LEFT, P_ERROR, P_COUNT };
static GParamSpec *properties[P_COUNT];
enum { SAMPLES_CHANGED, SIGNALS };
static guint signals[SIGNALS];

static void curve_unref(gpointer data) {
  struct curve *curve = data;
  g_clear_object(&curve->series);
  g_clear_pointer(&curve->waiting, g_array_unref);
  curve->run = NULL;
  g_rc_box_release(curve);
}

static void sample_free(gpointer data) {
  MsaSample *sample = data;
  g_free(sample->path);
  g_free(sample->prompt);
  g_free(sample);
}

static void msa_run_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsaRun *self = MSA_RUN(object);
  switch (id) {
  case P_NAME:
    g_value_set_string(value, self->row->name);
    break;
  case P_STATE:
    g_value_set_int(value, self->row->state);
    break;
  case P_STEP:
    g_value_set_int64(value, self->row->step);
    break;
  case P_STEPS:
    g_value_set_int64(value, self->row->steps);
    break;
  case P_LOSS:
    g_value_set_double(value, self->row->loss);
    break;
  case P_SECONDS_LEFT:
    g_value_set_double(value, self->job ? msa_job_get_seconds_left(self->job) : -1);
    break;
  case P_ERROR:
    g_value_set_string(value, self->row->error);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void msa_run_dispose(GObject *object) {
  MsaRun *self = MSA_RUN(object);
  msa_run_set_job(self, NULL);
  msa_run_detach(self);
  G_OBJECT_CLASS(msa_run_parent_class)->dispose(object);
}

static void msa_run_finalize(GObject *object) {
  MsaRun *self = MSA_RUN(object);
  g_hash_table_unref(self->curves);
  g_ptr_array_unref(self->samples);
  g_array_unref(self->unwritten);
  msa_run_row_free(self->row);
  msa_train_params_free(self->params);
  G_OBJECT_CLASS(msa_run_parent_class)->finalize(object);
}

static void msa_run_class_init(MsaRunClass *klass) {
  const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  object_class->get_property = msa_run_get_property;
  object_class->dispose = msa_run_dispose;
  object_class->finalize = msa_run_finalize;
  properties[P_NAME] = g_param_spec_string("name", NULL, NULL, NULL, flags);
  properties[P_STATE] = g_param_spec_int("state", NULL, NULL, 0, MSA_JOB_CANCELLED, 0, flags);
  properties[P_STEP] = g_param_spec_int64("step", NULL, NULL, 0, G_MAXINT64, 0, flags);
  properties[P_STEPS] = g_param_spec_int64("steps", NULL, NULL, 0, G_MAXINT64, 0, flags);
  properties[P_LOSS] = g_param_spec_double("loss", NULL, NULL, -G_MAXDOUBLE, G_MAXDOUBLE, 0, flags);
  properties[P_SECONDS_LEFT] = g_param_spec_double("seconds-left", NULL, NULL, -1, G_MAXDOUBLE, -1, flags);
  properties[P_ERROR] = g_param_spec_string("error", NULL, NULL, NULL, flags);
  g_object_class_install_properties(object_class, P_COUNT, properties);
  signals[SAMPLES_CHANGED] =
      g_signal_new("samples-changed", MSA_TYPE_RUN, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msa_run_init(MsaRun *self) {
  self->curves = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, curve_unref);
  self->samples = g_ptr_array_new_with_free_func(sample_free);
  self->unwritten = g_array_new(FALSE, FALSE, sizeof(struct msa_point));
}

MsaRun *msa_run_new(struct msa_store *store, const struct msa_run_row *row, const MsaTrainParams *params) {
  MsaRun *self = g_object_new(MSA_TYPE_RUN, NULL);
  self->store = store;
  self->row = msa_run_row_copy(row);
  self->params = msa_train_params_copy(params);
  return self;
}

static void notify(MsaRun *self, int property) {
  g_object_notify_by_pspec(G_OBJECT(self), properties[property]);
}

static void set_state(MsaRun *self, enum msa_job_state state, const char *error) {
  if (g_strcmp0(self->row->error, error)) {
    g_free(self->row->error);
    self->row->error = g_strdup(error);
    notify(self, P_ERROR);
  }
  if (self->row->state != state) {
    self->row->state = state;
    notify(self, P_STATE);
  }
}

static void state_cb(MsaJob *job, GParamSpec *spec, MsaRun *self) {
  set_state(self, msa_job_get_state(job), msa_job_get_error(job));
  msa_run_flush(self);
}

static void left_cb(MsaJob *job, GParamSpec *spec, MsaRun *self) {
  notify(self, P_SECONDS_LEFT);
}

void msa_run_set_job(MsaRun *self, MsaJob *job) {
  if (self->job) {
    g_clear_signal_handler(&self->state_handler, self->job);
    g_clear_signal_handler(&self->left_handler, self->job);
    g_clear_object(&self->job);
  }
  if (!job)
    return;
  self->job = g_object_ref(job);
  self->state_handler = g_signal_connect(job, "notify::state", G_CALLBACK(state_cb), self);
  self->left_handler = g_signal_connect(job, "notify::seconds-left", G_CALLBACK(left_cb), self);
  set_state(self, msa_job_get_state(job), msa_job_get_error(job));
}

void msa_run_flush(MsaRun *self) {
  g_clear_handle_id(&self->flush_source, g_source_remove);
  self->flushed = g_get_monotonic_time();
  if (!self->store)
    return;
  if (self->unwritten->len) {
    msa_store_add_points(self->store, self->row->id, self->unwritten);
    g_array_unref(self->unwritten);
    self->unwritten = g_array_new(FALSE, FALSE, sizeof(struct msa_point));
  }
  msa_store_set_run(self->store, self->row);
}

void msa_run_detach(MsaRun *self) {
  GHashTableIter iter;
  struct curve *curve;
  msa_run_flush(self);
  self->store = NULL;
  g_hash_table_iter_init(&iter, self->curves);
  while (g_hash_table_iter_next(&iter, NULL, (gpointer *)&curve))
    curve->run = NULL;
}

static gboolean flush_cb(gpointer data) {
  MsaRun *self = data;
  self->flush_source = 0;
  msa_run_flush(self);
  return G_SOURCE_REMOVE;
}

static void append(struct curve *curve, const GArray *points) {
  g_autoptr(GArray) x = g_array_new(FALSE, FALSE, sizeof(double));
  g_autoptr(GArray) y = g_array_new(FALSE, FALSE, sizeof(double));
  for (guint i = 0; i < points->len; i++) {
    const struct msa_point *point = &g_array_index(points, struct msa_point, i);
    const double step = (double)point->step;
    g_array_append_val(x, step);
    g_array_append_val(y, point->value);
  }
  if (x->len)
    msa_series_append(curve->series, (const double *)(void *)x->data, (const double *)(void *)y->data,
                      x->len);
}

/* Points of the curves that somebody looks at; the others are in the store. */
static void feed_curves(MsaRun *self, const GArray *points) {
  GHashTableIter iter;
  const char *name;
  struct curve *curve;
  g_hash_table_iter_init(&iter, self->curves);
  while (g_hash_table_iter_next(&iter, (gpointer *)&name, (gpointer *)&curve)) {
    g_autoptr(GArray) own = g_array_new(FALSE, FALSE, sizeof(struct msa_point));
    for (guint i = 0; i < points->len; i++)
      if (!strcmp(g_array_index(points, struct msa_point, i).name, name))
        g_array_append_val(own, g_array_index(points, struct msa_point, i));
    if (curve->loaded)
      append(curve, own);
    else
      g_array_append_vals(curve->waiting, own->data, own->len);
  }
}

static void take_points(MsaRun *self, const GArray *points) {
  gint64 step = self->row->step;
  double loss = self->row->loss;
  for (guint i = 0; i < points->len; i++) {
    const struct msa_point *point = &g_array_index(points, struct msa_point, i);
    step = point->step;
    if (!strcmp(point->name, "loss"))
      loss = point->value;
    else if (!strcmp(point->name, "seconds"))
      self->row->seconds += point->value;
  }
  g_array_append_vals(self->unwritten, points->data, points->len);
  feed_curves(self, points);
  if (step != self->row->step) {
    self->row->step = step;
    notify(self, P_STEP);
  }
  if (loss != self->row->loss) { /* NaN differs from all */
    self->row->loss = loss;
    notify(self, P_LOSS);
  }
  /* steps that take longer than the delay are written at once */
  if (self->unwritten->len >= FLUSH_POINTS || g_get_monotonic_time() - self->flushed >= FLUSH_MS * 1000)
    msa_run_flush(self);
  else if (!self->flush_source)
    self->flush_source = g_timeout_add(FLUSH_MS, flush_cb, self);
}

static gint by_step(gconstpointer a, gconstpointer b) {
  const MsaSample *const *x = a, *const *y = b;
  return (*x)->step < (*y)->step ? -1 : (*x)->step > (*y)->step;
}

/* A sample of a step that was repeated takes the old one's place. */
static void put_sample(MsaRun *self, gint64 step, const char *prompt, const char *path) {
  for (guint i = 0; i < self->samples->len; i++) {
    const MsaSample *sample = self->samples->pdata[i];
    if (sample->step == step && !strcmp(sample->prompt, prompt)) {
      g_ptr_array_remove_index(self->samples, i);
      break;
    }
  }
  MsaSample *sample = g_new0(MsaSample, 1);
  *sample = (MsaSample){step, g_strdup(path), g_strdup(prompt)};
  g_ptr_array_add(self->samples, sample);
  g_ptr_array_sort(self->samples, by_step);
}

void msa_run_take_news(MsaRun *self, const struct msa_news *news) {
  MSA_ASSERT_MAIN();
  if (news->points)
    take_points(self, news->points);
  for (guint i = 0; news->samples && i < news->samples->len; i++) {
    const struct msa_news_sample *sample = news->samples->pdata[i];
    put_sample(self, sample->step, sample->prompt, sample->path);
    if (self->store)
      msa_store_add_sample(self->store, self->row->id, sample->step, sample->prompt, sample->path);
  }
  if (news->samples)
    g_signal_emit(self, signals[SAMPLES_CHANGED], 0);
}

static void load_block(struct curve *curve, gint64 after);

/* One block after the other, each through the main loop, so that neither thread is held up. */
static void block_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct curve *curve = data;
  const struct msa_points_block *block = msa_store_read_points_finish(result, NULL);
  if (curve->run && block && block->count) {
    g_object_ref(curve->series);
    msa_series_append(curve->series, block->x, block->y, block->count);
    g_object_unref(curve->series);
  }
  if (curve->run && block && block->count == block->most) {
    load_block(curve, (gint64)block->x[block->count - 1]);
  } else if (curve->run) {
    curve->loaded = TRUE;
    append(curve, curve->waiting);
    g_array_set_size(curve->waiting, 0);
  }
  g_rc_box_release(curve);
}

static void load_block(struct curve *curve, gint64 after) {
  msa_store_read_points_async(curve->run->store, curve->run->row->id, msa_series_get_name(curve->series),
                              after, LOAD_BLOCK, block_cb, g_rc_box_acquire(curve));
}

MsaSeries *msa_run_get_series(MsaRun *self, const char *name) {
  struct curve *curve = g_hash_table_lookup(self->curves, name);
  MSA_ASSERT_MAIN();
  if (curve)
    return curve->series;
  curve = g_rc_box_new0(struct curve);
  curve->run = self;
  curve->series = msa_series_new(name);
  curve->waiting = g_array_new(FALSE, FALSE, sizeof(struct msa_point));
  g_hash_table_insert(self->curves, g_strdup(name), curve);
  if (self->store) {
    msa_run_flush(self); /* so that the store holds all that came so far, and only later points wait */
    load_block(curve, G_MININT64);
  } else {
    curve->loaded = TRUE;
    curve->run = NULL;
  }
  return curve->series;
}

static void samples_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsaRun) self = data;
  g_autoptr(GPtrArray) rows = msa_store_list_samples_finish(result, NULL);
  for (guint i = 0; rows && i < rows->len; i++) {
    const struct msa_sample_row *row = rows->pdata[i];
    put_sample(self, row->step, row->prompt, row->path);
  }
  if (rows && rows->len)
    g_signal_emit(self, signals[SAMPLES_CHANGED], 0);
}

GPtrArray *msa_run_get_samples(MsaRun *self) {
  MSA_ASSERT_MAIN();
  if (!self->samples_asked && self->store)
    msa_store_list_samples_async(self->store, self->row->id, samples_cb, g_object_ref(self));
  self->samples_asked = TRUE;
  return self->samples;
}

struct msa_store *msa_run_get_store(MsaRun *run) {
  return run->store;
}

gint64 msa_run_get_id(MsaRun *run) {
  return run->row->id;
}

const char *msa_run_get_name(MsaRun *run) {
  return run->row->name;
}

const char *msa_run_get_folder(MsaRun *run) {
  return run->row->folder;
}

const MsaTrainParams *msa_run_get_params(MsaRun *run) {
  return run->params;
}

enum msa_job_state msa_run_get_state(MsaRun *run) {
  return run->row->state;
}

MsaJob *msa_run_get_job(MsaRun *run) {
  return run->job;
}

gint64 msa_run_get_step(MsaRun *run) {
  return run->row->step;
}

gint64 msa_run_get_steps(MsaRun *run) {
  return run->row->steps;
}

double msa_run_get_loss(MsaRun *run) {
  return run->row->loss;
}

double msa_run_get_seconds_per_step(MsaRun *run) {
  return run->row->step > 0 && run->row->seconds > 0 ? run->row->seconds / (double)run->row->step : -1;
}
