/* megaslide: everything the Studio does, without a window. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "config.h"

static const struct msa_command *const commands[] = {
    &msa_command_studio, &msa_command_generate, &msa_command_train,
    &msa_command_plan,   &msa_command_models,   &msa_command_inspect,
    &msa_command_export, &msa_command_bench,    &msa_command_render_scenes,
};
#define COUNT (sizeof commands / sizeof commands[0])

/* The one thing that a signal handler can reach. */
static atomic_int cancel_signal;

/* Who presses the keys twice wants it to end now. SIGTERM comes twice where a launcher tells both a program
 * and its group, and must not cost what is being saved: who insists has SIGKILL. */
static void cancel_handler(int number) {
  if (number == SIGUSR1) /* what launchers of many processes pass on, or send before the time is over */
    number = SIGTERM;
  if (atomic_exchange(&cancel_signal, number) && number == SIGINT)
    _exit(128 + number);
}

const atomic_int *msa_cancel_flag(void) {
  return &cancel_signal;
}

int msa_signal_status(int status) {
  const int number = atomic_load(&cancel_signal);
  return number ? 128 + number : status;
}

static void catch_signals(void) {
  struct sigaction action = {.sa_handler = cancel_handler, .sa_flags = SA_RESTART};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler =
      SIG_IGN; /* a reader that went away is an error of writing, so that files are put in order */
  sigaction(SIGPIPE, &action, NULL);
}

static void print_help(FILE *to) {
  fputs("MegaSlide turns a sentence into a clip with a video diffusion model on this machine, and trains "
        "such models.\n\n"
        "usage: megaslide COMMAND [ARGUMENTS]\n\n",
        to);
  for (size_t i = 0; i < COUNT; i++)
    fprintf(to, "  %-15s %s\n", commands[i]->name, commands[i]->summary);
  fputs(
      "\nFirst steps:\n"
      "  megaslide generate \"a red ball rolls to the right on a blue background\" -o ball.mp4\n"
      "  megaslide inspect ball.mp4\n"
      "  megaslide generate --help\n\n"
      "Every command knows --help and --json (one object a line on standard output, the result last).\n"
      "Exit status: 0 done; 1 internal fault; 2 bad flag or value; 3 missing or bad input; 4 does not fit;\n"
      "5 output cannot be written; 6 device; 7 not finite; 130 or 143 stopped by a signal.\n",
      to);
}

static const struct msa_command *find_command(const char *name) {
  for (size_t i = 0; i < COUNT; i++)
    if (!strcmp(commands[i]->name, name))
      return commands[i];
  return NULL;
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "--help";
  catch_signals();
  if (!strcmp(name, "--version")) {
    puts("megaslide " MEGASLIDE_VERSION);
    return 0;
  }
  if (!strcmp(name, "--help") || !strcmp(name, "-h") || !strcmp(name, "help")) {
    const struct msa_command *about = argc > 2 ? find_command(argv[2]) : NULL;
    if (about)
      msa_command_help(about);
    else
      print_help(argc > 1 ? stdout : stderr);
    return argc > 1 ? 0 : 2;
  }
  const struct msa_command *command = find_command(name);
  if (!command) {
    const char *names[COUNT];
    for (size_t i = 0; i < COUNT; i++)
      names[i] = commands[i]->name;
    const char *nearest = msa_nearest_word(name, names, COUNT);
    fprintf(stderr, "megaslide: there is no command \"%s\"", name);
    fprintf(stderr, nearest ? "; did you mean \"%s\"?\n" : "; \"megaslide --help\" lists them\n", nearest);
    return ms_error_exit_status(MS_EUSAGE);
  }
  return msa_signal_status(command->run(command, argc - 2, argv + 2));
}
