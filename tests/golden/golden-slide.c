/* 3D deformable slide attention against dsa.safetensors: every case, every instruction set, values and
 * gradients. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "msk-cpu.h"
#include "msk-slide.h"
#include "weights/safetensors.h"

/* Relative L2: single operators and gradients, from the README beside the fixtures. */
#define VALUE_TOLERANCE 2e-6
#define GRADIENT_TOLERANCE 1e-5
/* bfloat16 products: normalised mean-square error 5e-4, as a relative L2 its root. */
#define BF16_TOLERANCE 2.24e-2

static struct ms_safetensors *file;

static const char *metadata(const char *name, const char *key) {
  char text[256];
  const char *value;
  snprintf(text, sizeof text, "%s.%s", name, key);
  value = ms_safetensors_metadata(file, text);
  return value ? value : "";
}

static const struct ms_tensor_view *find(const char *name, const char *key) {
  char text[256];
  snprintf(text, sizeof text, "%s.%s", name, key);
  return ms_safetensors_find(file, text);
}

static float *load(const char *name, const char *key) {
  const struct ms_tensor_view *view = find(name, key);
  float *x;
  if (!view)
    return NULL;
  x = check_alloc_f32(view->count);
  ms_tensor_read_f32(view, x);
  return x;
}

struct results {
  float *o, *dq, *dk, *dv, *dz;
};

static void run(const struct msk_slide_ops *ops, struct msk_slide *p, struct results *r, int64_t channels,
                int64_t z_ld) {
  int64_t tokens = p->lattice[0] * p->lattice[1] * p->lattice[2];
  size_t bytes = ops->pack_bytes(p), forward = ops->forward_scratch(p), backward = ops->backward_scratch(p);
  char *packed = bytes ? check_alloc(bytes * (size_t)p->groups) : NULL;
  void *scratch = check_alloc(forward > backward ? forward : backward);
  p->o = r->o = check_alloc_f32(tokens * channels);
  p->dq = r->dq = check_alloc_f32(tokens * channels);
  p->dk = r->dk = check_alloc_f32(tokens * channels);
  p->dv = r->dv = check_alloc_f32(tokens * channels);
  p->dz = r->dz = check_alloc_f32(tokens * z_ld);
  p->lse = check_alloc_f32(tokens * p->heads);
  p->packed = packed;
  memset(p->dk, 0, (size_t)(tokens * channels) * sizeof *p->dk);
  memset(p->dv, 0, (size_t)(tokens * channels) * sizeof *p->dv);
  for (int64_t group = 0; group < p->groups; group++) {
    if (bytes)
      ops->pack(p, group, packed + bytes * (size_t)group);
    ops->forward(p, group, 0, tokens, scratch);
    ops->backward(p, group, 0, tokens, scratch);
  }
}

static void compare(const char *name, const char *set, const char *key, const char *what, const float *got,
                    double tolerance) {
  const struct ms_tensor_view *view = find(name, key);
  if (!view)
    return;
  check_relative_l2_f32(got, load(name, key), view->count, tolerance, "%s %s %s", name, set, what);
}

static void check_case(const char *name) {
  unsigned sets[8];
  int count = check_sets(sets);
  const struct ms_tensor_view *q = find(name, "q"), *z = find(name, "z");
  struct msk_slide p = {0};
  int64_t channels, z_ld;
  int zero = 1;
  if (!q || !z || q->ndim != 2 || z->ndim < 3) {
    check_ok(0, "%s: q or z missing", name);
    return;
  }
  channels = q->dims[1];
  z_ld = z->count / z->dims[0];
  sscanf(metadata(name, "lattice"), "%ld,%ld,%ld", &p.lattice[0], &p.lattice[1], &p.lattice[2]);
  sscanf(metadata(name, "window"), "%ld,%ld,%ld", &p.window[0], &p.window[1], &p.window[2]);
  sscanf(metadata(name, "bounds"), "%f,%f,%f", &p.bounds[0], &p.bounds[1], &p.bounds[2]);
  p.heads = atol(metadata(name, "heads"));
  p.head_dim = atol(metadata(name, "head_dim"));
  p.groups = atol(metadata(name, "groups"));
  p.mode = strcmp(metadata(name, "mode"), "shift") ? MSK_SLIDE_POINT : MSK_SLIDE_SHIFT;
  if (p.heads < 1 || p.groups < 1 || p.heads * p.head_dim != channels ||
      p.lattice[0] * p.lattice[1] * p.lattice[2] != q->dims[0]) {
    check_ok(0, "%s: metadata and shapes agree", name);
    return;
  }
  p.scale = 1 / sqrtf((float)p.head_dim);
  p.q = load(name, "q");
  p.k = load(name, "k");
  p.v = load(name, "v");
  p.z = load(name, "z");
  p.d_o = load(name, "dO");
  p.q_ld = p.k_ld = p.v_ld = p.o_ld = p.d_o_ld = p.dq_ld = p.dk_ld = p.dv_ld = channels;
  p.z_ld = p.dz_ld = z_ld;
  for (int64_t i = 0; i < z->count; i++)
    zero &= p.z[i] == 0;
  for (int i = 0; i < count; i++) {
    struct msk_slide_ops ops[2];
    msk_slide_init(&ops[0], &ops[1], sets[i]);
    for (int bf16 = 0; bf16 < 2; bf16++) {
      char set[64];
      struct results r;
      double value = bf16 ? BF16_TOLERANCE : VALUE_TOLERANCE,
             gradient = bf16 ? BF16_TOLERANCE : GRADIENT_TOLERANCE;
      snprintf(set, sizeof set, "%s %s", ops[bf16].name, bf16 ? "bf16" : "f32");
      run(&ops[bf16], &p, &r, channels, z_ld);
      compare(name, set, "o", "o", r.o, value);
      compare(name, set, "dq", "dq", r.dq, gradient);
      compare(name, set, "dk", "dk", r.dk, gradient);
      compare(name, set, "dv", "dv", r.dv, gradient);
      compare(name, set, "dz", "dz", r.dz, gradient);
      if (zero) {
        compare(name, set, "o_neighbourhood", "is neighbourhood attention", r.o, value);
        compare(name, set, "o_dense", "is dense attention", r.o, value);
        p.z = NULL; /* no offsets must mean the same as zero offsets */
        float *with = r.o, *dz = r.dz;
        run(&ops[bf16], &p, &r, channels, z_ld);
        p.z = load(name, "z");
        check_bytes(r.o, with, (size_t)q->count * sizeof(float), "%s %s o without z", name, set);
        check_bytes(r.dz, dz, (size_t)z->count * sizeof(float), "%s %s dz without z", name, set);
      }
    }
  }
  check_free_all();
}

int main(int argc, char **argv) {
  const char *folder = getenv("MEGASLIDE_FIXTURES");
  char path[4096], cases[4096], *rest = NULL;
  struct ms_error error = {0};
  check_begin(argc, argv);
  snprintf(path, sizeof path, "%s/dsa.safetensors", folder && *folder ? folder : GOLDEN_DIR);
  if (ms_safetensors_open(&file, path, &error) < 0) {
    check_ok(0, "open %s: %s", path, error.message);
    return check_end();
  }
  snprintf(cases, sizeof cases, "%s",
           ms_safetensors_metadata(file, "cases") ? ms_safetensors_metadata(file, "cases") : "");
  check_ok(cases[0] != 0, "the file names its cases");
  for (char *name = strtok_r(cases, ",", &rest); name; name = strtok_r(NULL, ",", &rest))
    check_case(name);
  ms_safetensors_close(&file);
  return check_end();
}
