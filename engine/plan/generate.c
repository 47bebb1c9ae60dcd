/* The plan of a clip. */
#include <stdio.h>
#include <string.h>

#include "plan/plan-private.h"
#include "sample/memory.h"
#include "sample/settings.h"
#include "sample/streamed.h"

/* Bytes a pixel of a compressed clip, and of the states saved beside it: two, and one being written. */
#define VIDEO_BYTES_A_PIXEL 0.15
#define STATES 3
/* Copies of the latents that a sampler keeps as its history, and the latents themselves. */
#define STATE_LATENTS 4

struct clip {
  struct ms_plan_case base;
  struct ms_generate_job job; /* resolved */
};

/* Seconds of the network over all texts of one step. */
static double step_seconds(const struct clip *clip, const struct ms_stage *stage) {
  double share = ms_plan_has_device(&clip->base) ? 1 : 1 + MS_PLAN_STEP_SHARE;
  return (stage->guidance == 1 ? 1 : 2) * share *
         ms_plan_pass_seconds(clip->base.rates, clip->base.model.dit, stage->lattice, stage->coarse, 1, 0);
}

/* The clip of the stage before, enlarged. */
static double enlarge_seconds(const struct clip *clip, const struct ms_stage *stage,
                              const struct ms_stage *before) {
  const struct ms_rates *rates = clip->base.rates;
  const struct ms_codec *codec = clip->base.model.codec;
  return before->lattice[0] *
         (ms_codec_flops(codec, 1, before->lattice[1], before->lattice[2]) / rates->decode +
          ms_codec_flops(codec, 0, stage->lattice[1], stage->lattice[2]) / rates->encode);
}

/* Over the stages, the slab of the one that needs most. */
static void use_device(const struct clip *clip, const struct ms_stage_plan *stages,
                       struct ms_placement_job *job, struct ms_plan_slab *slab, uint64_t slots) {
  const struct ms_stage *last = &stages->list[stages->count - 1];
  uint64_t room = UINT64_MAX;
  if (job->device_budget)
    room = job->device_budget > slots ? job->device_budget - slots : 0;
  ms_plan_slab(clip->base.model.dit, last->lattice, last->coarse, 1, 0, room, slab);
  job->working = slab->working;
  if (slab->frames) /* the residual stream, before and after a layer */
    job->host_fixed += 2 * slab->input_bytes;
}

/* All stages with the weights passing through memory: one pass over them a step, for all texts. */
static int run_stages(const struct clip *clip, const struct ms_stage_plan *stages,
                      const struct ms_schedule_params *params, const struct ms_plan_slab *slab,
                      struct ms_plan *plan, struct ms_error *error) {
  for (int i = 0; i < stages->count; i++) {
    const struct ms_stage *stage = &stages->list[i];
    struct ms_plan_work_seconds work = {.forward = step_seconds(clip, stage)};
    struct ms_plan_times times;
    int code =
        ms_plan_times(clip->base.rates, params, &work, i + 1 == stages->count ? slab : NULL, &times, error);
    if (code < 0)
      return code;
    ms_plan_put_times(&times, stage->steps, plan);
    plan->stage_seconds[i] = stage->steps * times.seconds;
  }
  return 0;
}

static int plan_streamed(const struct clip *clip, const struct ms_stage_plan *stages, struct ms_plan *plan,
                         struct ms_error *error) {
  const struct ms_plan_case *c = &clip->base;
  enum msk_precision precision = c->machine->reference ? MSK_PRECISION_F32 : MSK_PRECISION_BF16;
  uint64_t weights = 2 * (uint64_t)ms_dit_params(c->model.dit)->total;
  struct ms_sample_need need;
  struct ms_placement placement;
  struct ms_plan_slab slab = {0};
  int64_t largest = 0;
  int code;
  ms_sample_need(&c->model, stages, precision, &need);
  need.job.host_fixed += ms_plan_held(c);
  need.job.host_budget = plan->host_budget;
  need.job.device_budget = plan->device_budget;
  need.job.device = ms_plan_has_device(c);
  for (int l = 0; l < need.job.layers; l++)
    largest = need.counts[l] > largest ? need.counts[l] : largest;
  if (need.job.device)
    use_device(clip, stages, &need.job, &slab,
               2 * (uint64_t)need.job.outer + 3 * (2 * (uint64_t)largest + 3 * MS_PLACEMENT_ALIGN));
  code = ms_placement_make(&placement, &need.job, error);
  if (code < 0)
    return code;
  ms_plan_put_placement(&placement, plan);
  plan->slab_frames = slab.frames;
  /* weights that a device has room for are copied once, and nothing moves in a pass */
  if (need.job.device && !slab.frames &&
      (!plan->device_budget || slab.working + weights <= plan->device_budget)) {
    plan->streamed = 0;
    plan->device_bytes = slab.working + weights;
    plan->device = (struct ms_plan_tier){.working = slab.working, .layers = weights};
    placement.params.device = 0;
    for (int l = 0; l < need.job.layers; l++)
      ((enum ms_home *)placement.params.homes)[l] = MS_HOME_HOST;
    plan->moved_bytes += c->weight_bytes;
  }
  code = run_stages(clip, stages, &placement.params, &slab, plan, error);
  ms_placement_release(&placement);
  return code;
}

/* Everything in memory: as it is made if it fits. */
static int plan_resident(const struct clip *clip, const struct ms_stage_plan *stages,
                         const struct ms_memory *need, struct ms_plan *plan) {
  const uint64_t host = need->host + ms_plan_held(&clip->base);
  if (ms_plan_has_device(&clip->base) || (plan->host_budget && host > plan->host_budget) ||
      (plan->device_budget && need->device > plan->device_budget))
    return 0;
  ms_plan_put_resident(need, plan);
  plan->host.fixed += host - plan->host_bytes;
  plan->host_bytes = host;
  for (int i = 0; i < stages->count; i++) {
    plan->stage_seconds[i] = stages->list[i].steps * step_seconds(clip, &stages->list[i]);
    plan->lane_seconds[MS_PLAN_COMPUTE] += plan->stage_seconds[i];
  }
  return 1;
}

static void attempt(void *data, int width, int height, int frames, int batch, struct ms_plan *plan) {
  struct clip *clip = data;
  const struct ms_plan_case *c = &clip->base;
  const struct ms_rates *rates = c->rates;
  struct ms_stage_plan stages;
  const struct ms_stage *last;
  struct ms_memory need;
  struct ms_error error = {0};
  double pixels = (double)width * height * frames, latents, sampling = 0;
  ms_stages_plan(&c->model, width, height, frames, clip->job.steps, clip->job.guidance, &stages);
  ms_sample_memory(&c->model, &stages, c->machine->reference ? MSK_PRECISION_F32 : MSK_PRECISION_BF16, &need);
  last = &stages.list[stages.count - 1];
  latents = 4.0 * ms_codec_channels(c->model.codec) * last->lattice[0] * last->lattice[1] * last->lattice[2];
  plan->width = width;
  plan->height = height;
  plan->frames = frames;
  plan->tokens = plan->tokens_per_step = last->tokens;
  plan->flops = plan->model_flops = ms_stages_flops(&c->model, &stages);
  plan->moved_bytes = c->weight_bytes; /* from the disk, once */
  plan->exposed_transfer_seconds = 0;
  memset(plan->lane_seconds, 0, sizeof plan->lane_seconds);
  memset(plan->lane_bytes, 0, sizeof plan->lane_bytes);
  if (!plan_resident(clip, &stages, &need, plan) && plan_streamed(clip, &stages, plan, &error) < 0) {
    clip->base.failed = MS_ENOMEM;
    return;
  }
  plan->disk = (struct ms_plan_tier){
      .fixed = (uint64_t)(VIDEO_BYTES_A_PIXEL * pixels + STATES * STATE_LATENTS * latents)};
  plan->disk_bytes = plan->disk.fixed;
  plan->load_seconds = (double)c->weight_bytes / rates->load;
  plan->decode_seconds = last->lattice[0] *
                         ms_codec_flops(c->model.codec, 1, last->lattice[1], last->lattice[2]) /
                         rates->decode;
  plan->encode_seconds = rates->video_seconds + pixels / rates->video;
  plan->seconds = plan->load_seconds + plan->decode_seconds + plan->encode_seconds;
  plan->stage_count = stages.count;
  for (int i = 0; i < stages.count; i++) {
    ms_stage_describe(ms_dit_config(c->model.dit), &stages.list[i], &plan->stages[i]);
    sampling += plan->stage_seconds[i];
    if (i)
      plan->stage_seconds[i] += enlarge_seconds(clip, &stages.list[i], &stages.list[i - 1]);
    plan->seconds += plan->stage_seconds[i];
  }
  plan->job_seconds = plan->seconds;
  plan->mfu = plan->hfu = rates->peak > 0 ? plan->flops / sampling / rates->peak : 0;
  ms_plan_judge(plan);
}

int ms_plan_generate(const struct ms_generate_job *job, const struct ms_machine *machine,
                     const struct ms_rates *rates, struct ms_plan *plan, struct ms_error *error) {
  struct clip clip;
  int code = ms_settings_check(job, error);
  if (code < 0)
    return code;
  code = ms_plan_open(&clip.base, job->model, job->attention, 0, machine, rates, error);
  clip.job = *job;
  if (code == 0)
    code = ms_settings_resolve(&clip.job, &clip.base.model.defaults, error);
  if (code == 0) {
    struct ms_plan found = {0};
    const struct ms_params *params = ms_dit_params(clip.base.model.dit);
    found.steps = clip.job.steps;
    found.fps = clip.job.fps;
    found.layers = ms_dit_config(clip.base.model.dit)->layers;
    for (int i = 0; i < params->count; i++)
      found.parameters += params->list[i].count;
    ms_plan_limits(&clip.base, job->output, &found);
    attempt(&clip, clip.job.width, clip.job.height, clip.job.frames, 0, &found);
    ms_plan_suggest(&clip.base, attempt, &clip, &found);
    if (clip.base.failed)
      code = ms_error_set(error, clip.base.failed, "out of memory for a plan");
    else
      *plan = found;
  }
  ms_plan_release(&clip.base);
  return code;
}
