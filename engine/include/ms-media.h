/* Video files: reading them frame by frame, and writing files that play everywhere.
 *
 *   params = ms_encoder_params_default (); params.width = 192; params.height = 128; params.fps = 8;
 *   ms_encoder_open (&encoder, "ball.mp4", &params, &error);
 *   for each frame: ms_encoder_write (encoder, rgb, &error);
 *   ms_encoder_finish (encoder, &error);   // verified and renamed
 *   ms_encoder_close (&encoder); */
#pragma once
#include <stdint.h>
#include "ms-error.h"

/* Reading video files through libav*: every container and codec FFmpeg opens. Frames come out upright
 * (rotation applied), square pixels, RGB, in order of presentation; variable frame rates keep their times. */
struct ms_video;

struct ms_video_info {
  int width, height; /* of the frames that come out: after rotation, with square pixels */
  int coded_width, coded_height, rotation; /* degrees clockwise as stored */
  double fps;        /* average over the stream; of a GIF, which has delays only, nearer once it is counted */
  int64_t frames;    /* counted by decoding when ms_video_count was called, else -1 */
  double duration;   /* seconds, from the container */
  int variable_rate; /* times of the frames counted are not evenly spaced */
  char codec[32], pixel_format[32], container[32];
  char color_primaries[32], color_transfer[32], color_space[32], color_range[32];
  int has_audio;
};

/* A file, or a folder of frames 00001.png ... whose rate FILE.json tells (24 without it).
 * MS_EINPUT: not there, not a video, no decoder; the message names the file and the reason. */
int ms_video_open(struct ms_video **video, const char *path, struct ms_error *error);
void ms_video_close(struct ms_video **video);
const struct ms_video_info *ms_video_info(const struct ms_video *video);
/* The comment tag of the container, or where it has none the text of FILE.json; NULL: neither. */
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

/* Writing video files: RGB frames in, a file that plays everywhere out. H.264 High 4:2:0, BT.709 limited
 * range converted explicitly, all colour tags set, faststart, settings in the comment tag. The file grows as
 * FILE.part in the same folder and is renamed when it is complete and verified, so there is never half a
 * file; bytes depend on frames and settings alone (constant thread count, no times written). */
enum ms_format {
  MS_FORMAT_H264,
  MS_FORMAT_H265,
  MS_FORMAT_AV1,
  MS_FORMAT_VP9,
  MS_FORMAT_PRORES,
  MS_FORMAT_FFV1,
  MS_FORMAT_GIF,
  MS_FORMAT_PNG
};

struct ms_encoder_params {
  int width, height; /* even */
  double fps;
  enum ms_format format;
  int quality;         /* 0..100, default 85 */
  const char *comment; /* settings as JSON, or NULL */
};
struct ms_encoder_params ms_encoder_params_default(void);
/* The format that a file name's extension asks for, or an MS_EUSAGE that lists the known ones. */
int ms_format_from_path(const char *path, enum ms_format *format, struct ms_error *error);
/* The same from a name (h264, h265, av1, vp9, prores, ffv1, gif, png), and the name of a format. */
int ms_format_from_name(const char *name, enum ms_format *format, struct ms_error *error);
const char *ms_format_name(enum ms_format format);
/* Whether this system's FFmpeg has an encoder for it. Quick; any thread. */
int ms_format_available(enum ms_format format);

struct ms_encoder;
/* Checks that the folder exists and can be written and that there is an encoder, before anything costly:
 * MS_EOUTPUT, MS_EUSAGE. */
int ms_encoder_open(struct ms_encoder **encoder, const char *path, const struct ms_encoder_params *params,
                    struct ms_error *error);
int ms_encoder_write(struct ms_encoder *encoder, const uint8_t *rgb,
                     struct ms_error *error); /* width * height * 3 */
/* Flushes, syncs, re-opens and compares with what was asked (frames, size, fps, tags, comment), renames. */
int ms_encoder_finish(struct ms_encoder *encoder, struct ms_error *error);
void ms_encoder_close(struct ms_encoder **encoder); /* not finished: removes FILE.part */
/* Only the check of ms_encoder_open: can a file be made at path? */
int ms_output_check(const char *path, struct ms_error *error);
