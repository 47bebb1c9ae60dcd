/* What the benchmarks share: buffers, timing, peaks. */
#pragma once
#include "base/compute.h"
#include "ms-bench.h"
#include "msk-peak.h"

struct ms_bench_peaks { /* of all threads together */
  double f32, bf16;     /* FLOP/s */
  double copy, adamw;   /* bytes/s */
};

struct ms_bench_run {
  struct ms_compute compute;
  struct msk_peak_ops peak_ops;
  struct ms_bench_peaks peaks;
  const struct ms_machine *machine;
  const struct ms_hooks *hooks;
  void (*row)(void *data, const struct ms_bench_row *row);
  void *row_data;
  struct ms_error *error;
};

/* Best seconds of fn (data): at least three calls, then until 0.4 s are spent. */
double ms_bench_time(void (*fn)(void *data), void *data);
/* Fills n floats with small reproducible numbers. NULL if out of memory; free with free. */
float *ms_bench_floats(int64_t n);
void *ms_bench_bytes(size_t bytes);
/* Sends a row. flops, bytes: of one call, 0 if they do not apply; peak: which peak of_peak refers to. */
void ms_bench_row(const struct ms_bench_run *run, const char *name, const char *shape, const char *kernel,
                  double seconds, double flops, double bytes, const char *peak);
int ms_bench_cancelled(const struct ms_bench_run *run);

int ms_bench_measure_peaks(struct ms_bench_run *run);
int ms_bench_products(struct ms_bench_run *run);
int ms_bench_rows(struct ms_bench_run *run);      /* norms, rotary embedding, activations */
int ms_bench_attention(struct ms_bench_run *run); /* dense, window, 3D-DSA, offset head */
int ms_bench_optimizer(struct ms_bench_run *run);
int ms_bench_layers(struct ms_bench_run *run);
