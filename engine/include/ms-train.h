/* Training: a model and clips in, a better model out.
 *
 *   struct ms_train_job job;
 *   ms_train_job_init (&job);
 *   job.dataset = "my-clips"; job.model = "starter"; job.output = "mine"; job.steps = 200;
 *   code = ms_train (&job, NULL, &machine, &hooks, &result, &error);
 *
 * The output is a model folder: model.json, dit.safetensors (EMA weights if EMA is on) and the parts it
 * needs, with run.json, metrics.csv, checkpoints/step-NNNNNN/, samples/ and latents/ (encoded clips, so that
 * a run that goes on starts quickly). A resumed run ends with the same bits as a straight one. Method lora
 * also leaves lora.safetensors, the adapters that dit.safetensors has merged in. */
#pragma once
#include "ms-clips.h"
#include "ms-job.h"

enum ms_train_method { MS_METHOD_FULL, MS_METHOD_LORA, MS_METHOD_OFFSETS };
enum ms_missing_caption { MS_CAPTION_ERROR, MS_CAPTION_EMPTY, MS_CAPTION_SKIP };

/* Settings that a run that goes on knows itself. */
enum ms_train_setting {
  MS_SETTING_METHOD,
  MS_SETTING_MOMENTS,
  MS_SETTING_SIZE,
  MS_SETTING_FRAMES,
  MS_SETTING_BATCH,
  MS_SETTING_ACCUMULATE,
  MS_SETTING_LR,
  MS_SETTING_WARMUP,
  MS_SETTING_EMA,
  MS_SETTING_SEED,
  MS_SETTING_STEPS,
  MS_SETTING_SAVE_EVERY,
  MS_SETTING_KEEP,
  MS_SETTING_VALIDATION,
  MS_SETTING_VALIDATE_EVERY,
  MS_SETTING_SAMPLE_PROMPT,
  MS_SETTING_SAMPLE_EVERY,
  MS_SETTING_MISSING_CAPTION,
  MS_SETTING_MODEL,
  MS_SETTING_RANK
};

#define MS_TRAIN_MAX_BUCKETS 16
#define MS_LORA_MAX_RANK 4096

/* One size of clips that a run trains at. */
struct ms_train_bucket {
  int width, height, frames, batch;
  double share;     /* of the steps */
  int64_t clips;    /* how many clips of the source are stored at this size; 0: all */
  int64_t first;    /* number of the first clip of the source */
  int coarse;       /* trains the base stage's attention */
  double sigma_max; /* noise levels up to this; 0: 1. A refining stage starts from a middle level */
};

struct ms_train_job {
  const char *dataset; /* folder of clips with captions; not used when a source is given */
  const char *model;   /* name or folder to start from */
  const char *output;
  enum ms_train_method method;
  int rank;            /* of lora's adapters; alpha is the rank */
  int moment_bits;     /* 32 or 8 */
  int64_t steps;       /* total */
  double lr, final_lr; /* final_lr: fraction of lr at the end */
  int64_t warmup,
      decay_from; /* linear warm-up steps; the decay begins at this step (-1: after the warm-up) */
  int cosine;     /* 1 cosine, 0 linear */
  double beta1, beta2, weight_decay, clip_norm;
  double ema; /* 0: off */
  int batch, accumulate;
  int width, height, frames; /* 0: the model's default; used when there are no buckets */
  struct ms_train_bucket buckets[MS_TRAIN_MAX_BUCKETS];
  int bucket_count;
  double sigma_shift[4]; /* u uniform, sigma = k u / (1 + (k - 1) u) */
  int sigma_shifts;      /* each k as often as the others */
  double empty_caption;  /* share of samples that train the empty prompt */
  double subject_weight; /* loss weight 1 + this where the source's mask is */
  uint64_t seed;
  int64_t save_every, sample_every, validate_every; /* 0: never (save: only at the end) */
  int keep;                                         /* checkpoints that stay */
  int resume;
  unsigned unsaid; /* bits 1 << enum ms_train_setting: with resume these are taken from the run's run.json */
  double validation;        /* share of the clips held out, at least one clip if there are three or more */
  int64_t validation_clips; /* at most so many; 0: no limit */
  const char *sample_prompt;
  enum ms_missing_caption on_missing_caption;
  const char *recipe; /* path, kept for run.json */
  /* File for a Chrome trace of what the lanes did; NULL: none. MS_EOUTPUT before the work begins where it
   * cannot be written; if it fails at the end, hooks->log is told and the run is done all the same. */
  const char *trace;
};
void ms_train_job_init(struct ms_train_job *job);

struct ms_train_result {
  int64_t steps;
  double loss, validation_loss, first_validation_loss; /* NaN: none */
  double seconds, seconds_per_step, tokens_per_second;
  char caution[160];                          /* "", or that the loss has grown: also told to hooks->log */
  double flops_per_second;                    /* model FLOPs, without recomputation */
  size_t peak_host_bytes, planned_host_bytes; /* as measured, and as computed before the work began */
};

/* source NULL: the folder job->dataset. A stopped run (cancel) saves a checkpoint first and returns
 * MS_ECANCELLED; the message says at which step and how to go on. Before any work: MS_EUSAGE (settings that
 * cannot be; with resume a total of steps that the run has passed, or a
 * method, rank, size, number of frames, batch, accumulate, lr, warmup, ema or seed that is not the run's),
 * MS_EINPUT (model, clips), MS_EBUDGET (names the resource, by how much it falls short, and the nearest
 * settings that fit), MS_EOUTPUT (the folder; another run writes it). A damaged checkpoint is told to
 * hooks->log and the one before taken. Sample clips change no bit of the training, and one that cannot be
 * made is told and left out. */
int ms_train(const struct ms_train_job *job, const struct ms_clip_source *source,
             const struct ms_machine *machine, const struct ms_hooks *hooks, struct ms_train_result *result,
             struct ms_error *error);

/* A file of a folder of clips, looked at: what it is and whether it can be trained on. */
struct ms_clip_check {
  const char *name, *path; /* as in the folder: any bytes but '/' and 0 */
  int width, height;       /* upright, with square pixels; 0 where the file is no video, as below */
  int64_t frames;          /* counted by decoding */
  double fps;
  int variable_rate;
  const char *caption; /* UTF-8 of one line, "" if it is meant to be empty; NULL: none, or not UTF-8 */
  int usable;
  char reason[256]; /* why not; "" if usable */
};
/* Looks at every file of a folder, sorted by name, and calls clip for each (strings live until it returns).
 * Captions, texts and hidden files are passed over. Nothing is written. 0 (also if no clip can be used),
 * MS_EINPUT (folder cannot be read), MS_ECANCELLED, MS_ENOMEM. Takes the time of decoding all files. With
 * MS_CAPTION_ERROR a clip without a caption is not usable, and ms_clip_folder_open refuses the folder. */
int ms_clip_folder_check(const char *folder, enum ms_missing_caption on_missing,
                         void (*clip)(void *data, const struct ms_clip_check *check), void *data,
                         const atomic_int *cancel, struct ms_error *error);

/* A folder of clips (every file that FFmpeg opens) with captions NAME.txt. The table of used and skipped
 * files, one line each with size, frames, fps and the reason, goes to hooks->log. MS_EINPUT names folder and
 * extensions seen if no clip can be used. */
int ms_clip_folder_open(struct ms_clip_source *source, const char *folder, enum ms_missing_caption on_missing,
                        const struct ms_hooks *hooks, struct ms_error *error);

/* A recipe builds a whole model from a source in stages, in a folder that is resumed where it stopped: codec,
 * text encoder, then the DiT in phases. The JSON file is described in data/recipes/README. */
struct ms_recipe_info {
  char source[64];   /* what the recipe wants as its source, e.g. "scenes", or "folder" */
  char *source_json; /* its parameters, as JSON text; owned by the info */
};
int ms_recipe_info_read(struct ms_recipe_info *info, const char *recipe, struct ms_error *error);
void ms_recipe_info_release(struct ms_recipe_info *info);
/* vocabulary: NULL-terminated words for the text encoder, same: pairs word, word, NULL-terminated; used when
 * a recipe's model does not list its own. */
int ms_train_recipe(const char *recipe, const char *output, int resume, const struct ms_clip_source *source,
                    const char *const *vocabulary, const char *const *same, const struct ms_machine *machine,
                    const struct ms_hooks *hooks, struct ms_train_result *result, struct ms_error *error);
