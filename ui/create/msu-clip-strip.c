#include "create/msu-clip-strip.h"
#include "widgets/msu-moving-picture.h"
#include "window/msu-format.h"
#include <glib/gi18n.h>

#define HEIGHT 68
#define WIDTH 108
#define MOST 100

struct _MsuClipStrip {
  GtkWidget parent_instance;
  GtkWidget *scroller, *box;
  GtkWidget *job_button, *job_picture; /* of the running job */
  MsaQueue *queue;
  MsaJob *running;
  gulong handler;
  guint count;
};

enum { SHOW_CLIP, SHOW_JOB, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuClipStrip, msu_clip_strip, GTK_TYPE_WIDGET)

static void update_visible(MsuClipStrip *self) {
  gtk_widget_set_visible(self->scroller, self->count > 0);
}

static void follow_job(MsuClipStrip *self) {
  msu_moving_picture_set_frames(MSU_MOVING_PICTURE(self->job_picture),
                                self->running ? msa_job_get_preview(self->running) : NULL);
}

static void running_cb(MsuClipStrip *self) {
  MsaJob *running = self->queue ? msa_queue_get_running(self->queue) : NULL;
  if (running && msa_job_get_kind(running) != MSA_JOB_GENERATE)
    running = NULL;
  if (running != self->running) {
    if (self->running)
      g_clear_signal_handler(&self->handler, self->running);
    g_set_object(&self->running, running);
    if (running)
      self->handler = g_signal_connect_swapped(running, "notify::preview", G_CALLBACK(follow_job), self);
  }
  gtk_widget_set_visible(self->job_button, running != NULL);
  follow_job(self);
}

static void job_cb(MsuClipStrip *self) {
  if (self->running)
    g_signal_emit(self, signals[SHOW_JOB], 0, self->running);
}

static void clip_cb(MsuClipStrip *self, GtkButton *button) {
  g_signal_emit(self, signals[SHOW_CLIP], 0, g_object_get_data(G_OBJECT(button), "clip"));
}

static void enter_cb(GtkEventController *controller, double x, double y, MsuMovingPicture *picture) {
  msu_moving_picture_set_playing(picture, TRUE);
}

static void leave_cb(GtkEventController *controller, MsuMovingPicture *picture) {
  msu_moving_picture_set_playing(picture, FALSE);
}

static void focus_cb(GtkEventController *controller, MsuMovingPicture *picture) {
  msu_moving_picture_set_playing(picture, TRUE);
}

static GtkWidget *new_button(GtkWidget **picture) {
  GtkWidget *button = gtk_button_new();
  *picture = msu_moving_picture_new();
  gtk_widget_set_size_request(*picture, WIDTH, HEIGHT);
  gtk_widget_set_overflow(*picture, GTK_OVERFLOW_HIDDEN);
  gtk_button_set_child(GTK_BUTTON(button), *picture);
  gtk_widget_add_css_class(button, "flat");
  gtk_widget_add_css_class(button, "clip");
  return button;
}

/* A thumbnail moves under the pointer or with the focus. */
static void move_when_met(GtkWidget *button, GtkWidget *picture) {
  GtkEventController *motion = gtk_event_controller_motion_new();
  GtkEventController *focus = gtk_event_controller_focus_new();
  msu_moving_picture_set_playing(MSU_MOVING_PICTURE(picture), FALSE);
  g_signal_connect(motion, "enter", G_CALLBACK(enter_cb), picture);
  g_signal_connect(motion, "leave", G_CALLBACK(leave_cb), picture);
  g_signal_connect(focus, "enter", G_CALLBACK(focus_cb), picture);
  g_signal_connect(focus, "leave", G_CALLBACK(leave_cb), picture);
  gtk_widget_add_controller(button, motion);
  gtk_widget_add_controller(button, focus);
}

static void ended_cb(MsuClipStrip *self, MsaJob *job) {
  MsaClip *clip = msa_job_get_clip(job);
  GtkWidget *picture;
  if (!clip || msa_job_get_kind(job) != MSA_JOB_GENERATE)
    return;
  GtkWidget *button = new_button(&picture);
  move_when_met(button, picture);
  msu_moving_picture_load(MSU_MOVING_PICTURE(picture), msa_clip_get_path(clip), 192, 24);
  gtk_widget_set_tooltip_text(button, msa_clip_get_prompt(clip));
  g_autofree char *name = g_strdup_printf(_("Clip: %s"), msa_clip_get_prompt(clip));
  gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, name, -1);
  g_object_set_data_full(G_OBJECT(button), "clip", g_object_ref(clip), g_object_unref);
  g_signal_connect_object(button, "clicked", G_CALLBACK(clip_cb), self, G_CONNECT_SWAPPED);
  gtk_box_insert_child_after(GTK_BOX(self->box), button, self->job_button);
  if (++self->count > MOST) {
    gtk_box_remove(GTK_BOX(self->box), gtk_widget_get_last_child(self->box));
    self->count--;
  }
  update_visible(self);
}

static void dispose(GObject *object) {
  MsuClipStrip *self = MSU_CLIP_STRIP(object);
  g_clear_object(&self->queue);
  if (self->job_button)
    running_cb(self);
  self->job_button = NULL;
  g_clear_pointer(&self->scroller, gtk_widget_unparent);
  G_OBJECT_CLASS(msu_clip_strip_parent_class)->dispose(object);
}

static void msu_clip_strip_class_init(MsuClipStripClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  signals[SHOW_CLIP] = g_signal_new("show-clip", MSU_TYPE_CLIP_STRIP, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                    G_TYPE_NONE, 1, MSA_TYPE_CLIP);
  signals[SHOW_JOB] = g_signal_new("show-job", MSU_TYPE_CLIP_STRIP, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                   G_TYPE_NONE, 1, MSA_TYPE_JOB);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_css_name(widget_class, "clipstrip");
}

static void msu_clip_strip_init(MsuClipStrip *self) {
  self->box = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->box), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                 _("Clips made since the start"), -1);
  self->job_button = new_button(&self->job_picture);
  gtk_widget_add_css_class(self->job_button, "forming");
  gtk_widget_set_tooltip_text(self->job_button, _("Show the clip that is forming"));
  gtk_widget_set_visible(self->job_button, FALSE);
  g_signal_connect_swapped(self->job_button, "clicked", G_CALLBACK(job_cb), self);
  gtk_box_append(GTK_BOX(self->box), self->job_button);
  self->scroller = gtk_scrolled_window_new();
  gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(self->scroller), GTK_POLICY_AUTOMATIC, GTK_POLICY_NEVER);
  gtk_scrolled_window_set_child(GTK_SCROLLED_WINDOW(self->scroller), self->box);
  gtk_widget_set_parent(self->scroller, GTK_WIDGET(self));
  update_visible(self);
}

GtkWidget *msu_clip_strip_new(MsaQueue *queue) {
  MsuClipStrip *self = g_object_new(MSU_TYPE_CLIP_STRIP, NULL);
  self->queue = g_object_ref(queue);
  g_signal_connect_object(queue, "job-ended", G_CALLBACK(ended_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(queue, "notify::running", G_CALLBACK(running_cb), self, G_CONNECT_SWAPPED);
  running_cb(self);
  return GTK_WIDGET(self);
}
