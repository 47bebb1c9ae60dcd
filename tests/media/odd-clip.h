/* Clips as cameras and other programs make them, written straight with libav*: rotated, of odd sizes, with
 * uneven times. */
#pragma once
#include <libavutil/pixfmt.h>
#include <libavutil/rational.h>
#include <stdint.h>

struct odd_clip {
  const char *path, *muxer, *encoder;
  enum AVPixelFormat pixels; /* 8-bit or 10-bit planar YUV, 4:2:0 or 4:4:4 */
  int width, height, frames;
  const int64_t *times; /* [frames] in 1/25 s; NULL: 0, 1, 2 ... */
  int rotation;         /* degrees clockwise that a player has to turn it; with `mirror` */
  int mirror;
  AVRational aspect;        /* of a pixel; zero: not said */
  enum AVColorSpace matrix; /* the one used and, with `tagged`, written */
  int full_range, tagged, audio;
  /* Fills rgb [height, width, 3] of a frame. */
  void (*draw)(uint8_t *rgb, int width, int height, int frame);
};
int odd_clip_write(const struct odd_clip *clip); /* 1: done */
