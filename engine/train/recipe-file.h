/* The file of a recipe: a whole model from a source of clips, in stages (recipe.c) that each leave their
 * files in the output folder.
 *
 * {"name": ..., "source": "scenes", "scenes": {parameters of the source},
 *  "model": {model.json without latent_mean, latent_std},
 *  "codec": {"steps", "batch", "crop": [w,h,frames], "pools": [{"size": [w,h], "frames", "clips"}, ...],
 * "lr", "warmup", "weight_decay", "noise": [c, e], "ema", "seed"}, "text": {"steps", "batch", "captions",
 * "lr", "warmup", "seed"}, "dit": [{a phase: "steps", "lr", "final_lr", "warmup", "decay_from", "ema",
 * "seed", "sigma_shifts": [...], "empty_caption", "subject_weight", "weight_decay", "save_every",
 * "validate_every", "validation_clips", "buckets": [{"size": [w,h], "frames", "batch", "share", "clips",
 * "first", "coarse", "sigma_max"}, ...]}, ...]} */
#pragma once
#include <jansson.h>
#include "ms-train.h"

/* Reads and checks the file as JSON; *root is owned by the caller. MS_EINPUT. */
int ms_recipe_read(const char *path, json_t **root, struct ms_error *error);
/* A phase of "dit" into a job (initialised). MS_EINPUT names the key. */
int ms_recipe_phase(const json_t *phase, struct ms_train_job *job, struct ms_error *error);
/* Numbers of an object with a fallback; for the stages. */
double ms_recipe_number(const json_t *object, const char *key, double fallback);
