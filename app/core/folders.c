#include "core/folders.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

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

const char *msa_cache_folder(char *folder, size_t size) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  if (cache && cache[0] == '/')
    snprintf(folder, size, "%s", cache);
  else
    snprintf(folder, size, "%s/.cache", home ? home : "");
  mkdir(folder, 0700);
  if (strlen(folder) + sizeof "/megaslide" > size)
    return NULL;
  strcat(folder, "/megaslide");
  mkdir(folder, 0700);
  return is_folder(folder) ? folder : NULL;
}
