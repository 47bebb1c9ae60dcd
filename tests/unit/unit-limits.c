/* What physics allows, as the plan of the 105 B configuration tells it: every figure against plain arithmetic
 * on round numbers (105e9 parameters, 2,073,600 tokens without the padding row, 989 TFLOP/s, 55 GB/s), within
 * two hundredths; and the simulated steps against the bounds that no step can beat. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "ms-plan.h"
#include "ms-system.h"

#define WITHIN 0.02
#define PARAMETERS 105e9
#define TOKENS 2073600.0
#define PEAK 989e12
#define LINK 55e9
#define CHANNELS 8192.0
#define LAYERS 98
#define MOST_BOUNDS 64
#define MOST_TRIALS 512

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define QUICK 20
#else
#define QUICK 1
#endif

static const struct ms_machine machine = {.threads = 2, .data_folder = DATA_DIR};
static struct ms_rates rates;

struct seen {
  struct ms_plan_bound bounds[MOST_BOUNDS];
  struct ms_plan_trial trials[MOST_TRIALS];
  int bound_count, trial_count;
};

static void see_bound(void *data, const struct ms_plan_bound *bound) {
  struct seen *seen = data;
  if (seen->bound_count < MOST_BOUNDS)
    seen->bounds[seen->bound_count++] = *bound;
}

static void see_trial(void *data, const struct ms_plan_trial *trial) {
  struct seen *seen = data;
  if (seen->trial_count < MOST_TRIALS)
    seen->trials[seen->trial_count++] = *trial;
}

static double bound(const struct seen *seen, const char *name) {
  for (int i = 0; i < seen->bound_count; i++)
    if (!strcmp(seen->bounds[i].name, name))
      return seen->bounds[i].value;
  return NAN;
}

static void near_to(const struct seen *seen, const char *name, double want) {
  double value = bound(seen, name);
  check_ok(fabs(value / want - 1) <= WITHIN, "%s: %.4g, want %.4g", name, value, want);
}

static void check_bounds(const struct seen *s) {
  const double nt = PARAMETERS * TOKENS, k = 3 * 7 * 7, m = 4 * 8 * 8;
  near_to(s, "parameters of the layers, N", PARAMETERS);
  near_to(s, "tokens of a clip, T", TOKENS);
  check_ok(bound(s, "tokens of a clip, T") == 2088960 && bound(s, "tokens of 1x16x16 pixels") == 2088960,
           "a lattice has 68 rows");
  check_ok(bound(s, "tokens of 4x16x16 pixels") == 530400 && bound(s, "tokens of 4x32x32 pixels") == 132600 &&
               bound(s, "tokens of 8x32x32 pixels") == 67320,
           "other codecs have fewer tokens");
  near_to(s, "6 N T at 61 % of the peak", 2165);
  near_to(s, "6 N T at 61 % of the peak", 6 * nt / (0.61 * PEAK));
  near_to(s, "8 N T, with recomputation, at 61 % of the peak", 2886);
  near_to(s, "8 N T at 45 % of the peak", 8 * nt / (0.45 * PEAK));
  near_to(s, "tokens that 3.1 s at 61 % of the peak pay for", 2970);
  near_to(s, "weights to the device, twice", 420e9);
  near_to(s, "weights twice over PCIe 5", 7.6);
  near_to(s, "tokens from which computing at 61 % hides the weights", 0.61 * PEAK / LINK);
  near_to(s, "AdamW's traffic, float32 master, 28 B a parameter", 2.94e12);
  near_to(s, "AdamW's traffic, split master, 26 B a parameter", 26 * PARAMETERS);
  near_to(s, "28 B a parameter, 12 channels of DDR5-6400", 5.8);
  near_to(s, "28 B a parameter, 8 channels of DDR5-4800", 11.7);
  near_to(s, "26 B a parameter, 12 channels of DDR5-6400", 5.8 * 26 / 28);
  near_to(s, "26 B a parameter, 8 channels of DDR5-4800", 11.7 * 26 / 28);
  near_to(s, "state, float32 master, 14 B a parameter", 1.47e12);
  near_to(s, "state, split master, 12 B a parameter", 1.26e12);
  near_to(s, "state, split master and 8-bit moments, 6 B a parameter", 0.63e12);
  check_ok(bound(s, "state, float32 master, 14 B a parameter") + bound(s, "gradients in bf16") > 1.5e12 &&
               bound(s, "state, split master, 12 B a parameter") + bound(s, "gradients in bf16") < 1.5e12,
           "with a split master the gradients fit into 1.5 TB beside the state");
  near_to(s, "one bf16 tensor [T,C]", 34e9);
  near_to(s, "inputs of all layers in bf16", 3.3e12);
  near_to(s, "dense attention beside the products, 4 T T C L / (2 N T)", 32);
  near_to(s, "products a token and layer, 2 N / L", 2150e6);
  near_to(s, "3D-DSA 3x7x7, point, forward, 32 K C", 38.5e6);
  near_to(s, "3D-DSA 3x7x7, point, backward, 80 K C", 80 * k * CHANNELS);
  near_to(s, "3D-DSA 3x7x7, shift, forward, 4 M C", 4 * m * CHANNELS);
  near_to(s, "3D-DSA 3x7x7, shift, backward, 10 M C", 10 * m * CHANNELS);
  near_to(s, "window 3x7x7, forward, 4 K C", 4.8e6);
  near_to(s, "window 3x7x7, backward, 10 K C", 10 * k * CHANNELS);
  near_to(s, "offset head, point, 54 C + 6 G K C", 54 * CHANNELS + 24 * k * CHANNELS);
  near_to(s, "offset head, shift, 54 C + 6 G C", 54 * CHANNELS + 24 * CHANNELS);
}

static const struct ms_plan_trial *find(const struct seen *s, int sync, double bytes, int pcie, int disk,
                                        int64_t tokens) {
  for (int i = 0; i < s->trial_count; i++) {
    const struct ms_plan_trial *t = &s->trials[i];
    if (t->sync == sync && floor(t->parameter_bytes) == bytes && t->pcie == pcie && t->disk == disk &&
        t->tokens == tokens)
      return t;
  }
  return NULL;
}

/* No step is shorter than any of its lanes, and lanes one after the other are all of them. */
static int is_possible(const struct ms_plan_trial *t) {
  double sum = 0, most = 0;
  for (int i = 0; i < MS_PLAN_LANES; i++) {
    sum += t->lane_seconds[i];
    most = t->lane_seconds[i] > most ? t->lane_seconds[i] : most;
  }
  return t->seconds >= most * (1 - 1e-9) && t->seconds <= sum * (1 + 1e-9) && t->hfu > t->mfu &&
         t->hfu < 0.46 && t->exposed_transfer_seconds >= -1e-9 &&
         fabs(t->seconds - t->lane_seconds[MS_PLAN_COMPUTE] - t->exposed_transfer_seconds) <
             1e-6 * t->seconds;
}

static void check_trials(const struct seen *s) {
  const struct ms_plan_trial *few = find(s, 0, 12, 5, 0, 1024), *some = find(s, 0, 12, 5, 0, 11264),
                             *all = find(s, 0, 12, 5, 0, 2088960), *slow = find(s, 0, 12, 4, 0, 1024),
                             *sync = find(s, 1, 12, 5, 0, 11264), *disk = find(s, 0, 12, 5, 1, 1024),
                             *wide = find(s, 0, 14, 5, 0, 1024), *small = find(s, 0, 6, 5, 0, 1024);
  int good = 1, later = 1;
  check_ok(s->trial_count == 192, "%d steps are simulated", s->trial_count);
  for (int i = 0; i < s->trial_count; i++) {
    const struct ms_plan_trial *t = &s->trials[i];
    const struct ms_plan_trial *other = find(s, 1, floor(t->parameter_bytes), t->pcie, t->disk, t->tokens);
    good &= is_possible(t);
    later &= !other || other->seconds >= t->seconds * (1 - 1e-9);
  }
  check_ok(good, "each takes as long as its longest lane, and no longer than all together");
  check_ok(later, "synchronous lanes are never faster");
  check_ok(few && some && all && slow && sync && disk && wide && small, "the expected ones are there");
  if (!few || !some || !all || !slow || !sync || !disk || !wide || !small)
    return;
  check_ok(few->seconds > 7.6 && few->seconds > few->lane_seconds[MS_PLAN_OPTIMIZER],
           "a step of a thousand tokens takes %.1f s: no less than its weights' way", few->seconds);
  check_ok(few->exposed_transfer_seconds > 0.5 * few->seconds &&
               some->exposed_transfer_seconds < 0.15 * some->seconds &&
               all->exposed_transfer_seconds < 0.01 * all->seconds,
           "transfers hide from some 11,000 tokens on: %.1f, %.1f and %.1f s are exposed",
           few->exposed_transfer_seconds, some->exposed_transfer_seconds, all->exposed_transfer_seconds);
  check_ok(all->seconds > 2165 && !strcmp(all->inputs, "disk"),
           "two million tokens take %.0f s, with inputs on the disk", all->seconds);
  check_ok(slow->seconds > 2 * 420e9 / 55e9 && sync->seconds > 1.5 * some->seconds,
           "PCIe 4 and synchronous lanes are slower: %.1f s, %.1f s", slow->seconds, sync->seconds);
  check_ok(disk->seconds > 20 * few->seconds, "a state on the disk takes %.0f s to pass", disk->seconds);
  check_ok(wide->seconds > few->seconds && small->seconds < few->seconds, "fewer bytes of state are faster");
  check_ok(!wide->fits && few->fits && small->fits, "14 bytes a parameter do not fit into the host");
}

static int plan_training(const struct ms_train_job *job, struct ms_plan *plan) {
  struct ms_error error = {0};
  int code = ms_plan_train(job, 0, &machine, &rates, plan, &error);
  check_ok(code == 0, "batches of %d with %d-bit moments are planned %s", job->batch, job->moment_bits,
           error.message);
  return code;
}

/* The plan itself says the same. */
static void check_plan(const struct seen *seen, struct ms_train_job job) {
  struct ms_plan plan;
  double start = ms_seconds(), took, up;
  job.ema = 0;
  if (plan_training(&job, &plan) < 0)
    return;
  took = ms_seconds() - start;
  check_ok(took < QUICK, "in %.2f s", took);
  check_ok(!plan.fits && !strcmp(plan.short_of, "disk") && plan.suggestion_count > 0 &&
               plan.suggestions[0].change == MS_PLAN_BATCH && plan.suggestions[0].batch == 1,
           "inputs of four clips fit no disk of the machine, those of one do");
  job.batch = 1;
  if (plan_training(&job, &plan) < 0)
    return;
  check_ok(plan.fits && plan.tokens == (int64_t)bound(seen, "tokens of a clip, T") &&
               !strcmp(plan.inputs, "disk"),
           "one clip a step fits, with inputs on the disk");
  check_ok(fabs((double)plan.disk.inputs / 3.3e12 - 1) < WITHIN, "they take %.3g bytes of it",
           (double)plan.disk.inputs);
  check_ok(fabs((double)plan.state_bytes / 1.26e12 - 1) < WITHIN, "the state takes %.4g",
           (double)plan.state_bytes);
  check_ok(plan.seconds > bound(seen, "6 N T at 61 % of the peak"), "a step takes %.0f s", plan.seconds);
  up = plan.lane_bytes[MS_PLAN_UP] / (420e9 + 3 * 3.3e12);
  check_ok(up > 1 && up < 1.25, "%.3g bytes go up: weights twice, and inputs and gradients by slabs",
           plan.lane_bytes[MS_PLAN_UP]);
  job.moment_bits = 8;
  if (plan_training(&job, &plan) == 0)
    check_ok(fabs((double)plan.state_bytes / (6.03125 * PARAMETERS) - 1) < WITHIN,
             "with 8-bit moments the state takes %.4g", (double)plan.state_bytes);
}

int main(int argc, char **argv) {
  static struct seen seen;
  struct ms_train_job job;
  struct ms_error error = {0};
  const struct ms_plan_study study = {&seen, see_bound, see_trial};
  int code;
  check_begin(argc, argv);
  check_ok(ms_rates_load(&rates, DATA_DIR "/hardware/h200-pcie5.json", NULL, &error) == 0,
           "the profile is read: %s", error.message);
  ms_train_job_init(&job);
  job.model = DATA_DIR "/configs/megaslide-105b.json";
  job.width = 1920;
  job.height = 1080;
  job.frames = 256;
  code = ms_plan_train_study(&job, &machine, &rates, &study, &error);
  check_ok(code == 0, "a step is studied %s", error.message);
  check_bounds(&seen);
  check_trials(&seen);
  check_plan(&seen, job);
  return check_end();
}
