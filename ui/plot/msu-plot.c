#include "plot/msu-plot.h"

#include <glib/gi18n.h>
#include <math.h>
#include "plot/msu-plot-private.h"
#include "plot/ticks.h"

struct _MsuPlot {
  GtkWidget parent;
  char *title, *unit, *limit_label;
  MsuPlotAxis *axis;
  GPtrArray *curves; /* of struct msu_curve */
  double limit;
  gboolean log;
  double pointer_x, pointer_y; /* NaN: elsewhere */
  double drag_from, drag_to;   /* what was seen when the drag began */
  guint64 serial;
  GskRenderNode *picture; /* see struct msu_scene */
  char *picture_key;
};

G_DEFINE_FINAL_TYPE(MsuPlot, msu_plot, GTK_TYPE_WIDGET)

static void curve_free(gpointer data) {
  struct msu_curve *curve = data;
  g_clear_signal_handler(&curve->handler, curve->series);
  g_object_unref(curve->series);
  msu_pyramid_clear(&curve->pyramid);
  g_free(curve->label);
  g_free(curve);
}

struct msu_points msu_curve_points(const struct msu_curve *curve) {
  return (struct msu_points){msa_series_get_x(curve->series), msa_series_get_y(curve->series),
                             msa_series_get_length(curve->series), &curve->pyramid};
}

static struct msu_scene scene_of(MsuPlot *self, int width, int height, double scale, GskRenderNode **picture,
                                 char **picture_key) {
  struct msu_scene scene = {
      .title = self->title,
      .unit = self->unit,
      .curves = self->curves,
      .limit = self->limit,
      .limit_label = self->limit_label,
      .log = self->log,
      .from = msu_plot_axis_get_from(self->axis),
      .to = msu_plot_axis_get_to(self->axis),
      .cross = msu_plot_axis_get_cross(self->axis),
      .pointer_y = NAN,
      .width = width,
      .height = height,
      .scale = scale,
      .pango = gtk_widget_get_pango_context(GTK_WIDGET(self)),
      .picture = picture,
      .picture_key = picture_key,
      .serial = self->serial,
  };
  gtk_style_context_get_color(gtk_widget_get_style_context(GTK_WIDGET(self)), &scene.text);
  return scene;
}

static void msu_plot_snapshot(GtkWidget *widget, GtkSnapshot *snapshot) {
  MsuPlot *self = MSU_PLOT(widget);
  struct msu_scene scene = scene_of(self, gtk_widget_get_width(widget), gtk_widget_get_height(widget),
                                    gtk_widget_get_scale_factor(widget), &self->picture, &self->picture_key);
  if (!isnan(self->pointer_x))
    scene.pointer_y = self->pointer_y;
  msu_scene_snapshot(&scene, snapshot);
}

static void msu_plot_measure(GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum,
                             int *natural, int *minimum_baseline, int *natural_baseline) {
  *minimum = orientation == GTK_ORIENTATION_HORIZONTAL ? 180 : 90;
  *natural = orientation == GTK_ORIENTATION_HORIZONTAL ? 300 : 140;
}

/* For screen readers: the title, how many points there are and the last value of the first curve. */
static void describe(MsuPlot *self) {
  g_autofree char *text = NULL;
  for (guint i = 0; i < self->curves->len && !text; i++) {
    struct msu_points points = msu_curve_points(g_ptr_array_index(self->curves, i));
    char value[MSU_NUMBER_ROOM], step[MSU_NUMBER_ROOM], count[MSU_NUMBER_ROOM];
    if (points.length == 0)
      continue;
    msu_number_value(value, points.y[points.length - 1], self->unit);
    msu_number_whole(step, (gint64)points.x[points.length - 1]);
    msu_number_whole(count, (gint64)points.length);
    /* Translators: name of a graph, its last value, a step number, how many points it has */
    text = g_strdup_printf(_("%s: %s at step %s, %s points"), self->title, value, step, count);
  }
  if (!text)
    text = g_strdup_printf(_("%s: no values yet"), self->title);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self), GTK_ACCESSIBLE_PROPERTY_LABEL, text, -1);
}

static void points_changed(MsuPlot *self) {
  double low = INFINITY, high = -INFINITY;
  for (guint i = 0; i < self->curves->len; i++) {
    struct msu_points points = msu_curve_points(g_ptr_array_index(self->curves, i));
    if (points.length == 0)
      continue;
    low = fmin(low, points.x[0]);
    high = fmax(high, points.x[points.length - 1]);
  }
  self->serial++;
  msu_plot_axis_set_extent(self->axis, self, low, high);
  describe(self);
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

static void series_changed_cb(MsaSeries *series, guint64 first, gpointer data) {
  MsuPlot *self = data;
  for (guint i = 0; i < self->curves->len; i++) {
    struct msu_curve *curve = g_ptr_array_index(self->curves, i);
    /* one handler a curve: each updates its own */
    if (curve->series == series)
      msu_pyramid_update(&curve->pyramid, msa_series_get_y(series), msa_series_get_length(series), first);
  }
  points_changed(self);
}

void msu_plot_add_curve(MsuPlot *plot, MsaSeries *series, const char *label, enum msu_curve_kind kind,
                        guint color) {
  g_return_if_fail(MSU_IS_PLOT(plot) && MSA_IS_SERIES(series));
  struct msu_curve *curve = g_new0(struct msu_curve, 1);
  curve->series = g_object_ref(series);
  curve->label = g_strdup(label);
  curve->kind = kind;
  curve->color = color;
  curve->handler = g_signal_connect(series, "changed", G_CALLBACK(series_changed_cb), plot);
  msu_pyramid_update(&curve->pyramid, msa_series_get_y(series), msa_series_get_length(series), 0);
  g_ptr_array_add(plot->curves, curve);
  points_changed(plot);
}

void msu_plot_clear(MsuPlot *plot) {
  g_return_if_fail(MSU_IS_PLOT(plot));
  g_ptr_array_set_size(plot->curves, 0);
  points_changed(plot);
}

void msu_plot_set_title(MsuPlot *plot, const char *title) {
  g_return_if_fail(MSU_IS_PLOT(plot) && title);
  if (g_strcmp0(plot->title, title) == 0)
    return;
  g_free(plot->title);
  plot->title = g_strdup(title);
  describe(plot);
  gtk_widget_queue_draw(GTK_WIDGET(plot));
}

void msu_plot_set_limit(MsuPlot *plot, double value, const char *label) {
  g_return_if_fail(MSU_IS_PLOT(plot));
  plot->limit = value;
  g_free(plot->limit_label);
  plot->limit_label = g_strdup(label);
  gtk_widget_queue_draw(GTK_WIDGET(plot));
}

void msu_plot_set_log(MsuPlot *plot, gboolean log) {
  g_return_if_fail(MSU_IS_PLOT(plot));
  if (plot->log == log)
    return;
  plot->log = log;
  gtk_widget_queue_draw(GTK_WIDGET(plot));
}

GdkTexture *msu_plot_render(MsuPlot *plot, int width, int height, double scale) {
  g_return_val_if_fail(MSU_IS_PLOT(plot) && width > 0 && height > 0 && scale > 0, NULL);
  g_autoptr(GskRenderNode) picture = NULL;
  g_autofree char *picture_key = NULL;
  struct msu_scene scene = scene_of(plot, width, height, scale, &picture, &picture_key);
  scene.cross = NAN;
  g_autoptr(GtkSnapshot) snapshot = gtk_snapshot_new();
  GdkRGBA ground;
  if (!gtk_style_context_lookup_color(gtk_widget_get_style_context(GTK_WIDGET(plot)), "view_bg_color",
                                      &ground))
    ground = (GdkRGBA){1, 1, 1, 1};
  gtk_snapshot_append_color(snapshot, &ground, &GRAPHENE_RECT_INIT(0, 0, width, height));
  msu_scene_snapshot(&scene, snapshot);
  g_autoptr(GskRenderNode) node = gtk_snapshot_to_node(snapshot);
  cairo_surface_t *image =
      cairo_image_surface_create(CAIRO_FORMAT_ARGB32, (int)(width * scale), (int)(height * scale));
  cairo_t *cr = cairo_create(image);
  cairo_scale(cr, scale, scale);
  gsk_render_node_draw(node, cr);
  cairo_destroy(cr);
  cairo_surface_flush(image);
  int stride = cairo_image_surface_get_stride(image), rows = cairo_image_surface_get_height(image);
  g_autoptr(GBytes) bytes =
      g_bytes_new_with_free_func(cairo_image_surface_get_data(image), (gsize)stride * rows,
                                 (GDestroyNotify)cairo_surface_destroy, image);
  return gdk_memory_texture_new(cairo_image_surface_get_width(image), rows, GDK_MEMORY_DEFAULT, bytes,
                                stride);
}

void msu_plot_get_color(GtkWidget *widget, guint index, GdkRGBA *color) {
  GdkRGBA text;
  gtk_style_context_get_color(gtk_widget_get_style_context(widget), &text);
  *color = msu_palette(index, text.green > 0.5);
}

/* The step under a place in the widget. */
static double step_at(MsuPlot *self, double x) {
  double from = msu_plot_axis_get_from(self->axis), to = msu_plot_axis_get_to(self->axis);
  double width = MAX(gtk_widget_get_width(GTK_WIDGET(self)) - MSU_PLOT_LEFT - MSU_PLOT_RIGHT, 1);
  return from + (x - MSU_PLOT_LEFT) / width * (to - from);
}

static void point_at(MsuPlot *self, double x, double y) {
  struct msu_scene size = {.width = gtk_widget_get_width(GTK_WIDGET(self)),
                           .height = gtk_widget_get_height(GTK_WIDGET(self))};
  graphene_rect_t area = msu_scene_area(&size);
  gboolean inside = x >= area.origin.x - 4 && x <= area.origin.x + area.size.width + 4;
  self->pointer_x = inside ? x : NAN;
  self->pointer_y = y - area.origin.y;
  msu_plot_axis_set_cross(self->axis, inside ? step_at(self, x) : NAN);
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

static void motion_cb(GtkEventControllerMotion *controller, double x, double y, gpointer data) {
  point_at(data, x, y);
}

static void leave_cb(GtkEventControllerMotion *controller, gpointer data) {
  MsuPlot *self = data;
  self->pointer_x = NAN;
  msu_plot_axis_set_cross(self->axis, NAN);
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

static gboolean scroll_cb(GtkEventControllerScroll *controller, double dx, double dy, gpointer data) {
  MsuPlot *self = data;
  double span = msu_plot_axis_get_to(self->axis) - msu_plot_axis_get_from(self->axis);
  gboolean shift =
      gtk_event_controller_get_current_event_state(GTK_EVENT_CONTROLLER(controller)) & GDK_SHIFT_MASK;
  if (msu_plot_axis_is_whole(self->axis) && (shift || dy >= 0))
    return GDK_EVENT_PROPAGATE; /* nothing to do here: the page scrolls */
  if (shift || fabs(dx) > fabs(dy))
    msu_plot_axis_pan(self->axis, span * 0.1 * (shift && dx == 0 ? dy : dx));
  else
    msu_plot_axis_zoom(self->axis,
                       isnan(self->pointer_x) ? step_at(self, 0) + span / 2 : step_at(self, self->pointer_x),
                       exp(0.2 * CLAMP(dy, -4, 4)));
  return GDK_EVENT_STOP;
}

static void drag_begin_cb(GtkGestureDrag *gesture, double x, double y, gpointer data) {
  MsuPlot *self = data;
  self->drag_from = msu_plot_axis_get_from(self->axis);
  self->drag_to = msu_plot_axis_get_to(self->axis);
  gtk_widget_grab_focus(GTK_WIDGET(self));
}

static void drag_update_cb(GtkGestureDrag *gesture, double dx, double dy, gpointer data) {
  MsuPlot *self = data;
  double width = MAX(gtk_widget_get_width(GTK_WIDGET(self)) - MSU_PLOT_LEFT - MSU_PLOT_RIGHT, 1);
  double steps = dx / width * (self->drag_to - self->drag_from), x, y;
  if (msu_plot_axis_is_whole(self->axis))
    return;
  gtk_gesture_set_state(GTK_GESTURE(gesture), GTK_EVENT_SEQUENCE_CLAIMED);
  msu_plot_axis_look_at(self->axis, self->drag_from - steps, self->drag_to - steps);
  if (gtk_gesture_drag_get_start_point(gesture, &x, &y))
    point_at(self, x + dx, y + dy);
}

static void pressed_cb(GtkGestureClick *gesture, int presses, double x, double y, gpointer data) {
  if (presses == 2)
    msu_plot_axis_reset(MSU_PLOT(data)->axis);
}

static gboolean pan_key_cb(GtkWidget *widget, GVariant *args, gpointer data) {
  MsuPlot *self = MSU_PLOT(widget);
  double part = g_variant_get_double(args);
  msu_plot_axis_pan(self->axis,
                    part * (msu_plot_axis_get_to(self->axis) - msu_plot_axis_get_from(self->axis)));
  return GDK_EVENT_STOP;
}

static gboolean zoom_key_cb(GtkWidget *widget, GVariant *args, gpointer data) {
  MsuPlot *self = MSU_PLOT(widget);
  double from = msu_plot_axis_get_from(self->axis), to = msu_plot_axis_get_to(self->axis),
         cross = msu_plot_axis_get_cross(self->axis);
  double factor = g_variant_get_double(args);
  if (factor > 0)
    msu_plot_axis_zoom(self->axis, cross >= from && cross <= to ? cross : (from + to) / 2, factor);
  else
    msu_plot_axis_reset(self->axis);
  return GDK_EVENT_STOP;
}

/* What a screen reader says of the crosshair that keys move. */
static void describe_cross(MsuPlot *self, double cross) {
  char number[MSU_NUMBER_ROOM];
  GString *text = g_string_new(NULL);
  g_string_append_printf(text, _("Step %s"), msu_number_whole(number, (gint64)cross));
  for (guint i = 0; i < self->curves->len; i++) {
    const struct msu_curve *curve = g_ptr_array_index(self->curves, i);
    struct msu_points points = msu_curve_points(curve);
    if (curve->label && points.length > 0)
      g_string_append_printf(
          text, ", %s %s", curve->label,
          msu_number_value(number, points.y[msu_points_nearest(&points, cross)], self->unit));
  }
  gtk_accessible_update_property(GTK_ACCESSIBLE(self), GTK_ACCESSIBLE_PROPERTY_DESCRIPTION, text->str, -1);
  g_string_free(text, TRUE);
}

/* The crosshair without a pointer: one step on, or a pixel where steps are closer than that. */
static gboolean cross_key_cb(GtkWidget *widget, GVariant *args, gpointer data) {
  MsuPlot *self = MSU_PLOT(widget);
  double from = msu_plot_axis_get_from(self->axis), to = msu_plot_axis_get_to(self->axis),
         cross = round(msu_plot_axis_get_cross(self->axis));
  double pixel = (to - from) / MAX(gtk_widget_get_width(widget) - MSU_PLOT_LEFT - MSU_PLOT_RIGHT, 1);
  cross = isnan(cross) ? round(to) : cross + g_variant_get_double(args) * MAX(1, round(4 * pixel));
  cross = CLAMP(cross, ceil(from), floor(to));
  msu_plot_axis_set_cross(self->axis, cross);
  describe_cross(self, cross);
  return GDK_EVENT_STOP;
}

static void msu_plot_dispose(GObject *object) {
  MsuPlot *self = MSU_PLOT(object);
  g_ptr_array_set_size(self->curves, 0);
  if (self->axis)
    msu_plot_axis_set_extent(self->axis, self, INFINITY, -INFINITY);
  g_clear_object(&self->axis);
  g_clear_pointer(&self->picture, gsk_render_node_unref);
  G_OBJECT_CLASS(msu_plot_parent_class)->dispose(object);
}

static void msu_plot_finalize(GObject *object) {
  MsuPlot *self = MSU_PLOT(object);
  g_ptr_array_unref(self->curves);
  g_free(self->title);
  g_free(self->unit);
  g_free(self->limit_label);
  g_free(self->picture_key);
  G_OBJECT_CLASS(msu_plot_parent_class)->finalize(object);
}

static void msu_plot_class_init(MsuPlotClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  object_class->dispose = msu_plot_dispose;
  object_class->finalize = msu_plot_finalize;
  widget_class->snapshot = msu_plot_snapshot;
  widget_class->measure = msu_plot_measure;
  gtk_widget_class_set_css_name(widget_class, "plot");
  gtk_widget_class_set_accessible_role(widget_class, GTK_ACCESSIBLE_ROLE_IMG);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_Left, 0, pan_key_cb, "d", -0.1);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_Right, 0, pan_key_cb, "d", 0.1);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_plus, 0, zoom_key_cb, "d", 0.8);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_equal, 0, zoom_key_cb, "d", 0.8);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_KP_Add, 0, zoom_key_cb, "d", 0.8);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_minus, 0, zoom_key_cb, "d", 1.25);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_KP_Subtract, 0, zoom_key_cb, "d", 1.25);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_Home, 0, zoom_key_cb, "d", 0.0);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_Left, GDK_SHIFT_MASK, cross_key_cb, "d", -1.0);
  gtk_widget_class_add_binding(widget_class, GDK_KEY_Right, GDK_SHIFT_MASK, cross_key_cb, "d", 1.0);
}

static void msu_plot_init(MsuPlot *self) {
  self->curves = g_ptr_array_new_with_free_func(curve_free);
  self->limit = self->pointer_x = self->pointer_y = NAN;
  gtk_widget_set_focusable(GTK_WIDGET(self), TRUE);
  gtk_widget_set_overflow(GTK_WIDGET(self), GTK_OVERFLOW_HIDDEN);

  GtkEventController *motion = gtk_event_controller_motion_new();
  g_signal_connect(motion, "enter", G_CALLBACK(motion_cb), self);
  g_signal_connect(motion, "motion", G_CALLBACK(motion_cb), self);
  g_signal_connect(motion, "leave", G_CALLBACK(leave_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), motion);
  GtkEventController *scroll = gtk_event_controller_scroll_new(GTK_EVENT_CONTROLLER_SCROLL_BOTH_AXES);
  g_signal_connect(scroll, "scroll", G_CALLBACK(scroll_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), scroll);
  GtkGesture *drag = gtk_gesture_drag_new();
  g_signal_connect(drag, "drag-begin", G_CALLBACK(drag_begin_cb), self);
  g_signal_connect(drag, "drag-update", G_CALLBACK(drag_update_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), GTK_EVENT_CONTROLLER(drag));
  GtkGesture *click = gtk_gesture_click_new();
  g_signal_connect(click, "pressed", G_CALLBACK(pressed_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), GTK_EVENT_CONTROLLER(click));
}

GtkWidget *msu_plot_new(const char *title, const char *unit, MsuPlotAxis *axis) {
  g_return_val_if_fail(MSU_IS_PLOT_AXIS(axis), NULL);
  MsuPlot *self = g_object_new(MSU_TYPE_PLOT, NULL);
  self->title = g_strdup(title);
  self->unit = g_strdup(unit);
  self->axis = g_object_ref(axis);
  g_signal_connect_object(axis, "changed", G_CALLBACK(gtk_widget_queue_draw), self, G_CONNECT_SWAPPED);
  describe(self);
  return GTK_WIDGET(self);
}
