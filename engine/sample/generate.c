#include "ms-generate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/random.h"
#include "base/system.h"
#include "ms-media.h"
#include "model/config.h"
#include "model/model.h"
#include "ms-models.h"
#include "msk-cpu.h"
#include "sample/deliver.h"
#include "sample/denoise.h"
#include "sample/enlarge.h"
#include "sample/memory.h"
#include "sample/resume.h"
#include "sample/settings.h"
#include "sample/stages.h"
#include "sample/state.h"
#include "sample/streamed.h"

#define NOISE_STREAM 1000 /* streams of the noise: this plus the stage's number */

struct run {
  struct ms_generate_job job; /* resolved */
  const struct ms_hooks *hooks;
  struct ms_generate_result *result;
  struct ms_compute compute;
  struct ms_model model;
  struct ms_stage_plan plan;
  struct ms_placement placement; /* of a model that does not fit whole */
  struct ms_streamed streamed;
  int is_streamed;
  struct ms_state_folder state;
  int first_stage, first_step, last_stage;
  json_t *settings;
  struct ms_saved_job saved; /* the job that is resumed */
  float *text, *negative;
  int text_rows, negative_rows;
  double start, flops_done, flops_total;
  const char *phase;
};

struct ms_generate_job ms_generate_job_default(void) {
  return (struct ms_generate_job){.guidance = -1, .seed = -1};
}

static void log_line(const struct run *run, enum ms_log_level level, const char *message) {
  if (run->hooks && run->hooks->log)
    run->hooks->log(run->hooks->data, level, message);
}

static void report(struct run *run, const char *phase, int64_t done, int64_t total, double share) {
  struct ms_progress progress = {
      .phase = phase, .done = done, .total = total, .seconds = ms_seconds() - run->start, .seconds_left = -1};
  if (share > 0.02)
    progress.seconds_left = progress.seconds * (1 - share) / share;
  if (run->hooks && run->hooks->progress)
    run->hooks->progress(run->hooks->data, &progress);
}

/* Decoding counts as a twentieth of the job: it has no FLOP count of its own here. */
static void step_done(void *data, double flops, int step, int steps) {
  struct run *run = data;
  run->flops_done += flops;
  report(run, run->phase, step, steps, 0.95 * run->flops_done / run->flops_total);
}

static void frame_done(void *data, int frame, int frames) {
  struct run *run = data;
  if (frame % 4 == 0 || frame == frames)
    report(run, "decode", frame, frames, 0.95 + 0.05 * frame / frames);
}

static int check_job(const struct ms_generate_job *job, struct ms_error *error) {
  if (!job->prompt || !job->prompt[strspn(job->prompt, " \t\n")])
    return ms_error_set(error, MS_EUSAGE, "no prompt: say in a sentence what the clip should show");
  if (!job->output || !job->output[0])
    return ms_error_set(error, MS_EUSAGE, "no output file: name one with -o, such as clip.mp4");
  return ms_settings_check(job, error);
}

static int resolve_job(struct run *run, struct ms_error *error) {
  struct ms_generate_job *job = &run->job;
  int code = ms_settings_resolve(job, &run->model.defaults, error);
  if (code < 0)
    return code;
  if (job->seed < 0) {
    uint32_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, 0) != sizeof drawn)
      return ms_error_set(error, MS_EFAULT, "the system gave no random number: name a --seed");
    job->seed = drawn;
  }
  return 0;
}

static enum msk_precision precision_of(const struct ms_machine *machine) {
  return machine->reference ? MSK_PRECISION_F32 : MSK_PRECISION_BF16;
}

/* The networks without their weights: enough to know what the job needs. */
static int open_networks(struct run *run, const struct ms_machine *machine, struct ms_error *error) {
  char folder[1024];
  int code =
      ms_model_find(run->job.model, machine->data_folder, machine->user_folder, folder, sizeof folder, error);
  if (code == 0)
    code = ms_model_read(&run->model, folder, error);
  if (code == 0 && run->job.attention)
    code = ms_attention_override(run->model.root, run->job.attention, run->model.name, error);
  if (code == 0)
    code = ms_model_open_root(&run->model, &run->compute, run->model.root, MS_MODEL_ALL, error);
  return code;
}

/* Whether a clip of this size fits with the model in memory (1), with its layers passing through (2), or not
 * (0). need, placement: NULL, or what it comes to; the placement is released by the caller. */
static int fits(const struct run *run, const struct ms_machine *machine, int width, int height, int frames,
                struct ms_memory *need, struct ms_placement *placement) {
  struct ms_stage_plan plan;
  struct ms_memory memory;
  struct ms_placement own;
  struct ms_sample_need asked;
  int fit;
  ms_stages_plan(&run->model, width, height, frames, run->job.steps, run->job.guidance, &plan);
  ms_sample_memory(&run->model, &plan, precision_of(machine), &memory);
  if (need)
    *need = memory;
  if (ms_memory_fits(&memory, machine))
    return 1;
  ms_sample_need(&run->model, &plan, precision_of(machine), &asked);
  asked.job.host_fixed += ms_memory_held();
  asked.job.host_budget = ms_memory_budget(machine);
  asked.job.device_budget = machine->device_memory;
  if (ms_placement_make(&own, &asked.job, NULL) < 0)
    return 0;
  fit = own.fits ? 2 : 0;
  if (placement)
    *placement = own;
  else
    ms_placement_release(&own);
  return fit;
}

/* The most frames of a size that fit, or 0. */
static int most_frames(const struct run *run, const struct ms_machine *machine, int width, int height,
                       int frames) {
  int good = 0, bad = frames + 1;
  while (bad - good > 1) {
    int middle = good + (bad - good) / 2;
    if (fits(run, machine, width, height, middle, NULL, NULL))
      good = middle;
    else
      bad = middle;
  }
  return good;
}

/* Sizes of the same shape, in sixteenths. */
static int scaled_side(int side, int sixteenths) {
  int scaled = side * sixteenths / 32 * 2;
  return scaled < MS_GENERATE_MIN_SIDE ? MS_GENERATE_MIN_SIDE : scaled;
}

/* What would fit instead: fewer frames of the size, or a smaller size of that length. */
static void advise(const struct run *run, const struct ms_machine *machine, char *advice, size_t size) {
  const struct ms_generate_job *job = &run->job;
  int frames = most_frames(run, machine, job->width, job->height, job->frames), part = 15, n = 0;
  while (part > 0 && !fits(run, machine, scaled_side(job->width, part), scaled_side(job->height, part),
                           job->frames, NULL, NULL))
    part--;
  if (frames)
    n = snprintf(advice, size, "%d frame%s of that size", frames, frames == 1 ? "" : "s");
  if (part > 0)
    n += snprintf(advice + n, size - (size_t)n, "%sthat length at %dx%d", n ? ", or " : "",
                  scaled_side(job->width, part), scaled_side(job->height, part));
  snprintf(advice + n, size - (size_t)n, n ? " would fit" : "the model alone does not fit");
}

/* The budgets are held before the work begins. */
static int check_budget(struct run *run, const struct ms_machine *machine, struct ms_error *error) {
  const struct ms_generate_job *job = &run->job;
  struct ms_memory need;
  char what[80], advice[128];
  int fit = fits(run, machine, job->width, job->height, job->frames, &need, &run->placement);
  run->is_streamed = fit == 2;
  run->result->planned_host_bytes = run->is_streamed ? run->placement.host_bytes : need.host;
  if (fit)
    return 0;
  advise(run, machine, advice, sizeof advice);
  snprintf(what, sizeof what, "a clip of %dx%d with %d frame%s", job->width, job->height, job->frames,
           job->frames == 1 ? "" : "s");
  /* what is said is the least that it comes to */
  if (run->placement.host_bytes) {
    need.host = (size_t)run->placement.host_bytes - ms_memory_held();
    need.device = (size_t)run->placement.device_bytes;
  }
  return ms_memory_check(&need, machine, what, advice, error);
}

/* The model is in memory, or its layers come when they are needed. */
static int load_model(struct run *run, const struct ms_machine *machine, struct ms_error *error) {
  enum msk_precision precision = precision_of(machine);
  enum msk_type type = precision == MSK_PRECISION_BF16 ? MSK_BF16 : MSK_F32;
  int code =
      ms_model_load(&run->model, run->model.folder,
                    run->is_streamed ? MS_MODEL_CODEC | MS_MODEL_TEXT : MS_MODEL_ALL, type, precision, error);
  if (code == 0 && run->is_streamed)
    code = ms_streamed_open(&run->streamed, &run->model, &run->placement, precision, run->hooks, error);
  return code;
}

static int encode_text(struct run *run, struct ms_error *error) {
  struct ms_generate_result *result = run->result;
  size_t floats = (size_t)ms_text_length(run->model.text) * ms_text_dim(run->model.text);
  char message[400];
  int rows;
  run->text = calloc(floats, sizeof *run->text);
  run->negative = calloc(floats, sizeof *run->negative);
  if (!run->text || !run->negative)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the text");
  rows = ms_text_encode(run->model.text, run->job.prompt, run->text, result->skipped_words,
                        sizeof result->skipped_words, error);
  if (rows < 0)
    return rows;
  run->text_rows = rows;
  rows = ms_text_encode(run->model.text, run->job.negative, run->negative, NULL, 0, error);
  if (rows < 0)
    return rows;
  run->negative_rows = rows;
  if (result->skipped_words[0]) {
    snprintf(message, sizeof message, "model \"%s\" does not know these words and skips them: %s",
             run->model.name, result->skipped_words);
    log_line(run, MS_LOG_WARNING, message);
  }
  rows = ms_text_left_out(run->model.text, run->job.prompt);
  if (rows > 0) {
    snprintf(message, sizeof message, "model \"%s\" reads %d words of a prompt: the last %d are left out",
             run->model.name, ms_text_length(run->model.text) - 1, rows);
    log_line(run, MS_LOG_WARNING, message);
  }
  return 0;
}

/* Settings and output, as a resumed job finds them. The path is made absolute: the folder may be read from
 * elsewhere. */
static json_t *saved_form(const struct run *run) {
  const char *output = run->job.output;
  char folder[PATH_MAX], path[2 * PATH_MAX];
  json_t *job = json_copy(run->settings);
  if (output[0] != '/' && getcwd(folder, sizeof folder)) {
    snprintf(path, sizeof path, "%s/%s", folder, output);
    output = path;
  }
  if (job && json_object_set_new(job, "output", json_string(output)) < 0) {
    json_decref(job);
    return NULL;
  }
  return job;
}

/* The folder of the job's state, where a resumed job finds its step. */
static int open_state(struct run *run, struct ms_error *error) {
  char folder[1200];
  int found, stage = 0, step = 0, code;
  json_t *job;
  if (run->job.resume) {
    snprintf(folder, sizeof folder, "%s", run->job.resume);
    job = json_incref(run->saved.owned);
  } else {
    if (run->job.keep_latents)
      snprintf(folder, sizeof folder, "%s", run->job.keep_latents);
    else
      snprintf(folder, sizeof folder, "%s.unfinished", run->job.output);
    job = saved_form(run);
  }
  if (!job)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  code = run->job.resume ? ms_state_resume(&run->state, folder, job, error)
                         : ms_state_begin(&run->state, folder, job, error);
  json_decref(job);
  if (code < 0 || !run->job.resume)
    return code;
  found = ms_state_peek(&run->state, &stage, &step, error);
  if (found < 0)
    return found;
  if (found && (stage >= run->plan.count || step > run->plan.list[stage].steps))
    return ms_error_set(error, MS_EINPUT,
                        "the unfinished clip in \"%s\" does not fit its own settings: remove the folder",
                        folder);
  run->first_stage = stage;
  run->first_step = step;
  return 0;
}

static int64_t stage_elements(const struct run *run, int stage) {
  const int *lattice = run->plan.list[stage].lattice;
  return (int64_t)ms_codec_channels(run->model.codec) * lattice[0] * lattice[1] * lattice[2];
}

static int sample_stage(struct run *run, int number, int first_step, float *latents, struct ms_error *error) {
  struct ms_denoise denoise = {.model = &run->model,
                               .streamed = run->is_streamed ? &run->streamed : NULL,
                               .stage = &run->plan.list[number],
                               .stage_number = number,
                               .shift = number == 0 ? run->job.shift : 1,
                               .text = run->text,
                               .negative = run->negative,
                               .text_rows = run->text_rows,
                               .negative_rows = run->negative_rows,
                               .fps = run->job.fps,
                               .state = &run->state,
                               .first_step = first_step,
                               .hooks = run->hooks,
                               .take = run->job.take,
                               .step_done = step_done,
                               .step_data = run};
  ms_sampler_kind_from_name(run->job.sampler, &denoise.sampler);
  run->phase = number == 0 ? "sample" : "refine";
  return ms_denoise_run(&denoise, latents, error);
}

static int is_taken(const struct run *run) {
  return run->job.take && atomic_load(run->job.take);
}

/* A stage's latents go to the disk for good before what follows may fail. That they cannot does not end the
 * work: the clip may still come out. */
static void keep_stage(struct run *run, int stage, float *latents, int64_t count) {
  struct ms_sample_state state = {
      .stage = stage, .step = run->plan.list[stage].steps, .count = count, .latents = latents};
  struct ms_error why = {0};
  char message[700];
  if (ms_state_save(&run->state, &state, 0, &why) == 0)
    return;
  snprintf(message, sizeof message, "the latents of stage %d are not saved: %s", stage + 1, why.message);
  log_line(run, MS_LOG_WARNING, message);
}

/* Runs all stages, or those up to the one in which the clip is taken; *out holds the final latents (malloc).
 */
static int sample(struct run *run, float **out, struct ms_error *error) {
  float *latents = NULL;
  int code = 0;
  for (int stage = run->first_stage; stage < run->plan.count && code == 0; stage++) {
    const struct ms_stage *here = &run->plan.list[stage];
    int64_t count = stage_elements(run, stage);
    int resumed = stage == run->first_stage && run->job.resume && (run->first_step > 0 || stage > 0);
    float *next = malloc((size_t)count * sizeof *next);
    if (!next) {
      code = ms_error_set(error, MS_ENOMEM, "out of memory for the latents of stage %d", stage + 1);
      break;
    }
    if (resumed) {
      struct ms_sample_state state = {.count = count, .latents = next};
      code = ms_state_load(&run->state, &state, error);
    } else if (stage == 0) {
      ms_random_normal_fill((uint64_t)run->job.seed, NOISE_STREAM, 0, next, count);
    } else {
      report(run, "enlarge", stage, run->plan.count - 1, 0.95 * run->flops_done / run->flops_total);
      code = ms_enlarge(&run->model, here - 1, latents, here, here->first_sigma, (uint64_t)run->job.seed,
                        NOISE_STREAM + (uint64_t)stage, next, NULL, NULL, error);
    }
    free(latents);
    latents = next;
    if (code == 0 && (!resumed || run->first_step < here->steps))
      code = sample_stage(run, stage, resumed ? run->first_step : 0, latents, error);
    if (code == 0)
      keep_stage(run, stage, latents, count);
    run->last_stage = stage;
    run->result->partial = code > 0 || (code == 0 && stage + 1 < run->plan.count && is_taken(run));
    if (run->result->partial)
      break;
  }
  *out = latents;
  return code < 0 ? code : 0;
}

static void describe_stages(struct run *run) {
  struct ms_generate_result *result = run->result;
  const struct ms_dit_config *config = ms_dit_config(run->model.dit);
  result->stage_count = run->plan.count;
  result->layers = config->layers < 256 ? config->layers : 256;
  for (int i = 0; i < run->plan.count; i++)
    ms_stage_describe(config, &run->plan.list[i], &result->stages[i]);
  result->tokens = run->plan.list[run->plan.count - 1].tokens;
}

/* A side of the clip at a stage's size, even. */
static int side_at(int asked, int stage, int last) {
  int side = (int)((int64_t)asked * stage / last) & ~1;
  return side < 2 ? 2 : side;
}

static void set_size(struct run *run) {
  const struct ms_stage *here = &run->plan.list[run->last_stage];
  const struct ms_stage *last = &run->plan.list[run->plan.count - 1];
  run->result->width = side_at(run->job.width, here->width, last->width);
  run->result->height = side_at(run->job.height, here->height, last->height);
}

static int deliver(struct run *run, const float *latents, struct ms_error *error) {
  struct ms_deliver deliver = {.model = &run->model,
                               .latents = latents,
                               .width = run->result->width,
                               .height = run->result->height,
                               .frames = run->job.frames,
                               .fps = run->job.fps,
                               .output = run->job.output,
                               .frame_done = frame_done,
                               .frame_data = run};
  char *comment = json_dumps(run->settings, JSON_COMPACT);
  int code;
  memcpy(deliver.lattice, run->plan.list[run->last_stage].lattice, sizeof deliver.lattice);
  if (!comment)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  deliver.comment = comment;
  code = ms_deliver_run(&deliver, error);
  free(comment);
  return code;
}

/* What stays of a run that did not end: its state, unless nothing was computed. */
static void leave(struct run *run) {
  int stage, step;
  char message[1300];
  if (run->state.lock < 0)
    return;
  if (ms_state_peek(&run->state, &stage, &step, NULL) != 1) {
    ms_state_end(&run->state, !run->job.resume);
    return;
  }
  ms_state_end(&run->state, 0);
  snprintf(message, sizeof message, "what exists so far is kept: go on with --resume \"%s\"",
           run->state.path);
  log_line(run, MS_LOG_WARNING, message);
}

static int generate(struct run *run, const struct ms_machine *machine, struct ms_error *error) {
  float *latents = NULL, means[MS_MAX_LAYERS] = {0};
  int code =
      ms_compute_open(&run->compute, machine->threads, machine->reference ? 0 : msk_cpu_detect(), error);
  if (code < 0)
    return code;
  ms_pool_set_cancel(run->compute.pool, run->hooks ? run->hooks->cancel : NULL);
  if ((code = open_networks(run, machine, error)) < 0 || (code = resolve_job(run, error)) < 0)
    return code;
  ms_stages_plan(&run->model, run->job.width, run->job.height, run->job.frames, run->job.steps,
                 run->job.guidance, &run->plan);
  run->flops_total = ms_stages_flops(&run->model, &run->plan);
  run->settings = ms_settings_write(&run->job);
  if (!run->settings)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  if ((code = check_budget(run, machine, error)) < 0 || (code = open_state(run, error)) < 0)
    return code;
  code = load_model(run, machine, error);
  if (code == 0)
    code = encode_text(run, error);
  if (code == 0) {
    describe_stages(run);
    code = sample(run, &latents, error);
  }
  if (code == 0) {
    ms_dit_offset_means(run->model.dit, means);
    for (int i = 0; i < run->result->layers; i++)
      run->result->offset_mean[i] = means[i];
    set_size(run);
    code = deliver(run, latents, error);
  }
  free(latents);
  if (code == 0) {
    run->result->flops = run->flops_total;
    ms_state_end(&run->state, !run->job.keep_latents);
  }
  return code;
}

int ms_generate(const struct ms_generate_job *job, const struct ms_machine *machine,
                const struct ms_hooks *hooks, struct ms_generate_result *result, struct ms_error *error) {
  struct run *run = calloc(1, sizeof *run);
  int code = 0;
  memset(result, 0, sizeof *result);
  if (!run)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  run->job = *job;
  run->hooks = hooks;
  run->result = result;
  run->start = ms_seconds();
  run->state.lock = -1;
  if (job->resume)
    code = ms_resume_read(job, &run->saved, &run->job, error);
  if (!run->job.model)
    run->job.model = "starter";
  if (code == 0)
    code = check_job(&run->job, error);
  if (code == 0)
    code = ms_output_check(run->job.output, error);
  if (code == 0)
    code = generate(run, machine, error);
  leave(run);
  result->seed = run->job.seed;
  result->frames = run->job.frames;
  if (code < 0) {
    result->width = run->job.width;
    result->height = run->job.height;
  }
  result->steps = run->job.steps;
  result->fps = run->job.fps;
  result->guidance = run->job.guidance;
  result->shift = run->job.shift;
  result->seconds = ms_seconds() - run->start;
  result->peak_host_bytes = ms_memory_peak();
  free(run->text);
  free(run->negative);
  json_decref(run->settings);
  ms_saved_job_release(&run->saved);
  ms_streamed_close(&run->streamed);
  ms_placement_release(&run->placement);
  ms_model_release(&run->model);
  ms_compute_release(&run->compute);
  free(run);
  return code;
}
