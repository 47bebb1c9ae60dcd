#include "train/recipe.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "msk-cpu.h"
#include "train/loop.h"
#include "train/output.h"

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

/* The words of the source become the text encoder's vocabulary where the recipe lists none. */
static int fill_vocabulary(json_t *model, const char *const *vocabulary, const char *const *same) {
  json_t *text = json_object_get(model, "text"), *list, *map;
  if (!json_is_object(text) || json_object_get(text, "vocabulary") || !vocabulary)
    return 0;
  list = json_array();
  map = json_object();
  for (int i = 0; vocabulary[i]; i++)
    json_array_append_new(list, json_string(vocabulary[i]));
  for (int i = 0; same && same[i] && same[i + 1]; i += 2)
    json_object_set_new(map, same[i], json_string(same[i + 1]));
  return json_object_set_new(text, "vocabulary", list) | json_object_set_new(text, "same", map) ? MS_ENOMEM
                                                                                                : 0;
}

static int has_file(const char *folder, const char *name) {
  char path[1200];
  struct stat info;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return stat(path, &info) == 0;
}

/* Parts are opened one after the other, since the DiT is started only when codec and text encoder stand. */
static int make_parts(struct ms_model *model, struct ms_compute *compute, const json_t *recipe,
                      const struct ms_clip_source *source, const char *output, const struct ms_hooks *hooks,
                      struct ms_error *error) {
  int code = ms_model_open_root(model, compute, model->root, MS_MODEL_CODEC | MS_MODEL_TEXT, error);
  if (code == 0 && !has_file(output, "codec.safetensors"))
    code = ms_codec_stage(model, json_object_get(recipe, "codec"), source, output, hooks, error);
  if (code == 0 && !has_file(output, "text.safetensors"))
    code = ms_text_stage(model, json_object_get(recipe, "text"), source, output, hooks, error);
  ms_codec_close(&model->codec);
  ms_text_close(&model->text);
  return code;
}

static int open_for_phases(struct ms_model *model, struct ms_compute *compute, const char *output,
                           struct ms_error *error) {
  int code;
  ms_model_release(model);
  code = ms_model_read(model, output, error);
  if (code == 0)
    code = ms_model_open_root(model, compute, model->root, MS_MODEL_ALL, error);
  if (code == 0)
    code = ms_model_load_part(model, MS_MODEL_CODEC, MSK_F32, output, error);
  if (code == 0)
    code = ms_model_load_part(model, MS_MODEL_TEXT, MSK_F32, output, error);
  if (code == 0)
    code = ms_codec_prepare(model->codec, MSK_PRECISION_BF16, 0, error);
  if (code == 0)
    code = ms_text_prepare(model->text, MSK_PRECISION_F32, 0, error);
  if (code == 0)
    code = ms_params_allocate(ms_dit_params(model->dit), MSK_BF16, error);
  return code;
}

/* Phase i works in OUT/phase-N; it starts from the weights of the phase before. */
static int run_phases(struct ms_model *model, const json_t *recipe, const char *path,
                      const struct ms_clip_source *source, const char *output,
                      const struct ms_machine *machine, const struct ms_hooks *hooks,
                      struct ms_train_result *result, struct ms_error *error) {
  const json_t *phases = json_object_get(recipe, "dit");
  char folder[1100], from[1200], to[1200];
  int code = 0;
  ms_params_randomize(ms_dit_params(model->dit), (uint64_t)ms_recipe_number(recipe, "seed", 1));
  for (size_t i = 0; i < json_array_size(phases) && code == 0; i++) {
    struct ms_train_job job;
    ms_train_job_init(&job);
    job.validation = 0;
    snprintf(folder, sizeof folder, "%s/phase-%d", output, (int)i + 1);
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
      return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", folder, strerror(errno));
    job.output = folder;
    job.recipe = path;
    job.resume = 1;
    code = ms_recipe_phase(json_array_get(phases, i), &job, error);
    if (code == 0 && !has_file(folder, "dit.safetensors"))
      code = ms_train_loop(model, &job, source, machine, hooks, result, error);
    if (code == 0)
      code = ms_model_load_part(model, MS_MODEL_DIT, MSK_BF16, folder, error);
    snprintf(from, sizeof from, "%s/dit.safetensors", folder);
    snprintf(to, sizeof to, "%s/dit.safetensors", output);
    if (code == 0)
      code = ms_train_copy_file(from, to, error);
  }
  return code;
}

int ms_train_recipe(const char *path, const char *output, int resume, const struct ms_clip_source *source,
                    const char *const *vocabulary, const char *const *same, const struct ms_machine *machine,
                    const struct ms_hooks *hooks, struct ms_train_result *result, struct ms_error *error) {
  struct ms_compute compute = {0};
  struct ms_model model = {0};
  json_t *recipe = NULL;
  int code = ms_recipe_read(path, &recipe, error);
  memset(result, 0, sizeof *result);
  result->loss = result->validation_loss = result->first_validation_loss = NAN;
  if (code == 0)
    code = ms_train_output_open(output, resume, error);
  if (code == 0)
    code = ms_compute_open(&compute, machine->threads, machine->reference ? 0 : msk_cpu_detect(), error);
  if (code == 0) {
    ms_pool_set_cancel(compute.pool, hooks ? hooks->cancel : NULL);
    if (resume && has_file(output, "model.json")) {
      code = ms_model_read(&model, output, error);
    } else {
      json_t *root = json_deep_copy(json_object_get(recipe, "model"));
      code = fill_vocabulary(root, vocabulary, same);
      if (code == 0)
        code = ms_model_write_json(root, output, error);
      json_decref(root);
      if (code == 0)
        code = ms_model_read(&model, output, error);
    }
  }
  if (code == 0)
    code = make_parts(&model, &compute, recipe, source, output, hooks, error);
  if (code == 0)
    code = open_for_phases(&model, &compute, output, error);
  if (code == 0)
    code = run_phases(&model, recipe, path, source, output, machine, hooks, result, error);
  ms_model_release(&model);
  ms_compute_release(&compute);
  json_decref(recipe);
  return code;
}
