/* The crosshair of a plot: a line, a mark on each curve, and a box of values at the pointer. */
#include "plot/msu-plot-private.h"

#include <glib/gi18n.h>
#include <math.h>
#include "plot/ticks.h"

gssize msu_scene_point_at(const struct msu_scene *scene, const struct msu_points *points, double cross) {
  if (points->length == 0)
    return -1;
  gsize at = msu_points_nearest(points, cross);
  double near = (scene->to - scene->from) / 60;
  return fabs(points->x[at] - cross) <= fmax(near, 1) ? (gssize)at : -1;
}

/* The values at the crosshair, beside it, on the plot that the pointer is over. */
static void draw_box(const struct msu_scene *scene, const struct msu_pen *pen, const graphene_rect_t *area,
                     float x, double cross) {
  gboolean dark = msu_is_dark(&scene->text);
  GString *names = g_string_new(NULL), *values = g_string_new(NULL);
  char number[MSU_NUMBER_ROOM];
  guint rows = 0;
  g_autofree GdkRGBA *colors = g_new(GdkRGBA, scene->curves->len + 1);
  for (guint i = 0; i < scene->curves->len; i++) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i);
    struct msu_points points = msu_curve_points(curve);
    gssize at = msu_scene_point_at(scene, &points, cross);
    if (at < 0 || !curve->label)
      continue;
    g_string_append_printf(names, "%s%s", rows ? "\n" : "", curve->label);
    g_string_append_printf(values, "%s%s", rows ? "\n" : "",
                           msu_number_value(number, points.y[at], scene->unit));
    colors[rows] = msu_palette(curve->color, dark);
    if (curve->kind == MSU_CURVE_RAW)
      colors[rows].alpha = 0.45;
    rows++;
  }
  g_autofree char *step = g_strdup_printf(_("Step %s"), msu_number_whole(number, (gint64)cross));
  int name_width = 0, value_width = 0, height = 0, title_width, title_height;
  pango_layout_set_text(pen->bold, step, -1);
  pango_layout_get_pixel_size(pen->bold, &title_width, &title_height);
  pango_layout_set_text(pen->plain, values->str, -1);
  pango_layout_get_pixel_size(pen->plain, &value_width, NULL);
  pango_layout_set_text(pen->plain, names->str, -1);
  pango_layout_get_pixel_size(pen->plain, &name_width, &height);
  if (!rows)
    height = 0;
  float width = MAX(title_width, rows ? 14 + name_width + 14 + value_width : 0) + 20,
        all = title_height + height + 16;
  float left = x + 14 + width <= area->origin.x + area->size.width ? x + 14 : x - 14 - width;
  left = MAX(left, 2);
  float y = CLAMP(area->origin.y + (float)scene->pointer_y - all / 2, 2, MAX(2, scene->height - all - 2));
  graphene_rect_t box = GRAPHENE_RECT_INIT(roundf(left), roundf(y), width, all);
  GskRoundedRect round;
  gsk_rounded_rect_init_from_rect(&round, &box, 8);
  GdkRGBA ground = dark ? (GdkRGBA){0.2, 0.2, 0.2, 0.96} : (GdkRGBA){1, 1, 1, 0.96}, shade = {0, 0, 0, 0.28},
          edge = msu_faded(&scene->text, 0.15), dim = msu_faded(&scene->text, 0.7);
  gtk_snapshot_append_outset_shadow(pen->snapshot, &round, &shade, 0, 1, 0, 5);
  gtk_snapshot_push_rounded_clip(pen->snapshot, &round);
  gtk_snapshot_append_color(pen->snapshot, &ground, &box);
  gtk_snapshot_pop(pen->snapshot);
  gtk_snapshot_append_border(pen->snapshot, &round, (float[4]){1, 1, 1, 1},
                             (GdkRGBA[4]){edge, edge, edge, edge});
  left = box.origin.x + 10;
  y = box.origin.y + 7;
  msu_pen_text(pen, pen->bold, step, left, y, 0, 0, &scene->text);
  y += title_height + 2;
  if (rows) {
    msu_pen_text(pen, pen->plain, names->str, left + 14, y, 0, 0, &dim);
    pango_layout_set_alignment(pen->plain, PANGO_ALIGN_RIGHT);
    msu_pen_text(pen, pen->plain, values->str, box.origin.x + width - 10, y, 1, 0, &scene->text);
    pango_layout_set_alignment(pen->plain, PANGO_ALIGN_LEFT);
    for (guint i = 0; i < rows; i++)
      msu_pen_dot(pen, &colors[i], left + 4, y + height * (i + 0.5f) / rows, 4);
  }
  g_string_free(names, TRUE);
  g_string_free(values, TRUE);
}

void msu_scene_draw_cross(const struct msu_scene *scene, const struct msu_pen *pen,
                          const struct msu_plane *plane, const graphene_rect_t *area) {
  double cross = round(scene->cross); /* steps are whole */
  if (isnan(cross) || cross < scene->from - 0.5 || cross > scene->to + 0.5)
    return;
  gboolean dark = msu_is_dark(&scene->text);
  GdkRGBA line = msu_faded(&scene->text, 0.4);
  float x = area->origin.x + roundf(msu_plane_x(plane, cross) / scene->scale);
  msu_pen_rect(pen, &line, x, area->origin.y, 1, area->size.height);
  for (guint i = 0; i < scene->curves->len; i++) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i);
    struct msu_points points = msu_curve_points(curve);
    gssize at = msu_scene_point_at(scene, &points, cross);
    if (at < 0 || isnan(msu_plane_y(plane, points.y[at])) || curve->kind == MSU_CURVE_RAW)
      continue;
    GdkRGBA color = msu_palette(curve->color, dark),
            ring = dark ? (GdkRGBA){0, 0, 0, 1} : (GdkRGBA){1, 1, 1, 1};
    float dot_x = area->origin.x + msu_plane_x(plane, points.x[at]) / scene->scale;
    float dot_y = area->origin.y + msu_plane_y(plane, points.y[at]) / scene->scale;
    msu_pen_dot(pen, &ring, dot_x, dot_y, 5);
    msu_pen_dot(pen, &color, dot_x, dot_y, 3.5);
  }
  if (!isnan(scene->pointer_y))
    draw_box(scene, pen, area, x, cross);
}
