#include "media/resize.h"

#include <math.h>
#include <stdlib.h>

/* The taps of one output coordinate. */
struct taps {
  int first, count;
  const float *weights;
};

struct axis {
  struct taps *taps; /* [out] */
  float *weights;
};

static double cubic(double x) {
  x = fabs(x);
  if (x < 1)
    return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

static int clamp(int i, int n) {
  return i < 0 ? 0 : i >= n ? n - 1 : i;
}

static int axis_init(struct axis *axis, int in, int out) {
  double step = (double)in / out, width = step > 1 ? step : 1;
  int room = (int)ceil(4 * width) + 2;
  axis->taps = calloc((size_t)out, sizeof *axis->taps);
  axis->weights = calloc((size_t)out * (size_t)room, sizeof *axis->weights);
  if (!axis->taps || !axis->weights)
    return MS_ENOMEM;
  for (int o = 0; o < out; o++) {
    double centre = (o + 0.5) * step - 0.5, sum = 0;
    int low = (int)ceil(centre - 2 * width), high = (int)floor(centre + 2 * width);
    int first = clamp(low, in), last = clamp(high, in);
    float *weights = axis->weights + (size_t)o * (size_t)room;
    for (int i = low; i <= high; i++) {
      double w = cubic((i - centre) / width);
      weights[clamp(i, in) - first] += (float)w; /* beyond the edge counts for the edge */
      sum += w;
    }
    for (int i = 0; i <= last - first; i++)
      weights[i] = (float)(weights[i] / sum);
    axis->taps[o] = (struct taps){first, last - first + 1, weights};
  }
  return 0;
}

static void axis_release(struct axis *axis) {
  free(axis->taps);
  free(axis->weights);
}

struct resize_run {
  const float *in;
  float *middle, *out;
  int ih, iw, ow, channels;
  const struct axis *x, *y;
};

/* Rows [begin,end) of the input: along x, into middle [ih, ow, channels]. */
static void along_x(void *data, int64_t begin, int64_t end, void *scratch) {
  struct resize_run *run = data;
  for (int64_t row = begin; row < end; row++)
    for (int o = 0; o < run->ow; o++) {
      const struct taps *taps = &run->x->taps[o];
      const float *in = run->in + (row * run->iw + taps->first) * run->channels;
      float *out = run->middle + (row * run->ow + o) * run->channels;
      for (int c = 0; c < run->channels; c++) {
        float sum = 0;
        for (int i = 0; i < taps->count; i++)
          sum += taps->weights[i] * in[i * run->channels + c];
        out[c] = sum;
      }
    }
}

static void along_y(void *data, int64_t begin, int64_t end, void *scratch) {
  struct resize_run *run = data;
  int64_t line = (int64_t)run->ow * run->channels;
  for (int64_t o = begin; o < end; o++) {
    const struct taps *taps = &run->y->taps[o];
    const float *in = run->middle + taps->first * line;
    float *out = run->out + o * line;
    for (int64_t i = 0; i < line; i++)
      out[i] = taps->weights[0] * in[i];
    for (int t = 1; t < taps->count; t++)
      for (int64_t i = 0; i < line; i++)
        out[i] += taps->weights[t] * in[t * line + i];
  }
}

int ms_resize(struct ms_compute *compute, const float *in, int ih, int iw, float *out, int oh, int ow,
              int channels, struct ms_error *error) {
  struct axis x = {0}, y = {0};
  float *middle = malloc((size_t)ih * (size_t)ow * (size_t)channels * sizeof *middle);
  int code = 0;
  if (!middle || axis_init(&x, iw, ow) < 0 || axis_init(&y, ih, oh) < 0) {
    code = ms_error_set(error, MS_ENOMEM, "out of memory while resizing %dx%d to %dx%d", iw, ih, ow, oh);
  } else {
    struct resize_run run = {in, middle, out, ih, iw, ow, channels, &x, &y};
    ms_compute_ranges(compute, ih, 16, along_x, &run);
    ms_compute_ranges(compute, oh, 16, along_y, &run);
  }
  free(middle);
  axis_release(&x);
  axis_release(&y);
  return code;
}
