/* Trains the text encoder as a classifier of captions, before the DiT reads it. */
#include "train/text-stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "train/recipe-file.h"
#include "train/stage.h"

#define STREAM_CAPTION ((uint64_t)8 << 40)
#define CAPTION_MAX 256
#define MAX_LABELS 8

/* Captions of step: clips and wordings drawn from (seed, step), with their class numbers. */
static int draw_captions(const struct ms_clip_source *source, uint64_t seed, int64_t step, int batch,
                         char (*text)[CAPTION_MAX], int *classes, int labels, struct ms_error *error) {
  struct ms_random random = {.seed = seed, .stream = STREAM_CAPTION + (uint64_t)step};
  for (int i = 0; i < batch; i++) {
    int of_clip[MAX_LABELS] = {0}, code;
    int64_t clip =
        ms_random_below(&random, source->count < ((int64_t)1 << 30) ? source->count : (int64_t)1 << 30);
    code = source->read_caption(source->data, clip, ms_random_u32(&random), text[i], CAPTION_MAX, error);
    if (code < 0)
      return code;
    source->read_labels(source->data, clip, of_clip, NULL);
    memcpy(classes + (size_t)i * labels, of_clip, (size_t)labels * sizeof *classes);
  }
  return 0;
}

int ms_text_stage(struct ms_model *model, const json_t *settings, const struct ms_clip_source *source,
                  const char *output, const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_params *params = ms_text_params(model->text);
  struct ms_stage_loop loop = {0};
  int counts[MAX_LABELS] = {0}, classes_of_one[MAX_LABELS], labels,
      batch = (int)ms_recipe_number(settings, "batch", 128);
  uint64_t seed = (uint64_t)ms_recipe_number(settings, "seed", 1);
  char(*text)[CAPTION_MAX] = NULL;
  const char **captions = NULL;
  int *classes = NULL, code;
  if (!source->read_labels || !source->read_caption)
    return ms_error_set(error, MS_EINPUT,
                        "the text encoder cannot be trained on \"%s\": its clips have no class labels",
                        source->name);
  if (batch < 1 || batch > 4096)
    return ms_error_set(error, MS_EINPUT, "\"batch\" of the recipe's \"text\" is out of range");
  labels = source->read_labels(source->data, 0, classes_of_one, counts);
  code = ms_text_set_classes(model->text, counts, labels, error);
  if (code == 0)
    code = ms_params_allocate(params, MSK_F32, error);
  text = malloc((size_t)batch * sizeof *text);
  captions = malloc((size_t)batch * sizeof *captions);
  classes = malloc((size_t)batch * MAX_LABELS * sizeof *classes);
  if (code == 0 && (!text || !captions || !classes))
    code = ms_error_set(error, MS_ENOMEM, "out of memory for a batch of captions");
  if (code == 0) {
    ms_params_randomize(params, seed);
    code = ms_stage_open(&loop, "text", settings, model->compute, params, output, hooks, error);
  }
  if (code == 0)
    code = ms_text_prepare(model->text, MSK_PRECISION_BF16, 1, error);
  while (code == 0 && loop.at.step < loop.job.steps) {
    double loss = 0, right = 0;
    code = draw_captions(source, seed, loop.at.step, batch, text, classes, labels, error);
    for (int i = 0; i < batch; i++)
      captions[i] = text[i];
    memset(loop.grad, 0, (size_t)params->total * sizeof *loop.grad);
    if (code == 0)
      code = ms_text_train_pass(model->text, captions, classes, batch, loop.grad, &loss, &right, error);
    if (code == 0)
      code = ms_stage_update(&loop, loss, "right", right, error);
    if (code == 0)
      code = ms_text_prepare(model->text, MSK_PRECISION_BF16, 1, error);
  }
  if (code == 0)
    code = ms_stage_finish(&loop, output, ms_model_part_file(MS_MODEL_TEXT), error);
  ms_stage_release(&loop);
  free(text);
  free(captions);
  free(classes);
  return code;
}
