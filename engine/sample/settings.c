#include "sample/settings.h"

#include <math.h>

json_t *ms_settings_write(const struct ms_generate_job *job) {
  return json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:s, s:s?, s:i, s:i, s:i, s:f}", "program",
                   "megaslide", "prompt", job->prompt, "negative", job->negative ? job->negative : "",
                   "model", job->model, "seed", (json_int_t)job->seed, "steps", job->steps, "guidance",
                   job->guidance, "shift", job->shift, "sampler", job->sampler, "attention", job->attention,
                   "width", job->width, "height", job->height, "frames", job->frames, "fps", job->fps);
}

static const char *text_of(const json_t *json, const char *key) {
  return json_string_value(json_object_get(json, key));
}

static double number_of(const json_t *json, const char *key, int *good) {
  const json_t *value = json_object_get(json, key);
  if (!json_is_number(value) || !isfinite(json_number_value(value)) || fabs(json_number_value(value)) > 9e15)
    *good = 0;
  return json_number_value(value);
}

int ms_settings_read(struct ms_generate_job *job, const json_t *json, struct ms_error *error) {
  int good = 1;
  job->prompt = text_of(json, "prompt");
  job->negative = text_of(json, "negative");
  job->model = text_of(json, "model");
  job->sampler = text_of(json, "sampler");
  job->attention = text_of(json, "attention");
  job->seed = (int64_t)number_of(json, "seed", &good);
  job->steps = (int)number_of(json, "steps", &good);
  job->guidance = number_of(json, "guidance", &good);
  job->shift = number_of(json, "shift", &good);
  job->width = (int)number_of(json, "width", &good);
  job->height = (int)number_of(json, "height", &good);
  job->frames = (int)number_of(json, "frames", &good);
  job->fps = number_of(json, "fps", &good);
  if (!good || !job->prompt || !job->model || !job->sampler)
    return ms_error_set(error, MS_EINPUT,
                        "the saved settings of the clip are damaged: a value is missing or no number");
  return 0;
}
