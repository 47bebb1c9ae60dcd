/* The training loop against itself, on a tiny model and drawn clips: saved, stopped and killed runs end as a
 * straight one does, whatever the number of threads; the loss falls; a gradient that is not finite is caught.
 */
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "harness.h"
#include "ms-train.h"
#include "scratch.h"
#include "tiny-model.h"

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
  int64_t cancel_at, kill_at, steps; /* steps: the job's; 0: 12 */
  const char *sample;
  int looks, cancel_look; /* 0: never */
  int rank;               /* of adapters; 0: all weights are trained */
  int warnings, samples, with_host, with_mfu, with_disk;
  char text[600]; /* of the last warning */
};

static void watch_metrics(void *data, int64_t step, const struct ms_metric *metrics, int count) {
  struct watch *watch = data;
  for (int i = 0; i < count; i++) {
    watch->with_host += !strcmp(metrics[i].name, "host_bytes") && metrics[i].value > 1e6;
    watch->with_mfu += !strcmp(metrics[i].name, "mfu") && metrics[i].value > 0 && metrics[i].value < 1;
    watch->with_disk += !strcmp(metrics[i].name, "disk_bytes") && metrics[i].value > 1e4;
  }
  if (step == watch->cancel_at)
    atomic_store(&watch->cancel, 1);
  if (step == watch->kill_at)
    raise(SIGKILL);
}

static void watch_progress(void *data, const struct ms_progress *progress) {
  struct watch *watch = data;
  if (!strcmp(progress->phase, "validate") && ++watch->looks == watch->cancel_look)
    atomic_store(&watch->cancel, 1);
}

static void watch_log(void *data, enum ms_log_level level, const char *message) {
  struct watch *watch = data;
  if (level != MS_LOG_WARNING)
    return;
  watch->warnings++;
  snprintf(watch->text, sizeof watch->text, "%s", message);
}

static void watch_sample(void *data, int64_t step, const char *prompt, const char *path) {
  struct watch *watch = data;
  watch->samples += !strcmp(prompt, watch->sample) && step % 4 == 0 && access(path, R_OK) == 0;
}

static int train(const char *name, int threads, int resume, struct watch *watch,
                 struct ms_train_result *result, struct ms_error *error) {
  struct ms_machine machine = {.threads = threads, .data_folder = "."};
  struct ms_hooks hooks = {.data = watch,
                           .progress = watch_progress,
                           .metrics = watch_metrics,
                           .log = watch_log,
                           .sample = watch_sample,
                           .cancel = &watch->cancel};
  struct ms_train_job job;
  ms_train_job_init(&job);
  job.model = scratch_path("model");
  job.output = scratch_path(name);
  job.steps = watch->steps ? watch->steps : 12;
  job.sample_prompt = watch->sample;
  job.sample_every = watch->sample ? 4 : 0;
  job.keep = 3;
  job.batch = 3;
  job.accumulate = 2;
  job.lr = 2e-3;
  job.warmup = 2;
  job.save_every = 5;
  job.validate_every = 6;
  job.seed = 5;
  job.resume = resume;
  if (watch->rank) {
    job.method = MS_METHOD_LORA;
    job.rank = watch->rank;
    job.model = scratch_path("straight"); /* the last matrix of one that nobody trained is zero */
    job.lr = 1e-2;
  }
  return ms_train(&job, &drawn, &machine, &hooks, result, error);
}

static void compare_file(const char *a, const char *b, const char *file, const char *what) {
  char path_a[600], path_b[600], *data_a = NULL, *data_b = NULL;
  size_t size_a = 0, size_b = 0;
  snprintf(path_a, sizeof path_a, "%s/%s", scratch_path(a), file);
  snprintf(path_b, sizeof path_b, "%s/%s", scratch_path(b), file);
  ms_file_read_all(path_a, 1 << 24, &data_a, &size_a, NULL);
  ms_file_read_all(path_b, 1 << 24, &data_b, &size_b, NULL);
  check_ok(data_a && data_b && size_a == size_b && size_a > 1000 && !memcmp(data_a, data_b, size_a),
           "%s: the same weights, bit for bit", what);
  free(data_a);
  free(data_b);
}

static void compare(const char *a, const char *b, const char *what) {
  compare_file(a, b, "dit.safetensors", what);
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
  struct ms_error error = {0};
  int code = train("stopped", 2, 0, &watch, &result, &error);
  check_ok(code == MS_ECANCELLED && result.steps == 7, "a run is stopped after step 7");
  check_ok(strstr(error.message, "step 7 of 12") && strstr(error.message, "--resume"),
           "says where and how to go on: %s", error.message);
  watch = (struct watch){.cancel_at = -1, .kill_at = -1};
  code = train("stopped", 2, 1, &watch, &result, NULL);
  check_ok(code == 0 && result.steps == 12, "and goes on to its end");
  compare("straight", "stopped", "stopped and resumed");
}

/* In the look at the held-out clip after step 6, which is done with other weights. */
static void check_stop_in_look(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = -1, .cancel_look = 2};
  struct ms_train_result result;
  struct ms_error error = {0};
  int code = train("looked", 2, 0, &watch, &result, &error);
  check_ok(code == MS_ECANCELLED && result.steps == 6 && isnan(result.validation_loss),
           "a run is stopped while it looks at a held-out clip: %s", error.message);
  watch = (struct watch){.cancel_at = -1, .kill_at = -1};
  code = train("looked", 2, 1, &watch, &result, NULL);
  check_ok(code == 0, "and goes on");
  compare("straight", "looked", "stopped in a look");
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

/* Cut short, or one bit of the weights changed: the checkpoint before is taken. */
static void check_damage(const char *name, int cut) {
  struct watch watch = {.cancel_at = 10, .kill_at = -1};
  struct ms_train_result result;
  struct ms_error error = {0};
  char path[600];
  FILE *file;
  int code = train(name, 2, 0, &watch, &result, &error);
  snprintf(path, sizeof path, "%s/checkpoints/step-000010/state.safetensors", scratch_path(name));
  file = fopen(path, "r+b");
  check_ok(code == MS_ECANCELLED && file, "a run has a checkpoint of step 10: %s", error.message);
  if (!file)
    return;
  memset(&error, 0, sizeof error);
  fseek(file, -1000, SEEK_END);
  if (cut)
    code = ftruncate(fileno(file), ftell(file));
  else
    fputc(0x11, file);
  fclose(file);
  watch = (struct watch){.cancel_at = -1, .kill_at = -1};
  code = train(name, 2, 1, &watch, &result, &error);
  check_ok(code == 0 && result.steps == 12, "which is damaged, and it goes on: %s", error.message);
  check_ok(watch.warnings == 1 && strstr(watch.text, "step 10 cannot be used") &&
               strstr(watch.text, "from step 5"),
           "with a warning: %s", watch.text);
  compare("straight", name, "from the checkpoint before");
}

static void check_steps(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = -1, .steps = 8};
  struct ms_train_result result;
  struct ms_error error = {0};
  int code = train("straight", 2, 1, &watch, &result, &error);
  check_ok(code == MS_EUSAGE && strstr(error.message, "already at step 12"),
           "fewer steps than a run has done are refused: %s", error.message);
  compare("straight", "one-thread", "and nothing is touched");
}

static void check_lock(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = -1};
  struct ms_train_result result;
  struct ms_error error = {0};
  int lock = ms_folder_lock(scratch_path("straight"), 0, "a test holds", &error), code;
  check_ok(lock >= 0, "the folder of a run is locked: %s", error.message);
  code = train("straight", 2, 1, &watch, &result, &error);
  check_ok(code == MS_EOUTPUT && strstr(error.message, "another run writes"),
           "a second run in it is refused: %s", error.message);
  ms_folder_unlock(scratch_path("straight"), lock);
  memset(&error, 0, sizeof error);
  check_ok(train("straight", 2, 1, &watch, &result, &error) == 0 && !scratch_exists("straight/lock"),
           "until the lock is given back: %s", error.message);
}

static void check_samples(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = -1, .sample = "up"};
  struct ms_train_result result;
  struct ms_error error = {0};
  int code = train("sampled", 2, 0, &watch, &result, &error);
  check_ok(code == 0 && watch.samples == 3 && watch.warnings == 0,
           "three sample clips are made and told: %s%s", error.message, watch.text);
  check_ok(watch.with_host == 12 && watch.with_mfu == 12 && watch.with_disk == 4,
           "steps tell memory and use of the processor, the first and checkpoints the disk: %d %d %d",
           watch.with_host, watch.with_mfu, watch.with_disk);
  compare("straight", "sampled", "with sample clips on the way");
}

/* Adapters alone: what is saved is theirs, the model is the one that the run began with. */
static void check_adapters(void) {
  struct watch watch = {.cancel_at = -1, .kill_at = -1, .rank = 4};
  struct ms_train_result result;
  struct ms_error error = {0};
  struct stat own = {0}, all = {0};
  int code = train("adapters", 2, 0, &watch, &result, &error);
  check_ok(code == 0 && result.steps == 12 && watch.with_mfu == 12, "a run of adapters ends: %s",
           error.message);
  check_ok(result.validation_loss < result.first_validation_loss,
           "the loss on a held-out clip falls: %.4f to %.4f", result.first_validation_loss,
           result.validation_loss);
  check_ok(stat(scratch_path("adapters/checkpoints/step-000012/state.safetensors"), &own) == 0 &&
               stat(scratch_path("straight/checkpoints/step-000012/state.safetensors"), &all) == 0 &&
               own.st_size < all.st_size / 2,
           "checkpoints hold them alone: %lld of %lld bytes", (long long)own.st_size, (long long)all.st_size);
  watch = (struct watch){.cancel_at = -1, .kill_at = -1, .rank = 4};
  train("adapters-1", 1, 0, &watch, &result, NULL);
  compare("adapters", "adapters-1", "adapters, two threads and one");
  watch = (struct watch){.cancel_at = 7, .kill_at = -1, .rank = 4};
  code = train("adapters-2", 2, 0, &watch, &result, NULL);
  check_ok(code == MS_ECANCELLED && result.steps == 7 && scratch_exists("adapters-2/lora.safetensors"),
           "a run of adapters is stopped after step 7");
  watch = (struct watch){.cancel_at = -1, .kill_at = -1, .rank = 5};
  code = train("adapters-2", 2, 1, &watch, &result, &error);
  check_ok(code == MS_EUSAGE && strstr(error.message, "--rank 4") && strstr(error.message, "--rank 5"),
           "does not go on with another rank: %s", error.message);
  watch = (struct watch){.cancel_at = -1, .kill_at = -1, .rank = 4};
  code = train("adapters-2", 2, 1, &watch, &result, NULL);
  check_ok(code == 0, "and goes on with its own");
  compare("adapters", "adapters-2", "adapters, stopped and resumed");
  compare_file("adapters", "adapters-2", "lora.safetensors", "adapters, their file");
  memset(&error, 0, sizeof error);
  watch = (struct watch){.cancel_at = -1, .kill_at = -1, .rank = 5000};
  code = train("adapters-3", 2, 0, &watch, &result, &error);
  check_ok(code == MS_EUSAGE && !scratch_exists("adapters-3"), "a rank of 5000 is refused: %s",
           error.message);
}

int main(int argc, char **argv) {
  struct ms_error error = {0};
  check_begin(argc, argv);
  scratch_begin();
  check_ok(tiny_model_make(&error) == 0, "a tiny model is made: %s", error.message);
  check_straight();
  check_threads();
  check_stop();
  check_stop_in_look();
  check_kill();
  check_damage("cut", 1);
  check_damage("flipped", 0);
  check_steps();
  check_lock();
  check_samples();
  check_adapters();
  scratch_end();
  return check_end();
}
