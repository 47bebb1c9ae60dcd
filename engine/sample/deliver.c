#include "sample/deliver.h"

#include <math.h>
#include <stdlib.h>

#include "ms-media.h"
#include "sample/enlarge.h"

/* The upper left width x height of a decoded frame as 8-bit RGB. Returns 0 where a value is not finite. */
static int to_rgb(const float *pixels, int row_width, int width, int height, uint8_t *rgb) {
  for (int y = 0; y < height; y++)
    for (int i = 0; i < width * 3; i++) {
      float value = (pixels[(size_t)y * row_width * 3 + i] + 1) * 127.5f;
      if (!isfinite(value))
        return 0;
      rgb[(size_t)y * width * 3 + i] = (uint8_t)(value <= 0 ? 0 : value >= 255 ? 255 : lrintf(value));
    }
  return 1;
}

int ms_deliver_run(const struct ms_deliver *d, struct ms_error *error) {
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder = NULL;
  struct ms_codec_stream *decoder = NULL;
  int channels = ms_codec_channels(d->model->codec), strides[3], code, written = 0;
  size_t pixels_count;
  float *frame, *pixels;
  uint8_t *rgb;
  ms_codec_strides(d->model->codec, strides);
  pixels_count = (size_t)d->lattice[1] * strides[1] * d->lattice[2] * strides[2] * 3;
  params.width = d->width;
  params.height = d->height;
  params.fps = d->fps;
  params.comment = d->comment;
  frame = malloc((size_t)channels * d->lattice[1] * d->lattice[2] * sizeof *frame);
  pixels = malloc(pixels_count * strides[0] * sizeof *pixels);
  rgb = malloc((size_t)d->width * d->height * 3);
  code = frame && pixels && rgb
             ? 0
             : ms_error_set(error, MS_ENOMEM, "out of memory while decoding %dx%d", d->width, d->height);
  if (code == 0)
    code = ms_format_from_path(d->output, &params.format, error);
  if (code == 0)
    code = ms_encoder_open(&encoder, d->output, &params, error);
  if (code == 0)
    code = ms_codec_decoder_open(&decoder, d->model->codec, d->lattice[1], d->lattice[2], error);
  for (int t = 0; t < d->lattice[0] && written < d->frames && code == 0; t++) {
    int count = 0;
    ms_latents_take_frame(d->latents, channels, d->lattice, t, frame);
    code = ms_codec_decode_push(decoder, frame, pixels, &count, error);
    if (code == 0)
      code = ms_pool_stopped(d->model->compute->pool, "stopped while decoding", error);
    for (int f = 0; f < count && written < d->frames && code == 0; f++) {
      code = to_rgb(pixels + (size_t)f * pixels_count, d->lattice[2] * strides[2], d->width, d->height, rgb)
                 ? ms_encoder_write(encoder, rgb, error)
                 : ms_error_set(error, MS_ENOTFINITE,
                                "a value that is not finite came out of the codec's decoder in frame %d",
                                written + 1);
      written++;
      if (code == 0 && d->frame_done)
        d->frame_done(d->frame_data, written, d->frames);
    }
  }
  if (code == 0)
    code = ms_encoder_finish(encoder, error);
  ms_encoder_close(&encoder);
  ms_codec_stream_close(&decoder);
  free(frame);
  free(pixels);
  free(rgb);
  return code;
}
