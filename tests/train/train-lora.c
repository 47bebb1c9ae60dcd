/* Adapters of the diffusion transformer: their gradients against finite differences of the C reference and
 * against the gradients of the matrices that they add to; what is frozen is left alone; with B = 0 the
 * network is the one without adapters; kernels and threads against each other. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "harness.h"
#include "model/dit.h"
#include "msk-cpu.h"
#include "scratch.h"
#include "stream/shard-store.h"
#include "train/lora.h"
#include "weights/params-file.h"

/* As in train-dit.c: float32 outputs are good to about 1e-6, the step moves the loss by about 1e-2 of itself.
 */
#define TOLERANCE 1e-3
#define STEP 4e-3

struct setup {
  const char *name;
  int rank, samples, lattice[3], dsa;
  int wide; /* so that a matrix is packed in several pieces */
  enum msk_type type;
  enum msk_precision precision;
  unsigned flags;
  int threads, base; /* base: the same network without adapters */
};

struct world {
  struct ms_compute compute;
  struct ms_dit *dit;
  struct ms_params *params;
  struct ms_dit_batch batch;
  float *latents, *weights, *out, *grad, timesteps[2];
  const float *text[2];
  int text_rows[2];
  int64_t out_count;
};

static uint64_t hash_of(const char *name) { /* FNV-1a */
  uint64_t h = 0xcbf29ce484222325u;
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * 0x100000001b3u;
  return h;
}

static void put(struct ms_params *params, int i, int64_t j, float value) {
  if (params->type == MSK_F32)
    ((float *)ms_params_at(params, i))[j] = value;
  else
    ((uint16_t *)ms_params_at(params, i))[j] = msk_f32_to_bf16(value);
}

/* By name, so that the network without adapters has the same values. */
static void fill(struct ms_params *params) {
  for (int i = 0; i < params->count; i++) {
    const struct ms_param *p = &params->list[i];
    double scale = p->ndim == 1 ? 0.2 : 1 / sqrt((double)(p->count / p->dims[0]));
    struct ms_random random = {.seed = 77, .stream = hash_of(p->name)};
    for (int64_t j = 0; j < p->count; j++)
      put(params, i, j, (float)(ms_random_normal(&random) * scale + (p->start == MS_START_ONE)));
  }
}

static struct ms_dit_config config_of(const struct setup *s) {
  struct ms_dit_config c = {.dim = s->wide ? 256 : 32,
                            .ffn = s->wide ? 520 : 48,
                            .heads = 4,
                            .layers = 2,
                            .in_channels = 3,
                            .out_channels = 2,
                            .patch = {1, 2, 2},
                            .text_dim = 10,
                            .text_len = 5,
                            .freq_dim = 16,
                            .eps = 1e-6f,
                            .pooled_text = 1,
                            .coordinate_features = 1,
                            .lora_rank = s->base ? 0 : s->rank,
                            .lora_alpha = s->base ? 0 : 0.5f * (float)s->rank};
  for (int i = 0; i < c.layers; i++) {
    struct ms_attention_config a = {.kind = s->dsa ? MS_ATTENTION_DSA : MS_ATTENTION_DENSE,
                                    .window = {3, 3, 3},
                                    .bounds = {1, 2, 2},
                                    .groups = 2};
    c.attention[i] = c.coarse_attention[i] = a;
  }
  return c;
}

static int open_world(struct world *w, const struct setup *s) {
  struct ms_dit_config config = config_of(s);
  struct ms_error error = {0};
  int64_t points = (int64_t)s->lattice[0] * s->lattice[1] * s->lattice[2];
  memset(w, 0, sizeof *w);
  if (ms_compute_open(&w->compute, s->threads ? s->threads : 2, s->flags, &error) < 0 ||
      ms_dit_open(&w->dit, &w->compute, &config, &error) < 0 ||
      ms_params_allocate(ms_dit_params(w->dit), s->type, &error) < 0) {
    check_ok(0, "%s: %s", s->name, error.message);
    return 0;
  }
  w->params = ms_dit_params(w->dit);
  fill(w->params);
  w->out_count = s->samples * config.out_channels * points;
  w->latents = check_alloc_f32(s->samples * config.in_channels * points);
  w->weights = check_alloc_f32(w->out_count);
  w->out = check_alloc_f32(w->out_count);
  w->grad = check_alloc_f32(w->params->total);
  memset(w->grad, 0, (size_t)w->params->total * sizeof *w->grad);
  ms_random_normal_fill(1, 1, 0, w->latents, s->samples * config.in_channels * points);
  ms_random_normal_fill(1, 2, 0, w->weights, w->out_count);
  for (int i = 0; i < s->samples; i++) {
    float *text = check_alloc_f32((2 + i) * config.text_dim);
    ms_random_normal_fill(1, 3 + (uint64_t)i, 0, text, (2 + i) * config.text_dim);
    w->timesteps[i] = 100.0f + 211.5f * (float)i;
    w->text_rows[i] = 2 + i;
    w->text[i] = text;
  }
  w->batch = (struct ms_dit_batch){.samples = s->samples,
                                   .lattice = {s->lattice[0], s->lattice[1], s->lattice[2]},
                                   .latents = w->latents,
                                   .timesteps = w->timesteps,
                                   .text = w->text,
                                   .text_rows = w->text_rows};
  return 1;
}

static void close_world(struct world *w) {
  ms_dit_close(&w->dit);
  ms_compute_release(&w->compute);
}

static void forward(struct world *w, const struct setup *s, int keep) {
  struct ms_error error = {0};
  if (ms_dit_prepare(w->dit, s->precision, 1, &error) < 0 ||
      ms_dit_forward(w->dit, &w->batch, keep, w->out, &error) < 0)
    check_ok(0, "%s: %s", s->name, error.message);
}

static void both_ways(struct world *w, const struct setup *s) {
  struct ms_error error = {0};
  forward(w, s, 1);
  if (ms_dit_backward(w->dit, &w->batch, w->weights, w->grad, NULL, NULL, &error) < 0)
    check_ok(0, "%s: %s", s->name, error.message);
}

static double loss_at(struct world *w, const struct setup *s, const float *start, const float *direction,
                      double step) {
  float *values = w->params->data;
  double sum = 0;
  for (int64_t i = 0; i < w->params->total; i++)
    values[i] = (float)(start[i] + step * direction[i]);
  forward(w, s, 0);
  for (int64_t i = 0; i < w->out_count; i++)
    sum += (double)w->out[i] * w->weights[i];
  return sum;
}

/* Along half the gradient of all adapters whose name has `what`, and half anywhere in them. */
static void check_difference(struct world *w, const struct setup *s, const char *what) {
  int64_t total = w->params->total;
  float *start = check_alloc_f32(total), *direction = check_alloc_f32(total);
  double norm = 0, predicted = 0, quotient;
  memcpy(start, w->params->data, (size_t)total * sizeof *start);
  memset(direction, 0, (size_t)total * sizeof *direction);
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; i < w->params->count; i++) {
      const struct ms_param *p = &w->params->list[i];
      struct ms_random random = {.seed = 9, .stream = (uint64_t)i};
      for (int64_t j = p->offset; j < p->offset + p->count && strstr(p->name, what); j++) {
        if (pass == 0) {
          norm += (double)w->grad[j] * w->grad[j];
          continue;
        }
        direction[j] = (float)(w->grad[j] / sqrt(norm) + 0.05 * ms_random_normal(&random));
        predicted += (double)direction[j] * w->grad[j];
      }
    }
  quotient = (8 * (loss_at(w, s, start, direction, STEP) - loss_at(w, s, start, direction, -STEP)) -
              (loss_at(w, s, start, direction, 2 * STEP) - loss_at(w, s, start, direction, -2 * STEP))) /
             (12 * STEP);
  memcpy(w->params->data, start, (size_t)total * sizeof *start);
  check_ok(norm > 0 && fabs(quotient - predicted) <= TOLERANCE * fabs(predicted),
           "%s: %s: derivative %.6g, by differences %.6g", s->name, what, predicted, quotient);
}

static void check_differences(const struct setup *s) {
  static const char *const groups[] = {"lora_A",
                                       "lora_B",
                                       "self_attn.q.lora",
                                       "self_attn.k.lora",
                                       "self_attn.v.lora",
                                       "self_attn.o.lora",
                                       "cross_attn.q.lora",
                                       "cross_attn.k.lora",
                                       "cross_attn.v.lora",
                                       "cross_attn.o.lora",
                                       "ffn.0.lora",
                                       "ffn.2.lora"};
  struct world w;
  if (!open_world(&w, s))
    return;
  both_ways(&w, s);
  for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
    check_difference(&w, s, groups[i]);
  close_world(&w);
  check_free_all();
}

/* dA = s B^T dW and dB = s dW A^T, where dW is the gradient of the matrix itself: one pass gives all of them
 * if the matrices are not frozen. */
static void check_projection(const struct setup *s) {
  struct world w;
  double worst = 0;
  int adapters = 0;
  if (!open_world(&w, s))
    return;
  for (int i = 0; i < w.params->count; i++)
    if (w.params->list[i].kind == MS_PARAM_FROZEN)
      w.params->list[i].kind = w.params->list[i].ndim == 1 ? MS_PARAM_VECTOR : MS_PARAM_MATRIX;
  both_ways(&w, s);
  for (int i = 0; i < w.params->count; i++) {
    const struct ms_param *a = &w.params->list[i], *b = a + 1, *m;
    const float *values = w.params->data;
    double difference = 0, size = 0;
    char name[96];
    char *end;
    int64_t n, k, r = s->rank;
    if (!strstr(a->name, ".lora_A."))
      continue;
    adapters++;
    snprintf(name, sizeof name, "%s", a->name);
    end = strstr(name, ".lora_A.");
    snprintf(end, (size_t)(name + sizeof name - end), ".weight");
    m = ms_params_find(w.params, name);
    n = m->dims[0];
    k = m->dims[1];
    check_ok(a->dims[0] == r && a->dims[1] == k && b->dims[0] == n && b->dims[1] == r, "%s: shapes of %s",
             s->name, name);
    for (int64_t x = 0; x < r; x++)
      for (int64_t j = 0; j < k; j++) {
        double want = 0, got = w.grad[a->offset + x * k + j];
        for (int64_t i2 = 0; i2 < n; i2++)
          want += 0.5 * (double)values[b->offset + i2 * r + x] * w.grad[m->offset + i2 * k + j];
        difference += (got - want) * (got - want);
        size += want * want;
      }
    for (int64_t i2 = 0; i2 < n; i2++)
      for (int64_t x = 0; x < r; x++) {
        double want = 0, got = w.grad[b->offset + i2 * r + x];
        for (int64_t j = 0; j < k; j++)
          want += 0.5 * (double)values[a->offset + x * k + j] * w.grad[m->offset + i2 * k + j];
        difference += (got - want) * (got - want);
        size += want * want;
      }
    worst = fmax(worst, sqrt(difference / size));
  }
  check_ok(adapters == 20, "%s: ten adapters a layer", s->name);
  check_ok(worst < 1e-5, "%s: gradients are those of the matrices, projected (%.2g)", s->name, worst);
  close_world(&w);
  check_free_all();
}

/* Frozen parameters have no gradient and change no bit of that of the adapters. */
static void check_frozen(const struct setup *s) {
  struct world w, all;
  int untouched = 1, same = 1;
  if (!open_world(&w, s) || !open_world(&all, s))
    return;
  both_ways(&w, s);
  for (int i = 0; i < all.params->count; i++)
    if (all.params->list[i].kind == MS_PARAM_FROZEN)
      all.params->list[i].kind = MS_PARAM_MATRIX;
  both_ways(&all, s);
  for (int i = 0; i < w.params->count; i++) {
    const struct ms_param *p = &w.params->list[i];
    int frozen = p->kind == MS_PARAM_FROZEN;
    if (frozen == (strstr(p->name, ".lora_") != NULL))
      untouched = 0;
    for (int64_t j = p->offset; j < p->offset + p->count && frozen; j++)
      untouched &= w.grad[j] == 0;
    if (!frozen)
      same &= !memcmp(w.grad + p->offset, all.grad + p->offset, (size_t)p->count * sizeof(float));
  }
  check_ok(untouched, "%s: all but the adapters is frozen and has no gradient", s->name);
  check_ok(same, "%s: adapters have the same gradient beside trained matrices", s->name);
  close_world(&w);
  close_world(&all);
  check_free_all();
}

static void check_start(const struct setup *s) {
  struct setup plain = *s;
  struct world w, base;
  double most = 0;
  int zero = 1;
  plain.base = 1;
  if (!open_world(&w, s) || !open_world(&base, &plain))
    return;
  for (int i = 0; i < w.params->count; i++)
    for (int64_t j = 0; j < w.params->list[i].count && strstr(w.params->list[i].name, "lora_B"); j++)
      put(w.params, i, j, 0);
  forward(&w, s, 0);
  forward(&base, &plain, 0);
  check_bytes(w.out, base.out, (size_t)w.out_count * sizeof(float),
              "%s: with B = 0 the network is that without adapters", s->name);
  ms_params_randomize(w.params, 3);
  for (int i = 0; i < w.params->count; i++) {
    const struct ms_param *p = &w.params->list[i];
    float *values = check_alloc_f32(p->count);
    ms_params_read_f32(w.params, i, values);
    for (int64_t j = 0; j < p->count; j++) {
      if (strstr(p->name, "lora_B"))
        zero &= values[j] == 0;
      if (strstr(p->name, "lora_A"))
        most = fmax(most, fabs(values[j]) * sqrt((double)p->dims[1]));
    }
  }
  check_ok(zero && most > 0.98 && most <= 1.01, "%s: A starts within 1 / sqrt (k) (%.3f of it), B at zero",
           s->name, most);
  close_world(&w);
  close_world(&base);
  check_free_all();
}

/* The network with W + s B A in place of W: what an export holds. In float32 the sums differ in their order
 * alone; bf16 rounds the sum before the kernels do in either case. */
static void check_merged(const struct setup *s) {
  struct setup plain = *s;
  struct world w, base;
  plain.base = 1;
  if (!open_world(&w, s) || !open_world(&base, &plain))
    return;
  for (int i = 0; i < w.params->count; i++) {
    const struct ms_param *a = &w.params->list[i];
    char name[96], *end;
    float *va, *vb, *vw;
    int m;
    int64_t n, k = a->dims[1], r = s->rank;
    if (!strstr(a->name, ".lora_A."))
      continue;
    snprintf(name, sizeof name, "%s", a->name);
    end = strstr(name, ".lora_A.");
    snprintf(end, (size_t)(name + sizeof name - end), ".weight");
    m = (int)(ms_params_find(base.params, name) - base.params->list);
    n = base.params->list[m].dims[0];
    va = check_alloc_f32(r * k);
    vb = check_alloc_f32(n * r);
    vw = check_alloc_f32(n * k);
    ms_params_read_f32(w.params, i, va);
    ms_params_read_f32(w.params, i + 1, vb);
    ms_params_read_f32(base.params, m, vw);
    for (int64_t y = 0; y < n; y++)
      for (int64_t x = 0; x < k; x++) {
        double sum = 0;
        for (int64_t j = 0; j < r; j++)
          sum += (double)vb[y * r + j] * va[j * k + x];
        put(base.params, m, y * k + x, (float)(vw[y * k + x] + 0.5 * sum));
      }
  }
  both_ways(&w, s);
  forward(&base, &plain, 0);
  check_relative_l2_f32(w.out, base.out, w.out_count, s->precision == MSK_PRECISION_F32 ? 1e-5 : 5e-3,
                        "%s: adapters applied are the merged matrices", s->name);
  close_world(&w);
  close_world(&base);
  check_free_all();
}

static int read_shard(void *data, int shard, uint16_t *weights, struct ms_error *error) {
  const struct world *w = data;
  int64_t begin, count;
  ms_dit_shard_range(w->dit, shard, &begin, &count);
  memcpy(weights, (const uint16_t *)w->params->data + begin, (size_t)count * sizeof *weights);
  return 0;
}

/* A store of the network's own values: only adapters have a state. */
static struct ms_shard_store *store_of(struct world *w, int average, int disk, const char *folder) {
  struct ms_shard_layout layout[3];
  enum ms_home homes[2] = {MS_HOME_HOST, disk ? MS_HOME_DISK : MS_HOME_HOST};
  struct ms_shard_store_params params = {.layers = 2,
                                         .layout = layout,
                                         .homes = homes,
                                         .moment_bits = 32,
                                         .average = average,
                                         .piece = 4096,
                                         .folder = folder};
  struct ms_shard_store *store = NULL;
  struct ms_error error = {0};
  int code;
  for (int i = -1; i < 2; i++) {
    struct ms_shard_layout *l = &layout[i + 1];
    int j = 0;
    ms_dit_shard_range(w->dit, i, &l->begin, &l->count);
    while (j < w->params->count && (w->params->list[j].layer != i || !ms_dit_is_adapter(w->dit, j)))
      j++;
    l->first = i < 0 ? l->count : w->params->list[j].offset - l->begin;
    l->owned = l->count - l->first;
  }
  code = ms_shard_store_open(&store, &params, w->compute.pool, &error);
  for (int i = -1; i < 2 && code == 0; i++)
    code = ms_shard_store_fill(store, i, read_shard, w, &error);
  check_ok(code == 0, "a store of adapters: %s", error.message);
  return store;
}

/* The merged file read into a network without adapters gives the velocity of the one with them, bit for bit;
 * the adapters' file has their values. */
static void check_files(const struct setup *s, int average, int disk) {
  struct setup plain = *s;
  struct world w, base;
  struct ms_error error = {0};
  struct ms_safetensors *file = NULL;
  struct ms_shard_store *store;
  const char *path;
  int code, good = 1, found = 0;
  plain.base = 1;
  if (!open_world(&w, s) || !open_world(&base, &plain))
    return;
  scratch_begin();
  store = store_of(&w, average, disk, scratch_path("."));
  path = scratch_path("dit.safetensors");
  code = ms_lora_write_merged(w.dit, &w.compute, store, path, &error);
  if (code == 0)
    code = ms_safetensors_open(&file, path, &error);
  memset(base.params->data, 0xff, (size_t)base.params->total * 2);
  if (code == 0)
    code = ms_params_load(base.params, &file, 1, "", &error);
  check_ok(code == 0 && ms_safetensors_count(file) == base.params->count,
           "%s: a merged model has the tensors of a plain one: %s", s->name, error.message);
  ms_safetensors_close(&file);
  forward(&w, s, 0);
  forward(&base, &plain, 0);
  check_bytes(base.out, w.out, (size_t)w.out_count * sizeof(float),
              "%s: the merged model gives the velocity of the adapters", s->name);
  path = scratch_path(MS_LORA_FILE);
  code = ms_lora_write(w.dit, store, path, &error);
  if (code == 0)
    code = ms_safetensors_open(&file, path, &error);
  for (int i = 0; i < w.params->count && code == 0; i++) {
    const struct ms_param *p = &w.params->list[i];
    const struct ms_tensor_view *view;
    char name[128];
    snprintf(name, sizeof name, "diffusion_model.%s", p->name);
    view = ms_safetensors_find(file, name);
    if (!ms_dit_is_adapter(w.dit, i)) {
      good &= !view;
      continue;
    }
    found++;
    good &= view && view->dtype == MS_DTYPE_BF16 && view->count == p->count && view->dims[0] == p->dims[0] &&
            !memcmp(view->data, ms_params_at(w.params, i), view->bytes);
    if (!strcmp(p->name, "blocks.1.ffn.0.lora_A.weight")) {
      float alpha = 0;
      view = ms_safetensors_find(file, "diffusion_model.blocks.1.ffn.0.alpha");
      if (view)
        ms_tensor_read_f32(view, &alpha);
      good &= alpha == 0.5f * (float)s->rank;
    }
  }
  check_ok(code == 0 && good && found == 40 && ms_safetensors_count(file) == 60,
           "%s: the adapters' file has their values, and alpha: %s", s->name, error.message);
  ms_safetensors_close(&file);
  ms_shard_store_close(&store);
  scratch_end();
  close_world(&w);
  close_world(&base);
  check_free_all();
}

/* Threads change no bit; kernels only roundings. */
static void check_kernels(const struct setup *base) {
  unsigned sets[8];
  int count = check_sets(sets);
  for (int bf16 = 0; bf16 < 2; bf16++) {
    struct setup s = *base;
    struct world want;
    if (!open_world(&want, &s))
      return;
    both_ways(&want, &s);
    for (int i = 0; i < count; i++) {
      struct world one, three;
      s.flags = sets[i];
      s.precision = bf16 ? MSK_PRECISION_BF16 : MSK_PRECISION_F32;
      s.threads = 1;
      if (!open_world(&one, &s))
        return;
      s.threads = 3;
      if (!open_world(&three, &s))
        return;
      both_ways(&one, &s);
      both_ways(&three, &s);
      check_relative_l2_f32(one.grad, want.grad, one.params->total, bf16 ? 0.1 : 1e-4, "%s: %s %s: gradient",
                            s.name, check_set_name(sets[i]), bf16 ? "bf16" : "f32");
      check_bytes(three.grad, one.grad, (size_t)one.params->total * sizeof(float),
                  "%s: %s %s: gradient with 3 threads", s.name, check_set_name(sets[i]),
                  bf16 ? "bf16" : "f32");
      check_bytes(three.out, one.out, (size_t)one.out_count * sizeof(float),
                  "%s: %s %s: velocity with 3 threads", s.name, check_set_name(sets[i]),
                  bf16 ? "bf16" : "f32");
      close_world(&one);
      close_world(&three);
    }
    close_world(&want);
    check_free_all();
  }
}

static void check_refusals(void) {
  struct setup s = {.rank = 4};
  struct ms_dit_config config = config_of(&s);
  struct ms_compute compute = {0};
  struct ms_dit *dit = NULL;
  struct ms_error error = {0};
  ms_compute_open(&compute, 1, 0, &error);
  config.lora_rank = -1;
  check_ok(ms_dit_open(&dit, &compute, &config, &error) == MS_EUSAGE && !dit, "a rank below 0 is refused");
  config.lora_rank = 5000;
  check_ok(ms_dit_open(&dit, &compute, &config, &error) == MS_EUSAGE && !dit, "a rank of 5000 is refused");
  config.lora_rank = 4;
  config.lora_alpha = NAN;
  check_ok(ms_dit_open(&dit, &compute, &config, &error) == MS_EUSAGE && !dit, "alpha must be a number");
  config.lora_alpha = 0;
  check_ok(ms_dit_open(&dit, &compute, &config, &error) == 0 && ms_dit_config(dit)->lora_alpha == 4,
           "alpha is the rank if none is given");
  ms_dit_close(&dit);
  ms_compute_release(&compute);
}

int main(int argc, char **argv) {
  const struct setup blocks = {.name = "rank 5", .rank = 5, .samples = 2, .lattice = {2, 8, 10}},
                     lines = {.name = "rank 32, lines", .rank = 32, .samples = 1, .lattice = {3, 16, 18}},
                     offsets = {.name = "rank 3 beside offsets",
                                .rank = 3,
                                .samples = 2,
                                .lattice = {2, 8, 10},
                                .dsa = 1};
  struct setup low = blocks, fast = lines, wide = blocks;
  check_begin(argc, argv);
  check_differences(&blocks);
  check_projection(&blocks);
  check_projection(&lines);
  check_projection(&offsets);
  check_frozen(&blocks);
  check_frozen(&offsets);
  low.name = "rank 5, bf16";
  low.type = MSK_BF16;
  low.precision = MSK_PRECISION_BF16;
  low.flags = msk_cpu_detect();
  fast.flags = msk_cpu_detect();
  check_start(&blocks);
  check_start(&low);
  check_merged(&blocks);
  check_merged(&fast);
  check_merged(&low);
  wide.name = "rank 5, wide";
  wide.wide = 1;
  check_merged(&wide);
  check_projection(&wide);
  wide.flags = msk_cpu_detect();
  check_merged(&wide);
  check_projection(&wide);
  check_files(&low, 0, 0);
  check_files(&low, 1, 1);
  wide.type = MSK_BF16;
  wide.precision = MSK_PRECISION_BF16;
  wide.name = "rank 5, wide, bf16";
  check_files(&wide, 0, 1);
  check_kernels(&blocks);
  check_kernels(&lines);
  check_refusals();
  return check_end();
}
