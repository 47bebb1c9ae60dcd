/* The diffusion transformer over shards that a source lends: the same bits as with all weights in memory, of
 * several batches at once the same as of one after the other. What is lent is given back poisoned, so that
 * anything read too late shows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "harness.h"
#include "model/dit.h"
#include "msk-cpu.h"

#define LAYERS 4
#define MOST_BATCHES 3
#define MOST_SAMPLES 2

struct setup {
  const char *name;
  int samples, lattice[3], extras; /* coordinate features, pooled text */
  enum msk_type type;
  enum msk_precision precision;
  int rank; /* of adapters */
};

static struct ms_dit_config config_of(const struct setup *s) {
  struct ms_dit_config c = {.dim = 32,
                            .ffn = 48,
                            .heads = 4,
                            .layers = LAYERS,
                            .in_channels = 3,
                            .out_channels = 2,
                            .patch = {1, 2, 2},
                            .text_dim = 10,
                            .text_len = 5,
                            .freq_dim = 16,
                            .eps = 1e-6f,
                            .positions = s->extras ? MS_POSITIONS_SHORT_SIDE : MS_POSITIONS_INTEGER,
                            .coordinate_features = s->extras,
                            .pooled_text = s->extras,
                            .lora_rank = s->rank,
                            .lora_alpha = 1.5f * (float)s->rank};
  const struct ms_attention_config kinds[LAYERS] = {{.kind = MS_ATTENTION_DENSE},
                                                    {.kind = MS_ATTENTION_WINDOW, .window = {2, 3, 4}},
                                                    {.kind = MS_ATTENTION_DSA,
                                                     .mode = MSK_SLIDE_POINT,
                                                     .window = {5, 3, 3},
                                                     .bounds = {0.75f, 1.5f, 2},
                                                     .groups = 2},
                                                    {.kind = MS_ATTENTION_DSA,
                                                     .mode = MSK_SLIDE_SHIFT,
                                                     .window = {3, 3, 3},
                                                     .bounds = {1, 4, 4},
                                                     .groups = 4}};
  for (int i = 0; i < LAYERS; i++)
    c.attention[i] = c.coarse_attention[i] = kinds[i];
  return c;
}

/* One of the batches of a step, random, each with other texts. */
struct material {
  struct ms_dit_batch batch;
  float *latents, *dvelocity, timesteps[MOST_SAMPLES];
  const float *text[MOST_SAMPLES];
  int text_rows[MOST_SAMPLES];
};

struct world {
  struct ms_compute compute;
  struct ms_dit *dit;
  struct material list[MOST_BATCHES];
  struct ms_dit_batch batches[MOST_BATCHES];
  const float *dvelocities[MOST_BATCHES];
  int64_t in_count, out_count, rows;
};

static void fill_params(struct ms_params *params) {
  for (int i = 0; i < params->count; i++) {
    const struct ms_param *p = &params->list[i];
    double fan_in = (double)(p->count / p->dims[0]), scale = p->ndim == 1 ? 0.2 : 1 / sqrt(fan_in);
    float *x = malloc((size_t)p->count * sizeof *x);
    ms_random_normal_fill(77, (uint64_t)i, 0, x, p->count);
    for (int64_t j = 0; j < p->count; j++) {
      x[j] = (float)(x[j] * scale + (p->start == MS_START_ONE));
      if (params->type == MSK_F32)
        ((float *)ms_params_at(params, i))[j] = x[j];
      else
        ((uint16_t *)ms_params_at(params, i))[j] = msk_f32_to_bf16(x[j]);
    }
    free(x);
  }
}

static void fill_material(struct world *w, const struct setup *s, const struct ms_dit_config *config, int b) {
  struct material *m = &w->list[b];
  uint64_t stream = 100 * (uint64_t)b;
  m->latents = check_alloc_f32(w->in_count);
  m->dvelocity = check_alloc_f32(w->out_count);
  ms_random_normal_fill(1, stream, 0, m->latents, w->in_count);
  ms_random_normal_fill(1, stream + 1, 0, m->dvelocity, w->out_count);
  for (int i = 0; i < s->samples; i++) {
    float *text;
    m->timesteps[i] = 100.0f + 211.5f * (float)i + 77 * (float)b;
    m->text_rows[i] = 1 + (i + b) % config->text_len;
    text = check_alloc_f32(m->text_rows[i] * config->text_dim);
    ms_random_normal_fill(1, stream + 2 + (uint64_t)i, 0, text, m->text_rows[i] * config->text_dim);
    m->text[i] = text;
  }
  m->batch = (struct ms_dit_batch){.samples = s->samples,
                                   .lattice = {s->lattice[0], s->lattice[1], s->lattice[2]},
                                   .latents = m->latents,
                                   .timesteps = m->timesteps,
                                   .text = m->text,
                                   .text_rows = m->text_rows};
  w->batches[b] = m->batch;
  w->dvelocities[b] = m->dvelocity;
}

static int open_world(struct world *w, const struct setup *s, int threads) {
  struct ms_dit_config config = config_of(s);
  struct ms_error error = {0};
  int64_t points = (int64_t)s->lattice[0] * s->lattice[1] * s->lattice[2];
  memset(w, 0, sizeof *w);
  if (ms_compute_open(&w->compute, threads, msk_cpu_detect(), &error) < 0 ||
      ms_dit_open(&w->dit, &w->compute, &config, &error) < 0 ||
      ms_params_allocate(ms_dit_params(w->dit), s->type, &error) < 0 ||
      (fill_params(ms_dit_params(w->dit)), ms_dit_prepare(w->dit, s->precision, 1, &error)) < 0) {
    check_ok(0, "%s: %s", s->name, error.message);
    return 0;
  }
  w->in_count = s->samples * config.in_channels * points;
  w->out_count = s->samples * config.out_channels * points;
  w->rows = s->samples * points / (config.patch[1] * config.patch[2]);
  for (int b = 0; b < MOST_BATCHES; b++)
    fill_material(w, s, &config, b);
  return 1;
}

static void close_world(struct world *w) {
  ms_dit_close(&w->dit);
  ms_compute_release(&w->compute);
  check_free_all();
}

/* A source over flat arrays: lends copies, and takes back what may have been written to. */
struct fake {
  struct ms_dit *dit;
  struct ms_params *params;
  char *values;          /* homes */
  float *grad, *streams; /* [LAYERS + 1][stream] */
  int64_t stream;        /* floats */
  int lends;             /* streams too */
  char *lent_values;     /* what is lent, poisoned between loans */
  float *lent_grad, *lent_x, *lent_y;
  int open, calls, order[8 * LAYERS]; /* shard lent now (-2: none); calls of begin: pass * 100 + shard */
  int fail_begin, fail_end;           /* call that fails, from 1; 0: none */
  int wrong;
};

static void poison(void *at, size_t bytes) {
  memset(at, 0xff, bytes);
}

static void range_of(const struct fake *f, int shard, size_t *at, size_t *bytes, size_t *first,
                     size_t *count) {
  int64_t begin, n;
  size_t element = msk_type_size(f->params->type);
  ms_dit_shard_range(f->dit, shard, &begin, &n);
  *at = (size_t)begin * element;
  *bytes = (size_t)n * element;
  *first = (size_t)begin;
  *count = (size_t)n;
}

/* Whose gradient a call is about. */
static int gradient_of(int shard) {
  return shard == LAYERS ? -1 : shard;
}

static int fake_begin(void *data, enum ms_dit_pass pass, int shard, struct ms_dit_loan *loan,
                      struct ms_error *error) {
  struct fake *f = data;
  size_t at, bytes, first, count, stream = (size_t)f->stream * sizeof(float);
  f->wrong |= f->open != -2 || f->calls >= 8 * LAYERS;
  f->order[f->calls++ % (8 * LAYERS)] = (int)pass * 100 + shard;
  if (f->calls == f->fail_begin)
    return ms_error_set(error, MS_EINPUT, "not there");
  f->open = shard;
  if (shard < LAYERS && (shard >= 0 || pass == MS_PASS_FORWARD)) {
    range_of(f, shard, &at, &bytes, &first, &count);
    loan->values = memcpy(f->lent_values + at, f->values + at, bytes);
  }
  if (pass == MS_PASS_BACKWARD) {
    range_of(f, gradient_of(shard), &at, &bytes, &first, &count);
    loan->gradient = memcpy(f->lent_grad + first, f->grad + first, count * sizeof(float));
  }
  if (f->lends && shard >= 0)
    loan->x = memcpy(f->lent_x, f->streams + shard * f->stream, stream);
  if (f->lends && shard < LAYERS && pass == MS_PASS_FORWARD)
    loan->y = f->lent_y;
  return 0;
}

static int fake_end(void *data, enum ms_dit_pass pass, int shard, struct ms_error *error) {
  struct fake *f = data;
  size_t at, bytes, first, count, stream = (size_t)f->stream * sizeof(float);
  f->wrong |= f->open != shard;
  f->open = -2;
  if (pass == MS_PASS_BACKWARD) {
    range_of(f, gradient_of(shard), &at, &bytes, &first, &count);
    memcpy(f->grad + first, f->lent_grad + first, count * sizeof(float));
    poison(f->lent_grad + first, count * sizeof(float));
  } else if (f->lends && shard < LAYERS) {
    memcpy(f->streams + (shard + 1) * f->stream, f->lent_y, stream);
  }
  if (shard < LAYERS) {
    range_of(f, shard, &at, &bytes, &first, &count);
    poison(f->lent_values + at, bytes);
  }
  if (f->lends) {
    poison(f->lent_x, stream);
    poison(f->lent_y, stream);
  }
  return f->calls == f->fail_end ? ms_error_set(error, MS_EINPUT, "not written") : 0;
}

/* Over the world's own weights, whose array is gone from the network while the source stands in for it. */
static void open_fake(struct fake *f, struct world *w, const struct setup *s, int count, int lends) {
  struct ms_params *params = ms_dit_params(w->dit);
  size_t bytes = (size_t)params->total * msk_type_size(params->type);
  *f = (struct fake){.dit = w->dit, .params = params, .values = params->data, .lends = lends, .open = -2};
  f->stream = count * w->rows * ms_dit_config(w->dit)->dim;
  f->grad = check_alloc_f32(params->total);
  f->streams = check_alloc_f32((LAYERS + 1) * f->stream);
  f->lent_values = check_alloc(bytes);
  f->lent_grad = check_alloc_f32(params->total);
  f->lent_x = check_alloc_f32(f->stream);
  f->lent_y = check_alloc_f32(f->stream);
  poison(f->lent_values, bytes);
  poison(f->lent_grad, (size_t)params->total * sizeof(float));
  poison(f->streams, (size_t)((LAYERS + 1) * f->stream) * sizeof(float));
  params->data = NULL;
}

static void close_fake(struct fake *f) {
  f->params->data = f->values;
}

static int prepare_fake(struct fake *f, enum msk_precision precision, struct ms_error *error) {
  const struct ms_dit_source source = {f, fake_begin, fake_end};
  return ms_dit_prepare_source(f->dit, &source, precision, 1, error);
}

/* What a step gives: gradients start from something, so that it shows whether they are added to. */
struct result {
  float *velocity[MOST_BATCHES], *grad;
};

static void open_result(struct result *r, const struct world *w) {
  int64_t total = ms_dit_params(w->dit)->total;
  r->grad = check_alloc_f32(total);
  ms_random_normal_fill(5, 5, 0, r->grad, total);
  for (int b = 0; b < MOST_BATCHES; b++)
    r->velocity[b] = check_alloc_f32(w->out_count);
}

static void compare(const struct world *w, const struct result *got, const struct result *want, int count,
                    const struct setup *s, int threads, const char *what) {
  const struct ms_params *params = ms_dit_params(w->dit);
  int64_t differing = 0;
  for (int b = 0; b < count; b++)
    check_bytes(got->velocity[b], want->velocity[b], (size_t)w->out_count * sizeof(float),
                "%s, %d threads, %d batches: %s: velocity %d", s->name, threads, count, what, b);
  for (int i = 0; i < params->count && got->grad; i++)
    if (memcmp(got->grad + params->list[i].offset, want->grad + params->list[i].offset,
               (size_t)params->list[i].count * sizeof(float))) {
      if (!differing++)
        printf("# first to differ: %s\n", params->list[i].name);
    }
  if (got->grad)
    check_ok(!differing, "%s, %d threads, %d batches: %s: gradients (%lld of %d differ)", s->name, threads,
             count, what, (long long)differing, params->count);
}

/* One batch after the other with all weights in memory: what all else is compared with. */
static void step_singly(struct world *w, int count, struct result *r, const struct setup *s) {
  struct ms_error error = {0};
  open_result(r, w);
  for (int b = 0; b < count; b++)
    if (ms_dit_forward(w->dit, &w->batches[b], 1, r->velocity[b], &error) < 0 ||
        ms_dit_backward(w->dit, &w->batches[b], w->dvelocities[b], r->grad, NULL, NULL, &error) < 0)
      check_ok(0, "%s: %s", s->name, error.message);
}

static void step_together(struct world *w, int count, float *grad, struct result *r, const struct setup *s) {
  struct ms_error error = {0};
  if (ms_dit_forward_all(w->dit, w->batches, count, 1, r->velocity, &error) < 0 ||
      ms_dit_backward_all(w->dit, w->batches, count, w->dvelocities, grad, &error) < 0)
    check_ok(0, "%s: %s", s->name, error.message);
}

static void check_order(const struct fake *f, const struct setup *s) {
  int good = f->calls == 2 * (LAYERS + 2) && f->open == -2 && !f->wrong;
  for (int i = 0; i < LAYERS + 2; i++)
    good &= f->order[i] == i - 1 && f->order[LAYERS + 2 + i] == 100 + LAYERS - i;
  check_ok(good, "%s: shards are asked for in order, each once a pass, and given back", s->name);
}

static void check_with_source(struct world *w, const struct setup *s, int threads, int count, int lends,
                              const struct result *want, const struct result *inference) {
  struct fake f;
  struct result got;
  struct ms_error error = {0};
  char what[64];
  open_fake(&f, w, s, count, lends);
  open_result(&got, w);
  memcpy(f.grad, got.grad, (size_t)f.params->total * sizeof(float));
  snprintf(what, sizeof what, "from a source%s", lends ? " that lends inputs" : "");
  if (prepare_fake(&f, s->precision, &error) < 0)
    check_ok(0, "%s: %s", s->name, error.message);
  step_together(w, count, NULL, &got, s);
  check_order(&f, s);
  got.grad = f.grad;
  compare(w, &got, want, count, s, threads, what);
  f.calls = 0;
  got.grad = NULL;
  if (ms_dit_forward_all(w->dit, w->batches, count, 0, got.velocity, &error) < 0)
    check_ok(0, "%s: %s", s->name, error.message);
  compare(w, &got, inference, count, s, threads, lends ? "sampled, inputs lent" : "sampled");
  check_ok(f.calls == LAYERS + 2 && f.open == -2 && !f.wrong, "%s: a pass without gradients", s->name);
  close_fake(&f);
}

static void check_setup(const struct setup *s) {
  for (int count = 1; count <= MOST_BATCHES; count += 2) {
    float *kept_grad = NULL, *kept[MOST_BATCHES] = {0};
    for (int threads = 1; threads <= 3; threads += 2) {
      struct world w;
      struct result want, together, inference;
      struct ms_error error = {0};
      size_t bytes, out;
      if (!open_world(&w, s, threads))
        return;
      step_singly(&w, count, &want, s);
      open_result(&together, &w);
      step_together(&w, count, together.grad, &together, s);
      compare(&w, &together, &want, count, s, threads, "together");
      open_result(&inference, &w);
      for (int b = 0; b < count; b++)
        if (ms_dit_forward(w.dit, &w.batches[b], 0, inference.velocity[b], &error) < 0)
          check_ok(0, "%s: %s", s->name, error.message);
      check_with_source(&w, s, threads, count, 0, &want, &inference);
      check_with_source(&w, s, threads, count, 1, &want, &inference);
      /* the threads' numbers of both rounds against each other */
      bytes = (size_t)ms_dit_params(w.dit)->total * sizeof(float);
      out = (size_t)w.out_count * sizeof(float);
      if (!kept_grad) {
        kept_grad = memcpy(malloc(bytes), want.grad, bytes);
        for (int b = 0; b < count; b++)
          kept[b] = memcpy(malloc(out), want.velocity[b], out);
      } else {
        struct result first = {.grad = kept_grad};
        memcpy(first.velocity, kept, sizeof kept);
        compare(&w, &want, &first, count, s, threads, "against 1 thread");
      }
      close_world(&w);
    }
    free(kept_grad);
    for (int b = 0; b < count; b++)
      free(kept[b]);
  }
}

/* The ranges of the shards are all of the list, and the blocks' parameters are in theirs. */
static void check_ranges(const struct setup *s) {
  struct world w;
  const struct ms_params *params;
  int64_t end = 0;
  int good = 1;
  if (!open_world(&w, s, 1))
    return;
  params = ms_dit_params(w.dit);
  for (int shard = -1; shard < LAYERS; shard++) {
    int64_t begin, count;
    ms_dit_shard_range(w.dit, shard, &begin, &count);
    good &= begin == end;
    end = begin + count;
    for (int i = 0; i < params->count; i++) {
      int inside = params->list[i].offset >= begin && params->list[i].offset < end;
      good &= inside == (params->list[i].layer == shard);
      /* what is trained is the end of its shard */
      if (i > 0 && params->list[i].layer == params->list[i - 1].layer)
        good &= params->list[i].kind != MS_PARAM_FROZEN || params->list[i - 1].kind == MS_PARAM_FROZEN;
    }
  }
  check_ok(good && end == params->total, "shards are ranges that follow each other");
  close_world(&w);
}

static void check_sizes(const struct setup *s) {
  struct world w;
  size_t training, sampling, input;
  if (!open_world(&w, s, 2))
    return;
  input = ms_dit_input_bytes(w.dit, w.batches, 1);
  training = ms_dit_activation_bytes(w.dit, w.batches, 1);
  sampling = ms_dit_activation_bytes(w.dit, w.batches, 0);
  check_ok(input == (size_t)w.rows * 32 * sizeof(float), "a layer's input is [R,C]");
  check_ok(ms_dit_input_bytes(w.dit, w.batches, 3) == 3 * input, "three batches have three");
  check_ok(training == ms_dit_working_bytes(w.dit, w.batches, 1, 1) + (LAYERS + 1) * input &&
               sampling == ms_dit_working_bytes(w.dit, w.batches, 1, 0) + input,
           "activations are what is worked in and the layers' inputs");
  check_ok(ms_dit_working_bytes(w.dit, w.batches, 3, 1) < 3 * ms_dit_working_bytes(w.dit, w.batches, 1, 1),
           "batches share what they work in");
  close_world(&w);
}

/* Gradients of latents and text through a source; a source that fails; a pass that is cancelled. */
static void check_calls(const struct setup *s) {
  struct world w;
  struct fake f;
  struct result want, got;
  struct ms_error error = {0};
  float *dlatents[2], *dtext[2][MOST_SAMPLES];
  int steps = 0;
  if (!open_world(&w, s, 2))
    return;
  for (int k = 0; k < 2; k++) {
    dlatents[k] = check_alloc_f32(w.in_count);
    for (int i = 0; i < s->samples; i++)
      dtext[k][i] = check_alloc_f32(w.list[0].text_rows[i] * 10);
  }
  open_result(&want, &w);
  open_result(&got, &w);
  if (ms_dit_forward(w.dit, w.batches, 1, want.velocity[0], &error) < 0 ||
      ms_dit_backward(w.dit, w.batches, w.dvelocities[0], want.grad, dlatents[0], dtext[0], &error) < 0)
    check_ok(0, "%s", error.message);
  open_fake(&f, &w, s, 1, 1);
  memcpy(f.grad, got.grad, (size_t)f.params->total * sizeof(float));
  if (prepare_fake(&f, s->precision, &error) < 0 ||
      ms_dit_forward(w.dit, w.batches, 1, got.velocity[0], &error) < 0 ||
      ms_dit_backward(w.dit, w.batches, w.dvelocities[0], NULL, dlatents[1], dtext[1], &error) < 0)
    check_ok(0, "%s", error.message);
  got.grad = f.grad;
  compare(&w, &got, &want, 1, s, 2, "one batch");
  check_bytes(dlatents[1], dlatents[0], (size_t)w.in_count * sizeof(float), "gradient of the latents");
  for (int i = 0; i < s->samples; i++)
    check_bytes(dtext[1][i], dtext[0][i], (size_t)w.list[0].text_rows[i] * 10 * sizeof(float),
                "gradient of text %d", i);
  for (int fail = 1; fail <= 2 * (LAYERS + 2); fail++)
    for (int ending = 0; ending < 2; ending++) {
      int code;
      f.calls = 0;
      f.fail_begin = ending ? 0 : fail;
      f.fail_end = ending ? fail : 0;
      error = (struct ms_error){0};
      code = ms_dit_forward(w.dit, w.batches, 1, got.velocity[0], &error);
      if (code == 0)
        code = ms_dit_backward(w.dit, w.batches, w.dvelocities[0], NULL, NULL, NULL, &error);
      steps += code == MS_EINPUT && f.calls == fail && f.open == -2 && !f.wrong &&
               !strcmp(error.message, ending ? "not written" : "not there");
    }
  check_ok(steps == 4 * (LAYERS + 2), "a source that fails ends the pass there, %d of %d times", steps,
           4 * (LAYERS + 2));
  f.calls = f.fail_begin = f.fail_end = 0;
  error = (struct ms_error){0};
  w.list[0].latents[3] = NAN;
  check_ok(ms_dit_forward(w.dit, w.batches, 1, got.velocity[0], &error) == MS_ENOTFINITE && f.open == -2 &&
               !f.wrong,
           "a loan ends where a value is not finite");
  close_fake(&f);
  close_world(&w);
}

struct interruption {
  atomic_int cancel;
  int layer;
};

static void interrupt(void *data, int layer) {
  struct interruption *i = data;
  if (layer == i->layer)
    atomic_store(&i->cancel, 1);
}

/* Keys and values of a text that was interrupted are made again, in a slot of their own for each batch. */
static void check_slots(const struct setup *s) {
  struct world w;
  struct result want, got;
  struct ms_error error = {0};
  struct interruption stop = {.layer = 1};
  if (!open_world(&w, s, 2))
    return;
  open_result(&want, &w);
  open_result(&got, &w);
  want.grad = got.grad = NULL;
  for (int b = 0; b < MOST_BATCHES; b++) {
    ms_dit_forward(w.dit, &w.batches[b], 0, want.velocity[b], &error);
    w.batches[b].text_slot = 2 * b + 1;
  }
  w.batches[0].layer_done = interrupt;
  w.batches[0].layer_data = &stop;
  ms_pool_set_cancel(w.compute.pool, &stop.cancel);
  check_ok(ms_dit_forward_all(w.dit, w.batches, MOST_BATCHES, 0, got.velocity, &error) == MS_ECANCELLED,
           "a pass is cancelled between layers");
  ms_pool_set_cancel(w.compute.pool, NULL);
  stop.layer = -1;
  for (int round = 0; round < 2; round++) {
    error = (struct ms_error){0};
    for (int b = 0; b < MOST_BATCHES; b++)
      poison(got.velocity[b], (size_t)w.out_count * sizeof(float));
    if (ms_dit_forward_all(w.dit, w.batches, MOST_BATCHES, 0, got.velocity, &error) < 0)
      check_ok(0, "%s", error.message);
    compare(&w, &got, &want, MOST_BATCHES, s, 2, round ? "texts kept" : "texts made again");
    poison((void *)w.list[0].text[0], (size_t)w.list[0].text_rows[0] * 10 * sizeof(float)); /* no more read */
  }
  w.batches[1].lattice[0]++;
  check_ok(ms_dit_forward_all(w.dit, w.batches, MOST_BATCHES, 0, got.velocity, &error) == MS_EUSAGE,
           "batches of several shapes are refused");
  close_world(&w);
}

int main(int argc, char **argv) {
  const struct setup setups[] = {
      {"bf16", 2, {3, 8, 10}, 1, MSK_BF16, MSK_PRECISION_BF16},
      {"float32", 2, {3, 8, 10}, 0, MSK_F32, MSK_PRECISION_F32},
      {"bf16 of float32 weights", 2, {3, 8, 10}, 1, MSK_F32, MSK_PRECISION_BF16},
      /* samples of more rows than a block */
      {"bf16 lines", 1, {3, 16, 18}, 0, MSK_BF16, MSK_PRECISION_BF16},
      {"float32 lines", 2, {3, 16, 18}, 1, MSK_F32, MSK_PRECISION_F32},
      {"bf16 with adapters", 2, {3, 8, 10}, 1, MSK_BF16, MSK_PRECISION_BF16, 3},
      {"float32 with adapters", 1, {3, 16, 18}, 0, MSK_F32, MSK_PRECISION_F32, 33},
  };
  check_begin(argc, argv);
  for (size_t i = 0; i < sizeof setups / sizeof *setups; i++)
    check_setup(&setups[i]);
  check_ranges(&setups[0]);
  check_ranges(&setups[5]);
  check_sizes(&setups[4]);
  check_calls(&setups[0]);
  check_slots(&setups[3]);
  return check_end();
}
