#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <signal.h>
#include <unistd.h>

#include "base/file.h"
#include "harness.h"
#include "scratch.h"

static int contents_are(const char *name, const char *want) {
  char *data;
  size_t size;
  int same = ms_file_read_all(scratch_path(name), 1000, &data, &size, NULL) == 0 && size == strlen(want) &&
             !strcmp(data, want);
  free(data);
  return same;
}

static void check_refused(const char *name, const char *words) {
  struct ms_file_out out;
  struct ms_error error = {0};
  int code = ms_file_out_open(&out, scratch_path(name), &error);
  check_ok(code == MS_EOUTPUT && strstr(error.message, words), "\"%s\" is refused: %s", name, error.message);
  if (code == 0)
    ms_file_out_abandon(&out);
}

static void
check_full(void) { /* a limit on the file size stands for a full disk: both end a write half way */
  struct rlimit old, low = {4096, 4096};
  struct ms_error error = {0};
  static char data[100000];
  int code;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &old);
  low.rlim_max = old.rlim_max;
  setrlimit(RLIMIT_FSIZE, &low);
  code = ms_file_write_all(scratch_path("a"), data, sizeof data, &error);
  check_ok(code == MS_EOUTPUT && strstr(error.message, "large"), "a write that fails half way is noticed: %s",
           error.message);
  check_ok(contents_are("a", "third") && !scratch_exists("a.part"),
           "the old contents stand and nothing is left over");
  check_ok(ms_file_check(scratch_path("b"), NULL) == MS_EOUTPUT && !scratch_exists("b") &&
               !scratch_exists("b.part"),
           "the check beforehand notices it too");
  setrlimit(RLIMIT_FSIZE, &old);
}

static int stop_copy(void *data, size_t bytes, struct ms_error *error) {
  *(size_t *)data += bytes;
  return ms_error_set(error, MS_ECANCELLED, "stopped");
}

static void check_copy(void) {
  char from[1024], to[1024];
  struct ms_error error = {0};
  size_t told = 0;
  snprintf(from, sizeof from, "%s", scratch_path("a"));
  snprintf(to, sizeof to, "%s", scratch_path("copy"));
  check_ok(ms_file_copy(from, to, NULL, NULL, &error) == 0 && contents_are("copy", "third"),
           "a file is copied: %s", error.message);
  unlink(to);
  check_ok(ms_file_copy(from, to, stop_copy, &told, &error) == MS_ECANCELLED && told == 5 &&
               !scratch_exists("copy") && !scratch_exists("copy.part"),
           "a copy that is stopped leaves nothing");
  error = (struct ms_error){0};
  check_ok(ms_file_copy(scratch_path("zz"), to, NULL, NULL, &error) == MS_EINPUT && !scratch_exists("copy"),
           "a file that is not there: %s", error.message);
  error = (struct ms_error){0};
  check_ok(ms_file_copy(scratch_path("folder"), to, NULL, NULL, &error) == MS_EINPUT, "a folder: %s",
           error.message);
}

int main(int argc, char **argv) {
  struct ms_file_out out = {0}, second;
  struct ms_error error = {0};
  char *data;
  size_t size;
  check_begin(argc, argv);
  scratch_begin();
  check_ok(ms_file_write_all(scratch_path("a"), "first", 5, &error) == 0 && contents_are("a", "first"),
           "a file is written");
  check_ok(ms_file_out_open(&out, scratch_path("a"), &error) == 0 &&
               ms_file_out_write(&out, "second", 6, &error) == 0,
           "a second version is begun");
  check_ok(contents_are("a", "first"), "the first stands until the second is complete");
  check_ok(ms_file_out_open(&second, scratch_path("a"), &error) == MS_EOUTPUT &&
               strstr(error.message, "another program"),
           "two writers: %s", error.message);
  ms_file_out_abandon(&out);
  check_ok(contents_are("a", "first") && !scratch_exists("a.part"), "abandon leaves the first");
  ms_file_out_abandon(&out);
  scratch_put("a.part", "left by a killed program", 24);
  check_ok(ms_file_write_all(scratch_path("a"), "third", 5, NULL) == 0 && contents_are("a", "third") &&
               scratch_count() == 1,
           "a stale part file is taken over");
  check_ok(ms_file_write_all(scratch_path("e"), NULL, 0, NULL) == 0 && contents_are("e", ""),
           "an empty file is a file");
  unlink(scratch_path("e"));
  mkdir(scratch_path("folder"), 0755);
  check_refused("folder", "is a folder");
  check_refused("none/a", "does not exist");
  check_refused("a/b", "Not a directory");
  check_ok(symlink("a", scratch_path("link.part")) == 0, "a link is made");
  check_refused("link", "");
  check_ok(contents_are("a", "third"), "a part file that is a link is not followed");
  unlink(scratch_path("link.part"));
  check_ok(mkfifo(scratch_path("pipe"), 0600) == 0, "a pipe is made");
  check_refused("pipe", "not a file");
  check_ok(ms_file_check(scratch_path("new"), NULL) == 0 && !scratch_exists("new") &&
               !scratch_exists("new.part"),
           "a check leaves nothing");
  check_full();
  error = (struct ms_error){0};
  check_ok(ms_file_read_all(scratch_path("a"), 4, &data, &size, &error) == MS_EINPUT && !data,
           "too large: %s", error.message);
  error = (struct ms_error){0};
  check_ok(ms_file_read_all(scratch_path("zz"), 4, &data, &size, &error) == MS_EINPUT && !data, "missing: %s",
           error.message);
  error = (struct ms_error){0};
  check_ok(ms_file_read_all(scratch_path("folder"), 4, &data, &size, &error) == MS_EINPUT && !data,
           "folder: %s", error.message);
  check_copy();
  scratch_end();
  return check_end();
}
