/* The text encoder: gradients by finite differences, captions of a batch against captions alone, threads, and
 * learning. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "harness.h"
#include "model/text.h"

/* float32 differences of a smooth loss: what is left is their rounding and the third derivative. */
#define DIFFERENCE_TOLERANCE 2e-3
#define CAPTIONS 24
#define LABELS 2

static const char *const config = "{\"kind\": \"words\", \"dim\": 32, \"layers\": 2, \"heads\": 2, \"ffn\": "
                                  "48, \"length\": 8, \"vocabulary\": [\"<pad>\", \"<bos>\","
                                  " \"a\", \"red\", \"green\", \"blue\", \"ball\", \"box\", \"star\", "
                                  "\"moves\", \"left\", \"right\"], \"same\": {\"an\": \"a\"}}";
static const int class_counts[LABELS] = {3, 2};

struct fixture {
  struct ms_compute compute;
  struct ms_text *text;
  struct ms_params *params;
  float *grad;
};

static void die(const struct ms_error *error) {
  fprintf(stderr, "%s\n", error->message);
  exit(99);
}

static void fixture_open(struct fixture *f, int threads, enum msk_precision precision) {
  struct ms_error error = {0};
  json_t *root = json_loads(config, 0, NULL);
  unsigned sets[8], flags = sets[check_sets(sets) - 1];
  if (ms_compute_open(&f->compute, threads, flags, &error) < 0 ||
      ms_text_open(&f->text, &f->compute, root, &error) < 0 ||
      ms_text_set_classes(f->text, class_counts, LABELS, &error) < 0)
    die(&error);
  json_decref(root);
  f->params = ms_text_params(f->text);
  if (ms_params_allocate(f->params, MSK_F32, &error) < 0)
    die(&error);
  ms_params_randomize(f->params, 7);
  for (int i = 0; i < f->params->count; i++) { /* biases and factors off their plain values */
    struct ms_random random = {.seed = 9, .stream = (uint64_t)i};
    float *w = ms_params_at(f->params, i);
    for (int64_t j = 0; f->params->list[i].ndim == 1 && j < f->params->list[i].count; j++)
      w[j] += (float)(0.1 * ms_random_normal(&random));
  }
  if (ms_text_prepare(f->text, precision, 1, &error) < 0)
    die(&error);
  f->grad = check_alloc_f32(f->params->total);
}

static void fixture_close(struct fixture *f) {
  ms_text_close(&f->text);
  ms_compute_release(&f->compute);
}

static char texts[CAPTIONS][96];
static const char *captions[CAPTIONS];
static int classes[CAPTIONS * LABELS];

/* A colour word and a direction to be found among others, at varying places. */
static void make_captions(uint64_t seed) {
  static const char *const colours[] = {"red", "green", "blue"}, *const shapes[] = {"ball", "box", "star"};
  static const char *const ways[] = {"left", "right"};
  struct ms_random random = {.seed = seed};
  for (int i = 0; i < CAPTIONS; i++) {
    int colour = (int)ms_random_below(&random, 3), way = (int)ms_random_below(&random, 2),
        first = (int)ms_random_below(&random, 2);
    const char *shape = shapes[ms_random_below(&random, 3)];
    if (first)
      snprintf(texts[i], sizeof texts[i], "%s moves a %s %s", ways[way], colours[colour], shape);
    else
      snprintf(texts[i], sizeof texts[i], "%s %s %s", colours[colour], shape, ways[way]);
    captions[i] = texts[i];
    classes[i * LABELS] = colour;
    classes[i * LABELS + 1] = way;
  }
}

static double pass(struct fixture *f, double *right) {
  struct ms_error error = {0};
  double loss, share;
  memset(f->grad, 0, (size_t)f->params->total * 4);
  if (ms_text_train_pass(f->text, captions, classes, CAPTIONS, f->grad, &loss, right ? right : &share,
                         &error) < 0)
    die(&error);
  return loss;
}

static void check_gradients(void) {
  struct fixture f;
  struct ms_error error = {0};
  double *grad;
  fixture_open(&f, 2, MSK_PRECISION_F32);
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
    step = 2e-3 / norm > 0.02 ? 0.02 : 2e-3 / norm;
    for (int side = 0; side < 2; side++) {
      for (int64_t i = 0; i < param->count; i++)
        w[i] = (float)(old[i] + (side ? step : -step) * grad[param->offset + i] / norm);
      if (ms_text_prepare(f.text, MSK_PRECISION_F32, 1, &error) < 0)
        die(&error);
      loss[side] = pass(&f, NULL);
    }
    memcpy(w, old, (size_t)param->count * 4);
    free(old);
    slope = (loss[1] - loss[0]) / (2 * step);
    check_ok(norm > 0 && fabs(slope - norm) <= DIFFERENCE_TOLERANCE * norm,
             "gradient of %s: %.6g, by differences %.6g", param->name, norm, slope);
  }
  free(grad);
  fixture_close(&f);
}

/* The loss of a batch is the mean of the losses of its captions: nothing leaks from one to another, padding
 * counts for nothing. */
static void check_alone(void) {
  struct fixture f;
  struct ms_error error = {0};
  double together, sum = 0;
  fixture_open(&f, 2, MSK_PRECISION_F32);
  together = pass(&f, NULL);
  for (int i = 0; i < CAPTIONS; i++) {
    double loss, right;
    if (ms_text_train_pass(f.text, captions + i, classes + i * LABELS, 1, f.grad, &loss, &right, &error) < 0)
      die(&error);
    sum += loss / CAPTIONS;
  }
  check_ok(fabs(together - sum) < 1e-6 * sum, "a batch is the mean of its captions: %.8g, %.8g", together,
           sum);
  fixture_close(&f);
}

static void check_threads(enum msk_precision precision) {
  struct fixture one, three;
  double a, b;
  fixture_open(&one, 1, precision);
  fixture_open(&three, 3, precision);
  a = pass(&one, NULL);
  b = pass(&three, NULL);
  check_ok(a == b, "loss: three threads give that of one (%.9g, %.9g)", a, b);
  check_bytes(one.grad, three.grad, (size_t)one.params->total * 4,
              "gradients: three threads give the bits of one");
  fixture_close(&one);
  fixture_close(&three);
}

static void check_encode(void) {
  struct fixture f;
  struct ms_error error = {0};
  float *a = check_alloc_f32(8 * 32), *b = check_alloc_f32(8 * 32), *c = check_alloc_f32(8 * 32);
  char skipped[64];
  int n, m;
  fixture_open(&f, 1, MSK_PRECISION_F32);
  n = ms_text_encode(f.text, "a red ball moves", a, skipped, sizeof skipped, &error);
  m = ms_text_encode(f.text, "An red ball, wobbly, moves", b, skipped, sizeof skipped, &error);
  check_ok(n == 5 && m == 5 && !strcmp(skipped, "wobbly"), "encode: %d and %d states, skipped \"%s\"", n, m,
           skipped);
  check_bytes(a, b, 5 * 32 * 4, "spellings and unknown words change no state");
  check_ok(ms_text_encode(f.text, "", c, NULL, 0, &error) == 1,
           "an empty prompt has the state of <bos> alone");
  ms_text_encode(f.text, "ball a red moves", b, NULL, 0, &error);
  check_ok(memcmp(a, b, 32 * 4) && memcmp(a, c, 32 * 4), "the order of words matters");
  fixture_close(&f);
}

static void check_learning(enum msk_precision precision) {
  struct fixture f;
  struct ms_error error = {0};
  double loss = 0, right = 0;
  fixture_open(&f, 1, precision);
  for (int step = 0; step < 150; step++) {
    float *w = f.params->data;
    double norm = 0;
    make_captions((uint64_t)step + 100);
    loss = pass(&f, &right);
    for (int64_t i = 0; i < f.params->total; i++)
      norm += (double)f.grad[i] * f.grad[i];
    for (int64_t i = 0; i < f.params->total; i++)
      w[i] -= (float)(0.3 / (sqrt(norm) > 1 ? sqrt(norm) : 1)) * f.grad[i];
    if (ms_text_prepare(f.text, precision, 1, &error) < 0)
      die(&error);
  }
  check_ok(right > 0.95 && loss < 0.2, "150 steps of plain descent on new captions: loss %.3f, %.0f %% right",
           loss, 100 * right);
  fixture_close(&f);
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  make_captions(1);
  check_gradients();
  check_alone();
  check_threads(MSK_PRECISION_F32);
  check_threads(MSK_PRECISION_BF16);
  check_encode();
  check_learning(MSK_PRECISION_F32);
  check_learning(MSK_PRECISION_BF16);
  return check_end();
}
