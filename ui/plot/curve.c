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
  /* steps are mostly even, so most places can be told from the ends; a guess too far is not used */
  gsize last = points->length - 1;
  if (x <= points->x[last] && last - low > 64) {
    double part = (x - points->x[low]) / (points->x[last] - points->x[low]);
    gsize guess = low + (gsize)(part * (double)(last - low));
    if (guess > low + 2 && points->x[guess - 2] < x)
      low = guess - 2;
  }
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

/* Where the line between points i-1 and i crosses x, as pixels from the top; NaN where it is broken. */
static double crossing(const struct msu_plane *plane, const struct msu_points *points, gsize i, double x) {
  if (i == 0 || i >= points->length)
    return NAN;
  double y0 = msu_plane_y(plane, points->y[i - 1]), y1 = msu_plane_y(plane, points->y[i]);
  return y0 + (y1 - y0) * (x - points->x[i - 1]) / (points->x[i] - points->x[i - 1]);
}

struct interval {
  float top, bottom; /* pixels from the top; top > bottom: nothing */
};

/* Points of a slice from which on its ends may move to the pyramid's blocks: by less than a sixteenth of it,
 * and no point is lost, but most of the work is. */
#define CROWDED 256

/* What the line without thickness covers of each of n slices between the plane's edges. */
static void find_slices(struct interval *slices, int n, const struct msu_plane *plane,
                        const struct msu_points *points) {
  double width = (plane->to - plane->from) / n;
  gsize at = msu_points_find(points, plane->from, 0);
  double left = crossing(plane, points, at, plane->from);
  for (int i = 0; i < n; i++) {
    double end_x = plane->from + (i + 1) * width;
    gsize end = msu_points_find(points, end_x, at);
    gboolean crowded = end - at > CROWDED && end < points->length;
    if (crowded)
      end &= ~(gsize)((1 << MSU_PYRAMID_BITS) - 1);
    double right = crowded ? msu_plane_y(plane, points->y[end]) : crossing(plane, points, end, end_x);
    double top = fmin(left, right), bottom = fmax(left, right);
    if (end > at) {
      struct msu_extremes e = msu_pyramid_range(points->pyramid, points->y, at, end);
      double low = plane->log ? e.positive : e.low;
      if (low <= e.high) {
        top = fmin(msu_plane_y(plane, e.high), top);
        bottom = fmax(msu_plane_y(plane, low), bottom);
      }
    }
    slices[i] = isnan(top) ? (struct interval){INFINITY, -INFINITY}
                           : (struct interval){(float)CLAMP(top, -1e6, 1e6), (float)CLAMP(bottom, -1e6, 1e6)};
    at = end;
    left = right;
  }
}

/* A pixel column under construction: how much of each row is covered. */
struct column {
  float *partial, *steps; /* [height + 1]; rows covered in part, and changes of what covers whole rows */
  int first, last;        /* rows touched */
};

static void column_add(struct column *column, int height, float top, float bottom, float weight) {
  top = MAX(top, 0);
  bottom = MIN(bottom, (float)height);
  if (top >= bottom)
    return;
  int first = (int)top, last = MIN((int)bottom, height - 1);
  if (first == last) {
    column->partial[first] += weight * (bottom - top);
  } else {
    column->partial[first] += weight * ((float)first + 1 - top);
    column->partial[last] += weight * (bottom - (float)last);
    column->steps[first + 1] += weight;
    column->steps[last] -= weight;
  }
  column->first = MIN(column->first, first);
  column->last = MAX(column->last, last);
}

/* Blends the column into the image and empties it. shades: the colour by coverage, premultiplied. */
static void column_paint(struct column *column, guint32 *pixel, gsize stride, const guint32 shades[256]) {
  float whole = 0;
  for (int row = column->first; row <= column->last; row++) {
    whole += column->steps[row];
    guint32 shade = shades[(int)(255 * MIN(whole + column->partial[row], 1) + 0.5f)];
    column->steps[row] = column->partial[row] = 0;
    guint32 *at = pixel + (gsize)row * stride;
    if (*at && shade >> 24 < 255) {
      /* two channels at a time; 257 / 65536 is 1 / 255 within what 8 bits show */
      guint32 rest = (255 - (shade >> 24)) * 257;
      guint32 even =
          (guint32)((*at & 0xff) * rest >> 16) | (guint32)((guint64)(*at & 0xff0000) * rest >> 16 & 0xff0000);
      guint32 odd =
          (guint32)((*at >> 8 & 0xff) * rest >> 16) << 8 | (guint32)((guint64)(*at >> 24) * rest >> 16) << 24;
      *at = shade + (even | odd);
    } else {
      *at = shade;
    }
  }
  column->steps[column->last + 1] = 0;
  column->first = G_MAXINT;
  column->last = -1;
}

void msu_curve_draw_line(cairo_surface_t *image, const struct msu_plane *plane,
                         const struct msu_points *points, const double color[4], double thickness) {
  gsize count = msu_points_count(points, plane->from, plane->to);
  /* Slices of a pixel column smooth what is steep; where points crowd there is little to smooth. */
  int slices_a_pixel = count > 2 * (gsize)plane->width ? 2 : 4, n = plane->width * slices_a_pixel;
  float radius = (float)thickness / 2;
  int reach = (int)(radius * (float)slices_a_pixel);
  g_autofree struct interval *slices = g_new(struct interval, n);
  g_autofree float *rows = g_new0(float, 2 * ((gsize)plane->height + 1)), *swell = g_new(float, reach + 1);
  guint32 shades[256];
  for (int i = 0; i < 256; i++) {
    double alpha = color[3] * i;
    shades[i] = (guint32)(alpha + 0.5) << 24 | (guint32)(alpha * color[0] + 0.5) << 16 |
                (guint32)(alpha * color[1] + 0.5) << 8 | (guint32)(alpha * color[2] + 0.5);
  }
  /* The stroke of a pen of this radius is all that is within reach of the line: of the slices beside each
   * one, what the pen's round outline leaves. */
  for (int k = 0; k <= reach; k++) {
    float away = (float)k / (float)slices_a_pixel;
    swell[k] = sqrtf(MAX(radius * radius - away * away, 0));
  }
  find_slices(slices, n, plane, points);
  cairo_surface_flush(image);
  guint32 *pixels = (guint32 *)(void *)cairo_image_surface_get_data(image);
  gsize stride = (gsize)cairo_image_surface_get_stride(image) / 4;
  struct column column = {rows, rows + plane->height + 1, G_MAXINT, -1};
  for (int i = 0; i < n; i++) {
    float top = INFINITY, bottom = -INFINITY;
    for (int k = MAX(i - reach, 0); k <= MIN(i + reach, n - 1); k++) {
      float more = swell[ABS(k - i)];
      top = MIN(top, slices[k].top - more);
      bottom = MAX(bottom, slices[k].bottom + more);
    }
    column_add(&column, plane->height, top, bottom, 1 / (float)slices_a_pixel);
    if (i % slices_a_pixel == slices_a_pixel - 1 && column.last >= 0)
      column_paint(&column, pixels + i / slices_a_pixel, stride, shades);
  }
  cairo_surface_mark_dirty(image);
}

void msu_curve_draw_dots(cairo_t *cr, const struct msu_plane *plane, const struct msu_points *points,
                         const double color[4], double radius) {
  double margin = (plane->to - plane->from) / plane->width;
  gsize first = msu_points_find(points, plane->from - margin, 0),
        end = msu_points_find(points, plane->to + margin, first);
  cairo_set_source_rgba(cr, color[0], color[1], color[2], color[3]);
  for (gsize i = first; i < end; i++) {
    double x = msu_plane_x(plane, points->x[i]), y = msu_plane_y(plane, points->y[i]);
    if (isnan(y))
      continue;
    cairo_new_sub_path(cr);
    cairo_arc(cr, x, y, radius, 0, 2 * G_PI);
  }
  cairo_fill(cr);
}

gsize msu_points_count(const struct msu_points *points, double from, double to) {
  gsize first = msu_points_find(points, from, 0);
  return msu_points_find(points, to, first) - first;
}
