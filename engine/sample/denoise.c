#include "sample/denoise.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"

/* So many times the cost of a saved state must go by between two of its kind. */
#define QUICK_RATIO 24.0
#define DURABLE_RATIO 99.0
/* A durable state is never older than this, and never made in a job's first second: a clip that is done then
 * need not wait for the disk. */
#define DURABLE_SECONDS 15.0
#define DURABLE_FROM 1.0
/* Slots of the DiT's cache of text keys and values. */
#define SLOT_PROMPT 1
#define SLOT_NEGATIVE 2

static struct ms_dit_batch batch_of(const struct ms_denoise *d, const float *x, const float *time,
                                    const float *const *text, const int *rows, int slot) {
  struct ms_dit_batch batch = {.samples = 1,
                               .latents = x,
                               .timesteps = time,
                               .text = text,
                               .text_rows = rows,
                               .coarse = d->stage->coarse,
                               .text_slot = slot};
  memcpy(batch.lattice, d->stage->lattice, sizeof batch.lattice);
  return batch;
}

/* The passes of a step: with the prompt into velocity, and where it is guided with the negative one into
 * scratch. */
static int run_passes(const struct ms_denoise *d, const struct ms_dit_batch *batches, int count,
                      float *velocity, float *scratch, struct ms_error *error) {
  float *const out[2] = {velocity, scratch};
  int code = 0;
  if (d->streamed)
    return ms_streamed_forward(d->streamed, batches, count, out, error);
  for (int i = 0; i < count && code == 0; i++)
    code = ms_dit_forward(d->model->dit, &batches[i], 0, out[i], error);
  return code;
}

static int predict(const struct ms_denoise *d, const float *x, double timestep, float *velocity,
                   float *scratch, struct ms_error *error) {
  const struct ms_stage *stage = d->stage;
  float time = (float)timestep;
  const struct ms_dit_batch batches[2] = {
      batch_of(d, x, &time, &d->text, &d->text_rows, SLOT_PROMPT),
      batch_of(d, x, &time, &d->negative, &d->negative_rows, SLOT_NEGATIVE)};
  int64_t count =
      (int64_t)ms_codec_channels(d->model->codec) * stage->lattice[0] * stage->lattice[1] * stage->lattice[2];
  int code = run_passes(d, batches, stage->guidance == 1 ? 1 : 2, velocity, scratch, error);
  if (code < 0 || stage->guidance == 1)
    return code;
  /* v = v_negative + guidance (v_prompt - v_negative) */
  for (int64_t i = 0; i < count; i++)
    velocity[i] = (float)(scratch[i] + stage->guidance * ((double)velocity[i] - scratch[i]));
  return 0;
}

/* The clean clip as predicted now, through the codec's linear colour channels: one small picture a latent
 * frame. */
static void send_preview(const struct ms_denoise *d, const float *x, const float *velocity, double sigma,
                         int step, int steps) {
  const int *lattice = d->stage->lattice;
  int64_t plane = (int64_t)lattice[1] * lattice[2], volume = plane * lattice[0];
  struct ms_preview preview = {
      .width = lattice[2], .height = lattice[1], .frames = lattice[0], .step = step, .steps = steps};
  float colour[3];
  uint8_t *rgb;
  int strides[3];
  if (!d->hooks || !d->hooks->preview || !(rgb = malloc((size_t)volume * 3)))
    return;
  ms_codec_strides(d->model->codec, strides);
  preview.fps = d->fps / strides[0];
  preview.rgb = rgb;
  for (int64_t i = 0; i < volume; i++) {
    float clean[256];
    int channels = ms_codec_channels(d->model->codec);
    for (int c = 0; c < channels; c++)
      clean[c] = (float)(x[c * volume + i] - sigma * velocity[c * volume + i]);
    ms_codec_preview(d->model->codec, clean, colour);
    for (int c = 0; c < 3; c++) {
      float value = (colour[c] + 1) * 127.5f;
      rgb[i * 3 + c] = (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : lrintf(value));
    }
  }
  d->hooks->preview(d->hooks->data, &preview);
  free(rgb);
}

enum ms_save_kind ms_save_due(const struct ms_save_pace *pace, double now) {
  double since = now - pace->durable_at, wait = DURABLE_RATIO * pace->durable_cost;
  if (wait < DURABLE_FROM)
    wait = DURABLE_FROM;
  if (since >= wait || since >= DURABLE_SECONDS)
    return MS_SAVE_DURABLE;
  return now - pace->quick_at >= QUICK_RATIO * pace->quick_cost ? MS_SAVE_QUICK : MS_SAVE_NOTHING;
}

/* One slow write among many must not stop the saving for long. */
static double smoothed_cost(double before, double now) {
  return before == 0 || now < before ? now : 0.75 * before + 0.25 * now;
}

/* A state that cannot be written is told once and does not end the work: the clip may still come out. */
static void save_if_due(const struct ms_denoise *d, const struct ms_sample_state *state,
                        struct ms_save_pace *pace) {
  double began = ms_seconds(), ended;
  enum ms_save_kind kind = pace->failed ? MS_SAVE_NOTHING : ms_save_due(pace, began);
  struct ms_error why = {0};
  char message[700];
  if (kind == MS_SAVE_NOTHING)
    return;
  if (ms_state_save(d->state, state, kind == MS_SAVE_QUICK, &why) < 0) {
    pace->failed = 1;
    snprintf(message, sizeof message, "steps are not saved from here on: %s", why.message);
    if (d->hooks && d->hooks->log)
      d->hooks->log(d->hooks->data, MS_LOG_WARNING, message);
  }
  ended = ms_seconds();
  if (kind == MS_SAVE_QUICK) {
    pace->quick_at = ended;
    pace->quick_cost = smoothed_cost(pace->quick_cost, ended - began);
  } else {
    pace->durable_at = ended;
    pace->durable_cost = smoothed_cost(pace->durable_cost, ended - began);
  }
}

/* Straight to sigma 0. */
static void jump_to_clean(float *latents, const float *velocity, double sigma, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    latents[i] = (float)(latents[i] - sigma * velocity[i]);
}

int ms_denoise_run(const struct ms_denoise *d, float *latents, struct ms_error *error) {
  const struct ms_stage *stage = d->stage;
  int channels = ms_codec_channels(d->model->codec);
  int64_t count = (int64_t)channels * stage->lattice[0] * stage->lattice[1] * stage->lattice[2];
  double flops =
      ms_dit_forward_flops(d->model->dit, stage->lattice, stage->coarse) * (stage->guidance == 1 ? 1 : 2);
  double now = ms_seconds();
  struct ms_save_pace pace = {.quick_at = now, .durable_at = now};
  struct ms_sampler sampler = {0};
  struct ms_sample_state state = {
      .stage = d->stage_number, .count = count, .latents = latents, .sampler = &sampler};
  float *velocity = malloc((size_t)count * sizeof *velocity);
  float *scratch = stage->guidance == 1 ? NULL : malloc((size_t)count * sizeof *scratch);
  int code = 0;
  if (!velocity || (stage->guidance != 1 && !scratch))
    code = ms_error_set(error, MS_ENOMEM, "out of memory for the latents of stage %d", d->stage_number + 1);
  if (code == 0)
    code =
        ms_sampler_init_from(&sampler, d->sampler, stage->steps, d->shift, stage->first_sigma, count, error);
  if (code == 0 && d->first_step > 0)
    code = ms_state_load(d->state, &state, error);
  for (int i = d->first_step; i < stage->steps && code == 0; i++) {
    struct ms_error why = {0};
    code = predict(d, latents, sampler.timesteps[i], velocity, scratch, &why);
    if (code == MS_ENOTFINITE)
      ms_error_set(error, code, "step %d of %d: %.350s; --reference computes without fast kernels", i + 1,
                   stage->steps, why.message);
    else if (code < 0)
      ms_error_set(error, code, "%s", why.message);
    if (code == 0) {
      send_preview(d, latents, velocity, sampler.sigmas[i], i + 1, stage->steps);
      if (d->take && i + 1 < stage->steps && atomic_load(d->take)) {
        jump_to_clean(latents, velocity, sampler.sigmas[i], count);
        code = 1;
        break;
      }
      ms_sampler_step(&sampler, i, latents, velocity);
      if (d->step_done)
        d->step_done(d->step_data, flops, i + 1, stage->steps);
    }
    state.step = code == 0 ? i + 1 : i;
    if (d->state && code == 0)
      save_if_due(d, &state, &pace);
    else if (d->state && code == MS_ECANCELLED)
      ms_state_save(d->state, &state, 0, NULL);
  }
  ms_sampler_release(&sampler);
  free(velocity);
  free(scratch);
  return code;
}
