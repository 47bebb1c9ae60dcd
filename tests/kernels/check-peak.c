/* The peaks do the work they claim: sweeps against plain loops, rates that rise with the instruction set's
 * width. */
#include <string.h>

#include "harness.h"
#include "msk-cpu.h"
#include "msk-peak.h"

#define SWEEP 1021 /* odd: every tail */

static void check_sweeps(const struct msk_peak_ops *ops, const char *set) {
  float *x = check_alloc_f32(SWEEP), *y = check_alloc_f32(SWEEP), *z = check_alloc_f32(SWEEP);
  float *w[3], *before[3];
  double want[SWEEP];
  check_fill(x, SWEEP, 1);
  check_fill(z, SWEEP, 1);
  check_ok(ops->copy(x, y, SWEEP) == 8.0 * SWEEP, "%s copy counts its bytes", set);
  check_bytes(y, x, SWEEP * sizeof *x, "%s copy", set);
  memset(y, 0, SWEEP * sizeof *y);
  check_ok(ops->copy_stream(x, y, SWEEP) == 8.0 * SWEEP, "%s copy_stream counts its bytes", set);
  check_bytes(y, x, SWEEP * sizeof *x, "%s copy_stream", set);
  for (int i = 0; i < SWEEP; i++)
    want[i] = (double)x[i] + 0.37f * (double)z[i];
  check_ok(ops->triad(x, 0.37f, z, y, SWEEP) == 12.0 * SWEEP, "%s triad counts its bytes", set);
  check_relative_l2(y, want, SWEEP, 2e-7, "%s triad", set);
  for (int i = 0; i < 3; i++) {
    w[i] = check_alloc_f32(SWEEP);
    before[i] = check_alloc_f32(SWEEP);
    check_fill(w[i], SWEEP, 1);
    memcpy(before[i], w[i], SWEEP * sizeof *w[i]);
  }
  check_ok(ops->update(x, w[0], w[1], w[2], SWEEP) == 28.0 * SWEEP, "%s update counts its bytes", set);
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < SWEEP; j++)
      want[j] = (double)before[i][j] + (double)x[j];
    check_relative_l2(w[i], want, SWEEP, 1e-7, "%s update, buffer %d", set, i);
  }
  check_free_all();
}

/* Whole groups of 64 elements of every array change, and nothing else; the count is what was touched. */
static void check_update_split(const struct msk_peak_ops *ops, const char *set) {
  static const int sizes[][2] = {{4, 4}, {2, 4}, {4, 1}, {2, 1}};
  for (int k = 0; k < 8; k++) {
    const int g_bytes = sizes[k / 2][0], moment_bytes = sizes[k / 2][1], n = 5 * 64 + 3, whole = 5 * 64;
    const int bytes[] = {2, 2, moment_bytes, moment_bytes};
    unsigned char *g = check_alloc((size_t)(n * g_bytes)), *a[4];
    int good = 1;
    memset(g, 1, (size_t)(n * g_bytes));
    for (int i = 0; i < 4; i++) {
      a[i] = check_alloc((size_t)(n * bytes[i]));
      memset(a[i], 7, (size_t)(n * bytes[i]));
    }
    good &= ops->update_split(g, g_bytes, a[0], a[1], a[2], a[3], moment_bytes, k % 2 ? 512 : 0, n) ==
            (double)whole * (g_bytes + 4 + 2 * moment_bytes);
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < n * bytes[i]; j++)
        good &= a[i][j] == (j < whole * bytes[i] ? 7 + g_bytes : 7);
    check_ok(good, "%s update_split, gradient of %d bytes, moments of %d", set, g_bytes, moment_bytes);
    check_free_all();
  }
}

struct timing {
  const struct msk_peak_ops *ops;
  double (*fn)(int64_t n);
  int64_t n;
  double flops;
};

static void time_peak(void *data) {
  struct timing *t = data;
  t->flops = t->fn(t->n);
}

static double rate(double (*fn)(int64_t n), const char *name, const char *set) {
  char label[64];
  struct timing t = {.fn = fn, .n = 20000};
  double seconds = check_time(time_peak, &t);
  if (check_bench_wanted()) {
    strcpy(label, set);
    strcat(strcat(label, " "), name);
    check_bench(label, seconds, t.flops, 0);
  }
  return t.flops / seconds;
}

struct sweep {
  const struct msk_peak_ops *ops;
  float *x[4];
  int64_t n;
  int which;
  double bytes;
};

static void time_sweep(void *data) {
  struct sweep *s = data;
  switch (s->which) {
  case 0:
    s->bytes = s->ops->copy(s->x[0], s->x[1], s->n);
    break;
  case 1:
    s->bytes = s->ops->copy_stream(s->x[0], s->x[1], s->n);
    break;
  case 2:
    s->bytes = s->ops->triad(s->x[0], 0.5f, s->x[2], s->x[1], s->n);
    break;
  default:
    s->bytes = s->ops->update(s->x[0], s->x[1], s->x[2], s->x[3], s->n);
  }
}

static void bench_sweeps(const struct msk_peak_ops *ops, const char *set) {
  static const char *const names[] = {"copy", "copy_stream", "triad", "update"};
  struct sweep s = {.ops = ops, .n = 8 << 20};
  char label[64];
  for (int i = 0; i < 4; i++) {
    s.x[i] = check_alloc_f32(s.n);
    check_fill_uniform(s.x[i], s.n, 0, 1);
  }
  for (s.which = 0; s.which < 4; s.which++) {
    strcpy(label, set);
    strcat(strcat(label, " "), names[s.which]);
    double seconds = check_time(time_sweep, &s);
    check_bench(label, seconds, 0, s.bytes);
  }
  check_free_all();
}

int main(int argc, char **argv) {
  unsigned sets[8];
  double c_rate = 0;
  check_begin(argc, argv);
  int n = check_sets(sets);
  for (int i = 0; i < n; i++) {
    struct msk_peak_ops ops;
    const char *set = check_set_name(sets[i]);
    msk_peak_init(&ops, sets[i]);
    check_ok(!strcmp(ops.name, set), "%s is named so", set);
    check_sweeps(&ops, set);
    check_update_split(&ops, set);
    check_ok(ops.f32(2000) == 2 * ops.f32(1000) && ops.bf16(2000) == 2 * ops.bf16(1000),
             "%s counts its FLOPs", set);
    double f32 = rate(ops.f32, "f32", set), bf16 = rate(ops.bf16, "bf16", set);
    if (!sets[i])
      c_rate = f32;
    else /* the compiler cannot have removed the work, nor left the set unused: both would show */
      check_ok(f32 > c_rate && f32 < 2e12 && bf16 > c_rate && bf16 < 2e13, "%s: %.0f GFLOP/s f32, %.0f bf16",
               set, f32 * 1e-9, bf16 * 1e-9);
    if (check_bench_wanted())
      bench_sweeps(&ops, set);
  }
  return check_end();
}
