/* The Train page and its graphs in a window of their own, with runs that are made up: what they say and draw,
 * and that nothing of them stays behind. */
#include <adwaita.h>
#include <math.h>
#include <string.h>

#include "find.h"
#include "harness.h"
#include "plot/msu-plot-private.h"
#include "runs/run-private.h"
#include "train/msu-run-graphs.h"
#include "train/msu-run-row.h"
#include "train/msu-train-page.h"
#include "wait.h"

static void feed(MsaSeries *series, int from, int to, int every) {
  for (int i = from; i <= to; i += every) {
    const double x = i, y = 0.1 + exp(-i / 200.0);
    msa_series_append(series, &x, &y, 1);
  }
}

static MsaRun *make_run(gint64 id, const char *name, enum msa_job_state state, int steps) {
  g_autoptr(MsaTrainParams) params = msa_train_params_new();
  params->host_memory = 1 << 30;
  const struct msa_run_row row = {.id = id,
                                  .name = (char *)name,
                                  .folder = (char *)"nowhere",
                                  .params = (char *)"{}",
                                  .state = state,
                                  .step = steps,
                                  .steps = 2000,
                                  .loss = 0.25};
  MsaRun *run = msa_run_new(NULL, &row, params);
  feed(msa_run_get_series(run, "loss"), 1, steps, 1);
  feed(msa_run_get_series(run, "smoothed_loss"), 1, steps, 1);
  feed(msa_run_get_series(run, "validation_loss"), 50, steps, 50);
  feed(msa_run_get_series(run, "seconds"), 1, steps, 1);
  return run;
}

static void first_cb(MsaSeries *series, guint64 first, gpointer data) {
  *(guint64 *)data = first;
}

static void check_series(void) {
  g_autoptr(MsaSeries) series = msa_series_new("loss");
  guint64 first = 99;
  const double x[] = {1, 2, 3, NAN, 4}, y[] = {10, 20, 30, 35, NAN}, again[] = {3, 4, 5},
               other[] = {31, 41, 51};
  g_signal_connect(series, "changed", G_CALLBACK(first_cb), &first);
  msa_series_append(series, x, y, 5);
  check_ok(msa_series_get_length(series) == 4 && first == 0,
           "a point without a place is left out, a gap stays");
  msa_series_append(series, again, other, 3);
  check_ok(msa_series_get_length(series) == 5 && first == 2 && msa_series_get_y(series)[2] == 31 &&
               msa_series_get_x(series)[4] == 5,
           "steps that are repeated replace what was there");
  first = 99;
  msa_series_append(series, x, y, 0);
  check_ok(first == 99, "nothing new is not told");
}

static void check_axis(void) {
  g_autoptr(MsuPlotAxis) axis = msu_plot_axis_new();
  int one, two;
  msu_plot_axis_set_extent(axis, &one, 1, 600);
  msu_plot_axis_set_extent(axis, &two, 100, 1000);
  check_ok(msu_plot_axis_get_from(axis) == 1 && msu_plot_axis_get_to(axis) == 1000,
           "an axis shows all of its plots");
  msu_plot_axis_zoom(axis, 400, 0.5);
  double from = msu_plot_axis_get_from(axis), to = msu_plot_axis_get_to(axis);
  check_ok(fabs((400 - from) / (to - from) - 399 / 999.0) < 1e-9 && fabs(to - from - 499.5) < 1e-9,
           "a zoom keeps the point under the pointer");
  msu_plot_axis_pan(axis, 10000);
  check_ok(msu_plot_axis_get_to(axis) == 1000, "panning ends at the end");
  msu_plot_axis_set_extent(axis, &two, 100, 1100);
  check_ok(msu_plot_axis_get_to(axis) == 1100, "the end is followed");
  msu_plot_axis_pan(axis, -300);
  to = msu_plot_axis_get_to(axis);
  msu_plot_axis_set_extent(axis, &two, 100, 1200);
  check_ok(msu_plot_axis_get_to(axis) == to, "but not from elsewhere");
  for (int i = 0; i < 60; i++)
    msu_plot_axis_zoom(axis, 500, 0.5);
  check_ok(msu_plot_axis_get_to(axis) - msu_plot_axis_get_from(axis) >= 1, "a zoom ends at a few steps");
  msu_plot_axis_reset(axis);
  msu_plot_axis_set_extent(axis, &two, INFINITY, -INFINITY);
  check_ok(msu_plot_axis_get_from(axis) == 1 && msu_plot_axis_get_to(axis) == 600,
           "a plot that is gone counts no more");
}

static gsize count_color(GdkTexture *texture, guint index) {
  const int width = gdk_texture_get_width(texture), height = gdk_texture_get_height(texture);
  g_autofree guint32 *pixels = g_new(guint32, (gsize)width * height);
  const GdkRGBA color = msu_palette(index, FALSE);
  gsize count = 0;
  gdk_texture_download(texture, (guchar *)pixels, (gsize)width * 4);
  for (gsize i = 0; i < (gsize)width * height; i++)
    count += abs((int)(pixels[i] >> 16 & 255) - (int)(255 * color.red + .5f)) < 3 &&
             abs((int)(pixels[i] >> 8 & 255) - (int)(255 * color.green + .5f)) < 3 &&
             abs((int)(pixels[i] & 255) - (int)(255 * color.blue + .5f)) < 3;
  return count;
}

static void check_plot(void) {
  g_autoptr(MsuPlotAxis) axis = msu_plot_axis_new();
  g_autoptr(MsaSeries) series = msa_series_new("loss");
  GtkWidget *window = gtk_window_new(), *plot = msu_plot_new("Loss", NULL, axis);
  gboolean gone = FALSE;
  gtk_window_set_child(GTK_WINDOW(window), plot);
  gtk_window_present(GTK_WINDOW(window));
  msu_plot_add_curve(MSU_PLOT(plot), series, "Loss", MSU_CURVE_LINE, 0);
  wait_seconds(.2);
  feed(series, 1, 500, 1);
  wait_seconds(.2);
  check_ok(msu_plot_axis_get_to(axis) == 500, "points move the axis");
  g_autoptr(GdkTexture) texture = msu_plot_render(MSU_PLOT(plot), 300, 160, 2);
  check_ok(gdk_texture_get_width(texture) == 600 && gdk_texture_get_height(texture) == 320,
           "a picture at twice the size");
  check_ok(count_color(texture, 0) > 500, "with the curve in its colour: %d pixels",
           (int)count_color(texture, 0));
  msu_plot_clear(MSU_PLOT(plot));
  g_autoptr(GdkTexture) empty = msu_plot_render(MSU_PLOT(plot), 300, 160, 2);
  check_ok(count_color(empty, 0) == 0, "without it when it is taken away");
  msu_plot_add_curve(MSU_PLOT(plot), series, "Loss", MSU_CURVE_LINE, 0);
  g_object_weak_ref(G_OBJECT(plot), wait_gone_cb, &gone);
  gtk_window_destroy(GTK_WINDOW(window));
  check_ok(wait_for(wait_flag, &gone, 3), "the plot is finalised");
  feed(series, 501, 520, 1);
  check_ok(msa_series_get_length(series) == 520, "and its series goes on without it");
}

static void tell(MsaRun *run, const char *name, double step, double value) {
  msa_series_append(msa_run_get_series(run, name), &step, &value, 1);
}

static guint count_mapped(GtkWidget *widget) {
  guint count = MSU_IS_PLOT(widget) && gtk_widget_get_mapped(widget);
  for (GtkWidget *child = gtk_widget_get_first_child(widget); child;
       child = gtk_widget_get_next_sibling(child))
    count += count_mapped(child);
  return count;
}

/* Lanes are shown, and what passes through memory is told, where layers lie on the disk. */
static void check_lanes(GtkWidget *page, MsaRun *run) {
  static const char *const lanes[] = {"compute_seconds", "read_seconds", "write_seconds", "optimizer_seconds",
                                      "waited_seconds"};
  const guint before = count_mapped(page);
  tell(run, "layers", 1, 6);
  tell(run, "disk_layers", 1, 0);
  tell(run, "read_bytes", 1, 0);
  for (gsize i = 0; i < G_N_ELEMENTS(lanes); i++)
    tell(run, lanes[i], 1, .1);
  wait_seconds(.2);
  check_ok(count_mapped(page) == before && find_shown(page, GTK_TYPE_LABEL, "Every layer in memory") != NULL,
           "a run in memory says so and shows no lanes");
  tell(run, "disk_layers", 2, 4);
  tell(run, "written_bytes", 2, 3 << 20);
  tell(run, "read_bytes", 2, 5 << 20);
  wait_seconds(.2);
  check_ok(
      count_mapped(page) == before + 1 &&
          find_shown(page, GTK_TYPE_LABEL, "4 of 6 layers on the disk; a step reads 5 MB and writes 3 MB"),
      "one with layers on the disk shows its lanes and what is moved");
}

static void check_page(void) {
  g_autoptr(MsaStudio) studio = msa_studio_new();
  GListStore *runs = G_LIST_STORE(msa_studio_get_runs(studio));
  g_autoptr(MsaRun) first = make_run(1, "harbour", MSA_JOB_DONE, 2000);
  g_autoptr(MsaRun) second = make_run(2, "garden", MSA_JOB_CANCELLED, 700);
  GtkWidget *window = gtk_window_new(), *page = msu_train_page_new(studio);
  gboolean gone = FALSE, graphs_gone = FALSE;
  gtk_window_set_child(GTK_WINDOW(window), page);
  gtk_window_set_default_size(GTK_WINDOW(window), 1000, 640);
  gtk_window_present(GTK_WINDOW(window));
  wait_seconds(.3);
  check_ok(find_shown(page, GTK_TYPE_BUTTON, "Choose a folder") != NULL, "without runs it says how to begin");
  g_list_store_append(runs, first);
  wait_seconds(.3);
  check_ok(find_shown(page, MSU_TYPE_RUN_ROW, NULL) &&
               find_shown(page, GTK_TYPE_LABEL, "Step 2,000, loss 0.2500"),
           "a run is in the list with its step and loss");
  check_ok(find_shown(page, GTK_TYPE_LABEL, "Done · Step 2,000 of 2,000") != NULL,
           "and shown with how far it is");
  check_ok(find_shown(page, GTK_TYPE_BUTTON, "Use this model") && !find_shown(page, GTK_TYPE_BUTTON, "Pause"),
           "one that is done can be used, not paused");
  g_list_store_append(runs, second);
  GtkWidget *graphs = find_shown(page, MSU_TYPE_RUN_GRAPHS, NULL);
  g_autoptr(GPtrArray) others = g_ptr_array_new();
  g_autoptr(MsaRun) third = make_run(3, "cellar", MSA_JOB_PAUSED, 1500);
  g_ptr_array_add(others, second);
  g_ptr_array_add(others, third);
  g_autoptr(GdkTexture) alone = msu_run_graphs_render(MSU_RUN_GRAPHS(graphs));
  msu_run_graphs_set_runs(MSU_RUN_GRAPHS(graphs), first, others);
  msu_run_graphs_set_log(MSU_RUN_GRAPHS(graphs), TRUE);
  wait_seconds(.3);
  g_autoptr(GdkTexture) all = msu_run_graphs_render(MSU_RUN_GRAPHS(graphs));
  check_ok(count_color(alone, 2) == 0 && count_color(all, 2) > 100,
           "others are laid over it in colours of their own: %d pixels", (int)count_color(all, 2));
  g_list_store_remove(runs, 0);
  wait_seconds(.2);
  check_ok(find_shown(page, GTK_TYPE_LABEL, "Stopped and kept · Step 700 of 2,000") != NULL,
           "when a run leaves the list, another is shown");
  check_lanes(page, second);
  g_object_weak_ref(G_OBJECT(page), wait_gone_cb, &gone);
  g_object_weak_ref(G_OBJECT(graphs), wait_gone_cb, &graphs_gone);
  gtk_window_destroy(GTK_WINDOW(window));
  check_ok(wait_for(wait_flag, &gone, 3) && wait_for(wait_flag, &graphs_gone, 3),
           "page and graphs are finalised");
  check_ok(G_OBJECT(second)->ref_count == 2, "and hold no run: %u references", G_OBJECT(second)->ref_count);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  adw_init();
  check_series();
  check_axis();
  check_plot();
  check_page();
  return check_end();
}
