/* Turning the main loop in tests of widgets. */
#pragma once
#include <gtk/gtk.h>

/* Turns the main loop until a condition holds; FALSE if it does not within some seconds. */
static inline gboolean wait_for(gboolean (*holds)(gpointer data), gpointer data, double seconds) {
  gint64 end = g_get_monotonic_time() + (gint64)(seconds * G_USEC_PER_SEC);
  while (!holds(data)) {
    if (g_get_monotonic_time() > end)
      return FALSE;
    if (!g_main_context_iteration(NULL, FALSE))
      g_usleep(1000);
  }
  return TRUE;
}

static inline gboolean wait_never(gpointer data) {
  return FALSE;
}

static inline void wait_seconds(double seconds) {
  wait_for(wait_never, NULL, seconds);
}

/* Sets a flag when the object is finalised. */
static inline void wait_gone_cb(gpointer data, GObject *where) {
  *(gboolean *)data = TRUE;
}

static inline gboolean wait_flag(gpointer data) {
  return *(gboolean *)data;
}
