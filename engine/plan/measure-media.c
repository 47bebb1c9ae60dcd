/* Rates of the codec and of writing video files. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/system.h"
#include "model/codec.h"
#include "ms-media.h"
#include "plan/measure-private.h"

/* The codec of the starter with random weights, one latent frame of 320x192 pixels. */
#define CODEC_WIDTH 40
#define CODEC_HEIGHT 24
#define CODEC_FRAMES 4

struct codec_probe {
  struct ms_codec *codec;
  struct ms_codec_stream *decoder, *encoder;
  float *latent, *frames;
};

static int run_decoder(void *data, struct ms_error *error) {
  struct codec_probe *p = data;
  int count;
  return ms_codec_decode_push(p->decoder, p->latent, p->frames, &count, error);
}

static int run_encoder(void *data, struct ms_error *error) {
  struct codec_probe *p = data;
  return ms_codec_encode_push(p->encoder, p->frames, p->latent, error);
}

int ms_measure_codec(struct ms_measure *m, struct ms_rates *rates) {
  struct codec_probe p = {0};
  json_t *config = json_pack("{s:s}", "kind", "pack");
  double seconds;
  int code = ms_measure_stopped(m);
  if (code == 0)
    code = ms_codec_open(&p.codec, &m->compute, config, m->error);
  json_decref(config);
  if (code == 0)
    code = ms_params_allocate(ms_codec_params(p.codec), MSK_F32, m->error);
  if (code == 0) {
    ms_codec_randomize(p.codec, 1);
    code = ms_codec_prepare(p.codec, MSK_PRECISION_BF16, 0, m->error);
  }
  p.latent = ms_measure_normals((int64_t)MS_MEASURE_CHANNELS * CODEC_WIDTH * CODEC_HEIGHT);
  p.frames = ms_measure_normals((int64_t)CODEC_FRAMES * CODEC_WIDTH * CODEC_HEIGHT * 64 * 3);
  if (code == 0 && (!p.latent || !p.frames))
    code = ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  if (code == 0)
    code = ms_codec_decoder_open(&p.decoder, p.codec, CODEC_HEIGHT, CODEC_WIDTH, m->error);
  if (code == 0)
    code = ms_codec_encoder_open(&p.encoder, p.codec, CODEC_HEIGHT * 8, CODEC_WIDTH * 8, m->error);
  if (code == 0 && (code = ms_measure_best(run_decoder, &p, &seconds, m->error)) == 0)
    rates->decode = ms_codec_flops(p.codec, 1, CODEC_HEIGHT, CODEC_WIDTH) / seconds;
  if (code == 0 && (code = ms_measure_best(run_encoder, &p, &seconds, m->error)) == 0)
    rates->encode = ms_codec_flops(p.codec, 0, CODEC_HEIGHT, CODEC_WIDTH) / seconds;
  ms_codec_stream_close(&p.decoder);
  ms_codec_stream_close(&p.encoder);
  ms_codec_close(&p.codec);
  free(p.latent);
  free(p.frames);
  return code;
}

/* A shaded picture with a moving square, as a clip that was made would have it. */
static int write_video(struct ms_measure *m, const char *path, int width, int height, int frames,
                       double *seconds) {
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder = NULL;
  uint8_t *rgb = malloc((size_t)width * height * 3);
  double start = ms_seconds();
  int code = rgb ? 0 : ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  params.width = width;
  params.height = height;
  if (code == 0)
    code = ms_encoder_open(&encoder, path, &params, m->error);
  for (int f = 0; f < frames && code == 0; f++) {
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        uint8_t *pixel = rgb + ((size_t)y * width + x) * 3;
        int inside = abs(x - width / 4 - f) < height / 6 && abs(y - height / 2) < height / 6;
        pixel[0] = (uint8_t)(inside ? 220 : x * 100 / width + (x * 7 + y * 13 + f * 5) % 4);
        pixel[1] = (uint8_t)(inside ? 40 : y * 100 / height);
        pixel[2] = (uint8_t)(inside ? 30 : 120);
      }
    code = ms_encoder_write(encoder, rgb, m->error);
  }
  if (code == 0)
    code = ms_encoder_finish(encoder, m->error);
  *seconds = ms_seconds() - start;
  ms_encoder_close(&encoder);
  unlink(path);
  free(rgb);
  return code;
}

int ms_measure_video(struct ms_measure *m, struct ms_rates *rates) {
  static const int sizes[2][3] = {{64, 64, 5}, {320, 192, 33}};
  double best[2] = {1e30, 1e30}, pixels[2];
  char path[1200];
  int code = ms_measure_stopped(m);
  snprintf(path, sizeof path, "%s/measure-%ld.mp4", m->folder, (long)getpid());
  for (int i = 0; i < 4 && code == 0; i++) {
    const int *s = sizes[i % 2];
    double seconds;
    pixels[i % 2] = (double)s[0] * s[1] * s[2];
    code = write_video(m, path, s[0], s[1], s[2], &seconds);
    if (seconds < best[i % 2])
      best[i % 2] = seconds;
  }
  if (code < 0)
    return code;
  if (best[0] > best[1] / 2) /* a disk that is slow to sync says nothing of the pixels */
    best[0] = best[1] / 2;
  rates->video = (pixels[1] - pixels[0]) / (best[1] - best[0]);
  rates->video_seconds = best[0] - pixels[0] / rates->video;
  if (rates->video_seconds < 0)
    rates->video_seconds = 0;
  return 0;
}
