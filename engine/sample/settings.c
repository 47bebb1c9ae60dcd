#include "sample/settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

json_t *ms_settings_write(const struct ms_generate_job *job) {
  return json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:f, s:f, s:s, s:s?, s:i, s:i, s:i, s:f}", "program",
                   "megaslide", "prompt", job->prompt, "negative", job->negative ? job->negative : "",
                   "model", job->model, "seed", (json_int_t)job->seed, "steps", job->steps, "guidance",
                   job->guidance, "shift", job->shift, "sampler", job->sampler, "attention", job->attention,
                   "width", job->width, "height", job->height, "frames", job->frames, "fps", job->fps);
}

/* Reads values of one object; the first failure is recorded and stands. */
struct reader {
  const json_t *object;
  const char *where;
  int code;
  struct ms_error *error;
};

static void refuse(struct reader *reader, const char *key, const char *what) {
  if (!reader->code)
    reader->code = ms_error_set(reader->error, MS_EINPUT, "\"%.300s\" is damaged: \"%s\" must be %s",
                                reader->where, key, what);
}

static const char *text_of(struct reader *reader, const char *key, int required) {
  const json_t *value = json_object_get(reader->object, key);
  if (!json_is_string(value) && (required || (value && !json_is_null(value))))
    refuse(reader, key, "a text");
  return json_string_value(value);
}

/* One of `choices`, "euler|unipc"; NULL where it may be absent and is. */
static const char *choice_of(struct reader *reader, const char *key, int required, const char *choices) {
  const char *text = text_of(reader, key, required);
  char what[80];
  for (const char *at = choices; text && at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
    size_t n = strcspn(at, "|");
    if (strlen(text) == n && !strncmp(at, text, n))
      return text;
  }
  snprintf(what, sizeof what, "one of %s", choices);
  if (text)
    refuse(reader, key, what);
  return NULL;
}

static int64_t whole_of(struct reader *reader, const char *key, int64_t low, int64_t high) {
  const json_t *value = json_object_get(reader->object, key);
  char what[96];
  if (json_is_integer(value) && json_integer_value(value) >= low && json_integer_value(value) <= high)
    return json_integer_value(value);
  snprintf(what, sizeof what, "a whole number from %lld to %lld", (long long)low, (long long)high);
  refuse(reader, key, what);
  return low;
}

static double number_of(struct reader *reader, const char *key, double low, double high) {
  const json_t *value = json_object_get(reader->object, key);
  double number = json_number_value(value);
  char what[96];
  if (json_is_number(value) && number >= low && number <= high)
    return number;
  snprintf(what, sizeof what, "a number from %g to %g", low, high);
  refuse(reader, key, what);
  return low;
}

static int side_of(struct reader *reader, const char *key) {
  int64_t side = whole_of(reader, key, MS_GENERATE_MIN_SIDE, MS_GENERATE_MAX_SIDE);
  if (side % 2)
    refuse(reader, key, "even");
  return (int)side;
}

int ms_settings_read(struct ms_generate_job *job, const json_t *json, const char *where,
                     struct ms_error *error) {
  struct reader reader = {.object = json, .where = where, .error = error};
  job->prompt = text_of(&reader, "prompt", 1);
  if (job->prompt && !job->prompt[strspn(job->prompt, " \t\r\n")])
    refuse(&reader, "prompt", "a sentence");
  job->negative = text_of(&reader, "negative", 0);
  job->model = text_of(&reader, "model", 1);
  if (job->model && !job->model[0])
    refuse(&reader, "model", "a name or a folder");
  job->sampler = choice_of(&reader, "sampler", 1, "euler|unipc|dpmpp");
  job->attention = choice_of(&reader, "attention", 0, "dense|window|dsa");
  job->seed = whole_of(&reader, "seed", 0, MS_MAX_SEED);
  job->steps = (int)whole_of(&reader, "steps", 1, MS_GENERATE_MAX_STEPS);
  job->guidance = number_of(&reader, "guidance", 0, MS_GENERATE_MAX_GUIDANCE);
  job->shift = number_of(&reader, "shift", 1e-6, MS_GENERATE_MAX_SHIFT);
  job->width = side_of(&reader, "width");
  job->height = side_of(&reader, "height");
  job->frames = (int)whole_of(&reader, "frames", 1, MS_GENERATE_MAX_FRAMES);
  job->fps = number_of(&reader, "fps", 1e-6, MS_GENERATE_MAX_FPS);
  return reader.code;
}

int ms_settings_check(const struct ms_generate_job *job, struct ms_error *error) {
  if (job->width < 0 || job->height < 0 || (job->width == 0) != (job->height == 0))
    return ms_error_set(error, MS_EUSAGE, "size %dx%d cannot be made: width and height must be positive",
                        job->width, job->height);
  if (job->width && (job->width % 2 || job->height % 2))
    return ms_error_set(error, MS_EUSAGE,
                        "size %dx%d cannot be made: width and height must be even (try %dx%d)", job->width,
                        job->height, job->width + job->width % 2, job->height + job->height % 2);
  if (job->width && (job->width < MS_GENERATE_MIN_SIDE || job->height < MS_GENERATE_MIN_SIDE ||
                     job->width > MS_GENERATE_MAX_SIDE || job->height > MS_GENERATE_MAX_SIDE))
    return ms_error_set(error, MS_EUSAGE, "size %dx%d cannot be made: sizes from 64x64 to %dx%d can",
                        job->width, job->height, MS_GENERATE_MAX_SIDE, MS_GENERATE_MAX_SIDE);
  if (job->frames < 0 || job->frames > MS_GENERATE_MAX_FRAMES)
    return ms_error_set(error, MS_EUSAGE, "%d frames cannot be made: from 1 to %d can", job->frames,
                        MS_GENERATE_MAX_FRAMES);
  if (job->steps < 0 || job->steps > MS_GENERATE_MAX_STEPS)
    return ms_error_set(error, MS_EUSAGE, "%d steps: from 1 to %d are possible", job->steps,
                        MS_GENERATE_MAX_STEPS);
  if (job->seed > MS_MAX_SEED)
    return ms_error_set(error, MS_EUSAGE, "seed %lld is out of range: at most %lld", (long long)job->seed,
                        (long long)MS_MAX_SEED);
  if (!isfinite(job->fps) || job->fps < 0 || job->fps > MS_GENERATE_MAX_FPS || !isfinite(job->guidance) ||
      job->guidance > MS_GENERATE_MAX_GUIDANCE || !isfinite(job->shift) || job->shift < 0 ||
      job->shift > MS_GENERATE_MAX_SHIFT)
    return ms_error_set(
        error, MS_EUSAGE,
        "fps, guidance or shift is out of range (fps up to 1000, guidance up to 100, shift up to 1000)");
  return 0;
}

int ms_settings_resolve(struct ms_generate_job *job, const struct ms_model_defaults *d,
                        struct ms_error *error) {
  static const char *const samplers[] = {"euler", "unipc", "dpmpp"};
  enum ms_sampler_kind kind;
  if (!job->width) {
    job->width = d->width;
    job->height = d->height;
  }
  job->frames = job->frames ? job->frames : d->frames;
  job->fps = job->fps > 0 ? job->fps : d->fps;
  job->steps = job->steps ? job->steps : d->steps;
  job->guidance = job->guidance >= 0 ? job->guidance : d->guidance;
  job->shift = job->shift > 0 ? job->shift : d->shift;
  job->negative = job->negative ? job->negative : "";
  job->sampler = job->sampler ? job->sampler : samplers[d->sampler];
  if (ms_sampler_kind_from_name(job->sampler, &kind) < 0)
    return ms_error_set(error, MS_EUSAGE, "there is no sampler \"%s\": use euler, unipc or dpmpp",
                        job->sampler);
  return 0;
}
