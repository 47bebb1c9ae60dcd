/* From a sentence to a clip.
 *
 *   struct ms_generate_job job = ms_generate_job_default ();
 *   job.prompt = "a red ball rolls to the right";
 *   job.output = "ball.mp4";
 *   job.model = "starter";
 *   code = ms_generate (&job, &machine, &hooks, &result, &error);
 *
 * Stages: text -> noise (Philox, from the seed) -> base stage -> for a large clip: decode, enlarge, encode,
 * re-noise, refine with 3D-DSA -> decode in chunks of constant memory -> encoder -> verified file. Bits
 * depend on the settings alone. */
#pragma once
#include "ms-job.h"

#define MS_GENERATE_MIN_SIDE 64
#define MS_GENERATE_MAX_SIDE 16384
#define MS_GENERATE_MAX_FRAMES 100000
#define MS_GENERATE_MAX_STEPS 1000
#define MS_GENERATE_MAX_FPS 1000
#define MS_GENERATE_MAX_GUIDANCE 100
#define MS_GENERATE_MAX_SHIFT 1000
/* A round figure below the largest int64. */
#define MS_MAX_SEED 9000000000000000000

struct ms_generate_job {
  const char *prompt;        /* required, not empty; with resume NULL: the job's own */
  const char *negative;      /* NULL: the empty prompt */
  const char *model;         /* name in the data folder's models, or a folder; NULL: "starter" */
  const char *output;        /* the file; its extension says the format. With resume NULL: the job's own */
  int width, height, frames; /* 0: the model's default; even, 64 or more; frames 1 or more */
  double fps;                /* 0: the model's */
  int steps;                 /* 0: the model's */
  double guidance;           /* < 0: the model's */
  double shift;              /* 0: the model's */
  int64_t seed;              /* < 0: drawn, and told in the result; at most MS_MAX_SEED */
  const char *sampler;       /* "euler", "unipc", "dpmpp"; NULL: the model's */
  const char *attention;     /* "dense", "window", "dsa": for every stage; NULL: the model's own choice */
  const char *resume; /* a folder of saved latents from a stopped run, or NULL. What else is set must be as
                         in that job (MS_EUSAGE), but the output, which may be another */
  const char *keep_latents; /* folder for the states that allow resuming; NULL: beside the output, removed
                               when it is done */
  const atomic_int *take;   /* non-zero: sampling ends with the step at hand, and the clip is what the network
                               saw in it, in the size of its stage. NULL: never */
};
struct ms_generate_job ms_generate_job_default(void);

#define MS_GENERATE_MAX_STAGES 8

struct ms_generate_stage {
  int lattice[3]; /* tokens in t, y, x */
  int64_t tokens;
  char attention[64]; /* "dense" or e.g. "dsa point 3x5x5" */
  int steps;
  double first_sigma;
};

struct ms_generate_result {
  int64_t seed;
  int frames, width, height, steps;
  double fps, guidance, shift;
  int64_t tokens; /* of the last stage */
  double seconds, flops;
  size_t peak_host_bytes, planned_host_bytes; /* as measured, and as computed before the work began */
  char skipped_words[256]; /* words of the prompt that the model does not know; "" if none */
  int stage_count;
  struct ms_generate_stage stages[MS_GENERATE_MAX_STAGES];
  double offset_mean[256]; /* mean |Delta| in tokens per layer of the last 3D-DSA stage */
  int layers;
  int partial; /* it was taken before its last step; width and height are those of the file */
};

/* A job as a stopped or killed run saved it: what --resume goes on with. */
struct ms_saved_job {
  struct ms_generate_job job; /* resolved; resume is the folder, the strings belong to `owned` */
  void *owned;
};
/* Reads FOLDER/job.json. 0, or MS_EINPUT: no such job, or a damaged value, named. */
int ms_saved_job_read(struct ms_saved_job *saved, const char *folder, struct ms_error *error);
void ms_saved_job_release(struct ms_saved_job *saved);

/* The state is saved as often as costs some hundredths of the time at most: after every step of a small clip.
 * A run that is cancelled or fails keeps it (hooks->log says where), unless nothing was computed yet.
 * MS_EOUTPUT at once if another process works on the same output. */
int ms_generate(const struct ms_generate_job *job, const struct ms_machine *machine,
                const struct ms_hooks *hooks, struct ms_generate_result *result, struct ms_error *error);
