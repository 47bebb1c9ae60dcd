/* Writing video files: RGB frames in, a file that plays everywhere out. H.264 High 4:2:0, BT.709 limited
 * range converted explicitly, all colour tags set, faststart, settings in the comment tag. The file grows as
 * FILE.part in the same folder and is renamed when it is complete and verified, so there is never half a
 * file; bytes depend on frames and settings alone (constant thread count, no times written). */
#pragma once
#include <stdint.h>
#include "ms-error.h"

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
