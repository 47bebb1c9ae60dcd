#include "train/msu-run-graphs.h"
#include "plot/msu-plot.h"
#include "train/msu-sample-strip.h"

#include <glib/gi18n.h>
#include <math.h>

/* What a curve is made of. */
struct source {
  const char *series, *label;
  enum msu_curve_kind kind;
  double (*map)(double); /* NULL: as it is */
};

/* One graph. */
struct graph {
  const char *title, *unit;
  gboolean log;
  gboolean wide;       /* as wide as all, for many curves */
  const char *decides; /* it is shown once this series has a value above 0; NULL: always */
  struct source sources[6];
};

static double rate(double seconds) {
  return seconds > 0 ? 1 / seconds : NAN;
}

/* The first one is the large one. */
static const struct graph graphs[] = {
    {N_("Loss"),
     NULL,
     TRUE,
     TRUE,
     NULL,
     {{"loss", N_("Each step"), MSU_CURVE_RAW, NULL},
      {"smoothed_loss", N_("Smoothed"), MSU_CURVE_LINE, NULL},
      {"validation_loss", N_("Validation"), MSU_CURVE_DOTS, NULL}}},
    {N_("Learning rate"),
     NULL,
     FALSE,
     FALSE,
     NULL,
     {{"learning_rate", N_("Learning rate"), MSU_CURVE_LINE, NULL}}},
    {N_("Gradient norm"),
     NULL,
     TRUE,
     FALSE,
     NULL,
     {{"gradient_norm", N_("Gradient norm"), MSU_CURVE_LINE, NULL}}},
    {N_("Speed"), N_("steps/s"), FALSE, FALSE, NULL, {{"seconds", N_("Speed"), MSU_CURVE_LINE, rate}}},
    {N_("Tokens"),
     N_("tokens/s"),
     FALSE,
     FALSE,
     NULL,
     {{"tokens_per_second", N_("Tokens"), MSU_CURVE_LINE, NULL}}},
    {N_("Share of peak (MFU)"),
     "%",
     FALSE,
     FALSE,
     "mfu",
     {{"mfu", N_("Share of peak (MFU)"), MSU_CURVE_LINE, NULL}}},
    {N_("Memory"),
     "B",
     FALSE,
     FALSE,
     NULL,
     {{"host_bytes", N_("Host"), MSU_CURVE_LINE, NULL},
      {"device_bytes", N_("Device"), MSU_CURVE_LINE, NULL},
      {"disk_bytes", N_("Disk"), MSU_CURVE_LINE, NULL}}},
    /* of a run whose layers pass through memory: what works beside what */
    {N_("Lanes"),
     "s",
     FALSE,
     TRUE,
     "read_bytes",
     {{"compute_seconds", N_("Compute"), MSU_CURVE_LINE, NULL},
      {"read_seconds", N_("Read"), MSU_CURVE_LINE, NULL},
      {"write_seconds", N_("Write"), MSU_CURVE_LINE, NULL},
      {"optimizer_seconds", N_("Optimizer"), MSU_CURVE_LINE, NULL},
      {"waited_seconds", N_("Waited"), MSU_CURVE_LINE, NULL}}},
};
#define GRAPHS G_N_ELEMENTS(graphs)

struct _MsuRunGraphs {
  GtkWidget parent;
  MsuPlotAxis *axis;
  MsaRun *run;
  GtkWidget *plots[GRAPHS], *strip;
  GtkFlowBox *small;
  gboolean shown[GRAPHS];
  GPtrArray *watched; /* of MsaSeries: which decide whether a graph is shown */
};

G_DEFINE_FINAL_TYPE(MsuRunGraphs, msu_run_graphs, GTK_TYPE_WIDGET)

static gboolean has_value(MsaSeries *series) {
  const double *y = msa_series_get_y(series);
  for (gsize i = 0; i < msa_series_get_length(series); i++)
    if (y[i] > 0)
      return TRUE;
  return FALSE;
}

static void update_shown(MsuRunGraphs *self) {
  for (guint i = 0; i < GRAPHS; i++) {
    self->shown[i] =
        !graphs[i].decides || (self->run && has_value(msa_run_get_series(self->run, graphs[i].decides)));
    gtk_widget_set_visible(graphs[i].wide ? self->plots[i] : gtk_widget_get_parent(self->plots[i]),
                           self->shown[i]);
  }
}

static void map_cb(MsaSeries *source, guint64 first, gpointer data) {
  MsaSeries *to = data;
  double (*map)(double) = g_object_get_data(G_OBJECT(to), "map");
  gsize length = msa_series_get_length(source);
  if (first >= length)
    return;
  const double *y = msa_series_get_y(source);
  g_autofree double *mapped = g_new(double, length - first);
  for (gsize i = first; i < length; i++)
    mapped[i - first] = map(y[i]);
  msa_series_append(to, msa_series_get_x(source) + first, mapped, length - first);
}

/* Follows the other series as long as somebody holds it. New reference. */
static MsaSeries *mapped_series(MsaSeries *source, double (*map)(double)) {
  if (!map)
    return g_object_ref(source);
  MsaSeries *series = msa_series_new(msa_series_get_name(source));
  g_object_set_data(G_OBJECT(series), "map", (gpointer)map);
  g_signal_connect_object(source, "changed", G_CALLBACK(map_cb), series, 0);
  map_cb(source, 0, series);
  return series;
}

/* number: of the run among those that are compared; names: several runs are. */
static void add_run(MsuRunGraphs *self, MsaRun *run, guint number, gboolean names) {
  for (guint i = 0; i < GRAPHS; i++)
    for (guint k = 0; k < G_N_ELEMENTS(graphs[i].sources) && graphs[i].sources[k].series; k++) {
      const struct source *source = &graphs[i].sources[k];
      gboolean main =
          source->kind == MSU_CURVE_LINE && (k == 0 || graphs[i].sources[k - 1].kind == MSU_CURVE_RAW);
      /* where colours tell runs apart, each has one line; the raw values are of the run itself */
      if (names && !main && source->kind != MSU_CURVE_DOTS && (number > 0 || source->kind == MSU_CURVE_LINE))
        continue;
      const char *label = names ? (main ? msa_run_get_name(run) : NULL) : _(source->label);
      guint color = names                                     ? number
                    : source->kind == MSU_CURVE_DOTS          ? 1
                    : source->kind == MSU_CURVE_LINE && i > 0 ? k
                                                              : 0;
      g_autoptr(MsaSeries) series = mapped_series(msa_run_get_series(run, source->series), source->map);
      msu_plot_add_curve(MSU_PLOT(self->plots[i]), series, label, source->kind, color);
    }
}

/* Of a graph of several lines only the first is compared: its title says which. */
static void set_title(MsuRunGraphs *self, guint i, gboolean names) {
  const struct graph *graph = &graphs[i];
  g_autofree char *title = names && graph->sources[1].series && graph->sources[0].kind == MSU_CURVE_LINE
                               ? g_strdup_printf("%s · %s", _(graph->title), _(graph->sources[0].label))
                               : g_strdup(_(graph->title));
  msu_plot_set_title(MSU_PLOT(self->plots[i]), title);
}

static void unwatch(MsuRunGraphs *self) {
  for (guint i = 0; i < self->watched->len; i++)
    g_signal_handlers_disconnect_by_data(self->watched->pdata[i], self);
  g_ptr_array_set_size(self->watched, 0);
}

void msu_run_graphs_set_runs(MsuRunGraphs *self, MsaRun *run, GPtrArray *others) {
  g_return_if_fail(MSU_IS_RUN_GRAPHS(self));
  gboolean names = others && others->len > 0, another = g_set_object(&self->run, run);
  unwatch(self);
  for (guint i = 0; i < GRAPHS; i++) {
    msu_plot_clear(MSU_PLOT(self->plots[i]));
    msu_plot_set_limit(MSU_PLOT(self->plots[i]), NAN, NULL);
    set_title(self, i, names);
  }
  msu_sample_strip_set_run(MSU_SAMPLE_STRIP(self->strip), run);
  if (another)
    msu_plot_axis_reset(self->axis);
  if (run) {
    /* the run itself comes last, so that it lies on top */
    for (guint i = 0; names && i < others->len; i++)
      add_run(self, others->pdata[i], i + 1, TRUE);
    add_run(self, run, 0, names);
    for (guint i = 0; i < GRAPHS; i++) {
      if (!graphs[i].decides)
        continue;
      MsaSeries *series = msa_run_get_series(run, graphs[i].decides);
      g_signal_connect_swapped(series, "changed", G_CALLBACK(update_shown), self);
      g_ptr_array_add(self->watched, g_object_ref(series));
    }
    guint64 budget = msa_run_get_params(run)->host_memory;
    for (guint i = 0; i < GRAPHS && budget; i++)
      if (g_strcmp0(graphs[i].sources[0].series, "host_bytes") == 0)
        msu_plot_set_limit(MSU_PLOT(self->plots[i]), (double)budget, _("Budget"));
  }
  update_shown(self);
}

void msu_run_graphs_set_log(MsuRunGraphs *self, gboolean log) {
  g_return_if_fail(MSU_IS_RUN_GRAPHS(self));
  for (guint i = 0; i < GRAPHS; i++)
    if (graphs[i].log)
      msu_plot_set_log(MSU_PLOT(self->plots[i]), log);
}

/* The picture is two columns wide, whatever the window's size: what is saved should not depend on it. */
#define TILE_WIDTH 560
#define TILE_HEIGHT 220
#define WIDE_HEIGHT 330
#define TITLE_HEIGHT 48
#define MARGIN 16
#define GAP 14 /* below each */

static void place(cairo_t *cr, MsuPlot *plot, double x, double y, int width, int height) {
  g_autoptr(GdkTexture) texture = msu_plot_render(plot, width, height, 2);
  int columns = gdk_texture_get_width(texture), rows = gdk_texture_get_height(texture);
  cairo_surface_t *tile = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, columns, rows);
  gdk_texture_download(texture, cairo_image_surface_get_data(tile),
                       (gsize)cairo_image_surface_get_stride(tile));
  cairo_surface_mark_dirty(tile);
  cairo_set_source_surface(cr, tile, 2 * x, 2 * y);
  cairo_paint(cr);
  cairo_surface_destroy(tile);
}

static void draw_title(MsuRunGraphs *self, cairo_t *cr) {
  GdkRGBA text;
  g_autoptr(PangoLayout) layout =
      gtk_widget_create_pango_layout(GTK_WIDGET(self), msa_run_get_name(self->run));
  g_autoptr(PangoAttrList) attributes = pango_attr_list_new();
  pango_attr_list_insert(attributes, pango_attr_weight_new(PANGO_WEIGHT_BOLD));
  pango_attr_list_insert(attributes, pango_attr_scale_new(1.4));
  pango_layout_set_attributes(layout, attributes);
  gtk_style_context_get_color(gtk_widget_get_style_context(GTK_WIDGET(self)), &text);
  cairo_save(cr);
  cairo_scale(cr, 2, 2);
  gdk_cairo_set_source_rgba(cr, &text);
  cairo_move_to(cr, MARGIN + MSU_PLOT_LEFT, MARGIN);
  pango_cairo_show_layout(cr, layout);
  cairo_restore(cr);
}

GdkTexture *msu_run_graphs_render(MsuRunGraphs *self) {
  g_return_val_if_fail(MSU_IS_RUN_GRAPHS(self), NULL);
  if (!self->run)
    return NULL;
  guint tiles = 0, wide = 0; /* below the large one */
  for (guint i = 1; i < GRAPHS; i++) {
    tiles += self->shown[i] && !graphs[i].wide;
    wide += self->shown[i] && graphs[i].wide;
  }
  int width = 2 * TILE_WIDTH + 2 * MARGIN, rows = (int)(tiles + 1) / 2;
  int height = TITLE_HEIGHT + WIDE_HEIGHT + (rows + (int)wide) * TILE_HEIGHT + 2 * MARGIN;
  cairo_surface_t *image = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 2 * width, 2 * height);
  cairo_t *cr = cairo_create(image);
  GdkRGBA ground;
  if (!gtk_style_context_lookup_color(gtk_widget_get_style_context(GTK_WIDGET(self)), "view_bg_color",
                                      &ground))
    ground = (GdkRGBA){1, 1, 1, 1};
  gdk_cairo_set_source_rgba(cr, &ground);
  cairo_paint(cr);
  draw_title(self, cr);
  place(cr, MSU_PLOT(self->plots[0]), MARGIN, MARGIN + TITLE_HEIGHT, 2 * TILE_WIDTH, WIDE_HEIGHT - GAP);
  for (guint i = 1, n = 0; i < GRAPHS; i++) {
    int top = MARGIN + TITLE_HEIGHT + WIDE_HEIGHT;
    if (!self->shown[i])
      continue;
    if (graphs[i].wide) {
      place(cr, MSU_PLOT(self->plots[i]), MARGIN, top + rows++ * TILE_HEIGHT, 2 * TILE_WIDTH,
            TILE_HEIGHT - GAP);
    } else {
      place(cr, MSU_PLOT(self->plots[i]), MARGIN + n % 2 * TILE_WIDTH, top + n / 2 * TILE_HEIGHT, TILE_WIDTH,
            TILE_HEIGHT - GAP);
      n++;
    }
  }
  cairo_destroy(cr);
  cairo_surface_flush(image);
  int stride = cairo_image_surface_get_stride(image);
  g_autoptr(GBytes) bytes =
      g_bytes_new_with_free_func(cairo_image_surface_get_data(image), (gsize)stride * 2 * height,
                                 (GDestroyNotify)cairo_surface_destroy, image);
  return gdk_memory_texture_new(2 * width, 2 * height, GDK_MEMORY_DEFAULT, bytes, (gsize)stride);
}

static void msu_run_graphs_dispose(GObject *object) {
  MsuRunGraphs *self = MSU_RUN_GRAPHS(object);
  GtkWidget *child;
  unwatch(self);
  g_clear_object(&self->run);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self))))
    gtk_widget_unparent(child);
  g_clear_object(&self->axis);
  G_OBJECT_CLASS(msu_run_graphs_parent_class)->dispose(object);
}

static void msu_run_graphs_finalize(GObject *object) {
  g_ptr_array_unref(MSU_RUN_GRAPHS(object)->watched);
  G_OBJECT_CLASS(msu_run_graphs_parent_class)->finalize(object);
}

static void msu_run_graphs_class_init(MsuRunGraphsClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  object_class->dispose = msu_run_graphs_dispose;
  object_class->finalize = msu_run_graphs_finalize;
  gtk_widget_class_set_layout_manager_type(GTK_WIDGET_CLASS(klass), GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_css_name(GTK_WIDGET_CLASS(klass), "rungraphs");
}

static void msu_run_graphs_init(MsuRunGraphs *self) {
  GtkLayoutManager *layout = gtk_widget_get_layout_manager(GTK_WIDGET(self));
  gtk_orientable_set_orientation(GTK_ORIENTABLE(layout), GTK_ORIENTATION_VERTICAL);
  self->watched = g_ptr_array_new_with_free_func(g_object_unref);
  self->axis = msu_plot_axis_new();
  self->small = GTK_FLOW_BOX(gtk_flow_box_new());
  gtk_flow_box_set_selection_mode(self->small, GTK_SELECTION_NONE);
  gtk_flow_box_set_homogeneous(self->small, TRUE);
  gtk_flow_box_set_min_children_per_line(self->small, 2);
  gtk_flow_box_set_max_children_per_line(self->small, 3);
  for (guint i = 0; i < GRAPHS; i++) {
    const struct graph *graph = &graphs[i];
    gboolean symbol = !graph->unit || graph->unit[1] == 0; /* B, %, s */
    self->plots[i] = msu_plot_new(_(graph->title), symbol ? graph->unit : _(graph->unit), self->axis);
    gtk_widget_set_hexpand(self->plots[i], TRUE);
    gtk_widget_set_size_request(self->plots[i], graph->wide ? -1 : 240, i == 0 ? 210 : 136);
    if (i == 0) {
      gtk_widget_set_vexpand(self->plots[i], TRUE);
      gtk_widget_set_parent(self->plots[i], GTK_WIDGET(self));
      self->strip = msu_sample_strip_new(self->axis);
      gtk_widget_set_parent(self->strip, GTK_WIDGET(self));
      gtk_widget_set_parent(GTK_WIDGET(self->small), GTK_WIDGET(self));
    } else if (graph->wide) {
      gtk_widget_set_parent(self->plots[i], GTK_WIDGET(self));
    } else {
      gtk_flow_box_append(self->small, self->plots[i]);
      gtk_widget_set_focusable(gtk_widget_get_parent(self->plots[i]), FALSE);
    }
  }
  update_shown(self);
}

GtkWidget *msu_run_graphs_new(void) {
  return g_object_new(MSU_TYPE_RUN_GRAPHS, NULL);
}
