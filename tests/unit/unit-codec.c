/* The codec's streams: pushes, whole clips and the number of threads give the same bits; causality; scaling;
 * wrong sizes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "model/codec.h"

struct shape {
  const char *config;
  int height, width, frames;
};

/* The second codec is the layout of larger models; odd widths are on purpose. */
static const struct shape shapes[] = {
    {"{\"kind\": \"pack\"}", 48, 40, 13},
    {"{\"strides\": [4,16,16], \"channels\": 20, \"encoder\": [24,40], \"decoder\": [56,24]}", 32, 48, 9},
    {"{\"strides\": [1,8,8], \"channels\": 5, \"encoder\": [16,16], \"decoder\": [16,16]}", 8, 24, 4},
};

static struct ms_codec *open_codec(struct ms_compute *compute, const char *text, enum msk_precision precision,
                                   int training) {
  struct ms_error error = {0};
  struct ms_codec *codec = NULL;
  json_t *config = json_loads(text, 0, NULL);
  if (ms_codec_open(&codec, compute, config, &error) < 0 ||
      ms_params_allocate(ms_codec_params(codec), MSK_F32, &error) < 0) {
    fprintf(stderr, "%s\n", error.message);
    exit(99);
  }
  json_decref(config);
  ms_codec_randomize(codec, 5);
  for (int i = 0; i < ms_codec_params(codec)->count;
       i++) /* temporal layers start at zero: give them something to do */
    if (strstr(ms_codec_params(codec)->list[i].name, "temporal.mix"))
      check_fill(ms_params_at(ms_codec_params(codec), i), ms_codec_params(codec)->list[i].count, 0.05);
  if (ms_codec_prepare(codec, precision, training, &error) < 0)
    exit(99);
  return codec;
}

static void check_shape(const struct shape *shape, enum msk_precision precision) {
  struct ms_error error = {0};
  struct ms_compute one, two;
  struct ms_codec *codec, *other;
  struct ms_codec_stream *stream;
  int strides[3], channels, h, w, groups, pushed = 0;
  int64_t cells, pixels;
  float *frames, *latents, *decoded, *latent, *again, *streamed, mean[64], std[64];
  unsigned sets[8];
  const char *kind = precision == MSK_PRECISION_F32 ? "f32" : "bf16";
  int count = check_sets(sets);
  if (ms_compute_open(&one, 1, sets[count - 1], &error) < 0 ||
      ms_compute_open(&two, 3, sets[count - 1], &error) < 0)
    exit(99);
  codec = open_codec(&one, shape->config, precision, 0);
  ms_codec_strides(codec, strides);
  channels = ms_codec_channels(codec);
  for (int c = 0; c < channels; c++) {
    mean[c] = (float)check_uniform(-1, 1);
    std[c] = (float)check_uniform(0.5, 2);
  }
  h = shape->height / strides[1];
  w = shape->width / strides[2];
  groups = (shape->frames - 1) / strides[0] + 1;
  cells = (int64_t)h * w;
  pixels = (int64_t)shape->height * shape->width * 3;
  frames = check_alloc_f32(shape->frames * pixels);
  decoded = check_alloc_f32(shape->frames * pixels);
  streamed = check_alloc_f32(shape->frames * pixels);
  latents = check_alloc_f32(channels * groups * cells);
  again = check_alloc_f32(channels * groups * cells);
  latent = check_alloc_f32(channels * cells);
  check_fill_uniform(frames, shape->frames * pixels, -1, 1);
  ms_codec_set_scale(codec, mean, std);
  if (ms_codec_encode(codec, frames, shape->frames, shape->height, shape->width, latents, &error) < 0 ||
      ms_codec_decode(codec, latents, groups, h, w, decoded, &error) < 0)
    exit(99);

  if (ms_codec_encoder_open(&stream, codec, shape->height, shape->width, &error) < 0)
    exit(99);
  for (int t = 0, frame = 0; t < groups; frame += t ? strides[0] : 1, t++) {
    if (ms_codec_encode_push(stream, frames + frame * pixels, latent, &error) < 0)
      exit(99);
    for (int c = 0; c < channels; c++)
      memcpy(again + (c * groups + t) * cells, latent + c * cells, (size_t)cells * 4);
  }
  ms_codec_stream_close(&stream);
  check_bytes(again, latents, (size_t)(channels * groups * cells) * 4,
              "encode %dx%dx%d %s: pushes are the whole clip", shape->width, shape->height, shape->frames,
              kind);

  if (ms_codec_decoder_open(&stream, codec, h, w, &error) < 0)
    exit(99);
  for (int t = 0; t < groups; t++) {
    int got;
    for (int c = 0; c < channels; c++)
      memcpy(latent + c * cells, latents + (c * groups + t) * cells, (size_t)cells * 4);
    if (ms_codec_decode_push(stream, latent, streamed + pushed * pixels, &got, &error) < 0)
      exit(99);
    pushed += got;
  }
  ms_codec_stream_close(&stream);
  check_ok(pushed == shape->frames, "decode: %d frames come out, %d wanted", pushed, shape->frames);
  check_bytes(streamed, decoded, (size_t)(shape->frames * pixels) * 4, "decode %s: pushes are the whole clip",
              kind);

  other = open_codec(&two, shape->config, precision, 1);
  for (int i = 0; i < ms_codec_params(codec)->count; i++)
    memcpy(ms_params_at(ms_codec_params(other), i), ms_params_at(ms_codec_params(codec), i),
           (size_t)ms_codec_params(codec)->list[i].count * 4);
  ms_codec_set_scale(other, mean, std);
  if (ms_codec_prepare(other, precision, 0, &error) < 0 ||
      ms_codec_encode(other, frames, shape->frames, shape->height, shape->width, again, &error) < 0 ||
      ms_codec_decode(other, latents, groups, h, w, streamed, &error) < 0)
    exit(99);
  check_bytes(again, latents, (size_t)(channels * groups * cells) * 4,
              "encode %s: three threads give the bits of one", kind);
  check_bytes(streamed, decoded, (size_t)(shape->frames * pixels) * 4,
              "decode %s: three threads give the bits of one", kind);

  /* causality: a change of the last group leaves all before it */
  for (int c = 0; c < channels; c++)
    latents[(c * groups + groups - 1) * cells] += 1;
  if (ms_codec_decode(codec, latents, groups, h, w, streamed, &error) < 0)
    exit(99);
  check_bytes(streamed, decoded, (size_t)((shape->frames - strides[0]) * pixels) * 4,
              "decode %s: the past does not know the future", kind);
  check_ok(memcmp(streamed + (shape->frames - strides[0]) * pixels,
                  decoded + (shape->frames - strides[0]) * pixels, (size_t)pixels * 4) != 0,
           "decode %s: the last latent frame is heard", kind);

  /* scaling: normalised = (raw - mean) / std */
  ms_codec_set_scale(codec, NULL, NULL);
  if (ms_codec_encode(codec, frames, shape->frames, shape->height, shape->width, latents, &error) < 0)
    exit(99);
  for (int c = 0; c < channels; c++)
    for (int64_t i = 0; i < groups * cells; i++)
      again[c * groups * cells + i] = again[c * groups * cells + i] * std[c] + mean[c];
  check_relative_l2_f32(again, latents, channels * groups * cells, 1e-6, "encode %s: mean and deviation",
                        kind);
  check_ok(ms_codec_encode(codec, frames, shape->frames, shape->height, shape->width - 2, latents, &error) ==
               MS_EUSAGE,
           "a width that is no multiple is refused");
  ms_codec_close(&codec);
  ms_codec_close(&other);
  ms_compute_release(&one);
  ms_compute_release(&two);
  check_free_all();
}

/* With all weights at zero only the colour shortcut is left: a flat picture must come back as it went in. */
static void check_shortcut(void) {
  struct ms_error error = {0};
  struct ms_compute compute;
  struct ms_codec *codec;
  struct ms_params *params;
  int64_t n = 5 * 16 * 24;
  float *frames = check_alloc_f32(n * 3), *latents = check_alloc_f32(16 * 2 * 2 * 3),
        *decoded = check_alloc_f32(n * 3), rgb[3];
  float cell[16] = {0};
  double worst = 0;
  if (ms_compute_open(&compute, 1, 0, &error) < 0)
    exit(99);
  codec = open_codec(&compute, shapes[0].config, MSK_PRECISION_F32, 0);
  params = ms_codec_params(codec);
  memset(params->data, 0, (size_t)params->total * 4);
  if (ms_codec_prepare(codec, MSK_PRECISION_F32, 0, &error) < 0)
    exit(99);
  for (int64_t i = 0; i < n; i++) {
    frames[3 * i] = 0.5f;
    frames[3 * i + 1] = -0.25f;
    frames[3 * i + 2] = 1;
  }
  if (ms_codec_encode(codec, frames, 5, 16, 24, latents, &error) < 0 ||
      ms_codec_decode(codec, latents, 2, 2, 3, decoded, &error) < 0)
    exit(99);
  for (int64_t i = 0; i < n * 3; i++)
    worst = fmax(worst, fabs((double)decoded[i] - frames[i]));
  check_ok(worst < 1e-5, "the colour shortcut carries a flat picture: off by %.1e", worst);
  for (int c = 0; c < 3; c++)
    cell[c] = latents[c * 2 * 2 * 3];
  check_ok(ms_codec_stream_bytes(codec, 1, 136, 240) < (size_t)256 << 20 &&
               ms_codec_stream_bytes(codec, 0, 136, 240) < (size_t)320 << 20,
           "1920x1088 in float32: a decoder holds %.0f MiB, an encoder %.0f MiB",
           (double)ms_codec_stream_bytes(codec, 1, 136, 240) / 1048576,
           (double)ms_codec_stream_bytes(codec, 0, 136, 240) / 1048576);
  ms_codec_preview(codec, cell, rgb);
  check_ok(fabsf(rgb[0] - 0.5f) + fabsf(rgb[1] + 0.25f) + fabsf(rgb[2] - 1) < 1e-5f,
           "the preview shows its colour");
  ms_codec_close(&codec);
  ms_compute_release(&compute);
  check_free_all();
}

static void check_bad_config(const char *text) {
  struct ms_error error = {0};
  struct ms_codec *codec = NULL;
  json_t *config = json_loads(text, 0, NULL);
  check_ok(ms_codec_open(&codec, NULL, config, &error) == MS_EINPUT && !codec && error.message[0],
           "%s is refused: %s", text, error.message);
  json_decref(config);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int precision = 0; precision < 2; precision++)
      check_shape(&shapes[i], precision);
  check_shortcut();
  check_bad_config("{\"kind\": \"other\"}");
  check_bad_config("{\"strides\": [4, 7, 7]}");
  check_bad_config("{\"channels\": 2}");
  check_bad_config("{\"encoder\": [48, -1]}");
  return check_end();
}
