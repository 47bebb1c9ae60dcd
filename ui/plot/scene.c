#include "plot/msu-plot-private.h"

#include <glib/gi18n.h>
#include <math.h>
#include "plot/ticks.h"

#define HEADER 24 /* title and legend */
#define FOOTER 20 /* marks of the x axis */
#define LINE 1.5
#define DOT 3.2
#define BLEED 5 /* that a mark at the very edge reaches over it */

graphene_rect_t msu_scene_area(const struct msu_scene *scene) {
  return GRAPHENE_RECT_INIT(MSU_PLOT_LEFT, HEADER, MAX(scene->width - MSU_PLOT_LEFT - MSU_PLOT_RIGHT, 1),
                            MAX(scene->height - HEADER - FOOTER, 1));
}

static gboolean is_dark(const GdkRGBA *text) {
  return 0.3 * text->red + 0.6 * text->green + 0.1 * text->blue > 0.5;
}

static GdkRGBA faded(const GdkRGBA *color, double strength) {
  GdkRGBA result = *color;
  result.alpha *= strength;
  return result;
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

/* anchor_x, anchor_y: 0 .. 1, which part of the text lies at the point. Returns its width. */
static float draw_text(GtkSnapshot *snapshot, PangoLayout *layout, const char *text, float x, float y,
                       float anchor_x, float anchor_y, const GdkRGBA *color) {
  int width, height;
  pango_layout_set_text(layout, text, -1);
  pango_layout_get_pixel_size(layout, &width, &height);
  gtk_snapshot_save(snapshot);
  gtk_snapshot_translate(snapshot,
                         &GRAPHENE_POINT_INIT(roundf(x - width * anchor_x), roundf(y - height * anchor_y)));
  gtk_snapshot_append_layout(snapshot, layout, color);
  gtk_snapshot_restore(snapshot);
  return width;
}

static void draw_rect(GtkSnapshot *snapshot, const GdkRGBA *color, float x, float y, float width,
                      float height) {
  gtk_snapshot_append_color(snapshot, color, &GRAPHENE_RECT_INIT(x, y, width, height));
}

static void draw_dot(GtkSnapshot *snapshot, const GdkRGBA *color, float x, float y, float radius) {
  graphene_rect_t square = GRAPHENE_RECT_INIT(x - radius, y - radius, 2 * radius, 2 * radius);
  GskRoundedRect round;
  gsk_rounded_rect_init_from_rect(&round, &square, radius);
  gtk_snapshot_push_rounded_clip(snapshot, &round);
  gtk_snapshot_append_color(snapshot, color, &square);
  gtk_snapshot_pop(snapshot);
}

static void draw_grid(const struct msu_scene *scene, GtkSnapshot *snapshot, PangoLayout *layout,
                      const struct msu_plane *plane, const graphene_rect_t *area) {
  GdkRGBA grid = faded(&scene->text, 0.1), dim = faded(&scene->text, 0.65);
  struct msu_ticks ticks;
  char text[MSU_NUMBER_ROOM];
  int wanted = MAX(2, (int)(area->size.height / 22));
  if (plane->log)
    msu_ticks_log(&ticks, plane->low, plane->high, wanted);
  else if (g_strcmp0(scene->unit, "B") == 0)
    msu_ticks_bytes(&ticks, plane->low, plane->high, wanted);
  else
    msu_ticks_linear(&ticks, plane->low, plane->high, wanted, FALSE);
  double top = ticks.count ? fmax(fabs(ticks.at[0]), fabs(ticks.at[ticks.count - 1])) : 0;
  for (int i = 0; i < ticks.count; i++) {
    float y = area->origin.y + roundf(msu_plane_y(plane, ticks.at[i]) / scene->scale);
    draw_rect(snapshot, &grid, area->origin.x, y, area->size.width, 1);
    msu_number_tick(text, ticks.at[i], ticks.step, top, scene->unit);
    draw_text(snapshot, layout, text, area->origin.x - 8, y, 1, 0.5, &dim);
  }
  msu_ticks_linear(&ticks, scene->from, scene->to, MAX(2, (int)(area->size.width / 70)), TRUE);
  float bottom = area->origin.y + area->size.height;
  for (int i = 0; i < ticks.count; i++) {
    float x = area->origin.x + roundf(msu_plane_x(plane, ticks.at[i]) / scene->scale);
    draw_rect(snapshot, &grid, x, area->origin.y, 1, area->size.height);
    msu_number_whole(text, (gint64)ticks.at[i]);
    /* the last mark must not be cut off at the right */
    float anchor = x > scene->width - 26 ? 1 : 0.5;
    draw_text(snapshot, layout, text, anchor == 1 ? scene->width - 2 : x, bottom + 4, anchor, 0, &dim);
  }
}

/* Marks, unless they are as many as pixels. */
static gboolean is_dots(const struct msu_curve *curve, const struct msu_plane *plane) {
  struct msu_points points = msu_curve_points(curve);
  return curve->kind == MSU_CURVE_DOTS &&
         msu_points_count(&points, plane->from, plane->to) <= (gsize)plane->width;
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
  gboolean dark = is_dark(&scene->text);
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

static void draw_limit(const struct msu_scene *scene, GtkSnapshot *snapshot, PangoLayout *layout,
                       const struct msu_plane *plane, const graphene_rect_t *area) {
  double at = msu_plane_y(plane, scene->limit);
  if (isnan(at))
    return;
  GdkRGBA color = faded(&scene->text, 0.55);
  float y = area->origin.y + roundf(at / scene->scale);
  for (float x = 0; x < area->size.width; x += 8)
    draw_rect(snapshot, &color, area->origin.x + x, y, MIN(5, area->size.width - x), 1);
  if (scene->limit_label)
    draw_text(snapshot, layout, scene->limit_label, area->origin.x + area->size.width - 2, y + 1, 1, 0,
              &color);
}

/* Index of the point under the crosshair, or -1 where none is near. */
static gssize point_at_cross(const struct msu_scene *scene, const struct msu_points *points, double cross) {
  if (points->length == 0)
    return -1;
  gsize at = msu_points_nearest(points, cross);
  double near = (scene->to - scene->from) / 60;
  return fabs(points->x[at] - cross) <= fmax(near, 1) ? (gssize)at : -1;
}

/* Entries: with their values, names alone, or none; in the order in which they get shorter. */
enum legend { LEGEND_VALUES, LEGEND_NAMES, LEGEND_NONE };

/* What a curve's entry says; NULL: it has none. Free it. */
static char *legend_text(const struct msu_scene *scene, const struct msu_curve *curve, enum legend legend) {
  struct msu_points points = msu_curve_points(curve);
  char number[MSU_NUMBER_ROOM];
  if (!curve->label || (points.length == 0 && scene->curves->len > 1))
    return NULL;
  gssize at =
      isnan(scene->cross) ? (gssize)points.length - 1 : point_at_cross(scene, &points, round(scene->cross));
  gboolean symbol = scene->unit && scene->unit[0] && !scene->unit[1]; /* B, %, s belong to the number */
  const char *value = at < 0 ? "" : msu_number_value(number, points.y[at], symbol ? scene->unit : NULL);
  /* one curve of the plot's own name needs no second one */
  if (scene->curves->len == 1 && g_strcmp0(curve->label, scene->title) == 0)
    return g_strdup(value);
  return legend == LEGEND_VALUES && *value ? g_strdup_printf("%s %s", curve->label, value)
                                           : g_strdup(curve->label);
}

/* From the right edge; draws if snapshot is not NULL. Returns where it begins. */
static float lay_legend(const struct msu_scene *scene, GtkSnapshot *snapshot, PangoLayout *layout,
                        enum legend legend) {
  float right = scene->width - MSU_PLOT_RIGHT, y = HEADER / 2 - 2;
  for (guint i = scene->curves->len; i > 0; i--) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i - 1);
    g_autofree char *text = legend_text(scene, curve, legend);
    int width;
    if (!text)
      continue;
    pango_layout_set_text(layout, text, -1);
    pango_layout_get_pixel_size(layout, &width, NULL);
    gboolean marked = scene->curves->len > 1 || g_strcmp0(curve->label, scene->title) != 0;
    if (snapshot) {
      GdkRGBA color = msu_palette(curve->color, is_dark(&scene->text));
      draw_text(snapshot, layout, text, right, y, 1, 0.5, &scene->text);
      if (curve->kind == MSU_CURVE_RAW)
        color.alpha = 0.45;
      if (marked && curve->kind == MSU_CURVE_DOTS)
        draw_dot(snapshot, &color, right - width - 9, y, 3.5);
      else if (marked)
        draw_rect(snapshot, &color, right - width - 15, y - 1, 10, 2);
    }
    right -= width + 30;
  }
  return right + 15;
}

static void draw_header(const struct msu_scene *scene, GtkSnapshot *snapshot, PangoLayout *layout,
                        PangoLayout *bold) {
  float left = MSU_PLOT_LEFT, y = HEADER / 2 - 2;
  GdkRGBA dim = faded(&scene->text, 0.65);
  left += draw_text(snapshot, bold, scene->title, left, y, 0, 0.5, &scene->text);
  if (scene->unit && scene->unit[0] && scene->unit[1])
    left += 6 + draw_text(snapshot, layout, scene->unit, left + 6, y, 0, 0.5, &dim);
  enum legend legend = LEGEND_VALUES;
  while (legend < LEGEND_NONE && lay_legend(scene, NULL, layout, legend) < left + 12)
    legend++;
  if (legend < LEGEND_NONE)
    lay_legend(scene, snapshot, layout, legend);
}

/* The values at the crosshair, beside it, on the plot that the pointer is over. */
static void draw_box(const struct msu_scene *scene, GtkSnapshot *snapshot, PangoLayout *layout,
                     PangoLayout *bold, const graphene_rect_t *area, float x, double cross) {
  gboolean dark = is_dark(&scene->text);
  GString *names = g_string_new(NULL), *values = g_string_new(NULL);
  char number[MSU_NUMBER_ROOM];
  guint rows = 0;
  g_autofree GdkRGBA *colors = g_new(GdkRGBA, scene->curves->len + 1);
  for (guint i = 0; i < scene->curves->len; i++) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i);
    struct msu_points points = msu_curve_points(curve);
    gssize at = point_at_cross(scene, &points, cross);
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
  pango_layout_set_text(bold, step, -1);
  pango_layout_get_pixel_size(bold, &title_width, &title_height);
  pango_layout_set_text(layout, values->str, -1);
  pango_layout_get_pixel_size(layout, &value_width, NULL);
  pango_layout_set_text(layout, names->str, -1);
  pango_layout_get_pixel_size(layout, &name_width, &height);
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
          edge = faded(&scene->text, 0.15), dim = faded(&scene->text, 0.7);
  gtk_snapshot_append_outset_shadow(snapshot, &round, &shade, 0, 1, 0, 5);
  gtk_snapshot_push_rounded_clip(snapshot, &round);
  gtk_snapshot_append_color(snapshot, &ground, &box);
  gtk_snapshot_pop(snapshot);
  gtk_snapshot_append_border(snapshot, &round, (float[4]){1, 1, 1, 1}, (GdkRGBA[4]){edge, edge, edge, edge});
  left = box.origin.x + 10;
  y = box.origin.y + 7;
  draw_text(snapshot, bold, step, left, y, 0, 0, &scene->text);
  y += title_height + 2;
  if (rows) {
    draw_text(snapshot, layout, names->str, left + 14, y, 0, 0, &dim);
    pango_layout_set_alignment(layout, PANGO_ALIGN_RIGHT);
    draw_text(snapshot, layout, values->str, box.origin.x + width - 10, y, 1, 0, &scene->text);
    pango_layout_set_alignment(layout, PANGO_ALIGN_LEFT);
    for (guint i = 0; i < rows; i++)
      draw_dot(snapshot, &colors[i], left + 4, y + height * (i + 0.5f) / rows, 4);
  }
  g_string_free(names, TRUE);
  g_string_free(values, TRUE);
}

static void draw_cross(const struct msu_scene *scene, GtkSnapshot *snapshot, PangoLayout *layout,
                       PangoLayout *bold, const struct msu_plane *plane, const graphene_rect_t *area) {
  double cross = round(scene->cross); /* steps are whole */
  if (isnan(cross) || cross < scene->from - 0.5 || cross > scene->to + 0.5)
    return;
  gboolean dark = is_dark(&scene->text);
  GdkRGBA line = faded(&scene->text, 0.4);
  float x = area->origin.x + roundf(msu_plane_x(plane, cross) / scene->scale);
  draw_rect(snapshot, &line, x, area->origin.y, 1, area->size.height);
  for (guint i = 0; i < scene->curves->len; i++) {
    const struct msu_curve *curve = g_ptr_array_index(scene->curves, i);
    struct msu_points points = msu_curve_points(curve);
    gssize at = point_at_cross(scene, &points, cross);
    if (at < 0 || isnan(msu_plane_y(plane, points.y[at])) || curve->kind == MSU_CURVE_RAW)
      continue;
    GdkRGBA color = msu_palette(curve->color, dark),
            ring = dark ? (GdkRGBA){0, 0, 0, 1} : (GdkRGBA){1, 1, 1, 1};
    float dot_x = area->origin.x + msu_plane_x(plane, points.x[at]) / scene->scale;
    float dot_y = area->origin.y + msu_plane_y(plane, points.y[at]) / scene->scale;
    draw_dot(snapshot, &ring, dot_x, dot_y, 5);
    draw_dot(snapshot, &color, dot_x, dot_y, 3.5);
  }
  if (!isnan(scene->pointer_y))
    draw_box(scene, snapshot, layout, bold, area, x, cross);
}

static PangoLayout *new_layout(const struct msu_scene *scene, gboolean bold) {
  PangoLayout *layout = pango_layout_new(scene->pango);
  g_autoptr(PangoAttrList) attributes = pango_attr_list_new();
  pango_attr_list_insert(attributes, pango_attr_font_features_new("tnum=1"));
  pango_attr_list_insert(attributes, pango_attr_scale_new(bold ? 0.93 : 0.86));
  if (bold)
    pango_attr_list_insert(attributes, pango_attr_weight_new(PANGO_WEIGHT_BOLD));
  pango_layout_set_attributes(layout, attributes);
  return layout;
}

void msu_scene_snapshot(const struct msu_scene *scene, GtkSnapshot *snapshot) {
  g_autoptr(PangoLayout) layout = new_layout(scene, FALSE);
  g_autoptr(PangoLayout) bold = new_layout(scene, TRUE);
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
  draw_header(scene, snapshot, layout, bold);
  if (!some) {
    GdkRGBA dim = faded(&scene->text, 0.55), grid = faded(&scene->text, 0.1);
    draw_rect(snapshot, &grid, area.origin.x, area.origin.y + area.size.height, area.size.width, 1);
    draw_text(snapshot, layout, _("No values yet"), area.origin.x + area.size.width / 2,
              area.origin.y + area.size.height / 2, 0.5, 0.5, &dim);
    return;
  }
  draw_grid(scene, snapshot, layout, &plane, &area);
  draw_picture(scene, snapshot, &plane, &area);
  if (isfinite(scene->limit))
    draw_limit(scene, snapshot, layout, &plane, &area);
  draw_cross(scene, snapshot, layout, bold, &plane, &area);
}
