/* The frames of a clip, one after the other and from any time on, decoded by GStreamer.
 *
 *   struct msu_decoder *decoder = msu_decoder_open(path, TRUE);
 *   while (msu_decoder_pull(decoder, &frame) == MSU_PULL_FRAME) ... g_clear_object(&frame.texture);
 *   msu_decoder_seek(decoder, time);    // the next frame is the one that is seen at that time
 *   msu_decoder_close(&decoder);
 *
 * Every call blocks for files and decoders, so a decoder belongs to one worker thread. Sound is left out: the
 * pipeline has video only and no clock, it decodes as fast as it is asked. */
#pragma once
#include <gdk/gdk.h>

struct msu_frame {
  gint64 time;         /* nanoseconds from the start of the clip at which it is seen */
  gint64 duration;     /* nanoseconds; 0: not known */
  GdkTexture *texture; /* the caller's; NULL without pixels */
};

enum msu_pull {
  MSU_PULL_FRAME,
  MSU_PULL_WAIT, /* nothing yet: ask again; comes after at most 50 ms */
  MSU_PULL_END,
  MSU_PULL_ERROR /* see msu_decoder_error */
};

struct msu_decoder;
/* Never NULL; what is wrong with the file is told by the first pull. pixels FALSE: times only, without the
 * conversion to RGB. */
struct msu_decoder *msu_decoder_open(const char *path, gboolean pixels);
void msu_decoder_close(struct msu_decoder **decoder);
enum msu_pull msu_decoder_pull(struct msu_decoder *decoder, struct msu_frame *frame);
/* FALSE: the pipeline cannot seek. Starts anew after an error. */
gboolean msu_decoder_seek(struct msu_decoder *decoder, gint64 time);

/* Of the clip; known after the first frame. */
int msu_decoder_width(const struct msu_decoder *decoder); /* of a picture, in its own pixels */
int msu_decoder_height(const struct msu_decoder *decoder);
double msu_decoder_pixel_aspect(const struct msu_decoder *decoder); /* width of a pixel over its height */
double msu_decoder_fps(const struct msu_decoder *decoder);          /* 0: not known */
gint64 msu_decoder_duration(struct msu_decoder *decoder);           /* nanoseconds; 0: not known */
gboolean msu_decoder_has_sound(const struct msu_decoder *decoder);  /* beside its pictures */
/* A sentence for a person; NULL if all is well. Owned by the decoder. */
const char *msu_decoder_error(const struct msu_decoder *decoder);
