/* Deformable slide attention: every instruction set against the C version, values and gradients, in both
 * precisions; ranges cut anywhere (forward) and at frames (backward) must give the same bits. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "msk-cpu.h"
#include "msk-slide.h"

/* Sums of at most a few hundred float32 terms of random sign, rounding 6e-8: single operators 2e-6, gradients
 * 1e-5. */
#define VALUE_TOLERANCE 2e-6
#define GRADIENT_TOLERANCE 1e-5
/* bfloat16 products: normalised mean-square error 5e-4, as a relative L2 its root. */
#define BF16_TOLERANCE 2.24e-2

enum offsets { NONE, ZERO, SMALL, FULL, HUGE_Z };

struct shape {
  int64_t lattice[3], window[3], heads, head_dim, groups;
  enum msk_slide_mode mode;
  float bounds[3];
  enum offsets offsets;
};

static const char *const offset_names[] = {"none", "zero", "small", "full", "saturated"};

static const struct shape shapes[] = {
    {{3, 4, 6}, {3, 4, 5}, 4, 64, 4, MSK_SLIDE_POINT, {1, 4, 4}, ZERO},
    {{3, 4, 6}, {3, 4, 5}, 4, 64, 4, MSK_SLIDE_POINT, {1, 4, 4}, SMALL},
    {{5, 8, 12}, {3, 5, 5}, 2, 64, 2, MSK_SLIDE_POINT, {1, 4, 4}, NONE},
    {{5, 8, 12}, {3, 5, 5}, 2, 64, 2, MSK_SLIDE_POINT, {1, 4, 4}, SMALL},
    {{9, 6, 10}, {3, 5, 5}, 2, 64, 2, MSK_SLIDE_POINT, {1, 4, 4}, FULL},
    {{4, 9, 21}, {3, 5, 5}, 2, 64, 2, MSK_SLIDE_SHIFT, {1, 4, 4}, FULL},
    {{4, 9, 21}, {3, 5, 5}, 3, 40, 1, MSK_SLIDE_POINT, {1, 4, 4}, FULL},
    {{2, 7, 70}, {2, 5, 5}, 2, 32, 1, MSK_SLIDE_POINT, {1, 4, 4}, SMALL},
    {{2, 7, 70}, {2, 5, 5}, 2, 32, 1, MSK_SLIDE_POINT, {1, 4, 4}, FULL},
    {{2, 6, 97}, {1, 3, 5}, 2, 16, 2, MSK_SLIDE_SHIFT, {1, 4, 4}, FULL},
    {{1, 5, 7}, {1, 3, 3}, 4, 24, 2, MSK_SLIDE_POINT, {1, 2, 2.5f}, FULL},
    {{2, 3, 1}, {2, 3, 1}, 2, 8, 1, MSK_SLIDE_POINT, {1, 2, 2}, FULL},
    {{1, 1, 1}, {1, 1, 1}, 1, 5, 1, MSK_SLIDE_POINT, {1, 2, 2}, SMALL},
    {{7, 1, 3}, {3, 1, 3}, 6, 17, 3, MSK_SLIDE_SHIFT, {2, 1, 3}, FULL},
    {{3, 4, 5}, {3, 4, 5}, 2, 128, 1, MSK_SLIDE_POINT, {0.5f, 20, 9}, FULL},
    {{6, 6, 33}, {3, 3, 3}, 2, 96, 2, MSK_SLIDE_POINT, {1, 3, 4}, HUGE_Z},
    {{3, 5, 40}, {3, 3, 3}, 2, 32, 2, MSK_SLIDE_SHIFT, {1, 30, 30}, FULL},
};

struct data {
  struct msk_slide p;
  int64_t tokens, channels, offsets; /* floats of z a token */
  float *q, *k, *v, *z, *d_o;
};

struct results {
  float *o, *lse, *dq, *dk, *dv, *dz;
};

/* Keeps Delta away from cell borders, where rounding decides the cell and with it dz. */
static float away_from_borders(double z, double bound) {
  double delta = bound * tanh(z / bound), gap = delta - round(delta);
  if (fabs(gap) < 2e-3 && fabs(delta) < bound * 0.999)
    return (float)(z + (gap < 0 ? -1 : 1) * 1e-2 * (1 + fabs(z)));
  return (float)z;
}

static void make(struct data *d, const struct shape *s) {
  struct msk_slide *p = &d->p;
  int64_t points = s->window[0] * s->window[1] * s->window[2], z_ld;
  memset(d, 0, sizeof *d);
  for (int a = 0; a < 3; a++) {
    p->lattice[a] = s->lattice[a];
    p->window[a] = s->window[a];
    p->bounds[a] = s->bounds[a];
  }
  p->heads = s->heads;
  p->head_dim = s->head_dim;
  p->groups = s->groups;
  p->mode = s->mode;
  p->scale = 1 / sqrtf((float)s->head_dim);
  d->tokens = s->lattice[0] * s->lattice[1] * s->lattice[2];
  d->channels = s->heads * s->head_dim;
  d->offsets = s->groups * (s->mode == MSK_SLIDE_POINT ? points : 1) * 3;
  p->q_ld = d->channels + 3;
  p->k_ld = d->channels + 16;
  p->v_ld = p->o_ld = p->d_o_ld = p->dq_ld = p->dk_ld = p->dv_ld = d->channels;
  z_ld = p->z_ld = p->dz_ld = d->offsets + 1;
  d->q = check_alloc_f32(d->tokens * p->q_ld);
  d->k = check_alloc_f32(d->tokens * p->k_ld);
  d->v = check_alloc_f32(d->tokens * p->v_ld);
  d->d_o = check_alloc_f32(d->tokens * p->d_o_ld);
  for (int64_t i = 0; i < d->tokens; i++) {
    check_fill(d->q + i * p->q_ld, d->channels, 1.5);
    check_fill(d->k + i * p->k_ld, d->channels, 1);
    check_fill(d->v + i * p->v_ld, d->channels, 1);
    check_fill(d->d_o + i * p->d_o_ld, d->channels, 1);
  }
  if (s->offsets != NONE) {
    d->z = check_alloc_f32(d->tokens * z_ld);
    for (int64_t i = 0; i < d->tokens; i++)
      for (int64_t j = 0; j < d->offsets; j++) {
        double bound = s->bounds[j % 3], z = 0;
        if (s->offsets == SMALL)
          z = check_uniform(-0.3, 0.3);
        else if (s->offsets == FULL)
          z = bound * atanh(check_uniform(-0.99, 0.99));
        else if (s->offsets == HUGE_Z)
          z = check_uniform(0, 1) < 0.3 ? check_uniform(-1, 1) : check_uniform(0, 1) < 0.5 ? -1e4 : 1e4;
        d->z[i * z_ld + j] = s->offsets == ZERO ? 0 : away_from_borders(z, bound);
      }
  }
  p->q = d->q;
  p->k = d->k;
  p->v = d->v;
  p->z = d->z;
  p->d_o = d->d_o;
}

static void new_results(struct data *d, struct results *r) {
  struct msk_slide *p = &d->p;
  p->o = r->o = check_alloc_f32(d->tokens * d->channels);
  p->lse = r->lse = check_alloc_f32(d->tokens * p->heads);
  p->dq = r->dq = check_alloc_f32(d->tokens * d->channels);
  p->dk = r->dk = check_alloc_f32(d->tokens * d->channels);
  p->dv = r->dv = check_alloc_f32(d->tokens * d->channels);
  p->dz = r->dz = check_alloc_f32(d->tokens * p->dz_ld);
  memset(r->dk, 0, (size_t)(d->tokens * d->channels) * sizeof(float));
  memset(r->dv, 0, (size_t)(d->tokens * d->channels) * sizeof(float));
}

static void prepare(const struct msk_slide_ops *ops, struct data *d, void **scratch) {
  struct msk_slide *p = &d->p;
  size_t bytes = ops->pack_bytes(p), forward = ops->forward_scratch(p), backward = ops->backward_scratch(p);
  *scratch = check_alloc(forward > backward ? forward : backward);
  p->packed = NULL;
  if (bytes) {
    char *packed = check_alloc(bytes * (size_t)p->groups);
    for (int64_t group = 0; group < p->groups; group++)
      ops->pack(p, group, packed + bytes * (size_t)group);
    p->packed = packed;
  }
}

/* cut: ranges of random length forward, frame by frame backward. */
static void run(const struct msk_slide_ops *ops, struct data *d, struct results *r, int cut) {
  struct msk_slide *p = &d->p;
  void *scratch;
  int64_t frame = p->lattice[1] * p->lattice[2];
  new_results(d, r);
  prepare(ops, d, &scratch);
  for (int64_t group = 0; group < p->groups; group++) {
    for (int64_t i = 0, next; i < d->tokens; i = next) {
      next = cut ? i + 1 + check_below(d->tokens) : d->tokens;
      next = next < d->tokens ? next : d->tokens;
      ops->forward(p, group, i, next, scratch);
    }
    for (int64_t i = 0; i < d->tokens; i += cut ? frame : d->tokens)
      ops->backward(p, group, i, cut ? i + frame : d->tokens, scratch);
  }
}

/* dz has a gap between tokens that nobody writes. */
static void close_gaps(const struct data *d, float *dz) {
  for (int64_t i = 0; i < d->tokens; i++)
    memmove(dz + i * d->offsets, dz + i * d->p.dz_ld, (size_t)d->offsets * sizeof(float));
}

/* dq, to which the keys give the other factor, or dk. A single point has the whole weight whatever its score,
 * so that these are differences of what is equal: there the terms are the measure. */
static void check_score_gradient(const struct data *d, const float *got, const float *want,
                                 const float *factor, double tolerance, const char *name, const char *what) {
  double off = 0, terms = 0, size = 0;
  if (d->tokens > 1) {
    check_relative_l2_f32(got, want, d->tokens * d->channels, tolerance, "%s %s", name, what);
    return;
  }
  for (int64_t c = 0; c < d->channels; c++) {
    off += ((double)got[c] - want[c]) * ((double)got[c] - want[c]);
    terms += fabs((double)d->d_o[c] * d->v[c]) * d->p.scale;
    size += (double)factor[c] * factor[c];
  }
  check_ok(sqrt(off) <= tolerance * terms * sqrt(size), "%s %s: %.2e of its terms", name, what,
           sqrt(off / size) / terms);
}

static void check_shape(const struct shape *s) {
  unsigned sets[8];
  int count = check_sets(sets);
  struct msk_slide_ops ops[2], below[2];
  struct data d;
  struct results want, got, cut;
  char name[160];
  make(&d, s);
  msk_slide_init(&ops[0], &ops[1], 0);
  run(&ops[0], &d, &want, 0);
  close_gaps(&d, want.dz);
  for (int i = 0; i < count; i++) {
    msk_slide_init(&below[0], &below[1], sets[i ? i - 1 : 0]);
    msk_slide_init(&ops[0], &ops[1], sets[i]);
    for (int b = 0; b < 2; b++) {
      if (i ? below[b].forward == ops[b].forward : b) /* this set adds nothing */
        continue;
      double value = b ? BF16_TOLERANCE : VALUE_TOLERANCE, gradient = b ? BF16_TOLERANCE : GRADIENT_TOLERANCE;
      int64_t n = d.tokens * d.channels;
      snprintf(name, sizeof name, "%s %s %ldx%ldx%ld window %ldx%ldx%ld %ldx%ld/%ld %s %s", ops[b].name,
               b ? "bf16" : "f32", s->lattice[0], s->lattice[1], s->lattice[2], s->window[0], s->window[1],
               s->window[2], s->heads, s->head_dim, s->groups, s->mode == MSK_SLIDE_POINT ? "point" : "shift",
               offset_names[s->offsets]);
      run(&ops[b], &d, &got, 0);
      close_gaps(&d, got.dz);
      check_relative_l2_f32(got.o, want.o, n, value, "%s o", name);
      check_relative_l2_f32(got.lse, want.lse, d.tokens * s->heads, value, "%s lse", name);
      check_score_gradient(&d, got.dq, want.dq, d.k, gradient, name, "dq");
      check_score_gradient(&d, got.dk, want.dk, d.q, gradient, name, "dk");
      check_relative_l2_f32(got.dv, want.dv, n, gradient, "%s dv", name);
      check_relative_l2_f32(got.dz, want.dz, d.tokens * d.offsets, gradient, "%s dz", name);
      run(&ops[b], &d, &cut, 1);
      close_gaps(&d, cut.dz);
      check_bytes(cut.o, got.o, (size_t)n * sizeof(float), "%s cut o", name);
      check_bytes(cut.lse, got.lse, (size_t)(d.tokens * s->heads) * sizeof(float), "%s cut lse", name);
      check_bytes(cut.dq, got.dq, (size_t)n * sizeof(float), "%s cut dq", name);
      check_bytes(cut.dk, got.dk, (size_t)n * sizeof(float), "%s cut dk", name);
      check_bytes(cut.dv, got.dv, (size_t)n * sizeof(float), "%s cut dv", name);
      check_bytes(cut.dz, got.dz, (size_t)(d.tokens * d.offsets) * sizeof(float), "%s cut dz", name);
    }
  }
  check_free_all();
}

struct bench {
  const struct msk_slide_ops *ops;
  struct data d;
  void *scratch;
};

static void bench_forward(void *data) {
  struct bench *b = data;
  for (int64_t group = 0; group < b->d.p.groups; group++) {
    if (b->d.p.packed)
      b->ops->pack(&b->d.p, group, (char *)b->d.p.packed + (size_t)group * b->ops->pack_bytes(&b->d.p));
    b->ops->forward(&b->d.p, group, 0, b->d.tokens, b->scratch);
  }
}

static void bench_backward(void *data) {
  struct bench *b = data;
  for (int64_t group = 0; group < b->d.p.groups; group++)
    b->ops->backward(&b->d.p, group, 0, b->d.tokens, b->scratch);
}

/* Rates count what direct sampling at zero offsets multiplies: 4 K D a token and head, backward 10 K D. */
static void bench_shape(const struct shape *s) {
  unsigned sets[8];
  int count = check_sets(sets);
  for (int i = 0; i < count; i++)
    for (int b = 0; b < 2; b++) {
      struct msk_slide_ops ops[2], below[2];
      struct bench bench;
      struct results r;
      char name[160];
      double units, seconds;
      msk_slide_init(&ops[0], &ops[1], sets[i]);
      if (i) {
        msk_slide_init(&below[0], &below[1], sets[i - 1]);
        if (below[b].forward == ops[b].forward)
          continue;
      }
      if (!i && (b || s->heads * s->head_dim > 256))
        continue;
      bench.ops = &ops[b];
      make(&bench.d, s);
      new_results(&bench.d, &r);
      prepare(&ops[b], &bench.d, &bench.scratch);
      units = (double)(s->window[0] * s->window[1] * s->window[2] * bench.d.tokens * bench.d.channels);
      for (int back = 0; back < 2; back++) {
        seconds = check_time(back ? bench_backward : bench_forward, &bench);
        snprintf(name, sizeof name, "%s %s %ldx%ldx%ld C %ld D %ld %s %s %.2f us/token",
                 back ? "backward" : "forward", ops[b].name, s->lattice[0], s->lattice[1], s->lattice[2],
                 bench.d.channels, s->head_dim, s->mode == MSK_SLIDE_POINT ? "point" : "shift",
                 offset_names[s->offsets], seconds / (double)bench.d.tokens * 1e6);
        check_bench(name, seconds, units * (back ? 10 : 4),
                    (double)bench.d.tokens * (double)bench.d.channels * (back ? 28 : 16));
      }
      check_free_all();
    }
}

static const struct shape bench_shapes[] = {
    {{9, 6, 10}, {3, 5, 5}, 4, 64, 4, MSK_SLIDE_POINT, {1, 4, 4}, ZERO},
    {{9, 6, 10}, {3, 5, 5}, 4, 64, 4, MSK_SLIDE_POINT, {1, 4, 4}, SMALL},
    {{9, 6, 10}, {3, 5, 5}, 4, 64, 4, MSK_SLIDE_POINT, {1, 4, 4}, FULL},
    {{5, 8, 12}, {3, 5, 5}, 4, 64, 4, MSK_SLIDE_POINT, {1, 4, 4}, SMALL},
    {{5, 8, 12}, {3, 5, 5}, 4, 64, 4, MSK_SLIDE_SHIFT, {1, 4, 4}, FULL},
    {{5, 17, 30}, {3, 5, 5}, 12, 128, 4, MSK_SLIDE_POINT, {1, 4, 4}, SMALL},
    {{5, 17, 30}, {3, 5, 5}, 12, 128, 4, MSK_SLIDE_POINT, {1, 4, 4}, FULL},
    {{3, 34, 120}, {3, 5, 5}, 4, 128, 4, MSK_SLIDE_POINT, {1, 4, 4}, SMALL},
    {{3, 34, 120}, {3, 5, 5}, 4, 128, 4, MSK_SLIDE_POINT, {1, 4, 4}, FULL},
};

int main(int argc, char **argv) {
  check_begin(argc, argv);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    check_shape(&shapes[i]);
  if (check_bench_wanted())
    for (size_t i = 0; i < sizeof bench_shapes / sizeof *bench_shapes; i++)
      bench_shape(&bench_shapes[i]);
  return check_end();
}
