/* megaslide models: the model folders on this machine. */
#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "machine.h"
#include "ms-models.h"
#include "ms-system.h"

struct args {
  const char *output, *name;
  int64_t seed;
  int json;
};

static const char *format_count(double count, char *text, size_t size) {
  if (count >= 1e9)
    snprintf(text, size, "%.2f B", count / 1e9);
  else
    snprintf(text, size, "%.2f M", count / 1e6);
  return text;
}

static json_t *model_json(const struct ms_model_info *info) {
  json_t *object = json_pack(
      "{s:o, s:o, s:s, s:s, s:I, s:I, s:i, s:i, s:i, s:i, s:s, s:s}", "name", msa_json_text(info->name),
      "folder", msa_json_text(info->folder), "family", info->family, "license", info->license, "parameters",
      (json_int_t)info->parameters, "bytes", (json_int_t)info->bytes, "width", info->width, "height",
      info->height, "frames", info->frames, "steps", info->steps, "attention", info->attention,
      "coarse_attention", info->coarse_attention);
  json_object_set_new(object, "fps", msa_json_number(info->fps));
  return object;
}

struct listing {
  struct msa_output *output;
  int count;
};

static void list_model(void *data, const struct ms_model_info *info) {
  struct listing *listing = data;
  char parameters[32], bytes[32];
  listing->count++;
  msa_output_event(listing->output, "row", model_json(info));
  msa_output_say(listing->output, "%-20s %10s parameters  %10s  %s", info->name,
                 format_count((double)info->parameters, parameters, 32),
                 ms_format_bytes((double)info->bytes, bytes, 32), info->folder);
}

static int list(struct msa_output *output, const struct args *args, const char *subject,
                struct ms_error *error) {
  struct msa_folders folders;
  struct listing listing = {.output = output};
  msa_folders_find(&folders);
  char data_models[4200];
  snprintf(data_models, sizeof data_models, "%s/models", folders.data);
  ms_models_list(data_models, list_model, &listing);
  ms_models_list(folders.user_models, list_model, &listing);
  msa_output_event(output, "result", json_pack("{s:i}", "models", listing.count));
  if (!listing.count)
    msa_output_say(output, "no models in %s and %s", data_models, folders.user_models);
  return 0;
}

static int show(struct msa_output *output, const struct args *args, const char *subject,
                struct ms_error *error) {
  struct msa_folders folders;
  struct ms_model_info info = {0};
  char folder[4096], text[32];
  msa_folders_find(&folders);
  int status = ms_model_find(subject, folders.data, folders.user_models, folder, sizeof folder, error);
  if (status == 0)
    status = ms_model_info_read(&info, folder, error);
  if (status == 0) {
    json_t *result = model_json(&info), *config = info.json ? json_loads(info.json, 0, NULL) : NULL;
    if (config)
      json_object_set_new(result, "config", config);
    msa_output_event(output, "result", result);
    msa_output_say(output, "%s\n  folder      %s\n  family      %s\n  parameters  %s", info.name, info.folder,
                   info.family, format_count((double)info.parameters, text, sizeof text));
    msa_output_say(output, "  files       %s\n  attention   %s",
                   ms_format_bytes((double)info.bytes, text, sizeof text), info.attention);
    if (info.coarse_attention[0])
      msa_output_say(output, "  base stage  %s", info.coarse_attention);
    msa_output_say(output, "  clip        %dx%d, %d frames, %g fps, %d steps\n  license     %s", info.width,
                   info.height, info.frames, info.fps, info.steps,
                   info.license[0] ? info.license : "not stated");
  }
  ms_model_info_release(&info);
  return status;
}

static int tell_folder(struct msa_output *output, const char *folder, const char *words) {
  msa_output_event(output, "result", json_pack("{s:o}", "output", msa_json_text(folder)));
  msa_output_say(output, "%s %s", folder, words);
  return 0;
}

static int verify(struct msa_output *output, const struct args *args, const char *subject,
                  struct ms_error *error) {
  struct msa_folders folders;
  char folder[4096];
  msa_folders_find(&folders);
  int status = ms_model_find(subject, folders.data, folders.user_models, folder, sizeof folder, error);
  if (status == 0)
    status = ms_model_verify(folder, error);
  return status < 0 ? status
                    : tell_folder(output, folder,
                                  "is complete: every tensor is there with its shape and finite values");
}

static int make_folders(const char *path, struct ms_error *error) {
  char part[4096];
  snprintf(part, sizeof part, "%s", path);
  for (char *slash = part + 1;; slash++) {
    const char end = *slash;
    if (end && end != '/')
      continue;
    *slash = 0;
    if (mkdir(part, 0777) && errno != EEXIST)
      return ms_error_set(error, MS_EOUTPUT, "the folder \"%s\" cannot be made: %s", part, strerror(errno));
    if (!end)
      return 0;
    *slash = end;
  }
}

/* A model's name becomes a folder's name below the user's models, so it must not lead out of there. */
static int check_name(const char *name, struct ms_error *error) {
  if (!*name || name[0] == '.' || strchr(name, '/'))
    return ms_error_set(error, MS_EUSAGE, "\"%s\" cannot be a model's name", name);
  return 0;
}

static int import(struct msa_output *output, const struct args *args, const char *subject,
                  struct ms_error *error) {
  const struct ms_hooks hooks = msa_output_hooks(output, msa_cancel_flag());
  struct msa_folders folders;
  char from[4096], to[4400];
  msa_folders_find(&folders);
  snprintf(from, sizeof from, "%s", subject);
  for (size_t n = strlen(from); n > 1 && from[n - 1] == '/'; n--)
    from[n - 1] = 0;
  const char *name = args->name ? args->name : strrchr(from, '/') ? strrchr(from, '/') + 1 : from;
  int status = check_name(name, error);
  if (status == 0 && args->output) {
    snprintf(to, sizeof to, "%s", args->output);
  } else if (status == 0) {
    status = make_folders(folders.user_models, error);
    snprintf(to, sizeof to, "%s/%s", folders.user_models, name);
  }
  if (status == 0)
    status = ms_model_import(from, to, &hooks, error);
  return status < 0 ? status : tell_folder(output, to, "is ready for --model");
}

static int init(struct msa_output *output, const struct args *args, const char *subject,
                struct ms_error *error) {
  const struct ms_hooks hooks = msa_output_hooks(output, msa_cancel_flag());
  struct msa_folders folders;
  msa_folders_find(&folders);
  const struct ms_machine machine = {.data_folder = folders.data, .user_folder = folders.user_models};
  if (!args->output)
    return ms_error_set(error, MS_EUSAGE, "no folder for the new model: give one with -o DIR");
  int status = ms_model_create(subject, args->output, (uint64_t)args->seed, &machine, &hooks, error);
  return status < 0 ? status : tell_folder(output, args->output, "holds a model with random weights");
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
  return remove(path);
}

static int remove_model(struct msa_output *output, const struct args *args, const char *subject,
                        struct ms_error *error) {
  struct msa_folders folders;
  struct stat info;
  char folder[4400], config[4500];
  msa_folders_find(&folders);
  int status = check_name(subject, error);
  if (status < 0)
    return status;
  snprintf(folder, sizeof folder, "%s/%s", folders.user_models, subject);
  snprintf(config, sizeof config, "%s/model.json", folder);
  if (stat(config, &info))
    return ms_error_set(error, MS_EINPUT, "there is no model \"%s\" in \"%s\"; only models there are removed",
                        subject, folders.user_models);
  if (nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS))
    return ms_error_set(error, MS_EOUTPUT, "\"%s\" cannot be removed whole: %s", folder, strerror(errno));
  return tell_folder(output, folder, "is removed");
}

static const struct msa_option list_options[] = {
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = "one row a model, then the result"},
    {0},
};
static const struct msa_option import_options[] = {
    {"name", 0, MSA_OPTION_TEXT, offsetof(struct args, name), .argument = "NAME",
     .help = "for --model (the folder's name)"},
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "DIR",
     .help = "another place for the copy"},
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = "tell progress and result as JSON"},
    {0},
};
static const struct msa_option init_options[] = {
    {"output", 'o', MSA_OPTION_TEXT, offsetof(struct args, output), .argument = "DIR",
     .help = "the new model's folder; must not exist"},
    {"seed", 0, MSA_OPTION_WHOLE, offsetof(struct args, seed), .argument = "S",
     .help = "of the random weights (1)", .least = 0, .most = 9e18},
    {"json", 0, MSA_OPTION_FLAG, offsetof(struct args, json), .help = "tell progress and result as JSON"},
    {0},
};

static const struct verb {
  struct msa_command command;
  int (*act)(struct msa_output *output, const struct args *args, const char *subject, struct ms_error *error);
  const char *subject; /* what it is about, or NULL */
} verbs[] = {
    {{.name = "models list",
      .usage = "[FLAGS]",
      .summary = "List the models on this machine",
      .options = list_options},
     list,
     NULL},
    {{.name = "models show",
      .usage = "MODEL [FLAGS]",
      .summary = "Tell what a model is",
      .options = list_options},
     show,
     "model"},
    {{.name = "models verify",
      .usage = "MODEL [FLAGS]",
      .summary = "Check every tensor of a model against its configuration",
      .options = list_options},
     verify,
     "model"},
    {{.name = "models import",
      .usage = "FOLDER [FLAGS]",
      .summary = "Copy a model folder, after checking it, to your models",
      .options = import_options},
     import,
     "folder"},
    {{.name = "models init",
      .usage = "CONFIG -o DIR [FLAGS]",
      .summary = "Make a model of a configuration with random weights, to train or to measure with",
      .options = init_options,
      .examples = "  megaslide models init wan2.1-1.3b -o random-1.3b --seed 3\n"},
     init,
     "configuration"},
    {{.name = "models remove",
      .usage = "NAME [FLAGS]",
      .summary = "Delete one of your models",
      .options = list_options},
     remove_model,
     "model"},
};
#define VERBS (sizeof verbs / sizeof verbs[0])

static int run_verb(const struct verb *verb, int argc, char **argv) {
  struct args args = {.seed = 1};
  struct msa_output output;
  struct ms_error error = {0};
  const char *subject = NULL;
  int count, status;
  if (msa_command_begin(&verb->command, argc, argv, &args, &args.json, &subject, verb->subject != NULL,
                        &count, &output, &status))
    return status;
  if (verb->subject && !count)
    status = ms_error_set(&error, MS_EUSAGE, "which %s?", verb->subject);
  else
    status = verb->act(&output, &args, subject, &error);
  return msa_output_finish(&output, status < 0 ? msa_output_failure(&output, &error) : 0);
}

static int run(const struct msa_command *command, int argc, char **argv) {
  for (size_t i = 0; i < VERBS && argc; i++)
    if (!strcmp(verbs[i].command.name + strlen("models "), argv[0]))
      return run_verb(&verbs[i], argc - 1, argv + 1);
  const int help = argc && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"));
  FILE *to = help ? stdout : stderr;
  if (argc && !help)
    fprintf(stderr, "megaslide models: there is nothing called \"%s\"\n", argv[0]);
  fprintf(to, "usage: megaslide models VERB ...\n\n");
  for (size_t i = 0; i < VERBS; i++)
    fprintf(to, "  %-8s %s\n", verbs[i].command.name + strlen("models "), verbs[i].command.summary);
  return help ? 0 : ms_error_exit_status(MS_EUSAGE);
}

const struct msa_command msa_command_models = {
    .name = "models",
    .usage = "list|show|verify|import|init|remove ...",
    .summary = "List, explain, check, import and make models",
    .text = "\"megaslide models --help\" lists the verbs; \"megaslide models VERB --help\" explains one.\n",
    .run = run,
};
