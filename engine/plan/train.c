/* The plan of a training run. */
#include <math.h>
#include <string.h>

#include "plan/plan-private.h"
#include "sample/settings.h"
#include "train/loop.h"
#include "train/memory.h"

/* Of a data set that nobody has counted. */
#define ASSUMED_CLIPS 32
/* Noise levels that each held-out clip is judged at. */
#define VALIDATION_SAMPLES 4

/* How much faster video is read than written. */
#define READ_OF_WRITTEN 3
/* Bytes a second of a disk that nobody measured. */
#define DISK_RATE 0.5e9

struct training {
  struct ms_plan_case base;
  struct ms_train_job job; /* resolved */
  int64_t clips, parameters;
};

/* Bytes of a checkpoint: weights and their low words, moments, average. */
static double checkpoint_bytes(const struct training *t) {
  return (double)t->parameters * (2 + 2 + 8 + (t->job.ema > 0 ? 4 : 0));
}

/* Reading and encoding the clips once, looks at the held-out ones, checkpoints. */
static double beside_seconds(const struct training *t, const struct ms_train_job *job, const int lattice[3]) {
  const struct ms_rates *rates = t->base.rates;
  const struct ms_model *model = &t->base.model;
  struct ms_train_bucket bucket = {.width = job->width, .height = job->height, .frames = job->frames};
  double held = floor((double)t->clips * job->validation);
  double items = (double)ms_train_items(&bucket, t->clips, t->clips - (int64_t)held) + held;
  double looks = 2 + (job->validate_every > 0 ? (double)(job->steps / job->validate_every) : 0);
  double saves = 1 + (job->save_every > 0 ? (double)((job->steps - 1) / job->save_every) : 0);
  double seconds = (double)t->base.weight_bytes / rates->load;
  seconds += items * lattice[0] * ms_codec_flops(model->codec, 0, lattice[1], lattice[2]) / rates->encode;
  seconds += items * job->width * job->height * job->frames / (READ_OF_WRITTEN * rates->video);
  seconds += looks * held * ms_plan_pass_seconds(rates, model->dit, lattice, 0, VALIDATION_SAMPLES, 0);
  return seconds + saves * checkpoint_bytes(t) / (rates->disk > 0 ? rates->disk : DISK_RATE);
}

static void attempt(void *data, int width, int height, int frames, int batch, struct ms_plan *plan) {
  const struct training *t = data;
  const struct ms_plan_case *c = &t->base;
  struct ms_train_job job = t->job;
  struct ms_train_clips clips = {.count = t->clips};
  struct ms_memory need;
  int lattice[3], buckets = job.bucket_count ? job.bucket_count : 1;
  const int *patch = ms_dit_config(c->model.dit)->patch;
  double share = 0, step = 0, tokens = 0, flops = 0;
  job.width = width;
  job.height = height;
  job.frames = frames;
  job.batch = batch;
  plan->tokens = 0;
  for (int i = 0; i < buckets; i++) {
    struct ms_train_bucket one = {
        .width = width, .height = height, .frames = frames, .batch = batch, .share = 1};
    const struct ms_train_bucket *b = job.bucket_count ? &job.buckets[i] : &one;
    double samples = (double)b->batch * job.accumulate;
    int64_t here;
    ms_model_latent_size(&c->model, b->frames, b->height, b->width, lattice);
    here = (int64_t)(lattice[0] / patch[0]) * (lattice[1] / patch[1]) * (lattice[2] / patch[2]);
    plan->tokens = here > plan->tokens ? here : plan->tokens;
    share += b->share;
    tokens += b->share * samples * (double)here;
    flops += b->share * samples * 3 * ms_dit_forward_flops(c->model.dit, lattice, b->coarse);
    step += b->share * job.accumulate *
            ms_plan_pass_seconds(c->rates, c->model.dit, lattice, b->coarse, b->batch, 1);
  }
  ms_train_memory(&c->model, &job, &clips, &need);
  plan->width = width;
  plan->height = height;
  plan->frames = frames;
  plan->batch = batch;
  plan->tokens_per_step = (int64_t)(tokens / share);
  plan->model_flops = flops / share;
  plan->flops = plan->model_flops * 4 / 3; /* each layer's forward pass is computed again */
  plan->seconds =
      (1 + MS_PLAN_STEP_SHARE) * step / share + (double)ms_dit_params(c->model.dit)->total / c->rates->update;
  plan->job_seconds = plan->seconds * (double)job.steps + beside_seconds(t, &job, lattice);
  plan->disk_bytes = (uint64_t)(checkpoint_bytes(t) * (job.keep + 1)) + c->weight_bytes;
  plan->moved_bytes = 0; /* resident: everything stays where it is computed with */
  ms_plan_place(c, &need, plan);
  ms_plan_judge(plan);
}

static int check_job(const struct ms_train_job *job, struct ms_error *error) {
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
  int code = check_job(job, error);
  if (code < 0)
    return code;
  code = ms_plan_open(&t.base, job->model, NULL, machine, rates, error);
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
    found.steps = (int)job->steps;
    found.fps = d->fps;
    ms_plan_limits(&t.base, job->output, &found);
    attempt(&t, t.job.width, t.job.height, t.job.frames, t.job.batch, &found);
    if (!job->bucket_count)
      ms_plan_suggest(&t.base, attempt, &t, &found);
    *plan = found;
  }
  ms_plan_release(&t.base);
  return code;
}
