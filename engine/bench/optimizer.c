/* AdamW on a split master with float32 gradients: 28 bytes a parameter, held against the same sweep without
 * arithmetic. */
#include <stdlib.h>

#include "bench/bench-private.h"

#define PARAMETERS ((int64_t)32 << 20)

struct adamw_case {
  struct ms_compute *compute;
  struct msk_adamw settings;
  const float *grad;
  float *m, *v;
  uint16_t *hi, *lo;
};

static void adamw_range(void *data, int64_t begin, int64_t end, void *scratch) {
  struct adamw_case *c = data;
  c->compute->adamw.step_split(&c->settings, c->grad + begin, MSK_F32, c->hi + begin, c->lo + begin,
                               c->m + begin, c->v + begin, end - begin);
}

static void run_adamw(void *data) {
  struct adamw_case *c = data;
  ms_compute_ranges(c->compute, PARAMETERS, 1 << 18, adamw_range, c);
}

int ms_bench_optimizer(struct ms_bench_run *run) {
  float *grad = ms_bench_floats(PARAMETERS);
  struct adamw_case c = {.compute = &run->compute,
                         .settings = {.lr = 1e-4f,
                                      .beta1 = 0.9f,
                                      .beta2 = 0.99f,
                                      .eps = 1e-8f,
                                      .decay = 0.01f,
                                      .correction1 = 0.5f,
                                      .correction2 = 0.5f,
                                      .grad_scale = 1},
                         .grad = grad,
                         .m = ms_bench_floats(PARAMETERS),
                         .v = ms_bench_bytes((size_t)PARAMETERS * 4),
                         .hi = ms_bench_bytes((size_t)PARAMETERS * 2),
                         .lo = ms_bench_bytes((size_t)PARAMETERS * 2)};
  int code = 0;
  if (!grad || !c.m || !c.v || !c.hi || !c.lo)
    code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of AdamW");
  else
    ms_bench_row(run, "adamw split master", "33.6 M parameters, 28 bytes each", run->compute.adamw.name,
                 ms_bench_time(run_adamw, &c), 0, 28.0 * (double)PARAMETERS, "adamw sweep");
  free(grad);
  free(c.m);
  free(c.v);
  free(c.hi);
  free(c.lo);
  return code;
}
