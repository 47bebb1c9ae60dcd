/* Depthwise convolution: every set against the sum over taps in double, whole and in ranges. */
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "msk-conv.h"
#include "msk-cpu.h"

static double *doubles(int64_t n) {
  double *x = check_alloc((size_t)n * sizeof *x);
  memset(x, 0, (size_t)n * sizeof *x);
  return x;
}

static float *normal(int64_t n, double scale) {
  float *x = check_alloc_f32(n);
  check_fill(x, n, scale);
  return x;
}

static float *zeros(int64_t n) {
  float *x = check_alloc_f32(n);
  memset(x, 0, (size_t)n * sizeof *x);
  return x;
}

static void run(const struct msk_conv_ops *ops, const struct msk_depthwise *p, int64_t lines, int64_t cut,
                int backward, void *scratch) {
  void (*slot)(const struct msk_depthwise *, int64_t, int64_t, void *) =
      backward ? ops->depthwise_backward_x : ops->depthwise;
  slot(p, 0, cut, scratch);
  slot(p, cut, lines, scratch);
}

static void test_depthwise(const struct msk_conv_ops *ops, const char *set, int64_t nt, int64_t ny,
                           int64_t nx, int64_t c) {
  int64_t positions = nt * ny * nx, n = positions * c, lines = nt * ny, cut = lines / 2,
          middle = c / 2 / 16 * 16;
  float *x = normal(n, 1), *weight = normal(27 * c, 0.3), *bias = normal(c, 1), *dy = normal(n, 1);
  float *y = check_alloc_f32(n), *y2 = check_alloc_f32(n), *dx = check_alloc_f32(n), *dweight = zeros(27 * c);
  float *dbias = zeros(c);
  double *wy = doubles(n), *wdx = doubles(n), *wdw = doubles(27 * c), *wdb = doubles(c);
  struct msk_depthwise p = {
      .lattice = {nt, ny, nx}, .c = c, .x = x, .weight = weight, .bias = bias, .y = y, .dy = dy, .dx = dx};
  void *scratch = check_alloc(ops->depthwise_scratch(&p));
  char name[64];
  snprintf(name, sizeof name, "%s [%d,%d,%d,%d]", set, (int)nt, (int)ny, (int)nx, (int)c);
  for (int64_t at = 0; at < positions; at++) {
    int64_t t = at / (ny * nx), yy = at / nx % ny, xx = at % nx;
    for (int64_t k = 0; k < c; k++) {
      wy[at * c + k] += bias[k];
      wdb[k] += dy[at * c + k];
    }
    for (int tap = 0; tap < 27; tap++) {
      int64_t t2 = t + tap / 9 - 1, y3 = yy + tap / 3 % 3 - 1, x2 = xx + tap % 3 - 1, from;
      if (t2 < 0 || t2 >= nt || y3 < 0 || y3 >= ny || x2 < 0 || x2 >= nx)
        continue;
      from = ((t2 * ny + y3) * nx + x2) * c;
      for (int64_t k = 0; k < c; k++) {
        wy[at * c + k] += (double)weight[k * 27 + tap] * x[from + k];
        wdx[from + k] += (double)weight[k * 27 + tap] * dy[at * c + k];
        wdw[k * 27 + tap] += (double)dy[at * c + k] * x[from + k];
      }
    }
  }
  run(ops, &p, lines, lines, 0, scratch);
  check_relative_l2(y, wy, n, 2e-6, "depthwise %s", name);
  p.y = y2;
  run(ops, &p, lines, cut, 0, scratch);
  check_bytes(y2, y, (size_t)n * 4, "depthwise %s in two ranges", name);
  p.bias = NULL;
  run(ops, &p, lines, cut, 0, scratch);
  for (int64_t i = 0; i < n; i++)
    wy[i] -= bias[i % c];
  check_relative_l2(y2, wy, n, 2e-6, "depthwise %s without bias", name);
  run(ops, &p, lines, cut, 1, scratch);
  check_relative_l2(dx, wdx, n, 1e-5, "depthwise_backward_x %s", name);
  p.accumulate = 1;
  run(ops, &p, lines, cut, 1, scratch);
  for (int64_t i = 0; i < n; i++)
    wdx[i] *= 2;
  check_relative_l2(dx, wdx, n, 1e-5, "depthwise_backward_x %s added", name);
  ops->depthwise_backward_w(&p, 0, cut, 0, middle, dweight, dbias);
  ops->depthwise_backward_w(&p, 0, cut, middle, c, dweight, dbias);
  ops->depthwise_backward_w(&p, cut, lines, 0, c, dweight, dbias);
  check_relative_l2(dweight, wdw, 27 * c, 1e-5, "depthwise_backward_w %s", name);
  check_relative_l2(dbias, wdb, c, 1e-5, "depthwise_backward_w %s: bias", name);
  check_free_all();
}

struct bench {
  const struct msk_conv_ops *ops;
  struct msk_depthwise p;
  int64_t lines;
  void *scratch;
  float *dweight, *dbias;
};

static void bench_forward(void *d) {
  struct bench *k = d;
  k->ops->depthwise(&k->p, 0, k->lines, k->scratch);
}

static void bench_backward_x(void *d) {
  struct bench *k = d;
  k->ops->depthwise_backward_x(&k->p, 0, k->lines, k->scratch);
}

static void bench_backward_w(void *d) {
  struct bench *k = d;
  k->ops->depthwise_backward_w(&k->p, 0, k->lines, 0, k->p.c, k->dweight, k->dbias);
}

static void bench_set(const struct msk_conv_ops *ops, const char *set, int64_t ny, int64_t nx, int64_t c) {
  struct bench k = {.ops = ops, .p = {.lattice = {3, ny, nx}, .c = c}, .lines = 3 * ny};
  int64_t n = 3 * ny * nx * c;
  char name[64];
  k.p.x = normal(n, 1);
  k.p.dy = normal(n, 1);
  k.p.y = k.p.dx = zeros(n);
  k.p.weight = normal(27 * c, 1);
  k.p.bias = normal(c, 1);
  k.dweight = zeros(27 * c);
  k.dbias = zeros(c);
  k.scratch = check_alloc(ops->depthwise_scratch(&k.p));
  snprintf(name, sizeof name, "depthwise %s [3,%d,%d,%d]", set, (int)ny, (int)nx, (int)c);
  check_bench(name, check_time(bench_forward, &k), 54.0 * (double)n, 8.0 * (double)n);
  snprintf(name, sizeof name, "depthwise_backward_x %s", set);
  check_bench(name, check_time(bench_backward_x, &k), 54.0 * (double)n, 8.0 * (double)n);
  snprintf(name, sizeof name, "depthwise_backward_w %s", set);
  check_bench(name, check_time(bench_backward_w, &k), 54.0 * (double)n, 8.0 * (double)n);
  check_free_all();
}

int main(int argc, char **argv) {
  static const int64_t shapes[][4] = {
      {1, 1, 1, 16},  {1, 1, 2, 8},     {2, 1, 3, 33},    {3, 4, 13, 16}, {2, 3, 1, 48},
      {1, 5, 25, 40}, {3, 20, 40, 272}, {6, 3, 120, 272}, {3, 3, 12, 7},  {4, 2, 9, 96},
      {2, 2, 8, 64},  {2, 3, 37, 17},   {2, 2, 11, 1},    {1, 2, 5, 256},
  };
  unsigned sets[8];
  int count;
  check_begin(argc, argv);
  count = check_sets(sets);
  for (int s = 0; s < count; s++) {
    const char *set = check_set_name(sets[s]);
    struct msk_conv_ops ops;
    if (sets[s] & MSK_CPU_AVX512BF16) /* no slots of its own */
      break;
    msk_conv_init(&ops, sets[s]);
    check_ok(!strcmp(ops.name, set), "table %s", set);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      test_depthwise(&ops, set, shapes[i][0], shapes[i][1], shapes[i][2], shapes[i][3]);
    if (check_bench_wanted()) {
      bench_set(&ops, set, 16, 16, 192);
      if (sets[s])
        bench_set(&ops, set, 30, 52, 1536);
    }
  }
  return check_end();
}
