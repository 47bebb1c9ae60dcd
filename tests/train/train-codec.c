/* The codec's training pass: gradients by finite differences along the gradient of each parameter, agreement
 * with the streams, threads, and that some steps lower the loss. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "base/random.h"
#include "model/codec.h"
#include "msk-cpu.h"

/* A float32 pass sums some ten thousand errors of 1e-7; the kinks of L1 and the rounding of the differences
 * stay below this. */
#define DIFFERENCE_TOLERANCE 4e-3

struct fixture {
  struct ms_compute compute;
  struct ms_codec *codec;
  struct ms_params *params;
  struct ms_codec_train train;
  float *grad;
};

static void die(const struct ms_error *error) {
  fprintf(stderr, "%s\n", error->message);
  exit(99);
}

static void fixture_open(struct fixture *f, int threads, unsigned flags, enum msk_precision precision,
                         const char *config, float *pixels) {
  struct ms_error error = {0};
  json_t *root = json_loads(config, 0, NULL);
  if (ms_compute_open(&f->compute, threads, flags, &error) < 0 ||
      ms_codec_open(&f->codec, &f->compute, root, &error) < 0)
    die(&error);
  json_decref(root);
  f->params = ms_codec_params(f->codec);
  if (ms_params_allocate(f->params, MSK_F32, &error) < 0)
    die(&error);
  ms_codec_randomize(f->codec, 3);
  for (int i = 0; i < f->params->count;
       i++) { /* nothing may be zero or one: biases, factors and temporal layers would hide mistakes */
    float *w = ms_params_at(f->params, i);
    struct ms_random random = {.seed = 8, .stream = (uint64_t)i};
    for (int64_t j = 0; j < f->params->list[i].count; j++)
      if (f->params->list[i].ndim == 1)
        w[j] += (float)(0.1 * ms_random_normal(&random));
      else if (strstr(f->params->list[i].name, "temporal.mix"))
        w[j] = (float)(0.1 * ms_random_normal(&random));
  }
  if (ms_codec_prepare(f->codec, precision, 1, &error) < 0)
    die(&error);
  f->train = (struct ms_codec_train){.clips = 3,
                                     .frames = 9,
                                     .height = 24,
                                     .width = 16,
                                     .pixels = pixels,
                                     .noise_c = 0.05f,
                                     .noise_e = 0.12f,
                                     .seed = 4,
                                     .step = 2};
  f->grad = check_alloc_f32(f->params->total);
}

static void fixture_close(struct fixture *f) {
  ms_codec_close(&f->codec);
  ms_compute_release(&f->compute);
}

static double pass(struct fixture *f, double *mse) {
  struct ms_error error = {0};
  double loss, square;
  memset(f->grad, 0, (size_t)f->params->total * 4);
  if (ms_codec_train_pass(f->codec, &f->train, f->grad, &loss, mse ? mse : &square, &error) < 0)
    die(&error);
  return loss;
}

static void check_gradients(const char *config, float *pixels) {
  struct fixture f;
  unsigned sets[8];
  struct ms_error error = {0};
  double *grad;
  fixture_open(&f, 2, sets[check_sets(sets) - 1], MSK_PRECISION_F32, config, pixels);
  pass(&f, NULL);
  grad = malloc((size_t)f.params->total * sizeof *grad);
  for (int64_t i = 0; i < f.params->total; i++)
    grad[i] = f.grad[i];
  for (int p = 0; p < f.params->count; p++) {
    const struct ms_param *param = &f.params->list[p];
    float *w = ms_params_at(f.params, p), *old = malloc((size_t)param->count * 4);
    double norm = 0, step, loss[2], slope;
    for (int64_t i = 0; i < param->count; i++)
      norm += grad[param->offset + i] * grad[param->offset + i];
    norm = sqrt(norm);
    memcpy(old, w, (size_t)param->count * 4);
    step = 2.5e-4 / norm > 0.01 ? 0.01 : 2.5e-4 / norm; /* a change of the loss far above its rounding */
    for (int side = 0; side < 2; side++) {
      for (int64_t i = 0; i < param->count; i++)
        w[i] = (float)(old[i] + (side ? step : -step) * grad[param->offset + i] / norm);
      if (ms_codec_prepare(f.codec, MSK_PRECISION_F32, 1, &error) < 0)
        die(&error);
      loss[side] = pass(&f, NULL);
    }
    memcpy(w, old, (size_t)param->count * 4);
    free(old);
    slope = (loss[1] - loss[0]) / (2 * step);
    check_ok(fabs(slope - norm) <= DIFFERENCE_TOLERANCE * norm, "gradient of %s: %.6g, by differences %.6g",
             param->name, norm, slope);
  }
  free(grad);
  fixture_close(&f);
}

static void check_agreement(const char *config, float *pixels) {
  struct ms_error error = {0};
  struct fixture f;
  unsigned sets[8];
  int strides[3], groups, h, w;
  int64_t values = 9 * 24 * 16 * 3;
  float *latents, *decoded = check_alloc_f32(values);
  double mse, square = 0;
  fixture_open(&f, 1, sets[check_sets(sets) - 1], MSK_PRECISION_F32, config, pixels);
  f.train.noise_c = f.train.noise_e = 0;
  pass(&f, &mse);
  ms_codec_strides(f.codec, strides);
  groups = 8 / strides[0] + 1;
  h = 24 / strides[1];
  w = 16 / strides[2];
  latents = check_alloc_f32((int64_t)ms_codec_channels(f.codec) * groups * h * w);
  for (int clip = 0; clip < 3; clip++) {
    if (ms_codec_encode(f.codec, pixels + clip * values, 9, 24, 16, latents, &error) < 0 ||
        ms_codec_decode(f.codec, latents, groups, h, w, decoded, &error) < 0)
      die(&error);
    for (int64_t i = 0; i < values; i++)
      square +=
          ((double)decoded[i] - pixels[clip * values + i]) * ((double)decoded[i] - pixels[clip * values + i]);
  }
  square /= 3.0 * (double)values;
  check_ok(fabs(mse - square) < 1e-6 * square, "the training pass sees what the streams make: %.8g, %.8g",
           mse, square);
  fixture_close(&f);
}

static void check_threads(const char *config, float *pixels, enum msk_precision precision) {
  struct fixture one, three;
  unsigned sets[8];
  unsigned flags = sets[check_sets(sets) - 1];
  double a, b;
  fixture_open(&one, 1, flags, precision, config, pixels);
  fixture_open(&three, 3, flags, precision, config, pixels);
  a = pass(&one, NULL);
  b = pass(&three, NULL);
  check_ok(a == b, "loss: three threads give that of one (%.9g, %.9g)", a, b);
  check_bytes(one.grad, three.grad, (size_t)one.params->total * 4,
              "gradients: three threads give the bits of one");
  b = pass(&three, NULL);
  check_ok(a == b && !memcmp(one.grad, three.grad, (size_t)one.params->total * 4),
           "a second pass gives the same");
  three.train.step++;
  b = pass(&three, NULL);
  check_ok(a != b, "another step has other noise");
  fixture_close(&one);
  fixture_close(&three);
}

/* bf16 products against float32 ones: the gradient as a whole. */
static void check_bf16(const char *config, float *pixels) {
  struct fixture exact, rough;
  unsigned sets[8];
  unsigned flags = sets[check_sets(sets) - 1];
  double a, b, difference = 0, norm = 0;
  fixture_open(&exact, 1, flags, MSK_PRECISION_F32, config, pixels);
  fixture_open(&rough, 1, flags, MSK_PRECISION_BF16, config, pixels);
  a = pass(&exact, NULL);
  b = pass(&rough, NULL);
  for (int64_t i = 0; i < exact.params->total; i++) {
    norm += (double)exact.grad[i] * exact.grad[i];
    difference += ((double)exact.grad[i] - rough.grad[i]) * ((double)exact.grad[i] - rough.grad[i]);
  }
  check_ok(fabs(a - b) < 5e-3 * a && difference < 2e-3 * norm,
           "bf16: loss %.5f, float32 %.5f; gradient off by %.1e", b, a, sqrt(difference / norm));
  fixture_close(&exact);
  fixture_close(&rough);
}

static void check_learning(const char *config, float *pixels) {
  struct fixture f;
  struct ms_error error = {0};
  unsigned sets[8];
  double first = 0, last = 0;
  fixture_open(&f, 1, sets[check_sets(sets) - 1], MSK_PRECISION_BF16, config, pixels);
  for (int step = 0; step < 40; step++) {
    float *w = f.params->data;
    double norm = 0;
    f.train.step = (uint64_t)step;
    last = pass(&f, NULL);
    if (step == 0)
      first = last;
    for (int64_t i = 0; i < f.params->total; i++)
      norm += (double)f.grad[i] * f.grad[i];
    for (int64_t i = 0; i < f.params->total; i++)
      w[i] -= (float)(0.05 / sqrt(norm)) * f.grad[i];
    if (ms_codec_prepare(f.codec, MSK_PRECISION_BF16, 1, &error) < 0)
      die(&error);
  }
  check_ok(last < 0.6 * first, "40 steps of plain descent: loss %.4f to %.4f", first, last);
  fixture_close(&f);
}

struct bench {
  struct fixture f;
  float *frames, *latents;
  int count, height, width;
};

static void bench_pass(void *data) {
  pass(&((struct bench *)data)->f, NULL);
}

static void bench_prepare(void *data) {
  struct bench *b = data;
  struct ms_error error = {0};
  if (ms_codec_prepare(b->f.codec, MSK_PRECISION_BF16, 1, &error) < 0)
    die(&error);
}

static void bench_encode(void *data) {
  struct bench *b = data;
  struct ms_error error = {0};
  if (ms_codec_encode(b->f.codec, b->frames, b->count, b->height, b->width, b->latents, &error) < 0)
    die(&error);
}

static void bench_decode(void *data) {
  struct bench *b = data;
  struct ms_error error = {0};
  if (ms_codec_decode(b->f.codec, b->latents, (b->count - 1) / 4 + 1, b->height / 8, b->width / 8, b->frames,
                      &error) < 0)
    die(&error);
}

static void bench(float *pixels) {
  static const int sizes[][3] = {{9, 64, 64}, {17, 128, 192}, {5, 1088, 1920}};
  struct bench b;
  int64_t values = 16 * 9 * 48 * 48 * 3;
  float *crops = malloc((size_t)values * sizeof *crops);
  fixture_open(&b.f, 2, msk_cpu_detect(), MSK_PRECISION_BF16, "{}", crops);
  for (int64_t i = 0; i < values; i++)
    crops[i] = pixels[i % (24 * 16 * 3)];
  b.f.train.clips = 16;
  b.f.train.height = b.f.train.width = 48;
  check_bench("train pass, 16 x 48x48x9", check_time(bench_pass, &b),
              3 * 48 * (ms_codec_flops(b.f.codec, 0, 6, 6) + ms_codec_flops(b.f.codec, 1, 6, 6)), 0);
  check_bench("prepare for training", check_time(bench_prepare, &b), 0, 0);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    char name[64];
    int64_t latents;
    int groups;
    b.count = sizes[i][0];
    b.height = sizes[i][1];
    b.width = sizes[i][2];
    groups = (b.count - 1) / 4 + 1;
    latents = (int64_t)16 * groups * (b.height / 8) * (b.width / 8);
    b.frames = calloc((size_t)b.count * b.height * b.width * 3, sizeof *b.frames);
    b.latents = calloc((size_t)latents, sizeof *b.latents);
    snprintf(name, sizeof name, "encode %dx%dx%d", b.width, b.height, b.count);
    check_bench(name, check_time(bench_encode, &b),
                groups * ms_codec_flops(b.f.codec, 0, b.height / 8, b.width / 8), 0);
    snprintf(name, sizeof name, "decode %dx%dx%d", b.width, b.height, b.count);
    check_bench(name, check_time(bench_decode, &b),
                groups * ms_codec_flops(b.f.codec, 1, b.height / 8, b.width / 8), 0);
    free(b.frames);
    free(b.latents);
  }
  free(crops);
  fixture_close(&b.f);
}

int main(int argc, char **argv) {
  static const char *const configs[] = {
      "{\"strides\": [4,8,8], \"channels\": 8, \"encoder\": [16,24], \"decoder\": [40,16]}",
      "{\"strides\": [2,4,4], \"channels\": 5, \"encoder\": [12,16], \"decoder\": [16,20]}",
  };
  int64_t frame = 24 * 16;
  float *pixels;
  check_begin(argc, argv);
  pixels = malloc((size_t)(3 * 9 * frame * 3) * sizeof *pixels);
  for (int64_t i = 0; i < 3 * 9 * frame; i++) /* smooth, moving, the same for every seed */
    for (int c = 0; c < 3; c++) {
      double x = (double)(i % 16), y = (double)(i / 16 % 24), t = (double)(i / frame);
      pixels[3 * i + c] = (float)(0.7 * sin(0.3 * x + 0.2 * t + c) * cos(0.25 * y - 0.1 * t));
    }
  if (check_bench_wanted())
    bench(pixels);
  for (int i = 0; i < 2 && !check_bench_wanted(); i++) {
    check_gradients(configs[i], pixels);
    check_agreement(configs[i], pixels);
    check_threads(configs[i], pixels, MSK_PRECISION_F32);
    check_threads(configs[i], pixels, MSK_PRECISION_BF16);
    check_bf16(configs[i], pixels);
    check_learning(configs[i], pixels);
    check_free_all();
  }
  free(pixels);
  return check_end();
}
