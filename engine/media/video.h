/* Reading video files through libav*: every container and codec FFmpeg opens. Frames come out upright
 * (rotation applied), square pixels, RGB, in order of presentation; variable frame rates keep their times. */
#pragma once
#include <stdint.h>
#include "ms-error.h"

struct ms_video;

struct ms_video_info {
  int width, height; /* of the frames that come out: after rotation, with square pixels */
  int coded_width, coded_height, rotation; /* degrees clockwise as stored */
  double fps;                              /* average over the stream */
  int64_t frames;                          /* counted by decoding when ms_video_count was called, else -1 */
  double duration;                         /* seconds, from the container */
  int variable_rate;                       /* times of the frames counted are not evenly spaced */
  char codec[32], pixel_format[32], container[32];
  char color_primaries[32], color_transfer[32], color_space[32], color_range[32];
  int has_audio;
};

/* MS_EINPUT: not there, not a video, no decoder; the message names the file and the reason. */
int ms_video_open(struct ms_video **video, const char *path, struct ms_error *error);
void ms_video_close(struct ms_video **video);
const struct ms_video_info *ms_video_info(const struct ms_video *video);
/* The comment tag of the container, or NULL. */
const char *ms_video_comment(const struct ms_video *video);
/* Decodes to the end, counts, notes the times (variable_rate) and goes back to the start. */
int ms_video_count(struct ms_video *video, struct ms_error *error);
/* Next frame, scaled to width x height (0: as cropped) after cropping to `crop` (x, y, w, h in the frame that
 * comes out; NULL: none), as RGB24 rows of width * 3 bytes; *time in seconds from the first frame. Returns 1,
 * 0 at the end, or an error. */
int ms_video_read(struct ms_video *video, int width, int height, const int crop[4], uint8_t *rgb,
                  double *time, struct ms_error *error);
/* Passes over the next frame without converting it. Returns as ms_video_read. */
int ms_video_skip(struct ms_video *video, double *time, struct ms_error *error);
int ms_video_rewind(struct ms_video *video, struct ms_error *error);
