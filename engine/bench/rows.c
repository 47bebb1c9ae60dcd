/* Norms, rotary embedding, activations: one pass over memory each, held against a copy. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/bench-private.h"

#define ROWS 2550
#define CHANNELS 1536
#define HEADS 12

struct rows_case {
  struct ms_compute *compute;
  struct msk_layer_norm norm;
  struct msk_rms_rope rope;
  const float *x;
  float *y;
};

static void norm_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct rows_case *c = data;
  c->compute->norm.layer_norm(&c->norm, begin, end);
}

static void run_norm(void *data) {
  struct rows_case *c = data;
  ms_compute_ranges(c->compute, ROWS, 64, norm_range, c);
}

static void rope_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct rows_case *c = data;
  c->compute->norm.rms_rope(&c->rope, begin, end);
}

static void run_rope(void *data) {
  struct rows_case *c = data;
  ms_compute_ranges(c->compute, ROWS, 64, rope_range, c);
}

static void gelu_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct rows_case *c = data;
  c->compute->norm.gelu(c->x + begin, c->y + begin, MSK_F32, end - begin);
}

static void run_gelu(void *data) {
  struct rows_case *c = data;
  ms_compute_ranges(c->compute, (int64_t)ROWS * CHANNELS, 65536, gelu_range, c);
}

int ms_bench_rows(struct ms_bench_run *run) {
  int64_t n = (int64_t)ROWS * CHANNELS;
  float *x = ms_bench_floats(n), *y = ms_bench_floats(n), *mod = ms_bench_floats(2 * CHANNELS),
        *tables = ms_bench_floats(3 * 64 * 64);
  const char *kernel = run->compute.norm.name;
  struct rows_case c = {.compute = &run->compute, .x = x, .y = y};
  char shape[96];
  int code = 0;
  if (!x || !y || !mod || !tables) {
    code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of norms");
  } else {
    c.norm = (struct msk_layer_norm){.c = CHANNELS,
                                     .eps = 1e-6f,
                                     .x = x,
                                     .x_ld = CHANNELS,
                                     .scale = mod,
                                     .shift = mod + CHANNELS,
                                     .mod_ld = 2 * CHANNELS,
                                     .mod_rows = ROWS,
                                     .one_plus = 1,
                                     .y = y,
                                     .y_ld = CHANNELS};
    c.rope = (struct msk_rms_rope){.c = CHANNELS,
                                   .heads = HEADS,
                                   .eps = 1e-6f,
                                   .x = x,
                                   .x_ld = CHANNELS,
                                   .weight = mod,
                                   .y = y,
                                   .y_ld = CHANNELS,
                                   .lattice = {5, 17, 30},
                                   .pairs_t = 22,
                                   .pairs_y = 21,
                                   .pairs_x = 21,
                                   .rope_t = tables,
                                   .rope_y = tables + 64 * 64,
                                   .rope_x = tables + 2 * 64 * 64};
    snprintf(shape, sizeof shape, "%dx%d", ROWS, CHANNELS);
    ms_bench_row(run, "layer norm + modulation", shape, kernel, ms_bench_time(run_norm, &c), 0,
                 8.0 * (double)n, "copy");
    ms_bench_row(run, "rms norm + rope", shape, kernel, ms_bench_time(run_rope, &c), 0, 8.0 * (double)n,
                 "copy");
    ms_bench_row(run, "gelu", shape, kernel, ms_bench_time(run_gelu, &c), 0, 8.0 * (double)n, "copy");
  }
  free(x);
  free(y);
  free(mod);
  free(tables);
  return code;
}
