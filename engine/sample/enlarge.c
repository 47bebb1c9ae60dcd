#include "sample/enlarge.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "media/resize.h"

void ms_latents_take_frame(const float *latents, int channels, const int lattice[3], int t, float *frame) {
  size_t plane = (size_t)lattice[1] * (size_t)lattice[2];
  for (int c = 0; c < channels; c++)
    memcpy(frame + (size_t)c * plane, latents + ((size_t)c * lattice[0] + t) * plane, plane * sizeof *frame);
}

void ms_latents_put_frame(float *latents, int channels, const int lattice[3], int t, const float *frame) {
  size_t plane = (size_t)lattice[1] * (size_t)lattice[2];
  for (int c = 0; c < channels; c++)
    memcpy(latents + ((size_t)c * lattice[0] + t) * plane, frame + (size_t)c * plane, plane * sizeof *frame);
}

/* latents = (1 - sigma) latents + sigma noise; noise is drawn by element number, so its bits do not depend on
 * the order. */
static void add_noise(float *latents, int64_t count, double sigma, uint64_t seed, uint64_t stream) {
  float noise[1024];
  for (int64_t i = 0; i < count; i += 1024) {
    int64_t n = count - i < 1024 ? count - i : 1024;
    ms_random_normal_fill(seed, stream, (uint64_t)i, noise, n);
    for (int64_t j = 0; j < n; j++)
      latents[i + j] = (float)((1 - sigma) * latents[i + j] + sigma * noise[j]);
  }
}

static void clamp_pixels(float *pixels, size_t count) {
  for (size_t i = 0; i < count; i++)
    pixels[i] = pixels[i] < -1 ? -1 : pixels[i] > 1 ? 1 : pixels[i];
}

int ms_enlarge(struct ms_model *model, const struct ms_stage *from, const float *latents,
               const struct ms_stage *to, double sigma, uint64_t seed, uint64_t stream, float *out,
               void (*done)(void *data, int frame), void *data, struct ms_error *error) {
  struct ms_codec_stream *decoder = NULL, *encoder = NULL;
  int channels = ms_codec_channels(model->codec), strides[3], code;
  size_t small, large, small_cells, large_cells;
  float *frame, *pixels, *enlarged, *encoded;
  ms_codec_strides(model->codec, strides);
  small = (size_t)from->width * from->height * 3;
  large = (size_t)to->width * to->height * 3;
  small_cells = (size_t)channels * from->lattice[1] * from->lattice[2];
  large_cells = (size_t)channels * to->lattice[1] * to->lattice[2];
  frame = malloc(small_cells * sizeof *frame);
  encoded = malloc(large_cells * sizeof *encoded);
  pixels = malloc(small * strides[0] * sizeof *pixels);
  enlarged = malloc(large * strides[0] * sizeof *enlarged);
  code =
      frame && encoded && pixels && enlarged
          ? 0
          : ms_error_set(error, MS_ENOMEM, "out of memory while enlarging to %dx%d", to->width, to->height);
  if (code == 0)
    code = ms_codec_decoder_open(&decoder, model->codec, from->lattice[1], from->lattice[2], error);
  if (code == 0)
    code = ms_codec_encoder_open(&encoder, model->codec, to->height, to->width, error);
  for (int t = 0; t < from->lattice[0] && code == 0; t++) {
    int count = 0;
    ms_latents_take_frame(latents, channels, from->lattice, t, frame);
    code = ms_codec_decode_push(decoder, frame, pixels, &count, error);
    for (int f = 0; f < count && code == 0; f++)
      code = ms_resize(model->compute, pixels + (size_t)f * small, from->height, from->width,
                       enlarged + (size_t)f * large, to->height, to->width, 3, error);
    if (code < 0)
      break;
    clamp_pixels(enlarged, large * (size_t)count);
    code = ms_codec_encode_push(encoder, enlarged, encoded, error);
    if (code == 0) {
      ms_latents_put_frame(out, channels, to->lattice, t, encoded);
      if (done)
        done(data, t);
      code = ms_pool_stopped(model->compute->pool, "stopped while enlarging", error);
    }
  }
  if (code == 0)
    add_noise(out, (int64_t)large_cells * to->lattice[0], sigma, seed, stream);
  ms_codec_stream_close(&decoder);
  ms_codec_stream_close(&encoder);
  free(frame);
  free(encoded);
  free(pixels);
  free(enlarged);
  return code;
}
