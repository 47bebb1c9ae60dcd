/* Norms, rotary embedding, activations, the depthwise convolution and AdamW against ops.safetensors and
 * adamw.safetensors: values and gradients, every instruction set. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "msk-adamw.h"
#include "msk-conv.h"
#include "msk-cpu.h"
#include "msk-norm.h"
#include "weights/safetensors.h"

/* Relative L2 of single operators, and the largest error over the largest value, from the README beside the
 * fixtures. */
#define TOLERANCE 2e-6
#define LARGEST 1e-5

static struct ms_safetensors *file;
static const char *set;

static const struct ms_tensor_view *find(const char *op, const char *key) {
  char text[256];
  const struct ms_tensor_view *view;
  snprintf(text, sizeof text, "%s.%s", op, key);
  view = ms_safetensors_find(file, text);
  if (!view) {
    fprintf(stderr, "%s is missing\n", text);
    exit(99);
  }
  return view;
}

static float *load(const char *op, const char *key) {
  const struct ms_tensor_view *view = find(op, key);
  float *x = check_alloc_f32(view->count);
  ms_tensor_read_f32(view, x);
  return x;
}

static const char *metadata(const char *key) {
  const char *text = ms_safetensors_metadata(file, key);
  if (!text) {
    fprintf(stderr, "metadata %s is missing\n", key);
    exit(99);
  }
  return text;
}

/* Three numbers after op: "op.key" = "a,b,c". */
static void triple(const char *op, const char *key, int64_t out[3]) {
  char name[128];
  long long a, b, c;
  snprintf(name, sizeof name, "%s.%s", op, key);
  if (sscanf(metadata(name), "%lld,%lld,%lld", &a, &b, &c) != 3)
    exit(99);
  out[0] = a;
  out[1] = b;
  out[2] = c;
}

static float *zeros(int64_t n) {
  float *x = check_alloc_f32(n);
  memset(x, 0, (size_t)n * sizeof *x);
  return x;
}

static void compare(const char *op, const char *key, const float *got) {
  const struct ms_tensor_view *view = find(op, key);
  double *want = check_alloc((size_t)view->count * sizeof *want), error = 0, most = 0;
  ms_tensor_read_f64(view, want);
  for (int64_t i = 0; i < view->count; i++) {
    error = fmax(error, fabs(got[i] - want[i]));
    most = fmax(most, fabs(want[i]));
  }
  check_relative_l2(got, want, view->count, TOLERANCE, "%s.%s %s", op, key, set);
  check_ok(error <= LARGEST * most, "%s.%s %s: largest error %.1e of %.1e", op, key, set, error, most);
}

/* mul, add: names of what multiplies and what is added; rows of them are one or as many as x has. */
static void test_layer_norm(const struct msk_norm_ops *ops, const char *op, const char *mul, const char *add,
                            int one_plus) {
  const struct ms_tensor_view *view = find(op, "x"), *mod = find(op, mul);
  int64_t rows = view->dims[0], c = view->dims[1], n = view->count, mod_rows = mod->ndim == 2 ? 1 : rows;
  float *y = check_alloc_f32(n), *dx = check_alloc_f32(n), *dmul = zeros(mod->count),
        *dadd = zeros(mod->count);
  struct msk_layer_norm p = {
      .c = c,
      .eps = 1e-6f,
      .x = load(op, "x"),
      .x_ld = c,
      .scale = load(op, mul),
      .shift = load(op, add),
      .mod_ld = c,
      .mod_rows = mod_rows,
      .one_plus = one_plus,
      .y = y,
      .y_type = MSK_F32,
      .y_ld = c,
      .mean = check_alloc_f32(rows),
      .rstd = check_alloc_f32(rows),
      .dy = load(op, "dy"),
      .dy_ld = c,
      .dx = dx,
      .dx_ld = c,
  };
  char name[32];
  ops->layer_norm(&p, 0, rows);
  compare(op, "y", y);
  for (int64_t r = 0; r < rows; r += mod_rows)
    ops->layer_norm_backward(&p, r, r + mod_rows, dmul + r / mod_rows * c, dadd + r / mod_rows * c);
  compare(op, "d.x", dx);
  snprintf(name, sizeof name, "d.%s", mul);
  compare(op, name, dmul);
  snprintf(name, sizeof name, "d.%s", add);
  compare(op, name, dadd);
  check_free_all();
}

static void test_rms_norm(const struct msk_norm_ops *ops, const char *op) {
  const struct ms_tensor_view *view = find(op, "x");
  int64_t rows = view->dims[0], c = view->dims[1];
  float *y = check_alloc_f32(view->count), *dx = check_alloc_f32(view->count), *dweight = zeros(c);
  struct msk_rms_rope p = {.c = c,
                           .heads = 1,
                           .eps = 1e-6f,
                           .x = load(op, "x"),
                           .x_ld = c,
                           .weight = load(op, "weight"),
                           .y = y,
                           .y_ld = c,
                           .rstd = check_alloc_f32(rows),
                           .dy = load(op, "dy"),
                           .dy_ld = c,
                           .dx = dx,
                           .dx_ld = c};
  ops->rms_rope(&p, 0, rows);
  compare(op, "y", y);
  ops->rms_rope_backward(&p, 0, rows, dweight);
  compare(op, "d.x", dx);
  compare(op, "d.weight", dweight);
  check_free_all();
}

static void test_rope(const struct msk_norm_ops *ops, const char *op) {
  const struct ms_tensor_view *view = find(op, "x"), *table_view = find(op, "table");
  int64_t rows = view->dims[0], heads = view->dims[1], c = heads * view->dims[2], split[3], first = 0;
  float *y = check_alloc_f32(view->count), *dx = check_alloc_f32(view->count), *table = load(op, "table"),
        *parts[3];
  struct msk_rms_rope p = {.c = c,
                           .heads = heads,
                           .x = load(op, "x"),
                           .x_ld = c,
                           .y = y,
                           .y_ld = c,
                           .dy = load(op, "dy"),
                           .dy_ld = c,
                           .dx = dx,
                           .dx_ld = c};
  triple(op, "lattice", p.lattice);
  triple(op, "split", split);
  for (int part = 0; part < 3; part++) {
    int64_t positions = p.lattice[part], pairs = split[part], ld = table_view->dims[1];
    parts[part] = check_alloc_f32(positions * pairs * 2);
    for (int64_t i = 0; i < positions; i++)
      memcpy(parts[part] + i * pairs * 2, table + (i * ld + first) * 2, (size_t)pairs * 2 * sizeof(float));
    first += pairs;
  }
  p.rope_t = parts[0];
  p.rope_y = parts[1];
  p.rope_x = parts[2];
  p.pairs_t = (int)split[0];
  p.pairs_y = (int)split[1];
  p.pairs_x = (int)split[2];
  ops->rms_rope(&p, 0, rows);
  compare(op, "y", y);
  ops->rms_rope_backward(&p, 0, rows, NULL);
  compare(op, "d.x", dx);
  check_free_all();
}

static void test_activations(const struct msk_norm_ops *ops) {
  static const char *const names[] = {"gelu_tanh", "t5_gelu", "silu"};
  for (int i = 0; i < 3; i++) {
    int64_t n = find(names[i], "x")->count;
    float *x = load(names[i], "x"), *dy = load(names[i], "dy"), *y = check_alloc_f32(n),
          *dx = check_alloc_f32(n);
    if (i < 2) {
      ops->gelu(x, y, MSK_F32, n);
      ops->gelu_backward(x, MSK_F32, dy, dx, n);
    } else {
      ops->silu(x, y, n);
      ops->silu_backward(x, dy, dx, n);
    }
    compare(names[i], "y", y);
    compare(names[i], "d.x", dx);
    check_free_all();
  }
}

/* [C,positions] to [positions,C], or back. */
static float *turned(const float *x, int64_t rows, int64_t columns) {
  float *y = check_alloc_f32(rows * columns);
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < columns; c++)
      y[c * rows + r] = x[r * columns + c];
  return y;
}

static void test_l2_norm(const struct msk_norm_ops *ops, const char *op, int backward) {
  const struct ms_tensor_view *view = find(op, "x");
  int64_t c = view->dims[0], positions = view->count / c;
  float *x = turned(load(op, "x"), c, positions), *gamma = load(op, "gamma"),
        *y = check_alloc_f32(view->count);
  ops->l2_norm(x, gamma, c, positions, 0, y, MSK_F32);
  compare(op, "y", turned(y, positions, c));
  if (backward) {
    float *dy = turned(load(op, "dy"), c, positions), *dx = check_alloc_f32(view->count), *dgamma = zeros(c);
    ops->l2_norm_backward(x, gamma, c, positions, 0, dy, dx, 0, dgamma);
    compare(op, "d.x", turned(dx, positions, c));
    compare(op, "d.gamma", dgamma);
  } else {
    for (int64_t j = 0; j < c; j++) /* the position whose channels are all zero */
      check_ok(y[j] == 0, "%s %s: zero stays zero", op, set);
  }
  check_free_all();
}

static void test_depthwise(const struct msk_conv_ops *ops) {
  const char *op = "dwconv3d";
  const struct ms_tensor_view *view = find(op, "x");
  int64_t c = view->dims[0], positions = view->count / c, lines = view->dims[1] * view->dims[2];
  float *y = check_alloc_f32(view->count), *dx = check_alloc_f32(view->count), *dweight = zeros(27 * c);
  float *dbias = zeros(c);
  struct msk_depthwise p = {
      .lattice = {view->dims[1], view->dims[2], view->dims[3]},
      .c = c,
      .x = turned(load(op, "x"), c, positions),
      .weight = load(op, "weight"),
      .bias = load(op, "bias"),
      .y = y,
      .dy = turned(load(op, "dy"), c, positions),
      .dx = dx,
  };
  void *scratch = check_alloc(ops->depthwise_scratch(&p));
  ops->depthwise(&p, 0, lines, scratch);
  compare(op, "y", turned(y, positions, c));
  ops->depthwise_backward_x(&p, 0, lines, scratch);
  compare(op, "d.x", turned(dx, positions, c));
  ops->depthwise_backward_w(&p, 0, lines, 0, c, dweight, dbias);
  compare(op, "d.weight", dweight);
  compare(op, "d.bias", dbias);
  check_free_all();
}

/* The steps of torch.optim.AdamW, with float32 weights and with the split master. */
static void test_adamw(const struct msk_adamw_ops *ops, int split) {
  const struct ms_tensor_view *view = ms_safetensors_find(file, "param0"),
                              *grads = ms_safetensors_find(file, "grads");
  int64_t n = view->count, steps = grads->dims[0];
  float *w = check_alloc_f32(n), *m = zeros(n), *v = zeros(n), *all = check_alloc_f32(grads->count);
  double *lr = check_alloc((size_t)steps * sizeof *lr);
  uint16_t *hi = check_alloc((size_t)n * sizeof *hi), *lo = check_alloc((size_t)n * sizeof *lo);
  struct msk_adamw p = {.beta1 = atof(metadata("beta1")),
                        .beta2 = atof(metadata("beta2")),
                        .eps = atof(metadata("eps")),
                        .decay = atof(metadata("weight_decay")),
                        .grad_scale = 1};
  int compared = 0;
  ms_tensor_read_f32(view, w);
  ms_tensor_read_f32(grads, all);
  ms_tensor_read_f64(ms_safetensors_find(file, "lr"), lr);
  ops->split(w, hi, lo, n);
  for (int64_t step = 1; step <= steps; step++) {
    const float *grad = all + (step - 1) * n;
    char name[32];
    p.lr = lr[step - 1];
    p.correction1 = 1 - pow(p.beta1, (double)step);
    p.correction2 = 1 - pow(p.beta2, (double)step);
    if (split) {
      ops->step_split(&p, grad, MSK_F32, hi, lo, m, v, n);
      ops->join(hi, lo, w, n);
    } else {
      ops->step_f32(&p, grad, w, m, v, n);
    }
    snprintf(name, sizeof name, "step%d.param", (int)step);
    if (!ms_safetensors_find(file, name))
      continue;
    snprintf(name, sizeof name, "step%d", (int)step);
    compare(name, "param", w);
    compare(name, "m", m);
    compare(name, "v", v);
    compared++;
  }
  check_ok(compared > 0, "adamw %s %s: %d steps compared", split ? "split" : "f32", set, compared);
  check_free_all();
}

static void open_file(const char *name) {
  const char *folder = getenv("MEGASLIDE_FIXTURES");
  struct ms_error error = {0};
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder ? folder : GOLDEN_DIR, name);
  if (ms_safetensors_open(&file, path, &error)) {
    fprintf(stderr, "%s\n", error.message);
    exit(99);
  }
}

int main(int argc, char **argv) {
  unsigned sets[8];
  int count;
  check_begin(argc, argv);
  count = check_sets(sets);
  open_file("ops.safetensors");
  for (int s = 0; s < count; s++) {
    struct msk_norm_ops norm;
    struct msk_conv_ops conv;
    set = check_set_name(sets[s]);
    msk_norm_init(&norm, sets[s]);
    msk_conv_init(&conv, sets[s]);
    test_layer_norm(&norm, "ln_affine", "weight", "bias", 0);
    test_layer_norm(&norm, "ln_modulate", "scale", "shift", 1);
    test_layer_norm(&norm, "ln_modulate_tok", "scale", "shift", 1);
    test_rms_norm(&norm, "rmsnorm");
    test_rms_norm(&norm, "t5norm");
    test_rope(&norm, "rope64");
    test_rope(&norm, "rope128");
    test_activations(&norm);
    test_l2_norm(&norm, "vae_rmsnorm", 1);
    test_l2_norm(&norm, "vae_rmsnorm_zero", 0);
    test_depthwise(&conv);
  }
  ms_safetensors_close(&file);
  open_file("adamw.safetensors");
  for (int s = 0; s < count; s++) {
    struct msk_adamw_ops adamw;
    set = check_set_name(sets[s]);
    msk_adamw_init(&adamw, sets[s]);
    test_adamw(&adamw, 0);
    test_adamw(&adamw, 1);
  }
  ms_safetensors_close(&file);
  return check_end();
}
