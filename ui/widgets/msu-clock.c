#include "widgets/msu-clock.h"

#define LONGEST_STEP .25

struct msu_clock {
  GtkWidget *seen, *beat;
  void (*step)(gpointer data, double passed);
  gpointer data;
  gboolean running;
  guint tick;       /* 0: rests */
  gint64 last_time; /* microseconds; 0: no step yet since it turns */
};

static gboolean tick_cb(GtkWidget *widget, GdkFrameClock *frame_clock, gpointer data) {
  struct msu_clock *clock = data;
  const gint64 time = gdk_frame_clock_get_frame_time(frame_clock);
  const double passed = clock->last_time ? MIN((double)(time - clock->last_time) / 1e6, LONGEST_STEP) : 0;
  clock->last_time = time;
  clock->step(clock->data, passed);
  return G_SOURCE_CONTINUE;
}

static void update(struct msu_clock *clock) {
  const gboolean turns = clock->running && gtk_widget_get_mapped(clock->seen);
  if (turns && !clock->tick) {
    clock->last_time = 0;
    clock->tick = gtk_widget_add_tick_callback(clock->beat, tick_cb, clock, NULL);
  } else if (!turns && clock->tick) {
    gtk_widget_remove_tick_callback(clock->beat, clock->tick);
    clock->tick = 0;
  }
}

struct msu_clock *msu_clock_new(GtkWidget *seen, GtkWidget *beat, void (*step)(gpointer data, double passed),
                                gpointer data) {
  struct msu_clock *clock = g_new0(struct msu_clock, 1);
  clock->seen = seen;
  clock->beat = beat;
  clock->step = step;
  clock->data = data;
  g_signal_connect_swapped(seen, "map", G_CALLBACK(update), clock);
  g_signal_connect_swapped(seen, "unmap", G_CALLBACK(update), clock);
  return clock;
}

void msu_clock_set_running(struct msu_clock *clock, gboolean running) {
  clock->running = running;
  update(clock);
}

gboolean msu_clock_turns(const struct msu_clock *clock) {
  return clock->tick != 0;
}

void msu_clock_free(struct msu_clock *clock) {
  g_signal_handlers_disconnect_by_data(clock->seen, clock);
  msu_clock_set_running(clock, FALSE);
  g_free(clock);
}
