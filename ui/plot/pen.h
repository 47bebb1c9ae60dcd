/* Text, rectangles and dots of a plot into a snapshot. */
#pragma once
#include <gtk/gtk.h>

struct msu_pen {
  GtkSnapshot *snapshot;     /* borrowed */
  PangoLayout *plain, *bold; /* owned: caption sizes, tabular figures; used again for each text */
};

void msu_pen_init(struct msu_pen *pen, GtkSnapshot *snapshot, PangoContext *context);
void msu_pen_clear(struct msu_pen *pen);
/* layout: pen->plain or pen->bold. anchor_x, anchor_y: 0 .. 1, which part of the text lies at the point.
 * Returns its width. */
float msu_pen_text(const struct msu_pen *pen, PangoLayout *layout, const char *text, float x, float y,
                   float anchor_x, float anchor_y, const GdkRGBA *color);
void msu_pen_rect(const struct msu_pen *pen, const GdkRGBA *color, float x, float y, float width,
                  float height);
void msu_pen_dot(const struct msu_pen *pen, const GdkRGBA *color, float x, float y, float radius);

GdkRGBA msu_faded(const GdkRGBA *color, double strength);
/* Light text lies on a dark ground. */
gboolean msu_is_dark(const GdkRGBA *text);
