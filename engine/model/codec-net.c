#include "model/codec-net.h"

#include <string.h>

/* Rows of one task of an element-wise pass. */
#define PASS_ROWS 256
/* About this many rows make a band of the last convolution: its output then stays in the second-level cache.
 */
#define BAND_ROWS 256

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

void ms_codec_grids(int64_t frames, int64_t clips, int64_t height, int64_t width, struct ms_grid *fine,
                    struct ms_grid *coarse) {
  *coarse = (struct ms_grid){frames, clips, height, width};
  *fine = (struct ms_grid){frames, clips, 2 * height, 2 * width};
}

static void take_res(struct ms_codec_res_buffers *b, struct ms_arena *arena, const struct ms_grid *grid,
                     int64_t c, enum msk_type type, int keep, float *x) {
  b->x = x;
  b->n1 = ms_grid_take(arena, grid, c, type, 0);
  b->h = ms_grid_take(arena, grid, c, MSK_F32, 0);
  b->n2 = keep ? ms_grid_take(arena, grid, c, type, 0) : b->n1;
  b->y = keep ? ms_grid_take(arena, grid, c, MSK_F32, 0) : x;
}

static void take_temporal(struct ms_codec_temporal_buffers *b, struct ms_arena *arena,
                          const struct ms_grid *grid, int64_t c, enum msk_type type, int keep, float *x) {
  struct ms_grid with_past = *grid;
  unsigned char *n;
  with_past.frames += 2;
  n = ms_grid_take(arena, &with_past, c, type, 0);
  b->x = x;
  b->n = n ? n + (size_t)(2 * ms_grid_step(grid) * c) * msk_type_size(type) : NULL;
  b->y = keep ? ms_grid_take(arena, grid, c, MSK_F32, 0) : x;
}

void ms_codec_encoder_take(const struct ms_codec *codec, struct ms_codec_encoder_buffers *b,
                           struct ms_arena *arena, int keep) {
  const struct ms_grid *fine = &b->fine, *coarse = &b->coarse;
  int64_t c0 = codec->encoder[0], c1 = codec->encoder[1];
  size_t phase = (size_t)(ms_grid_extent(coarse) * c0) * msk_type_size(codec->type);
  b->packed = ms_grid_take(arena, fine, codec->packed, codec->type, 0);
  take_res(&b->res1, arena, fine, c0, codec->type, keep, ms_grid_take(arena, fine, c0, MSK_F32, 0));
  b->phases = ms_arena_take(arena, 4 * phase);
  take_res(&b->res2, arena, coarse, c1, codec->type, keep, ms_grid_take(arena, coarse, c1, MSK_F32, 0));
  take_temporal(&b->temporal, arena, coarse, c1, codec->type, keep, b->res2.y);
  b->n = keep ? ms_grid_take(arena, coarse, c1, codec->type, 0) : b->res2.n1;
  b->z = ms_grid_take(arena, coarse, codec->channels, MSK_F32, 0);
}

/* One buffer for two uses that do not overlap in time; row 0 is at the same place, so that the margin before
 * it stays zero. */
static void *take_shared(struct ms_arena *arena, const struct ms_grid *a, int64_t a_channels,
                         const struct ms_grid *b, int64_t b_channels, enum msk_type type) {
  size_t a_row = (size_t)a_channels * msk_type_size(type), b_row = (size_t)b_channels * msk_type_size(type);
  size_t a_side = (size_t)ms_grid_margin(a) * a_row, b_side = (size_t)ms_grid_margin(b) * b_row;
  size_t a_rest = (size_t)ms_grid_extent(a) * a_row, b_rest = (size_t)ms_grid_extent(b) * b_row;
  size_t side = ((a_side > b_side ? a_side : b_side) + 63) / 64 * 64;
  unsigned char *base = ms_arena_take(arena, side + (a_rest > b_rest ? a_rest : b_rest));
  return base ? base + side : NULL;
}

void ms_codec_decoder_take(const struct ms_codec *codec, struct ms_codec_decoder_buffers *b,
                           struct ms_arena *arena, int keep) {
  const struct ms_grid *fine = &b->fine, *coarse = &b->coarse;
  int64_t c0 = codec->decoder[0], c1 = codec->decoder[1];
  float *x0, *x1;
  b->z = ms_grid_take(arena, coarse, codec->channels, MSK_F32, 0);
  b->in = codec->type == MSK_F32 ? b->z : ms_grid_take(arena, coarse, codec->channels, codec->type, 0);
  x0 = ms_grid_take(arena, coarse, c0, MSK_F32, 0);
  x1 = ms_grid_take(arena, fine, c1, MSK_F32, 0);
  take_temporal(&b->temporal, arena, coarse, c0, codec->type, keep, x0);
  if (keep) {
    take_res(&b->res1, arena, coarse, c0, codec->type, keep, b->temporal.y);
    b->wide = ms_grid_take(arena, coarse, 4 * c1, MSK_F32, 0);
    take_res(&b->res2, arena, fine, c1, codec->type, keep, x1);
    take_res(&b->res3, arena, fine, c1, codec->type, keep, b->res2.y);
    b->n = ms_grid_take(arena, fine, c1, codec->type, 0);
  } else {
    void *n = take_shared(arena, coarse, c0, fine, c1, codec->type);
    float *h = take_shared(arena, coarse, larger(c0, 4 * c1), fine, c1, MSK_F32);
    b->res1 = (struct ms_codec_res_buffers){.x = x0, .h = h, .y = x0, .n1 = n, .n2 = n};
    b->res2 = b->res3 = (struct ms_codec_res_buffers){.x = x1, .h = h, .y = x1, .n1 = n, .n2 = n};
    b->wide = h;
    b->n = n;
  }
}

struct norm_run {
  const struct ms_codec *codec;
  const struct ms_codec_norm *norm;
  const float *x;
  unsigned char *y;
};

static void norm_rows(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct norm_run *run = data;
  int64_t c = run->norm->c;
  run->codec->compute->norm.l2_norm(run->x + begin * c, run->norm->factors, c, end - begin, 1,
                                    run->y + (size_t)(begin * c) * msk_type_size(run->codec->type),
                                    run->codec->type);
}

void ms_codec_norm_run(const struct ms_codec *codec, const struct ms_codec_norm *norm,
                       const struct ms_grid *grid, const float *x, void *y) {
  struct norm_run run = {codec, norm, x, y};
  ms_compute_ranges(codec->compute, ms_grid_extent(grid), PASS_ROWS, norm_rows, &run);
}

static void conv(const struct ms_codec *codec, const struct ms_conv *layer, const struct ms_grid *grid,
                 const void *x, const float *residual, float *y) {
  ms_conv_forward(layer, codec->compute, codec->precision, grid, x, codec->type, residual, y);
}

static void res_run(const struct ms_codec *codec, const struct ms_codec_res *layer,
                    const struct ms_grid *grid, const struct ms_codec_res_buffers *b) {
  ms_codec_norm_run(codec, &layer->norm1, grid, b->x, b->n1);
  conv(codec, &layer->conv1, grid, b->n1, NULL, b->h);
  ms_codec_norm_run(codec, &layer->norm2, grid, b->h, b->n2);
  conv(codec, &layer->conv2, grid, b->n2, b->x, b->y);
}

static void temporal_run(const struct ms_codec *codec, const struct ms_codec_temporal *layer,
                         const struct ms_grid *grid, const struct ms_codec_temporal_buffers *b, int started) {
  ms_codec_norm_run(codec, &layer->norm, grid, b->x, b->n);
  if (!started) {
    size_t frame = (size_t)(ms_grid_step(grid) * layer->norm.c) * msk_type_size(codec->type);
    memcpy((unsigned char *)b->n - frame, b->n, frame);
    memcpy((unsigned char *)b->n - 2 * frame, b->n, frame);
  }
  conv(codec, &layer->mix, grid, b->n, b->x, b->y);
}

void ms_codec_temporal_carry(const struct ms_codec *codec, const struct ms_codec_temporal *layer,
                             const struct ms_grid *grid, const struct ms_codec_temporal_buffers *b) {
  size_t frame = (size_t)(ms_grid_step(grid) * layer->norm.c) * msk_type_size(codec->type);
  unsigned char *to = (unsigned char *)b->n - 2 * frame;
  memmove(to, to + (size_t)grid->frames * frame, 2 * frame);
}

struct pixel_run {
  const struct ms_codec *codec;
  const struct ms_grid *fine, *coarse;
  const struct ms_codec_frames *frames;
  unsigned char *packed;
  float *z;
  const float *colour; /* rows [coarse, channels] */
};

/* Pixel frame k of an image of the grid, or NULL for one that is not there. */
static float *frame_at(const struct pixel_run *run, int64_t image, int k, int repeat) {
  const struct ms_codec *codec = run->codec;
  int64_t group = image / run->fine->clips, clip = image % run->fine->clips;
  int64_t number = run->frames->first + group * codec->strides[0] + k;
  int64_t frame = run->fine->height * codec->fold * run->fine->width * codec->fold * 3;
  if (number < 0 && !repeat)
    return NULL;
  return run->frames->pixels + (clip * run->frames->count + (number < 0 ? 0 : number)) * frame;
}

/* Lines of the fine grid, padding included. A cell's channels are (frame, dy, dx, rgb), so that each of its
 * pixel lines is a run of memory on both sides. */
static void pack_lines(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct pixel_run *run = data;
  const struct ms_codec *codec = run->codec;
  int64_t lines = run->fine->height + 1, width = run->fine->width, packed = codec->packed,
          piece = codec->fold * 3;
  float *cells = scratch;
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / lines, y = line % lines;
    unsigned char *to = run->packed + (size_t)(line * (width + 1) * packed) * msk_type_size(codec->type);
    memset(cells, 0, (size_t)((width + 1) * packed) * sizeof(float));
    for (int part = 0; y < lines - 1 && part < codec->strides[0] * codec->fold; part++) {
      const float *from = frame_at(run, image, part / codec->fold, 1);
      from += (y * codec->fold + part % codec->fold) * width * piece;
      for (int64_t x = 0; x < width; x++)
        for (int64_t i = 0; i < piece; i++)
          cells[x * packed + part * piece + i] = from[x * piece + i];
    }
    if (codec->type == MSK_F32)
      memcpy(to, cells, (size_t)((width + 1) * packed) * sizeof(float));
    else
      codec->compute->adamw.f32_to_bf16(cells, (uint16_t *)to, (width + 1) * packed);
  }
}

/* Adds the weighted mean colour of the pixels of each cell to z; lines of the coarse grid without padding. */
static void add_colour(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct pixel_run *run = data;
  const struct ms_codec *codec = run->codec;
  const struct ms_grid *coarse = run->coarse;
  int64_t values = 2 * codec->fold * 3, width = coarse->width * values;
  int stride = codec->strides[1], frames = codec->strides[0];
  float *sums = scratch, scale = MS_CODEC_COLOUR / (float)(frames * stride * stride);
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / coarse->height, y = line % coarse->height;
    float *z = run->z + (image * ms_grid_plane(coarse) + y * ms_grid_pitch(coarse)) * codec->channels;
    memset(sums, 0, (size_t)width * sizeof(float));
    for (int part = 0; part < frames * stride; part++) {
      const float *from = frame_at(run, image, part / stride, 1) + (y * stride + part % stride) * width;
      for (int64_t i = 0; i < width; i++)
        sums[i] += from[i];
    }
    for (int64_t x = 0; x < coarse->width; x++)
      for (int64_t i = 0; i < values; i += 3)
        for (int c = 0; c < 3; c++)
          z[x * codec->channels + c] += scale * sums[x * values + i + c];
  }
}

void ms_codec_encoder_run(const struct ms_codec *codec, const struct ms_codec_encoder_buffers *b,
                          const struct ms_codec_frames *frames, int started) {
  const struct ms_grid *fine = &b->fine, *coarse = &b->coarse;
  struct pixel_run run = {codec, fine, coarse, frames, b->packed, b->z, NULL};
  int64_t images = fine->frames * fine->clips;
  size_t row = (size_t)codec->packed * msk_type_size(codec->type);
  memset((unsigned char *)b->packed + (size_t)ms_grid_rows(fine) * row, 0,
         (size_t)ms_grid_margin(fine) * row);
  ms_pool_reserve(codec->compute->pool, (size_t)(ms_grid_pitch(fine) * codec->packed) * sizeof(float));
  ms_compute_ranges(codec->compute, images * (fine->height + 1), 4, pack_lines, &run);
  conv(codec, &codec->enc.in, fine, b->packed, NULL, b->res1.x);
  res_run(codec, &codec->enc.res1, fine, &b->res1);
  ms_conv_phases(codec->compute, fine, coarse, b->res1.y, codec->encoder[0], b->phases, codec->type);
  conv(codec, &codec->enc.down, coarse, b->phases, NULL, b->res2.x);
  res_run(codec, &codec->enc.res2, coarse, &b->res2);
  temporal_run(codec, &codec->enc.temporal, coarse, &b->temporal, started);
  ms_codec_norm_run(codec, &codec->enc.norm, coarse, b->temporal.y, b->n);
  conv(codec, &codec->enc.out, coarse, b->n, NULL, b->z);
  ms_compute_ranges(codec->compute, images * coarse->height, 2, add_colour, &run);
}

struct shuffle_run {
  const struct ms_codec *codec;
  const struct ms_grid *fine, *coarse;
  const float *from;
  float *to;
};

/* Lines of the fine grid, padding included. */
static void shuffle_lines(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct shuffle_run *run = data;
  int64_t c = run->codec->decoder[1], lines = run->fine->height + 1, pitch = ms_grid_pitch(run->fine);
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / lines, y = line % lines;
    const float *from =
        run->from + (image * ms_grid_plane(run->coarse) + y / 2 * ms_grid_pitch(run->coarse)) * 4 * c;
    float *to = run->to + line * pitch * c;
    if (y == run->fine->height) {
      memset(to, 0, (size_t)(pitch * c) * sizeof(float));
      continue;
    }
    for (int64_t x = 0; x < run->coarse->width;
         x++) /* the two pixels of a cell's line lie side by side on both sides */
      memcpy(to + 2 * x * c, from + x * 4 * c + y % 2 * 2 * c, (size_t)(2 * c) * sizeof(float));
    memset(to + run->fine->width * c, 0, (size_t)c * sizeof(float));
  }
}

void ms_codec_shuffle(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                      const float *wide, float *fine) {
  struct shuffle_run run = {codec, &b->fine, &b->coarse, wide, fine};
  int64_t c = codec->decoder[1];
  memset(fine + ms_grid_rows(&b->fine) * c, 0, (size_t)(ms_grid_margin(&b->fine) * c) * sizeof(float));
  ms_compute_ranges(codec->compute, b->fine.frames * b->fine.clips * (b->fine.height + 1), 16, shuffle_lines,
                    &run);
}

/* Lines of the coarse grid, padding included. */
static void unshuffle_lines(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct shuffle_run *run = data;
  int64_t c = run->codec->decoder[1], lines = run->coarse->height + 1, pitch = ms_grid_pitch(run->coarse);
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / lines, y = line % lines;
    const float *from = run->from + (image * ms_grid_plane(run->fine) + 2 * y * ms_grid_pitch(run->fine)) * c;
    float *to = run->to + line * pitch * 4 * c;
    if (y == run->coarse->height) {
      memset(to, 0, (size_t)(pitch * 4 * c) * sizeof(float));
      continue;
    }
    for (int64_t x = 0; x < run->coarse->width; x++)
      for (int dy = 0; dy < 2; dy++)
        memcpy(to + (x * 4 + dy * 2) * c, from + (dy * ms_grid_pitch(run->fine) + 2 * x) * c,
               (size_t)(2 * c) * sizeof(float));
    memset(to + run->coarse->width * 4 * c, 0, (size_t)(4 * c) * sizeof(float));
  }
}

void ms_codec_unshuffle(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                        const float *fine, float *wide) {
  struct shuffle_run run = {codec, &b->fine, &b->coarse, fine, wide};
  int64_t c = 4 * codec->decoder[1];
  memset(wide + ms_grid_rows(&b->coarse) * c, 0, (size_t)(ms_grid_margin(&b->coarse) * c) * sizeof(float));
  ms_compute_ranges(codec->compute, b->coarse.frames * b->coarse.clips * (b->coarse.height + 1), 16,
                    unshuffle_lines, &run);
}

void ms_codec_decoder_run(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                          int started) {
  const struct ms_grid *fine = &b->fine, *coarse = &b->coarse;
  if (b->in != b->z)
    codec->compute->adamw.f32_to_bf16(b->z, b->in, ms_grid_extent(coarse) * codec->channels);
  conv(codec, &codec->dec.in, coarse, b->in, NULL, b->temporal.x);
  temporal_run(codec, &codec->dec.temporal, coarse, &b->temporal, started);
  res_run(codec, &codec->dec.res1, coarse, &b->res1);
  ms_conv_forward(&codec->dec.up, codec->compute, codec->precision, coarse, b->res1.y, MSK_F32, NULL,
                  b->wide);
  ms_codec_shuffle(codec, b, b->wide, b->res2.x);
  res_run(codec, &codec->dec.res2, fine, &b->res2);
  res_run(codec, &codec->dec.res3, fine, &b->res3);
  ms_codec_norm_run(codec, &codec->dec.norm, fine, b->res3.y, b->n);
}

int64_t ms_codec_band_lines(const struct ms_grid *fine) {
  int64_t lines = BAND_ROWS / ms_grid_pitch(fine);
  return lines < 1 ? 1 : lines > fine->height ? fine->height : lines;
}

struct band_run {
  const struct msk_product_ops *ops;
  struct msk_product product; /* of image 0, line 0, with the rows of a whole band */
  const struct ms_grid *fine;
  int64_t lines, bands; /* of a band; of an image */
  size_t scratch_bytes;
  ms_codec_sink_fn sink;
  void *data;
};

static void band_task(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct band_run *run = data;
  int64_t image = begin / run->bands, line0 = begin % run->bands * run->lines, line1 = line0 + run->lines;
  int64_t pitch = ms_grid_pitch(run->fine);
  struct msk_product product = run->product;
  if (line1 > run->fine->height)
    line1 = run->fine->height;
  product.m = (line1 - line0) * pitch;
  product.a = (const unsigned char *)product.a +
              (size_t)((image * ms_grid_plane(run->fine) + line0 * pitch) * product.a_ld) *
                  msk_type_size(product.a_type);
  product.c = (unsigned char *)scratch + run->scratch_bytes;
  run->ops->run(&product, 0, product.m, 0, product.n, scratch);
  run->sink(run->data, image, line0, line1, product.c);
}

void ms_codec_decoder_output(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                             ms_codec_sink_fn sink, void *data) {
  const struct ms_conv *out = &codec->dec.out;
  int64_t rows[MS_CONV_MAX_TAPS];
  struct band_run run = {
      .ops = &codec->compute->product[codec->precision],
      .product = {.n = out->out,
                  .a = b->n,
                  .a_type = codec->type,
                  .a_ld = out->in,
                  .tap_rows = rows,
                  .b = out->forward,
                  .c_type = MSK_F32,
                  .c_ld = out->out,
                  .bias = out->offsets},
      .fine = &b->fine,
      .lines = ms_codec_band_lines(&b->fine),
      .sink = sink,
      .data = data,
  };
  run.bands = (b->fine.height + run.lines - 1) / run.lines;
  run.product.taps = ms_conv_taps(out, &b->fine, rows);
  run.product.k = run.product.taps * out->in;
  run.product.m = run.lines * ms_grid_pitch(&b->fine);
  run.scratch_bytes = (run.ops->scratch_bytes(&run.product) + 63) / 64 * 64;
  ms_pool_reserve(codec->compute->pool,
                  run.scratch_bytes + (size_t)(run.product.m * out->out) * sizeof(float));
  ms_compute_ranges(codec->compute, b->fine.frames * b->fine.clips * run.bands, 1, band_task, &run);
}

static void unpack_band(void *data, int64_t image, int64_t line0, int64_t line1, float *rows) {
  const struct pixel_run *run = data;
  const struct ms_codec *codec = run->codec;
  int64_t width = run->fine->width, packed = codec->packed, piece = codec->fold * 3;
  for (int64_t y = line0; y < line1; y++) {
    const float *cells = rows + (y - line0) * (width + 1) * packed;
    const float *colour =
        run->colour +
        (image * ms_grid_plane(run->coarse) + y / 2 * ms_grid_pitch(run->coarse)) * codec->channels;
    for (int part = 0; part < codec->strides[0] * codec->fold; part++) {
      float *to = frame_at(run, image, part / codec->fold, 0);
      if (!to)
        continue;
      to += (y * codec->fold + part % codec->fold) * width * piece;
      for (int64_t x = 0; x < width; x++) {
        const float *shade = colour + x / 2 * codec->channels, *from = cells + x * packed + part * piece;
        for (int64_t i = 0; i < piece; i += 3)
          for (int c = 0; c < 3; c++)
            to[x * piece + i + c] = from[i + c] + shade[c] * (1 / MS_CODEC_COLOUR);
      }
    }
  }
}

void ms_codec_decoder_unpack(const struct ms_codec *codec, const struct ms_codec_decoder_buffers *b,
                             const struct ms_codec_frames *frames) {
  struct pixel_run run = {codec, &b->fine, &b->coarse, frames, NULL, NULL, b->z};
  ms_codec_decoder_output(codec, b, unpack_band, &run);
}
