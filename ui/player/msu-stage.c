#include "player/msu-stage.h"

struct _MsuStage {
  GtkWidget parent_instance;
  GdkPaintable *paintable;
  gboolean one_to_one;
  double x, y;             /* how far the picture is moved from the middle */
  double start_x, start_y; /* the same when a drag began */
};

G_DEFINE_FINAL_TYPE(MsuStage, msu_stage, GTK_TYPE_WIDGET)

/* Size of the picture on the widget. */
static void picture_size(MsuStage *self, double *width, double *height) {
  double w = gdk_paintable_get_intrinsic_width(self->paintable);
  double h = gdk_paintable_get_intrinsic_height(self->paintable);
  double own_width = gtk_widget_get_width(GTK_WIDGET(self)),
         own_height = gtk_widget_get_height(GTK_WIDGET(self));
  *width = *height = 0;
  if (w <= 0 || h <= 0)
    return;
  double scale = self->one_to_one ? 1. / gtk_widget_get_scale_factor(GTK_WIDGET(self))
                                  : MIN(own_width / w, own_height / h);
  *width = w * scale;
  *height = h * scale;
}

static void limit(double *offset, double picture, double own) {
  double most = MAX((picture - own) / 2, 0);
  *offset = CLAMP(*offset, -most, most);
}

static void snapshot(GtkWidget *widget, GtkSnapshot *snapshot) {
  MsuStage *self = MSU_STAGE(widget);
  double width, height;
  if (!self->paintable)
    return;
  picture_size(self, &width, &height);
  if (width <= 0 || height <= 0)
    return;
  double own_width = gtk_widget_get_width(widget), own_height = gtk_widget_get_height(widget);
  limit(&self->x, width, own_width);
  limit(&self->y, height, own_height);
  double x = (own_width - width) / 2 + self->x, y = (own_height - height) / 2 + self->y;
  /* On whole pixels, so that one to one stays sharp. */
  if (self->one_to_one) {
    double scale = gtk_widget_get_scale_factor(widget);
    x = (int)(x * scale) / scale;
    y = (int)(y * scale) / scale;
  }
  gtk_snapshot_save(snapshot);
  gtk_snapshot_translate(snapshot, &GRAPHENE_POINT_INIT(x, y));
  gdk_paintable_snapshot(self->paintable, GDK_SNAPSHOT(snapshot), width, height);
  gtk_snapshot_restore(snapshot);
}

static void measure(GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum, int *natural,
                    int *minimum_baseline, int *natural_baseline) {
  MsuStage *self = MSU_STAGE(widget);
  *minimum = *natural = 0;
  if (!self->paintable)
    return;
  int width = gdk_paintable_get_intrinsic_width(self->paintable);
  int height = gdk_paintable_get_intrinsic_height(self->paintable);
  if (width <= 0 || height <= 0)
    return;
  if (orientation == GTK_ORIENTATION_HORIZONTAL)
    *natural = for_size > 0 ? (gint64)width * for_size / height : width;
  else
    *natural = for_size > 0 ? (gint64)height * for_size / width : height;
}

static GtkSizeRequestMode get_request_mode(GtkWidget *widget) {
  return GTK_SIZE_REQUEST_HEIGHT_FOR_WIDTH;
}

static void drag_begin_cb(GtkGestureDrag *gesture, double x, double y, MsuStage *self) {
  if (!self->one_to_one)
    gtk_gesture_set_state(GTK_GESTURE(gesture), GTK_EVENT_SEQUENCE_DENIED);
  self->start_x = self->x;
  self->start_y = self->y;
}

static void drag_update_cb(GtkGestureDrag *gesture, double x, double y, MsuStage *self) {
  self->x = self->start_x + x;
  self->y = self->start_y + y;
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

static void dispose(GObject *object) {
  msu_stage_set_paintable(MSU_STAGE(object), NULL);
  G_OBJECT_CLASS(msu_stage_parent_class)->dispose(object);
}

static void msu_stage_class_init(MsuStageClass *class) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  widget_class->snapshot = snapshot;
  widget_class->measure = measure;
  widget_class->get_request_mode = get_request_mode;
  gtk_widget_class_set_css_name(widget_class, "stage");
  gtk_widget_class_set_accessible_role(widget_class, GTK_ACCESSIBLE_ROLE_IMG);
}

static void msu_stage_init(MsuStage *self) {
  GtkGesture *drag = gtk_gesture_drag_new();
  g_signal_connect(drag, "drag-begin", G_CALLBACK(drag_begin_cb), self);
  g_signal_connect(drag, "drag-update", G_CALLBACK(drag_update_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), GTK_EVENT_CONTROLLER(drag));
  gtk_widget_set_overflow(GTK_WIDGET(self), GTK_OVERFLOW_HIDDEN);
}

void msu_stage_set_paintable(MsuStage *self, GdkPaintable *paintable) {
  if (paintable == self->paintable)
    return;
  if (self->paintable) {
    g_signal_handlers_disconnect_by_func(self->paintable, gtk_widget_queue_draw, self);
    g_signal_handlers_disconnect_by_func(self->paintable, gtk_widget_queue_resize, self);
  }
  g_set_object(&self->paintable, paintable);
  if (paintable) {
    g_signal_connect_swapped(paintable, "invalidate-contents", G_CALLBACK(gtk_widget_queue_draw), self);
    g_signal_connect_swapped(paintable, "invalidate-size", G_CALLBACK(gtk_widget_queue_resize), self);
  }
  gtk_widget_queue_resize(GTK_WIDGET(self));
}

void msu_stage_set_one_to_one(MsuStage *self, gboolean one_to_one) {
  self->one_to_one = one_to_one;
  self->x = self->y = 0;
  gtk_widget_queue_draw(GTK_WIDGET(self));
}
