/* Softmax attention against ops.safetensors: every instruction set, values and gradients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness.h"
#include "msk-attention.h"
#include "msk-cpu.h"
#include "weights/safetensors.h"

/* Relative L2: single operators, from the README beside the fixtures. */
#define F32_TOLERANCE 2e-6
/* bfloat16 products: normalised mean-square error 5e-4, as a relative L2 its root. */
#define BF16_TOLERANCE 2.24e-2

static struct ms_safetensors *file;

static const struct ms_tensor_view *find(const char *name) {
  char text[64];
  const struct ms_tensor_view *view;
  snprintf(text, sizeof text, "attention.%s", name);
  view = ms_safetensors_find(file, text);
  if (!view || view->ndim != 3) {
    printf("Bail out! no tensor '%s' of three dimensions\n", text);
    exit(1);
  }
  return view;
}

static float *load(const char *name) {
  const struct ms_tensor_view *view = find(name);
  float *x = check_alloc_f32(view->count);
  ms_tensor_read_f32(view, x);
  return x;
}

static void compare(const float *got, const char *name, double tolerance, const char *set) {
  const struct ms_tensor_view *view = find(name);
  double *want = check_alloc((size_t)view->count * sizeof *want);
  ms_tensor_read_f64(view, want);
  check_relative_l2(got, want, view->count, tolerance, "%s %s %s", set, tolerance < 1e-4 ? "f32" : "bf16",
                    name);
}

static void check_ops(const struct msk_attention_ops *ops, struct msk_attention p, const char *set) {
  double tolerance = ops->precision == MSK_PRECISION_F32 ? F32_TOLERANCE : BF16_TOLERANCE;
  int64_t width = p.heads * p.head_dim;
  size_t bytes = ops->pack_bytes(&p), forward = ops->forward_scratch(&p),
         backward = ops->backward_scratch(&p);
  char *packed = check_alloc(bytes * (size_t)p.heads);
  void *scratch = check_alloc(forward > backward ? forward : backward);
  p.packed = packed;
  p.o = check_alloc_f32(p.queries * width);
  p.lse = check_alloc_f32(p.queries * p.heads);
  p.dq = check_alloc_f32(p.queries * width);
  p.dk = check_alloc_f32(p.keys * width);
  p.dv = check_alloc_f32(p.keys * width);
  for (int64_t head = 0; head < p.heads; head++) {
    ops->pack(&p, head, packed + (size_t)head * bytes);
    ops->forward(&p, head, 0, p.queries, scratch);
    ops->backward(&p, head, scratch);
  }
  compare(p.o, "y", tolerance, set);
  compare(p.dq, "d.q", tolerance, set);
  compare(p.dk, "d.k", tolerance, set);
  compare(p.dv, "d.v", tolerance, set);
}

int main(int argc, char **argv) {
  const char *folder = getenv("MEGASLIDE_FIXTURES");
  const struct ms_tensor_view *q, *k;
  struct msk_attention p;
  struct ms_error error = {0};
  unsigned sets[8];
  char path[4096];
  int n;
  check_begin(argc, argv);
  n = check_sets(sets);
  snprintf(path, sizeof path, "%s/ops.safetensors", folder ? folder : GOLDEN_DIR);
  if (ms_safetensors_open(&file, path, &error)) {
    printf("Bail out! cannot open '%s'\n", path);
    return 1;
  }
  q = find("q");
  k = find("k");
  p = (struct msk_attention){.queries = q->dims[0],
                             .keys = k->dims[0],
                             .heads = q->dims[1],
                             .head_dim = q->dims[2],
                             .scale = (float)(1 / sqrt((double)q->dims[2])),
                             .q = load("q"),
                             .k = load("k"),
                             .v = load("v"),
                             .d_o = load("dy")};
  p.q_ld = p.k_ld = p.v_ld = p.o_ld = p.d_o_ld = p.dq_ld = p.dk_ld = p.dv_ld = p.heads * p.head_dim;
  if (p.head_dim % 8 || p.head_dim > 256) {
    printf("1..0 # SKIP head_dim %lld is outside what attention takes\n", (long long)p.head_dim);
    return 0;
  }
  for (int i = 0; i < n; i++) {
    struct msk_attention_ops f32, bf16;
    msk_attention_init(&f32, &bf16, sets[i]);
    check_ops(&f32, p, check_set_name(sets[i]));
    check_ops(&bf16, p, check_set_name(sets[i]));
  }
  ms_safetensors_close(&file);
  return check_end();
}
