/* Dense attention and windows, at the shapes of the starter and of the 1.3 B configuration. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench-private.h"

int ms_bench_operands_open(struct ms_bench_operands *b, int64_t rows, int64_t heads, int64_t head_dim,
                           struct ms_error *error) {
  float **all[] = {&b->q, &b->k, &b->v, &b->o, &b->d_o, &b->dq, &b->dk, &b->dv, &b->lse};
  const size_t count = sizeof all / sizeof *all;
  *b = (struct ms_bench_operands){.heads = heads, .head_dim = head_dim, .ld = heads * head_dim};
  for (size_t i = 0; i < count; i++)
    if (!(*all[i] = ms_bench_floats(rows * (i + 1 < count ? b->ld : heads))))
      return ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark of attention");
  return 0;
}

void ms_bench_operands_release(struct ms_bench_operands *b) {
  float *all[] = {b->q, b->k, b->v, b->o, b->d_o, b->dq, b->dk, b->dv, b->lse};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    free(all[i]);
  free(b->packed);
  memset(b, 0, sizeof *b);
}

int ms_bench_operands_pack(struct ms_bench_operands *b, struct ms_compute *compute, size_t pack_bytes,
                           int64_t parts, size_t forward_scratch, size_t backward_scratch,
                           struct ms_error *error) {
  b->pack_bytes = (pack_bytes + 63) / 64 * 64;
  b->packed = ms_bench_bytes(b->pack_bytes * (size_t)parts);
  if (!b->packed || ms_pool_reserve(compute->pool, forward_scratch > backward_scratch ? forward_scratch
                                                                                      : backward_scratch) < 0)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark of attention");
  return 0;
}

struct dense_case {
  struct ms_compute *compute;
  struct ms_bench_operands operands;
  struct msk_attention p;
  int64_t chunk; /* queries a task */
};

static void pack_task(void *data, int64_t head, void *scratch) {
  struct dense_case *c = data;
  c->compute->attention[MSK_PRECISION_BF16].pack(
      &c->p, head, (char *)c->operands.packed + (size_t)head * c->operands.pack_bytes);
}

static void forward_task(void *data, int64_t task, void *scratch) {
  struct dense_case *c = data;
  int64_t pieces = (c->p.queries + c->chunk - 1) / c->chunk, q0 = task % pieces * c->chunk;
  c->compute->attention[MSK_PRECISION_BF16].forward(
      &c->p, task / pieces, q0, q0 + c->chunk < c->p.queries ? q0 + c->chunk : c->p.queries, scratch);
}

static void run_dense(void *data) {
  struct dense_case *c = data;
  ms_pool_run(c->compute->pool, pack_task, c, c->p.heads);
  ms_pool_run(c->compute->pool, forward_task, c, c->p.heads * ((c->p.queries + c->chunk - 1) / c->chunk));
}

static void backward_task(void *data, int64_t head, void *scratch) {
  struct dense_case *c = data;
  c->compute->attention[MSK_PRECISION_BF16].backward(&c->p, head, scratch);
}

static void run_dense_backward(void *data) {
  struct dense_case *c = data;
  ms_pool_run(c->compute->pool, backward_task, c, c->p.heads);
}

static int bench_dense(struct ms_bench_run *run, int64_t queries, int64_t keys, int64_t heads,
                       int64_t head_dim, const char *what) {
  const struct msk_attention_ops *ops = &run->compute.attention[MSK_PRECISION_BF16];
  double flops = 4.0 * (double)queries * (double)keys * (double)(heads * head_dim);
  struct dense_case c = {.compute = &run->compute, .chunk = 4 * ops->q_step > 128 ? 4 * ops->q_step : 128};
  char shape[96];
  int code =
      ms_bench_operands_open(&c.operands, queries > keys ? queries : keys, heads, head_dim, run->error);
  c.p = (struct msk_attention){.queries = queries, .keys = keys, MS_BENCH_OPERANDS(&c.operands)};
  if (code == 0)
    code = ms_bench_operands_pack(&c.operands, c.compute, ops->pack_bytes(&c.p), heads,
                                  ops->forward_scratch(&c.p), ops->backward_scratch(&c.p), run->error);
  if (code == 0) {
    c.p.packed = c.operands.packed;
    snprintf(shape, sizeof shape, "%lldx%lld %lld heads of %lld %s", (long long)queries, (long long)keys,
             (long long)heads, (long long)head_dim, what);
    ms_bench_row(run, "attention", shape, ops->name, ms_bench_time(run_dense, &c), flops, 0, "bf16");
    ms_bench_row(run, "attention backward", shape, ops->name, ms_bench_time(run_dense_backward, &c),
                 2.5 * flops, 0, "bf16");
    code = ms_bench_cancelled(run);
  }
  ms_bench_operands_release(&c.operands);
  return code;
}

/* Windows side by side, each one task with all its heads, as the DiT does them. */
struct window_case {
  struct ms_compute *compute;
  struct ms_bench_operands operands;
  int64_t *rows, *starts, count;
};

static void window_task(void *data, int64_t window, void *scratch) {
  struct window_case *c = data;
  const struct msk_attention_ops *ops = &c->compute->attention[MSK_PRECISION_BF16];
  struct msk_attention p = {MS_BENCH_OPERANDS(&c->operands)};
  size_t bytes;
  p.queries = p.keys = c->starts[window + 1] - c->starts[window];
  p.q_rows = p.k_rows = c->rows + c->starts[window];
  bytes = ops->pack_bytes(&p);
  for (int64_t head = 0; head < p.heads; head++) {
    ops->pack(&p, head, scratch);
    p.packed = (char *)scratch - (size_t)head * bytes; /* forward looks for its head in a list of all */
    ops->forward(&p, head, 0, p.queries, (char *)scratch + (bytes + 63) / 64 * 64);
  }
}

static void run_windows(void *data) {
  struct window_case *c = data;
  ms_pool_run(c->compute->pool, window_task, c, c->count);
}

static void list_windows(struct window_case *c, const int64_t n[3], const int64_t size[3]) {
  int64_t *row = c->rows;
  for (int64_t t = 0; t < n[0]; t += size[0])
    for (int64_t y = 0; y < n[1]; y += size[1])
      for (int64_t x = 0; x < n[2]; x += size[2]) {
        c->starts[c->count++] = row - c->rows;
        for (int64_t i = t; i < n[0] && i < t + size[0]; i++)
          for (int64_t j = y; j < n[1] && j < y + size[1]; j++)
            for (int64_t k = x; k < n[2] && k < x + size[2]; k++)
              *row++ = (i * n[1] + j) * n[2] + k;
      }
  c->starts[c->count] = row - c->rows;
}

double ms_bench_window(struct ms_bench_run *run, const int64_t lattice[3], const int64_t window[3],
                       int64_t heads, int64_t head_dim) {
  const struct msk_attention_ops *ops = &run->compute.attention[MSK_PRECISION_BF16];
  int64_t tokens = lattice[0] * lattice[1] * lattice[2], points = window[0] * window[1] * window[2];
  struct window_case c = {.compute = &run->compute,
                          .rows = ms_bench_bytes((size_t)tokens * sizeof(int64_t)),
                          .starts = ms_bench_bytes((size_t)(tokens + 1) * sizeof(int64_t))};
  double seconds = 0;
  int code = ms_bench_operands_open(&c.operands, tokens, heads, head_dim, run->error);
  const struct msk_attention largest = {
      .queries = points, .keys = points, MS_BENCH_OPERANDS(&c.operands), .q_rows = c.rows, .k_rows = c.rows};
  if (code == 0 && (!c.rows || !c.starts ||
                    ms_pool_reserve(run->compute.pool,
                                    ops->pack_bytes(&largest) + 64 + ops->forward_scratch(&largest)) < 0))
    code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of windows");
  if (code == 0) {
    list_windows(&c, lattice, window);
    seconds = ms_bench_time(run_windows, &c);
  }
  ms_bench_operands_release(&c.operands);
  free(c.rows);
  free(c.starts);
  return code < 0 ? code : seconds;
}

int ms_bench_attention(struct ms_bench_run *run) {
  static const struct {
    int64_t queries, keys, heads, head_dim;
    const char *what;
  } cases[] = {{48, 48, 4, 64, "starter 64x64x9"},
               {540, 540, 4, 64, "starter 160x96x33"},
               {2550, 2550, 12, 128, "1.3B 480x272x17"},
               {2550, 512, 12, 128, "1.3B cross"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int code =
        bench_dense(run, cases[i].queries, cases[i].keys, cases[i].heads, cases[i].head_dim, cases[i].what);
    if (code < 0)
      return code;
  }
  return 0;
}
