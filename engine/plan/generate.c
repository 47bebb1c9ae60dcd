/* The plan of a clip. */
#include <stdio.h>
#include <string.h>

#include "plan/plan-private.h"
#include "sample/memory.h"
#include "sample/settings.h"

/* Bytes a pixel of a compressed clip, and of the states saved beside it: two, and one being written. */
#define VIDEO_BYTES_A_PIXEL 0.15
#define STATES 3
/* Copies of the latents that a sampler keeps as its history, and the latents themselves. */
#define STATE_LATENTS 4

struct clip {
  struct ms_plan_case base;
  struct ms_generate_job job; /* resolved */
};

static double stage_seconds(const struct clip *clip, const struct ms_stage *stage,
                            const struct ms_stage *before) {
  const struct ms_rates *rates = clip->base.rates;
  const struct ms_model *model = &clip->base.model;
  int passes = stage->steps * (stage->guidance == 1 ? 1 : 2);
  double seconds = passes * (1 + MS_PLAN_STEP_SHARE) *
                   ms_plan_pass_seconds(rates, model->dit, stage->lattice, stage->coarse, 1, 0);
  if (before)
    seconds += before->lattice[0] *
               (ms_codec_flops(model->codec, 1, before->lattice[1], before->lattice[2]) / rates->decode +
                ms_codec_flops(model->codec, 0, stage->lattice[1], stage->lattice[2]) / rates->encode);
  return seconds;
}

static void attempt(void *data, int width, int height, int frames, int batch, struct ms_plan *plan) {
  const struct clip *clip = data;
  const struct ms_plan_case *c = &clip->base;
  const struct ms_rates *rates = c->rates;
  struct ms_stage_plan stages;
  const struct ms_stage *last;
  struct ms_memory need;
  double pixels = (double)width * height * frames, latents;
  ms_stages_plan(&c->model, width, height, frames, clip->job.steps, clip->job.guidance, &stages);
  ms_sample_memory(&c->model, &stages, c->machine->reference ? MSK_PRECISION_F32 : MSK_PRECISION_BF16, &need);
  last = &stages.list[stages.count - 1];
  latents = 4.0 * ms_codec_channels(c->model.codec) * last->lattice[0] * last->lattice[1] * last->lattice[2];
  plan->width = width;
  plan->height = height;
  plan->frames = frames;
  plan->tokens = plan->tokens_per_step = last->tokens;
  plan->flops = plan->model_flops = ms_stages_flops(&c->model, &stages);
  plan->disk_bytes = (uint64_t)(VIDEO_BYTES_A_PIXEL * pixels + STATES * STATE_LATENTS * latents);
  plan->moved_bytes = c->weight_bytes;
  if (rates->profile && rates->device_memory)
    plan->moved_bytes *= 2; /* from the disk to the host, from there to the device */
  ms_plan_place(c, &need, plan);
  plan->load_seconds = (double)c->weight_bytes / rates->load;
  plan->decode_seconds = last->lattice[0] *
                         ms_codec_flops(c->model.codec, 1, last->lattice[1], last->lattice[2]) /
                         rates->decode;
  plan->encode_seconds = rates->video_seconds + pixels / rates->video;
  plan->seconds = plan->load_seconds + plan->decode_seconds + plan->encode_seconds;
  plan->stage_count = stages.count;
  for (int i = 0; i < stages.count; i++) {
    const struct ms_stage *stage = &stages.list[i];
    ms_stage_describe(ms_dit_config(c->model.dit), stage, &plan->stages[i]);
    plan->stage_seconds[i] = stage_seconds(clip, stage, i ? stage - 1 : NULL);
    plan->seconds += plan->stage_seconds[i];
  }
  plan->job_seconds = plan->seconds;
  ms_plan_judge(plan);
}

int ms_plan_generate(const struct ms_generate_job *job, const struct ms_machine *machine,
                     const struct ms_rates *rates, struct ms_plan *plan, struct ms_error *error) {
  struct clip clip;
  int code = ms_settings_check(job, error);
  if (code < 0)
    return code;
  code = ms_plan_open(&clip.base, job->model, job->attention, machine, rates, error);
  clip.job = *job;
  if (code == 0)
    code = ms_settings_resolve(&clip.job, &clip.base.model.defaults, error);
  if (code == 0) {
    struct ms_plan found = {0};
    const struct ms_params *params = ms_dit_params(clip.base.model.dit);
    found.steps = clip.job.steps;
    found.fps = clip.job.fps;
    for (int i = 0; i < params->count; i++)
      found.parameters += params->list[i].count;
    ms_plan_limits(&clip.base, job->output, &found);
    attempt(&clip, clip.job.width, clip.job.height, clip.job.frames, 0, &found);
    ms_plan_suggest(&clip.base, attempt, &clip, &found);
    *plan = found;
  }
  ms_plan_release(&clip.base);
  return code;
}
