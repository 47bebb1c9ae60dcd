/* One stage's sampling loop: model calls with guidance, sampler steps, a moving preview after each, state
 * saved on the way. */
#pragma once
#include "model/model.h"
#include "ms-job.h"
#include "sample/stages.h"

struct ms_denoise {
  struct ms_model *model;
  const struct ms_stage *stage;
  int stage_number;
  enum ms_sampler_kind sampler;
  double shift;
  const float *text, *negative; /* states [rows, text_dim] */
  int text_rows, negative_rows;
  double fps;
  const char *state_folder; /* NULL: nothing is saved */
  int first_step;           /* > 0: latents and history come from state_folder */
  const struct ms_hooks *hooks;
  void (*step_done)(void *data, double flops, int step, int steps);
  void *step_data;
};

/* latents [C, lattice] at sigma = stage->first_sigma on entry, clean on return. 0, MS_ECANCELLED (state
 * saved), MS_ENOTFINITE, ... */
int ms_denoise_run(const struct ms_denoise *denoise, float *latents, struct ms_error *error);
