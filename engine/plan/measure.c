/* Rates of this machine: small networks of random weights, a codec and a video file, each run a few times.
 *
 * Whole passes are timed, not kernels, so that what lies between the kernels is in the figures. The cost of a
 * pass is taken as layers x fixed + products / rate + attention / rate; three lengths of a dense network give
 * the three unknowns, and 3D-DSA is what a pass with it takes beyond them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "msk-cpu.h"
#include "plan/measure-private.h"
#include "train/optimizer.h"
#include "train/report.h"

#define FORWARD_SECONDS 0.25
#define TRAIN_SECONDS 0.75

static double held(double rate, double low, double high) {
  return rate < low ? low : rate > high ? high : rate;
}

/* What a dense pass takes: fixed + product / rate + dense / rate. */
struct solved {
  double fixed, product, dense;
};

/* From a short and a long pass, nothing fixed. Noise must not make a rate negative or endless. */
static struct solved solve_two(const struct ms_reading *a, const struct ms_reading *b) {
  double whole = (b->work.product + b->work.dense) / b->seconds;
  double determinant = a->work.product * b->work.dense - b->work.product * a->work.dense;
  double p = (a->seconds * b->work.dense - b->seconds * a->work.dense) / determinant;
  double d = (a->work.product * b->seconds - b->work.product * a->seconds) / determinant;
  return (struct solved){.product = p > 0 ? held(1 / p, whole / 4, whole * 4) : whole,
                         .dense = d > 0 ? held(1 / d, whole / 4, whole * 4) : whole};
}

/* From a short, a middle and a long pass: the three unknowns by elimination; where noise makes one of them
 * negative, two passes with nothing fixed. */
static struct solved solve_three(const struct ms_reading r[3]) {
  struct ms_reading a = {.seconds = r[1].seconds - r[0].seconds},
                    b = {.seconds = r[2].seconds - r[0].seconds};
  double determinant, p, d, fixed;
  a.work.product = r[1].work.product - r[0].work.product;
  a.work.dense = r[1].work.dense - r[0].work.dense;
  b.work.product = r[2].work.product - r[0].work.product;
  b.work.dense = r[2].work.dense - r[0].work.dense;
  determinant = a.work.product * b.work.dense - b.work.product * a.work.dense;
  p = (a.seconds * b.work.dense - b.seconds * a.work.dense) / determinant;
  d = (a.work.product * b.seconds - b.work.product * a.seconds) / determinant;
  fixed = r[0].seconds - r[0].work.product * p - r[0].work.dense * d;
  if (p <= 0 || d <= 0 || fixed < 0)
    return solve_two(&r[0], &r[2]);
  return (struct solved){fixed, 1 / p, 1 / d};
}

/* What a pass takes beyond the rest is 3D-DSA. */
static double solve_slide(const struct ms_reading *r, const struct solved *rest) {
  double whole = (r->work.product + r->work.slide) / r->seconds;
  double seconds = r->seconds - rest->fixed - r->work.product / rest->product;
  return seconds > 0 ? held(r->work.slide / seconds, whole / 20, whole) : whole;
}

static const struct ms_probe_shape small_shape = {
    .dim = 256, .ffn = 1024, .heads = 4, .layers = 4, .text_dim = 128, .text_len = 24};

static struct ms_probe_shape small_probe(int t, int y, int x, enum ms_attention_kind kind, int training) {
  struct ms_probe_shape shape = small_shape;
  shape.lattice[0] = t;
  shape.lattice[1] = y;
  shape.lattice[2] = x;
  shape.kind = kind;
  shape.training = training;
  return shape;
}

static int measure_forward(struct ms_measure *m, struct ms_rates *rates) {
  const struct ms_probe_shape shapes[] = {
      small_probe(9, 8, 12, MS_ATTENTION_DENSE, 0), small_probe(9, 16, 24, MS_ATTENTION_DENSE, 0),
      small_probe(9, 24, 40, MS_ATTENTION_DENSE, 0), small_probe(5, 32, 48, MS_ATTENTION_DSA, 0)};
  struct ms_layer_rates *small = &rates->layers[0];
  struct ms_reading r[4];
  struct solved solved;
  int code = ms_probes_read(m, shapes, 4, FORWARD_SECONDS, r);
  if (code < 0)
    return code;
  solved = solve_three(r);
  rates->layer_seconds = solved.fixed / small_shape.layers;
  small->dim = small_shape.dim;
  small->product = solved.product;
  small->dense = solved.dense;
  small->slide = solve_slide(&r[3], &solved);
  return 0;
}

/* Training is taken to be slower than the forward pass by the same factor in products and dense attention:
 * passes long enough to tell them apart would take seconds. What a short one takes beyond that are the
 * gradients of all weights. */
static int measure_training(struct ms_measure *m, struct ms_rates *rates) {
  const struct ms_probe_shape shapes[] = {small_probe(9, 8, 12, MS_ATTENTION_DENSE, 1),
                                          small_probe(9, 16, 24, MS_ATTENTION_DENSE, 1),
                                          small_probe(5, 24, 32, MS_ATTENTION_DSA, 1)};
  struct ms_layer_rates *small = &rates->layers[0];
  struct ms_reading r[3];
  struct solved solved;
  double as_forward[2], slower;
  int code = ms_probes_read(m, shapes, 3, TRAIN_SECONDS, r);
  if (code < 0)
    return code;
  for (int i = 0; i < 2; i++)
    as_forward[i] = r[i].work.product / small->product + r[i].work.dense / small->dense;
  slower = held((r[1].seconds - r[0].seconds) / (as_forward[1] - as_forward[0]), 0.8, 3);
  solved = (struct solved){.fixed = r[0].seconds - slower * as_forward[0],
                           .product = small->product / slower,
                           .dense = small->dense / slower};
  solved.fixed = solved.fixed > 1e-6 ? solved.fixed : 1e-6;
  rates->gradient = r[0].parameters / solved.fixed;
  small->train_product = solved.product;
  small->train_dense = solved.dense;
  small->train_slide = solve_slide(&r[2], &solved);
  return 0;
}

/* Heads of large models have 128 channels: two layers with such heads, narrow enough that attention counts.
 */
static int measure_wide_heads(struct ms_measure *m, struct ms_rates *rates) {
  static const struct ms_probe_shape shape = {
      .dim = 512, .ffn = 1024, .heads = 4, .layers = 2, .text_dim = 128, .text_len = 24};
  struct ms_probe_shape shapes[] = {shape, shape};
  const int lattices[2][3] = {{9, 12, 16}, {9, 24, 40}};
  const struct ms_layer_rates *small = &rates->layers[0];
  struct ms_reading r[2];
  int code;
  for (int i = 0; i < 2; i++)
    memcpy(shapes[i].lattice, lattices[i], sizeof lattices[i]);
  if ((code = ms_probes_read(m, shapes, 2, 0, r)) < 0)
    return code;
  rates->layers[1].dense = held(solve_two(&r[0], &r[1]).dense, small->dense, 4 * small->dense);
  return 0;
}

/* One layer of 1536 channels. Its training is taken to lag behind its forward pass as the small one's does:
 * timing that would take longer than all the rest. */
static int measure_large(struct ms_measure *m, struct ms_rates *rates) {
  static const struct ms_probe_shape shape = {.dim = 1536,
                                              .ffn = 8960,
                                              .heads = 12,
                                              .layers = 1,
                                              .text_dim = 512,
                                              .text_len = 512,
                                              .lattice = {9, 16, 24}};
  const struct ms_layer_rates *small = &rates->layers[0];
  struct ms_layer_rates *large = &rates->layers[1];
  struct solved solved = {0};
  struct ms_probe_shape shapes[2];
  struct ms_reading r[2];
  double whole;
  int code = measure_wide_heads(m, rates);
  if (code < 0)
    return code;
  shapes[0] = shapes[1] = shape;
  shapes[1].kind = MS_ATTENTION_DSA;
  if ((code = ms_probes_read(m, shapes, 2, 0, r)) < 0)
    return code;
  large->dim = shape.dim;
  whole = (r[0].work.product + r[0].work.dense) / r[0].seconds;
  solved.product =
      held(r[0].work.product / (r[0].seconds - r[0].work.dense / large->dense), whole / 4, whole * 4);
  large->product = solved.product;
  large->slide = held(solve_slide(&r[1], &solved), small->slide, 4 * small->slide);
  large->train_product = large->product * small->train_product / small->product;
  large->train_dense = large->dense * small->train_dense / small->dense;
  large->train_slide = large->slide * small->train_slide / small->slide;
  rates->load = 2 * r[0].parameters / r[0].load_seconds;
  return 0;
}

/* Bytes that AdamW with an average reads and writes a parameter: gradient, master in two words, two moments,
 * average. */
#define UPDATE_BYTES (4 + 2 * (2 + 2 + 4 + 4 + 4))

struct update {
  struct ms_optimizer optimizer;
  struct ms_probe probe;
};

static int run_update(void *data, struct ms_error *error) {
  struct update *u = data;
  return ms_optimizer_step(&u->optimizer, u->probe.grad, 1e-6, NULL, error);
}

static int run_pack(void *data, struct ms_error *error) {
  struct update *u = data;
  return ms_dit_prepare(u->probe.dit, MSK_PRECISION_BF16, 1, error);
}

static int measure_update(struct ms_measure *m, struct ms_rates *rates) {
  static const struct ms_probe_shape shape = {.dim = 256,
                                              .ffn = 1024,
                                              .heads = 4,
                                              .layers = 6,
                                              .text_dim = 128,
                                              .text_len = 24,
                                              .lattice = {1, 2, 2},
                                              .training = 1};
  struct ms_optimizer_params settings = ms_optimizer_params_default();
  struct update u = {0};
  double seconds, total = 0;
  int code = ms_measure_stopped(m);
  settings.ema = 0.99f;
  if (code == 0)
    code = ms_probe_open(m, &shape, &u.probe);
  if (code == 0) {
    total = (double)ms_dit_params(u.probe.dit)->total;
    code = ms_optimizer_open(&u.optimizer, &m->compute, ms_dit_params(u.probe.dit), &settings, m->error);
  }
  if (code == 0 && (code = ms_measure_best(run_update, &u, &seconds, m->error)) == 0)
    rates->memory = UPDATE_BYTES * total / seconds;
  if (code == 0 && (code = ms_measure_best(run_pack, &u, &seconds, m->error)) == 0)
    rates->pack = 2 * total / seconds; /* both directions */
  ms_optimizer_release(&u.optimizer);
  ms_probe_close(&u.probe);
  return code;
}

int ms_rates_measure(struct ms_rates *rates, const struct ms_machine *machine, const char *folder,
                     const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_rates found = {.version = MS_PLAN_VERSION};
  struct ms_measure m = {.hooks = hooks, .folder = folder, .error = error};
  int code = ms_compute_open(&m.compute, machine->threads, msk_cpu_detect(), error);
  if (code < 0)
    return code;
  ms_pool_set_cancel(m.compute.pool, hooks ? hooks->cancel : NULL);
  ms_rates_processor(found.name, sizeof found.name);
  found.threads = ms_pool_threads(m.compute.pool);
  found.peak = ms_train_peak(&m.compute);
  code = measure_forward(&m, &found);
  if (code == 0)
    code = measure_training(&m, &found);
  if (code == 0)
    code = measure_large(&m, &found);
  if (code == 0)
    code = measure_update(&m, &found);
  if (code == 0)
    code = ms_measure_disk(&m, &found);
  if (code == 0)
    code = ms_measure_codec(&m, &found);
  if (code == 0)
    code = ms_measure_video(&m, &found);
  if (code == 0)
    *rates = found;
  ms_compute_release(&m.compute);
  return code;
}
