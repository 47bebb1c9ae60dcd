#include "player/msu-scrubber.h"

#include <glib/gi18n-lib.h>
#include <inttypes.h>

#include "msa-frames.h"
#include "player/msu-stage.h"
#include "player/msu-video-paintable.h"
#include "widgets/msu-frames-texture.h"

/* Of the thumbnails; and how many cover the bar. */
#define SIDE 160
#define MOST 48

struct _MsuScrubber {
  GtkWidget parent_instance;
  GtkAdjustment *adjustment;
  GtkWidget *scale, *popover, *space, *label;
  MsuVideoPaintable *thumbnail;
  char *path;
  gint64 frames;
  double seconds;
  MsaFrames *thumbnails;
  gboolean asked; /* for the thumbnails of this path */
  GCancellable *load;
  double pointer; /* where it is on the scale, < 0: elsewhere */
};

enum { SCRUB, GRABBED, RELEASED, SIGNALS };
static guint signals[SIGNALS];

G_DEFINE_FINAL_TYPE(MsuScrubber, msu_scrubber, GTK_TYPE_WIDGET)

static void forget_thumbnails(MsuScrubber *self) {
  g_cancellable_cancel(self->load);
  g_clear_object(&self->load);
  g_clear_pointer(&self->thumbnails, msa_frames_unref);
  self->asked = FALSE;
  msu_video_paintable_set_texture(self->thumbnail, NULL, -1, 0, 0);
}

static void show_thumbnail(MsuScrubber *self, gint64 frame) {
  const MsaFrames *frames = self->thumbnails;
  if (!frames)
    return;
  /* Thumbnails lie evenly over the clip, so the nearest one stands for the frame. */
  gint64 index = CLAMP(frame * frames->count / MAX(self->frames, 1), 0, frames->count - 1);
  g_autoptr(GdkTexture) texture = msu_frames_texture_new(frames, (int)index);
  msu_video_paintable_set_texture(self->thumbnail, texture, frame, frames->width, frames->height);
}

static void update_popover(MsuScrubber *self) {
  if (self->pointer < 0 || self->frames < 2) {
    gtk_popover_popdown(GTK_POPOVER(self->popover));
    return;
  }
  GdkRectangle range;
  gtk_range_get_range_rect(GTK_RANGE(self->scale), &range);
  double part = CLAMP((self->pointer - range.x) / MAX(range.width, 1), 0, 1);
  gint64 frame = (gint64)(part * (self->frames - 1) + .5);
  double seconds = self->seconds * frame / self->frames;
  g_autofree char *text = g_strdup_printf(_("%.2f s, frame %" PRId64), seconds, frame + 1);
  gtk_label_set_text(GTK_LABEL(self->label), text);
  show_thumbnail(self, frame);
  gtk_popover_set_pointing_to(GTK_POPOVER(self->popover),
                              &(GdkRectangle){(int)self->pointer, range.y + range.height / 2, 1, 1});
  gtk_popover_popup(GTK_POPOVER(self->popover));
}

static void loaded_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuScrubber) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaFrames) frames = msa_frames_load_finish(result, &error);
  if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED))
    return;
  g_clear_object(&self->load);
  if (!frames)
    return;
  self->thumbnails = g_steal_pointer(&frames);
  gtk_widget_set_size_request(self->space, self->thumbnails->width, self->thumbnails->height);
  if (self->pointer >= 0)
    update_popover(self);
}

static void motion_cb(GtkEventControllerMotion *controller, double x, double y, MsuScrubber *self) {
  self->pointer = x;
  if (self->path && !self->asked) {
    self->asked = TRUE;
    self->load = g_cancellable_new();
    msa_frames_load_async(self->path, SIDE, MOST, self->load, loaded_cb, g_object_ref(self));
  }
  update_popover(self);
}

static void leave_cb(GtkEventControllerMotion *controller, MsuScrubber *self) {
  self->pointer = -1;
  update_popover(self);
}

static gboolean change_value_cb(GtkRange *range, GtkScrollType scroll, double value, MsuScrubber *self) {
  gint64 frame = (gint64)CLAMP(value + .5, 0, MAX(self->frames - 1, 0));
  gtk_adjustment_set_value(self->adjustment, frame);
  g_signal_emit(self, signals[SCRUB], 0, frame);
  return GDK_EVENT_STOP;
}

/* The range takes the press for itself, so its end is seen only in the events. */
static gboolean event_cb(GtkEventControllerLegacy *controller, GdkEvent *event, MsuScrubber *self) {
  GdkEventType type = gdk_event_get_event_type(event);
  if (type == GDK_BUTTON_PRESS || type == GDK_TOUCH_BEGIN)
    g_signal_emit(self, signals[GRABBED], 0);
  else if (type == GDK_BUTTON_RELEASE || type == GDK_TOUCH_END || type == GDK_TOUCH_CANCEL)
    g_signal_emit(self, signals[RELEASED], 0);
  return GDK_EVENT_PROPAGATE;
}

static void unmap(GtkWidget *widget) {
  MsuScrubber *self = MSU_SCRUBBER(widget);
  self->pointer = -1;
  gtk_widget_set_visible(self->popover, FALSE);
  GTK_WIDGET_CLASS(msu_scrubber_parent_class)->unmap(widget);
}

static void dispose(GObject *object) {
  MsuScrubber *self = MSU_SCRUBBER(object);
  if (self->thumbnail)
    forget_thumbnails(self);
  g_clear_pointer(&self->popover, gtk_widget_unparent);
  g_clear_pointer(&self->scale, gtk_widget_unparent);
  g_clear_object(&self->thumbnail);
  g_clear_object(&self->adjustment);
  g_clear_pointer(&self->path, g_free);
  G_OBJECT_CLASS(msu_scrubber_parent_class)->dispose(object);
}

static void msu_scrubber_class_init(MsuScrubberClass *class) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  widget_class->unmap = unmap;
  signals[SCRUB] = g_signal_new("scrub", MSU_TYPE_SCRUBBER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, G_TYPE_INT64);
  signals[GRABBED] =
      g_signal_new("grabbed", MSU_TYPE_SCRUBBER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[RELEASED] =
      g_signal_new("released", MSU_TYPE_SCRUBBER, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
}

static void msu_scrubber_init(MsuScrubber *self) {
  GtkWidget *widget = GTK_WIDGET(self);
  self->pointer = -1;
  self->adjustment = g_object_ref_sink(gtk_adjustment_new(0, 0, 1, 1, 10, 0));
  self->scale = gtk_scale_new(GTK_ORIENTATION_HORIZONTAL, self->adjustment);
  gtk_scale_set_draw_value(GTK_SCALE(self->scale), FALSE);
  gtk_widget_set_focus_on_click(self->scale, FALSE);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->scale), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Frame"), -1);
  gtk_widget_set_parent(self->scale, widget);
  g_signal_connect(self->scale, "change-value", G_CALLBACK(change_value_cb), self);

  GtkEventController *motion = gtk_event_controller_motion_new();
  g_signal_connect(motion, "enter", G_CALLBACK(motion_cb), self);
  g_signal_connect(motion, "motion", G_CALLBACK(motion_cb), self);
  g_signal_connect(motion, "leave", G_CALLBACK(leave_cb), self);
  gtk_widget_add_controller(self->scale, motion);
  GtkEventController *events = gtk_event_controller_legacy_new();
  gtk_event_controller_set_propagation_phase(events, GTK_PHASE_CAPTURE);
  g_signal_connect(events, "event", G_CALLBACK(event_cb), self);
  gtk_widget_add_controller(self->scale, events);

  self->thumbnail = msu_video_paintable_new();
  /* Over a box of a fixed size: popovers ask for the height of a width that is not theirs. */
  GtkWidget *stage = g_object_new(MSU_TYPE_STAGE, NULL), *picture = gtk_overlay_new();
  msu_stage_set_paintable(MSU_STAGE(stage), GDK_PAINTABLE(self->thumbnail));
  self->space = gtk_box_new(GTK_ORIENTATION_VERTICAL, 0);
  gtk_overlay_set_child(GTK_OVERLAY(picture), self->space);
  gtk_overlay_add_overlay(GTK_OVERLAY(picture), stage);
  self->label = gtk_label_new(NULL);
  gtk_widget_add_css_class(self->label, "numeric");
  gtk_widget_add_css_class(self->label, "caption");
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 4);
  gtk_box_append(GTK_BOX(box), picture);
  gtk_box_append(GTK_BOX(box), self->label);
  self->popover = gtk_popover_new();
  gtk_widget_add_css_class(self->popover, "player-thumbnail");
  gtk_popover_set_child(GTK_POPOVER(self->popover), box);
  gtk_popover_set_autohide(GTK_POPOVER(self->popover), FALSE);
  gtk_popover_set_position(GTK_POPOVER(self->popover), GTK_POS_TOP);
  gtk_widget_set_can_target(self->popover, FALSE);
  gtk_widget_set_can_focus(self->popover, FALSE);
  gtk_widget_set_parent(self->popover, widget);
}

void msu_scrubber_set_path(MsuScrubber *self, const char *path) {
  forget_thumbnails(self);
  g_free(self->path);
  self->path = g_strdup(path);
  msu_scrubber_set_frames(self, 0, 0);
}

void msu_scrubber_set_frames(MsuScrubber *self, gint64 frames, double seconds) {
  self->frames = frames;
  self->seconds = seconds;
  gtk_adjustment_set_upper(self->adjustment, MAX(frames - 1, 1));
  gtk_widget_set_sensitive(self->scale, frames > 1);
}

void msu_scrubber_set_frame(MsuScrubber *self, gint64 frame) {
  gtk_adjustment_set_value(self->adjustment, frame);
}
