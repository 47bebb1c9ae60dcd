/* The plan of a training run. */
#include <math.h>
#include <string.h>

#include "plan/plan-private.h"
#include "sample/settings.h"
#include "train/loop.h"
#include "train/place.h"

/* Of a data set that nobody has counted. */
#define ASSUMED_CLIPS 32
/* Noise levels that each held-out clip is judged at. */
#define VALIDATION_SAMPLES 4

/* How much faster video is read than written. */
#define READ_OF_WRITTEN 3
struct training {
  struct ms_plan_case base;
  struct ms_train_job job; /* resolved */
  int64_t clips, parameters;
  struct ms_train_need need; /* of the attempt at hand */
};

/* One step's work, the mean over the buckets by their shares. */
struct step {
  double tokens, flops; /* of the model */
  double repeated;      /* FLOPs of the forward passes, which the backward passes do again */
  double forward, both; /* seconds of the forward pass, and of both passes */
  int64_t longest;      /* tokens of the longest clip */
  int lattice[3];       /* of the last bucket */
};

static void add_bucket(const struct training *t, const struct ms_train_bucket *b, struct step *step) {
  const struct ms_plan_case *c = &t->base;
  struct ms_dit *dit = c->model.dit;
  const int *patch = ms_dit_config(dit)->patch;
  double samples = (double)b->batch * t->job.accumulate, both, forward, model, again;
  int64_t here;
  ms_model_latent_size(&c->model, b->frames, b->height, b->width, step->lattice);
  here =
      (int64_t)(step->lattice[0] / patch[0]) * (step->lattice[1] / patch[1]) * (step->lattice[2] / patch[2]);
  step->longest = here > step->longest ? here : step->longest;
  both = ms_plan_pass_seconds(c->rates, dit, step->lattice, b->coarse, b->batch, 1);
  forward = ms_plan_pass_seconds(c->rates, dit, step->lattice, b->coarse, b->batch, 0);
  model = ms_train_flops(dit, t->job.method, step->lattice, b->coarse);
  again = ms_dit_forward_flops(dit, step->lattice, b->coarse);
  both *= (model + again) / (4 * again);
  forward = forward > both / 3 ? both / 3 : forward; /* the backward pass computes it once more */
  step->tokens += b->share * samples * (double)here;
  step->flops += b->share * samples * model;
  step->repeated += b->share * samples * again;
  step->forward += b->share * t->job.accumulate * forward;
  step->both += b->share * t->job.accumulate * both;
}

/* The memory of the CPU, exchanged for that of a device. */
static int use_device(const struct training *t, const struct ms_train_job *job, const int lattice[3],
                      struct ms_placement_job *need, struct ms_plan_slab *slab, struct ms_error *error) {
  const struct ms_dit *dit = t->base.model.dit;
  struct ms_placement bare;
  uint64_t room = UINT64_MAX;
  int coarse = job->bucket_count ? job->buckets[job->bucket_count - 1].coarse : 0, code;
  int batch = job->bucket_count ? job->buckets[job->bucket_count - 1].batch : job->batch;
  need->device = 1;
  need->working = need->input_bytes = 0;
  code = ms_placement_make(&bare, need, error); /* what slots and gradients take */
  if (code < 0)
    return code;
  if (need->device_budget) {
    room = bare.device_bytes + bare.slot_bytes;
    room = need->device_budget > room ? need->device_budget - room : 0;
  }
  ms_placement_release(&bare);
  ms_plan_slab(dit, lattice, coarse, batch, 1, room, slab);
  need->working = slab->working;
  need->slab_bytes = slab->slab_bytes;
  need->input_bytes = slab->input_bytes * (uint64_t)job->accumulate;
  if (slab->frames) /* the gradient of the residual stream */
    need->host_fixed += need->input_bytes;
  return 0;
}

/* Reading and encoding the clips once, looks at the held-out ones, checkpoints. */
static double beside_seconds(const struct training *t, const struct ms_train_job *job, const int lattice[3],
                             const struct ms_placement *placement, const struct ms_plan *plan) {
  const struct ms_rates *rates = t->base.rates;
  const struct ms_model *model = &t->base.model;
  struct ms_train_bucket bucket = {.width = job->width, .height = job->height, .frames = job->frames};
  double held = floor((double)t->clips * job->validation);
  double items = (double)ms_train_items(&bucket, t->clips, t->clips - (int64_t)held) + held;
  double looks = 2 + (job->validate_every > 0 ? (double)(job->steps / job->validate_every) : 0);
  double saves = 1 + (job->save_every > 0 ? (double)((job->steps - 1) / job->save_every) : 0);
  double seconds = (double)t->base.weight_bytes / rates->load;
  struct ms_schedule_params look = placement->params;
  struct ms_plan_work_seconds work = {
      .forward = ms_plan_pass_seconds(rates, model->dit, lattice, 0, VALIDATION_SAMPLES, 0)};
  struct ms_plan_times times;
  look.update = look.backward = 0;
  look.average = job->ema > 0;
  seconds += items * lattice[0] * ms_codec_flops(model->codec, 0, lattice[1], lattice[2]) / rates->encode;
  seconds += items * job->width * job->height * job->frames / (READ_OF_WRITTEN * rates->video);
  if (held > 0 && ms_plan_times(rates, &look, &work, NULL, &times, NULL) == 0)
    seconds += looks * held * times.seconds;
  if (rates->disk_write > 0)
    seconds += saves * (double)plan->checkpoint_bytes / rates->disk_write;
  return seconds;
}

static void put_state(const struct training *t, const struct ms_train_need *need, struct ms_plan *plan) {
  double all = (double)need->job.outer, trained = (double)need->job.outer_trained;
  for (int l = 0; l < need->job.layers; l++) {
    all += (double)need->job.counts[l];
    trained += (double)need->job.trained[l];
  }
  plan->state_bytes = (uint64_t)(trained * (2 + ms_placement_state_bytes(&need->job)));
  plan->checkpoint_bytes = plan->state_bytes + (uint64_t)(2 * (all - trained));
  plan->disk.checkpoint = plan->checkpoint_bytes + t->base.weight_bytes;
  plan->disk_bytes += plan->disk.checkpoint;
}

static int plan_step(struct training *t, struct ms_train_job *job, struct step *step, struct ms_plan *plan,
                     struct ms_error *error) {
  const struct ms_plan_case *c = &t->base;
  struct ms_train_clips clips = {.count = t->clips, .held = ms_plan_held(c)};
  struct ms_train_need *need = &t->need;
  struct ms_plan_slab slab = {0};
  struct ms_placement placement;
  struct ms_plan_times times;
  double share = ms_plan_has_device(c) ? 1 : 1 + MS_PLAN_STEP_SHARE;
  struct ms_plan_work_seconds work = {share * step->forward, share * (step->both - step->forward)};
  int code = 0;
  ms_train_need(&c->model, job, &clips, NULL, need);
  need->job.host_budget = plan->host_budget;
  need->job.device_budget = plan->device_budget;
  if (ms_plan_has_device(c))
    code = use_device(t, job, step->lattice, &need->job, &slab, error);
  if (code == 0)
    code = ms_placement_make(&placement, &need->job, error);
  if (code < 0)
    return code;
  ms_plan_put_placement(&placement, plan);
  plan->slab_frames = slab.frames;
  if (need->encode_bytes > plan->host_bytes) { /* encoding the clips is what takes most */
    plan->host.fixed += need->encode_bytes - plan->host_bytes;
    plan->host_bytes = need->encode_bytes;
  }
  put_state(t, need, plan);
  code = ms_plan_times(c->rates, &placement.params, &work, &slab, &times, error);
  if (code == 0) {
    ms_plan_put_times(&times, 1, plan);
    plan->seconds = times.seconds;
    plan->job_seconds =
        plan->seconds * (double)job->steps + beside_seconds(t, job, step->lattice, &placement, plan);
  }
  ms_placement_release(&placement);
  return code;
}

static void attempt(void *data, int width, int height, int frames, int batch, struct ms_plan *plan) {
  struct training *t = data;
  struct ms_train_job job = t->job;
  struct ms_train_bucket one = {
      .width = width, .height = height, .frames = frames, .batch = batch, .share = 1};
  struct step step = {0};
  struct ms_error error = {0};
  double share = 0, peak = t->base.rates->peak;
  job.width = width;
  job.height = height;
  job.frames = frames;
  job.batch = batch;
  job.moment_bits = plan->moment_bits;
  for (int i = 0; i < (job.bucket_count ? job.bucket_count : 1); i++) {
    const struct ms_train_bucket *b = job.bucket_count ? &job.buckets[i] : &one;
    add_bucket(t, b, &step);
    share += b->share;
  }
  step.forward /= share;
  step.both /= share;
  plan->width = width;
  plan->height = height;
  plan->frames = frames;
  plan->batch = batch;
  plan->tokens = step.longest;
  plan->tokens_per_step = (int64_t)(step.tokens / share);
  plan->model_flops = step.flops / share;
  plan->flops = plan->model_flops + step.repeated / share;
  plan->moved_bytes = 0;
  plan->exposed_transfer_seconds = 0;
  memset(plan->lane_seconds, 0, sizeof plan->lane_seconds);
  memset(plan->lane_bytes, 0, sizeof plan->lane_bytes);
  if (plan_step(t, &job, &step, plan, &error) < 0) {
    t->base.failed = MS_ENOMEM;
    return;
  }
  plan->mfu = peak > 0 ? plan->model_flops / plan->seconds / peak : 0;
  plan->hfu = peak > 0 ? plan->flops / plan->seconds / peak : 0;
  ms_plan_judge(plan);
}

int ms_plan_check_training(const struct ms_train_job *job, struct ms_error *error) {
  struct ms_generate_job clip = ms_generate_job_default();
  int code = ms_train_check_job(job, error);
  clip.width = job->width;
  clip.height = job->height;
  clip.frames = job->frames;
  return code < 0 ? code : ms_settings_check(&clip, error);
}

int ms_plan_train(const struct ms_train_job *job, int64_t clips, const struct ms_machine *machine,
                  const struct ms_rates *rates, struct ms_plan *plan, struct ms_error *error) {
  struct training t;
  int code = ms_plan_check_training(job, error);
  if (code < 0)
    return code;
  code = ms_plan_open(&t.base, job->model, NULL, job->method == MS_METHOD_LORA ? job->rank : 0, machine,
                      rates, error);
  if (code == 0) {
    struct ms_plan found = {0};
    const struct ms_params *params = ms_dit_params(t.base.model.dit);
    const struct ms_model_defaults *d = &t.base.model.defaults;
    t.job = *job;
    t.clips = clips > 0 ? clips : ASSUMED_CLIPS;
    t.parameters = 0;
    for (int i = 0; i < params->count; i++)
      t.parameters += params->list[i].count;
    if (!t.job.width) {
      t.job.width = d->width;
      t.job.height = d->height;
    }
    t.job.frames = t.job.frames ? t.job.frames : d->frames;
    found.parameters = t.parameters;
    found.layers = ms_dit_config(t.base.model.dit)->layers;
    found.steps = (int)job->steps;
    found.moment_bits = job->moment_bits;
    found.fps = d->fps;
    ms_plan_limits(&t.base, job->output, &found);
    attempt(&t, t.job.width, t.job.height, t.job.frames, t.job.batch, &found);
    if (!job->bucket_count)
      ms_plan_suggest(&t.base, attempt, &t, &found);
    if (t.base.failed)
      code = ms_error_set(error, t.base.failed, "out of memory for a plan");
    else
      *plan = found;
  }
  ms_plan_release(&t.base);
  return code;
}
