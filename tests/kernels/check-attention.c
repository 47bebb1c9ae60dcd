/* Attention of every instruction set against sums in double, at odd sizes, through tables of rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "msk-attention.h"
#include "msk-cpu.h"

#define HEADS 2

/* bf16 operands carry a relative rounding error of 2^-9 at most; sums of them stay an order below this. */
#define TOLERANCE_F32 2e-6
#define TOLERANCE_BF16 1e-2

struct problem {
  struct msk_attention p;
  int64_t q_total, k_total; /* rows of the buffers; more than queries and keys if rows are gathered */
  int64_t *q_rows, *k_rows;
  /* gathered, [rows, HEADS * head_dim] */
  double *o, *lse, *dq, *dk, *dv;
  /* Tolerances grow by this where scores are so large that their own rounding shows in the weights, and where
   * so few terms are summed that errors do not average out. */
  double slack;
};

static int64_t *distinct_rows(int64_t n, int64_t total) {
  int64_t *rows = check_alloc((size_t)n * sizeof *rows), *all = malloc((size_t)total * sizeof *all);
  for (int64_t i = 0; i < total; i++)
    all[i] = i;
  for (int64_t i = 0; i < n; i++) {
    int64_t other = i + check_below(total - i), row = all[other];
    all[other] = all[i];
    rows[i] = row;
  }
  free(all);
  return rows;
}

static float *buffer(int64_t rows, int64_t ld, double scale) {
  float *x = check_alloc_f32(rows * ld);
  if (scale > 0)
    check_fill(x, rows * ld, scale);
  return x;
}

/* spread scales the queries: the larger, the sharper the softmax. */
static struct problem make(int64_t queries, int64_t keys, int64_t dim, int tables, double spread) {
  struct problem x = {.q_total = queries,
                      .k_total = keys,
                      .slack = spread > 10            ? 8
                               : queries * keys < 300 ? 4
                                                      : 1};
  int64_t width = HEADS * dim;
  if (tables) {
    x.q_total += 7;
    x.k_total += 5;
    x.q_rows = distinct_rows(queries, x.q_total);
    x.k_rows = distinct_rows(keys, x.k_total);
  }
  x.p = (struct msk_attention){.queries = queries,
                               .keys = keys,
                               .heads = HEADS,
                               .head_dim = dim,
                               .scale = 1 / sqrtf((float)dim),
                               .q_ld = width + 3,
                               .k_ld = width + 8,
                               .v_ld = width + 1,
                               .q_rows = x.q_rows,
                               .k_rows = x.k_rows,
                               .o_ld = width + 5,
                               .d_o_ld = width + 2,
                               .dq_ld = width + 4,
                               .dk_ld = width + 7,
                               .dv_ld = width + 6};
  x.p.q = buffer(x.q_total, x.p.q_ld, spread);
  x.p.k = buffer(x.k_total, x.p.k_ld, 1);
  x.p.v = buffer(x.k_total, x.p.v_ld, 1);
  x.p.d_o = buffer(x.q_total, x.p.d_o_ld, 1);
  return x;
}

static int64_t row_of(const int64_t *rows, int64_t i) {
  return rows ? rows[i] : i;
}

static double *zeros(int64_t n) {
  return calloc((size_t)(n > 0 ? n : 1), sizeof(double));
}

/* Forward and backward in double, without any rounding. */
static void solve(struct problem *x) {
  const struct msk_attention *p = &x->p;
  int64_t n = p->head_dim, width = HEADS * n;
  double *s = zeros(p->keys), *dp = zeros(p->keys);
  x->o = zeros(p->queries * width);
  x->dq = zeros(p->queries * width);
  x->lse = zeros(p->queries * HEADS);
  x->dk = zeros(p->keys * width);
  x->dv = zeros(p->keys * width);
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t i = 0; i < p->queries; i++) {
      const float *q = p->q + row_of(p->q_rows, i) * p->q_ld + h * n;
      const float *d_o = p->d_o + row_of(p->q_rows, i) * p->d_o_ld + h * n;
      double *o = x->o + i * width + h * n, *dq = x->dq + i * width + h * n, max = -INFINITY, sum = 0,
             delta = 0;
      for (int64_t j = 0; j < p->keys; j++) {
        const float *k = p->k + row_of(p->k_rows, j) * p->k_ld + h * n;
        const float *v = p->v + row_of(p->k_rows, j) * p->v_ld + h * n;
        s[j] = dp[j] = 0;
        for (int64_t c = 0; c < n; c++) {
          s[j] += (double)q[c] * k[c];
          dp[j] += (double)d_o[c] * v[c];
        }
        s[j] *= p->scale;
        max = s[j] > max ? s[j] : max;
      }
      for (int64_t j = 0; j < p->keys; j++)
        sum += exp(s[j] - max);
      x->lse[i * HEADS + h] = max + log(sum);
      for (int64_t j = 0; j < p->keys; j++) {
        s[j] = exp(s[j] - max) / sum;
        delta += s[j] * dp[j];
      }
      for (int64_t j = 0; j < p->keys; j++) {
        const float *k = p->k + row_of(p->k_rows, j) * p->k_ld + h * n;
        const float *v = p->v + row_of(p->k_rows, j) * p->v_ld + h * n;
        double ds = s[j] * (dp[j] - delta) * p->scale;
        double *dk = x->dk + j * width + h * n, *dv = x->dv + j * width + h * n;
        for (int64_t c = 0; c < n; c++) {
          o[c] += s[j] * v[c];
          dq[c] += ds * k[c];
          dk[c] += ds * q[c];
          dv[c] += s[j] * d_o[c];
        }
      }
    }
  free(s);
  free(dp);
}

static void release(struct problem *x) {
  free(x->o);
  free(x->lse);
  free(x->dq);
  free(x->dk);
  free(x->dv);
  check_free_all();
}

static void outputs(struct problem *x) {
  struct msk_attention *p = &x->p;
  p->o = buffer(x->q_total, p->o_ld, 0);
  p->lse = buffer(x->q_total, HEADS, 0);
  p->dq = buffer(x->q_total, p->dq_ld, 0);
  p->dk = buffer(x->k_total, p->dk_ld, 0);
  p->dv = buffer(x->k_total, p->dv_ld, 0);
}

/* step: queries of one call of forward, a multiple of q_step; 0 is all. */
static void run_forward(struct msk_attention *p, const struct msk_attention_ops *ops, int64_t step) {
  size_t bytes = ops->pack_bytes(p);
  char *packed = check_alloc(bytes * HEADS);
  void *scratch = check_alloc(ops->forward_scratch(p));
  p->packed = packed;
  for (int64_t h = 0; h < HEADS; h++)
    ops->pack(p, h, packed + (size_t)h * bytes);
  step = step ? step : p->queries;
  for (int64_t h = 0; h < HEADS; h++)
    for (int64_t i = 0; i < p->queries; i += step)
      ops->forward(p, h, i, i + step < p->queries ? i + step : p->queries, scratch);
}

static void run_backward(struct msk_attention *p, const struct msk_attention_ops *ops) {
  void *scratch = check_alloc(ops->backward_scratch(p));
  for (int64_t h = 0; h < HEADS; h++)
    ops->backward(p, h, scratch);
}

/* Rows of a result without what lies between them. */
static float *gather(const float *x, int64_t ld, const int64_t *rows, int64_t n, int64_t width) {
  float *y = check_alloc_f32(n * width);
  for (int64_t i = 0; i < n; i++)
    memcpy(y + i * width, x + row_of(rows, i) * ld, (size_t)width * sizeof *y);
  return y;
}

/* Rows that are not in the table, and the room after each row, must be as they were. */
static int untouched(const float *x, int64_t ld, const int64_t *rows, int64_t n, int64_t total,
                     int64_t width) {
  char *used = calloc((size_t)total, 1);
  int good = 1;
  for (int64_t i = 0; i < n; i++)
    used[row_of(rows, i)] = 1;
  for (int64_t i = 0; i < total; i++)
    for (int64_t c = used[i] ? width : 0; c < ld; c++) {
      uint32_t bits;
      memcpy(&bits, x + i * ld + c, sizeof bits);
      good &= bits == 0xffffffffu;
    }
  free(used);
  return good;
}

static void compare(const struct problem *x, const float *got, int64_t ld, int of_keys, const double *want,
                    double tolerance, const char *what, const char *set) {
  const struct msk_attention *p = &x->p;
  int64_t n = of_keys ? p->keys : p->queries, width = HEADS * p->head_dim;
  const int64_t *rows = of_keys ? p->k_rows : p->q_rows;
  const char *precision = tolerance < 1e-4 ? "f32" : "bf16";
  check_relative_l2(gather(got, ld, rows, n, width), want, n * width, tolerance * x->slack,
                    "%s %s %s of %lld queries, %lld keys x %lld%s", set, precision, what,
                    (long long)p->queries, (long long)p->keys, (long long)p->head_dim,
                    rows ? ", tables" : "");
  if (!untouched(got, ld, rows, n, of_keys ? x->k_total : x->q_total, width))
    check_ok(0, "%s %s %s writes outside its rows", set, precision, what);
}

static double largest(const float *x, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++)
    most = fabs(x[i]) <= most ? most : fabs(x[i]);
  return most;
}

/* Difference of logarithms: relative to one where they are small. */
static double farthest(const float *got, const double *want, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) {
    double difference = fabs(got[i] - want[i]) / (1 + fabs(want[i]));
    most = difference <= most ? most : difference;
  }
  return most;
}

static void check_one(struct problem *x, const struct msk_attention_ops *ops, const char *set) {
  struct msk_attention *p = &x->p;
  double tolerance = ops->precision == MSK_PRECISION_F32 ? TOLERANCE_F32 : TOLERANCE_BF16;
  int64_t width = HEADS * p->head_dim, step = ops->q_step * (1 + check_below(3));
  float *lse, *whole;
  outputs(x);
  run_forward(p, ops, 0);
  compare(x, p->o, p->o_ld, 0, x->o, tolerance, "o", set);
  lse = gather(p->lse, HEADS, p->q_rows, p->queries, HEADS);
  check_ok(farthest(lse, x->lse, p->queries * HEADS) <= 2 * tolerance * x->slack, "%s lse", set);
  if (!untouched(p->lse, HEADS, p->q_rows, p->queries, x->q_total, HEADS))
    check_ok(0, "%s lse writes outside its rows", set);
  whole = p->o;
  p->o = buffer(x->q_total, p->o_ld, 0);
  run_forward(p, ops, step);
  check_bytes(p->o, whole, (size_t)(x->q_total * p->o_ld) * sizeof *whole, "%s o in ranges of %lld", set,
              (long long)step);
  run_backward(p, ops);
  compare(x, p->dv, p->dv_ld, 1, x->dv, tolerance, "dv", set);
  if (p->keys == 1) { /* the softmax is constant: both are rounding errors of dP - rowsum (dO o) */
    double bound = tolerance * p->head_dim * 4;
    check_ok(largest(gather(p->dq, p->dq_ld, p->q_rows, p->queries, width), p->queries * width) <= bound &&
                 largest(gather(p->dk, p->dk_ld, p->k_rows, 1, width), width) <= bound * sqrt(p->queries),
             "%s dq and dk of one key are nothing", set);
  } else {
    compare(x, p->dq, p->dq_ld, 0, x->dq, tolerance, "dq", set);
    compare(x, p->dk, p->dk_ld, 1, x->dk, tolerance, "dk", set);
  }
}

static void check_size(int64_t queries, int64_t keys, int64_t dim, int tables, double spread) {
  struct problem x = make(queries, keys, dim, tables, spread);
  unsigned sets[8];
  int n = check_sets(sets);
  solve(&x);
  for (int i = 0; i < n; i++) {
    struct msk_attention_ops ops[2];
    msk_attention_init(&ops[0], &ops[1], sets[i]);
    if (!sets[i] && queries * keys * dim > 6000000)
      continue;
    for (int precision = 0; precision < 2; precision++)
      check_one(&x, &ops[precision], check_set_name(sets[i]));
  }
  release(&x);
}

/* Scores to +-1e4 and more: one key takes all the weight; nothing may overflow. Powers of two, so that bf16
 * is exact. */
static void check_extremes(int64_t queries, int64_t keys, int64_t dim) {
  unsigned sets[8];
  int n = check_sets(sets);
  for (int equal = 0; equal < 2; equal++) {
    struct problem x = make(queries, keys, dim, 0, 1);
    float *q = buffer(queries, x.p.q_ld, 1), *k = buffer(keys, x.p.k_ld, 1);
    memset(q, 0, (size_t)(queries * x.p.q_ld) * sizeof *q);
    memset(k, 0, (size_t)(keys * x.p.k_ld) * sizeof *k);
    for (int64_t h = 0; h < HEADS; h++) {
      for (int64_t i = 0; i < queries; i++)
        q[i * x.p.q_ld + h * dim + 1] = equal ? 128.0f : i % 2 ? 512.0f : -512.0f;
      for (int64_t j = 0; j < keys; j++)
        k[j * x.p.k_ld + h * dim + 1] = equal ? 128.0f : (float)((j * 37 % keys) * (j % 2 ? 1 : -1));
    }
    x.p.q = q;
    x.p.k = k;
    x.p.scale = 1;
    solve(&x);
    for (int i = 0; i < n; i++) {
      struct msk_attention_ops ops[2];
      msk_attention_init(&ops[0], &ops[1], sets[i]);
      for (int precision = 0; precision < 2; precision++) {
        double tolerance = precision ? TOLERANCE_BF16 : TOLERANCE_F32;
        float *dq;
        outputs(&x);
        run_forward(&x.p, &ops[precision], 0);
        compare(&x, x.p.o, x.p.o_ld, 0, x.o, tolerance, equal ? "o, equal scores" : "o, scores beyond 1e4",
                check_set_name(sets[i]));
        run_backward(&x.p, &ops[precision]);
        dq = gather(x.p.dq, x.p.dq_ld, NULL, queries, HEADS * dim);
        check_ok(isfinite(largest(dq, queries * HEADS * dim)), "%s gradient is finite",
                 check_set_name(sets[i]));
      }
    }
    release(&x);
  }
}

struct bench {
  struct msk_attention p;
  const struct msk_attention_ops *ops;
  void *packed, *scratch;
};

static void bench_forward(void *data) {
  struct bench *b = data;
  b->ops->pack(&b->p, 0, b->packed);
  b->ops->forward(&b->p, 0, 0, b->p.queries, b->scratch);
}

static void bench_backward(void *data) {
  struct bench *b = data;
  b->ops->backward(&b->p, 0, b->scratch);
}

static void bench(void) {
  static const int64_t shapes[][3] = {{48, 48, 64},     {105, 105, 64},    {540, 20, 64},   {540, 540, 64},
                                      {2160, 2160, 64}, {2550, 2550, 128}, {2550, 512, 128}};
  unsigned sets[8];
  int n = check_sets(sets);
  for (int i = 1; i < n; i++)
    for (int precision = 0; precision < 2; precision++)
      for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++) {
        struct msk_attention_ops ops[2], below[2];
        struct problem x = make(shapes[shape][0], shapes[shape][1], shapes[shape][2], 0, 1);
        struct bench b = {.p = x.p};
        double flops = 4.0 * (double)x.p.queries * (double)x.p.keys * (double)x.p.head_dim;
        char name[96];
        msk_attention_init(&ops[0], &ops[1], sets[i]);
        msk_attention_init(&below[0], &below[1], sets[i - 1]);
        outputs(&x);
        b.p = x.p;
        b.ops = &ops[precision];
        b.packed = check_alloc(b.ops->pack_bytes(&b.p));
        b.p.packed = b.packed;
        b.scratch = check_alloc(b.ops->forward_scratch(&b.p));
        for (int back = 0; back < 2; back++) {
          if (back)
            b.scratch = check_alloc(b.ops->backward_scratch(&b.p));
          snprintf(name, sizeof name, "%s %s %s %lldx%lldx%lld", check_set_name(sets[i]),
                   precision ? "bf16" : "f32", back ? "backward" : "forward", (long long)x.p.queries,
                   (long long)x.p.keys, (long long)x.p.head_dim);
          if (back ? b.ops->backward != below[precision].backward
                   : b.ops->forward != below[precision].forward)
            check_bench(name, check_time(back ? bench_backward : bench_forward, &b),
                        back ? 2.5 * flops : flops,
                        4.0 * (double)((back ? 4 : 2) * (x.p.queries + x.p.keys) * x.p.head_dim));
          else if (back)
            continue;
          else
            bench_forward(&b);
        }
        check_free_all();
      }
}

int main(int argc, char **argv) {
  static const int64_t lengths[] = {1, 5, 17, 48, 105, 130, 541}, dims[] = {8, 16, 64, 96, 128, 256};
  check_begin(argc, argv);
  if (check_bench_wanted()) {
    bench();
    return check_end();
  }
  for (int i = 0; i < 7; i++)
    for (int j = 0; j < 7; j++)
      check_size(lengths[i], lengths[j], dims[(i * 5 + j) % 6], (i + j) % 2, 1);
  for (int i = 0; i < 6; i++) {
    check_size(17, 105, dims[i], 1, 2);
    check_size(130, 48, dims[i], 0, 1);
  }
  check_size(48, 541, 40, 1, 15); /* sharp: the running maximum moves */
  check_extremes(37, 300, 16);
  return check_end();
}
