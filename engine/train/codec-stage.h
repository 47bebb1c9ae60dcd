/* The stage of a recipe that trains the codec on crops of its source's clips. */
#pragma once
#include <jansson.h>
#include "model/model.h"
#include "ms-train.h"

/* Reads its settings from the recipe's object "codec", resumes from its checkpoints in output if there are
 * any, and leaves codec.safetensors in output. Also measures the latents and sets latent_mean and latent_std
 * in model->root. */
int ms_codec_stage(struct ms_model *model, const json_t *settings, const struct ms_clip_source *source,
                   const char *output, const struct ms_hooks *hooks, struct ms_error *error);
