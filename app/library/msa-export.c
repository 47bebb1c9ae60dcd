/* The export of the command line on a worker, and the choices a person is given. */
#include "msa-export.h"

#include <glib/gi18n-lib.h>
#include <string.h>

#include "core/bridge.h"
#include "core/errors.h"
#include "core/quiet.h"
#include "export/export-work.h"
#include "library/export-private.h"

#define PRESETS 8

static const MsaExportPreset presets[PRESETS] = {
    {"everywhere", N_("MP4, plays everywhere"), "mp4", "h264", 85},
    {"small", N_("Small MP4, to send"), "mp4", "h264", 60},
    {"webm", N_("WebM, for web pages"), "webm", "vp9", 75},
    {"h265", N_("MP4 with H.265, half the size"), "mp4", "h265", 80},
    {"av1", N_("MP4 with AV1, smallest"), "mp4", "av1", 75},
    {"prores", N_("ProRes, to edit on"), "mov", "prores", 85},
    {"gif", N_("GIF, an animated picture"), "gif", "gif", 85},
    {"png", N_("PNG, a folder of frames without loss"), "png", "png", 85},
};

/* Size of a file: a fixed part (container, settings, what an encoder spends on the first frame) and bits for
 * a pixel. Fitted to clips of the starter of 192x128x33 and 320x192x97, all within a factor of 1.7. */
static const struct {
  const char *id;
  double bytes, bits;
} sizes[PRESETS] = {{"everywhere", 4000, 0.38}, {"small", 4000, 0.11}, {"webm", 5000, 0.042},
                    {"h265", 5500, 0.042},      {"av1", 4500, 0.023},  {"prores", 2000, 3.5},
                    {"gif", 2000, 1.3},         {"png", 0, 5}};

/* Those that can be done. Written once, before `available_count` says so. */
static MsaExportPreset available[PRESETS];
static guint available_count;

void msa_export_probe(void) {
  static gsize done;
  guint count = 0;
  if (!g_once_init_enter(&done))
    return;
  for (guint i = 0; i < PRESETS; i++) {
    enum ms_format format;
    if (ms_format_from_name(presets[i].format, &format, NULL) == 0 && ms_format_available(format))
      available[count++] = presets[i];
  }
  g_atomic_int_set(&available_count, count);
  g_once_init_leave(&done, 1);
}

const MsaExportPreset *msa_export_presets(guint *count) {
  *count = (guint)g_atomic_int_get(&available_count);
  return available;
}

guint64 msa_export_estimate(const MsaExportPreset *preset, int width, int height, int frames) {
  const double pixels = (double)width * height * frames;
  for (guint i = 0; i < PRESETS; i++)
    if (!strcmp(sizes[i].id, preset->id))
      return (guint64)(sizes[i].bytes + sizes[i].bits * pixels / 8);
  return (guint64)(pixels * 3);
}

struct export {
  struct msa_bridge *bridge;
  char *clip, *output, *format;
  int quality;
  double fps;
};

static void export_free(gpointer data) {
  struct export *export = data;
  msa_bridge_unref(export->bridge);
  g_free(export->clip);
  g_free(export->output);
  g_free(export->format);
  g_free(export);
}

static void progress_cb(void *data, int64_t done, int64_t frames, double seconds, double seconds_left) {
  /* a guess from the first tenth of a second would jump */
  msa_bridge_tell(data, frames > 0 ? (double)done / (double)frames : 0, seconds > 0.1 ? seconds_left : -1);
}

static void work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  const struct export *export = data;
  const struct msa_export_work what = {.clip = export->clip,
                                       .output = export->output,
                                       .format = export->format,
                                       .quality = export->quality,
                                       .fps = export->fps,
                                       .cancel = msa_bridge_cancel(export->bridge),
                                       .progress = progress_cb,
                                       .data = export->bridge};
  struct msa_export_result result;
  struct ms_error error = {0};
  GError *failure = NULL;
  if (msa_export_run(&what, &result, &error) == 0) {
    g_task_return_boolean(task, TRUE);
  } else {
    msa_error_set_from_engine(&failure, &error);
    g_task_return_error(task, failure);
  }
}

void msa_export_async(const char *clip, const char *output, const char *format, int quality, double fps,
                      MsaExportProgress progress, gpointer progress_data, GCancellable *cancellable,
                      GAsyncReadyCallback callback, gpointer data) {
  g_autoptr(GTask) task = g_task_new(NULL, cancellable, callback, data);
  struct export *export = g_new0(struct export, 1);
  export->bridge = msa_bridge_new(cancellable, progress, progress_data);
  export->clip = g_strdup(clip);
  export->output = g_strdup(output);
  export->format = g_strdup(format);
  export->quality = quality;
  export->fps = fps;
  g_task_set_source_tag(task, msa_export_async);
  g_task_set_task_data(task, export, export_free);
  /* a file that is verified and in its place stays, also if the cancel comes then */
  g_task_set_check_cancellable(task, FALSE);
  msa_task_run_quietly(task, work);
}

gboolean msa_export_finish(GAsyncResult *result, GError **error) {
  g_return_val_if_fail(g_async_result_is_tagged(result, msa_export_async), FALSE);
  return g_task_propagate_boolean(G_TASK(result), error);
}
