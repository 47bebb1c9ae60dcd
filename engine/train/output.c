#include "train/output.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "train/latents.h"

static int is_empty(const char *folder) {
  struct dirent *entry;
  DIR *dir = opendir(folder);
  int empty = 1;
  while (dir && (entry = readdir(dir)))
    if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strcmp(entry->d_name, "lock"))
      empty = 0;
  if (dir)
    closedir(dir);
  return empty;
}

static int is_same(const char *one, const char *other) {
  struct stat a, b;
  return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int ms_train_output_check(const char *dataset, const char *output, struct ms_error *error) {
  if (dataset && is_same(dataset, output))
    return ms_error_set(error, MS_EUSAGE, "\"%.300s\" is the folder of the clips: name another with -o",
                        output);
  return 0;
}

int ms_train_output_open(const char *output, int resume, int *lock, struct ms_error *error) {
  char path[1200];
  struct stat info;
  int code;
  *lock = -1;
  if (strlen(output) > 1000)
    return ms_error_set(error, MS_EUSAGE, "the path of the output folder is too long");
  if (mkdir(output, 0777) < 0) {
    if (errno != EEXIST)
      return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", output, strerror(errno));
    if (stat(output, &info) < 0 || !S_ISDIR(info.st_mode))
      return ms_error_set(error, MS_EOUTPUT, "\"%s\" is a file: name a folder with -o", output);
    if (!resume && !is_empty(output))
      return ms_error_set(error, MS_EINPUT,
                          "\"%s\" exists already: go on with --resume, or name another folder", output);
  }
  *lock = ms_folder_lock(output, 0, "another run writes the model in", error);
  if (*lock < 0) {
    code = *lock;
    *lock = -1;
    return code;
  }
  snprintf(path, sizeof path, "%s/metrics.csv", output);
  code = ms_file_check(path, error);
  if (code < 0) {
    ms_train_output_close(output, *lock);
    *lock = -1;
  }
  return code;
}

void ms_train_output_close(const char *output, int lock) {
  ms_folder_unlock(output, lock);
}

int ms_train_output_parts(const struct ms_model *model, const char *model_folder,
                          const struct ms_train_job *job, struct ms_error *error) {
  static const unsigned parts[] = {MS_MODEL_CODEC, MS_MODEL_TEXT};
  char from[1200], to[1200];
  const char *name = strrchr(job->output, '/');
  json_t *root = json_deep_copy(model->root);
  int code = 0;
  if (!root)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  json_object_set_new(root, "name", json_string(name && name[1] ? name + 1 : job->output));
  if (is_same(model_folder, job->output))
    code =
        ms_error_set(error, MS_EUSAGE, "\"%s\" is the model itself: name another output folder", job->output);
  for (int i = 0; i < 2 && code == 0; i++) {
    snprintf(from, sizeof from, "%s/%s", model_folder, ms_model_part_file(parts[i]));
    snprintf(to, sizeof to, "%s/%s", job->output, ms_model_part_file(parts[i]));
    code = ms_file_copy(from, to, NULL, NULL, error);
  }
  if (code == 0)
    code = ms_model_write_json(root, job->output, error);
  json_decref(root);
  return code;
}

void ms_train_output_discard(const char *output) {
  static const char *const names[] = {"model.json", "run.json", "metrics.csv", "codec.safetensors",
                                      "text.safetensors"};
  char path[1200];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", output, names[i]);
    unlink(path);
  }
  ms_latents_cache_discard(output);
  rmdir(output);
}
