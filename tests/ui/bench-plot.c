/* How long the window needs for a frame while a million points move under it. Prints the processor time of
 * the frames' work (layout, picture, rendering), which a busy machine does not lengthen, and how many frames
 * came late; goal: 60 frames a second, 16.7 ms each. */
#include <gtk/gtk.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "plot/msu-plot-private.h"

#define POINTS 1000000
#define FRAMES 120

struct bench {
  GtkWidget *window;
  MsuPlotAxis *axis;
  MsaSeries *series;
  const char *name;
  double span; /* points in sight; 0: all, and each frame adds some; < 0: all, and the crosshair moves */
  int frame;
  double begun; /* ms of processor time */
  gint64 last;
  double work[FRAMES], wait[FRAMES];
  gboolean done;
};

static double value(int i) {
  return 0.1 + exp(-i * 5.0 / POINTS) * (1 + 0.3 * g_random_double()) + (i % 99991 == 7 ? 2 : 0);
}

static void append(MsaSeries *series, int count) {
  double *x = g_new(double, count), *y = g_new(double, count);
  int first = (int)msa_series_get_length(series);
  for (int i = 0; i < count; i++) {
    x[i] = first + i + 1;
    y[i] = value(first + i);
  }
  msa_series_append(series, x, y, (gsize)count);
  g_free(x);
  g_free(y);
}

static double processor_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

static void before_cb(GdkFrameClock *clock, gpointer data) {
  struct bench *bench = data;
  bench->begun = processor_ms();
  if (bench->span > 0) {
    double from = (POINTS - bench->span) * bench->frame / FRAMES;
    msu_plot_axis_look_at(bench->axis, from, from + bench->span);
  } else if (bench->span < 0) {
    msu_plot_axis_set_cross(bench->axis, (double)POINTS * bench->frame / FRAMES);
  } else {
    append(bench->series, 10);
  }
}

static void after_cb(GdkFrameClock *clock, gpointer data) {
  struct bench *bench = data;
  gint64 now = g_get_monotonic_time();
  if (bench->frame < FRAMES) {
    bench->work[bench->frame] = processor_ms() - bench->begun;
    bench->wait[bench->frame] = bench->last ? 1e-3 * (double)(now - bench->last) : NAN;
    bench->last = now;
  }
  bench->done = ++bench->frame >= FRAMES;
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print(struct bench *bench, int plots) {
  int late = 0;
  for (int i = 1; i < FRAMES; i++)
    late += bench->wait[i] > 1000 / 60.0 * 1.5;
  /* the first frames load fonts */
  qsort(bench->work + 5, FRAMES - 5, sizeof *bench->work, compare);
  g_print("bench %-28s %d plot%s: frame work median %5.2f ms, 99th of 100 %5.2f ms, most %5.2f ms, late %d "
          "of %d\n",
          bench->name, plots, plots > 1 ? "s" : " ", bench->work[5 + (FRAMES - 5) / 2],
          bench->work[5 + (FRAMES - 5) * 99 / 100], bench->work[FRAMES - 1], late, FRAMES);
}

static void run(const char *name, double span, int plots) {
  struct bench bench = {.name = name, .span = span};
  bench.axis = msu_plot_axis_new();
  bench.series = msa_series_new("loss");
  append(bench.series, POINTS);
  bench.window = g_object_ref_sink(gtk_window_new());
  GtkWidget *grid = gtk_grid_new();
  gtk_grid_set_row_homogeneous(GTK_GRID(grid), TRUE);
  gtk_grid_set_column_homogeneous(GTK_GRID(grid), TRUE);
  for (int i = 0; i < plots; i++) {
    GtkWidget *plot = msu_plot_new("Loss", NULL, bench.axis);
    gtk_widget_set_hexpand(plot, TRUE);
    gtk_widget_set_vexpand(plot, TRUE);
    msu_plot_add_curve(MSU_PLOT(plot), bench.series, "Raw", MSU_CURVE_RAW, 0);
    msu_plot_add_curve(MSU_PLOT(plot), bench.series, "Loss", MSU_CURVE_LINE, 0);
    gtk_grid_attach(GTK_GRID(grid), plot, i % 2, i / 2, 1, 1);
  }
  gtk_window_set_child(GTK_WINDOW(bench.window), grid);
  gtk_window_set_default_size(GTK_WINDOW(bench.window), 1280, plots > 1 ? 760 : 320);
  gtk_window_present(GTK_WINDOW(bench.window));
  GdkFrameClock *clock = gtk_widget_get_frame_clock(bench.window);
  g_signal_connect(clock, "before-paint", G_CALLBACK(before_cb), &bench);
  g_signal_connect(clock, "after-paint", G_CALLBACK(after_cb), &bench);
  gdk_frame_clock_begin_updating(clock);
  while (!bench.done)
    g_main_context_iteration(NULL, TRUE);
  gdk_frame_clock_end_updating(clock);
  g_signal_handlers_disconnect_by_data(clock, &bench);
  print(&bench, plots);
  gtk_window_destroy(GTK_WINDOW(bench.window));
  g_object_unref(bench.window);
  g_object_unref(bench.axis);
  g_object_unref(bench.series);
}

int main(void) {
  if (!gtk_init_check()) {
    g_print("there is no display\n");
    return 77;
  }
  for (int plots = 1; plots <= 6; plots += 5) {
    run("all of a million, crosshair", -1, plots);
    run("all of a million, growing", 0, plots);
    run("300,000 of a million scroll", 300000, plots);
    run("20,000 of a million scroll", 20000, plots);
    run("1,000 of a million scroll", 1000, plots);
  }
  return 0;
}
