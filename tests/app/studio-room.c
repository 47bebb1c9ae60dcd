#include "studio-room.h"

#include <string.h>

#include "harness.h"

MsaStudio *room_try_open(GError **error) {
  g_autoptr(MsaStudio) studio = msa_studio_new();
  g_autoptr(GAsyncResult) result = NULL;
  msa_studio_open_async(studio, room_done, &result);
  room_wait(&result);
  return msa_studio_open_finish(studio, result, error) ? g_steal_pointer(&studio) : NULL;
}

MsaStudio *room_open(void) {
  g_autoptr(GError) error = NULL;
  MsaStudio *studio = room_try_open(&error);
  if (!studio)
    g_error("no studio: %s", error->message);
  return studio;
}

void room_close(MsaStudio *studio) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_studio_close_async(studio, room_done, &result);
  room_wait(&result);
  check_ok(msa_studio_close_finish(studio, result, NULL), "the studio closes");
  g_clear_object(&result);
  room_idle(.02); /* callbacks of the close hold references */
  g_object_add_weak_pointer(G_OBJECT(studio), (gpointer *)&studio);
  g_object_unref(studio);
  check_ok(!studio, "and nothing holds it any more");
}

MsaGenerateParams *room_params(const char *prompt, int steps, gint64 seed) {
  MsaGenerateParams *params = msa_generate_params_new();
  params->prompt = g_strdup(prompt);
  params->width = params->height = 64;
  params->frames = 5;
  params->steps = steps;
  params->seed = seed;
  return params;
}

MsaJob *room_add(MsaStudio *studio, const char *prompt, int steps, gint64 seed) {
  g_autoptr(MsaGenerateParams) params = room_params(prompt, steps, seed);
  return msa_queue_add_generate(msa_studio_get_queue(studio), params);
}

struct reaching {
  MsaJob *job;
  MsaStudio *studio;
  gint64 number;
};

static gboolean has_state(gpointer data) {
  const struct reaching *reaching = data;
  return msa_job_get_state(reaching->job) == (enum msa_job_state)reaching->number;
}

gboolean room_reaches(MsaJob *job, enum msa_job_state state, double seconds) {
  struct reaching reaching = {.job = job, .number = state};
  return room_until(has_state, &reaching, seconds);
}

static gboolean has_jobs(gpointer data) {
  const struct reaching *reaching = data;
  return g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_queue(reaching->studio))) == reaching->number;
}

gboolean room_listed(MsaStudio *studio, guint jobs, double seconds) {
  struct reaching reaching = {.studio = studio, .number = jobs};
  return room_until(has_jobs, &reaching, seconds);
}

static gboolean has_done(gpointer data) {
  const struct reaching *reaching = data;
  return msa_job_get_done(reaching->job) >= reaching->number;
}

gboolean room_stepped(MsaJob *job, gint64 done, double seconds) {
  struct reaching reaching = {.job = job, .number = done};
  return room_until(has_done, &reaching, seconds);
}

static gboolean never(gpointer data) {
  return FALSE;
}

void room_idle(double seconds) {
  room_until(never, NULL, seconds);
}

MsaJob *room_nth(MsaStudio *studio, guint position) {
  g_autoptr(MsaJob) job = g_list_model_get_item(G_LIST_MODEL(msa_studio_get_queue(studio)), position);
  return job;
}

gboolean room_same_bytes(const char *a, const char *b) {
  g_autofree char *x = NULL, *y = NULL;
  gsize x_size = 0, y_size = 0;
  return g_file_get_contents(a, &x, &x_size, NULL) && g_file_get_contents(b, &y, &y_size, NULL) &&
         x_size == y_size && !memcmp(x, y, x_size);
}
