#include "train/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"

#define STATE_JSON_MAX (1u << 20)

static void remove_folder(const char *folder) {
  static const char *const names[] = {"state.safetensors", "state.json", "state.safetensors.part",
                                      "state.json.part"};
  char path[2048];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

/* The step of a folder name "step-000010", or -1. */
static int64_t step_of(const char *name) {
  char *end;
  long long step;
  if (strncmp(name, "step-", 5))
    return -1;
  step = strtoll(name + 5, &end, 10);
  return end > name + 5 && !*end ? step : -1;
}

/* The greatest step below `limit` that has a folder, or -1. */
static int64_t newest(const char *output, int64_t limit) {
  char folder[1200];
  int64_t best = -1;
  struct dirent *entry;
  DIR *dir;
  snprintf(folder, sizeof folder, "%s/checkpoints", output);
  dir = opendir(folder);
  while (dir && (entry = readdir(dir))) {
    int64_t step = step_of(entry->d_name);
    if (step > best && step < limit)
      best = step;
  }
  if (dir)
    closedir(dir);
  return best;
}

/* 0 or MS_EOUTPUT; a folder that cannot be synced at all is no error. */
static int sync_folder(const char *folder, struct ms_error *error) {
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), code = 0;
  if (fd < 0)
    return 0;
  if (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
    code = ms_error_set(error, MS_EOUTPUT, "cannot write \"%.400s\": %s", folder, strerrordesc_np(errno));
  close(fd);
  return code;
}

/* Gives the folder its name. One that has it, of the same step and saved before a stop, changes places with
 * it, so that there is never none. */
static int put_in_place(const char *unfinished, const char *final, struct ms_error *error) {
  if (renameat2(AT_FDCWD, unfinished, AT_FDCWD, final, RENAME_EXCHANGE) == 0) {
    remove_folder(unfinished);
    return 0;
  }
  if (errno == EINVAL || errno == ENOSYS || errno == ENOTSUP) /* a file system that cannot exchange */
    remove_folder(final);
  if (rename(unfinished, final) < 0)
    return ms_error_set(error, MS_EOUTPUT, "cannot rename \"%s\": %s", unfinished, strerrordesc_np(errno));
  return 0;
}

static void remove_older(const char *output, int64_t step, int keep) {
  char folder[1250];
  for (int i = 1; (step = newest(output, step)) >= 0; i++) {
    snprintf(folder, sizeof folder, "%s/checkpoints/step-%06lld", output, (long long)step);
    if (i >= keep)
      remove_folder(folder);
  }
}

static int write_state(const char *folder, const struct ms_checkpoint *checkpoint, uint64_t sum,
                       struct ms_error *error) {
  json_t *root = json_object(), *drawn = json_array();
  char path[1400], *text, digits[17];
  int code;
  for (int i = 0; i < MS_TRAIN_MAX_BUCKETS; i++)
    json_array_append_new(drawn, json_integer((json_int_t)checkpoint->drawn[i]));
  json_object_set_new(root, "step", json_integer((json_int_t)checkpoint->step));
  json_object_set_new(root, "updates", json_integer((json_int_t)checkpoint->updates));
  json_object_set_new(root, "drawn", drawn);
  json_object_set_new(root, "sum", json_string(ms_hash_format(sum, digits)));
  json_object_set_new(root, "loss", json_real(checkpoint->loss));
  if (isfinite(checkpoint->first_validation_loss))
    json_object_set_new(root, "first_validation_loss", json_real(checkpoint->first_validation_loss));
  text = json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
  json_decref(root);
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory while saving a checkpoint");
  snprintf(path, sizeof path, "%s/state.json", folder);
  code = ms_file_write_all(path, text, strlen(text), error);
  free(text);
  return code;
}

int ms_checkpoint_save(const char *output, const struct ms_checkpoint *checkpoint,
                       const struct ms_checkpoint_state *state, int keep, struct ms_error *error) {
  char parent[1200], unfinished[1250], final[1250], path[1400];
  uint64_t sum = 0;
  int code;
  snprintf(parent, sizeof parent, "%s/checkpoints", output);
  snprintf(unfinished, sizeof unfinished, "%s/unfinished", parent);
  snprintf(final, sizeof final, "%s/step-%06lld", parent, (long long)checkpoint->step);
  if (mkdir(parent, 0777) < 0 && errno != EEXIST)
    return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", parent, strerror(errno));
  remove_folder(unfinished);
  if (mkdir(unfinished, 0777) < 0 && errno != EEXIST)
    return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", unfinished, strerror(errno));
  snprintf(path, sizeof path, "%s/state.safetensors", unfinished);
  code = state->save(state->data, path, &sum, error);
  if (code == 0)
    code = write_state(unfinished, checkpoint, sum, error);
  if (code == 0)
    code = sync_folder(unfinished, error);
  if (code == 0)
    code = put_in_place(unfinished, final, error);
  if (code < 0) {
    remove_folder(unfinished);
    return code;
  }
  code = sync_folder(parent, error);
  if (code == 0) /* before that the new one may not outlive a crash */
    remove_older(output, checkpoint->step, keep);
  return code;
}

static int read_state(const char *folder, struct ms_checkpoint *checkpoint, uint64_t *sum,
                      struct ms_error *error) {
  char path[1400], *text = NULL;
  size_t size;
  json_t *root, *value;
  const char *digits;
  int code;
  snprintf(path, sizeof path, "%s/state.json", folder);
  code = ms_file_read_all(path, STATE_JSON_MAX, &text, &size, error);
  if (code < 0)
    return code;
  root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  memset(checkpoint, 0, sizeof *checkpoint);
  digits = json_string_value(json_object_get(root, "sum"));
  if (!digits || !json_is_integer(json_object_get(root, "step")) ||
      !json_is_integer(json_object_get(root, "updates")) ||
      json_array_size(json_object_get(root, "drawn")) != MS_TRAIN_MAX_BUCKETS ||
      !json_is_number(json_object_get(root, "loss"))) {
    json_decref(root);
    return ms_error_set(error, MS_EINPUT, "\"%s\" is damaged", path);
  }
  checkpoint->step = json_integer_value(json_object_get(root, "step"));
  checkpoint->updates = json_integer_value(json_object_get(root, "updates"));
  *sum = strtoull(digits, NULL, 16);
  for (int i = 0; i < MS_TRAIN_MAX_BUCKETS; i++)
    checkpoint->drawn[i] = json_integer_value(json_array_get(json_object_get(root, "drawn"), (size_t)i));
  checkpoint->loss = json_number_value(json_object_get(root, "loss"));
  value = json_object_get(root, "first_validation_loss");
  checkpoint->first_validation_loss = value ? json_number_value(value) : NAN;
  json_decref(root);
  return 0;
}

int64_t ms_checkpoint_newest(const char *output) {
  return newest(output, INT64_MAX);
}

static int load_one(const char *folder, int64_t step, struct ms_checkpoint *checkpoint,
                    const struct ms_checkpoint_state *state, struct ms_error *error) {
  char path[1400];
  uint64_t sum = 0;
  int code = read_state(folder, checkpoint, &sum, error);
  snprintf(path, sizeof path, "%s/state.safetensors", folder);
  if (code == 0)
    code = state->load(state->data, path, sum, error);
  if (code == 0 && checkpoint->step != step)
    code = ms_error_set(error, MS_EINPUT, "\"%s\" says that it is of step %lld", folder,
                        (long long)checkpoint->step);
  return code;
}

/* A damaged checkpoint must not be taken for the newest again, nor count among those that are kept. */
static void set_aside(const char *output, const int64_t *steps, int count, int64_t taken,
                      const struct ms_error *why, const struct ms_hooks *hooks) {
  char from[1250], to[1250], message[900];
  for (int i = 0; i < count; i++) {
    snprintf(from, sizeof from, "%s/checkpoints/step-%06lld", output, (long long)steps[i]);
    snprintf(to, sizeof to, "%s/checkpoints/damaged-%06lld", output, (long long)steps[i]);
    if (rename(from, to) < 0 && (errno == ENOTEMPTY || errno == EEXIST)) { /* of an earlier time */
      remove_folder(to);
      rename(from, to);
    }
  }
  snprintf(message, sizeof message,
           "the checkpoint of step %lld cannot be used (%.500s): going on from step %lld",
           (long long)steps[0], why->message, (long long)taken);
  if (hooks && hooks->log)
    hooks->log(hooks->data, MS_LOG_WARNING, message);
}

#define MOST_DAMAGED 64

int ms_checkpoint_load(const char *output, struct ms_checkpoint *checkpoint,
                       const struct ms_checkpoint_state *state, const struct ms_hooks *hooks,
                       struct ms_error *error) {
  struct ms_error first = {0};
  int64_t step = INT64_MAX, damaged[MOST_DAMAGED];
  char unfinished[1250];
  int count = 0;
  snprintf(unfinished, sizeof unfinished, "%s/checkpoints/unfinished", output);
  remove_folder(unfinished); /* of a program that was killed */
  while ((step = newest(output, step)) >= 0 && count < MOST_DAMAGED) {
    struct ms_error why = {0};
    char folder[1250];
    int code;
    snprintf(folder, sizeof folder, "%s/checkpoints/step-%06lld", output, (long long)step);
    code = load_one(folder, step, checkpoint, state, &why);
    if (code == 0) {
      if (count)
        set_aside(output, damaged, count, step, &first, hooks);
      return 1;
    }
    if (code != MS_EINPUT)
      return ms_error_set(error, code, "%s", why.message);
    if (!count)
      first = why;
    damaged[count++] = step;
  }
  return count ? ms_error_set(error, first.code, "%s", first.message) : 0;
}
