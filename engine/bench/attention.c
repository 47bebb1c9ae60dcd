/* Dense attention, windows, 3D-DSA with its offset head, at the shapes of the starter and of the 1.3 B
 * configuration. 3D-DSA is timed with zero offsets and with offsets uniform in their full bounds. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/bench-private.h"

struct attention_case {
  struct ms_compute *compute;
  struct msk_attention dense;
  struct msk_slide slide;
  struct msk_depthwise conv;
  void *packed;
  size_t pack_bytes;
  int64_t chunk; /* queries or tokens a task */
};

static void pack_task(void *data, int64_t head, void *scratch) {
  struct attention_case *c = data;
  c->compute->attention[MSK_PRECISION_BF16].pack(&c->dense, head,
                                                 (char *)c->packed + (size_t)head * c->pack_bytes);
}

static void forward_task(void *data, int64_t task, void *scratch) {
  struct attention_case *c = data;
  int64_t pieces = (c->dense.queries + c->chunk - 1) / c->chunk, q0 = task % pieces * c->chunk;
  c->compute->attention[MSK_PRECISION_BF16].forward(
      &c->dense, task / pieces, q0, q0 + c->chunk < c->dense.queries ? q0 + c->chunk : c->dense.queries,
      scratch);
}

static void run_dense(void *data) {
  struct attention_case *c = data;
  ms_pool_run(c->compute->pool, pack_task, c, c->dense.heads);
  ms_pool_run(c->compute->pool, forward_task, c,
              c->dense.heads * ((c->dense.queries + c->chunk - 1) / c->chunk));
}

static void backward_task(void *data, int64_t head, void *scratch) {
  struct attention_case *c = data;
  c->compute->attention[MSK_PRECISION_BF16].backward(&c->dense, head, scratch);
}

static void run_dense_backward(void *data) {
  struct attention_case *c = data;
  ms_pool_run(c->compute->pool, backward_task, c, c->dense.heads);
}

static void slide_pack_task(void *data, int64_t group, void *scratch) {
  struct attention_case *c = data;
  c->compute->slide[MSK_PRECISION_BF16].pack(&c->slide, group,
                                             (char *)c->packed + (size_t)group * c->pack_bytes);
}

static void slide_task(void *data, int64_t task, void *scratch) {
  struct attention_case *c = data;
  int64_t tokens = c->slide.lattice[0] * c->slide.lattice[1] * c->slide.lattice[2],
          pieces = (tokens + c->chunk - 1) / c->chunk;
  int64_t i0 = task % pieces * c->chunk, i1 = i0 + c->chunk < tokens ? i0 + c->chunk : tokens;
  c->compute->slide[MSK_PRECISION_BF16].forward(&c->slide, task / pieces, i0, i1, scratch);
}

static void run_slide(void *data) {
  struct attention_case *c = data;
  int64_t tokens = c->slide.lattice[0] * c->slide.lattice[1] * c->slide.lattice[2];
  if (c->pack_bytes)
    ms_pool_run(c->compute->pool, slide_pack_task, c, c->slide.groups);
  ms_pool_run(c->compute->pool, slide_task, c, c->slide.groups * ((tokens + c->chunk - 1) / c->chunk));
}

static void slide_backward_task(void *data, int64_t group, void *scratch) {
  struct attention_case *c = data;
  c->compute->slide[MSK_PRECISION_BF16].backward(
      &c->slide, group, 0, c->slide.lattice[0] * c->slide.lattice[1] * c->slide.lattice[2], scratch);
}

static void run_slide_backward(void *data) {
  struct attention_case *c = data;
  ms_pool_run(c->compute->pool, slide_backward_task, c, c->slide.groups);
}

static void conv_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct attention_case *c = data;
  c->compute->conv.depthwise(&c->conv, begin, end, scratch);
}

static void run_conv(void *data) {
  struct attention_case *c = data;
  ms_compute_ranges(c->compute, c->conv.lattice[0] * c->conv.lattice[1], 1, conv_range, c);
}

struct buffers {
  float *q, *k, *v, *o, *d_o, *dq, *dk, *dv, *lse, *z, *dz;
};

static int buffers_open(struct buffers *b, int64_t tokens, int64_t c, int64_t heads, int64_t offsets,
                        struct ms_error *error) {
  float **all[] = {&b->q, &b->k, &b->v, &b->o, &b->d_o, &b->dq, &b->dk, &b->dv};
  memset(b, 0, sizeof *b);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!(*all[i] = ms_bench_floats(tokens * c)))
      return ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark of attention");
  b->lse = ms_bench_floats(tokens * heads);
  b->z = offsets ? ms_bench_floats(tokens * offsets) : NULL;
  b->dz = offsets ? ms_bench_floats(tokens * offsets) : NULL;
  if (!b->lse || (offsets && (!b->z || !b->dz)))
    return ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark of attention");
  return 0;
}

static void buffers_release(struct buffers *b) {
  float *all[] = {b->q, b->k, b->v, b->o, b->d_o, b->dq, b->dk, b->dv, b->lse, b->z, b->dz};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    free(all[i]);
}

static int bench_dense(struct ms_bench_run *run, int64_t queries, int64_t keys, int64_t heads, int64_t d,
                       const char *what) {
  const struct msk_attention_ops *ops = &run->compute.attention[MSK_PRECISION_BF16];
  int64_t c = heads * d, most = queries > keys ? queries : keys;
  double flops = 4.0 * (double)queries * (double)keys * (double)c;
  struct buffers b;
  struct attention_case a = {.compute = &run->compute};
  char shape[96];
  size_t scratch;
  int code = buffers_open(&b, most, c, heads, 0, run->error);
  if (code == 0) {
    a.dense = (struct msk_attention){.queries = queries,
                                     .keys = keys,
                                     .heads = heads,
                                     .head_dim = d,
                                     .scale = 1 / sqrtf((float)d),
                                     .q = b.q,
                                     .k = b.k,
                                     .v = b.v,
                                     .q_ld = c,
                                     .k_ld = c,
                                     .v_ld = c,
                                     .o = b.o,
                                     .o_ld = c,
                                     .lse = b.lse,
                                     .d_o = b.d_o,
                                     .d_o_ld = c,
                                     .dq = b.dq,
                                     .dk = b.dk,
                                     .dv = b.dv,
                                     .dq_ld = c,
                                     .dk_ld = c,
                                     .dv_ld = c};
    a.pack_bytes = (ops->pack_bytes(&a.dense) + 63) / 64 * 64;
    a.packed = ms_bench_bytes(a.pack_bytes * (size_t)heads);
    a.dense.packed = a.packed;
    a.chunk = 4 * ops->q_step > 128 ? 4 * ops->q_step : 128;
    scratch = ops->forward_scratch(&a.dense);
    scratch = ops->backward_scratch(&a.dense) > scratch ? ops->backward_scratch(&a.dense) : scratch;
    if (!a.packed || ms_pool_reserve(run->compute.pool, scratch) < 0)
      code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of attention");
  }
  if (code == 0) {
    snprintf(shape, sizeof shape, "%lldx%lld %lld heads of %lld %s", (long long)queries, (long long)keys,
             (long long)heads, (long long)d, what);
    ms_bench_row(run, "attention", shape, ops->name, ms_bench_time(run_dense, &a), flops, 0, "bf16");
    ms_bench_row(run, "attention backward", shape, ops->name, ms_bench_time(run_dense_backward, &a),
                 2.5 * flops, 0, "bf16");
  }
  free(a.packed);
  buffers_release(&b);
  return code == 0 ? ms_bench_cancelled(run) : code;
}

/* spread < 0: zero offsets; else |Delta| uniform up to spread times the bounds. */
static void fill_offsets(float *z, int64_t n, const float bounds[3], double spread) {
  struct ms_random random = {.seed = 3, .stream = 9};
  for (int64_t i = 0; i < n; i++) {
    double delta = spread > 0 ? ms_random_range(&random, -spread, spread) : 0;
    z[i] = (float)(bounds[i % 3] * atanh(delta * 0.9999));
  }
}

static int bench_slide(struct ms_bench_run *run, const int64_t lattice[3], int64_t heads, int64_t d,
                       enum msk_slide_mode mode) {
  static const int64_t window[3] = {3, 5, 5};
  static const float bounds[3] = {1, 4, 4};
  static const struct {
    const char *name;
    double spread;
  } offsets[] = {{"zero offsets", 0}, {"offsets up to a tenth", 0.1}, {"offsets in full bounds", 1}};
  const struct msk_slide_ops *ops = &run->compute.slide[MSK_PRECISION_BF16];
  int64_t tokens = lattice[0] * lattice[1] * lattice[2], c = heads * d, k = 75, groups = 4;
  int64_t row = groups * (mode == MSK_SLIDE_POINT ? k : 1) * 3;
  struct buffers b;
  struct attention_case a = {.compute = &run->compute};
  char shape[96];
  size_t scratch;
  int code = buffers_open(&b, tokens, c, heads, row, run->error);
  if (code == 0) {
    a.slide = (struct msk_slide){.heads = heads,
                                 .head_dim = d,
                                 .groups = groups,
                                 .mode = mode,
                                 .scale = 1 / sqrtf((float)d),
                                 .q = b.q,
                                 .k = b.k,
                                 .v = b.v,
                                 .q_ld = c,
                                 .k_ld = c,
                                 .v_ld = c,
                                 .z = b.z,
                                 .z_ld = row,
                                 .o = b.o,
                                 .o_ld = c,
                                 .lse = b.lse,
                                 .d_o = b.d_o,
                                 .d_o_ld = c,
                                 .dq = b.dq,
                                 .dk = b.dk,
                                 .dv = b.dv,
                                 .dz = b.dz,
                                 .dq_ld = c,
                                 .dk_ld = c,
                                 .dv_ld = c,
                                 .dz_ld = row};
    memcpy(a.slide.lattice, lattice, sizeof a.slide.lattice);
    memcpy(a.slide.window, window, sizeof a.slide.window);
    memcpy(a.slide.bounds, bounds, sizeof a.slide.bounds);
    a.pack_bytes = (ops->pack_bytes(&a.slide) + 63) / 64 * 64;
    a.packed = ms_bench_bytes(a.pack_bytes * (size_t)groups);
    a.slide.packed = a.packed;
    a.chunk = lattice[2] * 4;
    scratch = ops->forward_scratch(&a.slide);
    scratch = ops->backward_scratch(&a.slide) > scratch ? ops->backward_scratch(&a.slide) : scratch;
    if (!a.packed || ms_pool_reserve(run->compute.pool, scratch) < 0)
      code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of 3D-DSA");
  }
  for (size_t i = 0; i < sizeof offsets / sizeof *offsets && code == 0; i++) {
    /* FLOPs of the same window without interpolation; what interpolation costs shows in the rate */
    double flops = 4.0 * (double)k * (double)c * (double)tokens;
    fill_offsets(b.z, tokens * row, bounds, offsets[i].spread);
    snprintf(shape, sizeof shape, "%lldx%lldx%lld C=%lld %s 3x5x5 %s", (long long)lattice[0],
             (long long)lattice[1], (long long)lattice[2], (long long)c,
             mode == MSK_SLIDE_POINT ? "point" : "shift", offsets[i].name);
    ms_bench_row(run, "3d-dsa", shape, ops->name, ms_bench_time(run_slide, &a), flops, 0, "bf16");
    ms_bench_row(run, "3d-dsa backward", shape, ops->name, ms_bench_time(run_slide_backward, &a), 2.5 * flops,
                 0, "bf16");
    code = ms_bench_cancelled(run);
  }
  if (code == 0) {
    a.conv = (struct msk_depthwise){.c = c, .x = b.q, .weight = b.k, .bias = b.v, .y = b.o};
    memcpy(a.conv.lattice, lattice, sizeof a.conv.lattice);
    if (ms_pool_reserve(run->compute.pool, run->compute.conv.depthwise_scratch(&a.conv)) < 0)
      code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of the offset head");
    snprintf(shape, sizeof shape, "%lldx%lldx%lld C=%lld", (long long)lattice[0], (long long)lattice[1],
             (long long)lattice[2], (long long)c);
    if (code == 0)
      ms_bench_row(run, "offset head's convolution", shape, run->compute.conv.name,
                   ms_bench_time(run_conv, &a), 54.0 * (double)(tokens * c), 8.0 * (double)(tokens * c),
                   "f32");
  }
  free(a.packed);
  buffers_release(&b);
  return code;
}

int ms_bench_attention(struct ms_bench_run *run) {
  static const int64_t starter[3] = {9, 6, 10}, large[3] = {5, 17, 30};
  int code = bench_dense(run, 48, 48, 4, 64, "starter 64x64x9");
  if (code == 0)
    code = bench_dense(run, 540, 540, 4, 64, "starter 160x96x33");
  if (code == 0)
    code = bench_dense(run, 2550, 2550, 12, 128, "1.3B 480x272x17");
  if (code == 0)
    code = bench_dense(run, 2550, 512, 12, 128, "1.3B cross");
  if (code == 0)
    code = bench_dense(run, 75, 75, 12, 128, "a 3x5x5 window");
  if (code == 0)
    code = bench_slide(run, starter, 4, 64, MSK_SLIDE_POINT);
  if (code == 0)
    code = bench_slide(run, large, 12, 128, MSK_SLIDE_POINT);
  if (code == 0)
    code = bench_slide(run, large, 12, 128, MSK_SLIDE_SHIFT);
  return code;
}
