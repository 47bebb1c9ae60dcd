/* What a person asks for, as values: a clip to make, a model to train. Written to the store and read back as
 * JSON. All strings are owned by the struct; NULL or 0 (below 0 where said) leaves a choice to the model. */
#pragma once
#include <glib-object.h>

#define MSA_TYPE_GENERATE_PARAMS (msa_generate_params_get_type())
typedef struct MsaGenerateParams MsaGenerateParams;
GType msa_generate_params_get_type(void);
struct MsaGenerateParams {
  char *prompt, *negative, *model;
  int width, height, frames, steps;
  double fps, guidance /* < 0: the model's */, shift;
  gint64 seed;               /* < 0: drawn when the job starts, and kept with the clip */
  char *sampler, *attention; /* "euler", ...; "dense", "window", "dsa"; NULL */
  char *device;              /* "cpu" (NULL) or "cuda" */
  guint64 host_memory;       /* bytes; 0: 70 % of what is available at the start */
  int threads;               /* 0: all */
};
MsaGenerateParams *msa_generate_params_new(void);
MsaGenerateParams *msa_generate_params_copy(const MsaGenerateParams *params);
void msa_generate_params_free(MsaGenerateParams *params);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MsaGenerateParams, msa_generate_params_free)
gboolean msa_generate_params_equal(const MsaGenerateParams *a, const MsaGenerateParams *b);
char *msa_generate_params_to_json(const MsaGenerateParams *params);
/* Also reads what `megaslide` writes into the comment tag of a clip ("settings"). NULL and MSA_ERROR_INPUT if
 * it is no JSON object with a prompt; other keys that are missing keep their defaults, values of a wrong type
 * or out of range are an error naming the key. */
MsaGenerateParams *msa_generate_params_from_json(const char *json, GError **error);

#define MSA_TYPE_TRAIN_PARAMS (msa_train_params_get_type())
typedef struct MsaTrainParams MsaTrainParams;
GType msa_train_params_get_type(void);
struct MsaTrainParams {
  char *name;            /* of the run; its folder is named after it */
  char *dataset, *model; /* folder; name or folder */
  char *method;          /* "full", "offsets", "lora" */
  char *missing_caption; /* "error", "empty", "skip" */
  char *sample_prompt;   /* NULL: none */
  gint64 steps, save_every, sample_every, validate_every;
  double lr; /* 0: the default */
  int batch, accumulate, width, height, frames, keep;
  int rank; /* of lora; 0: the default */
  gint64 seed;
  guint64 host_memory;
  int threads;
  int moment_bits; /* 32 or 8; 0: 32 */
};
MsaTrainParams *msa_train_params_new(void);
MsaTrainParams *msa_train_params_copy(const MsaTrainParams *params);
void msa_train_params_free(MsaTrainParams *params);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MsaTrainParams, msa_train_params_free)
char *msa_train_params_to_json(const MsaTrainParams *params);
MsaTrainParams *msa_train_params_from_json(const char *json, GError **error);
