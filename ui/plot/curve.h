/* One curve into an image, in device pixels. A line is the extremes of thin slices of the image, thickened by
 * a round pen: the work follows the width of the image, whatever the number of points, and a spike of one
 * point in a million stays. */
#pragma once
#include <cairo.h>
#include "plot/pyramid.h"

/* What of the plane the image shows. */
struct msu_plane {
  double from, to;  /* x at the left and the right edge */
  double low, high; /* y at the bottom and the top; above 0 if log */
  gboolean log;
  int width, height; /* pixels */
  double scale;      /* pixels of a unit of length */
};

struct msu_points {
  const double *x, *y; /* x ascending */
  gsize length;
  const struct msu_pyramid *pyramid; /* of y */
};

/* Pixels from the left, from the top; not clipped. y of something that has no place (NaN, not above 0 on a
 * logarithmic scale) is NaN. */
double msu_plane_x(const struct msu_plane *plane, double x);
double msu_plane_y(const struct msu_plane *plane, double y);

/* The first index whose x is at least `x`, not before `start`. */
gsize msu_points_find(const struct msu_points *points, double x, gsize start);
/* The index nearest to x; points->length must not be 0. */
gsize msu_points_nearest(const struct msu_points *points, double x);
/* Extremes of what a line over the points shows between two x. */
struct msu_extremes msu_points_extremes(const struct msu_points *points, double from, double to);

/* image: CAIRO_FORMAT_ARGB32 of the plane's size; color: red, green, blue, alpha, not premultiplied. */
void msu_curve_draw_line(cairo_surface_t *image, const struct msu_plane *plane,
                         const struct msu_points *points, const double color[4], double thickness);
/* In the plane's pixels; marks at the edges reach over them. Not for more points than pixel columns. */
void msu_curve_draw_dots(cairo_t *cr, const struct msu_plane *plane, const struct msu_points *points,
                         const double color[4], double radius);
/* How many points lie within the plane. */
gsize msu_points_count(const struct msu_points *points, double from, double to);
