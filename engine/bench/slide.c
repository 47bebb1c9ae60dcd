/* 3D-DSA with its offset head: with zero offsets, with those that the starter gives to a clip in the making,
 * and with offsets uniform in their full bounds; beside attention in fixed windows of as many keys, and
 * beside the matrix products of the layer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/bench-private.h"

#define GROUPS 4
#define POINTS 75

static const int64_t window[3] = {3, 5, 5};
static const float bounds[3] = {1, 4, 4};

struct slide_case {
  struct ms_compute *compute;
  struct ms_bench_operands operands;
  struct msk_slide p;
  struct msk_depthwise conv;
  float *z, *dz;
  int64_t tokens, chunk; /* tokens a task */
};

static void pack_task(void *data, int64_t group, void *scratch) {
  struct slide_case *c = data;
  c->compute->slide[MSK_PRECISION_BF16].pack(
      &c->p, group, (char *)c->operands.packed + (size_t)group * c->operands.pack_bytes);
}

static void forward_task(void *data, int64_t task, void *scratch) {
  struct slide_case *c = data;
  int64_t pieces = (c->tokens + c->chunk - 1) / c->chunk, i0 = task % pieces * c->chunk,
          i1 = i0 + c->chunk < c->tokens ? i0 + c->chunk : c->tokens;
  c->compute->slide[MSK_PRECISION_BF16].forward(&c->p, task / pieces, i0, i1, scratch);
}

static void run_forward(void *data) {
  struct slide_case *c = data;
  if (c->operands.pack_bytes)
    ms_pool_run(c->compute->pool, pack_task, c, GROUPS);
  ms_pool_run(c->compute->pool, forward_task, c, GROUPS * ((c->tokens + c->chunk - 1) / c->chunk));
}

static void backward_task(void *data, int64_t group, void *scratch) {
  struct slide_case *c = data;
  c->compute->slide[MSK_PRECISION_BF16].backward(&c->p, group, 0, c->tokens, scratch);
}

static void run_backward(void *data) {
  struct slide_case *c = data;
  ms_pool_run(c->compute->pool, backward_task, c, GROUPS);
}

static void conv_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct slide_case *c = data;
  c->compute->conv.depthwise(&c->conv, begin, end, scratch);
}

static void run_conv(void *data) {
  struct slide_case *c = data;
  ms_compute_ranges(c->compute, c->conv.lattice[0] * c->conv.lattice[1], 1, conv_range, c);
}

static int open_case(struct ms_bench_run *run, struct slide_case *c, const int64_t lattice[3], int64_t heads,
                     int64_t head_dim, enum msk_slide_mode mode) {
  const struct msk_slide_ops *ops = &run->compute.slide[MSK_PRECISION_BF16];
  int64_t row = GROUPS * (mode == MSK_SLIDE_POINT ? POINTS : 1) * 3;
  int code;
  *c = (struct slide_case){
      .compute = &run->compute, .tokens = lattice[0] * lattice[1] * lattice[2], .chunk = lattice[2] * 4};
  code = ms_bench_operands_open(&c->operands, c->tokens, heads, head_dim, run->error);
  c->z = ms_bench_floats(c->tokens * row);
  c->dz = ms_bench_floats(c->tokens * row);
  if (code == 0 && (!c->z || !c->dz))
    code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of 3D-DSA");
  c->p = (struct msk_slide){MS_BENCH_OPERANDS(&c->operands),
                            .groups = GROUPS,
                            .mode = mode,
                            .z = c->z,
                            .z_ld = row,
                            .dz = c->dz,
                            .dz_ld = row};
  memcpy(c->p.lattice, lattice, sizeof c->p.lattice);
  memcpy(c->p.window, window, sizeof c->p.window);
  memcpy(c->p.bounds, bounds, sizeof c->p.bounds);
  if (code == 0)
    code = ms_bench_operands_pack(&c->operands, c->compute, ops->pack_bytes(&c->p), GROUPS,
                                  ops->forward_scratch(&c->p), ops->backward_scratch(&c->p), run->error);
  c->p.packed = c->operands.packed;
  return code;
}

static void close_case(struct slide_case *c) {
  ms_bench_operands_release(&c->operands);
  free(c->z);
  free(c->dz);
}

/* FLOPs of the same window without interpolation; what interpolation costs shows in the rate. */
static double window_flops(const struct slide_case *c) {
  return 4.0 * POINTS * (double)c->operands.ld * (double)c->tokens;
}

static void describe(const struct slide_case *c, const char *offsets, char *shape, size_t size) {
  const int64_t *n = c->p.lattice;
  snprintf(shape, size, "%lldx%lldx%lld C=%lld %s 3x5x5 %s", (long long)n[0], (long long)n[1],
           (long long)n[2], (long long)c->operands.ld, c->p.mode == MSK_SLIDE_POINT ? "point" : "shift",
           offsets);
}

static void put_rows(struct ms_bench_run *run, const struct slide_case *c, const char *offsets,
                     double forward, double backward) {
  const char *kernel = run->compute.slide[MSK_PRECISION_BF16].name;
  char shape[96];
  describe(c, offsets, shape, sizeof shape);
  ms_bench_row(run, "3d-dsa", shape, kernel, forward, window_flops(c), 0, "bf16");
  ms_bench_row(run, "3d-dsa backward", shape, kernel, backward, 2.5 * window_flops(c), 0, "bf16");
}

/* |Delta| uniform up to the bounds. */
static void fill_uniform(float *z, int64_t n) {
  struct ms_random random = {.seed = 3, .stream = 9};
  for (int64_t i = 0; i < n; i++)
    z[i] = (float)(bounds[i % 3] * atanh(0.9999 * ms_random_range(&random, -1, 1)));
}

/* The kernel is timed with each layer's offsets; the rows tell the mean. */
static int bench_starter(struct ms_bench_run *run, struct slide_case *c, const int64_t lattice[3],
                         double *forward) {
  struct ms_bench_offsets offsets = {0};
  double backward = 0;
  char words[64];
  int code = ms_bench_starter_offsets(run, lattice, &offsets);
  *forward = 0;
  if (code == 0 && offsets.row != c->p.z_ld)
    code = ms_error_set(run->error, MS_EINPUT, "the starter's windows are not 3x5x5 in 4 groups");
  for (int i = 0; i < offsets.layers && code == 0; i++) {
    c->p.z = offsets.z[i];
    *forward += ms_bench_time(run_forward, c) / offsets.layers;
    backward += ms_bench_time(run_backward, c) / offsets.layers;
    code = ms_bench_cancelled(run);
  }
  if (code == 0) {
    snprintf(words, sizeof words, "starter's offsets, |Delta| %.2f", offsets.mean);
    put_rows(run, c, words, *forward, backward);
  }
  c->p.z = c->z;
  ms_bench_offsets_release(&offsets);
  return code;
}

static int bench_head(struct ms_bench_run *run, struct slide_case *c) {
  double elements = (double)c->tokens * (double)c->operands.ld;
  char shape[96];
  c->conv = (struct msk_depthwise){.c = c->operands.ld,
                                   .x = c->operands.q,
                                   .weight = c->operands.k,
                                   .bias = c->operands.v,
                                   .y = c->operands.o};
  memcpy(c->conv.lattice, c->p.lattice, sizeof c->conv.lattice);
  if (ms_pool_reserve(run->compute.pool, run->compute.conv.depthwise_scratch(&c->conv)) < 0)
    return ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of the offset head");
  snprintf(shape, sizeof shape, "%lldx%lldx%lld C=%lld", (long long)c->conv.lattice[0],
           (long long)c->conv.lattice[1], (long long)c->conv.lattice[2], (long long)c->conv.c);
  ms_bench_row(run, "offset head's convolution", shape, run->compute.conv.name, ms_bench_time(run_conv, c),
               54 * elements, 8 * elements, "f32");
  return 0;
}

/* The same number of keys in windows that do not move, and what the rest of the layer multiplies. */
static int compare(struct ms_bench_run *run, const struct slide_case *c, int64_t ffn,
                   const char *const *names, const double *forward, int count) {
  const char *kernel = run->compute.attention[MSK_PRECISION_BF16].name;
  double fixed = ms_bench_window(run, c->p.lattice, window, c->operands.heads, c->operands.head_dim);
  double products = fixed < 0 ? fixed : ms_bench_layer_products(run, c->tokens, c->operands.ld, ffn);
  double dim = (double)c->operands.ld;
  char shape[96];
  if (products < 0)
    return (int)products;
  snprintf(shape, sizeof shape, "%lld tokens C=%lld windows 3x5x5", (long long)c->tokens,
           (long long)c->operands.ld);
  ms_bench_row(run, "window attention", shape, kernel, fixed, window_flops(c), 0, "bf16");
  snprintf(shape, sizeof shape, "%lld tokens C=%lld ffn %lld", (long long)c->tokens,
           (long long)c->operands.ld, (long long)ffn);
  ms_bench_row(run, "products of the layer", shape, run->compute.product[MSK_PRECISION_BF16].name, products,
               2 * (double)c->tokens * dim * (6 * dim + 2 * (double)ffn), 0, "bf16");
  for (int i = 0; i < count; i++) {
    snprintf(shape, sizeof shape, "C=%lld %s: %.2f x windows, %.0f %% of products", (long long)c->operands.ld,
             names[i], forward[i] / fixed, 100 * forward[i] / products);
    ms_bench_row(run, "3d-dsa compared", shape, run->compute.slide[MSK_PRECISION_BF16].name, forward[i], 0, 0,
                 "");
  }
  return 0;
}

static int bench_case(struct ms_bench_run *run, const int64_t lattice[3], int64_t heads, int64_t head_dim,
                      int64_t ffn, enum msk_slide_mode mode) {
  static const char *const names[] = {"zero offsets", "starter's offsets", "offsets in full bounds"};
  struct slide_case c;
  double forward[3];
  int code = open_case(run, &c, lattice, heads, head_dim, mode);
  if (code == 0) {
    memset(c.z, 0, (size_t)(c.tokens * c.p.z_ld) * sizeof *c.z);
    forward[0] = ms_bench_time(run_forward, &c);
    put_rows(run, &c, names[0], forward[0], ms_bench_time(run_backward, &c));
    code = ms_bench_cancelled(run);
  }
  if (code == 0 && mode == MSK_SLIDE_POINT)
    code = bench_starter(run, &c, lattice, &forward[1]);
  if (code == 0) {
    fill_uniform(c.z, c.tokens * c.p.z_ld);
    forward[2] = ms_bench_time(run_forward, &c);
    put_rows(run, &c, names[2], forward[2], ms_bench_time(run_backward, &c));
    code = ms_bench_cancelled(run);
  }
  if (code == 0 && mode == MSK_SLIDE_POINT)
    code = compare(run, &c, ffn, names, forward, 3);
  if (code == 0)
    code = bench_head(run, &c);
  close_case(&c);
  return code;
}

int ms_bench_slide(struct ms_bench_run *run) {
  static const int64_t starter[3] = {9, 12, 20}, large[3] = {5, 17, 30};
  int code = bench_case(run, starter, 4, 64, 1024, MSK_SLIDE_POINT);
  if (code == 0)
    code = bench_case(run, large, 12, 128, 8960, MSK_SLIDE_POINT);
  if (code == 0)
    code = bench_case(run, large, 12, 128, 8960, MSK_SLIDE_SHIFT);
  return code;
}
