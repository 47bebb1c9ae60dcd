#include "window/msu-queue-button.h"
#include "window/msu-format.h"
#include "window/msu-queue-view.h"
#include "window/msu-ring.h"
#include <glib/gi18n.h>

struct _MsuQueueButton {
  GtkWidget parent_instance;
  GtkWidget *button, *ring, *label;
  MsaQueue *queue;
  MsaJob *followed;     /* the running job whose time left is shown */
  gulong followed_left; /* its handler */
};

G_DEFINE_FINAL_TYPE(MsuQueueButton, msu_queue_button, GTK_TYPE_WIDGET)

static void follow(MsuQueueButton *self, MsaJob *job);

static guint count_waiting(MsaQueue *queue) {
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(queue));
  guint waiting = 0;
  for (guint i = 0; i < count; i++) {
    g_autoptr(MsaJob) job = g_list_model_get_item(G_LIST_MODEL(queue), i);
    waiting += msa_job_get_state(job) == MSA_JOB_QUEUED;
  }
  return waiting;
}

static void update(MsuQueueButton *self) {
  MsaJob *running = msa_queue_get_running(self->queue);
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(self->queue));
  const guint waiting = count_waiting(self->queue);
  const gboolean paused = msa_queue_get_paused(self->queue);
  follow(self, running);
  g_autofree char *text = NULL;
  g_autofree char *tip = NULL;
  if (running) {
    const double left = msa_job_get_seconds_left(running);
    text = left >= 0 ? msu_format_seconds(left)
                     : g_strdup_printf(_("%.0f %%"), 100 * CLAMP(msa_job_get_fraction(running), 0, 1));
    g_autofree char *place = msu_format_job(running);
    tip = g_strdup_printf(_("Queue: %s"), place);
  } else if (count && (paused || !waiting)) {
    text = g_strdup(_("Paused"));
    tip = g_strdup_printf(ngettext("Queue: paused, %u job", "Queue: paused, %u jobs", count), count);
  } else if (count) {
    text = g_strdup_printf(ngettext("%u waiting", "%u waiting", waiting), waiting);
    tip = g_strdup_printf(ngettext("Queue: %u job waits", "Queue: %u jobs wait", waiting), waiting);
  } else {
    tip = g_strdup(_("Queue: nothing to do"));
  }
  msu_ring_set_fraction(MSU_RING(self->ring), running ? MAX(msa_job_get_fraction(running), 0) : -1);
  msu_ring_set_paused(MSU_RING(self->ring), !running && (paused || (count && !waiting)));
  gtk_widget_set_visible(self->label, text != NULL);
  gtk_label_set_text(GTK_LABEL(self->label), text ? text : "");
  gtk_widget_set_tooltip_text(self->button, tip);
  /* The toggle inside the menu button is what the accessibility bus shows. */
  gtk_accessible_update_property(GTK_ACCESSIBLE(gtk_widget_get_first_child(self->button)),
                                 GTK_ACCESSIBLE_PROPERTY_LABEL, _("Queue"),
                                 GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, tip, -1);
}

static void follow(MsuQueueButton *self, MsaJob *job) {
  if (job == self->followed)
    return;
  if (self->followed)
    g_clear_signal_handler(&self->followed_left, self->followed);
  g_set_object(&self->followed, job);
  if (job)
    self->followed_left = g_signal_connect_swapped(job, "notify::seconds-left", G_CALLBACK(update), self);
}

static void dispose(GObject *object) {
  MsuQueueButton *self = MSU_QUEUE_BUTTON(object);
  if (self->queue)
    follow(self, NULL);
  g_clear_pointer(&self->button, gtk_widget_unparent);
  g_clear_object(&self->queue);
  G_OBJECT_CLASS(msu_queue_button_parent_class)->dispose(object);
}

static void msu_queue_button_class_init(MsuQueueButtonClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
}

static void msu_queue_button_init(MsuQueueButton *self) {
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  self->ring = msu_ring_new();
  self->label = gtk_label_new(NULL);
  gtk_widget_add_css_class(self->label, "numeric");
  gtk_box_append(GTK_BOX(box), self->ring);
  gtk_box_append(GTK_BOX(box), self->label);
  self->button = gtk_menu_button_new();
  gtk_menu_button_set_child(GTK_MENU_BUTTON(self->button), box);
  gtk_widget_add_css_class(self->button, "queue-button");
  gtk_widget_add_css_class(self->button, "flat");
  gtk_widget_set_parent(self->button, GTK_WIDGET(self));
}

GtkWidget *msu_queue_button_new(MsaQueue *queue) {
  MsuQueueButton *self = g_object_new(MSU_TYPE_QUEUE_BUTTON, NULL);
  self->queue = g_object_ref(queue);
  GtkWidget *popover = gtk_popover_new();
  gtk_widget_add_css_class(popover, "queue-popover");
  gtk_popover_set_child(GTK_POPOVER(popover), msu_queue_view_new(queue));
  gtk_menu_button_set_popover(GTK_MENU_BUTTON(self->button), popover);
  g_signal_connect_object(queue, "items-changed", G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(queue, "notify", G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  update(self);
  return GTK_WIDGET(self);
}

void msu_queue_button_open(MsuQueueButton *self) {
  g_return_if_fail(MSU_IS_QUEUE_BUTTON(self));
  gtk_menu_button_popup(GTK_MENU_BUTTON(self->button));
}
