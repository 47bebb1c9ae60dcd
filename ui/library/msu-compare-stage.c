#include "library/msu-compare-stage.h"

#define GAP 8. /* between the two, in pixels */

struct _MsuCompareStage {
  GtkWidget parent_instance;
  GdkPaintable *paintables[2];
  gboolean wipe, flipped;
  double line; /* share of the width */
};

G_DEFINE_FINAL_TYPE(MsuCompareStage, msu_compare_stage, GTK_TYPE_WIDGET)

static void draw(GtkSnapshot *snapshot, GdkPaintable *paintable, const graphene_rect_t *area) {
  double w = gdk_paintable_get_intrinsic_width(paintable), h = gdk_paintable_get_intrinsic_height(paintable);
  if (w <= 0 || h <= 0)
    return;
  double scale = MIN(area->size.width / w, area->size.height / h);
  double width = w * scale, height = h * scale;
  gtk_snapshot_save(snapshot);
  gtk_snapshot_translate(snapshot, &GRAPHENE_POINT_INIT(area->origin.x + (area->size.width - width) / 2,
                                                        area->origin.y + (area->size.height - height) / 2));
  gdk_paintable_snapshot(paintable, GDK_SNAPSHOT(snapshot), width, height);
  gtk_snapshot_restore(snapshot);
}

static void snapshot(GtkWidget *widget, GtkSnapshot *snapshot) {
  MsuCompareStage *self = MSU_COMPARE_STAGE(widget);
  double width = gtk_widget_get_width(widget), height = gtk_widget_get_height(widget);
  GdkPaintable *left = self->paintables[self->flipped], *right = self->paintables[!self->flipped];
  if (!left || !right || width <= GAP || height <= 0)
    return;
  if (!self->wipe) {
    double half = (width - GAP) / 2;
    draw(snapshot, left, &GRAPHENE_RECT_INIT(0, 0, half, height));
    draw(snapshot, right, &GRAPHENE_RECT_INIT(half + GAP, 0, half, height));
    return;
  }
  const graphene_rect_t whole = GRAPHENE_RECT_INIT(0, 0, width, height);
  double line = width * self->line;
  gtk_snapshot_push_clip(snapshot, &GRAPHENE_RECT_INIT(0, 0, line, height));
  draw(snapshot, left, &whole);
  gtk_snapshot_pop(snapshot);
  gtk_snapshot_push_clip(snapshot, &GRAPHENE_RECT_INIT(line, 0, width - line, height));
  draw(snapshot, right, &whole);
  gtk_snapshot_pop(snapshot);
  /* White between dark edges, so that it is seen over any picture. */
  gtk_snapshot_append_color(snapshot, &(GdkRGBA){0, 0, 0, .5}, &GRAPHENE_RECT_INIT(line - 2, 0, 4, height));
  gtk_snapshot_append_color(snapshot, &(GdkRGBA){1, 1, 1, 1}, &GRAPHENE_RECT_INIT(line - 1, 0, 2, height));
  GskRoundedRect knob;
  graphene_rect_t box = GRAPHENE_RECT_INIT(line - 7, height / 2 - 20, 14, 40);
  gsk_rounded_rect_init_from_rect(&knob, &box, 7);
  gtk_snapshot_push_rounded_clip(snapshot, &knob);
  gtk_snapshot_append_color(snapshot, &(GdkRGBA){1, 1, 1, 1}, &box);
  gtk_snapshot_pop(snapshot);
}

static void move_to(MsuCompareStage *self, double line) {
  self->line = CLAMP(line, 0, 1);
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

static void drag_begin_cb(GtkGestureDrag *gesture, double x, double y, MsuCompareStage *self) {
  if (self->wipe)
    move_to(self, x / MAX(gtk_widget_get_width(GTK_WIDGET(self)), 1));
}

static void drag_update_cb(GtkGestureDrag *gesture, double dx, double dy, MsuCompareStage *self) {
  double x = 0, y = 0;
  if (self->wipe && gtk_gesture_drag_get_start_point(gesture, &x, &y))
    move_to(self, (x + dx) / MAX(gtk_widget_get_width(GTK_WIDGET(self)), 1));
}

static void dispose(GObject *object) {
  msu_compare_stage_set_paintables(MSU_COMPARE_STAGE(object), NULL, NULL);
  G_OBJECT_CLASS(msu_compare_stage_parent_class)->dispose(object);
}

static void msu_compare_stage_class_init(MsuCompareStageClass *class) {
  G_OBJECT_CLASS(class)->dispose = dispose;
  GTK_WIDGET_CLASS(class)->snapshot = snapshot;
  gtk_widget_class_set_css_name(GTK_WIDGET_CLASS(class), "stage");
  gtk_widget_class_set_accessible_role(GTK_WIDGET_CLASS(class), GTK_ACCESSIBLE_ROLE_IMG);
}

static void msu_compare_stage_init(MsuCompareStage *self) {
  self->line = .5;
  GtkGesture *drag = gtk_gesture_drag_new();
  g_signal_connect(drag, "drag-begin", G_CALLBACK(drag_begin_cb), self);
  g_signal_connect(drag, "drag-update", G_CALLBACK(drag_update_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), GTK_EVENT_CONTROLLER(drag));
  gtk_widget_set_overflow(GTK_WIDGET(self), GTK_OVERFLOW_HIDDEN);
}

void msu_compare_stage_set_paintables(MsuCompareStage *self, GdkPaintable *left, GdkPaintable *right) {
  GdkPaintable *both[2] = {left, right};
  for (int i = 0; i < 2; i++) {
    if (self->paintables[i])
      g_signal_handlers_disconnect_by_data(self->paintables[i], self);
    g_set_object(&self->paintables[i], both[i]);
    if (both[i]) {
      g_signal_connect_swapped(both[i], "invalidate-contents", G_CALLBACK(gtk_widget_queue_draw), self);
      g_signal_connect_swapped(both[i], "invalidate-size", G_CALLBACK(gtk_widget_queue_draw), self);
    }
  }
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

void msu_compare_stage_set_wipe(MsuCompareStage *self, gboolean wipe) {
  self->wipe = wipe;
  gtk_widget_set_cursor_from_name(GTK_WIDGET(self), wipe ? "col-resize" : NULL);
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

void msu_compare_stage_set_flipped(MsuCompareStage *self, gboolean flipped) {
  self->flipped = !!flipped;
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

void msu_compare_stage_move(MsuCompareStage *self, double by) {
  move_to(self, self->line + by);
}
