#include "ms-error.h"

#include <stdio.h>

int ms_error_set(struct ms_error *error, int code, const char *format, ...) {
  if (error && !error->code) {
    va_list args;
    error->code = code;
    va_start(args, format);
    vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
  }
  return code;
}

const char *ms_error_text(int code) {
  static const char *const texts[] = {
#define X(name, exit_code, text) text,
    MS_ERRORS(X)
#undef X
  };
  int i = -1 - code;
  if (code == 0)
    return "done";
  return i >= 0 && i < (int)(sizeof texts / sizeof *texts) ? texts[i] : "unknown error";
}

int ms_error_exit_status(int code) {
  static const unsigned char statuses[] = {
#define X(name, exit_code, text) exit_code,
    MS_ERRORS(X)
#undef X
  };
  int i = -1 - code;
  if (code == 0)
    return 0;
  return i >= 0 && i < (int)sizeof statuses ? statuses[i] : 1;
}
