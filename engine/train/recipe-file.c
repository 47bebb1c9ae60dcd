#include "train/recipe-file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

#define RECIPE_MAX (4u << 20)

double ms_recipe_number(const json_t *object, const char *key, double fallback) {
  const json_t *value = json_object_get(object, key);
  return json_is_number(value) ? json_number_value(value) : fallback;
}

int ms_recipe_read(const char *path, json_t **root, struct ms_error *error) {
  char *text = NULL;
  size_t size = 0;
  json_error_t bad;
  int code = ms_file_read_all(path, RECIPE_MAX, &text, &size, error);
  if (code < 0)
    return code;
  *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &bad);
  free(text);
  if (!*root)
    return ms_error_set(error, MS_EINPUT, "\"%s\" is not a recipe: line %d: %s", path, bad.line, bad.text);
  if (!json_is_object(*root) || !json_is_object(json_object_get(*root, "model")) ||
      !json_is_array(json_object_get(*root, "dit"))) {
    json_decref(*root);
    *root = NULL;
    return ms_error_set(error, MS_EINPUT,
                        "\"%s\" is not a recipe: it needs the objects \"model\" and \"dit\"", path);
  }
  return 0;
}

static int read_bucket(const json_t *from, struct ms_train_bucket *bucket, struct ms_error *error) {
  const json_t *size = json_object_get(from, "size");
  *bucket = (struct ms_train_bucket){.width = (int)json_integer_value(json_array_get(size, 0)),
                                     .height = (int)json_integer_value(json_array_get(size, 1)),
                                     .frames = (int)ms_recipe_number(from, "frames", 0),
                                     .batch = (int)ms_recipe_number(from, "batch", 0),
                                     .share = ms_recipe_number(from, "share", 1),
                                     .clips = (int64_t)ms_recipe_number(from, "clips", 0),
                                     .first = (int64_t)ms_recipe_number(from, "first", 0),
                                     .coarse = json_is_true(json_object_get(from, "coarse")),
                                     .sigma_max = ms_recipe_number(from, "sigma_max", 1)};
  if (bucket->width < 16 || bucket->height < 16 || bucket->width > 8192 || bucket->height > 8192 ||
      bucket->frames < 1 || bucket->frames > 100000 || bucket->batch < 1 || bucket->batch > 4096 ||
      !(bucket->share > 0) || bucket->clips < 0 || bucket->first < 0 ||
      !(bucket->sigma_max > 0 && bucket->sigma_max <= 1))
    return ms_error_set(error, MS_EINPUT,
                        "a bucket of the recipe is out of range: it needs size, frames, batch and share");
  return 0;
}

int ms_recipe_phase(const json_t *phase, struct ms_train_job *job, struct ms_error *error) {
  const json_t *buckets = json_object_get(phase, "buckets"), *shifts = json_object_get(phase, "sigma_shifts");
  job->steps = (int64_t)ms_recipe_number(phase, "steps", (double)job->steps);
  job->lr = ms_recipe_number(phase, "lr", job->lr);
  job->final_lr = ms_recipe_number(phase, "final_lr", job->final_lr);
  job->warmup = (int64_t)ms_recipe_number(phase, "warmup", (double)job->warmup);
  job->decay_from = (int64_t)ms_recipe_number(phase, "decay_from", (double)job->decay_from);
  job->cosine =
      json_object_get(phase, "cosine") ? json_is_true(json_object_get(phase, "cosine")) : job->cosine;
  job->ema = ms_recipe_number(phase, "ema", job->ema);
  job->seed = (uint64_t)ms_recipe_number(phase, "seed", (double)job->seed);
  job->batch = (int)ms_recipe_number(phase, "batch", job->batch);
  job->accumulate = (int)ms_recipe_number(phase, "accumulate", job->accumulate);
  job->empty_caption = ms_recipe_number(phase, "empty_caption", job->empty_caption);
  job->subject_weight = ms_recipe_number(phase, "subject_weight", job->subject_weight);
  job->weight_decay = ms_recipe_number(phase, "weight_decay", job->weight_decay);
  job->save_every = (int64_t)ms_recipe_number(phase, "save_every", (double)job->save_every);
  job->validate_every = (int64_t)ms_recipe_number(phase, "validate_every", (double)job->validate_every);
  job->validation_clips = (int64_t)ms_recipe_number(phase, "validation_clips", (double)job->validation_clips);
  if (shifts) {
    job->sigma_shifts = 0;
    for (size_t i = 0; i < json_array_size(shifts) && i < 4; i++)
      job->sigma_shift[job->sigma_shifts++] = json_number_value(json_array_get(shifts, i));
  }
  job->bucket_count = 0;
  for (size_t i = 0; i < json_array_size(buckets); i++) {
    int code;
    if (i == MS_TRAIN_MAX_BUCKETS)
      return ms_error_set(error, MS_EINPUT, "a phase of the recipe has more than %d buckets",
                          MS_TRAIN_MAX_BUCKETS);
    code = read_bucket(json_array_get(buckets, i), &job->buckets[job->bucket_count++], error);
    if (code < 0)
      return code;
  }
  if (job->steps < 1 || job->steps > (int64_t)1 << 40 || !(job->lr > 0) || job->lr > 10 ||
      job->accumulate < 1 || job->warmup < 0 || !(job->ema >= 0 && job->ema < 1))
    return ms_error_set(
        error, MS_EINPUT,
        "\"steps\", \"lr\", \"warmup\", \"ema\" or \"accumulate\" of a phase is out of range");
  return 0;
}

int ms_recipe_info_read(struct ms_recipe_info *info, const char *recipe, struct ms_error *error) {
  json_t *root = NULL;
  const char *source;
  int code = ms_recipe_read(recipe, &root, error);
  memset(info, 0, sizeof *info);
  if (code < 0)
    return code;
  source = json_string_value(json_object_get(root, "source"));
  snprintf(info->source, sizeof info->source, "%s", source ? source : "folder");
  if (source && json_object_get(root, source))
    info->source_json = json_dumps(json_object_get(root, source), 0);
  json_decref(root);
  return 0;
}

void ms_recipe_info_release(struct ms_recipe_info *info) {
  free(info->source_json);
  memset(info, 0, sizeof *info);
}
