/* How long the window takes for a frame, and how late its main loop answers, while a clip is made and after.
 * Prints two histograms a phase; the aim is that nothing takes above 50 ms. */
#include <stdio.h>
#include <string.h>

#include "room.h"
#include "window/msu-window-jobs.h"

enum { BUCKETS = 8 };
static const int limits[BUCKETS] = {4, 8, 16, 25, 33, 50, 100, 1000000}; /* ms */

struct watch {
  gint64 began, asked;   /* microseconds */
  guint frames[BUCKETS]; /* time from the start of a frame to its end */
  guint lates[BUCKETS];  /* by how much a call that was asked for in 5 ms came late */
  double frame_most, late_most;
};

static void count(guint *buckets, double *most, double ms) {
  int i = 0;
  while (ms > limits[i])
    i++;
  buckets[i]++;
  *most = MAX(*most, ms);
}

static void before_cb(GdkFrameClock *clock, struct watch *watch) {
  watch->began = g_get_monotonic_time();
}

static void after_cb(GdkFrameClock *clock, struct watch *watch) {
  count(watch->frames, &watch->frame_most, (double)(g_get_monotonic_time() - watch->began) / 1000);
}

static gboolean late_cb(gpointer data) {
  struct watch *watch = data;
  const gint64 now = g_get_monotonic_time();
  count(watch->lates, &watch->late_most, MAX(0, (double)(now - watch->asked) / 1000 - 5));
  watch->asked = g_get_monotonic_time();
  g_timeout_add_full(G_PRIORITY_DEFAULT, 5, late_cb, watch, NULL);
  return G_SOURCE_REMOVE;
}

static void print(const char *phase, const char *what, const guint *buckets, double most) {
  printf("%-12s %-18s", phase, what);
  for (int i = 0; i + 1 < BUCKETS; i++)
    printf("  to %d ms: %u", limits[i], buckets[i]);
  printf("  above: %u", buckets[BUCKETS - 1]);
  printf("  most %.1f ms\n", most);
}

static void tell(const char *phase, struct watch *watch) {
  print(phase, "frames", watch->frames, watch->frame_most);
  print(phase, "main loop late by", watch->lates, watch->late_most);
  fflush(stdout);
  memset(watch->frames, 0, sizeof watch->frames);
  memset(watch->lates, 0, sizeof watch->lates);
  watch->frame_most = watch->late_most = 0;
}

static gboolean ended(gpointer job) {
  const enum msa_job_state state = msa_job_get_state(job);
  return state == MSA_JOB_DONE || state == MSA_JOB_FAILED;
}

static gboolean past(gpointer time) {
  return g_get_monotonic_time() > *(gint64 *)time;
}

int main(int argc, char **argv) {
  g_setenv("GSETTINGS_BACKEND", "memory", TRUE);
  g_setenv("GSK_RENDERER", "cairo", FALSE);
  room_begin(argc, argv);
  g_autoptr(GAsyncResult) opened = NULL, closed = NULL;
  g_autoptr(AdwApplication) application =
      adw_application_new("org.megaslide.Studio", G_APPLICATION_NON_UNIQUE);
  if (!g_application_register(G_APPLICATION(application), NULL, NULL))
    return 1;
  MsaStudio *studio = msa_studio_new();
  msa_studio_open_async(studio, room_done, &opened);
  if (!msa_studio_open_finish(studio, room_wait(&opened), NULL))
    return 1;
  struct watch watch = {0};
  GtkWidget *window = msu_window_new(application, studio);
  gtk_window_present(GTK_WINDOW(window));
  msu_window_show_opened(MSU_WINDOW(window));
  GdkFrameClock *clock = gtk_widget_get_frame_clock(window);
  g_signal_connect(clock, "before-paint", G_CALLBACK(before_cb), &watch);
  g_signal_connect(clock, "after-paint", G_CALLBACK(after_cb), &watch);
  watch.asked = g_get_monotonic_time();
  late_cb(&watch);
  gint64 end = g_get_monotonic_time() + 3 * G_USEC_PER_SEC;
  room_until(past, &end, 10);
  tell("at rest", &watch);

  g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
  params->prompt = g_strdup("a red ball rolls to the right on a blue background");
  params->width = 320;
  params->height = 192;
  params->steps = 100;
  g_autoptr(MsaJob) job = msa_queue_add_generate(msa_studio_get_queue(studio), params);
  room_until(ended, job, 300);
  tell("during a job", &watch);
  end = g_get_monotonic_time() + 5 * G_USEC_PER_SEC;
  room_until(past, &end, 10);
  tell("clip plays", &watch);

  g_source_remove_by_user_data(&watch);
  gtk_window_destroy(GTK_WINDOW(window));
  msa_studio_close_async(studio, room_done, &closed);
  msa_studio_close_finish(studio, room_wait(&closed), NULL);
  g_object_unref(studio);
  return 0;
}
