/* Exports: every preset there and back, and those that are stopped or fail leave nothing. */
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/rooms.h"
#include "harness.h"
#include "library/export-private.h"
#include "ms-media.h"
#include "msa-error.h"
#include "room.h"

#define SETTINGS "{\"program\":\"megaslide\",\"prompt\":\"a red ball\",\"seed\":3,\"fps\":8}"
enum { FRAMES = 13 };

struct told {
  int calls;
  double last;
  gboolean ordered;
  GCancellable *cancel_at; /* cancelled by the first call */
};

static void progress_cb(double fraction, double seconds_left, gpointer data) {
  struct told *told = data;
  told->ordered = told->ordered && fraction >= told->last && fraction <= 1;
  told->last = fraction;
  told->calls++;
  if (told->cancel_at)
    g_cancellable_cancel(told->cancel_at);
}

static gboolean export(const char *clip, const char *output, const MsaExportPreset *preset, struct told *told,
                       GCancellable *cancellable, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  *told = (struct told){.ordered = TRUE, .cancel_at = told->cancel_at};
  msa_export_async(clip, output, preset->format, preset->quality, 0, progress_cb, told, cancellable,
                   room_done, &result);
  return msa_export_finish(room_wait(&result), error);
}

static guint64 size_of(const char *path) {
  guint64 bytes = 0;
  struct stat info;
  if (g_file_test(path, G_FILE_TEST_IS_DIR)) {
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir && (name = g_dir_read_name(dir))) {
      g_autofree char *entry = g_build_filename(path, name, NULL);
      bytes += size_of(entry);
    }
  } else if (stat(path, &info) == 0) {
    bytes = (guint64)info.st_size;
  }
  return bytes;
}

static void check_preset(const char *clip, const MsaExportPreset *preset) {
  g_autofree char *name = g_strdup_printf("out-%s.%s", preset->id, preset->extension),
                  *output = room_path(name);
  g_autoptr(GError) error = NULL;
  struct ms_video *video = NULL;
  struct told told = {0};
  const gboolean good = export(clip, output, preset, &told, NULL, &error);
  check_ok(good, "%s: %s", preset->id, error ? error->message : preset->label);
  if (!good || ms_video_open(&video, output, NULL) < 0 || ms_video_count(video, NULL) < 0) {
    check_ok(0, "%s reads back", output);
    return;
  }
  const struct ms_video_info *info = ms_video_info(video);
  const char *comment = ms_video_comment(video);
  check_ok(info->frames == FRAMES && info->width == 96 && info->height == 64, "it has %d frames of %dx%d",
           (int)info->frames, info->width, info->height);
  check_ok(comment && !strcmp(comment, SETTINGS), "and carries the settings");
  check_ok(told.calls > 0 && told.ordered && told.last == 1, "progress went up to the end (%d times)",
           told.calls);
  ms_video_close(&video);
}

/* The estimate is made for clips of a usual size. */
static void check_estimates(const char *clip) {
  guint count;
  const MsaExportPreset *presets = msa_export_presets(&count);
  for (guint i = 0; i < count; i++) {
    g_autofree char *name = g_strdup_printf("size-%s.%s", presets[i].id, presets[i].extension),
                    *output = room_path(name);
    struct told told = {0};
    if (!export(clip, output, &presets[i], &told, NULL, NULL))
      continue;
    const double guess = (double)msa_export_estimate(&presets[i], 192, 128, 33),
                 real = (double)size_of(output);
    check_ok(guess < 2 * real && real < 2 * guess, "%s: %.0f bytes were guessed, %.0f came", presets[i].id,
             guess, real);
  }
}

static void check_stopped(const char *clip) {
  guint count;
  const MsaExportPreset *presets = msa_export_presets(&count);
  g_autofree char *folder = room_path("stopped");
  g_mkdir(folder, 0700);
  for (guint i = 0; i < count; i++) {
    g_autofree char *name = g_strdup_printf("x.%s", presets[i].extension),
                    *output = g_build_filename(folder, name, NULL);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GError) error = NULL;
    struct told told = {.cancel_at = cancellable};
    const gboolean done = export(clip, output, &presets[i], &told, cancellable, &error);
    check_ok(!done && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED) && room_count(folder) == 0,
             "%s that is cancelled leaves nothing: %s", presets[i].id,
             error ? error->message : "it was done");
  }
}

static void check_refused(const char *clip) {
  guint count;
  const MsaExportPreset *preset = msa_export_presets(&count);
  g_autofree char *nowhere = room_path("no/such/x.mp4"), *missing = room_path("missing.mp4"),
                  *output = room_path("refused.mp4");
  g_autoptr(GError) a = NULL, b = NULL, c = NULL;
  struct told told = {0};
  const guint64 before = size_of(clip);
  const gboolean itself = export(clip, clip, preset, &told, NULL, &a),
                 lost = export(clip, nowhere, preset, &told, NULL, &b),
                 nothing = export(missing, output, preset, &told, NULL, &c);
  check_ok(!itself && g_error_matches(a, MSA_ERROR, MSA_ERROR_USAGE) && size_of(clip) == before,
           "onto itself: %s", a ? a->message : "it was done");
  check_ok(!lost && g_error_matches(b, MSA_ERROR, MSA_ERROR_OUTPUT), "into no folder: %s",
           b ? b->message : "it was done");
  check_ok(!nothing && g_error_matches(c, MSA_ERROR, MSA_ERROR_INPUT) && !room_exists(output),
           "of nothing: %s", c ? c->message : "it was done");
}

int main(int argc, char **argv) {
  guint count;
  room_begin(argc, argv);
  g_autofree char *clip = room_path("clip.mp4"), *large = room_path("large.mp4"),
                  *starter = room_path("s.mp4");
  check_ok((msa_export_presets(&count), count == 0), "no presets before the encoders were looked for");
  msa_export_probe();
  const MsaExportPreset *presets = msa_export_presets(&count);
  check_ok(count >= 2 && !strcmp(presets[0].id, "everywhere"), "%u presets, the one for everywhere first",
           count);
  room_clip(clip, FRAMES, SETTINGS);
  for (guint i = 0; i < count; i++)
    check_preset(clip, &presets[i]);
  room_clip(large, 400, NULL);
  check_stopped(large);
  check_refused(clip);
  room_generate_default(starter);
  check_estimates(starter);
  return room_end();
}
