#include "plot/curve.h"

#include <math.h>

double msu_plane_x(const struct msu_plane *plane, double x) {
  return (x - plane->from) / (plane->to - plane->from) * plane->width;
}

double msu_plane_y(const struct msu_plane *plane, double y) {
  if (!isfinite(y) || (plane->log && y <= 0))
    return NAN;
  double part = plane->log ? log(y / plane->low) / log(plane->high / plane->low)
                           : (y - plane->low) / (plane->high - plane->low);
  return (1 - part) * plane->height;
}

gsize msu_points_find(const struct msu_points *points, double x, gsize start) {
  gsize low = start, step = 1;
  if (low >= points->length || points->x[low] >= x)
    return MIN(low, points->length);
  while (low + step < points->length && points->x[low + step] < x) {
    low += step;
    step *= 2;
  }
  gsize high = MIN(low + step, points->length); /* x[low] < x <= x[high] */
  while (high - low > 1) {
    gsize middle = low + (high - low) / 2;
    if (points->x[middle] < x)
      low = middle;
    else
      high = middle;
  }
  return high;
}

gsize msu_points_nearest(const struct msu_points *points, double x) {
  gsize at = msu_points_find(points, x, 0);
  if (at == points->length)
    return at - 1;
  return at > 0 && x - points->x[at - 1] < points->x[at] - x ? at - 1 : at;
}

struct msu_extremes msu_points_extremes(const struct msu_points *points, double from, double to) {
  gsize first = msu_points_find(points, from, 0), end = msu_points_find(points, to, first);
  /* the line runs on to the next point on either side */
  first = first > 0 ? first - 1 : 0;
  end = MIN(end + 1, points->length);
  return msu_pyramid_range(points->pyramid, points->y, first, end);
}

/* A column's share of the image: premultiplied pixels under `color` by coverage. */
struct painter {
  guint32 *pixels;
  int stride, width, height; /* stride in pixels */
  double red, green, blue, alpha;
};

static void blend(guint32 *pixel, const struct painter *painter, double coverage) {
  double a = painter->alpha * coverage, rest = 1 - a;
  guint32 old = *pixel;
  guint32 alpha = (guint32)(255 * a + rest * (old >> 24) + 0.5);
  guint32 red = (guint32)(255 * a * painter->red + rest * (old >> 16 & 255) + 0.5);
  guint32 green = (guint32)(255 * a * painter->green + rest * (old >> 8 & 255) + 0.5);
  guint32 blue = (guint32)(255 * a * painter->blue + rest * (old & 255) + 0.5);
  *pixel = alpha << 24 | MIN(red, alpha) << 16 | MIN(green, alpha) << 8 | MIN(blue, alpha);
}

/* Integral from minus infinity to t of a step that rises from 0 to 1 over [-soft, soft]. */
static double ramp(double t, double soft) {
  if (t <= -soft)
    return 0;
  if (t >= soft)
    return t;
  return (t + soft) * (t + soft) / (4 * soft);
}

/* Fills rows top .. bottom (not whole numbers) of a column. The ends are soft over what the line rises within
 * the column, at most a pixel and a half, which is what makes a slope look like a stroke and not like stairs.
 */
static void paint_column(const struct painter *painter, int column, double top, double bottom, double soft) {
  soft = CLAMP(soft, 0.02, 1.5) / 2;
  int first = (int)floor(CLAMP(top - soft, 0, painter->height)),
      last = (int)ceil(CLAMP(bottom + soft, 0, painter->height));
  for (int row = first; row < last; row++) {
    double above = ramp(row + 1 - top, soft) - ramp(row - top, soft);
    double below = ramp(row + 1 - bottom, soft) - ramp(row - bottom, soft);
    double coverage = CLAMP(above - below, 0, 1);
    if (coverage > 0)
      blend(&painter->pixels[(gsize)row * painter->stride + column], painter, coverage);
  }
}

/* Where the line between points i-1 and i crosses x, as pixels from the top; NaN where it is broken. */
static double crossing(const struct msu_plane *plane, const struct msu_points *points, gsize i, double x) {
  if (i == 0 || i >= points->length)
    return NAN;
  double y0 = msu_plane_y(plane, points->y[i - 1]), y1 = msu_plane_y(plane, points->y[i]);
  return y0 + (y1 - y0) * (x - points->x[i - 1]) / (points->x[i] - points->x[i - 1]);
}

static void draw_columns(cairo_surface_t *image, const struct msu_plane *plane,
                         const struct msu_points *points, const double color[4], double thickness) {
  cairo_surface_flush(image);
  struct painter painter = {
      .pixels = (guint32 *)(void *)cairo_image_surface_get_data(image),
      .stride = cairo_image_surface_get_stride(image) / 4,
      .width = plane->width,
      .height = plane->height,
      .red = color[0],
      .green = color[1],
      .blue = color[2],
      .alpha = color[3],
  };
  double column_width = (plane->to - plane->from) / plane->width;
  gsize at = msu_points_find(points, plane->from, 0);
  double left = crossing(plane, points, at, plane->from);
  for (int c = 0; c < plane->width; c++) {
    double end_x = plane->from + (c + 1) * column_width;
    gsize end = msu_points_find(points, end_x, at);
    double right = crossing(plane, points, end, end_x);
    struct msu_extremes e = msu_pyramid_range(points->pyramid, points->y, at, end);
    /* the plane's y runs downwards */
    double top = fmin(left, right), bottom = fmax(left, right);
    double low = plane->log ? e.positive : e.low;
    if (low <= e.high) {
      top = fmin(msu_plane_y(plane, e.high), top);
      bottom = fmax(msu_plane_y(plane, low), bottom);
    }
    if (!isnan(top) && !isnan(bottom))
      paint_column(&painter, c, top - thickness / 2, bottom + thickness / 2, bottom - top);
    at = end;
    left = right;
  }
  cairo_surface_mark_dirty(image);
}

static void draw_stroke(cairo_surface_t *image, const struct msu_plane *plane,
                        const struct msu_points *points, gsize first, gsize end, const double color[4],
                        double thickness) {
  cairo_t *cr = cairo_create(image);
  cairo_set_source_rgba(cr, color[0], color[1], color[2], color[3]);
  cairo_set_line_width(cr, thickness);
  cairo_set_line_join(cr, CAIRO_LINE_JOIN_ROUND);
  cairo_set_line_cap(cr, CAIRO_LINE_CAP_ROUND);
  gboolean open = FALSE;
  for (gsize i = first; i < end; i++) {
    double x = msu_plane_x(plane, points->x[i]), y = msu_plane_y(plane, points->y[i]);
    if (isnan(y)) {
      open = FALSE;
      continue;
    }
    /* cairo's numbers end at 8 million */
    y = CLAMP(y, -1e5, 1e5);
    x = CLAMP(x, -1e5, 1e5);
    if (open) {
      cairo_line_to(cr, x, y);
    } else {
      cairo_move_to(cr, x, y);
      cairo_line_to(cr, x, y); /* a point alone is a dot, by the round caps */
    }
    open = TRUE;
  }
  cairo_stroke(cr);
  cairo_destroy(cr);
}

void msu_curve_draw_line(cairo_surface_t *image, const struct msu_plane *plane,
                         const struct msu_points *points, const double color[4], double thickness) {
  gsize first = msu_points_find(points, plane->from, 0), end = msu_points_find(points, plane->to, first);
  if (end - first > (gsize)plane->width) {
    draw_columns(image, plane, points, color, thickness);
    return;
  }
  first = first > 0 ? first - 1 : 0;
  end = MIN(end + 1, points->length);
  draw_stroke(image, plane, points, first, end, color, thickness);
}

void msu_curve_draw_dots(cairo_surface_t *image, const struct msu_plane *plane,
                         const struct msu_points *points, const double color[4], double radius) {
  cairo_t *cr = cairo_create(image);
  cairo_set_source_rgba(cr, color[0], color[1], color[2], color[3]);
  double margin = (plane->to - plane->from) / plane->width * radius;
  gsize first = msu_points_find(points, plane->from - margin, 0),
        end = msu_points_find(points, plane->to + margin, first);
  double last_x = -INFINITY, last_y = -INFINITY;
  for (gsize i = first; i < end; i++) {
    double x = msu_plane_x(plane, points->x[i]), y = msu_plane_y(plane, points->y[i]);
    if (isnan(y) || (fabs(x - last_x) < 0.5 && fabs(y - last_y) < 0.5))
      continue;
    last_x = x;
    last_y = y;
    cairo_new_sub_path(cr);
    cairo_arc(cr, x, y, radius, 0, 2 * G_PI);
  }
  cairo_fill(cr);
  cairo_destroy(cr);
}
