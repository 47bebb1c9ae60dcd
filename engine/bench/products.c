/* Matrix products: forward, input gradient, weight gradient, at the shapes that count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench-private.h"

struct product_case {
  struct ms_compute *compute;
  enum msk_precision precision;
  struct msk_product product;
  struct msk_pack pack;
  void *packed;
  int pack_each_time; /* the operand is an activation: packing is part of the work */
};

static void run_product(void *data) {
  struct product_case *c = data;
  if (c->pack_each_time)
    ms_compute_pack(c->compute, c->precision, &c->pack, c->packed);
  ms_compute_product(c->compute, c->precision, &c->product);
}

/* y [m,n] = x [m,k] W[n,k]^T and its two gradients. */
static int bench_shape(struct ms_bench_run *run, enum msk_precision precision, int64_t m, int64_t n,
                       int64_t k, const char *what) {
  const struct msk_product_ops *ops = &run->compute.product[precision];
  static const char *const names[] = {"product", "product dx", "product dW"};
  float *x = ms_bench_floats(m * k), *w = ms_bench_floats(n * k), *y = ms_bench_floats(m * n),
        *dw = ms_bench_floats(n * k);
  size_t room = ops->pack_b_bytes(n, k);
  void *packed;
  int code = 0;
  room = ops->pack_b_bytes(k, n) > room ? ops->pack_b_bytes(k, n) : room;
  room = ops->pack_b_bytes(k, m) > room ? ops->pack_b_bytes(k, m) : room;
  packed = ms_bench_bytes(room);
  if (!x || !w || !y || !dw || !packed)
    code = ms_error_set(run->error, MS_ENOMEM, "out of memory for a product of %lld x %lld x %lld",
                        (long long)m, (long long)n, (long long)k);
  for (int i = 0; i < 3 && code == 0; i++) {
    struct product_case c = {
        .compute = &run->compute, .precision = precision, .packed = packed, .pack_each_time = i == 2};
    char shape[96], name[64];
    if (i == 0) {
      c.pack = (struct msk_pack){.n = n, .k = k, .src = w, .ld = k};
      c.product =
          (struct msk_product){.m = m, .n = n, .k = k, .a = x, .a_ld = k, .b = packed, .c = y, .c_ld = n};
    } else if (i == 1) {
      c.pack = (struct msk_pack){.n = k, .k = n, .src = w, .ld = k, .transposed = 1};
      c.product =
          (struct msk_product){.m = m, .n = k, .k = n, .a = y, .a_ld = n, .b = packed, .c = x, .c_ld = k};
    } else {
      c.pack = (struct msk_pack){.n = k, .k = m, .src = x, .ld = k, .transposed = 1};
      c.product = (struct msk_product){.m = n,
                                       .n = k,
                                       .k = m,
                                       .a = y,
                                       .a_ld = n,
                                       .a_transposed = 1,
                                       .b = packed,
                                       .c = dw,
                                       .c_ld = k,
                                       .accumulate = 1};
    }
    ms_compute_pack(&run->compute, precision, &c.pack, packed);
    snprintf(name, sizeof name, "%s %s", names[i], precision == MSK_PRECISION_BF16 ? "bf16" : "f32");
    snprintf(shape, sizeof shape, "%lldx%lldx%lld %s", (long long)m, (long long)n, (long long)k, what);
    ms_bench_row(run, name, shape, ops->name, ms_bench_time(run_product, &c),
                 2.0 * (double)m * (double)n * (double)k, 0,
                 precision == MSK_PRECISION_BF16 ? "bf16" : "f32");
    code = ms_bench_cancelled(run);
  }
  free(x);
  free(w);
  free(y);
  free(dw);
  free(packed);
  return code;
}

/* Products of one input width after another, as a layer has them, each with its own weights and output. */
struct chain {
  struct product_case steps[6];
};

static void run_chain(void *data) {
  struct chain *chain = data;
  for (int i = 0; i < 6; i++)
    run_product(&chain->steps[i]);
}

double ms_bench_layer_products(struct ms_bench_run *run, int64_t tokens, int64_t dim, int64_t ffn) {
  const struct msk_product_ops *ops = &run->compute.product[MSK_PRECISION_BF16];
  /* q k v, output; cross-attention's query and output; up, down */
  const int64_t shapes[6][2] = {{3 * dim, dim}, {dim, dim}, {dim, dim}, {dim, dim}, {ffn, dim}, {dim, ffn}};
  int64_t most = ffn > 3 * dim ? ffn : 3 * dim;
  float *x = ms_bench_floats(tokens * most), *y = ms_bench_floats(tokens * most),
        *w = ms_bench_floats(most * dim);
  struct chain chain = {0};
  double seconds = 0;
  int failed = !x || !y || !w;
  for (int i = 0; i < 6 && !failed; i++) {
    struct product_case *c = &chain.steps[i];
    int64_t n = shapes[i][0], k = shapes[i][1];
    *c = (struct product_case){.compute = &run->compute,
                               .precision = MSK_PRECISION_BF16,
                               .packed = ms_bench_bytes(ops->pack_b_bytes(n, k))};
    if (!c->packed) {
      failed = 1;
      break;
    }
    ms_compute_pack(&run->compute, MSK_PRECISION_BF16, &(struct msk_pack){.n = n, .k = k, .src = w, .ld = k},
                    c->packed);
    c->product = (struct msk_product){
        .m = tokens, .n = n, .k = k, .a = x, .a_ld = k, .b = c->packed, .c = y, .c_ld = n};
  }
  if (!failed)
    seconds = ms_bench_time(run_chain, &chain);
  for (int i = 0; i < 6; i++)
    free(chain.steps[i].packed);
  free(x);
  free(y);
  free(w);
  return failed ? ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of products")
                : seconds;
}

int ms_bench_products(struct ms_bench_run *run) {
  static const struct {
    int64_t m, n, k;
    const char *what;
  } shapes[] = {{1536, 256, 256, "starter o"},      {1536, 768, 256, "starter qkv"},
                {1536, 1024, 256, "starter ffn.0"}, {1536, 256, 1024, "starter ffn.2"},
                {2550, 1536, 1536, "1.3B o"},       {2550, 8960, 1536, "1.3B ffn.0"},
                {2550, 1536, 8960, "1.3B ffn.2"}};
  for (int precision = 1; precision >= 0; precision--)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      int code;
      if (precision == MSK_PRECISION_F32 && shapes[i].k * shapes[i].n > 4000000)
        continue; /* seconds a call, and no other figure than the smaller shape's */
      code = bench_shape(run, (enum msk_precision)precision, shapes[i].m, shapes[i].n, shapes[i].k,
                         shapes[i].what);
      if (code < 0)
        return code;
    }
  return 0;
}
