/* The stages of a clip: a base stage at a small size over the whole length, then enlargements, each denoised
 * from a middle noise level (coarse to fine; local attention cannot agree on a layout from pure noise). */
#pragma once
#include "model/model.h"
#include "ms-generate.h"

struct ms_stage {
  int width, height; /* pixels of the padded lattice */
  int lattice[3];    /* latent frames, height, width */
  int64_t tokens;
  int coarse; /* base stage: coarse_attention */
  int steps;
  double first_sigma; /* 1 at the base stage */
  double guidance;
};

struct ms_stage_plan {
  struct ms_stage list[MS_GENERATE_MAX_STAGES];
  int count;
};

/* Sizes grow by at most 2.2 (from 400 pixels on by at most 3) a stage from the model's base side to the asked
 * size; a clip whose short side is at most 1.25 times the base side has one stage. */
void ms_stages_plan(const struct ms_model *model, int width, int height, int frames, int steps,
                    double guidance, struct ms_stage_plan *plan);
/* FLOPs of a job of these stages. */
double ms_stages_flops(const struct ms_model *model, const struct ms_stage_plan *plan);
/* The same for a person or a script: lattice in tokens, attention in words. */
void ms_stage_describe(const struct ms_dit_config *config, const struct ms_stage *stage,
                       struct ms_generate_stage *out);
