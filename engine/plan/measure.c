/* Rates of this machine: small networks of random weights, a codec and a video file, each run a few times.
 *
 * Whole passes are timed, not kernels, so that what lies between the kernels is in the figures. The cost of a
 * pass is taken as layers x fixed + products / rate + attention / rate; three lengths of a dense network give
 * the three unknowns, and 3D-DSA is what a pass with it takes beyond them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/random.h"
#include "base/system.h"
#include "ms-media.h"
#include "model/codec.h"
#include "msk-cpu.h"
#include "plan/plan-private.h"
#include "train/optimizer.h"

#define LEAST_CALLS 3
#define LEAST_ROUNDS 2
#define SPEND_SECONDS 0.06
#define CHANNELS 16
/* Offsets of the probes' windows before the bounds, in tokens: costs as much as those of trained models. */
#define OFFSETS 3.0
#define MOST_PROBES 4
#define SHORT_SECONDS 0.02
#define FORWARD_SECONDS 0.25
#define TRAIN_SECONDS 0.75

struct measure {
  struct ms_compute compute;
  const struct ms_hooks *hooks;
  const char *folder;
  struct ms_error *error;
};

struct probe_shape {
  int dim, ffn, heads, layers, text_dim, text_len, lattice[3];
  enum ms_attention_kind kind;
  int training;
};

struct probe {
  struct ms_dit *dit;
  struct ms_dit_batch batch;
  float time, *latents, *text, *velocity, *grad;
  const float *texts[1];
  int rows[1];
  double load_seconds; /* memory taken, weights written there and packed */
};

/* Best of several calls; stops early at the first that fails. */
static int best_seconds(int (*fn)(void *data, struct ms_error *error), void *data, double *seconds,
                        struct ms_error *error) {
  double spent = 0;
  *seconds = 1e30;
  for (int i = 0; i < 100 && (i < LEAST_CALLS || spent < SPEND_SECONDS); i++) {
    double start = ms_seconds(), took;
    int code = fn(data, error);
    if (code < 0)
      return code;
    took = ms_seconds() - start;
    spent += took;
    *seconds = took < *seconds ? took : *seconds;
  }
  return 0;
}

static float *normals(int64_t count) {
  float *x = aligned_alloc(64, ((size_t)count * sizeof *x + 63) / 64 * 64);
  if (x)
    for (int64_t i = 0; i < count; i += 4096) {
      int64_t n = count - i < 4096 ? count - i : 4096;
      if (i == 0)
        ms_random_normal_fill(1, 1, 0, x, n);
      else
        memcpy(x + i, x, (size_t)n * sizeof *x);
    }
  return x;
}

/* Small weights, and offsets that slide and stretch the windows. */
static void fill_weights(struct ms_compute *compute, struct ms_params *params) {
  enum { PIECE = 4096 };
  float values[PIECE];
  uint16_t *data = params->data, piece[PIECE];
  ms_random_normal_fill(2, 2, 0, values, PIECE);
  for (int i = 0; i < PIECE; i++)
    values[i] *= 0.02f;
  compute->adamw.f32_to_bf16(values, piece, PIECE);
  for (int64_t at = 0; at < params->total; at += PIECE)
    memcpy(data + at, piece, (size_t)(params->total - at < PIECE ? params->total - at : PIECE) * 2);
  for (int i = 0; i < params->count; i++) {
    const struct ms_param *param = &params->list[i];
    struct ms_random random = {.seed = 3, .stream = (uint64_t)i};
    if (!strstr(param->name, ".offset.out.bias"))
      continue;
    for (int64_t j = 0; j < param->count; j += PIECE) {
      int64_t n = param->count - j < PIECE ? param->count - j : PIECE;
      for (int64_t k = 0; k < n; k++)
        values[k] = (float)ms_random_range(&random, -OFFSETS, OFFSETS);
      compute->adamw.f32_to_bf16(values, data + param->offset + j, n);
    }
  }
}

static int probe_open(struct measure *m, const struct probe_shape *shape, struct probe *probe) {
  struct ms_dit_config *config = calloc(1, sizeof *config);
  int64_t volume = (int64_t)CHANNELS * shape->lattice[0] * shape->lattice[1] * shape->lattice[2];
  struct ms_params *params;
  double start = ms_seconds();
  int code = 0;
  memset(probe, 0, sizeof *probe);
  if (!config)
    return ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  *config = (struct ms_dit_config){.dim = shape->dim,
                                   .ffn = shape->ffn,
                                   .heads = shape->heads,
                                   .layers = shape->layers,
                                   .in_channels = CHANNELS,
                                   .out_channels = CHANNELS,
                                   .patch = {1, 2, 2},
                                   .text_dim = shape->text_dim,
                                   .text_len = shape->text_len,
                                   .freq_dim = 256,
                                   .eps = 1e-6f};
  for (int i = 0; i < shape->layers; i++)
    config->attention[i] = config->coarse_attention[i] = (struct ms_attention_config){
        .kind = shape->kind, .mode = MSK_SLIDE_POINT, .window = {3, 5, 5}, .bounds = {1, 4, 4}, .groups = 4};
  code = ms_dit_open(&probe->dit, &m->compute, config, m->error);
  free(config);
  if (code < 0)
    return code;
  params = ms_dit_params(probe->dit);
  code = ms_params_allocate(params, MSK_BF16, m->error);
  if (code == 0) {
    fill_weights(&m->compute, params);
    code = ms_dit_prepare(probe->dit, MSK_PRECISION_BF16, shape->training, m->error);
  }
  probe->load_seconds = ms_seconds() - start;
  probe->latents = normals(volume);
  probe->text = normals((int64_t)shape->text_len * shape->text_dim);
  probe->velocity = normals(volume);
  probe->grad = shape->training ? calloc((size_t)params->total, sizeof *probe->grad) : NULL;
  if (code == 0 && (!probe->latents || !probe->text || !probe->velocity || (shape->training && !probe->grad)))
    code = ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  if (code < 0)
    return code;
  probe->time = 500;
  probe->texts[0] = probe->text;
  probe->rows[0] = shape->text_len;
  probe->batch = (struct ms_dit_batch){.samples = 1,
                                       .latents = probe->latents,
                                       .timesteps = &probe->time,
                                       .text = probe->texts,
                                       .text_rows = probe->rows,
                                       .text_slot = shape->training ? 0 : 1};
  memcpy(probe->batch.lattice, shape->lattice, sizeof probe->batch.lattice);
  return code;
}

static void probe_close(struct probe *probe) {
  ms_dit_close(&probe->dit);
  free(probe->latents);
  free(probe->text);
  free(probe->velocity);
  free(probe->grad);
}

static int run_forward(void *data, struct ms_error *error) {
  struct probe *probe = data;
  return ms_dit_forward(probe->dit, &probe->batch, 0, probe->velocity, error);
}

static int run_training(void *data, struct ms_error *error) {
  struct probe *probe = data;
  int code = ms_dit_forward(probe->dit, &probe->batch, 1, probe->velocity, error);
  return code < 0
             ? code
             : ms_dit_backward(probe->dit, &probe->batch, probe->latents, probe->grad, NULL, NULL, error);
}

/* One probe: its best seconds, and where the model FLOPs of its passes go. */
struct reading {
  double seconds, load_seconds, parameters;
  struct ms_plan_work work;
};

static int stopped(const struct measure *m) {
  return m->hooks && m->hooks->cancel && atomic_load(m->hooks->cancel)
             ? ms_error_set(m->error, MS_ECANCELLED, "stopped while measuring this machine")
             : 0;
}

/* A pass, and if that was short two more at once: their weights are in the cache then, as they are when a
 * clip is made. */
static int read_once(struct measure *m, struct probe *probe, int training, struct reading *reading) {
  double spent = 0;
  int code = 0;
  for (int i = 0; i < 3 && code == 0 && (i == 0 || spent < SHORT_SECONDS); i++) {
    double start = ms_seconds(), took;
    code = stopped(m);
    if (code == 0)
      code = (training ? run_training : run_forward)(probe, m->error);
    took = ms_seconds() - start;
    spent += took;
    if (took < reading->seconds)
      reading->seconds = took;
  }
  return code;
}

/* Several probes in turn, again and again, so that what else runs on the machine disturbs them alike; each
 * keeps its best. */
static int read_probes(struct measure *m, const struct probe_shape *shapes, int count, double spend,
                       struct reading *readings) {
  struct probe probes[MOST_PROBES] = {0};
  double start;
  int code = 0;
  for (int i = 0; i < count && code == 0; i++) {
    code = probe_open(m, &shapes[i], &probes[i]);
    readings[i] = (struct reading){.seconds = 1e30, .load_seconds = probes[i].load_seconds};
  }
  start = ms_seconds();
  for (int round = 0; code == 0 && (round < LEAST_ROUNDS || ms_seconds() - start < spend); round++)
    for (int i = 0; i < count && code == 0; i++)
      code = read_once(m, &probes[i], shapes[i].training, &readings[i]);
  for (int i = 0; i < count; i++) {
    if (code == 0) {
      readings[i].work = ms_plan_pass_work(probes[i].dit, shapes[i].lattice, 0, shapes[i].training);
      readings[i].parameters = (double)ms_dit_params(probes[i].dit)->total;
    }
    probe_close(&probes[i]);
  }
  return code;
}

static double held(double rate, double low, double high) {
  return rate < low ? low : rate > high ? high : rate;
}

/* What a dense pass takes: fixed + product / rate + dense / rate. */
struct solved {
  double fixed, product, dense;
};

/* From a short and a long pass, nothing fixed. Noise must not make a rate negative or endless. */
static struct solved solve_two(const struct reading *a, const struct reading *b) {
  double whole = (b->work.product + b->work.dense) / b->seconds;
  double determinant = a->work.product * b->work.dense - b->work.product * a->work.dense;
  double p = (a->seconds * b->work.dense - b->seconds * a->work.dense) / determinant;
  double d = (a->work.product * b->seconds - b->work.product * a->seconds) / determinant;
  return (struct solved){.product = p > 0 ? held(1 / p, whole / 4, whole * 4) : whole,
                         .dense = d > 0 ? held(1 / d, whole / 4, whole * 4) : whole};
}

/* From a short, a middle and a long pass: the three unknowns by elimination; where noise makes one of them
 * negative, two passes with nothing fixed. */
static struct solved solve_three(const struct reading r[3]) {
  struct reading a = {.seconds = r[1].seconds - r[0].seconds}, b = {.seconds = r[2].seconds - r[0].seconds};
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
static double solve_slide(const struct reading *r, const struct solved *rest) {
  double whole = (r->work.product + r->work.slide) / r->seconds;
  double seconds = r->seconds - rest->fixed - r->work.product / rest->product;
  return seconds > 0 ? held(r->work.slide / seconds, whole / 20, whole) : whole;
}

static const struct probe_shape small_shape = {
    .dim = 256, .ffn = 1024, .heads = 4, .layers = 4, .text_dim = 128, .text_len = 24};

static struct probe_shape small_probe(int t, int y, int x, enum ms_attention_kind kind, int training) {
  struct probe_shape shape = small_shape;
  shape.lattice[0] = t;
  shape.lattice[1] = y;
  shape.lattice[2] = x;
  shape.kind = kind;
  shape.training = training;
  return shape;
}

static int measure_forward(struct measure *m, struct ms_rates *rates) {
  const struct probe_shape shapes[] = {
      small_probe(9, 8, 12, MS_ATTENTION_DENSE, 0), small_probe(9, 16, 24, MS_ATTENTION_DENSE, 0),
      small_probe(9, 24, 40, MS_ATTENTION_DENSE, 0), small_probe(5, 32, 48, MS_ATTENTION_DSA, 0)};
  struct ms_layer_rates *small = &rates->layers[0];
  struct reading r[4];
  struct solved solved;
  int code = read_probes(m, shapes, 4, FORWARD_SECONDS, r);
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
static int measure_training(struct measure *m, struct ms_rates *rates) {
  const struct probe_shape shapes[] = {small_probe(9, 8, 12, MS_ATTENTION_DENSE, 1),
                                       small_probe(9, 16, 24, MS_ATTENTION_DENSE, 1),
                                       small_probe(5, 24, 32, MS_ATTENTION_DSA, 1)};
  struct ms_layer_rates *small = &rates->layers[0];
  struct reading r[3];
  struct solved solved;
  double as_forward[2], slower;
  int code = read_probes(m, shapes, 3, TRAIN_SECONDS, r);
  if (code < 0)
    return code;
  for (int i = 0; i < 2; i++)
    as_forward[i] = r[i].work.product / small->product + r[i].work.dense / small->dense;
  slower = held((r[1].seconds - r[0].seconds) / (as_forward[1] - as_forward[0]), 0.5, 10);
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

/* One layer of 1536 channels. Its attention, little of the whole, goes as fast as the small one's, and its
 * training lags behind its forward pass as the small one's does: timing those would take longer than all the
 * rest. */
static int measure_large(struct measure *m, struct ms_rates *rates) {
  static const struct probe_shape shape = {.dim = 1536,
                                           .ffn = 8960,
                                           .heads = 12,
                                           .layers = 1,
                                           .text_dim = 512,
                                           .text_len = 512,
                                           .lattice = {9, 16, 24}};
  const struct ms_layer_rates *small = &rates->layers[0];
  struct ms_layer_rates *large = &rates->layers[1];
  struct solved solved = {0};
  struct probe_shape shapes[2];
  struct reading r[2];
  double whole;
  int code;
  shapes[0] = shapes[1] = shape;
  shapes[1].kind = MS_ATTENTION_DSA;
  if ((code = read_probes(m, shapes, 2, 0, r)) < 0)
    return code;
  large->dim = shape.dim;
  large->dense = small->dense;
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

struct update {
  struct ms_optimizer optimizer;
  struct probe probe;
};

static int run_update(void *data, struct ms_error *error) {
  struct update *u = data;
  int code;
  memset(u->probe.grad, 0, (size_t)ms_dit_params(u->probe.dit)->total * sizeof *u->probe.grad);
  code = ms_optimizer_step(&u->optimizer, u->probe.grad, 1e-6, NULL, error);
  return code < 0 ? code : ms_dit_prepare(u->probe.dit, MSK_PRECISION_BF16, 1, error);
}

static int measure_update(struct measure *m, struct ms_rates *rates) {
  static const struct probe_shape shape = {.dim = 256,
                                           .ffn = 1024,
                                           .heads = 4,
                                           .layers = 6,
                                           .text_dim = 128,
                                           .text_len = 24,
                                           .lattice = {1, 2, 2},
                                           .training = 1};
  struct ms_optimizer_params settings = ms_optimizer_params_default();
  struct update u = {0};
  double seconds;
  int code = stopped(m);
  settings.ema = 0.99f;
  if (code == 0)
    code = probe_open(m, &shape, &u.probe);
  if (code == 0)
    code = ms_optimizer_open(&u.optimizer, &m->compute, ms_dit_params(u.probe.dit), &settings, m->error);
  if (code == 0)
    code = best_seconds(run_update, &u, &seconds, m->error);
  if (code == 0)
    rates->update = (double)ms_dit_params(u.probe.dit)->total / seconds;
  ms_optimizer_release(&u.optimizer);
  probe_close(&u.probe);
  return code;
}

/* The codec of the starter with random weights, one latent frame of 320x192 pixels. */
#define CODEC_WIDTH 40
#define CODEC_HEIGHT 24
#define CODEC_FRAMES 4

struct codec_probe {
  struct ms_codec *codec;
  struct ms_codec_stream *decoder, *encoder;
  float *latent, *frames;
};

static int run_decoder(void *data, struct ms_error *error) {
  struct codec_probe *p = data;
  int count;
  return ms_codec_decode_push(p->decoder, p->latent, p->frames, &count, error);
}

static int run_encoder(void *data, struct ms_error *error) {
  struct codec_probe *p = data;
  return ms_codec_encode_push(p->encoder, p->frames, p->latent, error);
}

static int measure_codec(struct measure *m, struct ms_rates *rates) {
  struct codec_probe p = {0};
  json_t *config = json_pack("{s:s}", "kind", "pack");
  double seconds;
  int code = stopped(m);
  if (code == 0)
    code = ms_codec_open(&p.codec, &m->compute, config, m->error);
  json_decref(config);
  if (code == 0)
    code = ms_params_allocate(ms_codec_params(p.codec), MSK_F32, m->error);
  if (code == 0) {
    ms_codec_randomize(p.codec, 1);
    code = ms_codec_prepare(p.codec, MSK_PRECISION_BF16, 0, m->error);
  }
  p.latent = normals((int64_t)CHANNELS * CODEC_WIDTH * CODEC_HEIGHT);
  p.frames = normals((int64_t)CODEC_FRAMES * CODEC_WIDTH * CODEC_HEIGHT * 64 * 3);
  if (code == 0 && (!p.latent || !p.frames))
    code = ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  if (code == 0)
    code = ms_codec_decoder_open(&p.decoder, p.codec, CODEC_HEIGHT, CODEC_WIDTH, m->error);
  if (code == 0)
    code = ms_codec_encoder_open(&p.encoder, p.codec, CODEC_HEIGHT * 8, CODEC_WIDTH * 8, m->error);
  if (code == 0 && (code = best_seconds(run_decoder, &p, &seconds, m->error)) == 0)
    rates->decode = ms_codec_flops(p.codec, 1, CODEC_HEIGHT, CODEC_WIDTH) / seconds;
  if (code == 0 && (code = best_seconds(run_encoder, &p, &seconds, m->error)) == 0)
    rates->encode = ms_codec_flops(p.codec, 0, CODEC_HEIGHT, CODEC_WIDTH) / seconds;
  ms_codec_stream_close(&p.decoder);
  ms_codec_stream_close(&p.encoder);
  ms_codec_close(&p.codec);
  free(p.latent);
  free(p.frames);
  return code;
}

/* A shaded picture with a moving square, as a clip that was made would have it. */
static int write_video(struct measure *m, const char *path, int width, int height, int frames,
                       double *seconds) {
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder = NULL;
  uint8_t *rgb = malloc((size_t)width * height * 3);
  double start = ms_seconds();
  int code = rgb ? 0 : ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  params.width = width;
  params.height = height;
  if (code == 0)
    code = ms_encoder_open(&encoder, path, &params, m->error);
  for (int f = 0; f < frames && code == 0; f++) {
    for (int y = 0; y < height; y++)
      for (int x = 0; x < width; x++) {
        uint8_t *pixel = rgb + ((size_t)y * width + x) * 3;
        int inside = abs(x - width / 4 - f) < height / 6 && abs(y - height / 2) < height / 6;
        pixel[0] = (uint8_t)(inside ? 220 : x * 100 / width + (x * 7 + y * 13 + f * 5) % 4);
        pixel[1] = (uint8_t)(inside ? 40 : y * 100 / height);
        pixel[2] = (uint8_t)(inside ? 30 : 120);
      }
    code = ms_encoder_write(encoder, rgb, m->error);
  }
  if (code == 0)
    code = ms_encoder_finish(encoder, m->error);
  *seconds = ms_seconds() - start;
  ms_encoder_close(&encoder);
  unlink(path);
  free(rgb);
  return code;
}

static int measure_video(struct measure *m, struct ms_rates *rates) {
  static const int sizes[2][3] = {{64, 64, 5}, {320, 192, 33}};
  double best[2] = {1e30, 1e30}, pixels[2];
  char path[1200];
  int code = stopped(m);
  snprintf(path, sizeof path, "%s/measure-%ld.mp4", m->folder, (long)getpid());
  for (int i = 0; i < 4 && code == 0; i++) {
    const int *s = sizes[i % 2];
    double seconds;
    pixels[i % 2] = (double)s[0] * s[1] * s[2];
    code = write_video(m, path, s[0], s[1], s[2], &seconds);
    if (seconds < best[i % 2])
      best[i % 2] = seconds;
  }
  if (code < 0)
    return code;
  if (best[0] > best[1] / 2) /* a disk that is slow to sync says nothing of the pixels */
    best[0] = best[1] / 2;
  rates->video = (pixels[1] - pixels[0]) / (best[1] - best[0]);
  rates->video_seconds = held(best[0] - pixels[0] / rates->video, 0, best[0]);
  return 0;
}

int ms_rates_measure(struct ms_rates *rates, const struct ms_machine *machine, const char *folder,
                     const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_rates found = {.version = MS_PLAN_VERSION};
  struct measure m = {.hooks = hooks, .folder = folder, .error = error};
  int code = ms_compute_open(&m.compute, machine->threads, msk_cpu_detect(), error);
  if (code < 0)
    return code;
  ms_pool_set_cancel(m.compute.pool, hooks ? hooks->cancel : NULL);
  ms_rates_processor(found.name, sizeof found.name);
  found.threads = ms_pool_threads(m.compute.pool);
  code = measure_forward(&m, &found);
  if (code == 0)
    code = measure_training(&m, &found);
  if (code == 0)
    code = measure_large(&m, &found);
  if (code == 0)
    code = measure_update(&m, &found);
  if (code == 0)
    code = measure_codec(&m, &found);
  if (code == 0)
    code = measure_video(&m, &found);
  if (code == 0)
    *rates = found;
  ms_compute_release(&m.compute);
  return code;
}
