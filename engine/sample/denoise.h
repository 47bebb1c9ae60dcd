/* One stage's sampling loop: model calls with guidance, sampler steps, a moving preview after each, state
 * saved on the way. */
#pragma once
#include "model/model.h"
#include "ms-job.h"
#include "sample/stages.h"
#include "sample/state.h"
#include "sample/streamed.h"

struct ms_denoise {
  struct ms_model *model;
  struct ms_streamed *streamed; /* its layers pass through memory; NULL: they are there */
  const struct ms_stage *stage;
  int stage_number;
  enum ms_sampler_kind sampler;
  double shift;
  const float *text, *negative; /* states [rows, text_dim] */
  int text_rows, negative_rows;
  double fps;
  struct ms_state_folder *state; /* NULL: nothing is saved */
  int first_step;                /* > 0: latents and history come from state */
  const struct ms_hooks *hooks;
  const atomic_int *take; /* non-zero: the step at hand is the last; NULL: never */
  void (*step_done)(void *data, double flops, int step, int steps);
  void *step_data;
};

/* When states are saved. Quick ones go to the system's memory, after every step if that costs less than a
 * twenty-fifth of the step, else as often as it does; durable ones wait for the disk, a hundredth of the
 * time, and at the latest 15 s after the one before. */
struct ms_save_pace {
  double quick_cost, durable_cost; /* seconds that one takes */
  double quick_at, durable_at;     /* when it ended */
  int failed;                      /* one could not be written: no more are tried */
};
enum ms_save_kind { MS_SAVE_NOTHING, MS_SAVE_QUICK, MS_SAVE_DURABLE };
enum ms_save_kind ms_save_due(const struct ms_save_pace *pace, double now);

/* latents [C, lattice] at sigma = stage->first_sigma on entry, clean on return. 0, 1 (taken before the last
 * step: latents are what the network took for the clean clip, the state is that of the step before),
 * MS_ECANCELLED (state saved), MS_ENOTFINITE, ... */
int ms_denoise_run(const struct ms_denoise *denoise, float *latents, struct ms_error *error);
