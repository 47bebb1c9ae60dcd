#include "core/engine-jobs.h"

#include <string.h>

struct ms_generate_job msa_engine_generate_job(const MsaGenerateParams *params) {
  struct ms_generate_job job = ms_generate_job_default();
  job.prompt = params->prompt;
  job.negative = params->negative;
  if (params->model && *params->model)
    job.model = params->model;
  job.width = params->width;
  job.height = params->height;
  job.frames = params->frames;
  job.fps = params->fps;
  job.steps = params->steps;
  job.guidance = params->guidance;
  job.shift = params->shift;
  job.seed = params->seed;
  job.sampler = params->sampler;
  job.attention = params->attention;
  return job;
}

static int method_of(const char *name, enum ms_train_method *method, struct ms_error *error) {
  static const char *const names[] = {
      [MS_METHOD_FULL] = "full", [MS_METHOD_LORA] = "lora", [MS_METHOD_OFFSETS] = "offsets"};
  for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
    if (!strcmp(name ? name : "full", names[i])) {
      *method = (enum ms_train_method)i;
      return 0;
    }
  return ms_error_set(error, MS_EUSAGE, "there is no method \"%s\": use full, lora or offsets", name);
}

static enum ms_missing_caption missing_of(const char *name) {
  return !g_strcmp0(name, "empty")  ? MS_CAPTION_EMPTY
         : !g_strcmp0(name, "skip") ? MS_CAPTION_SKIP
                                    : MS_CAPTION_ERROR;
}

int msa_engine_train_job(const MsaTrainParams *params, struct ms_train_job *job, struct ms_error *error) {
  ms_train_job_init(job);
  job->dataset = params->dataset;
  if (params->model && *params->model)
    job->model = params->model;
  job->on_missing_caption = missing_of(params->missing_caption);
  job->steps = params->steps;
  job->save_every = params->save_every;
  job->sample_every = params->sample_every;
  job->validate_every = params->validate_every;
  job->sample_prompt = params->sample_prompt && *params->sample_prompt ? params->sample_prompt : NULL;
  job->lr = params->lr > 0 ? params->lr : job->lr;
  job->batch = params->batch > 0 ? params->batch : job->batch;
  job->accumulate = params->accumulate > 0 ? params->accumulate : job->accumulate;
  job->rank = params->rank > 0 ? params->rank : job->rank;
  job->keep = params->keep > 0 ? params->keep : job->keep;
  job->width = params->width;
  job->height = params->height;
  job->frames = params->frames;
  job->seed = (uint64_t)params->seed;
  job->moment_bits = params->moment_bits > 0 ? params->moment_bits : job->moment_bits;
  return method_of(params->method, &job->method, error);
}
