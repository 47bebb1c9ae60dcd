/* megaslide generate: a sentence in, a clip out. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "ms-generate.h"

struct args {
  const char *output, *model, *negative, *sampler, *attention, *resume;
  int size[2];
  int64_t frames, steps, seed;
  double fps, guidance, shift;
  struct msa_machine_args machine;
  int json;
};

static const struct msa_option options[] = {
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "FILE",
     .help = "the clip; .mp4, .mkv, .webm, .mov, .gif ... (named after the prompt)"},
    {"model", 0, MSA_OPTION_TEXT, offsetof(struct args, model), .argument = "M",
     .help = "name or folder of a model (starter)"},
    {"size", 0, MSA_OPTION_FRAME, offsetof(struct args, size), .argument = "WxH",
     .help = "of a frame, both even (the model's)", .least = 64, .most = 16384},
    {"frames", 0, MSA_OPTION_WHOLE, offsetof(struct args, frames), .argument = "N",
     .help = "length of the clip (the model's)", .least = 1, .most = MS_GENERATE_MAX_FRAMES},
    {"fps", 0, MSA_OPTION_NUMBER, offsetof(struct args, fps), .argument = "F",
     .help = "frames a second (the model's)", .least = .1, .most = 1000},
    {"steps", 0, MSA_OPTION_WHOLE, offsetof(struct args, steps), .argument = "N",
     .help = "of the sampler; more is slower and finer", .least = 1, .most = MS_GENERATE_MAX_STEPS},
    {"guidance", 0, MSA_OPTION_NUMBER, offsetof(struct args, guidance), .argument = "G",
     .help = "how strictly the prompt is followed; 1 is off and twice as fast", .least = 0, .most = 100},
    {"negative", 0, MSA_OPTION_TEXT, offsetof(struct args, negative), .argument = "TEXT",
     .help = "what the clip should not show"},
    {"seed", 0, MSA_OPTION_WHOLE, offsetof(struct args, seed), .argument = "S",
     .help = "the same seed gives the same clip (drawn and told)", .least = 0, .most = 9e18},
    {"sampler", 0, MSA_OPTION_CHOICE, offsetof(struct args, sampler), .choices = "euler|unipc|dpmpp",
     .help = "(the model's)"},
    {"shift", 0, MSA_OPTION_NUMBER, offsetof(struct args, shift), .argument = "X",
     .help = "more steps at high noise (the model's)", .least = .01, .most = 100},
    {"attention", 0, MSA_OPTION_CHOICE, offsetof(struct args, attention), .choices = "dense|window|dsa",
     .help = "for every stage (the model's choice)"},
    {"resume", 0, MSA_OPTION_TEXT, offsetof(struct args, resume), .argument = "JOB",
     .help = "folder that a stopped run left, to go on from"},
    MSA_MACHINE_OPTIONS(struct args, machine),
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = "tell progress and result as JSON"},
    {0},
};

/* "a red ball rolls" -> "a-red-ball-rolls.mp4", numbered if such a file exists. */
static void name_after_prompt(const char *prompt, char *path, size_t size) {
  char words[64];
  size_t n = 0;
  for (; *prompt && n < sizeof words - 1; prompt++)
    if (isalnum((unsigned char)*prompt))
      words[n++] = (char)tolower((unsigned char)*prompt);
    else if (n && words[n - 1] != '-')
      words[n++] = '-';
  while (n && words[n - 1] == '-')
    n--;
  words[n] = 0;
  const char *stem = n ? words : "clip";
  snprintf(path, size, "%s.mp4", stem);
  for (int number = 2; access(path, F_OK) == 0 && number < 100000; number++)
    snprintf(path, size, "%s-%d.mp4", stem, number);
}

static json_t *stages_json(const struct ms_generate_result *result) {
  json_t *list = json_array();
  for (int i = 0; i < result->stage_count; i++) {
    const struct ms_generate_stage *s = &result->stages[i];
    json_t *stage =
        json_pack("{s:[i,i,i], s:I, s:s, s:i}", "lattice", s->lattice[0], s->lattice[1], s->lattice[2],
                  "tokens", (json_int_t)s->tokens, "attention", s->attention, "steps", s->steps);
    json_object_set_new(stage, "first_sigma", msa_json_number(s->first_sigma));
    json_array_append_new(list, stage);
  }
  return list;
}

static void tell_result(struct msa_output *output, const struct ms_generate_job *job,
                        const struct ms_generate_result *r) {
  json_t *result =
      json_pack("{s:o, s:I, s:i, s:i, s:i, s:f, s:I, s:f, s:I, s:I, s:i, s:f, s:f, s:f}", "output",
                msa_json_text(job->output), "seed", (json_int_t)r->seed, "frames", r->frames, "width",
                r->width, "height", r->height, "fps", r->fps, "tokens", (json_int_t)r->tokens, "seconds",
                r->seconds, "peak_host_bytes", (json_int_t)r->peak_host_bytes, "planned_host_bytes",
                (json_int_t)r->planned_host_bytes, "steps", r->steps, "guidance", r->guidance, "shift",
                r->shift, "flops", r->flops);
  json_object_set_new(result, "prompt", msa_json_text(job->prompt));
  json_object_set_new(result, "model", msa_json_text(job->model));
  json_object_set_new(result, "stages", stages_json(r));
  json_object_set_new(result, "skipped_words", msa_json_text(r->skipped_words));
  json_t *offsets = json_array();
  for (int i = 0; i < r->layers; i++)
    json_array_append_new(offsets, msa_json_number(r->offset_mean[i]));
  json_object_set_new(result, "offset_mean", offsets);
  msa_output_event(output, "result", result);
  msa_output_say(output, "%s: %d frames of %dx%d at %g a second, seed %lld, %lld tokens, %.1f s", job->output,
                 r->frames, r->width, r->height, r->fps, (long long)r->seed, (long long)r->tokens,
                 r->seconds);
}

static int check_prompt(const char *prompt, struct ms_error *error) {
  if (!prompt)
    return ms_error_set(error, MS_EUSAGE, "no prompt: say in quotes what the clip should show");
  json_t *text = json_string(prompt);
  if (!text)
    return ms_error_set(error, MS_EUSAGE, "the prompt is not UTF-8 text");
  json_decref(text);
  if (!prompt[strspn(prompt, " \t\r\n")])
    return ms_error_set(error, MS_EUSAGE, "the prompt is empty: say in quotes what the clip should show");
  return 0;
}

static void fill_job(const struct args *args, const char *prompt, struct ms_generate_job *job) {
  job->prompt = prompt;
  job->negative = args->negative;
  job->model = args->model;
  job->output = args->output;
  job->width = args->size[0];
  job->height = args->size[1];
  job->frames = (int)args->frames;
  job->fps = args->fps;
  job->steps = (int)args->steps;
  job->guidance = args->guidance;
  job->shift = args->shift;
  job->seed = args->seed;
  job->sampler = args->sampler;
  job->attention = args->attention;
  job->resume = args->resume;
}

static int run(const struct msa_command *command, int argc, char **argv) {
  struct args args = {.seed = -1, .guidance = -1};
  struct msa_output output;
  struct ms_error error = {0};
  struct ms_machine machine;
  struct ms_generate_result result = {0};
  struct ms_saved_job saved = {0};
  const char *prompt = NULL;
  struct msa_folders folders;
  char path[256];
  int count, status = 0;
  if (msa_command_begin(command, argc, argv, &args, &args.json, &prompt, 1, &count, &output, &status))
    return status;
  const struct ms_hooks hooks = msa_output_hooks(&output, msa_cancel_flag());
  struct ms_generate_job job = ms_generate_job_default();
  msa_folders_find(&folders);

  if (prompt || !args.resume)
    status = check_prompt(prompt, &error);
  if (status == 0)
    status = msa_machine_from_args(&args.machine, &folders, &machine, &error);
  if (status == 0 && args.resume)
    status = ms_saved_job_read(&saved, args.resume, &error);
  if (status == 0) {
    fill_job(&args, prompt, &job);
    if (!job.output && !saved.job.output) {
      name_after_prompt(prompt ? prompt : saved.job.prompt, path, sizeof path);
      job.output = path;
    }
    status = ms_generate(&job, &machine, &hooks, &result, &error);
  }
  if (status == 0) {
    /* a resumed clip is what its own job says, not what was typed */
    job.prompt = saved.job.prompt ? saved.job.prompt : job.prompt;
    job.model = saved.job.model ? saved.job.model : job.model ? job.model : "starter";
    job.output = job.output ? job.output : saved.job.output;
    tell_result(&output, &job, &result);
  }
  ms_saved_job_release(&saved);
  return msa_output_finish(&output, status < 0 ? msa_output_failure(&output, &error) : 0);
}

const struct msa_command msa_command_generate = {
    .name = "generate",
    .usage = "PROMPT [FLAGS] | --resume JOB",
    .summary = "Make a clip that shows what a sentence says",
    .text = "What is not given comes from the model: size, frames, fps, steps, guidance, sampler. The "
            "settings are kept in the file\n"
            "(see \"megaslide inspect\"). A stopped or killed run leaves its latents in FILE.unfinished; "
            "--resume goes on with that\n"
            "clip, whose prompt and settings need not be given again, and makes the same one.\n",
    .examples =
        "  megaslide generate \"a red ball rolls to the right on a blue background\" -o ball.mp4\n"
        "  megaslide generate \"a green star spins clockwise, black background\" --seed 7 --size 192x128 -o "
        "star.mp4\n"
        "  megaslide generate \"a white square grows larger against red\" --steps 12 --json -o square.mp4\n"
        "  megaslide generate --resume square.mp4.unfinished\n",
    .options = options,
    .run = run,
};
