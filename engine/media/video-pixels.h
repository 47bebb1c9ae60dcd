/* From a decoded frame in whatever format to upright RGB: colour conversion, crop, scaling, rotation. */
#pragma once
#include <libavutil/frame.h>
#include <libswscale/swscale.h>

#include "ms-error.h"

/* How the stored picture has to be turned to be upright: mirrored top to bottom first, then by quarters
 * clockwise. */
struct ms_turn {
  int quarters; /* 0..3 */
  int mirror;
};
/* From a display matrix (nine 16.16 numbers, as av_frame_side_data and streams carry it). */
struct ms_turn ms_turn_from_matrix(const int32_t matrix[9]);

struct ms_pixels { /* zero-initialised; keeps contexts between frames of one kind */
  struct SwsContext *planes_context, *scale_context;
  int kind[6];     /* of planes_context: width, height, format, matrix, range, chroma location */
  int sizes[4];    /* of scale_context: from, to */
  AVFrame *planes; /* GBRP of the frame's size */
  uint8_t *scaled; /* three planes of the size that was asked for, not yet turned */
  size_t scaled_bytes;
};
void ms_pixels_release(struct ms_pixels *pixels);
/* Fills rgb [height, width, 3] from `crop` (x, y, w, h) of the upright frame of up_width x up_height.
 * MS_ENOMEM, or MS_EINPUT for a pixel format that cannot be converted. */
int ms_pixels_convert(struct ms_pixels *pixels, const AVFrame *frame, struct ms_turn turn, int up_width,
                      int up_height, const int crop[4], int width, int height, uint8_t *rgb,
                      struct ms_error *error);
