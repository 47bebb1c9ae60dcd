/* The parts of the encoder: a stream writer on libav*, frames as GIF, frames as a folder of PNG files.
 * Internal to this room.
 *
 * All write to PATH.part; the caller checks the result and renames it. `path` is the name for messages. */
#pragma once
#include <libavcodec/avcodec.h>

#include "ms-media.h"

/* "cannot write PATH: reason" for a code of libav*: MS_EOUTPUT, or MS_ENOMEM. */
int ms_media_failed(const char *path, int number, struct ms_error *error);

/* One video stream in one file. */
struct ms_stream_params {
  const char *path, *part, *muxer,
      *encoder; /* names as FFmpeg's; borrowed during open, path as long as the stream */
  enum ms_format format;
  enum AVPixelFormat pixels;
  int width, height, quality;
  double fps;
  const char *comment; /* or NULL */
};
struct ms_stream;
int ms_stream_open(struct ms_stream **stream, const struct ms_stream_params *params, struct ms_error *error);
/* A frame of the next time step; its buffer may be used again when the call returns. */
int ms_stream_write(struct ms_stream *stream, const AVFrame *frame, struct ms_error *error);
int ms_stream_finish(struct ms_stream *stream, struct ms_error *error); /* flushes and closes the file */
void ms_stream_close(struct ms_stream **stream);
/* A frame of the stream's size and format with the stream's colour tags, or NULL. */
AVFrame *ms_stream_frame(const struct ms_stream *stream);

/* GIF: one palette for the whole clip, so frames wait in an unnamed file beside the target until all colours
 * are known. */
struct ms_gif;
int ms_gif_open(struct ms_gif **gif, const char *path, const char *part, int width, int height, double fps,
                struct ms_error *error);
int ms_gif_write(struct ms_gif *gif, const uint8_t *rgb, struct ms_error *error);
int ms_gif_finish(struct ms_gif *gif, struct ms_error *error);
void ms_gif_close(struct ms_gif **gif);

/* PNG: PATH.part is a folder of 00001.png ...; commit makes it the folder PATH, or the file PATH if there is
 * but one frame. */
struct ms_frames;
int ms_frames_check(const char *path, struct ms_error *error); /* can a folder be made or replaced at path? */
int ms_frames_open(struct ms_frames **frames, const char *path, int width, int height,
                   struct ms_error *error);
int ms_frames_write(struct ms_frames *frames, const uint8_t *rgb, struct ms_error *error);
int ms_frames_sync(struct ms_frames *frames, struct ms_error *error);
int ms_frames_commit(struct ms_frames *frames, struct ms_error *error);
void ms_frames_close(struct ms_frames **frames); /* not committed: removes the folder PATH.part */
const char *ms_frames_part(const struct ms_frames *frames);
