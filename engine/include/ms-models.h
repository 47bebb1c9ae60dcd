/* Model folders: find, describe, make, import.
 *
 * A model folder holds model.json, dit.safetensors, text.safetensors and codec.safetensors. */
#pragma once
#include "ms-job.h"

struct ms_model_info {
  char name[128], folder[1024], family[64], license[128];
  int64_t parameters; /* of the DiT */
  uint64_t bytes;     /* of its files */
  int width, height, frames, steps;
  double fps;
  char attention[64], coarse_attention[64];
  char *json; /* model.json as text; owned */
};

/* A name is looked for in DATA/models/NAME, then in USER/NAME (user_folder may be NULL); a path with a slash
 * or to an existing folder is taken as it is. MS_EINPUT says where it looked and which models there are. */
int ms_model_find(const char *name, const char *data_folder, const char *user_folder, char *folder,
                  size_t size, struct ms_error *error);
int ms_model_info_read(struct ms_model_info *info, const char *folder, struct ms_error *error);
void ms_model_info_release(struct ms_model_info *info);
/* Calls found (data, info) for each model folder below `folder`. */
int ms_models_list(const char *folder, void (*found)(void *data, const struct ms_model_info *info),
                   void *data);
/* A complete model folder of a configuration file (DATA/configs/NAME.json or a path), with random weights:
 * DiT, and a small codec and text encoder with the channels, strides and text_dim it names. `to` must not
 * exist yet. */
int ms_model_create(const char *config, const char *to, uint64_t seed, const struct ms_machine *machine,
                    const struct ms_hooks *hooks, struct ms_error *error);
/* Copies a model folder that passes every check (json, all tensors with the right shapes) to `to`, with its
 * card README.md if it has one. Progress is in bytes. On failure or cancel (MS_ECANCELLED) nothing is left.
 */
int ms_model_import(const char *from, const char *to, const struct ms_hooks *hooks, struct ms_error *error);
/* Opens every file and checks every tensor against the configuration. */
int ms_model_verify(const char *folder, struct ms_error *error);
