/* The study of a model's step: what arithmetic alone says of it, and simulations over everything that can be
 * chosen. */
#include <stdlib.h>
#include <string.h>

#include "plan/plan-private.h"
#include "sample/settings.h"
#include "train/loop.h"

/* Of the peak: what the best steps of dense networks reach on large devices, and what one with attention and
 * recomputation does. */
#define BEST_SHARE 0.61
#define USUAL_SHARE 0.45
/* Bytes a second, each way: what 16 lanes give of their 31.5 and 63 GB/s. */
#define PCIE4 25e9
#define PCIE5 55e9
/* Part of the memory's peak that AdamW's access pattern reaches. */
#define MEMORY_SHARE 0.83
#define DDR5(channels, mega) (MEMORY_SHARE * (channels) * (mega)*1e6 * 8)
/* A step that was claimed for 105 G parameters, in seconds. */
#define CLAIMED_SECONDS 3.1

struct study {
  struct ms_plan_case base;
  struct ms_train_job job;
  const struct ms_plan_study *to;
  int64_t counts[MS_MAX_LAYERS], outer;
  int lattice[3];        /* of the job's clip, before the patch */
  double n, tokens, dim; /* parameters of all layers */
};

static void tell(const struct study *s, const char *name, const char *unit, double value) {
  const struct ms_plan_bound bound = {name, unit, value};
  s->to->bound(s->to->data, &bound);
}

/* Tokens of the clip if one covered cell [t,y,x] pixels. */
static double tokens_of(const struct ms_train_job *job, int t, int y, int x) {
  double frames = job->frames > 1 ? 1 + (job->frames - 1 + t - 1) / t : 1;
  return frames * ((job->height + y - 1) / y) * ((job->width + x - 1) / x);
}

static void tell_tokens(const struct study *s) {
  tell(s, "parameters of the layers, N", "parameters", s->n);
  tell(s, "tokens of a clip, T", "tokens", s->tokens);
  tell(s, "tokens of 1x16x16 pixels", "tokens", tokens_of(&s->job, 1, 16, 16));
  tell(s, "tokens of 4x16x16 pixels", "tokens", tokens_of(&s->job, 4, 16, 16));
  tell(s, "tokens of 4x32x32 pixels", "tokens", tokens_of(&s->job, 4, 32, 32));
  tell(s, "tokens of 8x32x32 pixels", "tokens", tokens_of(&s->job, 8, 32, 32));
}

static void tell_work(const struct study *s) {
  const struct ms_rates *r = s->base.rates;
  double best = BEST_SHARE * r->peak, nt = s->n * s->tokens,
         layers = ms_dit_config(s->base.model.dit)->layers;
  tell(s, "products of a step, 6 N T", "FLOP", 6 * nt);
  if (r->peak > 0) {
    tell(s, "6 N T at 61 % of the peak", "s", 6 * nt / best);
    tell(s, "8 N T, with recomputation, at 61 % of the peak", "s", 8 * nt / best);
    tell(s, "8 N T at 45 % of the peak", "s", 8 * nt / (USUAL_SHARE * r->peak));
    tell(s, "tokens that 3.1 s at 61 % of the peak pay for", "tokens", CLAIMED_SECONDS * best / (6 * s->n));
  }
  tell(s, "6 N T at this machine's rate of training", "s", 6 * nt / r->layers[1].train_product);
  tell(s, "products a token and layer, 2 N / L", "FLOP a token and layer", 2 * s->n / layers);
  tell(s, "dense attention beside the products, 4 T T C L / (2 N T)", "times",
       4 * s->tokens * s->dim * layers / (2 * s->n));
}

/* Attention of 3D-DSA over a window of k points, m = points of the window one longer each way. */
static void tell_window(const struct study *s) {
  const char *unit = "FLOP a token and layer";
  double c = s->dim, k = 3 * 7 * 7, m = 4 * 8 * 8, groups = 4;
  tell(s, "3D-DSA 3x7x7, point, forward, 32 K C", unit, 32 * k * c);
  tell(s, "3D-DSA 3x7x7, point, backward, 80 K C", unit, 80 * k * c);
  tell(s, "3D-DSA 3x7x7, shift, forward, 4 M C", unit, 4 * m * c);
  tell(s, "3D-DSA 3x7x7, shift, backward, 10 M C", unit, 10 * m * c);
  tell(s, "window 3x7x7, forward, 4 K C", unit, 4 * k * c);
  tell(s, "window 3x7x7, backward, 10 K C", unit, 10 * k * c);
  tell(s, "offset head, point, 54 C + 6 G K C", unit, 54 * c + 6 * groups * k * c);
  tell(s, "offset head, shift, 54 C + 6 G C", unit, 54 * c + 6 * groups * c);
}

static void tell_bytes(const struct study *s) {
  const struct ms_rates *r = s->base.rates;
  double input = s->tokens * s->dim * 2, layers = ms_dit_config(s->base.model.dit)->layers;
  double weights = 2 * 2 * s->n;
  tell(s, "weights to the device, twice", "bytes", weights);
  tell(s, "weights twice over PCIe 5", "s", weights / PCIE5);
  tell(s, "weights twice over PCIe 4", "s", weights / PCIE4);
  if (r->link > 0 && r->peak > 0)
    tell(s, "tokens from which computing at 61 % hides the weights", "tokens",
         BEST_SHARE * r->peak / r->link);
  tell(s, "AdamW's traffic, float32 master, 28 B a parameter", "bytes", 28 * s->n);
  tell(s, "AdamW's traffic, split master, 26 B a parameter", "bytes", 26 * s->n);
  tell(s, "28 B a parameter, 12 channels of DDR5-6400", "s", 28 * s->n / DDR5(12, 6400));
  tell(s, "28 B a parameter, 8 channels of DDR5-4800", "s", 28 * s->n / DDR5(8, 4800));
  tell(s, "26 B a parameter, 12 channels of DDR5-6400", "s", 26 * s->n / DDR5(12, 6400));
  tell(s, "26 B a parameter, 8 channels of DDR5-4800", "s", 26 * s->n / DDR5(8, 4800));
  tell(s, "26 B a parameter, this machine", "s", 26 * s->n / r->memory);
  tell(s, "state, float32 master, 14 B a parameter", "bytes", 14 * s->n);
  tell(s, "state, split master, 12 B a parameter", "bytes", 12 * s->n);
  tell(s, "state, split master and 8-bit moments, 6 B a parameter", "bytes",
       (6 + 8.0 / MSK_ADAMW_BLOCK) * s->n);
  tell(s, "gradients in bf16", "bytes", 2 * s->n);
  tell(s, "one bf16 tensor [T,C]", "bytes", input);
  tell(s, "inputs of all layers in bf16", "bytes", layers * input);
}

static void tell_bounds(const struct study *s) {
  tell_tokens(s);
  tell_work(s);
  tell_window(s);
  tell_bytes(s);
}

/* What is simulated: the machine, with the link of the trial, and the schedule without memory limits. */
static int simulate(const struct study *s, const struct ms_placement *base, const int lattice[3],
                    struct ms_plan_trial *trial, struct ms_error *error) {
  const struct ms_plan_case *c = &s->base;
  struct ms_dit *dit = c->model.dit;
  struct ms_rates rates = *c->rates;
  struct ms_schedule_params params = base->params;
  enum ms_home homes[MS_MAX_LAYERS];
  struct ms_plan_slab slab;
  struct ms_plan_times times;
  struct ms_plan_work_seconds work;
  double both = ms_plan_pass_seconds(&rates, dit, lattice, 0, 1, 1), inputs, model;
  double forward = ms_plan_pass_seconds(&rates, dit, lattice, 0, 1, 0);
  double held = s->n * (trial->parameter_bytes + params.gradient_bytes);
  uint64_t room = rates.device_memory > base->device_bytes ? rates.device_memory - base->device_bytes : 0;
  int code;
  rates.link = trial->link;
  forward = forward > both / 3 ? both / 3 : forward;
  work = (struct ms_plan_work_seconds){forward, both - forward};
  ms_plan_slab(dit, lattice, 0, 1, 1, trial->pcie ? room : UINT64_MAX, &slab);
  if (!trial->pcie)
    slab.input_bytes *= 2; /* float32 */
  inputs = (double)slab.input_bytes * (params.layers + 1);
  params.input_bytes = (double)slab.input_bytes;
  params.inputs =
      !slab.frames && trial->pcie && (double)slab.working + inputs <= (double)room           ? MS_INPUT_DEVICE
      : !rates.host_memory || inputs + (trial->disk ? 0 : held) <= (double)rates.host_memory ? MS_INPUT_HOST
                                                                                             : MS_INPUT_DISK;
  params.state_bytes = trial->parameter_bytes - params.weight_bytes;
  params.sync = trial->sync;
  for (int l = 0; l < params.layers; l++)
    homes[l] = trial->disk ? MS_HOME_DISK : MS_HOME_HOST;
  params.homes = homes;
  code = ms_plan_times(&rates, &params, &work, &slab, &times, error);
  if (code < 0)
    return code;
  model = 3 * ms_dit_forward_flops(dit, lattice, 0);
  trial->inputs = params.inputs == MS_INPUT_DEVICE ? "device"
                  : params.inputs == MS_INPUT_HOST ? "host"
                                                   : "disk";
  trial->host_bytes = (uint64_t)((trial->disk ? 0 : held) + (params.inputs == MS_INPUT_HOST ? inputs : 0));
  trial->fits = !rates.host_memory || trial->host_bytes <= rates.host_memory;
  trial->seconds = times.seconds;
  trial->exposed_transfer_seconds = times.exposed;
  memcpy(trial->lane_seconds, times.busy, sizeof trial->lane_seconds);
  if (rates.peak > 0) {
    trial->mfu = model / times.seconds / rates.peak;
    trial->hfu = model * 4 / 3 / times.seconds / rates.peak;
  }
  s->to->trial(s->to->data, trial);
  return 0;
}

/* All clips of one layout, link and home. */
static int run_clips(const struct study *s, const struct ms_placement *base, struct ms_plan_trial trial,
                     struct ms_error *error) {
  static const int frames[] = {1, 4, 11, 16, 64, 256, 1024}; /* of 1024 tokens */
  const int *patch = ms_dit_config(s->base.model.dit)->patch;
  int code = 0;
  for (size_t i = 0; i <= sizeof frames / sizeof *frames && code == 0; i++) {
    int lattice[3] = {frames[i % 7] * patch[0], 32 * patch[1], 32 * patch[2]};
    trial.tokens = 1024 * (int64_t)frames[i % 7];
    if (i == sizeof frames / sizeof *frames) {
      memcpy(lattice, s->lattice, sizeof lattice);
      trial.tokens = (int64_t)s->tokens;
    } else if (trial.tokens >= (int64_t)s->tokens) {
      continue;
    }
    code = simulate(s, base, lattice, &trial, error);
  }
  return code;
}

static int run_trials(const struct study *s, struct ms_error *error) {
  static const double layouts[] = {12, 14, 6 + 8.0 / MSK_ADAMW_BLOCK};
  const int device = ms_plan_has_device(&s->base);
  struct ms_placement_job job = {.layers = ms_dit_config(s->base.model.dit)->layers,
                                 .counts = s->counts,
                                 .outer = s->outer,
                                 .outer_trained = s->outer,
                                 .training = 1,
                                 .moment_bits = 32,
                                 .device = device};
  struct ms_placement base;
  int code = ms_placement_make(&base, &job, error);
  if (code < 0)
    return code;
  for (int sync = 0; sync < 2; sync++)
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++)
      for (int pcie = device ? 5 : 0; pcie >= (device ? 4 : 0) && code == 0; pcie--)
        for (int disk = 0; disk < 2 && code == 0; disk++) {
          struct ms_plan_trial trial = {.sync = sync,
                                        .parameter_bytes = layouts[l],
                                        .link = pcie == 5   ? PCIE5
                                                : pcie == 4 ? PCIE4
                                                            : 0,
                                        .pcie = pcie,
                                        .disk = disk};
          code = run_clips(s, &base, trial, error);
        }
  ms_placement_release(&base);
  return code;
}

int ms_plan_train_study(const struct ms_train_job *job, const struct ms_machine *machine,
                        const struct ms_rates *rates, const struct ms_plan_study *study,
                        struct ms_error *error) {
  struct study s = {.to = study, .job = *job};
  const struct ms_dit_config *config;
  int code = ms_plan_check_training(job, error);
  if (code < 0)
    return code;
  code = ms_plan_open(&s.base, job->model, NULL, 0, machine, rates, error);
  if (code == 0) {
    const struct ms_model_defaults *d = &s.base.model.defaults;
    int64_t begin;
    config = ms_dit_config(s.base.model.dit);
    if (!s.job.width) {
      s.job.width = d->width;
      s.job.height = d->height;
    }
    s.job.frames = s.job.frames ? s.job.frames : d->frames;
    ms_model_latent_size(&s.base.model, s.job.frames, s.job.height, s.job.width, s.lattice);
    s.tokens = 1;
    for (int i = 0; i < 3; i++)
      s.tokens *= s.lattice[i] / config->patch[i];
    s.dim = config->dim;
    ms_dit_shard_range(s.base.model.dit, -1, &begin, &s.outer);
    for (int l = 0; l < config->layers; l++) {
      ms_dit_shard_range(s.base.model.dit, l, &begin, &s.counts[l]);
      s.n += (double)s.counts[l];
    }
    tell_bounds(&s);
    code = run_trials(&s, error);
  }
  ms_plan_release(&s.base);
  return code;
}
