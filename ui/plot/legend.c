/* The head of a plot: title, unit, and its curves with the values at the crosshair or the last ones. */
#include "plot/msu-plot-private.h"

#include <math.h>
#include "plot/ticks.h"

/* Entries: with their values, names alone, or none; in the order in which they get shorter. */
enum legend { LEGEND_VALUES, LEGEND_NAMES, LEGEND_NONE };

/* What a curve's entry says; NULL: it has none. Free it. */
static char *legend_text(const struct msu_scene *scene, const struct msu_curve *curve, enum legend legend) {
  struct msu_points points = msu_curve_points(curve);
  char number[MSU_NUMBER_ROOM];
  if (!curve->label || (points.length == 0 && scene->curves->len > 1))
    return NULL;
  gssize at = isnan(scene->cross) ? (gssize)points.length - 1
                                  : msu_scene_point_at(scene, &points, round(scene->cross));
  gboolean symbol = scene->unit && scene->unit[0] && !scene->unit[1]; /* B, %, s belong to the number */
  const char *value = at < 0 ? "" : msu_number_value(number, points.y[at], symbol ? scene->unit : NULL);
  /* one curve of the plot's own name needs no second one */
  if (scene->curves->len == 1 && g_strcmp0(curve->label, scene->title) == 0)
    return g_strdup(value);
  return legend == LEGEND_VALUES && *value ? g_strdup_printf("%s %s", curve->label, value)
                                           : g_strdup(curve->label);
}

/* From the right edge; only measures unless `draw`. Returns where it begins. */
static float lay_legend(const struct msu_scene *scene, const struct msu_pen *pen, enum legend legend,
                        gboolean draw) {
  float right = scene->width - MSU_PLOT_RIGHT, y = MSU_SCENE_HEADER / 2 - 2;
  for (guint i = scene->curves->len; i > 0; i--) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i - 1);
    g_autofree char *text = legend_text(scene, curve, legend);
    int width;
    if (!text)
      continue;
    pango_layout_set_text(pen->plain, text, -1);
    pango_layout_get_pixel_size(pen->plain, &width, NULL);
    gboolean marked = scene->curves->len > 1 || g_strcmp0(curve->label, scene->title) != 0;
    if (draw) {
      GdkRGBA color = msu_palette(curve->color, msu_is_dark(&scene->text));
      msu_pen_text(pen, pen->plain, text, right, y, 1, 0.5, &scene->text);
      if (curve->kind == MSU_CURVE_RAW)
        color.alpha = 0.45;
      if (marked && curve->kind == MSU_CURVE_DOTS)
        msu_pen_dot(pen, &color, right - width - 9, y, 3.5);
      else if (marked)
        msu_pen_rect(pen, &color, right - width - 15, y - 1, 10, 2);
    }
    right -= width + 30;
  }
  return right + 15;
}

void msu_scene_draw_header(const struct msu_scene *scene, const struct msu_pen *pen) {
  float left = MSU_PLOT_LEFT, y = MSU_SCENE_HEADER / 2 - 2;
  GdkRGBA dim = msu_faded(&scene->text, 0.65);
  left += msu_pen_text(pen, pen->bold, scene->title, left, y, 0, 0.5, &scene->text);
  if (scene->unit && scene->unit[0] && scene->unit[1])
    left += 6 + msu_pen_text(pen, pen->plain, scene->unit, left + 6, y, 0, 0.5, &dim);
  enum legend legend = LEGEND_VALUES;
  while (legend < LEGEND_NONE && lay_legend(scene, pen, legend, FALSE) < left + 12)
    legend++;
  if (legend < LEGEND_NONE)
    lay_legend(scene, pen, legend, TRUE);
}
