/* A few frames in memory: a preview while a clip forms, a moving thumbnail, a poster.
 *
 * Immutable and reference counted; safe to pass between threads. */
#pragma once
#include <gio/gio.h>

#define MSA_TYPE_FRAMES (msa_frames_get_type())
typedef struct MsaFrames MsaFrames;
GType msa_frames_get_type(void);
struct MsaFrames {
  int width, height, count; /* all above 0 */
  double fps;               /* the clip's own speed, also where only some of its frames are here */
  int step, steps;          /* of the sampler, for previews; else 0 */
  const guint8 *rgb;        /* [count, height, width, 3]; borrowed from bytes */
  GBytes *bytes;
};
/* Copies rgb. */
MsaFrames *msa_frames_new(const guint8 *rgb, int width, int height, int count, double fps);
MsaFrames *msa_frames_ref(MsaFrames *frames);
void msa_frames_unref(MsaFrames *frames);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MsaFrames, msa_frames_unref)

/* Decodes a clip off the main thread, scaled to fit a square of `side` pixels, at most `most` frames evenly
 * spaced over the clip (fps is then lowered so that the whole lasts as long). Loads are served newest first
 * and dropped when cancelled, so that a grid that is scrolled fast stays quick. A small cache in memory (64
 * MiB) answers repeats. */
void msa_frames_load_async(const char *path, int side, int most, GCancellable *cancellable,
                           GAsyncReadyCallback callback, gpointer data);
MsaFrames *msa_frames_load_finish(GAsyncResult *result, GError **error);
