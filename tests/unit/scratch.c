#include "scratch.h"

#include <ftw.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[512], paths[8][1024];
static int next;

static void give_up(const char *what) {
  printf("Bail out! %s\n", what);
  exit(99);
}

void scratch_begin(void) {
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/megaslide-test-XXXXXX", base && *base ? base : P_tmpdir);
  if (!mkdtemp(folder))
    give_up("cannot make a folder for test files");
}

const char *scratch_path(const char *name) {
  char *path = paths[next++ % 8];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

void scratch_put(const char *name, const void *data, size_t size) {
  FILE *file = fopen(scratch_path(name), "wb");
  if (!file || (size && fwrite(data, size, 1, file) != 1) || fclose(file) != 0)
    give_up("cannot write a test file");
}

int scratch_exists(const char *name) {
  return access(scratch_path(name), F_OK) == 0;
}

int scratch_count(void) {
  DIR *dir = opendir(folder);
  struct dirent *entry;
  int n = 0;
  while (dir && (entry = readdir(dir)))
    n += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
  if (dir)
    closedir(dir);
  return n;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
  return remove(path);
}

void scratch_end(void) {
  nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}
