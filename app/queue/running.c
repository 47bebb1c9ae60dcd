/* The job that runs: how it starts, what it tells, how it ends. */
#include "core/main-thread.h"
#include "core/rooms.h"
#include "queue/job-private.h"
#include "queue/queue-self.h"

void msa_queue_forget_task(MsaQueue *self) {
  if (!self->task)
    return;
  msa_mailbox_silence(self->task->mailbox);
  g_clear_pointer(&self->task, msa_task_unref);
}

/* So that the bar is where it was after a crash; one part in a thousand is not seen. */
static void keep_fraction(MsaQueue *self) {
  const double fraction = msa_job_get_fraction(self->running);
  if (fraction < self->kept_fraction + .001)
    return;
  self->kept_fraction = fraction;
  msa_store_add_progress(self->store, msa_job_get_id(self->running), 0, fraction);
}

static gboolean tick_cb(gpointer data) {
  MsaQueue *self = data;
  if (self->running) {
    msa_job_tick(self->running);
    keep_fraction(self);
  }
  msa_queue_update_time(self);
  return G_SOURCE_CONTINUE;
}

static void set_running(MsaQueue *self, MsaJob *job) {
  if (!g_set_object(&self->running, job))
    return;
  g_clear_handle_id(&self->tick_source, g_source_remove);
  if (job)
    self->tick_source = g_timeout_add_seconds(1, tick_cb, self);
  msa_queue_notify(self, QUEUE_RUNNING);
}

/* Done or cancelled. */
static void leave(MsaQueue *self, MsaJob *job, enum msa_job_state state) {
  MsaRun *run = msa_job_get_train(job) ? msa_queue_find_run(self, msa_job_get_id(job)) : NULL;
  msa_job_set_state(job, state, NULL);
  msa_queue_unlist(self, job);
  if (run)
    msa_run_set_job(run, NULL);
  msa_queue_tell_ended(self, job);
}

void msa_queue_cancel_now(MsaQueue *self, MsaJob *job) {
  if (job == self->taken)
    g_clear_object(&self->taken);
  leave(self, job, MSA_JOB_CANCELLED);
  msa_store_remove_job(self->store, msa_job_get_id(job), MSA_JOB_CANCELLED, NULL);
}

static void job_done(MsaQueue *self, MsaJob *job, const struct msa_news *news) {
  if (news->clip) {
    msa_job_set_clip(job, msa_library_insert(self->library, news->clip));
    leave(self, job, MSA_JOB_DONE);
  } else {
    leave(self, job, MSA_JOB_DONE);
    msa_store_remove_job(self->store, msa_job_get_id(job), MSA_JOB_DONE, NULL);
  }
}

static void job_stopped(MsaQueue *self, MsaJob *job, enum wish wish) {
  const gint64 id = msa_job_get_id(job);
  switch (wish) {
  case WISH_CANCEL:
    msa_queue_cancel_now(self, job);
    break;
  case WISH_RESUME:
    msa_job_set_state(job, MSA_JOB_QUEUED, NULL);
    msa_store_set_job_state(self->store, id, MSA_JOB_QUEUED, NULL);
    break;
  case WISH_CLOSE: /* in the store it still runs: the next start finds it interrupted */
    msa_job_set_state(job, MSA_JOB_PAUSED, NULL);
    break;
  default:
    msa_job_set_state(job, MSA_JOB_PAUSED, NULL);
    msa_store_set_job_state(self->store, id, MSA_JOB_PAUSED, NULL);
  }
}

static void job_failed(MsaQueue *self, MsaJob *job, const struct msa_news *news) {
  msa_job_set_state(job, MSA_JOB_FAILED, news->sentence);
  msa_store_set_job_state(self->store, msa_job_get_id(job), MSA_JOB_FAILED, news->sentence);
  if (news->halt) /* or one job after the other would fail */
    msa_queue_halt(self);
  msa_queue_tell_ended(self, job);
}

static void end_running(MsaQueue *self, const struct msa_news *news) {
  g_autoptr(MsaJob) job = g_object_ref(self->running);
  const enum wish wish = self->wish;
  self->wish = WISH_NONE;
  msa_queue_forget_task(self);
  set_running(self, NULL);
  if (news->outcome != MSA_OUTCOME_DONE)
    msa_store_add_progress(self->store, msa_job_get_id(job),
                           (double)(g_get_monotonic_time() - self->started) / G_USEC_PER_SEC,
                           msa_job_get_fraction(job));
  if (news->outcome == MSA_OUTCOME_DONE)
    job_done(self, job, news);
  else if (news->outcome == MSA_OUTCOME_STOPPED)
    job_stopped(self, job, wish);
  else if (wish == WISH_CANCEL)
    msa_queue_cancel_now(self, job);
  else
    job_failed(self, job, news);
  if (self->run)
    msa_run_flush(self->run);
  g_clear_object(&self->run);
  msa_queue_update_time(self);
  if (self->closed) {
    void (*closed)(gpointer) = g_steal_pointer(&self->closed);
    closed(self->closed_data);
    return;
  }
  msa_queue_start_next(self);
}

static void deliver(const struct msa_news *news, gpointer data) {
  MsaQueue *self = data;
  g_object_ref(self);
  msa_job_take_news(self->running, news);
  if (self->run) {
    msa_run_take_news(self->run, news);
    for (guint i = 0; news->samples && i < news->samples->len; i++) {
      const struct msa_news_sample *sample = news->samples->pdata[i];
      msa_library_add_sample(self->library, sample->path, sample->prompt, msa_run_get_name(self->run));
    }
  }
  if (news->outcome != MSA_OUTCOME_NONE)
    end_running(self, news);
  else
    msa_queue_update_time(self);
  g_object_unref(self);
}

static void start(MsaQueue *self, MsaJob *job) {
  const MsaGenerateParams *generate = msa_job_get_generate(job);
  if (generate && generate->seed < 0)
    msa_job_set_seed(job, g_random_int()); /* as wide as the engine's own draw */
  self->run = msa_job_get_train(job) ? msa_queue_find_run(self, msa_job_get_id(job)) : NULL;
  if (self->run)
    g_object_ref(self->run);
  self->wish = WISH_NONE;
  self->task = msa_task_new(msa_job_get_id(job), generate, msa_job_get_train(job),
                            self->run ? msa_run_get_folder(self->run) : NULL, msa_mailbox_new(deliver, self));
  if (job == self->taken) {
    atomic_store(&self->task->take, 1);
    g_clear_object(&self->taken);
  }
  g_ptr_array_remove(self->interrupted, job);
  msa_queue_relist(self, job, 0);
  msa_job_begin(job);
  self->started = g_get_monotonic_time();
  self->kept_fraction = msa_job_get_fraction(job);
  set_running(self, job);
  msa_job_set_state(job, MSA_JOB_RUNNING, NULL);
  msa_engine_run(self->engine, self->task);
  msa_queue_update_time(self);
}

void msa_queue_start_next(MsaQueue *self) {
  if (!self->open || self->closing || self->running)
    return;
  if (self->taken) {
    start(self, self->taken);
    return;
  }
  for (guint i = 0; i < self->jobs->len && !self->paused; i++)
    if (msa_job_get_state(self->jobs->pdata[i]) == MSA_JOB_QUEUED) {
      start(self, self->jobs->pdata[i]);
      return;
    }
}

void msa_queue_stop_running(MsaQueue *self, enum wish wish) {
  self->wish = wish;
  atomic_store(&self->task->cancel, 1);
  msa_job_set_state(self->running, MSA_JOB_STOPPING, NULL);
}
