/* megaslide studio: starts the window, which is a program of its own so that a server needs no desktop. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "command.h"

#define WINDOW "megaslide-studio"

static const struct msa_option options[] = {{0}};

/* Where an installed window lies beside this program, and where a build has it. Comes back only if there is
 * none. */
static void start_beside(char **arguments) {
  static const char *const places[] = {WINDOW, "../ui/" WINDOW};
  char program[PATH_MAX], path[2 * PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  if (length <= 0)
    return;
  program[length] = 0;
  char *name = strrchr(program, '/');
  if (!name)
    return;
  *name = 0;
  for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", program, places[i]);
    execv(path, arguments);
  }
}

static int run(const struct msa_command *command, int argc, char **argv) {
  char *arguments[66] = {(char *)WINDOW};
  if (argc > 0 && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"))) {
    msa_command_help(command);
    return 0;
  }
  if (argc > 64) {
    fprintf(stderr, "megaslide studio: more than 64 clips at once\n");
    return ms_error_exit_status(MS_EUSAGE);
  }
  signal(SIGPIPE, SIG_DFL); /* the commands ignore it, and that would be inherited */
  memcpy(arguments + 1, argv, (size_t)argc * sizeof argv[0]);
  start_beside(arguments);
  execvp(WINDOW, arguments);
  if (errno == ENOENT)
    fprintf(
        stderr,
        "megaslide studio: the window is not installed; \"%s\" is neither beside this program nor in PATH. "
        "From the source tree, app/run builds and starts it.\n",
        WINDOW);
  else
    fprintf(stderr, "megaslide studio: \"%s\" cannot be started: %s\n", WINDOW, strerror(errno));
  return ms_error_exit_status(MS_EINPUT);
}

const struct msa_command msa_command_studio = {
    .name = "studio",
    .usage = "[CLIP...]",
    .summary = "Open the window; a clip that is named has its settings restored",
    .examples = "  megaslide studio\n  megaslide studio ball.mp4\n",
    .options = options,
    .run = run,
};
