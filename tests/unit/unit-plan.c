/* The planner: what is exact is exact, more work is more of everything, what it suggests fits, and rates come
 * back from their file as they were saved. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "ms-plan.h"
#include "ms-system.h"
#include "scratch.h"

/* A plan follows every key stroke; sanitizers make everything slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUICK 0.1
#else
#define QUICK 0.005
#endif

static struct ms_machine machine = {.threads = 2, .data_folder = DATA_DIR};
static struct ms_rates rates; /* of two cores */

static void load_rates(struct ms_rates *to, const char *name) {
  char path[1024];
  struct ms_error error = {0};
  snprintf(path, sizeof path, DATA_DIR "/hardware/%s.json", name);
  check_ok(ms_rates_load(to, path, NULL, &error) == 0, "the profile %s is read: %s", name, error.message);
}

static int plan_clip(const char *model, int width, int height, int frames, struct ms_plan *plan) {
  struct ms_generate_job job = ms_generate_job_default();
  struct ms_error error = {0};
  int code;
  job.model = model;
  job.width = width;
  job.height = height;
  job.frames = frames;
  code = ms_plan_generate(&job, &machine, &rates, plan, &error);
  if (code < 0)
    check_ok(0, "a clip of %dx%dx%d is planned: %s", width, height, frames, error.message);
  return code;
}

static int plan_training(const char *model, int width, int height, int frames, int batch,
                         struct ms_plan *plan) {
  struct ms_train_job job;
  struct ms_error error = {0};
  int code;
  ms_train_job_init(&job);
  job.model = model;
  job.width = width;
  job.height = height;
  job.frames = frames;
  job.batch = batch;
  code = ms_plan_train(&job, 20, &machine, &rates, plan, &error);
  if (code < 0)
    check_ok(0, "training at %dx%dx%d is planned: %s", width, height, frames, error.message);
  return code;
}

/* The parameters of a Wan-like network with offset heads, counted from its description. */
static double count_parameters(double c, double ffn, double layers, double text) {
  double outer = (64 * c + c) + (c * text + c) + (c * c + c) + (256 * c + c) + (c * c + c) +
                 (6 * c * c + 6 * c) + (64 * c + 64) + 2 * c;
  double attention = 4 * (c * c + c) + 2 * c, head = 27 * c + c + 2 * c + 900 * c + 900;
  return outer + layers * (2 * attention + 2 * c + 2 * c * ffn + ffn + c + 6 * c + head);
}

static uint64_t tier_sum(const struct ms_plan_tier *t) {
  return t->fixed + t->working + t->outer + t->layers + t->buffers + t->inputs + t->checkpoint;
}

static void check_large(void) {
  static const char config[] = DATA_DIR "/configs/megaslide-105b.json";
  struct ms_rates two = rates;
  struct ms_plan plan;
  double model, want = count_parameters(8192, 32768, 98, 4096);
  load_rates(&rates, "h200-pcie5");
  if (plan_training(config, 1920, 1080, 256, 1, &plan) == 0) {
    check_ok((double)plan.parameters == want, "the 105 B configuration has %lld parameters, want %.0f",
             (long long)plan.parameters, want);
    check_ok(plan.tokens == 2088960 && plan.tokens_per_step == 2088960, "and %lld tokens at 256 x 1080p",
             (long long)plan.tokens);
    /* 6 N T for the products, and not much more for attention, since it is local */
    model = 6 * (double)plan.parameters * (double)plan.tokens;
    check_ok(plan.model_flops > 0.85 * model && plan.model_flops < 1.1 * model,
             "model FLOPs %.3g are near 6 N T = %.3g", plan.model_flops, model);
    check_ok(plan.flops > 1.3 * plan.model_flops && plan.flops < 1.35 * plan.model_flops,
             "a third more is executed");
    check_ok(plan.seconds > 2165, "no step is shorter than physics allows: %.0f s", plan.seconds);
    check_ok(plan.fits && plan.streamed && plan.host_bytes <= plan.host_budget &&
                 plan.device_bytes <= plan.device_budget && plan.disk_bytes <= plan.disk_free,
             "it fits with parts on the disk");
    check_ok(!strcmp(plan.inputs, "disk") && plan.slab_frames > 0 && plan.slab_frames < 256,
             "inputs of layers wait on the disk, a layer is computed over %d frames at a time",
             plan.slab_frames);
    check_ok(plan.disk_bytes == tier_sum(&plan.disk) && plan.host_bytes == tier_sum(&plan.host) &&
                 plan.device_bytes == tier_sum(&plan.device),
             "what the tiers hold adds up");
    check_ok(plan.mfu > 0.2 && plan.mfu < 0.61 && plan.hfu > 1.3 * plan.mfu, "MFU %.2f, HFU %.2f", plan.mfu,
             plan.hfu);
  }
  if (plan_clip(config, 1920, 1080, 256, &plan) == 0)
    check_ok(plan.tokens == 2088960 && plan.device_budget == 151397597184 && plan.fits && plan.streamed &&
                 plan.moved_bytes > 57 * 2 * (uint64_t)plan.parameters,
             "a clip of it streams its weights once a step");
  rates = two;
}

static void check_monotonic(void) {
  static const int sizes[][3] = {{64, 64, 1},    {96, 64, 9},    {192, 128, 17},
                                 {320, 192, 33}, {640, 384, 65}, {1920, 1080, 256}};
  struct ms_plan plan, before = {0};
  int good = 1;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    if (plan_clip("starter", sizes[i][0], sizes[i][1], sizes[i][2], &plan) < 0)
      return;
    good = good && plan.tokens > before.tokens && plan.seconds > before.seconds &&
           plan.flops > before.flops && plan.host_bytes >= before.host_bytes &&
           plan.disk_bytes > before.disk_bytes;
    before = plan;
  }
  check_ok(good, "larger clips need more of everything");
  memset(&before, 0, sizeof before);
  for (int batch = 1; batch <= 16; batch *= 2) {
    if (plan_training("starter", 192, 128, 33, batch, &plan) < 0)
      return;
    good = good && plan.tokens_per_step == 864 * batch && plan.seconds > before.seconds &&
           plan.host_bytes > before.host_bytes && plan.job_seconds > plan.seconds * plan.steps;
    before = plan;
  }
  check_ok(good, "larger batches too");
}

static void check_same_work(void) {
  struct ms_plan dense, dsa, one;
  struct ms_generate_job job = ms_generate_job_default();
  struct ms_error error = {0};
  check_ok(plan_clip("starter", 0, 0, 0, &dsa) == 0 && dsa.width == 192 && dsa.height == 128 &&
               dsa.frames == 33 && dsa.steps == 24 && dsa.stage_count == 2 && dsa.stages[1].tokens == 864,
           "what is left open comes from the model");
  job.attention = "dense";
  check_ok(ms_plan_generate(&job, &machine, &rates, &dense, &error) == 0 && dense.flops > dsa.flops &&
               !strcmp(dense.stages[1].attention, "dense"),
           "another attention is other work");
  job.attention = NULL;
  job.guidance = 1;
  check_ok(ms_plan_generate(&job, &machine, &rates, &one, &error) == 0 &&
               one.stage_seconds[0] < 0.51 * dsa.stage_seconds[0],
           "guidance 1 halves the base stage");
}

static void check_suggestions(void) {
  struct ms_plan plan, again;
  machine.host_memory = (size_t)400 << 20;
  check_ok(plan_clip("starter", 1280, 720, 257, &plan) == 0 && !plan.fits && plan.short_of &&
               !strcmp(plan.short_of, "host") && plan.host_bytes - plan.short_bytes == 400u << 20,
           "a clip that does not fit says of what and by how much");
  check_ok(plan.suggestion_count >= 1, "%d settings near it fit", plan.suggestion_count);
  for (int i = 0; i < plan.suggestion_count; i++) {
    const struct ms_plan_suggestion *s = &plan.suggestions[i];
    if (plan_clip("starter", s->width, s->height, s->frames, &again) < 0)
      return;
    check_ok(again.fits && again.host_bytes == s->host_bytes, "%dx%d with %d frames fits", s->width,
             s->height, s->frames);
    if (s->change == MS_PLAN_FRAMES && plan_clip("starter", s->width, s->height, s->frames + 4, &again) == 0)
      check_ok(!again.fits, "more frames do not");
    if (s->change == MS_PLAN_SIZE)
      check_ok(s->frames == plan.frames && s->width * s->height < plan.width * plan.height,
               "a smaller size keeps the length");
  }
  machine.host_memory = (size_t)900 << 20;
  check_ok(plan_training("starter", 192, 128, 33, 64, &plan) == 0 && !plan.fits &&
               plan.suggestion_count > 0 && plan.suggestions[0].change == MS_PLAN_BATCH &&
               plan.suggestions[0].batch < 64,
           "a batch that does not fit gets a smaller one");
  if (plan.suggestion_count && plan_training("starter", 192, 128, 33, plan.suggestions[0].batch, &again) == 0)
    check_ok(again.fits, "a batch of %d fits", plan.suggestions[0].batch);
  machine.host_memory = (size_t)20 << 20;
  check_ok(plan_clip("starter", 192, 128, 33, &plan) == 0 && !plan.fits && plan.suggestion_count == 0,
           "where nothing fits nothing is suggested");
  machine.host_memory = (size_t)8 << 30;
  rates.profile = 0; /* of this machine: what the process holds beside the bare program counts */
  check_ok(plan_clip("starter", 192, 128, 33, &again) == 0 && plan.host_bytes > 0 &&
               again.host_bytes >= plan.host_bytes && again.fits,
           "a process that holds something already needs no less");
  machine.host_memory = 0;
  rates.profile = 1;
}

static uint64_t moved_by(const struct ms_plan *plan) {
  double bytes = 0;
  for (int i = 0; i < MS_PLAN_LANES; i++)
    bytes += plan->lane_bytes[i];
  return (uint64_t)bytes;
}

/* Budgets from far too small to ample, of training and of a clip. */
static void check_budgets(void) {
  static const char config[] = DATA_DIR "/configs/wan2.1-1.3b.json";
  struct ms_plan plan, before = {.moved_bytes = UINT64_MAX, .seconds = 1e300};
  int good = 1, more = 1, added = 1, fitting = 0, streaming = 0;
  for (size_t budget = (size_t)512 << 20; budget < (size_t)60 << 30; budget += budget / 8) {
    machine.host_memory = budget;
    if (plan_training(config, 480, 272, 17, 1, &plan) < 0)
      return;
    added = added && plan.host_bytes == tier_sum(&plan.host) && plan.moved_bytes == moved_by(&plan);
    if (plan.fits || strcmp(plan.short_of, "host")) {
      good = good && plan.host_bytes <= budget;
      more = more && plan.moved_bytes <= before.moved_bytes && plan.seconds <= before.seconds * 1.0001;
      fitting++;
      streaming += plan.streamed;
      before = plan;
    } else {
      good = good && !fitting && plan.host_bytes == budget + plan.short_bytes;
    }
  }
  check_ok(fitting > 20 && streaming > 10 && !plan.streamed && plan.moved_bytes == 0 &&
               plan.exposed_transfer_seconds == 0,
           "training fits %d budgets, in %d of them with layers on the disk, and is resident in the end",
           fitting, streaming);
  check_ok(good, "budgets are kept, and what is missing is told to the byte");
  check_ok(more, "with more memory no step moves more or is slower");
  check_ok(added, "lanes and tiers add up");
  machine.host_memory = (size_t)6 << 30;
  machine.device_memory = (size_t)300 << 20;
  if (plan_training(config, 480, 272, 17, 1, &plan) == 0)
    check_ok(!plan.fits && !strcmp(plan.short_of, "device") &&
                 plan.device_bytes == machine.device_memory + plan.short_bytes,
             "the working set has its own limit");
  machine.device_memory = 0;
  machine.host_memory = (size_t)2 << 30;
  if (plan_clip(config, 480, 272, 17, &plan) == 0)
    check_ok(plan.fits && plan.streamed && plan.host_bytes <= machine.host_memory &&
                 plan.moved_bytes > 20 * (uint64_t)plan.parameters && plan.exposed_transfer_seconds > 0,
             "a clip in 2 GiB streams %.1f GB", (double)plan.moved_bytes * 1e-9);
  machine.host_memory = (size_t)12 << 30;
  if (plan_clip(config, 480, 272, 17, &plan) == 0)
    check_ok(plan.fits && !plan.streamed && plan.exposed_transfer_seconds == 0, "in 12 GiB it does not");
  machine.host_memory = 0;
}

/* Every profile that comes with the program is a machine that can be planned for. */
static void check_profiles(void) {
  static const char *const names[] = {"desktop-8core", "h100-pcie5",    "h200-pcie5", "rtx3060-pcie4",
                                      "rtx4090-pcie4", "rtx5090-pcie5", "zen5-2core"};
  const struct ms_rates two = rates;
  struct ms_plan plan;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    load_rates(&rates, names[i]);
    if (plan_training(DATA_DIR "/configs/wan2.1-1.3b.json", 480, 272, 17, 1, &plan) == 0)
      check_ok(plan.fits && plan.seconds > 0 && plan.mfu > 0 && plan.mfu < plan.hfu && plan.hfu < 0.7,
               "1.3 B train on %s: %.2f s a step, MFU %.2f", rates.name, plan.seconds, plan.mfu);
  }
  rates = two;
}

static void check_refusals(void) {
  struct ms_generate_job job = ms_generate_job_default();
  struct ms_train_job train;
  struct ms_plan plan = {.tokens = 7};
  struct ms_error error = {0};
  job.width = 65;
  job.height = 64;
  check_ok(ms_plan_generate(&job, &machine, &rates, &plan, &error) == MS_EUSAGE && plan.tokens == 7,
           "an odd size is refused: %s", error.message);
  job.width = job.height = 0;
  job.model = "nowhere";
  memset(&error, 0, sizeof error);
  check_ok(ms_plan_generate(&job, &machine, &rates, &plan, &error) == MS_EINPUT, "a missing model: %s",
           error.message);
  job.model = "/nowhere/config.json";
  memset(&error, 0, sizeof error);
  check_ok(ms_plan_generate(&job, &machine, &rates, &plan, &error) == MS_EINPUT, "a missing file: %s",
           error.message);
  scratch_put("bad.json", "{\"dim\": 10", 10);
  job.model = scratch_path("bad.json");
  memset(&error, 0, sizeof error);
  check_ok(ms_plan_generate(&job, &machine, &rates, &plan, &error) == MS_EINPUT, "a file that is no JSON: %s",
           error.message);
  ms_train_job_init(&train);
  train.batch = 0;
  memset(&error, 0, sizeof error);
  check_ok(ms_plan_train(&train, 0, &machine, &rates, &plan, &error) == MS_EUSAGE, "a batch of none: %s",
           error.message);
}

static void check_files(void) {
  static const char missing[] = "{\"name\": \"x\", \"threads\": 2, \"small_product\": 1e9}";
  struct ms_rates measured = rates, read;
  struct ms_machine one = {.threads = 1};
  struct ms_error error = {0};
  struct ms_plan a, b;
  char path[512];
  snprintf(path, sizeof path, "%s", scratch_path("rates.json"));
  measured.profile = 0;
  check_ok(ms_rates_save(&measured, path, &error) == 0, "rates are saved %s", error.message);
  check_ok(ms_rates_load(&read, path, &machine, NULL) == MS_EINPUT,
           "rates of another processor are not taken for this one's");
  check_ok(ms_rates_load(&read, path, NULL, &error) == 0, "but as a profile they are read: %s",
           error.message);
  check_ok(read.layers[1].train_slide == measured.layers[1].train_slide && read.video == measured.video &&
               read.threads == measured.threads && !strcmp(read.name, measured.name),
           "as they were saved");
  plan_clip("starter", 320, 192, 33, &a);
  measured = rates;
  read.host_memory = rates.host_memory;
  read.disk_free = rates.disk_free;
  rates = read;
  plan_clip("starter", 320, 192, 33, &b);
  rates = measured;
  check_ok(a.seconds == b.seconds && a.host_bytes == b.host_bytes, "and give the same plan");
  scratch_put("missing.json", missing, sizeof missing - 1);
  memset(&error, 0, sizeof error);
  check_ok(ms_rates_load(&read, scratch_path("missing.json"), NULL, &error) == MS_EINPUT &&
               strstr(error.message, "small_dense"),
           "a key that is missing is named: %s", error.message);
  memset(&error, 0, sizeof error);
  check_ok(ms_rates_load(&read, scratch_path("nothing.json"), &one, &error) == MS_EINPUT, "no file: %s",
           error.message);
}

__attribute__((unused)) static void check_measured(void) {
  struct ms_rates found = {0}, read;
  struct ms_error error = {0};
  struct ms_machine one = machine;
  char path[512], folder[512];
  double start = ms_seconds();
  int good = 1, code;
  snprintf(path, sizeof path, "%s", scratch_path("own.json"));
  snprintf(folder, sizeof folder, "%s", path);
  *strrchr(folder, '/') = 0;
  const int before = scratch_count();
  code = ms_rates_measure(&found, &machine, folder, NULL, &error);
  check_ok(code == 0, "this machine is measured in %.1f s %s", ms_seconds() - start, error.message);
  check_ok(scratch_count() == before, "which leaves no file");
  for (int i = 0; i < 2; i++) {
    const struct ms_layer_rates *l = &found.layers[i];
    good = good && l->product > 0 && l->dense > 0 && l->slide > 0 && l->train_product > 0 &&
           l->train_dense > 0 && l->train_slide > 0;
  }
  check_ok(good && found.decode > 0 && found.encode > 0 && found.video > 0 && found.memory > 0 &&
               found.pack > 0 && found.peak > 0 && found.disk_read > 0 && found.disk_write > 0 &&
               found.load > 0 && found.gradient > 0,
           "every rate is above 0");
  check_ok(ms_rates_save(&found, path, &error) == 0 && ms_rates_load(&read, path, &machine, &error) == 0,
           "saved, and found again by the same machine: %s", error.message);
  one.threads = 3;
  check_ok(ms_rates_load(&read, path, &one, NULL) == MS_EINPUT, "but not for another number of threads");
  const atomic_int stop = 1;
  const struct ms_hooks hooks = {.cancel = &stop};
  check_ok(ms_rates_measure(&found, &machine, folder, &hooks, &error) == MS_ECANCELLED,
           "measuring can be stopped");
}

static void *plan_many(void *data) {
  struct ms_plan *last = data;
  for (int i = 0; i < 20; i++)
    if (plan_clip("starter", 640, 384, 33, last) < 0)
      break;
  return NULL;
}

static void check_threads(void) {
  pthread_t threads[4];
  struct ms_plan plans[4] = {0}, one;
  int started = 0, same = 1;
  double best = 1e9;
  for (int i = 0; i < 20; i++) {
    double start = ms_seconds();
    plan_clip("starter", 640, 384, 33, &one);
    best = ms_seconds() - start < best ? ms_seconds() - start : best;
  }
  check_ok(best < QUICK, "a plan takes %.2f ms", 1e3 * best);
  while (started < 4 && pthread_create(&threads[started], NULL, plan_many, &plans[started]) == 0)
    started++;
  for (int i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
    same = same && plans[i].seconds == one.seconds && plans[i].host_bytes == one.host_bytes;
  }
  check_ok(started == 4 && same, "four threads plan at once");
}

int main(int argc, char **argv) {
  check_begin(argc, argv);
  scratch_begin();
  load_rates(&rates, "rtx4090-pcie4");
  load_rates(&rates, "zen5-2core");
  check_large();
  check_monotonic();
  check_same_work();
  check_suggestions();
  check_budgets();
  check_profiles();
  check_refusals();
  check_files();
#ifndef __SANITIZE_THREAD__ /* which sees races in the libraries that write video, as it does not know their \
                               locks */
  check_measured();
#endif
  check_threads();
  scratch_end();
  return check_end();
}
