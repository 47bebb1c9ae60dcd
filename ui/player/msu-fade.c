#include "player/msu-fade.h"

#define IDLE_MS 2500

struct _MsuFade {
  GObject parent_instance;
  GtkWidget *area, *controls;
  GtkEventController *over, *over_controls, *focus;
  double x, y;
  guint timeout;
};

G_DEFINE_FINAL_TYPE(MsuFade, msu_fade, G_TYPE_OBJECT)

static gboolean in_use(MsuFade *self) {
  return gtk_event_controller_motion_contains_pointer(GTK_EVENT_CONTROLLER_MOTION(self->over_controls)) ||
         gtk_event_controller_focus_contains_focus(GTK_EVENT_CONTROLLER_FOCUS(self->focus));
}

static gboolean idle_cb(gpointer data) {
  MsuFade *self = data;
  if (in_use(self))
    return G_SOURCE_CONTINUE;
  gtk_widget_add_css_class(self->controls, "faded");
  if (gtk_event_controller_motion_contains_pointer(GTK_EVENT_CONTROLLER_MOTION(self->over)))
    gtk_widget_set_cursor_from_name(self->area, "none");
  self->timeout = 0;
  return G_SOURCE_REMOVE;
}

void msu_fade_wake(MsuFade *self) {
  gtk_widget_remove_css_class(self->controls, "faded");
  gtk_widget_set_cursor(self->area, NULL);
  g_clear_handle_id(&self->timeout, g_source_remove);
  self->timeout = g_timeout_add(IDLE_MS, idle_cb, self);
}

static void motion_cb(GtkEventControllerMotion *controller, double x, double y, MsuFade *self) {
  /* A widget that moves under a resting pointer is not a motion. */
  if (x == self->x && y == self->y)
    return;
  self->x = x;
  self->y = y;
  msu_fade_wake(self);
}

static void dispose(GObject *object) {
  MsuFade *self = MSU_FADE(object);
  g_clear_handle_id(&self->timeout, g_source_remove);
  if (self->area) {
    gtk_widget_remove_controller(self->area, self->over);
    gtk_widget_remove_controller(self->controls, self->over_controls);
    gtk_widget_remove_controller(self->controls, self->focus);
  }
  self->area = self->controls = NULL;
  G_OBJECT_CLASS(msu_fade_parent_class)->dispose(object);
}

static void msu_fade_class_init(MsuFadeClass *class) {
  G_OBJECT_CLASS(class)->dispose = dispose;
}

static void msu_fade_init(MsuFade *self) {
}

MsuFade *msu_fade_new(GtkWidget *area, GtkWidget *controls) {
  MsuFade *self = g_object_new(MSU_TYPE_FADE, NULL);
  self->area = area;
  self->controls = controls;
  self->over = gtk_event_controller_motion_new();
  g_signal_connect(self->over, "motion", G_CALLBACK(motion_cb), self);
  gtk_widget_add_controller(area, self->over);
  self->over_controls = gtk_event_controller_motion_new();
  gtk_widget_add_controller(controls, self->over_controls);
  self->focus = gtk_event_controller_focus_new();
  g_signal_connect_swapped(self->focus, "enter", G_CALLBACK(msu_fade_wake), self);
  gtk_widget_add_controller(controls, self->focus);
  return self;
}
