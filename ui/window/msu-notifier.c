#include "window/msu-notifier.h"
#include "window/msu-settings.h"
#include <glib/gi18n.h>
#include <gtk/gtk.h>

#define LONG_JOB (30 * G_USEC_PER_SEC)

struct _MsuNotifier {
  GObject parent_instance;
  GApplication *application; /* borrowed */
  MsaJob *running;
  gint64 began; /* when `running` was seen first */
};

G_DEFINE_FINAL_TYPE(MsuNotifier, msu_notifier, G_TYPE_OBJECT)

static void running_cb(MsuNotifier *self, GParamSpec *pspec, MsaQueue *queue) {
  MsaJob *running = msa_queue_get_running(queue);
  if (running && g_set_object(&self->running, running))
    self->began = g_get_monotonic_time();
}

static gboolean wanted(void) {
  g_autoptr(GSettings) settings = msu_settings_open();
  return !settings || g_settings_get_boolean(settings, "notifications");
}

static void ended_cb(MsuNotifier *self, MsaJob *job, MsaQueue *queue) {
  const gboolean took_long = job == self->running && g_get_monotonic_time() - self->began > LONG_JOB;
  GtkWindow *window = gtk_application_get_active_window(GTK_APPLICATION(self->application));
  const enum msa_job_state state = msa_job_get_state(job);
  if (job == self->running)
    g_clear_object(&self->running);
  if (!took_long || (state != MSA_JOB_DONE && state != MSA_JOB_FAILED) ||
      (window && gtk_window_is_active(window)) || !wanted())
    return;
  const gboolean train = msa_job_get_kind(job) == MSA_JOB_TRAIN;
  const char *title = state == MSA_JOB_FAILED ? _("A job failed")
                      : train                 ? _("The training run is done")
                                              : _("The clip is ready");
  g_autoptr(GNotification) notification = g_notification_new(title);
  const char *body = state == MSA_JOB_FAILED ? msa_job_get_error(job) : msa_job_get_title(job);
  g_notification_set_body(notification, body ? body : "");
  g_notification_set_default_action_and_target(notification, "app.show", "s", train ? "train" : "create");
  g_autofree char *id = g_strdup_printf("job-%" G_GINT64_FORMAT, msa_job_get_id(job));
  g_application_send_notification(self->application, id, notification);
}

static void dispose(GObject *object) {
  g_clear_object(&MSU_NOTIFIER(object)->running);
  G_OBJECT_CLASS(msu_notifier_parent_class)->dispose(object);
}

static void msu_notifier_class_init(MsuNotifierClass *klass) {
  G_OBJECT_CLASS(klass)->dispose = dispose;
}

static void msu_notifier_init(MsuNotifier *self) {
}

MsuNotifier *msu_notifier_new(GApplication *application, MsaQueue *queue) {
  MsuNotifier *self = g_object_new(MSU_TYPE_NOTIFIER, NULL);
  self->application = application;
  g_signal_connect_object(queue, "notify::running", G_CALLBACK(running_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(queue, "job-ended", G_CALLBACK(ended_cb), self, G_CONNECT_SWAPPED);
  return self;
}
