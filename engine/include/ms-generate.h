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

struct ms_generate_job {
  const char *prompt;        /* required, not empty */
  const char *negative;      /* NULL: the empty prompt */
  const char *model;         /* name in the data folder's models, or a folder; default "starter" */
  const char *output;        /* the file; its extension says the format */
  int width, height, frames; /* 0: the model's default; even, 64 or more; frames 1 or more */
  double fps;                /* 0: the model's */
  int steps;                 /* 0: the model's */
  double guidance;           /* < 0: the model's */
  double shift;              /* 0: the model's */
  int64_t seed;              /* < 0: drawn, and told in the result */
  const char *sampler;       /* "euler", "unipc", "dpmpp"; NULL: the model's */
  const char *attention;     /* "dense", "window", "dsa": for every stage; NULL: the model's own choice */
  const char *resume;        /* a folder of saved latents from a stopped run, or NULL */
  const char *keep_latents;  /* folder for the states that allow resuming; NULL: beside the output, removed
                                when it is done */
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
  size_t peak_host_bytes;
  char skipped_words[256]; /* words of the prompt that the model does not know; "" if none */
  int stage_count;
  struct ms_generate_stage stages[MS_GENERATE_MAX_STAGES];
  double offset_mean[256]; /* mean |Delta| in tokens per layer of the last 3D-DSA stage */
  int layers;
};

int ms_generate(const struct ms_generate_job *job, const struct ms_machine *machine,
                const struct ms_hooks *hooks, struct ms_generate_result *result, struct ms_error *error);
