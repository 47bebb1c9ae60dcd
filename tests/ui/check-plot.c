#include <cairo.h>
#include <math.h>
#include <string.h>

#include "harness.h"
#include "plot/curve.h"
#include "plot/pyramid.h"
#include "plot/ticks.h"

static struct msu_extremes plain(const double *values, gsize from, gsize to) {
  struct msu_extremes e = MSU_EXTREMES_NONE;
  for (gsize i = from; i < to; i++)
    if (isfinite(values[i])) {
      e.low = fmin(e.low, values[i]);
      e.high = fmax(e.high, values[i]);
      if (values[i] > 0)
        e.positive = fmin(e.positive, values[i]);
    }
  return e;
}

static double random_value(void) {
  const double pick = check_uniform(0, 1);
  return pick < 0.03 ? NAN : pick < 0.05 ? INFINITY : pick < 0.06 ? 0 : check_uniform(-3, 5);
}

static void check_pyramid(void) {
  enum { MOST = 70000 };
  double *values = g_new(double, MOST);
  struct msu_pyramid pyramid = {0};
  gsize length = 0;
  int wrong = 0, ranges = 0;
  for (int round = 0; round < 400; round++) {
    /* mostly grows, in pieces of one to hundreds; now and then a part is replaced, as a resumed run does */
    gsize first = round % 7 == 6 ? (gsize)check_below((int64_t)length + 1) : length;
    gsize end = MIN(first + (gsize)check_below(round % 3 ? 20 : 900), MOST);
    for (gsize i = first; i < end; i++)
      values[i] = random_value();
    length = end;
    msu_pyramid_update(&pyramid, values, length, first);
    for (int k = 0; k < 40; k++) {
      gsize a = (gsize)check_below((int64_t)length + 1), b = (gsize)check_below((int64_t)length + 1);
      struct msu_extremes want = plain(values, MIN(a, b), MAX(a, b)),
                          got = msu_pyramid_range(&pyramid, values, MIN(a, b), MAX(a, b));
      ranges++;
      wrong += got.low != want.low || got.high != want.high || got.positive != want.positive;
    }
  }
  check_ok(wrong == 0, "%d ranges of a growing array have the extremes of its values, %d do not", ranges,
           wrong);
  struct msu_extremes none = msu_pyramid_range(&pyramid, values, 5, 5);
  check_ok(none.low > none.high, "an empty range has no extremes");
  msu_pyramid_clear(&pyramid);
  check_ok(pyramid.length == 0 && !pyramid.levels[0].blocks, "a cleared pyramid is empty");
  g_free(values);
}

/* m * 10^n with m of 1, 2 and 5 */
static int is_nice(double step) {
  const double part = step / pow(10, floor(log10(step) + 1e-9));
  return fabs(part - 1) < 1e-6 || fabs(part - 2) < 1e-6 || fabs(part - 5) < 1e-6;
}

static void check_linear_ticks(void) {
  int wrong = 0;
  for (int i = 0; i < 4000; i++) {
    const double scale = pow(10, check_uniform(-9, 9)), low = check_uniform(-2, 2) * scale,
                 high = low + check_uniform(0.01, 3) * scale;
    const int wanted = 1 + (int)check_below(12);
    struct msu_ticks ticks;
    msu_ticks_linear(&ticks, low, high, wanted, 0);
    wrong += !is_nice(ticks.step) || ticks.count > wanted + 1;
    /* never less than two fifths of what there is room for */
    wrong += ticks.count < (int)(0.4 * wanted) - 1;
    for (int t = 0; t < ticks.count; t++) {
      const double in_steps = ticks.at[t] / ticks.step;
      wrong += fabs(in_steps - round(in_steps)) > 1e-6 || ticks.at[t] < low - 1e-5 * ticks.step ||
               ticks.at[t] > high + 1e-5 * ticks.step || (t > 0 && !(ticks.at[t] > ticks.at[t - 1]));
    }
  }
  check_ok(wrong == 0, "marks are multiples of 1, 2 or 5 within the range, %d are not", wrong);
  struct msu_ticks ticks;
  msu_ticks_linear(&ticks, 0, 2.5, 10, 1);
  check_ok(ticks.step == 1 && ticks.count == 3, "whole marks are not closer than 1");
  msu_ticks_linear(&ticks, 1, 1, 5, 0);
  check_ok(ticks.count == 0, "a range of nothing has no marks");
  msu_ticks_linear(&ticks, NAN, 1, 5, 0);
  check_ok(ticks.count == 0, "a range without a number has no marks");
  msu_ticks_bytes(&ticks, 0, 3.2 * (1 << 30), 4);
  check_ok(ticks.count == 4 && ticks.at[1] == 1 << 30, "marks of bytes are whole GB");
}

static void check_log_ticks(void) {
  struct msu_ticks ticks;
  msu_ticks_log(&ticks, 0.05, 30, 12);
  const double want[] = {0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20};
  int wrong = ticks.count != 9;
  for (int i = 0; i < ticks.count && i < 9; i++)
    wrong += fabs(ticks.at[i] / want[i] - 1) > 1e-9;
  check_ok(!wrong, "a logarithmic scale has marks at 1, 2 and 5 of each decade (%d marks)", ticks.count);
  msu_ticks_log(&ticks, 1e-9, 1e9, 5);
  wrong = ticks.count < 3 || ticks.count > 6;
  for (int i = 0; i < ticks.count; i++)
    wrong += fabs(log10(ticks.at[i]) - round(log10(ticks.at[i]))) > 1e-9;
  check_ok(!wrong, "many decades have marks at some of them (%d marks)", ticks.count);
  msu_ticks_log(&ticks, -1, 10, 5);
  check_ok(ticks.count == 0, "a logarithmic scale does not begin below zero");
}

static void check_number(const char *got, const char *want) {
  check_ok(strcmp(got, want) == 0, "\"%s\" is written as \"%s\"", want, got);
}

static void check_numbers(void) {
  char text[MSU_NUMBER_ROOM];
  check_number(msu_number_whole(text, 0), "0");
  check_number(msu_number_whole(text, 999), "999");
  check_number(msu_number_whole(text, 2000), "2,000");
  check_number(msu_number_whole(text, -1234567), "-1,234,567");
  check_number(msu_number_whole(text, INT64_MIN), "-9,223,372,036,854,775,808");
  check_number(msu_number_tick(text, 0.5, 0.5, 2, NULL), "0.5");
  check_number(msu_number_tick(text, 2, 0.5, 2, NULL), "2.0");
  check_number(msu_number_tick(text, 5000, 5000, 20000, NULL), "5k");
  check_number(msu_number_tick(text, 5000, 1000, 5000, NULL), "5,000");
  check_number(msu_number_tick(text, 1e-4, 5e-5, 1e-4, NULL), "1e-4");
  check_number(msu_number_tick(text, 1.5e-4, 5e-5, 1.5e-4, NULL), "1.5e-4");
  check_number(msu_number_tick(text, 0.5 * (1 << 30), 0.5 * (1 << 30), 2.0 * (1 << 30), "B"), "0.5 GB");
  check_number(msu_number_tick(text, 0.25, 0.05, 0.3, "%"), "25 %");
  check_number(msu_number_tick(text, 0.02, 0, 0, NULL), "0.02");
  check_number(msu_number_value(text, 0.021337, NULL), "0.02134");
  check_number(msu_number_value(text, 0, NULL), "0");
  check_number(msu_number_value(text, 12345, "tokens/s"), "12.35k tokens/s");
  check_number(msu_number_value(text, 1.1 * (1 << 30), "B"), "1.10 GB");
  check_number(msu_number_value(text, 0.4217, "%"), "42.2 %");
  check_number(msu_number_value(text, 3.2e-5, NULL), "3.2e-5");
  check_number(msu_number_value(text, 2251.4, "tokens/s"), "2,251 tokens/s");
  check_number(msu_number_value(text, NAN, "B"), "-");
}

struct picture {
  struct msu_plane plane;
  struct msu_points points;
  struct msu_pyramid pyramid;
  cairo_surface_t *image;
};

/* x from 0; owns neither x nor y */
static void picture_open(struct picture *picture, const double *x, const double *y, gsize n) {
  *picture = (struct picture){
      .plane = {
          .from = 0, .to = (double)(n - 1), .low = -1, .high = 1, .width = 200, .height = 100, .scale = 1}};
  msu_pyramid_update(&picture->pyramid, y, n, 0);
  picture->points = (struct msu_points){x, y, n, &picture->pyramid};
  picture->image = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 200, 100);
}

static void picture_line(struct picture *picture) {
  const double white[4] = {1, 1, 1, 1};
  msu_curve_draw_line(picture->image, &picture->plane, &picture->points, white, 1.5);
  cairo_surface_flush(picture->image);
}

static int alpha(struct picture *picture, int x, int y) {
  const guchar *data = cairo_image_surface_get_data(picture->image);
  const int stride = cairo_image_surface_get_stride(picture->image);
  return (int)(*(const guint32 *)(const void *)(data + (gsize)stride * (gsize)y + 4 * (gsize)x) >> 24);
}

static int ink(struct picture *picture, int from, int to) {
  int sum = 0;
  for (int x = from; x < to; x++)
    for (int y = 0; y < 100; y++)
      sum += alpha(picture, x, y);
  return sum;
}

static void picture_close(struct picture *picture) {
  cairo_surface_destroy(picture->image);
  msu_pyramid_clear(&picture->pyramid);
}

static void check_curves(void) {
  enum { MANY = 1000000 };
  double *x = g_new(double, MANY), *y = g_new(double, MANY);
  for (int i = 0; i < MANY; i++) {
    x[i] = i;
    y[i] = 0;
  }
  y[500123] = 0.9;
  struct picture picture;
  picture_open(&picture, x, y, MANY);
  picture_line(&picture);
  check_ok(alpha(&picture, 100, 6) > 200 && alpha(&picture, 100, 30) > 200,
           "one point in a million stays as a spike");
  check_ok(alpha(&picture, 98, 30) == 0 && alpha(&picture, 103, 30) == 0, "and the spike is a column wide");
  int thin = 1;
  for (int c = 0; c < 90; c++)
    thin &= ink(&picture, c, c + 1) >= 370 && ink(&picture, c, c + 1) <= 395;
  check_ok(thin, "a level line covers a pixel and a half of each column");
  picture_close(&picture);

  /* A slope through many points must cover what cairo's stroke of its two ends covers. */
  for (int i = 0; i < MANY; i++)
    y[i] = -0.8 + 1.6 * i / (MANY - 1);
  picture_open(&picture, x, y, MANY);
  picture_line(&picture);
  const double dense = ink(&picture, 2, 198);
  picture_close(&picture);
  const double ends_x[2] = {0, MANY - 1}, ends_y[2] = {-0.8, 0.8};
  picture_open(&picture, ends_x, ends_y, 2);
  picture.plane.to = MANY - 1;
  picture_line(&picture);
  const double stroke = ink(&picture, 2, 198);
  picture_close(&picture);
  check_ok(fabs(dense / stroke - 1) < 0.2, "columns are as strong as a stroke: %.3f of it", dense / stroke);

  /* Gaps: NaN, and what has no logarithm. */
  const double gap_x[] = {0, 1, 2, 3, 4}, gap_y[] = {0.5, 0.5, NAN, 0.5, 0.5},
               low_y[] = {0.5, 0.5, -1, 0.5, 0.5};
  picture_open(&picture, gap_x, gap_y, 5);
  picture_line(&picture);
  check_ok(ink(&picture, 20, 30) > 0 && ink(&picture, 60, 140) == 0 && ink(&picture, 170, 180) > 0,
           "a value that is no number breaks the line");
  picture_close(&picture);
  picture_open(&picture, gap_x, low_y, 5);
  picture.plane.log = 1;
  picture.plane.low = 0.1;
  picture_line(&picture);
  check_ok(ink(&picture, 20, 30) > 0 && ink(&picture, 60, 140) == 0, "so does one without a logarithm");
  picture_close(&picture);
  for (int i = 0; i < MANY; i++)
    y[i] = i < MANY / 2 ? -1 : 0.5;
  picture_open(&picture, x, y, MANY);
  picture.plane.log = 1;
  picture.plane.low = 0.1;
  picture_line(&picture);
  check_ok(ink(&picture, 0, 99) == 0 && ink(&picture, 110, 120) > 0, "and a million of them");
  picture_close(&picture);
  g_free(x);
  g_free(y);
}

static void check_search(void) {
  enum { N = 3000 };
  double x[N], y[N] = {0}, at = 0;
  for (int i = 0; i < N; i++)
    x[i] = at += check_uniform(0.1, 3);
  const struct msu_points points = {x, y, N, NULL};
  int wrong = 0;
  for (int k = 0; k < 3000; k++) {
    const double wanted = check_uniform(-5, at + 5);
    const gsize start = (gsize)check_below(N + 1);
    gsize found = start, nearest = 0;
    while (found < N && x[found] < wanted)
      found++;
    for (gsize i = 1; i < N; i++)
      if (fabs(x[i] - wanted) < fabs(x[nearest] - wanted))
        nearest = i;
    wrong += msu_points_find(&points, wanted, start) != found;
    wrong += fabs(fabs(x[msu_points_nearest(&points, wanted)] - wanted) - fabs(x[nearest] - wanted)) > 1e-12;
  }
  check_ok(wrong == 0, "points are found by their place, %d are not", wrong);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  check_pyramid();
  check_linear_ticks();
  check_log_ticks();
  check_numbers();
  check_search();
  check_curves();
  return check_end();
}
