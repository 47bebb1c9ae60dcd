#include "train/disk.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "base/system.h"
#include "msk-adamw.h"

/* Headers, metrics, descriptions. */
#define SMALL_FILES ((uint64_t)1 << 20)

uint64_t ms_train_checkpoint_bytes(int64_t trained, const struct ms_train_job *job) {
  /* weight, low word, two moments (8-bit ones with their scales), average */
  double bytes = 2 + 2 + (job->moment_bits == 8 ? 2 + 8.0 / MSK_ADAMW_BLOCK : 8) + (job->ema > 0 ? 4 : 0);
  return (uint64_t)((double)trained * bytes) + SMALL_FILES;
}

/* -1: not known. */
static double free_bytes(const char *folder) {
  struct statvfs disk;
  return statvfs(folder, &disk) < 0 ? -1 : (double)disk.f_bavail * (double)disk.f_frsize;
}

static uint64_t file_bytes(const struct ms_model *model, unsigned part) {
  char path[1200];
  struct stat info;
  snprintf(path, sizeof path, "%s/%s", model->folder, ms_model_part_file(part));
  return stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

int ms_train_disk_check(const struct ms_model *model, const struct ms_train_job *job, int64_t trained,
                        uint64_t state, struct ms_error *error) {
  const struct ms_params *params = ms_dit_params(model->dit);
  uint64_t need = state + ms_train_checkpoint_bytes(trained, job) + (uint64_t)params->total * 2 +
                  file_bytes(model, MS_MODEL_CODEC) + file_bytes(model, MS_MODEL_TEXT);
  char need_text[32], free_text[32], state_text[80] = "", bytes[32];
  double room = free_bytes(job->output);
  if (room < 0 || room >= (double)need)
    return 0;
  if (state)
    snprintf(state_text, sizeof state_text, " (%s of it for layers that a larger --host-memory would hold)",
             ms_format_bytes((double)state, bytes, sizeof bytes));
  return ms_error_set(error, MS_EOUTPUT, "training needs %s on the disk of \"%.300s\"%s, %s are free",
                      ms_format_bytes((double)need, need_text, sizeof need_text), job->output, state_text,
                      ms_format_bytes(room, free_text, sizeof free_text));
}

int ms_train_disk_explain(const struct ms_train_job *job, int64_t trained, struct ms_error *error) {
  uint64_t need = ms_train_checkpoint_bytes(trained, job);
  const struct ms_error why = *error;
  char need_text[32], free_text[32];
  double room = free_bytes(job->output);
  if (room < 0 || room >= (double)need)
    return why.code;
  memset(error, 0, sizeof *error);
  return ms_error_set(error, why.code, "%.200s: %s are free on the disk of \"%.150s\", a checkpoint needs %s",
                      why.message, ms_format_bytes(room, free_text, sizeof free_text), job->output,
                      ms_format_bytes((double)need, need_text, sizeof need_text));
}

int ms_disk_lacks(const char *folder, uint64_t need) {
  double room = free_bytes(folder);
  return room >= 0 && room < (double)need;
}

int ms_disk_wait(const char *folder, uint64_t need, const struct ms_hooks *hooks, struct ms_error *error) {
  const struct timespec moment = {.tv_nsec = 200000000};
  char message[700], text[32];
  snprintf(
      message, sizeof message,
      "the disk of \"%.400s\" is full: the run waits until %s are free; stopping it loses what was not saved",
      folder, ms_format_bytes((double)need, text, sizeof text));
  if (hooks && hooks->log)
    hooks->log(hooks->data, MS_LOG_WARNING, message);
  while (ms_disk_lacks(folder, need)) {
    if (hooks && hooks->cancel && atomic_load(hooks->cancel))
      return ms_error_set(error, MS_ECANCELLED, "stopped while waiting for room on the disk");
    nanosleep(&moment, NULL);
  }
  return 0;
}
