#include "sample/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "weights/safetensors.h"

#define JOB_JSON_MAX (4u << 20)

static void state_path(char path[1200], const char *folder, const char *name) {
  snprintf(path, 1200, "%s/%s", folder, name);
}

int ms_state_begin(const char *folder, const json_t *job, struct ms_error *error) {
  char path[1200], *text;
  int code;
  if (mkdir(folder, 0777) < 0 && errno != EEXIST)
    return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\" for the unfinished clip: %s",
                        folder, strerror(errno));
  text = json_dumps(job, JSON_INDENT(2));
  if (!text)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  /* Latents that an earlier clip of this name left must not be taken for this clip's. */
  state_path(path, folder, "state.safetensors");
  unlink(path);
  state_path(path, folder, "job.json");
  code = ms_file_write_all(path, text, strlen(text), error);
  free(text);
  return code;
}

int ms_state_save(const char *folder, const struct ms_sample_state *state, struct ms_error *error) {
  struct ms_tensor_out tensors[4];
  char path[1200], stage[16], step[16], order[16];
  const char *metadata[] = {"stage", stage, "step", step, "order", order, NULL};
  static const char *const names[3] = {"history.0", "history.1", "history.2"};
  int n = 0;
  snprintf(stage, sizeof stage, "%d", state->stage);
  snprintf(step, sizeof step, "%d", state->step);
  snprintf(order, sizeof order, "%d", state->sampler ? state->sampler->order_reached : 0);
  tensors[n++] = (struct ms_tensor_out){"latents", MS_DTYPE_F32, 1, {state->count}, state->latents};
  for (int i = 0; i < 3 && state->sampler; i++)
    if (state->sampler->history[i])
      tensors[n++] =
          (struct ms_tensor_out){names[i], MS_DTYPE_F32, 1, {state->count}, state->sampler->history[i]};
  state_path(path, folder, "state.safetensors");
  return ms_safetensors_write(path, tensors, n, metadata, error);
}

int ms_state_read_job(const char *folder, json_t **job, struct ms_error *error) {
  char path[1200], *text = NULL;
  size_t size;
  int code;
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

static int open_state(const char *folder, struct ms_safetensors **file, struct ms_error *error) {
  char path[1200];
  state_path(path, folder, "state.safetensors");
  return ms_safetensors_open(file, path, error);
}

static int metadata_number(const struct ms_safetensors *file, const char *key) {
  const char *text = ms_safetensors_metadata(file, key);
  return text ? atoi(text) : -1;
}

int ms_state_peek(const char *folder, int *stage, int *step, struct ms_error *error) {
  struct ms_safetensors *file = NULL;
  char path[1200];
  int code;
  state_path(path, folder, "state.safetensors");
  if (access(path, F_OK) < 0)
    return 0;
  code = open_state(folder, &file, error);
  if (code < 0)
    return code;
  *stage = metadata_number(file, "stage");
  *step = metadata_number(file, "step");
  ms_safetensors_close(&file);
  if (*stage < 0 || *step < 0)
    return ms_error_set(error, MS_EINPUT, "\"%s\" is not the state of an unfinished clip", path);
  return 1;
}

int ms_state_load(const char *folder, struct ms_sample_state *state, struct ms_error *error) {
  struct ms_safetensors *file = NULL;
  char name[16];
  const struct ms_tensor_view *view;
  int code = open_state(folder, &file, error);
  if (code < 0)
    return code;
  view = ms_safetensors_find(file, "latents");
  if (!view || view->count != state->count)
    code = ms_error_set(error, MS_EINPUT,
                        "the unfinished clip in \"%s\" does not fit its own settings: remove the folder",
                        folder);
  else
    ms_tensor_read_f32(view, state->latents);
  for (int i = 0; i < 3 && code == 0 && state->sampler; i++) {
    snprintf(name, sizeof name, "history.%d", i);
    view = ms_safetensors_find(file, name);
    if (state->sampler->history[i] && view && view->count == state->count)
      ms_tensor_read_f32(view, state->sampler->history[i]);
  }
  if (code == 0 && state->sampler && metadata_number(file, "order") >= 0)
    state->sampler->order_reached = metadata_number(file, "order");
  ms_safetensors_close(&file);
  return code;
}

void ms_state_remove(const char *folder) {
  char path[1200];
  state_path(path, folder, "state.safetensors");
  unlink(path);
  state_path(path, folder, "job.json");
  unlink(path);
  rmdir(folder);
}
