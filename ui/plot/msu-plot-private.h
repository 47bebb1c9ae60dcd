/* What the files of a plot share. */
#pragma once
#include "plot/curve.h"
#include "plot/msu-plot.h"
#include "plot/pen.h"

/* Signal "changed" of the axis: what is seen or the crosshair. */
void msu_plot_axis_look_at(MsuPlotAxis *axis, double from, double to); /* within what there is */
/* factor < 1: closer; the point `at` stays where it is. */
void msu_plot_axis_zoom(MsuPlotAxis *axis, double at, double factor);
void msu_plot_axis_pan(MsuPlotAxis *axis, double steps);
gboolean msu_plot_axis_is_whole(MsuPlotAxis *axis);
void msu_plot_axis_set_cross(MsuPlotAxis *axis, double cross); /* NaN: none */
/* What a plot has to show; low > high: nothing (any more). */
void msu_plot_axis_set_extent(MsuPlotAxis *axis, gpointer plot, double low, double high);

struct msu_curve {
  MsaSeries *series; /* owned */
  char *label;       /* owned; NULL: the curve is not named */
  enum msu_curve_kind kind;
  guint color;
  gulong handler;
  struct msu_pyramid pyramid; /* of the series, up to date */
};

/* A plot as it is drawn: everything that goes into the picture. Borrows all. */
struct msu_scene {
  const char *title, *unit;
  GPtrArray *curves; /* of struct msu_curve */
  double limit;      /* NaN: none */
  const char *limit_label;
  gboolean log;
  double from, to, cross;
  double pointer_y; /* of the pointer over this plot; NaN: it is elsewhere */
  int width, height;
  double scale; /* pixels a unit */
  GdkRGBA text;
  PangoContext *pango;
  /* The picture of the curves from the last time, to be used again while `picture_key` is the same. */
  GskRenderNode **picture;
  char **picture_key;
  guint64 serial; /* grows when points or curves change */
};

/* The part of the plot in which the curves are. */
graphene_rect_t msu_scene_area(const struct msu_scene *scene);
#define MSU_SCENE_HEADER 24 /* title and legend */
void msu_scene_draw_header(const struct msu_scene *scene, const struct msu_pen *pen);
void msu_scene_draw_cross(const struct msu_scene *scene, const struct msu_pen *pen,
                          const struct msu_plane *plane, const graphene_rect_t *area);
/* Index of the point under the crosshair, or -1 where none is near. */
gssize msu_scene_point_at(const struct msu_scene *scene, const struct msu_points *points, double cross);
void msu_scene_snapshot(const struct msu_scene *scene, GtkSnapshot *snapshot);
struct msu_points msu_curve_points(const struct msu_curve *curve);
/* Of the palette, chosen to be told apart by everyone (Okabe and Ito 2008), on dark or light ground. */
GdkRGBA msu_palette(guint index, gboolean dark);
