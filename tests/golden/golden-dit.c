/* The diffusion transformer against wan_t2v_dit.safetensors: output, loss and every gradient of each case, in
 * the C reference and in the best kernels of this machine; in bf16 to the bounds of that precision. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "model/dit.h"
#include "msk-cpu.h"
#include "weights/params-file.h"

/* Relative L2 of whole networks and gradients: the README beside the fixtures. */
#define TOLERANCE 1e-5
/* bf16: the README gives 1e-3 for rounding q, k, v and the attention alone. Here every product's operands are
 * rounded (2^-9 at most each), about ten of them one after the other, errors adding as a random walk;
 * gradients go through twice as many. A normalised mean square error of 5e-4 is the bound, as a relative L2
 * its root. */
#define BF16_TOLERANCE 2.24e-2

static struct ms_safetensors *file;

static int number(const char *key) {
  const char *text = ms_safetensors_metadata(file, key);
  return text ? atoi(text) : 0;
}

static struct ms_dit_config read_config(void) {
  struct ms_dit_config config = {
      .dim = number("dim"),
      .ffn = number("ffn_dim"),
      .heads = number("num_heads"),
      .layers = number("num_layers"),
      .in_channels = number("in_dim"),
      .out_channels = number("out_dim"),
      .patch = {number("patch_t"), number("patch_h"), number("patch_w")},
      .text_dim = number("text_dim"),
      .text_len = number("text_len"),
      .freq_dim = number("freq_dim"),
      .eps = (float)atof(ms_safetensors_metadata(file, "eps") ? ms_safetensors_metadata(file, "eps") : "nan"),
  };
  return config; /* attention kinds are zero: dense */
}

static const struct ms_tensor_view *find(int test, const char *name) {
  char full[160];
  snprintf(full, sizeof full, "case%d.%s", test, name);
  return ms_safetensors_find(file, full);
}

static float *load(int test, const char *name) {
  const struct ms_tensor_view *view = find(test, name);
  float *x;
  if (!view)
    return NULL;
  x = check_alloc_f32(view->count);
  ms_tensor_read_f32(view, x);
  return x;
}

static void check_gradients(struct ms_dit *dit, int test, const float *grad, const float *dlatents,
                            double tolerance, const char *set) {
  const struct ms_params *params = ms_dit_params(dit);
  const struct ms_tensor_view *view = find(test, "grad.x");
  int compared = 0;
  for (int i = 0; i < params->count; i++) {
    char name[128];
    const float *want;
    snprintf(name, sizeof name, "grad.%s", params->list[i].name);
    want = load(test, name);
    if (!want)
      continue;
    compared++;
    /* softmax does not see a constant added to all keys, so what is left of this gradient is small
     * differences of large sums: in bf16 they are noise, and the bound would say nothing */
    if (tolerance > TOLERANCE && strstr(name, "self_attn.k.bias"))
      continue;
    check_relative_l2_f32(grad + params->list[i].offset, want, params->list[i].count, tolerance,
                          "case%d %s %s", test, set, name);
  }
  check_ok(compared > 0, "case%d %s: gradients were compared", test, set);
  check_relative_l2_f32(dlatents, load(test, "grad.x"), view->count, tolerance,
                        "case%d %s gradient of the latents", test, set);
}

static void check_case(struct ms_dit *dit, int test, double tolerance, const char *set) {
  const struct ms_tensor_view *x = find(test, "x"), *context = find(test, "context");
  const float *text[1] = {load(test, "context")}, *target = load(test, "target"), *loss = load(test, "loss"),
              *t = load(test, "t");
  int text_rows[1] = {(int)context->dims[0]};
  struct ms_dit_batch batch = {
      .samples = 1,
      .lattice = {(int)x->dims[1], (int)x->dims[2], (int)x->dims[3]},
      .latents = load(test, "x"),
      .timesteps = t,
      .text = text,
      .text_rows = text_rows,
  };
  int64_t count = x->count / x->dims[0] * ms_dit_config(dit)->out_channels;
  float *out = check_alloc_f32(count), *dout = check_alloc_f32(count), *dlatents = check_alloc_f32(x->count);
  float *grad = check_alloc_f32(ms_dit_params(dit)->total);
  struct ms_error error = {0};
  double got = 0;
  if (ms_dit_forward(dit, &batch, 0, out, &error) < 0) {
    check_ok(0, "case%d %s: %s", test, set, error.message);
    return;
  }
  check_relative_l2_f32(out, load(test, "out"), count, tolerance, "case%d %s output", test, set);
  memset(out, 0, (size_t)count * sizeof *out);
  memset(grad, 0, (size_t)ms_dit_params(dit)->total * sizeof *grad);
  if (ms_dit_forward(dit, &batch, 1, out, &error) < 0) {
    check_ok(0, "case%d %s: %s", test, set, error.message);
    return;
  }
  check_relative_l2_f32(out, load(test, "out"), count, tolerance, "case%d %s output of the training pass",
                        test, set);
  for (int64_t i = 0; i < count; i++) {
    double d = (double)out[i] - target[i];
    got += d * d / (double)count;
    dout[i] = (float)(2 * d / (double)count);
  }
  check_ok(fabs(got - loss[0]) <= tolerance * loss[0], "case%d %s loss %.7g, wanted %.7g", test, set, got,
           loss[0]);
  if (ms_dit_backward(dit, &batch, dout, grad, dlatents, NULL, &error) < 0) {
    check_ok(0, "case%d %s: %s", test, set, error.message);
    return;
  }
  check_gradients(dit, test, grad, dlatents, tolerance, set);
  check_free_all();
}

static void check_set(unsigned flags, int threads, enum msk_precision precision) {
  struct ms_compute compute;
  struct ms_dit_config config = read_config();
  struct ms_dit *dit = NULL;
  struct ms_error error = {0};
  char set[64];
  snprintf(set, sizeof set, "%s %s, %d threads:", check_set_name(flags),
           precision == MSK_PRECISION_BF16 ? "bf16" : "f32", threads);
  if (ms_compute_open(&compute, threads, flags, &error) < 0) {
    check_ok(0, "%s %s", set, error.message);
    return;
  }
  if (ms_dit_open(&dit, &compute, &config, &error) < 0 ||
      ms_params_allocate(ms_dit_params(dit), MSK_F32, &error) < 0 ||
      ms_params_load(ms_dit_params(dit), &file, 1, NULL, &error) < 0 ||
      ms_dit_prepare(dit, precision, 1, &error) < 0)
    check_ok(0, "%s %s", set, error.message);
  else
    for (int test = 0; test < number("cases"); test++)
      check_case(dit, test, precision == MSK_PRECISION_BF16 ? BF16_TOLERANCE : TOLERANCE, set);
  ms_dit_close(&dit);
  ms_compute_release(&compute);
}

int main(int argc, char **argv) {
  const char *folder = getenv("MEGASLIDE_FIXTURES");
  char path[4096];
  struct ms_error error = {0};
  unsigned sets[8];
  int count;
  check_begin(argc, argv);
  snprintf(path, sizeof path, "%s/wan_t2v_dit.safetensors", folder && *folder ? folder : GOLDEN_DIR);
  if (ms_safetensors_open(&file, path, &error) < 0) {
    check_ok(0, "%s", error.message);
    return check_end();
  }
  check_ok(number("cases") > 0, "the file has cases");
  count = check_sets(sets);
  for (int i = 0; i < count; i++)
    for (int bf16 = 0; bf16 < 2; bf16++)
      check_set(sets[i], i == count - 1 ? 3 : 1, bf16 ? MSK_PRECISION_BF16 : MSK_PRECISION_F32);
  ms_safetensors_close(&file);
  return check_end();
}
