#include "train/run-file.h"

#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

/* Names of more clips than this are not kept. */
#define MOST_NAMES 100000
#define MOST_BYTES ((size_t)16 << 20)

enum kind { KIND_INT, KIND_INT64, KIND_NUMBER, KIND_CHOICE, KIND_TEXT };

struct setting {
  const char *key, *flag;
  enum ms_train_setting number;
  enum kind kind;
  size_t offset;
  int fixed; /* another value would change the bits of a run that goes on */
  double least, most;
  const char *const *names; /* of a choice, NULL last */
};

static const char *const methods[] = {
    [MS_METHOD_FULL] = "full", [MS_METHOD_LORA] = "lora", [MS_METHOD_OFFSETS] = "offsets", NULL};
static const char *const captions[] = {
    [MS_CAPTION_ERROR] = "error", [MS_CAPTION_EMPTY] = "empty", [MS_CAPTION_SKIP] = "skip", NULL};

#define AT(field) offsetof(struct ms_train_job, field)
static const struct setting settings[] = {
    {"method", "method", MS_SETTING_METHOD, KIND_CHOICE, AT(method), 1, .names = methods},
    {"rank", "rank", MS_SETTING_RANK, KIND_INT, AT(rank), 1, 1, MS_LORA_MAX_RANK},
    {"moment_bits", "moments", MS_SETTING_MOMENTS, KIND_INT, AT(moment_bits), 1, 8, 32},
    {"width", "size", MS_SETTING_SIZE, KIND_INT, AT(width), 1, 1, 1 << 20},
    {"height", "size", MS_SETTING_SIZE, KIND_INT, AT(height), 1, 1, 1 << 20},
    {"frames", "frames", MS_SETTING_FRAMES, KIND_INT, AT(frames), 1, 1, 1e6},
    {"batch", "batch", MS_SETTING_BATCH, KIND_INT, AT(batch), 1, 1, 65536},
    {"accumulate", "accumulate", MS_SETTING_ACCUMULATE, KIND_INT, AT(accumulate), 1, 1, 65536},
    {"lr", "lr", MS_SETTING_LR, KIND_NUMBER, AT(lr), 1, 0, 10},
    {"warmup", "warmup", MS_SETTING_WARMUP, KIND_INT64, AT(warmup), 1, 0, 1e9},
    {"ema", "ema", MS_SETTING_EMA, KIND_NUMBER, AT(ema), 1, 0, 1},
    {"seed", "seed", MS_SETTING_SEED, KIND_INT64, AT(seed), 1, -9.3e18, 9.3e18},
    {"steps", "steps", MS_SETTING_STEPS, KIND_INT64, AT(steps), 0, 1, 1e9},
    {"save_every", "save-every", MS_SETTING_SAVE_EVERY, KIND_INT64, AT(save_every), 0, 0, 1e9},
    {"keep", "keep", MS_SETTING_KEEP, KIND_INT, AT(keep), 0, 1, 1e6},
    {"validation", "validation", MS_SETTING_VALIDATION, KIND_NUMBER, AT(validation), 0, 0, 1},
    {"validate_every", "validate-every", MS_SETTING_VALIDATE_EVERY, KIND_INT64, AT(validate_every), 0, 0,
     1e9},
    {"sample_prompt", "sample-prompt", MS_SETTING_SAMPLE_PROMPT, KIND_TEXT, AT(sample_prompt), 0},
    {"sample_every", "sample-every", MS_SETTING_SAMPLE_EVERY, KIND_INT64, AT(sample_every), 0, 0, 1e9},
    {"on_missing_caption", "on-missing-caption", MS_SETTING_MISSING_CAPTION, KIND_CHOICE,
     AT(on_missing_caption), 0, .names = captions},
    {"model", "model", MS_SETTING_MODEL, KIND_TEXT, AT(model), 0},
};
#define SETTINGS (sizeof settings / sizeof *settings)

union value {
  int64_t whole; /* of a choice: its number */
  double number;
  const char *text;
};

static union value of_job(const struct setting *setting, const struct ms_train_job *job) {
  const char *at = (const char *)job + setting->offset;
  switch (setting->kind) {
  case KIND_INT64:
    return (union value){.whole = *(const int64_t *)at};
  case KIND_NUMBER:
    return (union value){.number = *(const double *)at};
  case KIND_TEXT:
    return (union value){.text = *(const char *const *)at};
  default:
    return (union value){.whole = *(const int *)at};
  }
}

static void into_job(const struct setting *setting, union value value, struct ms_train_job *job) {
  char *at = (char *)job + setting->offset;
  if (setting->kind == KIND_INT64)
    *(int64_t *)at = value.whole;
  else if (setting->kind == KIND_NUMBER)
    *(double *)at = value.number;
  else if (setting->kind == KIND_TEXT)
    *(const char **)at = value.text;
  else
    *(int *)at = (int)value.whole;
}

/* 0: the value cannot be one of this setting. */
static int of_json(const struct setting *setting, const json_t *json, union value *value) {
  double number = json_number_value(json);
  if (setting->kind == KIND_TEXT)
    return (value->text = json_string_value(json)) != NULL;
  if (setting->kind == KIND_CHOICE) {
    for (int i = 0; setting->names[i] && json_is_string(json); i++)
      if (!strcmp(setting->names[i], json_string_value(json))) {
        value->whole = i;
        return 1;
      }
    return 0;
  }
  if (setting->kind == KIND_NUMBER)
    value->number = number;
  else
    value->whole = json_integer_value(json);
  return (setting->kind == KIND_NUMBER ? json_is_number(json) : json_is_integer(json)) &&
         number >= setting->least && number <= setting->most;
}

static json_t *to_json(const struct setting *setting, const struct ms_train_job *job) {
  union value value = of_job(setting, job);
  switch (setting->kind) {
  case KIND_NUMBER:
    return json_real(value.number);
  case KIND_TEXT:
    return value.text ? json_string(value.text) : NULL;
  case KIND_CHOICE:
    return json_string(setting->names[value.whole]);
  default:
    return json_integer(value.whole);
  }
}

static const char *format(const struct setting *setting, const struct ms_train_job *job, char text[64]) {
  union value value = of_job(setting, job);
  if (setting->number == MS_SETTING_SIZE)
    snprintf(text, 64, "%dx%d", job->width, job->height);
  else if (setting->number == MS_SETTING_MOMENTS)
    snprintf(text, 64, value.whole == 8 ? "8bit" : "32");
  else if (setting->kind == KIND_NUMBER)
    snprintf(text, 64, "%.10g", value.number);
  else if (setting->kind == KIND_CHOICE)
    snprintf(text, 64, "%s", setting->names[value.whole]);
  else
    snprintf(text, 64, "%" PRId64, value.whole);
  return text;
}

static int differs(const struct setting *setting, union value a, union value b) {
  return setting->kind == KIND_NUMBER ? a.number != b.number : a.whole != b.whole;
}

int ms_run_file_take(struct ms_train_job *job, json_t **kept, struct ms_error *error) {
  struct ms_train_job began = *job;
  char path[1200], *data = NULL, theirs[64], ours[64];
  unsigned unsaid = job->unsaid;
  size_t size = 0;
  *kept = NULL;
  snprintf(path, sizeof path, "%s/run.json", job->output);
  if (access(path, F_OK) < 0)
    return 0;
  int code = ms_file_read_all(path, MOST_BYTES, &data, &size, error);
  if (code < 0)
    return code;
  *kept = json_loadb(data, size, 0, NULL);
  free(data);
  if (!json_is_object(*kept))
    return ms_error_set(error, MS_EINPUT, "\"%.900s\" does not hold the settings of a run", path);
  for (size_t i = 0; i < SETTINGS; i++) {
    const json_t *json = json_object_get(*kept, settings[i].key);
    union value value;
    if (!json || json_is_null(json))
      continue;
    if (!of_json(&settings[i], json, &value))
      return ms_error_set(error, MS_EINPUT, "\"%.900s\": \"%s\" is no value that a run can have", path,
                          settings[i].key);
    into_job(&settings[i], value, &began);
  }
  if (!job->width)
    unsaid |= 1u << MS_SETTING_SIZE;
  if (!job->frames)
    unsaid |= 1u << MS_SETTING_FRAMES;
  for (size_t i = 0; i < SETTINGS; i++) {
    const struct setting *setting = &settings[i];
    if (unsaid & 1u << setting->number)
      into_job(setting, of_job(setting, &began), job);
    else if (setting->number == MS_SETTING_RANK && began.method != MS_METHOD_LORA)
      continue;
    else if (setting->fixed && differs(setting, of_job(setting, &began), of_job(setting, job)))
      return ms_error_set(error, MS_EUSAGE,
                          "the run in \"%.600s\" has --%s %s and cannot go on with --%s %s: leave it out, or "
                          "begin another run with another -o",
                          job->output, setting->flag, format(setting, &began, theirs), setting->flag,
                          format(setting, job, ours));
  }
  return 0;
}

static int ascending(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Hashes of the clips' names, ascending; NULL: the source has none, or too many. The caller frees. */
static uint64_t *name_hashes(const struct ms_clip_source *source) {
  uint64_t *list;
  char name[1024];
  if (!source->read_identity || source->count < 1 || source->count > MOST_NAMES)
    return NULL;
  list = malloc((size_t)source->count * sizeof *list);
  for (int64_t i = 0; list && i < source->count; i++) {
    if (source->read_identity(source->data, i, name, sizeof name, NULL, NULL) < 0) {
      free(list);
      return NULL;
    }
    list[i] = ms_hash_text(MS_HASH_START, name);
  }
  if (list)
    qsort(list, (size_t)source->count, sizeof *list, ascending);
  return list;
}

void ms_run_file_compare_clips(const json_t *kept, const struct ms_clip_source *source,
                               const struct ms_hooks *hooks) {
  const json_t *clips = json_object_get(kept, "clips");
  int64_t before = (int64_t)json_array_size(clips), gone = 0, added = 0, i = 0, j = 0;
  uint64_t *now = before && hooks && hooks->log ? name_hashes(source) : NULL,
           *then = now ? malloc((size_t)before * sizeof *then) : NULL;
  char message[300];
  for (int64_t n = 0; then && n < before; n++) {
    const char *text = json_string_value(json_array_get(clips, (size_t)n));
    then[n] = text ? strtoull(text, NULL, 16) : 0;
  }
  if (then)
    qsort(then, (size_t)before, sizeof *then, ascending);
  while (then && (i < before || j < source->count)) {
    if (j == source->count || (i < before && then[i] < now[j])) {
      gone++;
      i++;
    } else if (i == before || now[j] < then[i]) {
      added++;
      j++;
    } else {
      i++;
      j++;
    }
  }
  if (gone || added) {
    snprintf(message, sizeof message,
             "the clips are not those that the run has trained on so far (gone: %lld of %lld, new: %lld); "
             "it goes on with the %lld that are there",
             (long long)gone, (long long)before, (long long)added, (long long)source->count);
    hooks->log(hooks->data, MS_LOG_WARNING, message);
  }
  free(now);
  free(then);
}

int ms_run_file_write(const struct ms_train_job *job, const char *model_folder,
                      const struct ms_clip_source *source, struct ms_error *error) {
  struct ms_train_job written = *job;
  json_t *root =
      json_pack("{s:s, s:s?, s:s?}", "program", "megaslide", "dataset", job->dataset, "recipe", job->recipe);
  uint64_t *names = name_hashes(source);
  char path[1200], hash[17], *text;
  written.model = model_folder;
  for (size_t i = 0; root && i < SETTINGS; i++) {
    int meaningless = settings[i].number == MS_SETTING_RANK && job->method != MS_METHOD_LORA;
    json_t *value = meaningless ? NULL : to_json(&settings[i], &written);
    if (value)
      json_object_set_new(root, settings[i].key, value);
  }
  if (root && names) {
    json_t *clips = json_array();
    for (int64_t i = 0; i < source->count; i++)
      json_array_append_new(clips, json_string(ms_hash_format(names[i], hash)));
    json_object_set_new(root, "clips", clips);
  }
  free(names);
  text = root ? json_dumps(root, JSON_INDENT(2)) : NULL;
  json_decref(root);
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory while writing run.json");
  snprintf(path, sizeof path, "%s/run.json", job->output);
  int code = ms_file_write_all(path, text, strlen(text), error);
  free(text);
  return code;
}
