/* A recipe from its start to a whole model: codec, text encoder, then the DiT in phases. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "msk-cpu.h"
#include "train/codec-stage.h"
#include "train/loop.h"
#include "train/fit.h"
#include "train/output.h"
#include "train/recipe-file.h"
#include "train/text-stage.h"

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

static int read_phase(const json_t *phase, struct ms_train_job *job, struct ms_error *error) {
  ms_train_job_init(job);
  job->validation = 0;
  return ms_recipe_phase(phase, job, error);
}

/* Every phase must fit before the first stage begins. */
static int check_memory(struct ms_compute *compute, const json_t *recipe, const struct ms_train_clips *clips,
                        const char *output, const struct ms_machine *machine, size_t *planned,
                        struct ms_error *error) {
  const json_t *phases = json_object_get(recipe, "dit");
  struct ms_model model = {0};
  int code = ms_model_read(&model, output, error);
  if (code == 0)
    code = ms_model_open_root(&model, compute, model.root, MS_MODEL_ALL, error);
  for (size_t i = 0; i < json_array_size(phases) && code == 0; i++) {
    struct ms_train_job job;
    struct ms_train_fit fit = {0};
    code = read_phase(json_array_get(phases, i), &job, error);
    if (code == 0)
      code = ms_train_fit_check(&model, &job, clips, machine, &fit, error);
    *planned = fit.host_bytes > *planned ? (size_t)fit.host_bytes : *planned;
  }
  ms_model_release(&model);
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
                      const struct ms_clip_source *source, const struct ms_train_clips *clips,
                      const char *output, const struct ms_machine *machine, const struct ms_hooks *hooks,
                      struct ms_train_result *result, struct ms_error *error) {
  const json_t *phases = json_object_get(recipe, "dit");
  char folder[1100], from[1200], to[1200];
  int code = 0;
  ms_params_randomize(ms_dit_params(model->dit), (uint64_t)ms_recipe_number(recipe, "seed", 1));
  for (size_t i = 0; i < json_array_size(phases) && code == 0; i++) {
    struct ms_train_job job;
    code = read_phase(json_array_get(phases, i), &job, error);
    snprintf(folder, sizeof folder, "%s/phase-%d", output, (int)i + 1);
    if (mkdir(folder, 0777) < 0 && errno != EEXIST)
      return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", folder, strerror(errno));
    job.output = folder;
    job.recipe = path;
    job.resume = 1;
    if (code == 0 && !has_file(folder, "dit.safetensors"))
      code = ms_train_loop(model, &job, source, clips, machine, hooks, result, error);
    if (code == 0)
      code = ms_model_load_part(model, MS_MODEL_DIT, MSK_BF16, folder, error);
    snprintf(from, sizeof from, "%s/dit.safetensors", folder);
    snprintf(to, sizeof to, "%s/dit.safetensors", output);
    if (code == 0)
      code = ms_file_copy(from, to, NULL, NULL, error);
  }
  return code;
}

int ms_train_recipe(const char *path, const char *output, int resume, const struct ms_clip_source *source,
                    const char *const *vocabulary, const char *const *same, const struct ms_machine *given,
                    const struct ms_hooks *hooks, struct ms_train_result *result, struct ms_error *error) {
  const struct ms_train_clips clips = {source->count, source->read_mask != NULL, ms_memory_held()};
  struct ms_machine own = *given, *machine = &own;
  struct ms_compute compute = {0};
  struct ms_model model = {0};
  json_t *recipe = NULL;
  size_t planned = 0;
  int code = ms_recipe_read(path, &recipe, error), opened, lock = -1;
  own.host_memory = ms_memory_budget(given); /* one budget from the start to the end */
  memset(result, 0, sizeof *result);
  result->loss = result->validation_loss = result->first_validation_loss = NAN;
  if (code == 0)
    code = ms_train_output_open(output, resume, &lock, error);
  opened = code == 0;
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
    code = check_memory(&compute, recipe, &clips, output, machine, &planned, error);
  /* Only what this run began: a folder that was refused belongs to somebody. */
  if (code < 0 && opened && !resume)
    ms_train_output_discard(output);
  if (code == 0)
    code = make_parts(&model, &compute, recipe, source, output, hooks, error);
  if (code == 0)
    code = open_for_phases(&model, &compute, output, error);
  if (code == 0)
    code = run_phases(&model, recipe, path, source, &clips, output, machine, hooks, result, error);
  result->planned_host_bytes = planned;
  ms_model_release(&model);
  ms_compute_release(&compute);
  json_decref(recipe);
  ms_train_output_close(output, lock);
  return code;
}
