#include "window/msu-queue-row.h"
#include "widgets/msu-moving-picture.h"
#include "window/msu-format.h"
#include "window/msu-window-jobs.h"
#include <glib/gi18n.h>

struct _MsuQueueRow {
  GtkListBoxRow parent_instance;
  GtkStack *picture_stack;
  GtkImage *icon;
  GtkLabel *title, *place;
  GtkProgressBar *bar;
  GtkWidget *retry, *edit, *pause, *resume, *cancel;
  GtkWidget *picture;
  MsaQueue *queue;
  MsaJob *job;
};

G_DEFINE_FINAL_TYPE(MsuQueueRow, msu_queue_row, GTK_TYPE_LIST_BOX_ROW)

static void update(MsuQueueRow *self) {
  const enum msa_job_state state = msa_job_get_state(self->job);
  const gboolean generate = msa_job_get_kind(self->job) == MSA_JOB_GENERATE;
  const gboolean works = state == MSA_JOB_RUNNING || state == MSA_JOB_STOPPING;
  gtk_label_set_text(self->title, msa_job_get_title(self->job));
  g_autofree char *place = state == MSA_JOB_FAILED && msa_job_get_error(self->job)
                               ? g_strdup(msa_job_get_error(self->job))
                               : msu_format_job(self->job);
  gtk_label_set_text(self->place, place);
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->place), state == MSA_JOB_FAILED ? place : NULL);
  g_autofree char *name = g_strdup_printf("%s: %s", msa_job_get_title(self->job), place);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  if (state == MSA_JOB_FAILED)
    gtk_widget_add_css_class(GTK_WIDGET(self->place), "error");
  else
    gtk_widget_remove_css_class(GTK_WIDGET(self->place), "error");
  gtk_progress_bar_set_fraction(self->bar, CLAMP(msa_job_get_fraction(self->job), 0, 1));
  gtk_widget_set_visible(GTK_WIDGET(self->bar), works || state == MSA_JOB_PAUSED);
  gtk_widget_set_visible(self->retry, state == MSA_JOB_FAILED);
  gtk_widget_set_visible(self->edit, state == MSA_JOB_QUEUED && generate);
  gtk_widget_set_visible(self->pause, works);
  gtk_widget_set_visible(self->resume, state == MSA_JOB_PAUSED);
  gtk_widget_set_sensitive(self->pause, state == MSA_JOB_RUNNING);
  gtk_widget_set_sensitive(self->cancel, state != MSA_JOB_STOPPING);

  MsaFrames *preview = msa_job_get_preview(self->job);
  msu_moving_picture_set_frames(MSU_MOVING_PICTURE(self->picture), preview);
  gtk_stack_set_visible_child_name(self->picture_stack, preview ? "picture" : "icon");
  gtk_image_set_from_icon_name(self->icon, state == MSA_JOB_FAILED ? "dialog-warning-symbolic"
                                           : generate              ? "msu-clip-symbolic"
                                                                   : "msu-train-symbolic");
}

static void pause_cb(MsuQueueRow *self) {
  msa_queue_pause_job(self->queue, self->job);
}

static void resume_cb(MsuQueueRow *self) {
  msa_queue_resume_job(self->queue, self->job);
  msa_queue_set_paused(self->queue, FALSE);
}

static void retry_cb(MsuQueueRow *self) {
  msa_queue_retry_job(self->queue, self->job);
}

static void cancel_cb(MsuQueueRow *self) {
  msa_queue_cancel_job(self->queue, self->job);
}

static void edit_cb(MsuQueueRow *self) {
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  GtkWidget *popover = gtk_widget_get_ancestor(GTK_WIDGET(self), GTK_TYPE_POPOVER);
  if (popover)
    gtk_popover_popdown(GTK_POPOVER(popover));
  if (window)
    msu_window_edit_job(window, self->job);
}

/* The place of a job among those that wait; G_MAXUINT if it does not wait. */
static guint waiting_place(MsaQueue *queue, MsaJob *wanted) {
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(queue));
  guint place = 0;
  for (guint i = 0; i < count; i++) {
    g_autoptr(MsaJob) job = g_list_model_get_item(G_LIST_MODEL(queue), i);
    if (job == wanted)
      return msa_job_get_state(job) == MSA_JOB_QUEUED ? place : G_MAXUINT;
    place += msa_job_get_state(job) == MSA_JOB_QUEUED;
  }
  return G_MAXUINT;
}

static gboolean move_key_cb(GtkWidget *widget, GVariant *args, gpointer data) {
  MsuQueueRow *self = MSU_QUEUE_ROW(widget);
  const guint place = waiting_place(self->queue, self->job);
  const int by = g_variant_get_int32(args);
  if (place == G_MAXUINT || (by < 0 && place == 0))
    return FALSE;
  msa_queue_move_job(self->queue, self->job, place + by);
  return TRUE;
}

static GdkContentProvider *prepare_cb(MsuQueueRow *self, double x, double y) {
  if (msa_job_get_state(self->job) != MSA_JOB_QUEUED)
    return NULL;
  return gdk_content_provider_new_typed(MSA_TYPE_JOB, self->job);
}

static void begin_cb(MsuQueueRow *self, GdkDrag *drag, GtkDragSource *source) {
  g_autoptr(GdkPaintable) picture = gtk_widget_paintable_new(GTK_WIDGET(self));
  gtk_drag_source_set_icon(source, picture, 20, 20);
  gtk_widget_add_css_class(GTK_WIDGET(self), "dragged");
}

static void end_cb(MsuQueueRow *self) {
  gtk_widget_remove_css_class(GTK_WIDGET(self), "dragged");
}

static gboolean drop_cb(MsuQueueRow *self, const GValue *value, double x, double y) {
  MsaJob *job = g_value_get_object(value);
  const guint place = waiting_place(self->queue, self->job);
  if (!job || job == self->job)
    return FALSE;
  /* Dropped on a job that runs: next. */
  msa_queue_move_job(self->queue, job, place == G_MAXUINT ? 0 : place);
  return TRUE;
}

static void dispose(GObject *object) {
  MsuQueueRow *self = MSU_QUEUE_ROW(object);
  g_clear_object(&self->job);
  g_clear_object(&self->queue);
  G_OBJECT_CLASS(msu_queue_row_parent_class)->dispose(object);
}

static void msu_queue_row_class_init(MsuQueueRowClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/window/msu-queue-row.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, picture_stack);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, icon);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, title);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, place);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, bar);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, retry);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, edit);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, pause);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, resume);
  gtk_widget_class_bind_template_child(widget_class, MsuQueueRow, cancel);
  gtk_widget_class_bind_template_callback(widget_class, pause_cb);
  gtk_widget_class_bind_template_callback(widget_class, resume_cb);
  gtk_widget_class_bind_template_callback(widget_class, retry_cb);
  gtk_widget_class_bind_template_callback(widget_class, cancel_cb);
  gtk_widget_class_bind_template_callback(widget_class, edit_cb);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_Up, GDK_ALT_MASK, move_key_cb, "i", -1);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_Down, GDK_ALT_MASK, move_key_cb, "i", 1);
}

static void msu_queue_row_init(MsuQueueRow *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  self->picture = msu_moving_picture_new();
  gtk_stack_add_named(self->picture_stack, self->picture, "picture");

  GtkDragSource *source = gtk_drag_source_new();
  gtk_drag_source_set_actions(source, GDK_ACTION_MOVE);
  g_signal_connect_swapped(source, "prepare", G_CALLBACK(prepare_cb), self);
  g_signal_connect_swapped(source, "drag-begin", G_CALLBACK(begin_cb), self);
  g_signal_connect_swapped(source, "drag-end", G_CALLBACK(end_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), GTK_EVENT_CONTROLLER(source));
  GtkDropTarget *target = gtk_drop_target_new(MSA_TYPE_JOB, GDK_ACTION_MOVE);
  g_signal_connect_swapped(target, "drop", G_CALLBACK(drop_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), GTK_EVENT_CONTROLLER(target));
}

GtkWidget *msu_queue_row_new(MsaQueue *queue, MsaJob *job) {
  MsuQueueRow *self = g_object_new(MSU_TYPE_QUEUE_ROW, NULL);
  self->queue = g_object_ref(queue);
  self->job = g_object_ref(job);
  g_signal_connect_object(job, "notify", G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  update(self);
  return GTK_WIDGET(self);
}
