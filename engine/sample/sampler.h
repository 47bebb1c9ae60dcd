/* Flow-matching samplers: Euler, UniPC (order 2, bh2) and DPM++ (order 2, midpoint) on shifted sigmas.
 *
 *   ms_sampler_init (&s, MS_SAMPLER_UNIPC, steps, shift, count, &error);
 *   for (i = 0; i < steps; i++) { v = model (x, s.timesteps[i]); ms_sampler_step (&s, i, x, v); }
 *
 * Formulas: those of the Wan pipelines (FlowUniPCMultistepScheduler, FlowDPMSolverMultistepScheduler,
 * FlowMatchEulerDiscreteScheduler given sigmas), in double; x in float32. */
#pragma once
#include <stdint.h>
#include "ms-error.h"

enum ms_sampler_kind { MS_SAMPLER_EULER, MS_SAMPLER_UNIPC, MS_SAMPLER_DPMPP };

struct ms_sampler {
  enum ms_sampler_kind kind;
  int steps;
  int64_t count;     /* elements of x */
  double *sigmas;    /* [steps + 1], last 0; owned */
  double *timesteps; /* [steps], what the model is given; owned */
  float *history[3]; /* owned */
  int order_reached;
};

int ms_sampler_init(struct ms_sampler *sampler, enum ms_sampler_kind kind, int steps, double shift,
                    int64_t count, struct ms_error *error);
/* As init, but starts at first_sigma (0..1] instead of 1: for refining a clip that has been re-noised to that
 * level. */
int ms_sampler_init_from(struct ms_sampler *sampler, enum ms_sampler_kind kind, int steps, double shift,
                         double first_sigma, int64_t count, struct ms_error *error);
void ms_sampler_release(struct ms_sampler *sampler);
/* x goes from sigma i to sigma i + 1, given the velocity at (x, timesteps[i]). */
void ms_sampler_step(struct ms_sampler *sampler, int i, float *x, const float *velocity);
int ms_sampler_kind_from_name(const char *name, enum ms_sampler_kind *kind); /* 0 or MS_EUSAGE */
