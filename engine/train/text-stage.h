/* The stage of a recipe that trains the text encoder as a classifier of its source's captions. */
#pragma once
#include <jansson.h>
#include "model/model.h"
#include "ms-train.h"

/* Reads its settings from the recipe's object "text", resumes from its checkpoints in output if there are
 * any, and leaves text.safetensors in output. */
int ms_text_stage(struct ms_model *model, const json_t *settings, const struct ms_clip_source *source,
                  const char *output, const struct ms_hooks *hooks, struct ms_error *error);
