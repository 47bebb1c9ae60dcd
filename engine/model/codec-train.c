#include "model/codec-net.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

/* Rows of one task of a backward norm; each has its own sums, so this is part of the result. */
#define NORM_ROWS 256
/* Noise of the codec's training has its own streams of a seed. */
#define NOISE_STREAM ((uint64_t)0xc0dec << 40)
/* The loss: L1 + MSE_WEIGHT MSE + EDGE mean e^2 + FAR mean max (|e| - FAR_FROM, 0)^2 + COLOUR mean c^2. */
#define MSE_WEIGHT 2.0
#define EDGE 1e-3
#define FAR 1e-2
#define FAR_FROM 2.0f
#define COLOUR 1e-4

/* Gradients on one of the two grids. t and b have two frames before and after, for the temporal layers. */
struct scratch {
  float *g, *t, *u; /* of the residual stream, of a convolution's input, of a norm's input */
  void *b;          /* of a convolution's output, as the products read it */
};

struct ms_codec_pass {
  int clips, frames, height, width;
  struct ms_arena arena;
  struct ms_codec_encoder_buffers enc;
  struct ms_codec_decoder_buffers dec;
  struct scratch fine, coarse;
  float *dz;     /* [coarse, channels] */
  float *shade;  /* [fine, 3] gradient of the colour shortcut */
  float *dout;   /* [fine, packed] gradient of the last convolution's output */
  float *phases; /* [4, coarse extent, encoder[0]] */
  double *sums;  /* [pieces][2] partial losses */
  struct ms_conv_work work;
};

void ms_codec_pass_close(struct ms_codec_pass **pointer) {
  struct ms_codec_pass *pass = *pointer;
  if (!pass)
    return;
  ms_arena_release(&pass->arena);
  ms_conv_work_release(&pass->work);
  free(pass);
  *pointer = NULL;
}

static int64_t larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}

static void take_scratch(struct scratch *s, struct ms_arena *arena, const struct ms_grid *grid, int64_t c,
                         int64_t wide, enum msk_type type, int lead) {
  s->g = ms_grid_take(arena, grid, c, MSK_F32, lead);
  s->t = ms_grid_take(arena, grid, c, MSK_F32, lead);
  s->u = ms_grid_take(arena, grid, wide, MSK_F32, lead);
  s->b = ms_grid_take(arena, grid, wide, type, lead);
}

static void take(struct ms_codec *codec, struct ms_codec_pass *pass) {
  struct ms_arena *arena = &pass->arena;
  const struct ms_grid *fine = &pass->enc.fine, *coarse = &pass->enc.coarse;
  int64_t images = fine->frames * fine->clips;
  int64_t c_fine = larger(codec->encoder[0], codec->decoder[1]),
          c_coarse = larger(codec->encoder[1], codec->decoder[0]);
  ms_codec_encoder_take(codec, &pass->enc, arena, 1);
  ms_codec_decoder_take(codec, &pass->dec, arena, 1);
  take_scratch(&pass->fine, arena, fine, c_fine, larger(c_fine, codec->packed), codec->type, 0);
  take_scratch(&pass->coarse, arena, coarse, c_coarse,
               larger(larger(c_coarse, codec->channels), 4 * codec->decoder[1]), codec->type, 2);
  pass->dz = ms_grid_take(arena, coarse, larger(codec->channels, 1), MSK_F32, 0);
  pass->shade = ms_grid_take(arena, fine, 3, MSK_F32, 0);
  pass->dout = ms_grid_take(arena, fine, codec->packed, MSK_F32, 0);
  pass->phases = ms_arena_take_f32(arena, 4 * ms_grid_extent(coarse) * codec->encoder[0]);
  pass->sums =
      ms_arena_take(arena, (size_t)(images * larger(fine->height, coarse->height)) * 2 * sizeof(double));
}

static int open_pass(struct ms_codec *codec, const struct ms_codec_train *train, struct ms_error *error) {
  struct ms_codec_pass *pass = codec->pass;
  int stride = codec->strides[1], result;
  size_t size;
  if (train->clips < 1 || train->frames < 1 || (train->frames - 1) % codec->strides[0] || train->height < 1 ||
      train->width < 1 || train->height % stride || train->width % stride)
    return ms_error_set(
        error, MS_EUSAGE,
        "%d crops of %d frames of %d x %d: the codec needs %d n + 1 frames and multiples of %d pixels",
        train->clips, train->frames, train->width, train->height, codec->strides[0], stride);
  if (pass && pass->clips == train->clips && pass->frames == train->frames && pass->height == train->height &&
      pass->width == train->width)
    return 0;
  ms_codec_pass_close(&codec->pass);
  pass = calloc(1, sizeof *pass);
  if (!pass)
    return ms_error_set(error, MS_ENOMEM, "out of memory while training the codec");
  ms_codec_grids((train->frames - 1) / codec->strides[0] + 1, train->clips, train->height / stride,
                 train->width / stride, &pass->enc.fine, &pass->enc.coarse);
  pass->dec.fine = pass->enc.fine;
  pass->dec.coarse = pass->enc.coarse;
  take(codec, pass);
  size = pass->arena.peak;
  memset(&pass->arena, 0, sizeof pass->arena);
  if ((result = ms_arena_open(&pass->arena, size, error)) < 0) {
    free(pass);
    return result;
  }
  memset(pass->arena.base, 0, pass->arena.size);
  take(codec, pass);
  pass->clips = train->clips;
  pass->frames = train->frames;
  pass->height = train->height;
  pass->width = train->width;
  codec->pass = pass;
  return 0;
}

struct train_run {
  const struct ms_codec *codec;
  struct ms_codec_pass *pass;
  const struct ms_codec_train *train;
  int64_t bands, band_lines;
};

/* Lines of the coarse grid without padding: what the decoder reads = z + noise. */
static void add_noise(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct train_run *run = data;
  const struct ms_grid *coarse = &run->pass->enc.coarse;
  int64_t count = coarse->width * run->codec->channels;
  float *noise = scratch;
  for (int64_t line = begin; line < end; line++) {
    int64_t row =
        line / coarse->height * ms_grid_plane(coarse) + line % coarse->height * ms_grid_pitch(coarse);
    const float *from = run->pass->enc.z + row * run->codec->channels;
    float *to = run->pass->dec.z + row * run->codec->channels;
    ms_random_normal_fill(run->train->seed, NOISE_STREAM + run->train->step, (uint64_t)(line * count), noise,
                          count);
    for (int64_t i = 0; i < count; i++)
      to[i] = from[i] + noise[i] * (i % run->codec->channels < 3 ? run->train->noise_c : run->train->noise_e);
  }
}

/* Compares a band with the pixels: partial losses, gradient of the output and of the colour shortcut. */
static void compare_band(void *data, int64_t image, int64_t line0, int64_t line1, float *rows) {
  const struct train_run *run = data;
  const struct ms_codec *codec = run->codec;
  const struct ms_grid *fine = &run->pass->dec.fine, *coarse = &run->pass->dec.coarse;
  int64_t width = fine->width, packed = codec->packed, piece = codec->fold * 3;
  int64_t group = image / fine->clips, clip = image % fine->clips, line_values = width * piece;
  double *sums = run->pass->sums + 2 * (image * run->bands + line0 / run->band_lines), l1 = 0, l2 = 0;
  float scale = (float)(1.0 / ((double)run->train->clips * run->train->frames * run->train->height *
                               run->train->width * 3));
  float scale2 = (float)(2 * MSE_WEIGHT) * scale;
  for (int64_t y = line0; y < line1; y++) {
    int64_t row = image * ms_grid_plane(fine) + y * (width + 1);
    const float *cells = rows + (y - line0) * (width + 1) * packed;
    const float *colour =
        run->pass->dec.z + (image * ms_grid_plane(coarse) + y / 2 * ms_grid_pitch(coarse)) * codec->channels;
    float *dout = run->pass->dout + row * packed, *shade = run->pass->shade + row * 3;
    memset(shade, 0, (size_t)(width * 3) * sizeof(float));
    for (int part = 0; part < codec->strides[0] * codec->fold; part++) {
      int64_t number = 1 - codec->strides[0] + group * codec->strides[0] + part / codec->fold;
      const float *from = run->train->pixels +
                          (clip * run->train->frames + number) * line_values * codec->fold * fine->height +
                          (y * codec->fold + part % codec->fold) * line_values;
      float absolute = 0, square = 0;
      for (int64_t x = 0; x < width; x++) {
        const float *cell = cells + x * packed + part * piece, *mean = colour + x / 2 * codec->channels;
        float *d = dout + x * packed + part * piece;
        if (number < 0) {
          memset(d, 0, (size_t)piece * sizeof(float));
          continue;
        }
        for (int64_t i = 0; i < piece; i += 3)
          for (int c = 0; c < 3; c++) {
            float difference = cell[i + c] + mean[c] * (1 / MS_CODEC_COLOUR) - from[x * piece + i + c];
            float sign = difference > 0 ? scale : difference < 0 ? -scale : 0;
            absolute += fabsf(difference);
            square += difference * difference;
            d[i + c] = sign + scale2 * difference;
            shade[x * 3 + c] += d[i + c];
          }
      }
      l1 += absolute;
      l2 += square;
    }
  }
  sums[0] = l1;
  sums[1] = l2;
}

/* Lines of the coarse grid without padding: adds the shortcut's and the penalties' gradients to dz; partial
 * penalties. */
static void penalise(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct train_run *run = data;
  const struct ms_grid *fine = &run->pass->enc.fine, *coarse = &run->pass->enc.coarse;
  int channels = run->codec->channels;
  double cells = (double)coarse->frames * (double)(coarse->clips * coarse->height * coarse->width);
  double edges = cells * (channels - 3), colours = cells * 3;
  float edge = (float)(2 * EDGE / edges), far = (float)(2 * FAR / edges),
        colour = (float)(2 * COLOUR / colours);
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / coarse->height, y = line % coarse->height;
    int64_t row = image * ms_grid_plane(coarse) + y * ms_grid_pitch(coarse);
    double *sums = run->pass->sums + 2 * line, loss = 0;
    for (int64_t x = 0; x < coarse->width; x++) {
      const float *z = run->pass->enc.z + (row + x) * channels;
      float *dz = run->pass->dz + (row + x) * channels;
      for (int c = 0; c < 3; c++) {
        const float *shade =
            run->pass->shade + (image * ms_grid_plane(fine) + 2 * y * ms_grid_pitch(fine) + 2 * x) * 3 + c;
        const float *below = shade + 3 * ms_grid_pitch(fine);
        dz[c] += (shade[0] + shade[3] + below[0] + below[3]) * (1 / MS_CODEC_COLOUR) + colour * z[c];
        loss += COLOUR / colours * z[c] * z[c];
      }
      for (int c = 3; c < channels; c++) {
        float over = fabsf(z[c]) - FAR_FROM;
        dz[c] += edge * z[c];
        loss += EDGE / edges * z[c] * z[c];
        if (over > 0) {
          dz[c] += z[c] > 0 ? far * over : -far * over;
          loss += FAR / edges * over * over;
        }
      }
    }
    sums[0] = loss;
  }
}

struct norm_run {
  const struct ms_codec *codec;
  const struct ms_codec_norm *norm;
  const float *x, *dy;
  float *dx, *sums;
  int accumulate;
};

static void norm_back_rows(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct norm_run *run = data;
  int64_t c = run->norm->c;
  float *sums = run->sums + begin / NORM_ROWS * c;
  memset(sums, 0, (size_t)c * sizeof(float));
  run->codec->compute->norm.l2_norm_backward(run->x + begin * c, run->norm->factors, c, end - begin, 1,
                                             run->dy + begin * c, run->dx + begin * c, run->accumulate, sums);
}

static int norm_back(struct ms_codec *codec, const struct ms_codec_norm *norm, const struct ms_grid *grid,
                     const float *x, const float *dy, float *dx, int accumulate, float *grad,
                     struct ms_error *error) {
  struct norm_run run = {codec, norm, x, dy, dx, NULL, accumulate};
  int64_t extent = ms_grid_extent(grid), blocks = (extent + NORM_ROWS - 1) / NORM_ROWS;
  int result = ms_conv_work_sums(&codec->pass->work, (size_t)(blocks * norm->c), error);
  if (result < 0)
    return result;
  run.sums = codec->pass->work.sums;
  ms_compute_ranges(codec->compute, extent, NORM_ROWS, norm_back_rows, &run);
  grad += codec->params.list[norm->gamma].offset;
  for (int64_t block = 0; block < blocks; block++)
    for (int64_t i = 0; i < norm->c; i++)
      grad[i] += run.sums[block * norm->c + i];
  return 0;
}

/* dx may be NULL. dy [extent, out] is zero in padding and margin. */
static int conv_back(struct ms_codec *codec, const struct ms_conv *conv, const struct ms_grid *grid,
                     const void *x, enum msk_type x_type, const float *dy, void *b, float *dx, float *grad,
                     struct ms_error *error) {
  const struct ms_param *list = codec->params.list;
  void *read = codec->type == MSK_BF16 ? b : (void *)dy;
  int result = ms_conv_column_sums(
      codec->compute, dy, conv->out, ms_grid_extent(grid), codec->type == MSK_BF16 ? b : NULL,
      conv->bias < 0 ? NULL : grad + list[conv->bias].offset, &codec->pass->work, error);
  if (result < 0)
    return result;
  if (conv->kt > 1) { /* the frames after the last, as far as the kernel reaches */
    size_t size = msk_type_size(codec->type), from = (size_t)(ms_grid_rows(grid) * conv->out) * size;
    memset((unsigned char *)read + from, 0, (size_t)((conv->kt - 1) * ms_grid_step(grid) * conv->out) * size);
  }
  result = ms_conv_backward_w(conv, codec->compute, codec->precision, grid, x, x_type, read, codec->type,
                              grad + list[conv->weight].offset, &codec->pass->work, error);
  if (result == 0 && dx)
    ms_conv_backward_x(conv, codec->compute, codec->precision, grid, read, codec->type, dx);
  return result;
}

static int res_back(struct ms_codec *codec, const struct ms_codec_res *layer, const struct ms_grid *grid,
                    const struct ms_codec_res_buffers *b, const struct scratch *s, float *grad,
                    struct ms_error *error) {
  int result;
  if ((result = conv_back(codec, &layer->conv2, grid, b->n2, codec->type, s->g, s->b, s->t, grad, error)) <
          0 ||
      (result = norm_back(codec, &layer->norm2, grid, b->h, s->t, s->u, 0, grad, error)) < 0 ||
      (result = conv_back(codec, &layer->conv1, grid, b->n1, codec->type, s->u, s->b, s->t, grad, error)) < 0)
    return result;
  return norm_back(codec, &layer->norm1, grid, b->x, s->t, s->g, 1, grad, error);
}

static int temporal_back(struct ms_codec *codec, const struct ms_codec_temporal *layer,
                         const struct ms_grid *grid, const struct ms_codec_temporal_buffers *b,
                         const struct scratch *s, float *grad, struct ms_error *error) {
  int64_t frame = ms_grid_step(grid) * layer->norm.c;
  int result = conv_back(codec, &layer->mix, grid, b->n, codec->type, s->g, s->b, s->t, grad, error);
  if (result < 0)
    return result;
  for (int lead = 1; lead <= 2; lead++) /* frame 0 was repeated in front */
    codec->compute->norm.add(s->t - lead * frame, s->t, frame);
  return norm_back(codec, &layer->norm, grid, b->x, s->t, s->g, 1, grad, error);
}

static int decoder_back(struct ms_codec *codec, float *grad, struct ms_error *error) {
  struct ms_codec_pass *pass = codec->pass;
  const struct ms_codec_decoder_buffers *b = &pass->dec;
  const struct ms_grid *fine = &b->fine, *coarse = &b->coarse;
  int result;
  if ((result = conv_back(codec, &codec->dec.out, fine, b->n, codec->type, pass->dout, pass->fine.b,
                          pass->fine.t, grad, error)) < 0 ||
      (result = norm_back(codec, &codec->dec.norm, fine, b->res3.y, pass->fine.t, pass->fine.g, 0, grad,
                          error)) < 0 ||
      (result = res_back(codec, &codec->dec.res3, fine, &b->res3, &pass->fine, grad, error)) < 0 ||
      (result = res_back(codec, &codec->dec.res2, fine, &b->res2, &pass->fine, grad, error)) < 0)
    return result;
  ms_codec_unshuffle(codec, b, pass->fine.g, pass->coarse.u);
  if ((result = conv_back(codec, &codec->dec.up, coarse, b->res1.y, MSK_F32, pass->coarse.u, pass->coarse.b,
                          pass->coarse.g, grad, error)) < 0 ||
      (result = res_back(codec, &codec->dec.res1, coarse, &b->res1, &pass->coarse, grad, error)) < 0 ||
      (result =
           temporal_back(codec, &codec->dec.temporal, coarse, &b->temporal, &pass->coarse, grad, error)) < 0)
    return result;
  return conv_back(codec, &codec->dec.in, coarse, b->in, codec->type, pass->coarse.g, pass->coarse.b,
                   pass->dz, grad, error);
}

static int encoder_back(struct ms_codec *codec, float *grad, struct ms_error *error) {
  struct ms_codec_pass *pass = codec->pass;
  const struct ms_codec_encoder_buffers *b = &pass->enc;
  const struct ms_grid *fine = &b->fine, *coarse = &b->coarse;
  int result;
  if ((result = conv_back(codec, &codec->enc.out, coarse, b->n, codec->type, pass->dz, pass->coarse.b,
                          pass->coarse.t, grad, error)) < 0 ||
      (result = norm_back(codec, &codec->enc.norm, coarse, b->temporal.y, pass->coarse.t, pass->coarse.g, 0,
                          grad, error)) < 0 ||
      (result = temporal_back(codec, &codec->enc.temporal, coarse, &b->temporal, &pass->coarse, grad,
                              error)) < 0 ||
      (result = res_back(codec, &codec->enc.res2, coarse, &b->res2, &pass->coarse, grad, error)) < 0 ||
      (result = conv_back(codec, &codec->enc.down, coarse, b->phases, codec->type, pass->coarse.g,
                          pass->coarse.b, pass->phases, grad, error)) < 0)
    return result;
  ms_conv_unphase(codec->compute, fine, coarse, pass->phases, codec->encoder[0], pass->fine.g);
  if ((result = res_back(codec, &codec->enc.res1, fine, &b->res1, &pass->fine, grad, error)) < 0)
    return result;
  return conv_back(codec, &codec->enc.in, fine, b->packed, codec->type, pass->fine.g, pass->fine.b, NULL,
                   grad, error);
}

int ms_codec_train_pass(struct ms_codec *codec, const struct ms_codec_train *train, float *grad, double *loss,
                        double *mse, struct ms_error *error) {
  struct ms_codec_frames frames = {1 - codec->strides[0], train->frames, (float *)train->pixels};
  struct train_run run = {.codec = codec, .train = train};
  double values = (double)train->clips * train->frames * train->height * train->width * 3, l1 = 0, l2 = 0,
         penalty = 0;
  struct ms_codec_pass *pass;
  int64_t lines, images;
  int result;
  assert(codec->prepared == 2);
  if ((result = open_pass(codec, train, error)) < 0)
    return result;
  pass = run.pass = codec->pass;
  images = pass->enc.fine.frames * pass->enc.fine.clips;
  lines = images * pass->enc.coarse.height;
  ms_codec_encoder_run(codec, &pass->enc, &frames, 0);
  ms_pool_reserve(codec->compute->pool, (size_t)(pass->enc.coarse.width * codec->channels) * sizeof(float));
  ms_compute_ranges(codec->compute, lines, 4, add_noise, &run);
  ms_codec_decoder_run(codec, &pass->dec, 0);
  run.band_lines = ms_codec_band_lines(&pass->dec.fine);
  run.bands = (pass->dec.fine.height + run.band_lines - 1) / run.band_lines;
  ms_codec_decoder_output(codec, &pass->dec, compare_band, &run);
  for (int64_t i = 0; i < images * run.bands; i++) {
    l1 += pass->sums[2 * i];
    l2 += pass->sums[2 * i + 1];
  }
  if ((result = decoder_back(codec, grad, error)) < 0)
    return result;
  ms_compute_ranges(codec->compute, lines, 8, penalise, &run);
  for (int64_t i = 0; i < lines; i++)
    penalty += pass->sums[2 * i];
  if ((result = encoder_back(codec, grad, error)) < 0)
    return result;
  if ((result = ms_pool_stopped(codec->compute->pool, "cancelled", error)) < 0)
    return result;
  *loss = l1 / values + MSE_WEIGHT * l2 / values + penalty;
  *mse = l2 / values;
  if (!isfinite(*loss))
    return ms_error_set(error, MS_ENOTFINITE, "the codec's loss is not finite");
  return 0;
}
