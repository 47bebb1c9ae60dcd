#include "plot/pen.h"

#include <math.h>

gboolean msu_is_dark(const GdkRGBA *text) {
  return 0.3 * text->red + 0.6 * text->green + 0.1 * text->blue > 0.5;
}

GdkRGBA msu_faded(const GdkRGBA *color, double strength) {
  GdkRGBA result = *color;
  result.alpha *= strength;
  return result;
}

static PangoLayout *new_layout(PangoContext *context, gboolean bold) {
  PangoLayout *layout = pango_layout_new(context);
  g_autoptr(PangoAttrList) attributes = pango_attr_list_new();
  pango_attr_list_insert(attributes, pango_attr_font_features_new("tnum=1"));
  pango_attr_list_insert(attributes, pango_attr_scale_new(bold ? 0.93 : 0.86));
  if (bold)
    pango_attr_list_insert(attributes, pango_attr_weight_new(PANGO_WEIGHT_BOLD));
  pango_layout_set_attributes(layout, attributes);
  return layout;
}

void msu_pen_init(struct msu_pen *pen, GtkSnapshot *snapshot, PangoContext *context) {
  pen->snapshot = snapshot;
  pen->plain = new_layout(context, FALSE);
  pen->bold = new_layout(context, TRUE);
}

void msu_pen_clear(struct msu_pen *pen) {
  g_clear_object(&pen->plain);
  g_clear_object(&pen->bold);
}

float msu_pen_text(const struct msu_pen *pen, PangoLayout *layout, const char *text, float x, float y,
                   float anchor_x, float anchor_y, const GdkRGBA *color) {
  int width, height;
  pango_layout_set_text(layout, text, -1);
  pango_layout_get_pixel_size(layout, &width, &height);
  gtk_snapshot_save(pen->snapshot);
  gtk_snapshot_translate(pen->snapshot,
                         &GRAPHENE_POINT_INIT(roundf(x - width * anchor_x), roundf(y - height * anchor_y)));
  gtk_snapshot_append_layout(pen->snapshot, layout, color);
  gtk_snapshot_restore(pen->snapshot);
  return width;
}

void msu_pen_rect(const struct msu_pen *pen, const GdkRGBA *color, float x, float y, float width,
                  float height) {
  gtk_snapshot_append_color(pen->snapshot, color, &GRAPHENE_RECT_INIT(x, y, width, height));
}

void msu_pen_dot(const struct msu_pen *pen, const GdkRGBA *color, float x, float y, float radius) {
  graphene_rect_t square = GRAPHENE_RECT_INIT(x - radius, y - radius, 2 * radius, 2 * radius);
  GskRoundedRect round;
  gsk_rounded_rect_init_from_rect(&round, &square, radius);
  gtk_snapshot_push_rounded_clip(pen->snapshot, &round);
  gtk_snapshot_append_color(pen->snapshot, color, &square);
  gtk_snapshot_pop(pen->snapshot);
}
