#include "msa-job.h"

#include <math.h>
#include <string.h>

#include "core/main-thread.h"
#include "queue/job-private.h"

struct _MsaJob {
  GObject parent;
  gint64 id;
  MsaGenerateParams *generate;
  MsaTrainParams *train;
  enum msa_job_state state;
  const char *phase; /* interned */
  gint64 done, total;
  double fraction;
  double seconds_left; /* as told */
  double told_left;    /* of the last report, at that time */
  gint64 told_at;
  double estimate; /* of the whole job */
  char *error, *skipped;
  MsaFrames *preview;
  MsaClip *clip;
};

G_DEFINE_FINAL_TYPE(MsaJob, msa_job, G_TYPE_OBJECT)

enum {
  P_STATE = 1,
  P_TITLE,
  P_PHASE,
  P_DONE,
  P_TOTAL,
  P_FRACTION,
  P_SECONDS_LEFT,
  P_ERROR,
  P_PREVIEW,
  P_CLIP,
  P_COUNT
};
static GParamSpec *properties[P_COUNT];

static void msa_job_get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsaJob *self = MSA_JOB(object);
  switch (id) {
  case P_STATE:
    g_value_set_int(value, self->state);
    break;
  case P_TITLE:
    g_value_set_string(value, msa_job_get_title(self));
    break;
  case P_PHASE:
    g_value_set_string(value, self->phase);
    break;
  case P_DONE:
    g_value_set_int64(value, self->done);
    break;
  case P_TOTAL:
    g_value_set_int64(value, self->total);
    break;
  case P_FRACTION:
    g_value_set_double(value, self->fraction);
    break;
  case P_SECONDS_LEFT:
    g_value_set_double(value, self->seconds_left);
    break;
  case P_ERROR:
    g_value_set_string(value, self->error);
    break;
  case P_PREVIEW:
    g_value_set_boxed(value, self->preview);
    break;
  case P_CLIP:
    g_value_set_object(value, self->clip);
    break;
  default:
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
  }
}

static void msa_job_finalize(GObject *object) {
  MsaJob *self = MSA_JOB(object);
  msa_generate_params_free(self->generate);
  msa_train_params_free(self->train);
  g_clear_pointer(&self->preview, msa_frames_unref);
  g_clear_object(&self->clip);
  g_free(self->error);
  g_free(self->skipped);
  G_OBJECT_CLASS(msa_job_parent_class)->finalize(object);
}

static void msa_job_class_init(MsaJobClass *klass) {
  const GParamFlags flags = G_PARAM_READABLE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  object_class->get_property = msa_job_get_property;
  object_class->finalize = msa_job_finalize;
  properties[P_STATE] = g_param_spec_int("state", NULL, NULL, 0, MSA_JOB_CANCELLED, 0, flags);
  properties[P_TITLE] = g_param_spec_string("title", NULL, NULL, NULL, flags);
  properties[P_PHASE] = g_param_spec_string("phase", NULL, NULL, NULL, flags);
  properties[P_DONE] = g_param_spec_int64("done", NULL, NULL, 0, G_MAXINT64, 0, flags);
  properties[P_TOTAL] = g_param_spec_int64("total", NULL, NULL, 0, G_MAXINT64, 0, flags);
  properties[P_FRACTION] = g_param_spec_double("fraction", NULL, NULL, 0, 1, 0, flags);
  properties[P_SECONDS_LEFT] = g_param_spec_double("seconds-left", NULL, NULL, -1, G_MAXDOUBLE, -1, flags);
  properties[P_ERROR] = g_param_spec_string("error", NULL, NULL, NULL, flags);
  properties[P_PREVIEW] = g_param_spec_boxed("preview", NULL, NULL, MSA_TYPE_FRAMES, flags);
  properties[P_CLIP] = g_param_spec_object("clip", NULL, NULL, MSA_TYPE_CLIP, flags);
  g_object_class_install_properties(object_class, P_COUNT, properties);
}

static void msa_job_init(MsaJob *self) {
  self->phase = "";
  self->seconds_left = self->told_left = self->estimate = -1;
}

static void notify(MsaJob *self, int property) {
  g_object_notify_by_pspec(G_OBJECT(self), properties[property]);
}

MsaJob *msa_job_new(gint64 id, const MsaGenerateParams *generate, const MsaTrainParams *train) {
  MsaJob *self = g_object_new(MSA_TYPE_JOB, NULL);
  self->id = id;
  self->generate = msa_generate_params_copy(generate);
  self->train = msa_train_params_copy(train);
  return self;
}

void msa_job_set_state(MsaJob *self, enum msa_job_state state, const char *error) {
  MSA_ASSERT_MAIN();
  if (g_strcmp0(self->error, error)) {
    g_free(self->error);
    self->error = g_strdup(error);
    notify(self, P_ERROR);
  }
  if (self->state == state)
    return;
  self->state = state;
  if (state == MSA_JOB_DONE && self->fraction != 1) {
    self->fraction = 1;
    notify(self, P_FRACTION);
  }
  if (state != MSA_JOB_RUNNING && state != MSA_JOB_STOPPING)
    self->told_left = -1;
  msa_job_tick(self);
  notify(self, P_STATE);
}

void msa_job_set_clip(MsaJob *self, MsaClip *clip) {
  if (g_set_object(&self->clip, clip))
    notify(self, P_CLIP);
}

void msa_job_set_generate(MsaJob *self, const MsaGenerateParams *params) {
  msa_generate_params_free(self->generate);
  self->generate = msa_generate_params_copy(params);
  g_clear_pointer(&self->preview, msa_frames_unref);
  self->fraction = 0;
  notify(self, P_TITLE);
  notify(self, P_PREVIEW);
  notify(self, P_FRACTION);
}

void msa_job_set_fraction(MsaJob *self, double fraction) {
  self->fraction = CLAMP(fraction, 0, 1);
  notify(self, P_FRACTION);
}

void msa_job_set_seed(MsaJob *self, gint64 seed) {
  self->generate->seed = seed;
}

static void set_int64(MsaJob *self, gint64 *field, gint64 value, int property) {
  if (*field == value)
    return;
  *field = value;
  notify(self, property);
}

static void set_seconds_left(MsaJob *self, double seconds) {
  if (self->seconds_left == seconds)
    return;
  self->seconds_left = seconds;
  notify(self, P_SECONDS_LEFT);
}

void msa_job_begin(MsaJob *self) {
  self->told_left = -1;
  set_seconds_left(self, -1);
}

/* Between two reports the time left runs down, so that a clock on the screen does not stand still. */
void msa_job_tick(MsaJob *self) {
  double left = self->told_left;
  if (self->state == MSA_JOB_QUEUED && self->estimate >= 0)
    left = self->estimate * (1 - self->fraction);
  else if (left > 0)
    left = MAX(0, left - (double)(g_get_monotonic_time() - self->told_at) / G_USEC_PER_SEC);
  set_seconds_left(self, left);
}

void msa_job_set_estimate(MsaJob *self, double seconds) {
  self->estimate = seconds;
  msa_job_tick(self);
}

double msa_job_get_estimate(MsaJob *job) {
  return job->estimate;
}

/* Of the whole job. A clip's report tells the time that passed and that is left, a training run's the steps.
 * Never goes back: a resumed job continues where its bar was. */
static double fraction_of(const MsaJob *self, const struct msa_news *news) {
  double fraction = 0;
  if (self->train)
    fraction =
        !strcmp(news->phase, "train") && news->total > 0 ? (double)news->done / (double)news->total : 0;
  else if (news->seconds_left >= 0 && news->seconds + news->seconds_left > 0)
    fraction = news->seconds / (news->seconds + news->seconds_left);
  return CLAMP(fraction, self->fraction, 1);
}

void msa_job_take_news(MsaJob *self, const struct msa_news *news) {
  MSA_ASSERT_MAIN();
  g_object_freeze_notify(G_OBJECT(self));
  if (news->progress) {
    const double fraction = fraction_of(self, news);
    if (self->phase != news->phase) {
      self->phase = news->phase;
      notify(self, P_PHASE);
    }
    set_int64(self, &self->done, news->done, P_DONE);
    set_int64(self, &self->total, news->total, P_TOTAL);
    if (fraction != self->fraction) {
      self->fraction = fraction;
      notify(self, P_FRACTION);
    }
    self->told_left = news->seconds_left;
    self->told_at = news->at;
    msa_job_tick(self);
  }
  if (news->preview) {
    g_clear_pointer(&self->preview, msa_frames_unref);
    self->preview = msa_frames_ref(news->preview);
    notify(self, P_PREVIEW);
  }
  if (news->skipped) {
    g_free(self->skipped);
    self->skipped = g_strdup(news->skipped);
  }
  g_object_thaw_notify(G_OBJECT(self));
}

gint64 msa_job_get_id(MsaJob *job) {
  return job->id;
}

enum msa_job_kind msa_job_get_kind(MsaJob *job) {
  return job->train ? MSA_JOB_TRAIN : MSA_JOB_GENERATE;
}

enum msa_job_state msa_job_get_state(MsaJob *job) {
  return job->state;
}

const char *msa_job_get_title(MsaJob *job) {
  const char *title = job->train ? job->train->name : job->generate->prompt;
  return title ? title : "";
}

const char *msa_job_get_phase(MsaJob *job) {
  return job->phase;
}

gint64 msa_job_get_done(MsaJob *job) {
  return job->done;
}

gint64 msa_job_get_total(MsaJob *job) {
  return job->total;
}

double msa_job_get_fraction(MsaJob *job) {
  return job->fraction;
}

double msa_job_get_seconds_left(MsaJob *job) {
  return job->seconds_left;
}

const char *msa_job_get_error(MsaJob *job) {
  return job->error;
}

MsaFrames *msa_job_get_preview(MsaJob *job) {
  return job->preview;
}

MsaClip *msa_job_get_clip(MsaJob *job) {
  return job->clip;
}

const MsaGenerateParams *msa_job_get_generate(MsaJob *job) {
  return job->generate;
}

const MsaTrainParams *msa_job_get_train(MsaJob *job) {
  return job->train;
}

const char *msa_job_get_skipped_words(MsaJob *job) {
  return job->skipped ? job->skipped : "";
}
