#include "room.h"

#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "harness.h"
#include "ms-generate.h"
#include "ms-media.h"
#include "msa-scenes.h"

static char *folder;

void room_begin(int argc, char **argv) {
  folder = g_dir_make_tmp("megaslide-room-XXXXXX", NULL);
  g_assert(folder);
  g_autofree char *data = room_path("data"), *cache = room_path("cache");
  g_setenv("XDG_DATA_HOME", data, TRUE);
  g_setenv("XDG_CACHE_HOME", cache, TRUE);
  g_setenv("MEGASLIDE_DATA", SOURCE_DATA, TRUE);
  g_mkdir(data, 0700);
  g_mkdir(cache, 0700);
  g_log_set_always_fatal(G_LOG_FATAL_MASK | G_LOG_LEVEL_CRITICAL);
  check_begin(argc, argv);
}

static void clear(const char *path) {
  g_autoptr(GDir) dir = g_file_test(path, G_FILE_TEST_IS_SYMLINK) ? NULL : g_dir_open(path, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    g_autofree char *entry = g_build_filename(path, name, NULL);
    clear(entry);
  }
  g_remove(path);
}

int room_end(void) {
  clear(folder);
  g_clear_pointer(&folder, g_free);
  return check_end();
}

char *room_path(const char *name) {
  return g_build_filename(folder, name, NULL);
}

void room_clip(const char *path, int frames, const char *comment) {
  enum { WIDTH = 96, HEIGHT = 64 };
  static guint8 rgb[WIDTH * HEIGHT * 3];
  const struct msa_scenes_params scenes = msa_scenes_params_default();
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder = NULL;
  struct ms_error error = {0};
  struct msa_scene scene;
  msa_scene_draw(&scenes, 3, &scene);
  params.width = WIDTH;
  params.height = HEIGHT;
  params.fps = 8;
  params.comment = comment;
  int code = ms_format_from_path(path, &params.format, &error);
  if (code == 0)
    code = ms_encoder_open(&encoder, path, &params, &error);
  for (int i = 0; code == 0 && i < frames; i++) {
    msa_scene_render_frame(&scene, WIDTH, HEIGHT, frames, i, rgb);
    memset(rgb, i * 255 / MAX(1, frames - 1), sizeof rgb / 8); /* a bar at the top that tells the frame */
    code = ms_encoder_write(encoder, rgb, &error);
  }
  if (code == 0)
    code = ms_encoder_finish(encoder, &error);
  ms_encoder_close(&encoder);
  if (code < 0)
    g_error("no clip: %s", error.message);
}

static void generate(struct ms_generate_job *job) {
  const struct ms_machine machine = {.data_folder = SOURCE_DATA};
  struct ms_generate_result result;
  struct ms_error error = {0};
  if (ms_generate(job, &machine, NULL, &result, &error) < 0)
    g_error("no clip: %s", error.message);
}

void room_generate(const char *path, const char *prompt, gint64 seed) {
  struct ms_generate_job job = ms_generate_job_default();
  job.prompt = prompt;
  job.output = path;
  job.width = job.height = 64;
  job.frames = 5;
  job.steps = 2;
  job.seed = seed;
  generate(&job);
}

void room_generate_default(const char *path) {
  struct ms_generate_job job = ms_generate_job_default();
  job.prompt = "a red ball rolls to the right on a blue background";
  job.output = path;
  job.seed = 1;
  generate(&job);
}

void room_write(const char *path, const char *text) {
  g_autoptr(GError) error = NULL;
  if (!g_file_set_contents(path, text, -1, &error))
    g_error("%s", error->message);
}

gboolean room_exists(const char *path) {
  return g_file_test(path, G_FILE_TEST_EXISTS);
}

guint room_count(const char *path) {
  g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
  guint count = 0;
  while (dir && g_dir_read_name(dir))
    count++;
  return count;
}

void room_done(GObject *source, GAsyncResult *result, gpointer data) {
  *(GAsyncResult **)data = g_object_ref(result);
}

GAsyncResult *room_wait(GAsyncResult **result) {
  while (!*result)
    g_main_context_iteration(NULL, TRUE);
  return *result;
}

static gboolean wake_cb(gpointer data) {
  return G_SOURCE_CONTINUE;
}

gboolean room_until(gboolean (*holds)(gpointer data), gpointer data, double seconds) {
  const gint64 end = g_get_monotonic_time() + (gint64)(seconds * 1e6);
  const guint waker = g_timeout_add(20, wake_cb, NULL);
  while (!holds(data) && g_get_monotonic_time() < end)
    g_main_context_iteration(NULL, TRUE);
  g_source_remove(waker);
  return holds(data);
}
