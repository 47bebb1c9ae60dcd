#include <string.h>

#include "harness.h"
#include "ms-error.h"

int main(int argc, char **argv) {
  static const struct {
    int code, status;
  } codes[] = {{0, 0},          {MS_EFAULT, 1},  {MS_EUSAGE, 2},     {MS_EINPUT, 3},       {MS_EBUDGET, 4},
               {MS_EOUTPUT, 5}, {MS_EDEVICE, 6}, {MS_ENOTFINITE, 7}, {MS_ECANCELLED, 130}, {MS_ENOMEM, 4}};
  struct ms_error error = {0};
  char text[2048];
  check_begin(argc, argv);
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    check_ok(ms_error_exit_status(codes[i].code) == codes[i].status, "exit status of %s is %d",
             ms_error_text(codes[i].code), codes[i].status);
    for (size_t j = 0; j < i; j++)
      check_ok(codes[i].code != codes[j].code &&
                   strcmp(ms_error_text(codes[i].code), ms_error_text(codes[j].code)),
               "codes %zu and %zu differ", i, j);
  }
  check_ok(ms_error_exit_status(-1000) == 1 && ms_error_exit_status(5) == 1,
           "unknown codes end as internal faults");
  check_ok(ms_error_set(&error, MS_EINPUT, "clip \"%s\" has %d frames", "a", 3) == MS_EINPUT,
           "set returns the code");
  check_ok(error.code == MS_EINPUT && !strcmp(error.message, "clip \"a\" has 3 frames"),
           "set records code and message");
  check_ok(ms_error_set(&error, MS_EOUTPUT, "later") == MS_EOUTPUT, "a later failure returns its own code");
  check_ok(error.code == MS_EINPUT && error.message[0] == 'c', "the first failure stands");
  check_ok(ms_error_set(NULL, MS_EFAULT, "nobody reads this") == MS_EFAULT, "no error object is needed");
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = 0;
  error = (struct ms_error){0};
  ms_error_set(&error, MS_EFAULT, "%s", text);
  check_ok(strlen(error.message) == sizeof error.message - 1, "a long message is cut, not spilled");
  return check_end();
}
