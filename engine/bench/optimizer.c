/* AdamW on a split master: with float32 gradients, with bf16 gradients, with 8-bit moments. Each is timed in
 * turn with a sweep over the same arrays that does no arithmetic, so that whatever else the machine does
 * meets both alike; the sweep's best rate, with fetches ahead or without, is the peak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "bench/bench-private.h"

#define ROUNDS 9
#define PIECE (1 << 18)

struct adamw_case {
  struct ms_bench_run *run;
  struct msk_adamw settings;
  void *grad, *m, *v;
  enum msk_type grad_type;
  uint16_t *hi, *lo;
  float *m_scale, *v_scale; /* NULL: float32 moments */
  uint32_t seed;
  int64_t parameters, ahead;
};

static void adamw_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct adamw_case *c = data;
  const struct msk_adamw_ops *adamw = &c->run->compute.adamw;
  const char *grad = (const char *)c->grad + begin * (int64_t)msk_type_size(c->grad_type);
  if (c->m_scale)
    adamw->step_split8(&c->settings, grad, c->grad_type, c->hi + begin, c->lo + begin,
                       (uint8_t *)c->m + begin, (uint8_t *)c->v + begin, c->m_scale + begin / MSK_ADAMW_BLOCK,
                       c->v_scale + begin / MSK_ADAMW_BLOCK, begin, c->seed, end - begin);
  else
    adamw->step_split(&c->settings, grad, c->grad_type, c->hi + begin, c->lo + begin, (float *)c->m + begin,
                      (float *)c->v + begin, end - begin);
}

static void sweep_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct adamw_case *c = data;
  int64_t size = (int64_t)msk_type_size(c->grad_type), moment = c->m_scale ? 1 : 4;
  c->run->peak_ops.update_split((const char *)c->grad + begin * size, (int)size, c->hi + begin, c->lo + begin,
                                (char *)c->m + begin * moment, (char *)c->v + begin * moment, (int)moment,
                                c->ahead, end - begin);
}

/* Bytes that a step reads and writes, of one parameter. The scales of a block are 1/16 byte more. */
static double bytes_each(const struct adamw_case *c) {
  return (double)msk_type_size(c->grad_type) + 8 + (c->m_scale ? 4 + 16.0 / MSK_ADAMW_BLOCK : 16);
}

static double seconds_of(struct adamw_case *c,
                         void (*range)(void *data, int64_t begin, int64_t end, void *scratch)) {
  double start = ms_seconds();
  ms_compute_ranges(&c->run->compute, c->parameters, PIECE, range, c);
  return ms_seconds() - start;
}

static int measure(struct adamw_case *c, const char *name) {
  static const int64_t aheads[] = {0, 512, 1024};
  struct ms_bench_run *run = c->run;
  double step = 1e30, sweep = 1e30, bytes = bytes_each(c) * (double)c->parameters;
  char shape[64];
  for (int round = 0; round < ROUNDS; round++) {
    double seconds;
    if (ms_bench_cancelled(run))
      return MS_ECANCELLED;
    c->seed = (uint32_t)round;
    seconds = seconds_of(c, adamw_range);
    step = seconds < step ? seconds : step;
    for (size_t i = 0; i < sizeof aheads / sizeof *aheads; i++) {
      c->ahead = aheads[i];
      seconds = seconds_of(c, sweep_range);
      sweep = seconds < sweep ? seconds : sweep;
    }
  }
  snprintf(shape, sizeof shape, "%.1f M parameters, %.0f bytes each", (double)c->parameters * 1e-6,
           bytes_each(c));
  run->peaks.adamw = bytes / sweep;
  ms_bench_row_of(run, "adamw's access pattern", shape, run->peak_ops.name, sweep, (double)c->parameters,
                  bytes);
  ms_bench_row_of(run, name, shape, run->compute.adamw.name, step, (double)c->parameters, bytes);
  return 0;
}

/* The sweep adds the first 8 bytes of every cache line of the gradient to all that it writes: zeros there
 * keep the state what it is. */
static void fill_gradient(float *f32, uint16_t *bf16, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    f32[i] = i % 32 < 4 || i % 16 < 2 ? 0 : f32[i];
    bf16[i] = msk_f32_to_bf16(f32[i]);
  }
}

int ms_bench_optimizer(struct ms_bench_run *run) {
  int64_t n = run->parameters;
  size_t scales = (size_t)((n + MSK_ADAMW_BLOCK - 1) / MSK_ADAMW_BLOCK) * sizeof(float);
  float *f32 = ms_bench_floats(n);
  uint16_t *bf16 = ms_bench_bytes((size_t)n * 2);
  float *m_scale = ms_bench_bytes(scales), *v_scale = ms_bench_bytes(scales);
  struct adamw_case c = {.run = run,
                         .settings = {.lr = 1e-4,
                                      .beta1 = 0.9,
                                      .beta2 = 0.99,
                                      .eps = 1e-8,
                                      .decay = 0.01,
                                      .correction1 = 0.5,
                                      .correction2 = 0.5,
                                      .grad_scale = 1},
                         .m = ms_bench_bytes((size_t)n * 4),
                         .v = ms_bench_bytes((size_t)n * 4),
                         .hi = ms_bench_bytes((size_t)n * 2),
                         .lo = ms_bench_bytes((size_t)n * 2),
                         .parameters = n};
  int code = 0;
  if (!f32 || !bf16 || !m_scale || !v_scale || !c.m || !c.v || !c.hi || !c.lo) {
    code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of AdamW");
  } else {
    fill_gradient(f32, bf16, n);
    c.grad = f32;
    c.grad_type = MSK_F32;
    code = measure(&c, "adamw, f32 gradients");
    c.grad = bf16;
    c.grad_type = MSK_BF16;
    if (code == 0)
      code = measure(&c, "adamw, bf16 gradients");
    memset(c.m, 0, (size_t)n);
    memset(c.v, 0, (size_t)n);
    c.m_scale = m_scale;
    c.v_scale = v_scale;
    if (code == 0)
      code = measure(&c, "adamw, 8-bit moments");
  }
  free(f32);
  free(bf16);
  free(m_scale);
  free(v_scale);
  free(c.m);
  free(c.v);
  free(c.hi);
  free(c.lo);
  return code;
}
