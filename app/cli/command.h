/* A command of the program: its table of flags, its help, and what it does. */
#pragma once
#include <stdatomic.h>
#include "options.h"
#include "output.h"

struct msa_command {
  const char *name;     /* "generate"; of a command with verbs "models list" */
  const char *usage;    /* after the name: "PROMPT [FLAGS]" */
  const char *summary;  /* one line for the list of commands */
  const char *text;     /* paragraphs for --help, or NULL */
  const char *examples; /* lines for --help, or NULL */
  const struct msa_option *options;
  /* argv without program and command. Returns the exit status. */
  int (*run)(const struct msa_command *command, int argc, char **argv);
};

extern const struct msa_command msa_command_generate, msa_command_train, msa_command_models,
    msa_command_inspect, msa_command_render_scenes, msa_command_export, msa_command_bench, msa_command_plan,
    msa_command_studio;

/* Set by the first SIGINT or SIGTERM; a second SIGINT ends the program at once. */
const atomic_int *msa_cancel_flag(void);
/* 130 or 143 after such a signal, else `status`. */
int msa_signal_status(int status);

/* Parses into args. Returns 0 to go on; 1 if help was printed or an error told, and *status is the exit
 * status. `json` points to the command's --json flag in args, or NULL. */
int msa_command_begin(const struct msa_command *command, int argc, char **argv, void *args, const int *json,
                      const char **positionals, int room, int *count, struct msa_output *output, int *status);
void msa_command_help(const struct msa_command *command);
