#include "widgets/msu-frames-texture.h"

GdkTexture *msu_frames_texture_new(const MsaFrames *frames, int frame) {
  const gsize stride = (gsize)frames->width * 3, size = stride * frames->height;
  g_return_val_if_fail(frame >= 0 && frame < frames->count, NULL);
  g_autoptr(GBytes) bytes = g_bytes_new_from_bytes(frames->bytes, size * frame, size);
  return gdk_memory_texture_new(frames->width, frames->height, GDK_MEMORY_R8G8B8, bytes, stride);
}
