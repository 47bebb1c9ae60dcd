#include "sample/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "weights/safetensors.h"

#define JOB_JSON_MAX (4u << 20)
#define STATES 3
#define DURABLE 2
static const char *const state_names[STATES] = {"latest-0.safetensors", "latest-1.safetensors",
                                                "state.safetensors"};

static void state_path(char path[1200], const char *folder, const char *name) {
  snprintf(path, 1190, "%s/%s", folder, name);
}

/* The settings decide the bits; where the clip goes does not. */
static uint64_t hash_settings(const json_t *job) {
  json_t *settings = json_copy((json_t *)job);
  char *text;
  uint64_t hash = 0;
  json_object_del(settings, "output");
  text = json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS);
  if (text)
    hash = ms_hash_text(MS_HASH_START, text);
  free(text);
  json_decref(settings);
  return hash;
}

static int take_folder(struct ms_state_folder *state, const char *folder, const json_t *job, int make,
                       struct ms_error *error) {
  memset(state, 0, sizeof *state);
  state->lock = -1;
  if (strlen(folder) >= sizeof state->path)
    return ms_error_set(error, MS_EOUTPUT, "the path of the unfinished clip is too long: \"%.200s...\"",
                        folder);
  snprintf(state->path, sizeof state->path, "%s", folder);
  state->settings = hash_settings(job);
  state->lock = ms_folder_lock(folder, make, "another run writes the unfinished clip in", error);
  return state->lock < 0 ? state->lock : 0;
}

static void remove_states(const char *folder) {
  char path[1200];
  for (int i = 0; i < STATES; i++) {
    state_path(path, folder, state_names[i]);
    unlink(path);
    strcat(path, ".part");
    unlink(path);
  }
}

/* Steps of a clip with other settings, which somebody may want to go on with. The same settings lead to the
 * same steps again, so nothing is lost with those. */
static int holds_another(const struct ms_state_folder *state) {
  struct stat info;
  char path[1200];
  int steps = 0, other;
  for (int i = 0; i < STATES; i++) {
    state_path(path, state->path, state_names[i]);
    steps |= stat(path, &info) == 0 && info.st_size > 0;
  }
  state_path(path, state->path, "job.json");
  json_t *job = steps ? json_load_file(path, 0, NULL) : NULL;
  other = json_is_object(job) && hash_settings(job) != state->settings;
  json_decref(job);
  return other;
}

int ms_state_begin(struct ms_state_folder *state, const char *folder, const json_t *job,
                   struct ms_error *error) {
  char path[1200], *text;
  int code = take_folder(state, folder, job, 1, error);
  if (code < 0)
    return code;
  if (holds_another(state)) {
    ms_state_end(state, 0);
    return ms_error_set(error, MS_EOUTPUT,
                        "\"%.200s\" holds another clip that is not finished: go on with it (--resume), "
                        "remove that folder, or name another file",
                        folder);
  }
  text = json_dumps(job, JSON_INDENT(2));
  if (!text)
    code = ms_error_set(error, MS_ENOMEM, "out of memory");
  /* Latents that an earlier clip of this name left must not be taken for this clip's. */
  remove_states(folder);
  state_path(path, folder, "job.json");
  if (code == 0)
    code = ms_file_write_all(path, text, strlen(text), error);
  free(text);
  if (code < 0)
    ms_state_end(state, 1);
  return code;
}

int ms_state_resume(struct ms_state_folder *state, const char *folder, const json_t *job,
                    struct ms_error *error) {
  return take_folder(state, folder, job, 0, error);
}

void ms_state_end(struct ms_state_folder *state, int remove) {
  char path[1200];
  if (state->lock < 0)
    return;
  if (remove) {
    remove_states(state->path);
    state_path(path, state->path, "job.json");
    unlink(path);
  }
  ms_folder_unlock(state->path, state->lock);
  state->lock = -1;
}

int ms_state_save(struct ms_state_folder *folder, const struct ms_sample_state *state, int quick,
                  struct ms_error *error) {
  struct ms_tensor_out tensors[4];
  char path[1200], stage[16], step[16], order[16], settings[17], sum[17];
  const char *metadata[] = {"stage",    stage,    "step", step, "order", order,
                            "settings", settings, "sum",  sum,  NULL};
  static const char *const names[3] = {"history.0", "history.1", "history.2"};
  uint64_t hash = MS_HASH_START;
  int n = 0;
  tensors[n++] = (struct ms_tensor_out){"latents", MS_DTYPE_F32, 1, {state->count}, state->latents};
  for (int i = 0; i < 3 && state->sampler; i++)
    if (state->sampler->history[i])
      tensors[n++] =
          (struct ms_tensor_out){names[i], MS_DTYPE_F32, 1, {state->count}, state->sampler->history[i]};
  for (int i = 0; i < n; i++)
    hash = ms_hash_bytes(hash, tensors[i].data, (size_t)state->count * sizeof(float));
  snprintf(stage, sizeof stage, "%d", state->stage);
  snprintf(step, sizeof step, "%d", state->step);
  snprintf(order, sizeof order, "%d", state->sampler ? state->sampler->order_reached : 0);
  ms_hash_format(folder->settings, settings);
  ms_hash_format(hash, sum);
  state_path(path, folder->path, state_names[quick ? folder->turn : DURABLE]);
  if (!quick)
    return ms_safetensors_write(path, tensors, n, metadata, error);
  unlink(path);
  folder->turn = !folder->turn;
  return ms_safetensors_write_quick(path, tensors, n, metadata, error);
}

int ms_state_read_job(const char *folder, json_t **job, struct ms_error *error) {
  char path[1200], *text = NULL;
  size_t size;
  int code;
  *job = NULL;
  if (strlen(folder) > 1100)
    return ms_error_set(error, MS_EINPUT, "the path of the unfinished clip is too long");
  state_path(path, folder, "job.json");
  code = ms_file_read_all(path, JOB_JSON_MAX, &text, &size, error);
  if (code < 0)
    return code;
  *job = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
  free(text);
  if (!json_is_object(*job)) {
    json_decref(*job);
    *job = NULL;
    return ms_error_set(error, MS_EINPUT, "\"%s\" is not the state of an unfinished clip", path);
  }
  return 0;
}

static int metadata_number(const struct ms_safetensors *file, const char *key) {
  const char *text = ms_safetensors_metadata(file, key);
  char *end;
  long value = text ? strtol(text, &end, 10) : -1;
  return text && end > text && !*end && value >= 0 && value <= 1000000 ? (int)value : -1;
}

static int hash_matches(const struct ms_safetensors *file, const char *key, uint64_t hash) {
  const char *text = ms_safetensors_metadata(file, key);
  char wanted[17];
  return text && !strcmp(text, ms_hash_format(hash, wanted));
}

/* Opens one of the files and checks what it says of itself. MS_EINPUT tells what is wrong. */
static int open_state(const struct ms_state_folder *folder, const char *name, struct ms_safetensors **file,
                      struct ms_error *error) {
  static const char *const names[4] = {"latents", "history.0", "history.1", "history.2"};
  char path[1200];
  uint64_t hash = MS_HASH_START;
  int code;
  state_path(path, folder->path, name);
  code = ms_safetensors_open(file, path, error);
  if (code < 0)
    return code;
  for (int i = 0; i < 4; i++) {
    const struct ms_tensor_view *view = ms_safetensors_find(*file, names[i]);
    if (view)
      hash = ms_hash_bytes(hash, view->data, view->bytes);
  }
  if (metadata_number(*file, "stage") < 0 || metadata_number(*file, "step") < 0 ||
      metadata_number(*file, "order") < 0 || metadata_number(*file, "order") > 2 ||
      !hash_matches(*file, "sum", hash))
    code = ms_error_set(error, MS_EINPUT, "\"%s\" is damaged: remove the folder, or that file", path);
  else if (!hash_matches(*file, "settings", folder->settings))
    code = ms_error_set(error, MS_EINPUT,
                        "\"%s\" was made with other settings than job.json says: remove the folder", path);
  if (code < 0)
    ms_safetensors_close(file);
  return code;
}

/* The newest of the states; one that is damaged gives way to another. Returns 1, 0 or MS_EINPUT. */
static int open_newest(struct ms_state_folder *folder, struct ms_safetensors **newest,
                       struct ms_error *error) {
  struct ms_error why = {0};
  int there = 0, best_stage = -1, best_step = -1;
  *newest = NULL;
  for (int i = 0; i < STATES; i++) {
    struct ms_safetensors *file = NULL;
    struct stat info;
    char path[1200];
    int stage, step;
    state_path(path, folder->path, state_names[i]);
    /* A power failure leaves an empty file of a state that did not wait for the disk: it was never there. */
    if (stat(path, &info) < 0 || info.st_size == 0)
      continue;
    there = 1;
    memset(&why, 0, sizeof why);
    if (open_state(folder, state_names[i], &file, &why) < 0)
      continue;
    stage = metadata_number(file, "stage");
    step = metadata_number(file, "step");
    if (stage > best_stage || (stage == best_stage && step > best_step)) {
      ms_safetensors_close(newest);
      *newest = file;
      best_stage = stage;
      best_step = step;
      folder->turn = i == 0; /* the newest is not the one that is removed next */
    } else {
      ms_safetensors_close(&file);
    }
  }
  if (*newest)
    return 1;
  return there ? ms_error_set(error, why.code, "%s", why.message) : 0;
}

int ms_state_peek(struct ms_state_folder *folder, int *stage, int *step, struct ms_error *error) {
  struct ms_safetensors *file = NULL;
  int found = open_newest(folder, &file, error);
  if (found == 1) {
    *stage = metadata_number(file, "stage");
    *step = metadata_number(file, "step");
  }
  ms_safetensors_close(&file);
  return found;
}

int ms_state_load(struct ms_state_folder *folder, struct ms_sample_state *state, struct ms_error *error) {
  struct ms_safetensors *file = NULL;
  const struct ms_tensor_view *view;
  int code = open_newest(folder, &file, error), fits;
  if (code <= 0)
    return code < 0 ? code : ms_error_set(error, MS_EINPUT, "there are no latents in \"%s\"", folder->path);
  view = ms_safetensors_find(file, "latents");
  fits = view && view->dtype == MS_DTYPE_F32 && view->count == state->count;
  if (fits)
    ms_tensor_read_f32(view, state->latents);
  for (int i = 0; i < 3 && fits && state->sampler; i++) {
    char name[16];
    if (!state->sampler->history[i])
      continue;
    snprintf(name, sizeof name, "history.%d", i);
    view = ms_safetensors_find(file, name);
    fits = view && view->dtype == MS_DTYPE_F32 && view->count == state->count;
    if (fits)
      ms_tensor_read_f32(view, state->sampler->history[i]);
  }
  if (state->sampler)
    state->sampler->order_reached = metadata_number(file, "order");
  ms_safetensors_close(&file);
  return fits ? 0
              : ms_error_set(error, MS_EINPUT,
                             "the unfinished clip in \"%s\" does not fit its own settings: remove the folder",
                             folder->path);
}
