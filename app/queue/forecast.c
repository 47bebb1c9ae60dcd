/* How long waiting jobs and the whole queue will take. */
#include "core/rooms.h"
#include "queue/estimate.h"
#include "queue/job-private.h"
#include "queue/queue-self.h"

static double by_experience(MsaQueue *self, MsaJob *job) {
  return msa_job_get_train(job)
             ? msa_estimate_train(G_LIST_MODEL(self->runs), msa_job_get_train(job))
             : msa_estimate_generate(self->library, self->models, msa_job_get_generate(job));
}

struct asking {
  MsaQueue *queue;
  MsaJob *job;
};

/* A plan counts what this job needs; experience stands in where the machine's rates are not known yet. */
static void estimated_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct asking *asking = data;
  const double seconds = msa_planner_estimate_finish(result);
  if (seconds >= 0 && asking->queue->library) {
    msa_job_set_estimate(asking->job, seconds);
    msa_queue_update_time(asking->queue);
  }
  g_object_unref(asking->queue);
  g_object_unref(asking->job);
  g_free(asking);
}

void msa_queue_forecast(MsaQueue *self, MsaJob *job) {
  struct asking *asking = g_new(struct asking, 1);
  *asking = (struct asking){g_object_ref(self), g_object_ref(job)};
  msa_job_set_estimate(job, by_experience(self, job));
  msa_planner_estimate_async(self->planner, msa_job_get_generate(job), msa_job_get_train(job), estimated_cb,
                             asking);
}

/* The rates are known, or a model is there. */
void msa_queue_forecast_all(MsaQueue *self) {
  for (guint i = 0; i < self->jobs->len; i++)
    if (self->jobs->pdata[i] != self->running)
      msa_queue_forecast(self, self->jobs->pdata[i]);
  msa_queue_update_time(self);
}

void msa_queue_update_time(MsaQueue *self) {
  double sum = 0;
  gboolean known = TRUE;
  for (guint i = 0; i < self->jobs->len; i++) {
    MsaJob *job = self->jobs->pdata[i];
    const enum msa_job_state state = msa_job_get_state(job);
    if (state != MSA_JOB_QUEUED && state != MSA_JOB_RUNNING && state != MSA_JOB_STOPPING)
      continue;
    known = known && msa_job_get_seconds_left(job) >= 0;
    sum += msa_job_get_seconds_left(job);
  }
  const double left = known ? sum : -1, fraction = self->running ? msa_job_get_fraction(self->running) : 0;
  if (left != self->seconds_left) {
    self->seconds_left = left;
    msa_queue_notify(self, QUEUE_SECONDS_LEFT);
  }
  if (fraction != self->fraction) {
    self->fraction = fraction;
    msa_queue_notify(self, QUEUE_FRACTION);
  }
}
