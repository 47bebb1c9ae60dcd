#include "window/msu-ring.h"
#include <math.h>

#define SIDE 18
#define LINE 2.5

struct _MsuRing {
  GtkWidget parent_instance;
  double fraction;
  gboolean paused;
};

G_DEFINE_FINAL_TYPE(MsuRing, msu_ring, GTK_TYPE_WIDGET)

static void set_color(cairo_t *cr, const GdkRGBA *color, double strength) {
  cairo_set_source_rgba(cr, color->red, color->green, color->blue, color->alpha * strength);
}

static void snapshot(GtkWidget *widget, GtkSnapshot *snapshot) {
  MsuRing *self = MSU_RING(widget);
  const int width = gtk_widget_get_width(widget), height = gtk_widget_get_height(widget);
  const double radius = MIN(width, height) / 2.0 - LINE / 2 - 0.5;
  if (radius <= 0)
    return;
  GtkStyleContext *style = gtk_widget_get_style_context(widget);
  GdkRGBA text, accent;
  gtk_style_context_get_color(style, &text);
  if (!gtk_style_context_lookup_color(style, "accent_color", &accent))
    accent = text;
  cairo_t *cr = gtk_snapshot_append_cairo(snapshot, &GRAPHENE_RECT_INIT(0, 0, width, height));
  cairo_translate(cr, width / 2.0, height / 2.0);
  cairo_set_line_width(cr, LINE);
  cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
  set_color(cr, &text, self->fraction < 0 ? 0.3 : 0.18);
  cairo_arc(cr, 0, 0, radius, 0, 2 * G_PI);
  cairo_stroke(cr);
  if (self->fraction > 0) {
    set_color(cr, &accent, 1);
    cairo_arc(cr, 0, 0, radius, -G_PI / 2, -G_PI / 2 + 2 * G_PI * self->fraction);
    cairo_stroke(cr);
  }
  if (self->paused) {
    set_color(cr, &text, 0.8);
    cairo_set_line_width(cr, 2);
    for (int side = -1; side <= 1; side += 2) {
      cairo_move_to(cr, side * 2, -2.5);
      cairo_line_to(cr, side * 2, 2.5);
      cairo_stroke(cr);
    }
  }
  cairo_destroy(cr);
}

static void measure(GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum, int *natural,
                    int *minimum_baseline, int *natural_baseline) {
  *minimum = *natural = SIDE;
}

static void msu_ring_class_init(MsuRingClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  widget_class->snapshot = snapshot;
  widget_class->measure = measure;
  gtk_widget_class_set_css_name(widget_class, "ring");
  gtk_widget_class_set_accessible_role(widget_class, GTK_ACCESSIBLE_ROLE_PRESENTATION);
}

static void msu_ring_init(MsuRing *self) {
  self->fraction = -1;
  gtk_widget_set_valign(GTK_WIDGET(self), GTK_ALIGN_CENTER);
}

GtkWidget *msu_ring_new(void) {
  return g_object_new(MSU_TYPE_RING, NULL);
}

void msu_ring_set_fraction(MsuRing *self, double fraction) {
  g_return_if_fail(MSU_IS_RING(self));
  fraction = fraction < 0 ? -1 : fmin(fraction, 1);
  if (fraction == self->fraction)
    return;
  self->fraction = fraction;
  gtk_widget_queue_draw(GTK_WIDGET(self));
}

void msu_ring_set_paused(MsuRing *self, gboolean paused) {
  g_return_if_fail(MSU_IS_RING(self));
  if (paused == self->paused)
    return;
  self->paused = paused;
  gtk_widget_queue_draw(GTK_WIDGET(self));
}
