/* Offsets as they really are: the starter makes a clip up to the stage of the asked lattice, and the inputs
 * of its offset heads are kept while that stage's first step is computed. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "bench/bench-private.h"
#include "model/dit-private.h"
#include "model/model.h"
#include "ms-models.h"
#include "sample/denoise.h"
#include "sample/enlarge.h"

#define PROMPT "a red ball rolls to the right on a blue background"
#define SEED 1

struct capture {
  struct ms_dit *dit;
  float *u[MS_MAX_LAYERS]; /* [tokens, dim]: modulated inputs, which the offset heads read */
  int failed;
};

static void keep_input(void *data, int layer) {
  struct capture *c = data;
  const struct dit_run *run = &c->dit->run;
  size_t bytes = (size_t)(run->rows * c->dit->config.dim) * sizeof(float);
  c->u[layer] = run->acts.u ? malloc(bytes) : NULL;
  if (c->u[layer])
    memcpy(c->u[layer], run->acts.u, bytes);
  else
    c->failed = 1;
}

/* One block at a time, with rows of its own. */
static int head_outputs(struct ms_dit *dit, int layer, const float *u, float *z) {
  const struct dit_run *run = &dit->run;
  int64_t dim = dit->config.dim, rows = run->blocks.rows, width = dit->layers[layer].offset_out.n;
  float *conv = ms_bench_bytes((size_t)(2 * rows * dim) * sizeof *conv);
  void *low = ms_bench_bytes((size_t)(rows * dim) * sizeof(float)),
       *scratch = ms_bench_bytes(run->kernel_scratch);
  if (conv && low && scratch)
    for (int64_t i = 0; i < run->blocks.blocks; i++) {
      const struct dit_block block = ms_dit_block_at(run, i);
      float *out = z + block.row * width;
      const struct dit_offset_rows buffers = {
          .conv = conv, .normed = conv + rows * dim, .z = out, .z_cut = out, .low = low};
      ms_dit_offset_block(dit, layer, u, &block, -1, &buffers, scratch);
    }
  free(conv);
  free(low);
  free(scratch);
  return conv && low && scratch ? 0 : MS_ENOMEM;
}

/* All stages but the last, then the last one's noisy start into *latents (malloc). */
static int start_of_last_stage(struct ms_model *model, const struct ms_stage_plan *plan, const float *text,
                               int rows, float **latents, struct ms_error *error) {
  float *now = NULL;
  int code = 0;
  for (int i = 0; i < plan->count && code == 0; i++) {
    const struct ms_stage *stage = &plan->list[i];
    int64_t count =
        (int64_t)ms_codec_channels(model->codec) * stage->lattice[0] * stage->lattice[1] * stage->lattice[2];
    float *next = malloc((size_t)count * sizeof *next);
    if (!next)
      code = ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark of 3D-DSA");
    else if (i == 0)
      ms_random_normal_fill(SEED, 1, 0, next, count);
    else
      code = ms_enlarge(model, stage - 1, now, stage, stage->first_sigma, SEED, (uint64_t)i + 1, next, NULL,
                        NULL, error);
    free(now);
    now = next;
    if (code == 0 && i + 1 < plan->count) {
      const struct ms_denoise denoise = {.model = model,
                                         .stage = stage,
                                         .stage_number = i,
                                         .sampler = MS_SAMPLER_EULER,
                                         .shift = i ? 1 : model->defaults.shift,
                                         .text = text,
                                         .negative = text,
                                         .text_rows = rows,
                                         .negative_rows = rows,
                                         .fps = model->defaults.fps};
      code = ms_denoise_run(&denoise, now, error);
    }
  }
  *latents = now;
  return code;
}

static int capture_inputs(struct ms_model *model, const int64_t lattice[3], struct capture *capture,
                          struct ms_error *error) {
  struct ms_stage_plan plan;
  const struct ms_stage *last;
  float *text = calloc((size_t)ms_text_length(model->text) * (size_t)ms_text_dim(model->text), sizeof *text);
  float *latents = NULL, *velocity = NULL, time;
  const float *texts = text;
  int strides[3], rows = 0, code;
  ms_codec_strides(model->codec, strides);
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark of 3D-DSA");
  ms_stages_plan(model, (int)lattice[2] * 2 * strides[2], (int)lattice[1] * 2 * strides[1],
                 ((int)lattice[0] - 1) * strides[0] + 1, model->defaults.steps, model->defaults.guidance,
                 &plan);
  last = &plan.list[plan.count - 1];
  code = rows = ms_text_encode(model->text, PROMPT, text, NULL, 0, error);
  if (code >= 0)
    code = start_of_last_stage(model, &plan, text, rows, &latents, error);
  if (code == 0) {
    struct ms_dit_batch batch = {.samples = 1,
                                 .latents = latents,
                                 .timesteps = &time,
                                 .text = &texts,
                                 .text_rows = &rows,
                                 .layer_done = keep_input,
                                 .layer_data = capture};
    time = (float)(1000 * last->first_sigma);
    memcpy(batch.lattice, last->lattice, sizeof batch.lattice);
    velocity = malloc((size_t)ms_codec_channels(model->codec) * (size_t)last->lattice[0] *
                      (size_t)last->lattice[1] * (size_t)last->lattice[2] * sizeof *velocity);
    code = velocity ? ms_dit_forward(model->dit, &batch, 0, velocity, error)
                    : ms_error_set(error, MS_ENOMEM, "out of memory for the benchmark of 3D-DSA");
  }
  if (code == 0 && capture->failed)
    code =
        ms_error_set(error, MS_EINPUT, "the starter has layers without 3D-DSA: their offsets are not there");
  free(text);
  free(latents);
  free(velocity);
  return code;
}

int ms_bench_starter_offsets(struct ms_bench_run *run, const int64_t lattice[3],
                             struct ms_bench_offsets *offsets) {
  struct ms_model model = {0};
  struct capture capture = {0};
  char folder[1024];
  float means[MS_MAX_LAYERS];
  int64_t tokens = lattice[0] * lattice[1] * lattice[2];
  int code = ms_model_find("starter", run->machine->data_folder, run->machine->user_folder, folder,
                           sizeof folder, run->error);
  memset(offsets, 0, sizeof *offsets);
  if (code == 0)
    code =
        ms_model_open(&model, &run->compute, folder, MS_MODEL_ALL, MSK_BF16, MSK_PRECISION_BF16, run->error);
  if (code < 0)
    return code;
  capture.dit = model.dit;
  code = capture_inputs(&model, lattice, &capture, run->error);
  if (code == 0) {
    offsets->layers = ms_dit_config(model.dit)->layers;
    offsets->row = model.dit->layers[0].offset_out.n;
    offsets->z = calloc((size_t)offsets->layers, sizeof *offsets->z);
    ms_dit_offset_means(model.dit, means);
  }
  for (int i = 0; i < offsets->layers && code == 0; i++) {
    if (offsets->z)
      offsets->z[i] = ms_bench_bytes((size_t)(tokens * offsets->row) * sizeof(float));
    if (!offsets->z || !offsets->z[i] || head_outputs(model.dit, i, capture.u[i], offsets->z[i]) < 0)
      code = ms_error_set(run->error, MS_ENOMEM, "out of memory for the benchmark of 3D-DSA");
    offsets->mean += means[i] / offsets->layers;
  }
  for (int i = 0; i < MS_MAX_LAYERS; i++)
    free(capture.u[i]);
  ms_model_release(&model);
  return code;
}

void ms_bench_offsets_release(struct ms_bench_offsets *offsets) {
  for (int i = 0; i < offsets->layers && offsets->z; i++)
    free(offsets->z[i]);
  free(offsets->z);
  memset(offsets, 0, sizeof *offsets);
}
