/* The codec's network: its layers, the buffers of a pass, and the passes over a stack of frames and clips.
 * Private to codec*.c.
 *
 * The grid of a pass holds groups of pixel frames ("frames" of the grid, one latent frame each) and clips. A
 * stream runs the same passes as training, with one clip and the two last frames of each temporal layer
 * carried in front of the next ones. */
#pragma once
#include "model/codec.h"
#include "model/conv.h"

struct ms_codec_norm { /* rms norm over channels with a factor each, then SiLU */
  int64_t c;
  int gamma;
  float *factors; /* owned: gamma in float32 */
};

struct ms_codec_res { /* x + conv2 (silu rms conv1 (silu rms x)) */
  struct ms_codec_norm norm1, norm2;
  struct ms_conv conv1, conv2;
};

struct ms_codec_temporal { /* x + W [y(t-2), y(t-1), y(t)], y = silu rms x */
  struct ms_codec_norm norm;
  struct ms_conv mix;
};

struct ms_codec_pass; /* the buffers of training, codec-train.c */

struct ms_codec {
  struct ms_compute *compute;
  struct ms_params params;
  enum msk_precision precision;
  enum msk_type type; /* of what convolutions read */
  int prepared;       /* 1: for use, 2: for training */
  int channels;
  int strides[3];
  int fold;                       /* pixels of a packed cell along y and x: half the stride */
  int64_t packed;                 /* channels of a packed cell: time stride x fold x fold x 3 */
  int64_t encoder[2], decoder[2]; /* widths, in the order of use */
  float *mean, *std;              /* [channels] */
  struct {                        /* fold grid, width encoder[0]; after `down` latent grid, encoder[1] */
    struct ms_conv in, down, out;
    struct ms_codec_res res1, res2;
    struct ms_codec_temporal temporal;
    struct ms_codec_norm norm;
  } enc;
  struct { /* latent grid, decoder[0]; after `up` fold grid, decoder[1] */
    struct ms_conv in, up, out;
    struct ms_codec_temporal temporal;
    struct ms_codec_res res1, res2, res3;
    struct ms_codec_norm norm;
  } dec;
  struct ms_codec_pass *pass; /* owned: buffers of the last training pass */
  /* owned: encoder and decoder of the last whole clips, if they are small */
  struct ms_codec_stream *whole[2];
};

struct ms_codec_res_buffers {
  float *x, *h, *y; /* y may be x when nothing is kept */
  void *n1, *n2;
};
struct ms_codec_temporal_buffers {
  float *x, *y;
  void *n; /* two frames in front of frame 0 */
};

struct ms_codec_encoder_buffers {
  struct ms_grid fine, coarse; /* fold grid, latent grid */
  void *packed, *phases, *n;
  struct ms_codec_res_buffers res1, res2;
  struct ms_codec_temporal_buffers temporal;
  float *z; /* [coarse, channels] */
};
struct ms_codec_decoder_buffers {
  struct ms_grid fine, coarse;
  float *z; /* [coarse, channels] */
  void *in; /* z as the first convolution reads it */
  struct ms_codec_temporal_buffers temporal;
  struct ms_codec_res_buffers res1, res2, res3;
  float *wide; /* [coarse, 4 x decoder[1]] */
  void *n;
};

/* The grids of `frames` latent frames of `clips` clips of height x width latents. */
void ms_codec_grids(int64_t frames, int64_t clips, int64_t height, int64_t width, struct ms_grid *fine,
                    struct ms_grid *coarse);
/* Takes the buffers from an arena (that may measure); keep: everything that a backward pass reads stays
 * apart. */
void ms_codec_encoder_take(const struct ms_codec *codec, struct ms_codec_encoder_buffers *b,
                           struct ms_arena *arena, int keep);
void ms_codec_decoder_take(const struct ms_codec *codec, struct ms_codec_decoder_buffers *b,
                           struct ms_arena *arena, int keep);

/* Pixels of a pass: frame k of group g of a clip is number first + g * time stride + k of pixels [clips,
 * count, H, W, 3]. Numbers below 0 mean frame 0 when packing, and nothing when unpacking. */
struct ms_codec_frames {
  int64_t first, count;
  float *pixels; /* only read when packing */
};

/* pixels -> b->z, the raw latents. started: the temporal layer's leading frames hold the past; otherwise the
 * first repeats. */
void ms_codec_encoder_run(const struct ms_codec *codec, const struct ms_codec_encoder_buffers *b,
                          const struct ms_codec_frames *frames, int started);
/* b->z -> b->n, what the last convolution reads. */
void ms_codec_decoder_run(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                          int started);

/* Takes the output of the last convolution in lines [line0,line1) of image `image` of the fine grid: rows
 * [line, x] of `packed` channels with the padding pixel, before the colour shortcut. May change them. */
typedef void (*ms_codec_sink_fn)(void *data, int64_t image, int64_t line0, int64_t line1, float *rows);
/* Runs the last convolution in bands of whole lines, so that its wide output is never held whole; calls of
 * sink come from all threads. A band starts at a multiple of ms_codec_band_lines. */
int64_t ms_codec_band_lines(const struct ms_grid *fine);
void ms_codec_decoder_output(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                             ms_codec_sink_fn sink, void *data);
/* The same into frames. */
void ms_codec_decoder_unpack(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                             const struct ms_codec_frames *frames);
/* Keeps the last two frames of a temporal layer's input in front of the next pass. */
void ms_codec_temporal_carry(const struct ms_codec *codec, const struct ms_codec_temporal *layer,
                             const struct ms_grid *grid, const struct ms_codec_temporal_buffers *b);

/* Weight of the mean colour in latent channels 0-2. */
#define MS_CODEC_COLOUR 1.5f

/* Layers, for training. */
void ms_codec_norm_run(const struct ms_codec *codec, const struct ms_codec_norm *norm,
                       const struct ms_grid *grid, const float *x, void *y);
/* Moves pixel shuffles: wide [coarse, (dy, dx, c)] to fine [fine, c], and back. */
void ms_codec_shuffle(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                      const float *wide, float *fine);
void ms_codec_unshuffle(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                        const float *fine, float *wide);

void ms_codec_pass_close(struct ms_codec_pass **pass);
