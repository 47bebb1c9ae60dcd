#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

void msa_command_help(const struct msa_command *command) {
  printf("usage: megaslide %s %s\n\n%s.\n", command->name, command->usage, command->summary);
  if (command->text)
    printf("\n%s", command->text);
  if (command->options && command->options->name) {
    printf("\n");
    msa_options_print(command->options, stdout);
  }
  if (command->examples)
    printf("\nExamples:\n%s", command->examples);
}

int msa_command_begin(const struct msa_command *command, int argc, char **argv, void *args, const int *json,
                      const char **positionals, int room, int *count, struct msa_output *output,
                      int *status) {
  struct ms_error error = {0};
  int code = msa_options_parse(command->options, argc, argv, args, positionals, room, count, &error);
  int wants_json = json && *json;
  for (int i = 0; i < argc && !wants_json && json && code < 0; i++)
    wants_json = !strcmp(argv[i], "--json"); /* a bad flag before it must not change the form of the answer */
  msa_output_init(output, command->name, wants_json);
  if (code == 0)
    return 0;
  if (code > 0) {
    msa_command_help(command);
    *status = msa_output_finish(output, 0);
    return 1;
  }
  *status = msa_output_failure(output, &error);
  msa_output_note(output, "\"megaslide %s --help\" explains the flags", command->name);
  return 1;
}

static int is_folder(const char *path) {
  struct stat info;
  return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

const char *msa_data_folder(char *folder, size_t size) {
  const char *named = getenv("MEGASLIDE_DATA");
  if (named && *named) {
    snprintf(folder, size, "%s", named);
    return folder;
  }
  char program[3072] = "";
  if (readlink("/proc/self/exe", program, sizeof program - 1) > 0 && strrchr(program, '/')) {
    *strrchr(program, '/') = 0;
    snprintf(folder, size, "%s/../share/megaslide", program);
    if (is_folder(folder))
      return folder;
  }
  snprintf(folder, size, "%s", MEGASLIDE_SOURCE_DATA);
  return folder;
}

const char *msa_user_models_folder(char *folder, size_t size) {
  const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
  if (data && data[0] == '/')
    snprintf(folder, size, "%s/megaslide/models", data);
  else
    snprintf(folder, size, "%s/.local/share/megaslide/models", home ? home : "");
  return folder;
}
