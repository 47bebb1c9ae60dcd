#include "plot/msu-plot-private.h"

#include <glib/gi18n.h>
#include <math.h>
#include "plot/ticks.h"

#define FOOTER 20 /* marks of the x axis */
#define LINE 1.5
#define DOT 3.2
#define BLEED 5 /* that a mark at the very edge reaches over it */

graphene_rect_t msu_scene_area(const struct msu_scene *scene) {
  return GRAPHENE_RECT_INIT(MSU_PLOT_LEFT, MSU_SCENE_HEADER,
                            MAX(scene->width - MSU_PLOT_LEFT - MSU_PLOT_RIGHT, 1),
                            MAX(scene->height - MSU_SCENE_HEADER - FOOTER, 1));
}

/* Lower and upper end of the y axis, from what is seen. FALSE: no value is. */
static gboolean find_scale(const struct msu_scene *scene, double *low, double *high) {
  struct msu_extremes all = MSU_EXTREMES_NONE;
  for (guint i = 0; i < scene->curves->len; i++) {
    struct msu_points points = msu_curve_points(g_ptr_array_index(scene->curves, i));
    if (points.length == 0)
      continue;
    struct msu_extremes e = msu_points_extremes(&points, scene->from, scene->to);
    all.low = fmin(all.low, e.low);
    all.high = fmax(all.high, e.high);
    all.positive = fmin(all.positive, e.positive);
  }
  gboolean some = scene->log ? all.positive <= all.high : all.low <= all.high;
  if (some && isfinite(scene->limit) && (!scene->log || scene->limit > 0)) {
    all.low = fmin(all.low, scene->limit);
    all.high = fmax(all.high, scene->limit);
    all.positive = fmin(all.positive, scene->limit);
  }
  if (scene->log) {
    double margin = some ? fmax(pow(all.high / all.positive, 0.06), 1.1) : 1;
    *low = some ? all.positive / margin : 0.1;
    *high = some ? all.high * margin : 10;
    return some;
  }
  *low = some ? all.low : 0;
  *high = some ? all.high : 1;
  /* a scale that starts at 0 shows proportions; it costs little room where values come near it */
  if (*low >= 0 && *low < 0.35 * *high)
    *low = 0;
  double margin = 0.06 * (*high - *low);
  if (!(margin > 1e-9 * fmax(fabs(*low), fabs(*high))))
    margin = *high != 0 ? 0.1 * fabs(*high) : 0.5;
  *high += margin;
  if (*low != 0 || all.low == all.high)
    *low -= margin;
  return some;
}

static void draw_grid(const struct msu_scene *scene, const struct msu_pen *pen, const struct msu_plane *plane,
                      const graphene_rect_t *area) {
  GdkRGBA grid = msu_faded(&scene->text, 0.1), dim = msu_faded(&scene->text, 0.65);
  struct msu_ticks ticks;
  char text[MSU_NUMBER_ROOM];
  int wanted = CLAMP((int)(area->size.height / 22), 2, 7);
  if (plane->log)
    msu_ticks_log(&ticks, plane->low, plane->high, wanted);
  else if (g_strcmp0(scene->unit, "B") == 0)
    msu_ticks_bytes(&ticks, plane->low, plane->high, wanted);
  else
    msu_ticks_linear(&ticks, plane->low, plane->high, wanted, FALSE);
  double top = ticks.count ? fmax(fabs(ticks.at[0]), fabs(ticks.at[ticks.count - 1])) : 0;
  for (int i = 0; i < ticks.count; i++) {
    float y = area->origin.y + roundf(msu_plane_y(plane, ticks.at[i]) / scene->scale);
    msu_pen_rect(pen, &grid, area->origin.x, y, area->size.width, 1);
    msu_number_tick(text, ticks.at[i], ticks.step, top, scene->unit);
    msu_pen_text(pen, pen->plain, text, area->origin.x - 8, y, 1, 0.5, &dim);
  }
  msu_ticks_linear(&ticks, scene->from, scene->to, MAX(2, (int)(area->size.width / 70)), TRUE);
  float bottom = area->origin.y + area->size.height;
  for (int i = 0; i < ticks.count; i++) {
    float x = area->origin.x + roundf(msu_plane_x(plane, ticks.at[i]) / scene->scale);
    msu_pen_rect(pen, &grid, x, area->origin.y, 1, area->size.height);
    msu_number_whole(text, (gint64)ticks.at[i]);
    /* the last mark must not be cut off at the right */
    float anchor = x > scene->width - 26 ? 1 : 0.5;
    msu_pen_text(pen, pen->plain, text, anchor == 1 ? scene->width - 2 : x, bottom + 4, anchor, 0, &dim);
  }
}

/* Marks, unless they are as many as pixels; and what is no line yet. */
static gboolean is_dots(const struct msu_curve *curve, const struct msu_plane *plane) {
  struct msu_points points = msu_curve_points(curve);
  return points.length == 1 || (curve->kind == MSU_CURVE_DOTS &&
                                msu_points_count(&points, plane->from, plane->to) <= (gsize)plane->width);
}

static void curve_color(const struct msu_curve *curve, gboolean dark, double rgba[4]) {
  GdkRGBA color = msu_palette(curve->color, dark);
  rgba[0] = color.red;
  rgba[1] = color.green;
  rgba[2] = color.blue;
  rgba[3] = curve->kind == MSU_CURVE_RAW ? 1 / 3.0 : 1;
}

/* A node with the curves in the area. Not a texture: the software renderer would convert one through floats
 * for each frame that shows it. */
static GskRenderNode *draw_curves(const struct msu_scene *scene, const struct msu_plane *plane, gboolean dark,
                                  const graphene_rect_t *area) {
  cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, plane->width, plane->height);
  graphene_rect_t bounds = *area;
  double rgba[4];
  for (guint i = 0; i < scene->curves->len; i++) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i);
    struct msu_points points = msu_curve_points(curve);
    curve_color(curve, dark, rgba);
    if (points.length > 0 && !is_dots(curve, plane))
      msu_curve_draw_line(image, plane, &points, rgba, LINE * scene->scale);
  }
  cairo_surface_set_device_scale(image, scene->scale, scene->scale);
  graphene_rect_inset(&bounds, -BLEED, 0);
  GskRenderNode *node = gsk_cairo_node_new(&bounds);
  cairo_t *cr = gsk_cairo_node_get_draw_context(node);
  cairo_set_source_surface(cr, image, area->origin.x, area->origin.y);
  cairo_paint(cr);
  cairo_translate(cr, area->origin.x, area->origin.y);
  cairo_scale(cr, 1 / scene->scale, 1 / scene->scale);
  for (guint i = 0; i < scene->curves->len; i++) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i);
    struct msu_points points = msu_curve_points(curve);
    curve_color(curve, dark, rgba);
    if (points.length > 0 && is_dots(curve, plane))
      msu_curve_draw_dots(cr, plane, &points, rgba, DOT * scene->scale);
  }
  cairo_destroy(cr);
  cairo_surface_destroy(image);
  return node;
}

static void draw_picture(const struct msu_scene *scene, GtkSnapshot *snapshot, const struct msu_plane *plane,
                         const graphene_rect_t *area) {
  gboolean dark = msu_is_dark(&scene->text);
  g_autofree char *key = g_strdup_printf("%a %a %a %a %d %d %d %g %d %" G_GUINT64_FORMAT, plane->from,
                                         plane->to, plane->low, plane->high, plane->log, plane->width,
                                         plane->height, plane->scale, dark, scene->serial);
  if (!*scene->picture || g_strcmp0(key, *scene->picture_key) != 0) {
    g_clear_pointer(scene->picture, gsk_render_node_unref);
    g_free(*scene->picture_key);
    *scene->picture = draw_curves(scene, plane, dark, area);
    *scene->picture_key = g_steal_pointer(&key);
  }
  gtk_snapshot_append_node(snapshot, *scene->picture);
}

static void draw_limit(const struct msu_scene *scene, const struct msu_pen *pen,
                       const struct msu_plane *plane, const graphene_rect_t *area) {
  double at = msu_plane_y(plane, scene->limit);
  if (isnan(at))
    return;
  GdkRGBA color = msu_faded(&scene->text, 0.55);
  float y = area->origin.y + roundf(at / scene->scale);
  for (float x = 0; x < area->size.width; x += 8)
    msu_pen_rect(pen, &color, area->origin.x + x, y, MIN(5, area->size.width - x), 1);
  if (scene->limit_label)
    msu_pen_text(pen, pen->plain, scene->limit_label, area->origin.x + area->size.width - 2, y + 1, 1, 0,
                 &color);
}

void msu_scene_snapshot(const struct msu_scene *scene, GtkSnapshot *snapshot) {
  struct msu_pen pen;
  graphene_rect_t area = msu_scene_area(scene);
  struct msu_plane plane = {
      .from = scene->from,
      .to = scene->to,
      .log = scene->log,
      .width = MAX(1, (int)round(area.size.width * scene->scale)),
      .height = MAX(1, (int)round(area.size.height * scene->scale)),
      .scale = scene->scale,
  };
  gboolean some = find_scale(scene, &plane.low, &plane.high);
  msu_pen_init(&pen, snapshot, scene->pango);
  msu_scene_draw_header(scene, &pen);
  if (some) {
    draw_grid(scene, &pen, &plane, &area);
    draw_picture(scene, snapshot, &plane, &area);
    if (isfinite(scene->limit))
      draw_limit(scene, &pen, &plane, &area);
    msu_scene_draw_cross(scene, &pen, &plane, &area);
  } else {
    GdkRGBA dim = msu_faded(&scene->text, 0.55), grid = msu_faded(&scene->text, 0.1);
    msu_pen_rect(&pen, &grid, area.origin.x, area.origin.y + area.size.height, area.size.width, 1);
    msu_pen_text(&pen, pen.plain, _("No values yet"), area.origin.x + area.size.width / 2,
                 area.origin.y + area.size.height / 2, 0.5, 0.5, &dim);
  }
  msu_pen_clear(&pen);
}
