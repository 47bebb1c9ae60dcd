/* megaslide plan: what a job will need and take, told without doing it. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/folders.h"
#include "machine.h"
#include "ms-system.h"
#include "plan-show.h"

struct args {
  const char *model, *config, *hardware, *output, *attention, *sampler, *method, *moments;
  int size[2];
  int64_t frames, steps, batch, accumulate, clips, keep, validate_every, save_every, rank;
  double fps, guidance, ema, validation;
  /* taken so that the flags of a whole command can be tried; a plan does not depend on them */
  const char *negative;
  int64_t seed;
  double shift, lr;
  struct msa_machine_args machine;
  int study, measure, json;
};

#define COMMON_OPTIONS                                                                                       \
  {"model",         0,                                                                                       \
   MSA_OPTION_TEXT, offsetof(struct args, model),                                                            \
   .argument = "M", .help = "name or folder of a model (starter)"},                                          \
      {"config",                                                                                             \
       0,                                                                                                    \
       MSA_OPTION_TEXT,                                                                                      \
       offsetof(struct args, config),                                                                        \
       .argument = "FILE",                                                                                   \
       .help = "a configuration instead, without weights: megaslide-105b, or a file.json"},                  \
      {"hardware",         0,                                                                                \
       MSA_OPTION_TEXT,    offsetof(struct args, hardware),                                                  \
       .argument = "FILE", .help = "another machine instead of this one: h200-pcie5, or a file.json"},       \
      {"size",                                                                                               \
       0,                                                                                                    \
       MSA_OPTION_FRAME,                                                                                     \
       offsetof(struct args, size),                                                                          \
       .argument = "WxH",                                                                                    \
       .help = "of a frame, both even (the model's)",                                                        \
       .least = 64,                                                                                          \
       .most = MS_GENERATE_MAX_SIDE},                                                                        \
  {                                                                                                          \
    "frames", 0, MSA_OPTION_WHOLE, offsetof(struct args, frames),                                            \
        .argument = "N", .help = "of a clip (the model's)", .least = 1, .most = MS_GENERATE_MAX_FRAMES       \
  }
#define LAST_OPTIONS                                                                                         \
  MSA_MACHINE_OPTIONS(struct args, machine),                                                                 \
      {"measure", 0, MSA_OPTION_FLAG, offsetof(struct args, measure),                                        \
       .help = "measure this machine again (once is enough, on a quiet moment)"},                            \
  {                                                                                                          \
    "json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = "tell the plan as JSON"                 \
  }

static const struct msa_option generate_options[] = {
    COMMON_OPTIONS,
    {"fps", 0, MSA_OPTION_NUMBER, offsetof(struct args, fps), .argument = "F",
     .help = "frames a second (the model's)", .least = .1, .most = MS_GENERATE_MAX_FPS},
    {"steps", 0, MSA_OPTION_WHOLE, offsetof(struct args, steps), .argument = "N", .help = "of the sampler",
     .least = 1, .most = MS_GENERATE_MAX_STEPS},
    {"guidance", 0, MSA_OPTION_NUMBER, offsetof(struct args, guidance), .argument = "G",
     .help = "1 is off and twice as fast", .least = 0, .most = MS_GENERATE_MAX_GUIDANCE},
    {"sampler", 0, MSA_OPTION_CHOICE, offsetof(struct args, sampler), .choices = "euler|unipc|dpmpp",
     .help = "(the model's)"},
    {"attention", 0, MSA_OPTION_CHOICE, offsetof(struct args, attention), .choices = "dense|window|dsa",
     .help = "for every stage (the model's choice)"},
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "FILE",
     .help = "where the clip would go: its disk's free space counts"},
    {"negative", 0, MSA_OPTION_TEXT, offsetof(struct args, negative), .argument = "TEXT",
     .help = "changes no plan"},
    {"seed", 0, MSA_OPTION_WHOLE, offsetof(struct args, seed), .argument = "S", .help = "changes no plan",
     .least = 0, .most = MS_MAX_SEED},
    {"shift", 0, MSA_OPTION_NUMBER, offsetof(struct args, shift), .argument = "X", .help = "changes no plan",
     .least = .01, .most = MS_GENERATE_MAX_SHIFT},
    LAST_OPTIONS,
    {0},
};

static const struct msa_option train_options[] = {
    COMMON_OPTIONS,
    {"clips", 0, MSA_OPTION_WHOLE, offsetof(struct args, clips), .argument = "N",
     .help = "how many clips there are to train on (those of DIR that can be used, or 32)", .least = 1,
     .most = 1e9},
    {"method", 0, MSA_OPTION_CHOICE, offsetof(struct args, method), .choices = "full|lora|offsets",
     .help = "all weights, low-rank additions, or the offset heads alone (full)"},
    {"rank", 0, MSA_OPTION_WHOLE, offsetof(struct args, rank), .argument = "R", .help = "of LoRA (16)",
     .least = 1, .most = 4096},
    {"moments", 0, MSA_OPTION_CHOICE, offsetof(struct args, moments), .choices = "32|8bit",
     .help = "of the optimizer (32)"},
    {"steps", 0, MSA_OPTION_WHOLE, offsetof(struct args, steps), .argument = "N", .help = "in all (1000)",
     .least = 1, .most = 1e9},
    {"batch", 0, MSA_OPTION_WHOLE, offsetof(struct args, batch), .argument = "N",
     .help = "clips computed together (4)", .least = 1, .most = 4096},
    {"accumulate", 0, MSA_OPTION_WHOLE, offsetof(struct args, accumulate), .argument = "N",
     .help = "batches a step (1)", .least = 1, .most = 65536},
    {"ema", 0, MSA_OPTION_NUMBER, offsetof(struct args, ema), .argument = "X",
     .help = "decay of the averaged weights; 0 is off", .least = 0, .most = .999999},
    {"validate-every", 0, MSA_OPTION_WHOLE, offsetof(struct args, validate_every), .argument = "N",
     .help = "steps between looks at held-out clips", .least = 1, .most = 1e9},
    {"validation", 0, MSA_OPTION_NUMBER, offsetof(struct args, validation), .argument = "X",
     .help = "share of the clips held out", .least = 0, .most = .5},
    {"save-every", 0, MSA_OPTION_WHOLE, offsetof(struct args, save_every), .argument = "N",
     .help = "steps between checkpoints", .least = 1, .most = 1e9},
    {"keep", 0, MSA_OPTION_WHOLE, offsetof(struct args, keep), .argument = "N",
     .help = "checkpoints that stay (2)", .least = 1, .most = 1e6},
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "OUT",
     .help = "where the model would go: its disk's free space counts"},
    {"lr", 0, MSA_OPTION_NUMBER, offsetof(struct args, lr), .argument = "X", .help = "changes no plan",
     .least = 1e-12, .most = 10},
    {"seed", 0, MSA_OPTION_WHOLE, offsetof(struct args, seed), .argument = "S", .help = "changes no plan",
     .least = 0, .most = MS_MAX_SEED},
    {"study", 0, MSA_OPTION_FLAG, offsetof(struct args, study),
     .help = "first what bounds a step, and steps of other layouts, links, homes and lengths"},
    LAST_OPTIONS,
    {0},
};

/* Those of the last time, or measured now and kept for the next. */
static int own_rates(struct ms_rates *rates, const struct args *args, const struct ms_machine *machine,
                     const struct msa_output *output, const struct ms_hooks *hooks, struct ms_error *error) {
  char folder[4096], path[4200];
  const char *cache = msa_cache_folder(folder, sizeof folder);
  int status;
  snprintf(path, sizeof path, "%s/rates.json", cache ? cache : "");
  if (cache && !args->measure && ms_rates_load(rates, path, machine, NULL) == 0)
    return 0;
  if (output->terminal)
    fprintf(stderr, "measuring this machine, once: some two seconds\n");
  status = ms_rates_measure(rates, machine, cache ? cache : "/tmp", hooks, error);
  if (status == 0 && cache)
    ms_rates_save(rates, path, NULL); /* without it the next plan measures again */
  return status;
}

/* NAME, or DATA/folder/NAME.json if that is there and NAME is not. */
static const char *find_file(const char *name, const char *data, const char *folder, char *path,
                             size_t size) {
  snprintf(path, size, "%s/%s/%s%s", data, folder, name, strstr(name, ".json") ? "" : ".json");
  return access(name, R_OK) != 0 && access(path, R_OK) == 0 ? path : name;
}

static int plan_clip(const struct args *args, const char *model, const struct ms_machine *machine,
                     const struct ms_rates *rates, struct ms_plan *plan, struct ms_error *error) {
  struct ms_generate_job job = ms_generate_job_default();
  job.model = model;
  job.output = args->output;
  job.width = args->size[0];
  job.height = args->size[1];
  job.frames = (int)args->frames;
  job.fps = args->fps;
  job.steps = (int)args->steps;
  job.guidance = args->guidance;
  job.sampler = args->sampler;
  job.attention = args->attention;
  return ms_plan_generate(&job, machine, rates, plan, error);
}

static struct ms_train_job training_job(const struct args *args, const char *model) {
  struct ms_train_job job;
  ms_train_job_init(&job);
  job.model = model;
  job.output = args->output;
  job.width = args->size[0];
  job.height = args->size[1];
  job.frames = (int)args->frames;
  if (args->method)
    job.method = !strcmp(args->method, "lora")      ? MS_METHOD_LORA
                 : !strcmp(args->method, "offsets") ? MS_METHOD_OFFSETS
                                                    : MS_METHOD_FULL;
  if (args->moments)
    job.moment_bits = !strcmp(args->moments, "8bit") ? 8 : 32;
  if (args->rank)
    job.rank = (int)args->rank;
  if (args->steps)
    job.steps = args->steps;
  if (args->batch)
    job.batch = (int)args->batch;
  if (args->accumulate)
    job.accumulate = (int)args->accumulate;
  if (args->ema >= 0)
    job.ema = args->ema;
  if (args->validate_every)
    job.validate_every = args->validate_every;
  if (args->save_every)
    job.save_every = args->save_every;
  if (args->validation >= 0)
    job.validation = args->validation;
  if (args->keep)
    job.keep = (int)args->keep;
  return job;
}

static int plan_training(const struct args *args, const char *model, const struct ms_machine *machine,
                         const struct ms_rates *rates, struct msa_output *output, struct ms_plan *plan,
                         struct ms_error *error) {
  const struct ms_train_job job = training_job(args, model);
  int status = 0;
  if (args->study) {
    struct msa_study_table table = {.output = output};
    const struct ms_plan_study study = {&table, msa_plan_put_bound, msa_plan_put_trial};
    status = ms_plan_train_study(&job, machine, rates, &study, error);
  }
  return status < 0 ? status : ms_plan_train(&job, args->clips, machine, rates, plan, error);
}

static void count_usable(void *data, const struct ms_clip_check *check) {
  *(int64_t *)data += check->usable;
}

/* The clips of a folder that training would use. */
static int count_clips(const char *folder, int64_t *clips, struct ms_error *error) {
  int status = ms_clip_folder_check(folder, MS_CAPTION_EMPTY, count_usable, clips, msa_cancel_flag(), error);
  if (status == 0 && !*clips)
    status = ms_error_set(error, MS_EINPUT, "there is no clip to train on in \"%s\"", folder);
  return status;
}

static int run_plan(const struct msa_command *command, int training, int argc, char **argv) {
  struct args args = {.guidance = -1, .ema = -1, .validation = -1};
  struct msa_output output;
  struct ms_error error = {0};
  struct ms_machine machine;
  struct ms_rates rates;
  struct ms_plan plan = {0};
  struct msa_folders folders;
  char config[4300], hardware[4300], bytes[32];
  const char *model, *subject = NULL; /* the prompt, or the folder of clips */
  int count, status;
  if (msa_command_begin(command, argc, argv, &args, &args.json, &subject, 1, &count, &output, &status))
    return status;
  const struct ms_hooks hooks = msa_output_hooks(&output, msa_cancel_flag());
  msa_folders_find(&folders);
  model = args.model;
  if (args.hardware) /* whose device it is does not matter here */
    args.machine.device = NULL;
  if (args.config && args.model)
    status = ms_error_set(&error, MS_EUSAGE, "--model and --config exclude each other");
  else
    status = msa_machine_from_args(&args.machine, &folders, &machine, &error);
  if (status == 0 && args.config) {
    model = find_file(args.config, folders.data, "configs", config, sizeof config);
    if (!strstr(model, ".json"))
      status =
          ms_error_set(&error, MS_EINPUT, "there is no configuration \"%s\": name a file.json", args.config);
  }
  if (status == 0 && training && subject && !args.clips)
    status = count_clips(subject, &args.clips, &error);
  if (status == 0)
    status = args.hardware
                 ? ms_rates_load(
                       &rates, find_file(args.hardware, folders.data, "hardware", hardware, sizeof hardware),
                       NULL, &error)
                 : own_rates(&rates, &args, &machine, &output, &hooks, &error);
  if (status == 0)
    status = training ? plan_training(&args, model, &machine, &rates, &output, &plan, &error)
                      : plan_clip(&args, model, &machine, &rates, &plan, &error);
  if (status < 0)
    return msa_output_finish(&output, msa_output_failure(&output, &error));
  msa_plan_put_json(&output, &plan, &rates);
  msa_plan_put_words(&output, &plan, &rates);
  if (!plan.fits)
    msa_output_note(&output, "it does not fit: %s of %s%s are missing",
                    ms_format_bytes((double)plan.short_bytes, bytes, sizeof bytes), plan.short_of,
                    strcmp(plan.short_of, "disk") ? " memory" : " space");
  return msa_output_finish(&output, plan.fits ? 0 : ms_error_exit_status(MS_EBUDGET));
}

static const struct msa_command plan_generate = {
    .name = "plan generate",
    .usage = "[PROMPT] [FLAGS]",
    .summary = "Tell what a clip will need and how long it will take",
    .text =
        "Nothing is loaded and nothing is made. Seconds come from rates measured on this machine once and "
        "kept, or with --hardware\n"
        "from those of another machine. Exit status 4: it does not fit; then the nearest settings that do "
        "are named.\n",
    .examples = "  megaslide plan generate --size 320x192 --frames 97\n"
                "  megaslide plan generate --size 1920x1080 --frames 256 --host-memory 8G\n"
                "  megaslide plan generate --config megaslide-105b --hardware h200-pcie5 --json\n",
    .options = generate_options,
};

static const struct msa_command plan_train = {
    .name = "plan train",
    .usage = "[DIR] [FLAGS]",
    .summary = "Tell what training will need and how long a step and the run will take",
    .text =
        "Work, moved bytes and seconds are those of one step, \"job_seconds\" those of the run with its "
        "clips encoded, its looks at\n"
        "held-out clips and its checkpoints. What does not fit in memory lies on the disk: the plan tells "
        "which parts lie where, how long\n"
        "each lane works in a step, and how long the computing waits for them. Exit status 4: it does not "
        "fit; "
        "then the nearest settings\n"
        "that do are named.\n"
        "--study tells first what arithmetic bounds a step by (tokens, products, bytes and the seconds they "
        "take), and then simulated\n"
        "steps: asynchronous and synchronous lanes; 12, 14 and 6 bytes of state a parameter; PCIe 5 and 4; "
        "layers in the host and on\n"
        "the disk; clips of a thousand tokens up to that of --size and --frames. With --json these are "
        "rows.\n",
    .examples = "  megaslide plan train my-clips --steps 500 --batch 8\n"
                "  megaslide plan train --config wan2.1-1.3b --size 480x272 --frames 17\n"
                "  megaslide plan train --config wan2.1-1.3b --host-memory 4G --moments 8bit\n"
                "  megaslide plan train --config megaslide-105b --hardware h200-pcie5 --study\n",
    .options = train_options,
};

static int run(const struct msa_command *command, int argc, char **argv) {
  if (argc && !strcmp(argv[0], "generate"))
    return run_plan(&plan_generate, 0, argc - 1, argv + 1);
  if (argc && !strcmp(argv[0], "train"))
    return run_plan(&plan_train, 1, argc - 1, argv + 1);
  if (argc && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))) {
    msa_command_help(command);
    return 0;
  }
  fprintf(stderr, "megaslide plan: say what to plan: \"generate\" or \"train\"; --help explains\n");
  return ms_error_exit_status(MS_EUSAGE);
}

const struct msa_command msa_command_plan = {
    .name = "plan",
    .usage = "generate|train [FLAGS]",
    .summary = "Tell what a job will need and take, without doing it",
    .text =
        "\"megaslide plan generate --help\" and \"megaslide plan train --help\" explain the flags.\n"
        "A plan knows tokens, parameters, FLOPs, bytes of host, device and disk, and seconds, of any model "
        "and any configuration,\n"
        "with or without its weights.\n",
    .examples = "  megaslide plan generate --size 640x384 --frames 33\n"
                "  megaslide plan train --steps 500 --batch 8\n",
    .run = run,
};
