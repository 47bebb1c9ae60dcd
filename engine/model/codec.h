/* The causal 3D video codec of the starter: 4x8x8, 16 channels. Frame 0 stands alone, then frames go in
 * fours; latent frame t depends on pixels up to its own frames only, so clips of any length decode with
 * constant memory, one latent frame at a time.
 *
 *   frames [T, H, W, 3] float32 in -1..1, channels last; T = 4 n + 1, H and W multiples of 8
 *   latents [channels, n + 1, H / 8, W / 8], already normalised with latent_mean and latent_std when they
 * leave encode. */
#pragma once
#include <jansson.h>
#include "base/compute.h"
#include "weights/params.h"

struct ms_codec;

/* config: the object "codec" of a model.json, e.g. {"kind": "pack", "strides": [4,8,8], "channels": 16,
 * "encoder": [48,96], "decoder": [128,64]}; these are also the defaults. Other strides are possible: any time
 * stride s gives T = s n + 1, the space stride is even and the same for both axes. MS_EINPUT names a bad key.
 * mean, std: [channels] or NULL (0, 1). */
int ms_codec_open(struct ms_codec **codec, struct ms_compute *compute, const json_t *config,
                  struct ms_error *error);
void ms_codec_close(struct ms_codec **codec);
struct ms_params *ms_codec_params(struct ms_codec *codec);
/* ms_params_randomize, then the rows of the encoder's last convolution that make the colour channels are made
 * a tenth. What training from scratch should start from. */
void ms_codec_randomize(struct ms_codec *codec, uint64_t seed);
void ms_codec_set_scale(struct ms_codec *codec, const float *mean, const float *std);
int ms_codec_prepare(struct ms_codec *codec, enum msk_precision precision, int training,
                     struct ms_error *error);
int ms_codec_channels(const struct ms_codec *codec);
void ms_codec_strides(const struct ms_codec *codec, int strides[3]);

/* Streams. Encoding: the first push takes 1 frame, later ones 4; each gives one latent frame [channels, H/8,
 * W/8]. Decoding: each push takes one latent frame; the first gives 1 frame, later ones 4. State is carried
 * inside. */
struct ms_codec_stream;
int ms_codec_encoder_open(struct ms_codec_stream **stream, struct ms_codec *codec, int height, int width,
                          struct ms_error *error);
int ms_codec_decoder_open(struct ms_codec_stream **stream, struct ms_codec *codec, int latent_height,
                          int latent_width, struct ms_error *error);
void ms_codec_stream_close(struct ms_codec_stream **stream);
int ms_codec_encode_push(struct ms_codec_stream *stream, const float *frames, float *latent,
                         struct ms_error *error);
int ms_codec_decode_push(struct ms_codec_stream *stream, const float *latent, float *frames, int *frame_count,
                         struct ms_error *error);

/* A rough colour (RGB in -1..1) of one latent cell, for previews: latent holds [channels] normalised values.
 */
void ms_codec_preview(const struct ms_codec *codec, const float *latent, float rgb[3]);

/* What a stream over a picture of latent_height x latent_width cells holds, in bytes (frames and latents of
 * the caller apart), and the floating-point operations of one latent frame, multiply-adds counted twice.
 * decoder: which of the two. */
size_t ms_codec_stream_bytes(const struct ms_codec *codec, int decoder, int latent_height, int latent_width);
size_t ms_codec_clip_bytes(const struct ms_codec *codec, int decoder, int latent_frames, int latent_height,
                           int latent_width); /* the same for ms_codec_encode and ms_codec_decode */
double ms_codec_flops(const struct ms_codec *codec, int decoder, int latent_height, int latent_width);

/* Whole clips, for training and tests: frames [count, height, width, 3]; latents [channels, count, height,
 * width], counted in latent frames and cells. The same bits as a stream. Buffers of small clips are kept for
 * the next call. */
int ms_codec_encode(struct ms_codec *codec, const float *frames, int count, int height, int width,
                    float *latents, struct ms_error *error);
int ms_codec_decode(struct ms_codec *codec, const float *latents, int count, int height, int width,
                    float *frames, struct ms_error *error);

/* One training pass over `clips` crops of the same size, frames [clips, T, H, W, 3]: encode, add noise to the
 * latents, decode, loss L1 + 2 MSE + 1e-3 mean e^2 + 1e-2 mean max (|e| - 2, 0)^2 + 1e-4 mean c^2 (c:
 * channels 0-2, e: the others); noise standard deviations noise_c, noise_e, drawn from (seed, step). Adds to
 * grad, writes the loss and the reconstruction's mean squared error. */
struct ms_codec_train {
  int clips, frames, height, width;
  const float *pixels;
  float noise_c, noise_e;
  uint64_t seed, step;
};
int ms_codec_train_pass(struct ms_codec *codec, const struct ms_codec_train *train, float *grad, double *loss,
                        double *mse, struct ms_error *error);
