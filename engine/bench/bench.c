#include "ms-bench.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/random.h"
#include "base/system.h"
#include "bench/bench-private.h"
#include "msk-cpu.h"

#define SPEND_SECONDS 0.4
#define HUGE_PAGE ((size_t)2 << 20)

double ms_bench_time(void (*fn)(void *data), void *data) {
  double best = 1e30, spent = 0;
  for (int i = 0; i < 1000 && (i < 3 || spent < SPEND_SECONDS); i++) {
    double start = ms_seconds(), seconds;
    fn(data);
    seconds = ms_seconds() - start;
    spent += seconds;
    best = seconds < best ? seconds : best;
  }
  return best;
}

/* On huge pages where they are to be had, as arenas are. */
void *ms_bench_bytes(size_t bytes) {
  const size_t align = bytes < HUGE_PAGE ? 64 : HUGE_PAGE, size = (bytes + 64 + align - 1) / align * align;
  void *memory = aligned_alloc(align, size);
  if (!memory)
    return NULL;
  if (align == HUGE_PAGE)
    madvise(memory, size, MADV_HUGEPAGE);
  memset(memory, 0, size);
  return memory;
}

float *ms_bench_floats(int64_t n) {
  float *x = ms_bench_bytes((size_t)n * sizeof *x);
  struct ms_random random = {.seed = 1, .stream = (uint64_t)n};
  float small[1024];
  if (!x)
    return NULL;
  for (int i = 0; i < 1024; i++)
    small[i] = (float)ms_random_normal(&random);
  for (int64_t i = 0; i < n; i++)
    x[i] = small[(i * 7 + i / 1024 * 13) % 1024];
  return x;
}

static void send_row(const struct ms_bench_run *run, const char *name, const char *shape, const char *kernel,
                     double seconds, double flops, double bytes, double parameters, const char *peak) {
  struct ms_bench_row row = {.seconds = seconds, .peak = peak, .kernel = kernel};
  const struct ms_bench_peaks *p = &run->peaks;
  snprintf(row.name, sizeof row.name, "%s", name);
  snprintf(row.shape, sizeof row.shape, "%s", shape);
  row.gflops = flops / seconds * 1e-9;
  row.gbps = bytes / seconds * 1e-9;
  row.parameters = parameters / seconds;
  if (!strcmp(peak, "bf16"))
    row.of_peak = flops / seconds / (p->bf16 > 0 ? p->bf16 : p->f32);
  else if (!strcmp(peak, "f32"))
    row.of_peak = flops / seconds / p->f32;
  else if (!strcmp(peak, "copy"))
    row.of_peak = bytes / seconds / p->copy;
  else if (!strcmp(peak, "adamw sweep"))
    row.of_peak = bytes / seconds / p->adamw;
  run->row(run->row_data, &row);
}

void ms_bench_row(const struct ms_bench_run *run, const char *name, const char *shape, const char *kernel,
                  double seconds, double flops, double bytes, const char *peak) {
  send_row(run, name, shape, kernel, seconds, flops, bytes, 0, peak);
}

void ms_bench_row_of(const struct ms_bench_run *run, const char *name, const char *shape, const char *kernel,
                     double seconds, double parameters, double bytes) {
  send_row(run, name, shape, kernel, seconds, 0, bytes, parameters, "adamw sweep");
}

int ms_bench_cancelled(const struct ms_bench_run *run) {
  if (!run->hooks || !run->hooks->cancel || !atomic_load(run->hooks->cancel))
    return 0;
  return ms_error_set(run->error, MS_ECANCELLED, "stopped");
}

/* A measurement repeated on every thread at once. */
struct everywhere {
  struct ms_bench_run *run;
  double (*flops_fn)(int64_t rounds);
  int64_t rounds;
  double done[1024];
  const float *x;
  float *y, *m, *v;
  int64_t n;
};

static void flops_task(void *data, int64_t task, void *scratch) {
  struct everywhere *e = data;
  e->done[task] = e->flops_fn(e->rounds);
}

static void run_flops(void *data) {
  struct everywhere *e = data;
  ms_pool_run(e->run->compute.pool, flops_task, e, ms_pool_threads(e->run->compute.pool));
}

static double peak_flops(struct ms_bench_run *run, double (*fn)(int64_t rounds)) {
  struct everywhere e = {.run = run, .flops_fn = fn, .rounds = 1 << 20};
  double seconds, done = 0;
  seconds = ms_bench_time(run_flops, &e);
  for (int i = 0; i < ms_pool_threads(run->compute.pool); i++)
    done += e.done[i];
  return done / seconds;
}

static void copy_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct everywhere *e = data;
  e->run->peak_ops.copy_stream(e->x + begin, e->y + begin, end - begin);
}

static void run_copy(void *data) {
  struct everywhere *e = data;
  ms_compute_ranges(&e->run->compute, e->n, 1 << 18, copy_range, e);
}

static void sweep_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct everywhere *e = data;
  e->run->peak_ops.update(e->x + begin, e->y + begin, e->m + begin, e->v + begin, end - begin);
}

static void run_sweep(void *data) {
  struct everywhere *e = data;
  ms_compute_ranges(&e->run->compute, e->n, 1 << 18, sweep_range, e);
}

int ms_bench_measure_peaks(struct ms_bench_run *run) {
  struct ms_bench_peaks *p = &run->peaks;
  struct everywhere e = {.run = run, .n = 48 << 20}; /* 192 MiB an array: far beyond any cache */
  unsigned flags = msk_cpu_detect();
  float *x = ms_bench_floats(e.n);
  double copy_seconds, sweep_seconds;
  e.x = x;
  e.y = ms_bench_floats(e.n);
  e.m = ms_bench_floats(e.n);
  e.v = ms_bench_floats(e.n);
  if (!e.x || !e.y || !e.m || !e.v) {
    free(x);
    free(e.y);
    free(e.m);
    free(e.v);
    return ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark");
  }
  p->f32 = peak_flops(run, run->peak_ops.f32);
  p->bf16 = peak_flops(run, run->peak_ops.bf16);
  copy_seconds = ms_bench_time(run_copy, &e);
  p->copy = 8.0 * (double)e.n / copy_seconds;
  sweep_seconds = ms_bench_time(run_sweep, &e);
  p->adamw = 28.0 * (double)e.n / sweep_seconds;
  ms_bench_row(run, "peak", "float32 multiply-add", run->peak_ops.name, 1, p->f32, 0, "f32");
  ms_bench_row(run, "peak", "bf16 multiply-add", run->peak_ops.name, 1, p->bf16, 0, "bf16");
  if ((flags & MSK_CPU_AMX) &&
      (flags & MSK_CPU_AVX512BF16)) { /* for comparison with processors that have no tiles */
    struct msk_peak_ops vectors;
    msk_peak_init(&vectors, flags & ~(unsigned)MSK_CPU_AMX);
    ms_bench_row(run, "peak", "bf16 multiply-add in vectors", vectors.name, 1, peak_flops(run, vectors.bf16),
                 0, "");
  }
  ms_bench_row(run, "peak", "copy, read and write", run->peak_ops.name, copy_seconds, 0, 8.0 * (double)e.n,
               "copy");
  ms_bench_row(run, "peak", "adamw's access pattern", run->peak_ops.name, sweep_seconds, 0,
               28.0 * (double)e.n, "adamw sweep");
  free(x);
  free(e.y);
  free(e.m);
  free(e.v);
  return 0;
}

int ms_bench(const char *what, int64_t parameters, const char *folder, const struct ms_machine *machine,
             const struct ms_hooks *hooks, void (*row)(void *data, const struct ms_bench_row *row),
             void *data, struct ms_error *error) {
  struct ms_bench_run run = {
      .machine = machine, .hooks = hooks, .row = row, .row_data = data, .error = error};
  run.folder = folder ? folder : ".";
  run.parameters = parameters > 0 ? parameters : MS_BENCH_PARAMETERS;
  unsigned flags = machine->reference ? 0 : msk_cpu_detect();
  int all = !what, code;
  if (what && strcmp(what, "kernels") && strcmp(what, "layer") && strcmp(what, "optimizer") &&
      strcmp(what, "stream"))
    return ms_error_set(error, MS_EUSAGE,
                        "there is no benchmark \"%s\": choose kernels, layer, optimizer or stream", what);
  code = ms_compute_open(&run.compute, machine->threads, flags, error);
  if (code < 0)
    return code;
  msk_peak_init(&run.peak_ops, msk_cpu_detect());
  code = ms_bench_measure_peaks(&run);
  if (code == 0 && (all || !strcmp(what, "kernels"))) {
    code = ms_bench_products(&run);
    if (code == 0)
      code = ms_bench_rows(&run);
    if (code == 0)
      code = ms_bench_attention(&run);
    if (code == 0)
      code = ms_bench_slide(&run);
  }
  if (code == 0 && (all || !strcmp(what, "kernels") || !strcmp(what, "optimizer")))
    code = ms_bench_optimizer(&run);
  if (code == 0 && (all || !strcmp(what, "layer")))
    code = ms_bench_layers(&run);
  if (code == 0 && (all || !strcmp(what, "layer")))
    code = ms_bench_training(&run);
  if (code == 0 && what && !strcmp(what, "stream"))
    code = ms_bench_stream(&run);
  ms_compute_release(&run.compute);
  return code;
}
