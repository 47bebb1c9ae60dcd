/* Errors of the engine: 0 or a negative MS_E..., and a sentence for the person.
 *
 * A function that can fail returns int. What a person must read goes into the caller's `struct ms_error`,
 * which is untouched on success; the first failure stands, later ones do not overwrite it. A message names
 * what failed, the subject in quotes, and what to do. */
#pragma once
#include <stdarg.h>
#include <stddef.h>

/* name, exit code of the command line (DESIGN: 0 done, 1 fault, 2 usage, 3 input, 4 budget, 5 output, 6
 * device, 7 not finite), text */
#define MS_ERRORS(X)                                                                                         \
  X(MS_EFAULT, 1, "internal fault")                                                                          \
  X(MS_EUSAGE, 2, "bad flag or value")                                                                       \
  X(MS_EINPUT, 3, "missing or bad input")                                                                    \
  X(MS_EBUDGET, 4, "does not fit")                                                                           \
  X(MS_EOUTPUT, 5, "output cannot be written")                                                               \
  X(MS_EDEVICE, 6, "device error")                                                                           \
  X(MS_ENOTFINITE, 7, "not finite")                                                                          \
  X(MS_ECANCELLED, 130, "cancelled")                                                                         \
  X(MS_ENOMEM, 4, "out of memory")

enum ms_error_index {
#define X(name, exit_code, text) name##_INDEX,
  MS_ERRORS(X)
#undef X
};
enum ms_error_code {
#define X(name, exit_code, text) name = -1 - name##_INDEX,
  MS_ERRORS(X)
#undef X
};

struct ms_error {
  int code; /* 0 or MS_E... */
  char message[512];
};

/* Records code and message (printf format) unless an error stands already or error is NULL; returns code. */
int ms_error_set(struct ms_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Short text of a code, and the exit status that a program should end with. */
const char *ms_error_text(int code);
int ms_error_exit_status(int code);
