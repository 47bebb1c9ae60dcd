/* The training loop against itself, on a tiny model and drawn clips: saved, stopped and killed runs end as a
 * straight one does, whatever the number of threads; the loss falls; a gradient that is not finite is caught.
 */
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "harness.h"
#include "ms-models.h"
#include "ms-train.h"
#include "scratch.h"

static const char config[] =
    "{\"format\": \"megaslide-1\", \"name\": \"tiny\", \"dim\": 32, \"ffn\": 64, \"heads\": 2, \"layers\": "
    "2, \"in_channels\": 16,"
    " \"out_channels\": 16, \"patch\": [1,2,2], \"text_dim\": 32, \"text_len\": 8, \"freq_dim\": 32, "
    "\"eps\": 1e-6, \"positions\": \"short-side\","
    " \"coordinate_features\": true, \"pooled_text\": true,"
    " \"attention\": {\"kind\": \"dsa\", \"mode\": \"point\", \"window\": [3,3,3], \"bounds\": [1,2,2], "
    "\"groups\": 2},"
    " \"coarse_attention\": {\"kind\": \"dense\"},"
    " \"codec\": {\"kind\": \"pack\", \"strides\": [4,8,8], \"channels\": 16, \"encoder\": [16,16], "
    "\"decoder\": [16,16]},"
    " \"text\": {\"kind\": \"words\", \"dim\": 32, \"layers\": 1, \"heads\": 2, \"ffn\": 32, \"length\": 8, "
    "\"vocabulary\": [\"<pad>\", \"<bos>\", \"up\", \"down\"]},"
    " \"fps\": 8, \"sizes\": [[32,32]], \"frames\": [9]}";

/* Clips of a bright square that goes up or down. */
static int read_clip(void *data, int64_t clip, uint32_t variant, const struct ms_clip_request *request,
                     uint8_t *rgb, char *caption, size_t size, struct ms_error *error) {
  int up = clip % 2 == 0;
  for (int f = 0; f < request->frames; f++)
    for (int y = 0; y < request->height; y++)
      for (int x = 0; x < request->width; x++) {
        int at = f * 2 + (int)(clip % 5), row = up ? request->height - 1 - y : y;
        int inside = row >= at && row < at + 8 && x >= 4 + clip && x < 14 + clip;
        memset(rgb + ((size_t)(f * request->height + y) * request->width + x) * 3, inside ? 230 : 40, 3);
      }
  snprintf(caption, size, "%s", up ? "up" : "down");
  return 0;
}

static struct ms_clip_source drawn = {.name = "drawn", .count = 8, .read = read_clip};

struct watch {
  atomic_int cancel;
  int64_t cancel_at, kill_at;
  int warnings;
};

static void watch_metrics(void *data, int64_t step, const struct ms_metric *metrics, int count) {
  struct watch *watch = data;
  if (step == watch->cancel_at)
    atomic_store(&watch->cancel, 1);
  if (step == watch->kill_at)
    raise(SIGKILL);
}

static void watch_log(void *data, enum ms_log_level level, const char *message) {
  if (level == MS_LOG_WARNING)
    ((struct watch *)data)->warnings++;
}

static int train(const char *name, int threads, int resume, struct watch *watch,
                 struct ms_train_result *result, struct ms_error *error) {
  struct ms_machine machine = {.threads = threads, .data_folder = "."};
  struct ms_hooks hooks = {
      .data = watch, .metrics = watch_metrics, .log = watch_log, .cancel = &watch->cancel};
  struct ms_train_job job;
  ms_train_job_init(&job);
  job.model = scratch_path("model");
  job.output = scratch_path(name);
  job.steps = 12;
  job.batch = 3;
  job.accumulate = 2;
  job.lr = 2e-3;
  job.warmup = 2;
  job.save_every = 5;
  job.validate_every = 6;
  job.seed = 5;
  job.resume = resume;
  return ms_train(&job, &drawn, &machine, &hooks, result, error);
}

static void compare(const char *a, const char *b, const char *what) {
  char path_a[600], path_b[600], *data_a = NULL, *data_b = NULL;
  size_t size_a = 0, size_b = 0;
  snprintf(path_a, sizeof path_a, "%s/dit.safetensors", scratch_path(a));
  snprintf(path_b, sizeof path_b, "%s/dit.safetensors", scratch_path(b));
  ms_file_read_all(path_a, 1 << 24, &data_a, &size_a, NULL);
  ms_file_read_all(path_b, 1 << 24, &data_b, &size_b, NULL);
  check_ok(data_a && data_b && size_a == size_b && size_a > 1000 && !memcmp(data_a, data_b, size_a),
           "%s: the same weights, bit for bit", what);
  free(data_a);
  free(data_b);
}

static void check_straight(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = -1};
  struct ms_train_result result;
  struct ms_error error = {0};
  int code = train("straight", 2, 0, &watch, &result, &error);
  check_ok(code == 0 && result.steps == 12, "a run of 12 steps ends: %s", error.message);
  check_ok(isfinite(result.validation_loss) && result.validation_loss < result.first_validation_loss,
           "the loss on a held-out clip falls: %.4f to %.4f", result.first_validation_loss,
           result.validation_loss);
  memset(&error, 0, sizeof error);
  code = train("straight", 2, 0, &watch, &result, &error);
  check_ok(code == MS_EINPUT, "an existing output is refused without resume: %s", error.message);
}

static void check_threads(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = -1};
  struct ms_train_result result;
  train("one-thread", 1, 0, &watch, &result, NULL);
  compare("straight", "one-thread", "two threads and one");
}

static void check_stop(void) {
  struct watch watch = {.cancel_at = 7, .kill_at = -1};
  struct ms_train_result result;
  int code = train("stopped", 2, 0, &watch, &result, NULL);
  check_ok(code == MS_ECANCELLED && result.steps == 7, "a run is stopped after step 7");
  watch = (struct watch){.cancel_at = -1, .kill_at = -1};
  code = train("stopped", 2, 1, &watch, &result, NULL);
  check_ok(code == 0 && result.steps == 12, "and goes on to its end");
  compare("straight", "stopped", "stopped and resumed");
}

static void check_kill(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = 8};
  struct ms_train_result result;
  struct ms_error error = {0};
  int status = 0, code;
  pid_t child = fork();
  if (child == 0) {
    train("killed", 2, 0, &watch, &result, NULL);
    _exit(0);
  }
  waitpid(child, &status, 0);
  check_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
           "a run is killed after step 8, with a checkpoint of step 5");
  watch = (struct watch){.cancel_at = -1, .kill_at = -1};
  code = train("killed", 2, 1, &watch, &result, &error);
  check_ok(code == 0 && result.steps == 12, "and goes on to its end: %s", error.message);
  compare("straight", "killed", "killed and resumed");
}

int main(int argc, char **argv) {
  struct ms_machine machine = {.data_folder = "."};
  struct ms_error error = {0};
  check_begin(argc, argv);
  scratch_begin();
  scratch_put("tiny.json", config, sizeof config - 1);
  check_ok(ms_model_create(scratch_path("tiny.json"), scratch_path("model"), 3, &machine, NULL, &error) == 0,
           "a tiny model is made: %s", error.message);
  check_straight();
  check_threads();
  check_stop();
  check_kill();
  scratch_end();
  return check_end();
}
