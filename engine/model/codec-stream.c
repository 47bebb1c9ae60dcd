#include "model/codec-net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Whole clips go through in batches of latent frames of about this many cells of the fine grid. */
#define BATCH_CELLS 16384
/* Buffers of whole clips up to this size are kept for the next clip: allocating them anew means touching
 * every page again, which takes longer than encoding a small clip. */
#define KEPT_BYTES ((size_t)96 << 20)

struct ms_codec_stream {
  struct ms_codec *codec;
  struct ms_arena arena;
  int decoder, started;
  int64_t batch; /* latent frames that the buffers hold */
  union {
    struct ms_codec_encoder_buffers enc;
    struct ms_codec_decoder_buffers dec;
  };
};

static void take(struct ms_codec_stream *stream) {
  if (stream->decoder)
    ms_codec_decoder_take(stream->codec, &stream->dec, &stream->arena, 0);
  else
    ms_codec_encoder_take(stream->codec, &stream->enc, &stream->arena, 0);
}

static int open_stream(struct ms_codec_stream **out, struct ms_codec *codec, int decoder, int64_t batch,
                       int64_t height, int64_t width, struct ms_error *error) {
  struct ms_codec_stream *stream;
  size_t size;
  int result;
  *out = NULL;
  assert(codec->prepared);
  if (height < 1 || width < 1 || height > 65536 || width > 65536)
    return ms_error_set(error, MS_EUSAGE, "the codec cannot work on %lld x %lld cells", (long long)width,
                        (long long)height);
  stream = calloc(1, sizeof *stream);
  if (!stream)
    return ms_error_set(error, MS_ENOMEM, "out of memory while opening the codec");
  stream->codec = codec;
  stream->decoder = decoder;
  stream->batch = batch;
  if (decoder)
    ms_codec_grids(batch, 1, height, width, &stream->dec.fine, &stream->dec.coarse);
  else
    ms_codec_grids(batch, 1, height, width, &stream->enc.fine, &stream->enc.coarse);
  take(stream);
  size = stream->arena.peak;
  memset(&stream->arena, 0, sizeof stream->arena);
  if ((result = ms_arena_open(&stream->arena, size, error)) < 0) {
    free(stream);
    return result;
  }
  memset(stream->arena.base, 0, stream->arena.size);
  take(stream);
  *out = stream;
  return 0;
}

static size_t stream_bytes(const struct ms_codec *codec, int decoder, int64_t batch, int latent_height,
                           int latent_width) {
  struct ms_codec_stream stream = {.codec = (struct ms_codec *)codec, .decoder = decoder, .batch = batch};
  if (decoder)
    ms_codec_grids(batch, 1, latent_height, latent_width, &stream.dec.fine, &stream.dec.coarse);
  else
    ms_codec_grids(batch, 1, latent_height, latent_width, &stream.enc.fine, &stream.enc.coarse);
  take(&stream);
  return stream.arena.peak;
}

size_t ms_codec_stream_bytes(const struct ms_codec *codec, int decoder, int latent_height, int latent_width) {
  return stream_bytes(codec, decoder, 1, latent_height, latent_width);
}

static int64_t batch_of(int64_t groups, int64_t height, int64_t width) {
  int64_t batch = BATCH_CELLS / (4 * height * width);
  return batch < 1 ? 1 : batch > groups ? groups : batch;
}

size_t ms_codec_clip_bytes(const struct ms_codec *codec, int decoder, int latent_frames, int latent_height,
                           int latent_width) {
  return stream_bytes(codec, decoder, batch_of(latent_frames, latent_height, latent_width), latent_height,
                      latent_width);
}

int ms_codec_encoder_open(struct ms_codec_stream **stream, struct ms_codec *codec, int height, int width,
                          struct ms_error *error) {
  if (height < 1 || width < 1 || height % codec->strides[1] || width % codec->strides[2])
    return ms_error_set(error, MS_EUSAGE, "frames of %d x %d: the codec needs multiples of %d x %d", width,
                        height, codec->strides[2], codec->strides[1]);
  return open_stream(stream, codec, 0, 1, height / codec->strides[1], width / codec->strides[2], error);
}

int ms_codec_decoder_open(struct ms_codec_stream **stream, struct ms_codec *codec, int latent_height,
                          int latent_width, struct ms_error *error) {
  return open_stream(stream, codec, 1, 1, latent_height, latent_width, error);
}

void ms_codec_stream_close(struct ms_codec_stream **pointer) {
  struct ms_codec_stream *stream = *pointer;
  if (!stream)
    return;
  ms_arena_release(&stream->arena);
  free(stream);
  *pointer = NULL;
}

static int cancelled(const struct ms_codec_stream *stream, struct ms_error *error) {
  return ms_pool_stopped(stream->codec->compute->pool, "cancelled", error);
}

struct latent_run {
  const struct ms_codec *codec;
  const struct ms_grid *coarse;
  float *z;
  float *latents; /* [channels, total, height, width] */
  const float *from;
  int64_t total, first; /* latent frames of the array; number of the grid's frame 0 */
};

static float *latent_line(const struct latent_run *run, const float *base, int64_t line, int c) {
  int64_t h = run->coarse->height, frame = run->first + line / h;
  return (float *)base + ((c * run->total + frame) * h + line % h) * run->coarse->width;
}

static void write_latents(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct latent_run *run = data;
  int64_t width = run->coarse->width, channels = run->codec->channels, h = run->coarse->height;
  for (int64_t line = begin; line < end; line++) {
    const float *z = run->z + (line / h * (h + 1) + line % h) * (width + 1) * channels;
    for (int c = 0; c < channels; c++) {
      float *to = latent_line(run, run->latents, line, c), scale = 1 / run->codec->std[c];
      for (int64_t x = 0; x < width; x++)
        to[x] = (z[x * channels + c] - run->codec->mean[c]) * scale;
    }
  }
}

static void read_latents(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct latent_run *run = data;
  int64_t width = run->coarse->width, channels = run->codec->channels, h = run->coarse->height;
  for (int64_t line = begin; line < end; line++) {
    float *z = run->z + (line / h * (h + 1) + line % h) * (width + 1) * channels;
    for (int c = 0; c < channels; c++) {
      const float *from = latent_line(run, run->from, line, c);
      for (int64_t x = 0; x < width; x++)
        z[x * channels + c] = from[x] * run->codec->std[c] + run->codec->mean[c];
    }
  }
}

/* Encodes `groups` latent frames, numbers first ..., of a clip; pixels point at the first frame of the first
 * group. */
static int encode(struct ms_codec_stream *stream, const float *pixels, int64_t groups, float *latents,
                  int64_t total, int64_t first, struct ms_error *error) {
  struct ms_codec *codec = stream->codec;
  struct ms_codec_encoder_buffers *b = &stream->enc;
  struct ms_codec_frames frames = {stream->started ? 0 : 1 - codec->strides[0], 0, (float *)pixels};
  struct latent_run run = {codec, &b->coarse, b->z, latents, NULL, total, first};
  b->fine.frames = b->coarse.frames = groups;
  ms_codec_encoder_run(codec, b, &frames, stream->started);
  ms_compute_ranges(codec->compute, groups * b->coarse.height, 8, write_latents, &run);
  ms_codec_temporal_carry(codec, &codec->enc.temporal, &b->coarse, &b->temporal);
  stream->started = 1;
  return cancelled(stream, error);
}

static int decode(struct ms_codec_stream *stream, const float *latents, int64_t groups, int64_t total,
                  int64_t first, float *pixels, struct ms_error *error) {
  struct ms_codec *codec = stream->codec;
  struct ms_codec_decoder_buffers *b = &stream->dec;
  struct ms_codec_frames frames = {stream->started ? 0 : 1 - codec->strides[0], 0, pixels};
  struct latent_run run = {codec, &b->coarse, b->z, NULL, latents, total, first};
  b->fine.frames = b->coarse.frames = groups;
  ms_compute_ranges(codec->compute, groups * b->coarse.height, 8, read_latents, &run);
  memset(b->z + ms_grid_rows(&b->coarse) * codec->channels, 0,
         (size_t)(ms_grid_margin(&b->coarse) * codec->channels) * sizeof(float));
  ms_codec_decoder_run(codec, b, stream->started);
  ms_codec_decoder_unpack(codec, b, &frames);
  ms_codec_temporal_carry(codec, &codec->dec.temporal, &b->coarse, &b->temporal);
  stream->started = 1;
  return cancelled(stream, error);
}

int ms_codec_encode_push(struct ms_codec_stream *stream, const float *frames, float *latent,
                         struct ms_error *error) {
  assert(!stream->decoder);
  return encode(stream, frames, 1, latent, 1, 0, error);
}

int ms_codec_decode_push(struct ms_codec_stream *stream, const float *latent, float *frames, int *frame_count,
                         struct ms_error *error) {
  assert(stream->decoder);
  *frame_count = stream->started ? stream->codec->strides[0] : 1;
  return decode(stream, latent, 1, 1, 0, frames, error);
}

/* The kept stream of whole clips if it fits, started afresh, or a new one. */
static int open_whole(struct ms_codec_stream **out, struct ms_codec *codec, int decoder, int64_t batch,
                      int64_t height, int64_t width, struct ms_error *error) {
  struct ms_codec_stream *kept = codec->whole[decoder];
  const struct ms_grid *coarse = kept ? decoder ? &kept->dec.coarse : &kept->enc.coarse : NULL;
  codec->whole[decoder] = NULL;
  if (kept && kept->batch == batch && coarse->height == height && coarse->width == width) {
    kept->started = 0;
    *out = kept;
    return 0;
  }
  ms_codec_stream_close(&kept);
  return open_stream(out, codec, decoder, batch, height, width, error);
}

static void close_whole(struct ms_codec_stream *stream) {
  if (stream->arena.size <= KEPT_BYTES)
    stream->codec->whole[stream->decoder] = stream;
  else
    ms_codec_stream_close(&stream);
}

/* The pixel frame with which latent frame `group` begins. */
static int64_t frame_of(const struct ms_codec *codec, int64_t group) {
  return group ? (group - 1) * codec->strides[0] + 1 : 0;
}

int ms_codec_encode(struct ms_codec *codec, const float *frames, int count, int height, int width,
                    float *latents, struct ms_error *error) {
  struct ms_codec_stream *stream;
  int stride = codec->strides[1], result = 0;
  int64_t groups = (count - 1) / codec->strides[0] + 1;
  if (count < 1 || (count - 1) % codec->strides[0] || height < 1 || width < 1 || height % stride ||
      width % stride)
    return ms_error_set(
        error, MS_EUSAGE,
        "a clip of %d frames of %d x %d: the codec needs %d n + 1 frames and multiples of %d pixels", count,
        width, height, codec->strides[0], stride);
  result = open_whole(&stream, codec, 0, batch_of(groups, height / stride, width / stride), height / stride,
                      width / stride, error);
  if (result < 0)
    return result;
  for (int64_t group = 0, n; group < groups && result == 0; group += n) {
    n = groups - group < stream->batch ? groups - group : stream->batch;
    result = encode(stream, frames + frame_of(codec, group) * height * width * 3, n, latents, groups, group,
                    error);
  }
  close_whole(stream);
  return result;
}

int ms_codec_decode(struct ms_codec *codec, const float *latents, int count, int height, int width,
                    float *frames, struct ms_error *error) {
  struct ms_codec_stream *stream;
  int result = 0;
  int64_t pixels = (int64_t)height * codec->strides[1] * width * codec->strides[2] * 3;
  if (count < 1 || height < 1 || width < 1)
    return ms_error_set(error, MS_EUSAGE, "cannot decode %d latent frames of %d x %d", count, width, height);
  result = open_whole(&stream, codec, 1, batch_of(count, height, width), height, width, error);
  if (result < 0)
    return result;
  for (int64_t group = 0, n; group < count && result == 0; group += n) {
    n = count - group < stream->batch ? count - group : stream->batch;
    result = decode(stream, latents, n, count, group, frames + frame_of(codec, group) * pixels, error);
  }
  close_whole(stream);
  return result;
}
