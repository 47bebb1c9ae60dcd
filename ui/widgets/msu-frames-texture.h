/* One of a few frames as a texture. */
#pragma once
#include "msa-frames.h"
#include <gdk/gdk.h>

/* A new texture of a frame, which shares the frames' memory. */
GdkTexture *msu_frames_texture_new(const MsaFrames *frames, int frame);
