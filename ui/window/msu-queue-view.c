#include "window/msu-queue-view.h"
#include "window/msu-format.h"
#include "window/msu-queue-row.h"
#include <glib/gi18n.h>

struct _MsuQueueView {
  GtkWidget parent_instance;
  GtkLabel *summary;
  GtkButton *pause;
  GtkWidget *interrupted;
  GtkStack *stack;
  GtkListBox *list;
  MsaQueue *queue;
};

G_DEFINE_FINAL_TYPE(MsuQueueView, msu_queue_view, GTK_TYPE_WIDGET)

MsaJob *msu_queue_dup_interrupted(MsaQueue *queue) {
  g_autoptr(MsaJob) first = g_list_model_get_item(G_LIST_MODEL(queue), 0);
  if (!first || !msa_queue_get_paused(queue) || msa_queue_get_running(queue) ||
      msa_job_get_state(first) != MSA_JOB_PAUSED)
    return NULL;
  return g_steal_pointer(&first);
}

static void update(MsuQueueView *self) {
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(self->queue));
  const gboolean paused = msa_queue_get_paused(self->queue);
  const double left = msa_queue_get_seconds_left(self->queue);
  g_autofree char *jobs = g_strdup_printf(ngettext("%u job", "%u jobs", count), count);
  g_autofree char *time = left >= 0 && count ? msu_format_seconds(left) : NULL;
  g_autofree char *summary = NULL;
  if (!count)
    summary = g_strdup(paused ? _("Empty, paused") : _("Empty"));
  else if (time)
    summary = g_strdup_printf(paused ? _("%s, %s left, paused") : _("%s, %s left"), jobs, time);
  else
    summary = g_strdup_printf(paused ? _("%s, paused") : "%s", jobs);
  gtk_label_set_text(self->summary, summary);
  gtk_button_set_label(self->pause, paused ? _("Resume queue") : _("Pause queue"));
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->pause),
                              paused ? _("Start the jobs that wait") : _("Start no further job"));
  gtk_widget_set_visible(GTK_WIDGET(self->pause), count > 0 || paused);
  gtk_stack_set_visible_child_name(self->stack, count ? "jobs" : "empty");
  g_autoptr(MsaJob) interrupted = msu_queue_dup_interrupted(self->queue);
  gtk_widget_set_visible(self->interrupted, interrupted != NULL);
}

static void pause_cb(MsuQueueView *self) {
  msa_queue_set_paused(self->queue, !msa_queue_get_paused(self->queue));
}

static void resume_cb(MsuQueueView *self) {
  g_autoptr(MsaJob) job = msu_queue_dup_interrupted(self->queue);
  if (job)
    msa_queue_resume_job(self->queue, job);
  msa_queue_set_paused(self->queue, FALSE);
}

static GtkWidget *create_row(gpointer item, gpointer data) {
  return msu_queue_row_new(data, item);
}

static void dispose(GObject *object) {
  MsuQueueView *self = MSU_QUEUE_VIEW(object);
  GtkWidget *child;
  if (self->list)
    gtk_list_box_bind_model(self->list, NULL, NULL, NULL, NULL);
  self->list = NULL;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(object))))
    gtk_widget_unparent(child);
  g_clear_object(&self->queue);
  G_OBJECT_CLASS(msu_queue_view_parent_class)->dispose(object);
}

static void msu_queue_view_class_init(MsuQueueViewClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/window/msu-queue-view.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuQueueView, summary);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueView, pause);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueView, interrupted);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueView, stack);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueView, list);
  gtk_widget_class_bind_template_callback(widget_class, pause_cb);
  gtk_widget_class_bind_template_callback(widget_class, resume_cb);
}

static void msu_queue_view_init(MsuQueueView *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
}

GtkWidget *msu_queue_view_new(MsaQueue *queue) {
  MsuQueueView *self = g_object_new(MSU_TYPE_QUEUE_VIEW, NULL);
  self->queue = g_object_ref(queue);
  gtk_list_box_bind_model(self->list, G_LIST_MODEL(queue), create_row, queue, NULL);
  g_signal_connect_object(queue, "items-changed", G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(queue, "notify", G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  update(self);
  return GTK_WIDGET(self);
}
