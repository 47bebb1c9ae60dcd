/* Convolutions as matrix products with taps (msk-product.h), on padded channels-last images.
 *
 * A grid is a stack of images, frames outermost: image number frame * clips + clip. Each image line is
 * followed by one padding pixel and each image by one padding line, so that a padding pixel serves both
 * neighbours and every shift by one line or one pixel is a shift of rows:
 *
 *   row of pixel (frame, clip, y, x) = ((frame * clips + clip) (H + 1) + y) (W + 1) + x
 *
 * `margin` rows before the first and after the last row must exist and be zero, and kt - 1 frames before the
 * first where a kernel reaches back in time. ms_grid_take gives such buffers. Padding must be zero in what a
 * convolution reads; every call here that writes an image leaves its padding zero. Results do not depend on
 * the number of threads. */
#pragma once
#include "base/arena.h"
#include "base/compute.h"
#include "weights/params.h"

struct ms_grid {
  int64_t frames, clips, height, width;
};

static inline int64_t ms_grid_pitch(const struct ms_grid *grid) {
  return grid->width + 1;
}
static inline int64_t ms_grid_plane(const struct ms_grid *grid) {
  return (grid->height + 1) * (grid->width + 1);
}
/* Rows from a frame to the next. */
static inline int64_t ms_grid_step(const struct ms_grid *grid) {
  return grid->clips * ms_grid_plane(grid);
}
static inline int64_t ms_grid_rows(const struct ms_grid *grid) {
  return grid->frames * ms_grid_step(grid);
}
static inline int64_t ms_grid_margin(const struct ms_grid *grid) {
  return grid->width + 2;
}
/* Rows and the margin after them: what element-wise passes cover, so that the margin stays zero in reused
 * buffers. */
static inline int64_t ms_grid_extent(const struct ms_grid *grid) {
  return ms_grid_rows(grid) + ms_grid_margin(grid);
}

/* A buffer [rows, channels] with margins and `lead` further frames on both sides; returns the place of row 0,
 * aligned to 64, or NULL when the arena measures. The owner clears the arena once. */
void *ms_grid_take(struct ms_arena *arena, const struct ms_grid *grid, int64_t channels, enum msk_type type,
                   int lead);
/* Clears padding pixels, padding lines and the margin after the last row. */
void ms_grid_clear(struct ms_compute *compute, const struct ms_grid *grid, void *x, int64_t channels,
                   enum msk_type type);

#define MS_CONV_MAX_TAPS 27

/* weight [out, in, kt, kh, kw] (without kt for 2-D), bias [out]. Kernels of 3 are centred in space with one
 * pixel of padding, and causal in time: the last tap is the frame itself. stride 2 (kt 1, 3x3 only) pads
 * below and right instead: y[i] = sum w[k] x[2 i + k]. */
struct ms_conv {
  int64_t in, out;
  int kt, kh, kw, stride;
  int weight, bias;  /* indices of parameters; bias -1: none */
  float *offsets;    /* owned: the bias in float32, or NULL */
  float *order;      /* owned: weights in (out, tap, in) order, then (tap, out, in) */
  void *forward;     /* owned: packed for y */
  void *backward[4]; /* owned: packed for dx, one for each phase of stride 2 */
};

/* Memory that backward passes share; grows as needed. Zero it before use. */
struct ms_conv_work {
  float *sums; /* owned */
  size_t sums_count;
};
void ms_conv_work_release(struct ms_conv_work *work);

/* Lists NAME.weight (fan-in normal start) and, if asked, NAME.bias; kt = 0: a 2-D kernel. Returns 0 or
 * MS_ENOMEM. */
int ms_conv_list(struct ms_conv *conv, struct ms_params *params, const char *name, int64_t out, int64_t in,
                 int kt, int kh, int kw, int stride, int bias);
void ms_conv_release(struct ms_conv *conv);
/* Packs the weights, also for dx if training; again after every change of them. */
int ms_conv_pack(struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                 const struct ms_params *params, int training, struct ms_error *error);

/* The rows of A at which the taps of row i lie, relative to i, in (kt, kh, kw) order; returns their number.
 */
int ms_conv_taps(const struct ms_conv *conv, const struct ms_grid *grid, int64_t rows[MS_CONV_MAX_TAPS]);

/* y [rows, out] = conv (x) + bias + residual (NULL: none; may be y). `grid` is that of y; with stride 2, x is
 * the output of ms_conv_phases. Only frames [0, frames) are computed; frames before them are read from x
 * where kt > 1. */
void ms_conv_forward(const struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                     const struct ms_grid *grid, const void *x, enum msk_type x_type, const float *residual,
                     float *y);
/* dx [rows, in], written, for frames -(kt - 1) .. frames - 1 (dx points at frame 0). dy must be zero in its
 * padding and for kt - 1 frames on both sides. With stride 2 dx are four phases, to be scattered by
 * ms_conv_unphase. */
void ms_conv_backward_x(const struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                        const struct ms_grid *grid, const void *dy, enum msk_type dy_type, float *dx);
/* grad [out, in, taps] += dy^T x, the gradient of the weight. That of the bias: ms_conv_column_sums. */
int ms_conv_backward_w(const struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                       const struct ms_grid *grid, const void *x, enum msk_type x_type, const void *dy,
                       enum msk_type dy_type, float *grad, struct ms_conv_work *work, struct ms_error *error);

/* The four phases of x [rows of full, channels] for stride 2: phase 2 py + px holds pixel (2 y + py, 2 x +
 * px) at pixel (y, x) of `half` (height / 2, width / 2), zero outside; phases are ms_grid_extent (half) rows
 * apart. */
void ms_conv_phases(struct ms_compute *compute, const struct ms_grid *full, const struct ms_grid *half,
                    const float *x, int64_t channels, void *phases, enum msk_type type);
void ms_conv_unphase(struct ms_compute *compute, const struct ms_grid *full, const struct ms_grid *half,
                     const float *phases, int64_t channels, float *dx);

/* out[c] += column sums of x [rows, c], in fixed blocks of rows whatever the threads (out NULL: none), and
 * rounded [rows, c] = x in bf16 (NULL: none): what both products of a backward pass need of a gradient, read
 * once. */
int ms_conv_column_sums(struct ms_compute *compute, const float *x, int64_t c, int64_t rows,
                        uint16_t *rounded, float *out, struct ms_conv_work *work, struct ms_error *error);
/* Room for `count` floats in work->sums. */
int ms_conv_work_sums(struct ms_conv_work *work, size_t count, struct ms_error *error);
