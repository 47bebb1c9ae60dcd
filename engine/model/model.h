/* A model folder opened for work: model.json and its three networks.
 *
 *   ms_model_open (&model, &compute, folder, MS_MODEL_ALL, &error);   // loads and prepares for inference
 *   ... ms_dit_forward (model.dit, ...) ...
 *   ms_model_release (&model);
 *
 * Keys of model.json beyond those of the DiT (model/config.h): "codec" and "text" (objects, or a string that
 * names a folder beside the model.json from which the part comes), "latent_mean", "latent_std" [channels],
 * "fps", "sizes" [[w,h],...], "frames" [n,...] (first = default), "license", and "sampling": {"sampler",
 * "steps", "guidance", "shift", "base_side", "refine_sigma", "refine_steps"}. */
#pragma once
#include <jansson.h>
#include "model/codec.h"
#include "model/dit.h"
#include "model/text.h"
#include "sample/sampler.h"

enum ms_model_part { MS_MODEL_DIT = 1, MS_MODEL_CODEC = 2, MS_MODEL_TEXT = 4, MS_MODEL_ALL = 7 };

struct ms_model_defaults {
  int width, height, frames, steps;
  double fps, guidance, shift;
  enum ms_sampler_kind sampler;
  int base_side;       /* short side of the base stage in pixels */
  double refine_sigma; /* noise level at which a larger stage starts */
  int refine_steps;
};

struct ms_model {
  char name[128], folder[1024];
  char path[1200]; /* of model.json, for messages */
  json_t *root;    /* owned */
  struct ms_compute *compute;
  struct ms_dit *dit;
  struct ms_codec *codec;
  struct ms_text *text;
  struct ms_model_defaults defaults;
  int lora_rank; /* of adapters that the DiT gets in ms_model_open_root, for training; 0: none */
};

/* Reads and checks model.json only. MS_EINPUT names file and key. */
int ms_model_read(struct ms_model *model, const char *folder, struct ms_error *error);
/* The same from a file of its own, such as a configuration; the folder stays empty. */
int ms_model_read_file(struct ms_model *model, const char *path, struct ms_error *error);
/* Reads, opens the networks named by parts, loads their weights and prepares them for inference:
 * DiT weights as dit_type, products in bf16 (or float32 if precision says so). */
int ms_model_open(struct ms_model *model, struct ms_compute *compute, const char *folder, unsigned parts,
                  enum msk_type dit_type, enum msk_precision precision, struct ms_error *error);
void ms_model_release(struct ms_model *model);
/* Stages of ms_model_open for code that needs them apart: networks from a parsed root; weights of one part
 * from a file. */
int ms_model_open_root(struct ms_model *model, struct ms_compute *compute, json_t *root, unsigned parts,
                       struct ms_error *error);
/* Weights of the parts named, of an opened model, ready for inference: what ms_model_open does last. */
int ms_model_load(struct ms_model *model, const char *folder, unsigned parts, enum msk_type dit_type,
                  enum msk_precision precision, struct ms_error *error);
int ms_model_load_part(struct ms_model *model, unsigned part, enum msk_type type, const char *folder,
                       struct ms_error *error);
/* Writes model.json atomically. */
int ms_model_write_json(const json_t *root, const char *folder, struct ms_error *error);
/* Rounds a clip's size up to the lattice: latent frames, height, width, all multiples of what codec and patch
 * need. */
void ms_model_latent_size(const struct ms_model *model, int frames, int height, int width, int lattice[3]);
/* Path "folder/dit.safetensors" and so on. */
const char *ms_model_part_file(unsigned part);
