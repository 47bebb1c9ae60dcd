/* megaslide train: clips and a model in, a better model out; or a whole model from a recipe. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "ms-group.h"
#include "ms-train.h"
#include "msa-scenes.h"

struct args {
  const char *model, *output, *method, *moments, *sample_prompt, *on_missing_caption, *recipe, *trace;
  int64_t steps, rank, batch, accumulate, frames, seed, save_every, keep, sample_every, warmup,
      validate_every;
  double lr, ema, validation;
  int size[2], resume, json;
  struct msa_machine_args machine;
};

static const struct msa_option options[] = {
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "OUT",
     .help = "folder of the new model"},
    {"model", 0, MSA_OPTION_TEXT, offsetof(struct args, model), .argument = "M",
     .help = "name or folder to start from (starter)"},
    {"method", 0, MSA_OPTION_CHOICE, offsetof(struct args, method), .choices = "full|lora|offsets",
     .help = "all weights, adapters, or the offset heads alone (full)"},
    {"rank", 0, MSA_OPTION_WHOLE, offsetof(struct args, rank), .argument = "R",
     .help = "of lora's adapters (16)", .least = 1, .most = MS_LORA_MAX_RANK},
    {"moments", 0, MSA_OPTION_CHOICE, offsetof(struct args, moments), .choices = "32|8bit",
     .help = "how AdamW keeps its moments: 12 or 6 bytes of state a parameter (32)"},
    {"steps", 0, MSA_OPTION_WHOLE, offsetof(struct args, steps), .argument = "N",
     .help = "in all, steps before --resume included", .least = 1, .most = 1e9},
    {"lr", 0, MSA_OPTION_NUMBER, offsetof(struct args, lr), .argument = "X", .help = "learning rate",
     .least = 1e-12, .most = 10},
    {"warmup", 0, MSA_OPTION_WHOLE, offsetof(struct args, warmup), .argument = "N",
     .help = "steps until it is reached", .least = 0, .most = 1e9},
    {"batch", 0, MSA_OPTION_WHOLE, offsetof(struct args, batch), .argument = "N",
     .help = "clips computed together", .least = 1, .most = 65536},
    {"accumulate", 0, MSA_OPTION_WHOLE, offsetof(struct args, accumulate), .argument = "N",
     .help = "batches a step", .least = 1, .most = 65536},
    {"size", 0, MSA_OPTION_FRAME, offsetof(struct args, size), .argument = "WxH",
     .help = "of the frames trained on (the model's)", .least = 64, .most = 16384},
    {"frames", 0, MSA_OPTION_WHOLE, offsetof(struct args, frames), .argument = "N",
     .help = "trained on at once (the model's)", .least = 1, .most = 1e6},
    {"ema", 0, MSA_OPTION_NUMBER, offsetof(struct args, ema), .argument = "X",
     .help = "decay of the averaged weights; 0 is off", .least = 0, .most = .999999},
    {"seed", 0, MSA_OPTION_WHOLE, offsetof(struct args, seed), .argument = "S",
     .help = "of order, noise and new weights", .least = 0, .most = 9e18},
    {"save-every", 0, MSA_OPTION_WHOLE, offsetof(struct args, save_every), .argument = "N",
     .help = "steps between checkpoints", .least = 1, .most = 1e9},
    {"keep", 0, MSA_OPTION_WHOLE, offsetof(struct args, keep), .argument = "N",
     .help = "checkpoints that stay (2)", .least = 1, .most = 1e6},
    {"resume", 0, MSA_OPTION_FLAG, offsetof(struct args, resume),
     .help = "go on with OUT from its newest checkpoint, with its settings"},
    {"validation", 0, MSA_OPTION_NUMBER, offsetof(struct args, validation), .argument = "X",
     .help = "share of the clips held out", .least = 0, .most = .5},
    {"validate-every", 0, MSA_OPTION_WHOLE, offsetof(struct args, validate_every), .argument = "N",
     .help = "steps between looks at them", .least = 1, .most = 1e9},
    {"sample-prompt", 0, MSA_OPTION_TEXT, offsetof(struct args, sample_prompt), .argument = "TEXT",
     .help = "make clips of it on the way"},
    {"sample-every", 0, MSA_OPTION_WHOLE, offsetof(struct args, sample_every), .argument = "N",
     .help = "steps between them", .least = 1, .most = 1e9},
    {"on-missing-caption", 0, MSA_OPTION_CHOICE, offsetof(struct args, on_missing_caption),
     .choices = "error|empty|skip", .help = "clips without a NAME.txt (error)"},
    {"recipe", 0, MSA_OPTION_TEXT, offsetof(struct args, recipe), .argument = "FILE",
     .help = "build a model from nothing, in stages"},
    {"trace", 0, MSA_OPTION_TEXT, offsetof(struct args, trace), .argument = "FILE",
     .help = "what was read, computed and written when, as a Chrome trace"},
    MSA_MACHINE_OPTIONS(struct args, machine),
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json),
     .help = "tell metrics, progress and result as JSON"},
    {0},
};

/* What is not given stays unsaid, so that a run that goes on keeps its own. */
static void fill_job(const struct args *args, struct ms_train_job *job) {
  const struct {
    int given;
    enum ms_train_setting setting;
  } said[] = {
      {args->model != NULL, MS_SETTING_MODEL},
      {args->method != NULL, MS_SETTING_METHOD},
      {args->rank > 0, MS_SETTING_RANK},
      {args->moments != NULL, MS_SETTING_MOMENTS},
      {args->steps > 0, MS_SETTING_STEPS},
      {args->lr > 0, MS_SETTING_LR},
      {args->warmup >= 0, MS_SETTING_WARMUP},
      {args->batch > 0, MS_SETTING_BATCH},
      {args->accumulate > 0, MS_SETTING_ACCUMULATE},
      {args->size[0] > 0, MS_SETTING_SIZE},
      {args->frames > 0, MS_SETTING_FRAMES},
      {args->ema >= 0, MS_SETTING_EMA},
      {args->seed >= 0, MS_SETTING_SEED},
      {args->save_every > 0, MS_SETTING_SAVE_EVERY},
      {args->keep > 0, MS_SETTING_KEEP},
      {args->validation >= 0, MS_SETTING_VALIDATION},
      {args->validate_every > 0, MS_SETTING_VALIDATE_EVERY},
      {args->sample_prompt != NULL, MS_SETTING_SAMPLE_PROMPT},
      {args->sample_every > 0, MS_SETTING_SAMPLE_EVERY},
      {args->on_missing_caption != NULL, MS_SETTING_MISSING_CAPTION},
  };
  job->unsaid = ~0u;
  for (size_t i = 0; i < sizeof said / sizeof *said; i++)
    if (said[i].given)
      job->unsaid &= ~(1u << said[i].setting);
  job->output = args->output;
  if (args->model)
    job->model = args->model;
  if (args->method)
    job->method = !strcmp(args->method, "lora")      ? MS_METHOD_LORA
                  : !strcmp(args->method, "offsets") ? MS_METHOD_OFFSETS
                                                     : MS_METHOD_FULL;
  if (args->rank)
    job->rank = (int)args->rank;
  if (args->moments)
    job->moment_bits = !strcmp(args->moments, "8bit") ? 8 : 32;
  if (args->steps)
    job->steps = args->steps;
  if (args->lr > 0)
    job->lr = args->lr;
  if (args->warmup >= 0)
    job->warmup = args->warmup;
  if (args->batch)
    job->batch = (int)args->batch;
  if (args->accumulate)
    job->accumulate = (int)args->accumulate;
  if (args->size[0]) {
    job->width = args->size[0];
    job->height = args->size[1];
  }
  if (args->frames)
    job->frames = (int)args->frames;
  if (args->ema >= 0)
    job->ema = args->ema;
  if (args->seed >= 0)
    job->seed = (uint64_t)args->seed;
  if (args->save_every)
    job->save_every = args->save_every;
  if (args->keep)
    job->keep = (int)args->keep;
  if (args->validation >= 0)
    job->validation = args->validation;
  if (args->validate_every)
    job->validate_every = args->validate_every;
  if (args->sample_every)
    job->sample_every = args->sample_every;
  job->sample_prompt = args->sample_prompt;
  job->resume = args->resume;
  job->trace = args->trace;
  if (args->on_missing_caption)
    job->on_missing_caption = !strcmp(args->on_missing_caption, "empty")  ? MS_CAPTION_EMPTY
                              : !strcmp(args->on_missing_caption, "skip") ? MS_CAPTION_SKIP
                                                                          : MS_CAPTION_ERROR;
}

/* Parameters of the scenes that a recipe asks for. */
static int open_scenes(const char *text, struct ms_clip_source *source, struct ms_error *error) {
  struct msa_scenes_params params = msa_scenes_params_default();
  json_error_t where;
  json_t *root = json_loads(text ? text : "{}", 0, &where);
  json_int_t seed = (json_int_t)params.seed, count = (json_int_t)params.count;
  int status;
  if (!root || json_unpack_ex(root, &where, 0, "{s?I, s?I, s?F, s?F}", "seed", &seed, "count", &count,
                              "extras", &params.extras, "unsaid", &params.unsaid) < 0) {
    status = ms_error_set(error, MS_EINPUT, "the recipe's scenes cannot be read: %s", where.text);
  } else {
    params.seed = (uint64_t)seed;
    params.count = count;
    status = msa_scenes_open(source, &params, error);
  }
  json_decref(root);
  return status;
}

/* A path, or the name of a recipe in the data folder. */
static const char *find_recipe(const char *name, const char *data_folder, char *path, size_t size) {
  snprintf(path, size, "%s/recipes/%s.json", data_folder, name);
  return strchr(name, '/') || access(name, F_OK) == 0 || access(path, R_OK) != 0 ? name : path;
}

static int run_recipe(const struct args *args, const char *folder, const struct ms_machine *machine,
                      const struct ms_hooks *hooks, struct ms_train_result *result, struct ms_error *error) {
  struct ms_recipe_info info = {0};
  struct ms_clip_source source = {0};
  char path[4096];
  if (machine->group)
    return ms_error_set(error, MS_EUSAGE, "a recipe is built by one process: start it without the launcher");
  const char *recipe = find_recipe(args->recipe, machine->data_folder, path, sizeof path);
  if (args->steps || args->lr > 0 || args->batch || args->size[0] || args->frames || args->method ||
      args->rank)
    return ms_error_set(
        error, MS_EUSAGE,
        "with --recipe, steps, rates, batches and sizes are those of the recipe; change a copy of it");
  int status = ms_recipe_info_read(&info, recipe, error);
  if (status == 0 && !strcmp(info.source, "scenes"))
    status = open_scenes(info.source_json, &source, error);
  else if (status == 0 && folder)
    status = ms_clip_folder_open(&source, folder, MS_CAPTION_ERROR, hooks, error);
  else if (status == 0)
    status = ms_error_set(error, MS_EUSAGE, "the recipe \"%s\" wants a folder of clips", recipe);
  if (status == 0)
    status = ms_train_recipe(recipe, args->output, args->resume, &source, msa_scenes_vocabulary(),
                             msa_scenes_same(), machine, hooks, result, error);
  if (source.close)
    source.close(source.data);
  ms_recipe_info_release(&info);
  return status;
}

static int run_job(const struct args *args, const char *folder, const struct ms_machine *machine,
                   const struct ms_hooks *hooks, struct ms_train_result *result, struct ms_error *error) {
  struct ms_train_job job;
  if (!folder)
    return ms_error_set(error, MS_EUSAGE, "no folder of clips to train on");
  if (args->rank && (args->method ? strcmp(args->method, "lora") != 0 : !args->resume))
    return ms_error_set(error, MS_EUSAGE, "a rank is that of --method lora");
  ms_train_job_init(&job);
  fill_job(args, &job);
  job.dataset = folder;
  return ms_train(&job, NULL, machine, hooks, result, error);
}

static void tell_result(struct msa_output *output, const char *folder, const struct ms_train_result *r) {
  json_t *result =
      json_pack("{s:o, s:I, s:o, s:o, s:f, s:f, s:I, s:f, s:f}", "output", msa_json_text(folder), "steps",
                (json_int_t)r->steps, "loss", msa_json_number(r->loss), "validation_loss",
                msa_json_number(r->validation_loss), "seconds_per_step", r->seconds_per_step,
                "tokens_per_second", r->tokens_per_second, "peak_host_bytes", (json_int_t)r->peak_host_bytes,
                "seconds", r->seconds, "flops_per_second", r->flops_per_second);
  json_object_set_new(result, "first_validation_loss", msa_json_number(r->first_validation_loss));
  json_object_set_new(result, "planned_host_bytes", json_integer((json_int_t)r->planned_host_bytes));
  if (r->caution[0])
    json_object_set_new(result, "caution", json_string(r->caution));
  msa_output_event(output, "result", result);
  msa_output_say(output, "%s: %lld steps, loss %.4f, %.3f s a step, %.0f tokens a second%s%s", folder,
                 (long long)r->steps, r->loss, r->seconds_per_step, r->tokens_per_second,
                 r->caution[0] ? "; " : "", r->caution);
  if (isfinite(r->validation_loss) && isfinite(r->first_validation_loss))
    msa_output_say(output, "loss on held-out clips: %.4f before, %.4f after", r->first_validation_loss,
                   r->validation_loss);
}

static void tell_sample(void *data, int64_t step, const char *prompt, const char *path) {
  struct msa_output *output = data;
  json_t *row = json_pack("{s:I}", "step", (json_int_t)step);
  json_object_set_new(row, "prompt", msa_json_text(prompt));
  json_object_set_new(row, "sample", msa_json_text(path));
  msa_output_event(output, "row", row);
  msa_output_note(output, "the clip of step %lld is in %s", (long long)step, path);
}

/* Of several processes the first speaks, and one that failed where the others could not notice. */
static int finish(struct msa_output *output, struct ms_group **group, const char *folder,
                  const struct ms_train_result *result, int status, const struct ms_error *error) {
  int speaks = ms_group_rank(*group) == 0 || ms_group_is_torn(*group);
  if (status == 0 && speaks)
    tell_result(output, folder, result);
  if (status < 0)
    status =
        speaks ? msa_output_failure(output, error) : msa_signal_status(ms_error_exit_status(error->code));
  status = msa_output_finish(output, status);
  ms_group_close(group, status);
  return status;
}

static int run(const struct msa_command *command, int argc, char **argv) {
  struct args args = {.seed = -1, .ema = -1, .validation = -1, .warmup = -1};
  struct msa_output output;
  struct ms_error error = {0};
  struct ms_machine machine;
  struct ms_group *group = NULL;
  struct ms_train_result result = {.loss = NAN, .validation_loss = NAN, .first_validation_loss = NAN};
  const char *folder = NULL;
  struct msa_folders folders;
  int count, status;
  if (msa_command_begin(command, argc, argv, &args, &args.json, &folder, 1, &count, &output, &status))
    return status;
  struct ms_hooks hooks = msa_output_hooks(&output, msa_cancel_flag());
  hooks.sample = tell_sample;
  msa_folders_find(&folders);
  status = ms_group_open(&group, &error);
  if (status == 0 && !args.output)
    status = ms_error_set(&error, MS_EUSAGE, "no folder for the new model: give one with -o OUT");
  if (status == 0)
    status = msa_machine_from_args(&args.machine, &folders, &machine, &error);
  machine.group = group;
  if (status == 0)
    status = args.recipe ? run_recipe(&args, folder, &machine, &hooks, &result, &error)
                         : run_job(&args, folder, &machine, &hooks, &result, &error);
  return finish(&output, &group, args.output, &result, status, &error);
}

const struct msa_command msa_command_train = {
    .name = "train",
    .usage = "DIR -o OUT [FLAGS]",
    .summary = "Adapt a model to a folder of clips, or build one from a recipe",
    .text = "DIR holds clips of any kind that FFmpeg reads, each with its caption NAME.txt. OUT becomes a "
            "model folder for\n"
            "\"generate --model OUT\", with metrics.csv, run.json and checkpoints. A stopped run saves "
            "itself; --resume goes on, and\n"
            "ends with the same bits as a run that was never stopped. --method lora trains small matrices "
            "beside the model's, in\n"
            "far less memory; OUT has them merged in, and as lora.safetensors.\n"
            "Started by mpirun or srun the processes train one model together: --accumulate is then the "
            "batches of a step of all of\n"
            "them (one each), memory and threads are of each. SIGTERM or SIGUSR1 to any of them stops all "
            "after the step.\n",
    .examples = "  megaslide train my-clips -o mine --steps 200\n"
                "  megaslide train my-clips -o mine --steps 400 --resume\n"
                "  megaslide train --recipe starter -o starter-again\n"
                "  mpirun --bind-to none -n 4 megaslide train my-clips -o mine --steps 200\n",
    .options = options,
    .run = run,
};
