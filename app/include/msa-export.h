/* A clip again in another format. `megaslide export` and the Library's export are this code. */
#pragma once
#include <gio/gio.h>

typedef struct MsaExportPreset {
  const char *id;        /* "everywhere", "small", "webm", "av1", "h265", "prores", "gif", "png" */
  const char *label;     /* for a person, translated by the caller with gettext */
  const char *extension; /* "mp4", "webm", "mov", "gif", "png" (a folder or numbered files) */
  const char *format;    /* as --format of the command */
  int quality;           /* as --quality */
} MsaExportPreset;
/* All presets that this machine's encoders can do; *count of them, 0 before the Studio is open. Static; does
 * no work. */
const MsaExportPreset *msa_export_presets(guint *count);
/* A guess of the size of the file in bytes. */
guint64 msa_export_estimate(const MsaExportPreset *preset, int width, int height, int frames);

/* progress (0..1, seconds left or < 0) is called on the main context. A cancelled or failed export leaves no
 * file. Sizes become even: a clip of 303x541 gives one of 302x540. */
typedef void (*MsaExportProgress)(double fraction, double seconds_left, gpointer data);
void msa_export_async(const char *clip, const char *output, const char *format, int quality, double fps,
                      MsaExportProgress progress, gpointer progress_data, GCancellable *cancellable,
                      GAsyncReadyCallback callback, gpointer data);
gboolean msa_export_finish(GAsyncResult *result, GError **error);
