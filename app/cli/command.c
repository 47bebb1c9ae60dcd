#include "command.h"

#include <string.h>

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
