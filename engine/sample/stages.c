#include "sample/stages.h"

#include <math.h>
#include <string.h>

#include "model/config.h"

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void fill_stage(const struct ms_model *model, int width, int height, int frames,
                       struct ms_stage *stage) {
  const struct ms_dit_config *config = ms_dit_config(model->dit);
  int strides[3];
  ms_codec_strides(model->codec, strides);
  ms_model_latent_size(model, frames, height, width, stage->lattice);
  stage->height = stage->lattice[1] * strides[1];
  stage->width = stage->lattice[2] * strides[2];
  stage->tokens = (int64_t)(stage->lattice[0] / config->patch[0]) * (stage->lattice[1] / config->patch[1]) *
                  (stage->lattice[2] / config->patch[2]);
}

void ms_stages_plan(const struct ms_model *model, int width, int height, int frames, int steps,
                    double guidance, struct ms_stage_plan *plan) {
  const struct ms_model_defaults *d = &model->defaults;
  double side = (double)smaller(width, height), ratio = side / d->base_side;
  int enlargements = 0;
  memset(plan, 0, sizeof *plan);
  if (ratio > 1.25) {
    double small = smaller((int64_t)side, 400) / (double)d->base_side;
    enlargements = (int)ceil(log(small) / log(2.2) - 1e-9);
    if (enlargements < 1)
      enlargements = 1;
    if (side > 400)
      enlargements += (int)ceil(log(side / 400) / log(3.0) - 1e-9);
    if (enlargements > MS_GENERATE_MAX_STAGES - 1)
      enlargements = MS_GENERATE_MAX_STAGES - 1;
  }
  plan->count = enlargements + 1;
  for (int i = 0; i < plan->count; i++) {
    struct ms_stage *stage = &plan->list[i];
    double scale = enlargements ? pow(ratio, (double)(i - enlargements) / enlargements) : 1;
    fill_stage(model, (int)lround(width * scale), (int)lround(height * scale), frames, stage);
    if (i == enlargements)
      fill_stage(model, width, height, frames, stage);
    stage->coarse = i == 0;
    stage->steps = i == 0 ? steps : (int)smaller(d->refine_steps, steps);
    stage->first_sigma = i == 0 ? 1 : d->refine_sigma;
    stage->guidance = i == 0 ? guidance : 1;
  }
}

double ms_stages_flops(const struct ms_model *model, const struct ms_stage_plan *plan) {
  double flops = 0;
  for (int i = 0; i < plan->count; i++) {
    const struct ms_stage *stage = &plan->list[i];
    flops += ms_dit_forward_flops(model->dit, stage->lattice, stage->coarse) * stage->steps *
             (stage->guidance == 1 ? 1 : 2);
  }
  return flops;
}

void ms_stage_describe(const struct ms_dit_config *config, const struct ms_stage *stage,
                       struct ms_generate_stage *out) {
  *out = (struct ms_generate_stage){
      .tokens = stage->tokens, .steps = stage->steps, .first_sigma = stage->first_sigma};
  for (int a = 0; a < 3; a++)
    out->lattice[a] = stage->lattice[a] / config->patch[a];
  ms_attention_config_describe(stage->coarse ? &config->coarse_attention[0] : &config->attention[0],
                               out->attention, sizeof out->attention);
}
