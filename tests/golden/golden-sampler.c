/* The samplers against schedulers.safetensors: sigmas and time steps exactly, trajectories of a known
 * velocity field. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "sample/sampler.h"
#include "weights/safetensors.h"

/* Relative L2 of float32 states along a trajectory: the bound of a single operator in the README beside the
 * fixtures. */
#define TRAJECTORY_TOLERANCE 2e-6

static struct ms_safetensors *file;

struct kind {
  const char *name;
  enum ms_sampler_kind kind;
};

static const struct ms_tensor_view *find(const char *kind, int steps, double shift, const char *part) {
  char name[128], number[32], *point;
  snprintf(number, sizeof number, "%g", shift);
  if ((point = strchr(number, '.')))
    *point = 'p';
  snprintf(name, sizeof name, "%s.steps%d.shift%s.%s", kind, steps, number, part);
  return ms_safetensors_find(file, name);
}

static int differing(const struct ms_tensor_view *view, const double *got) {
  double *want = malloc((size_t)view->count * sizeof *want);
  int different = 0;
  ms_tensor_read_f64(view, want);
  for (int64_t i = 0; i < view->count; i++)
    different += !(want[i] == got[i]);
  free(want);
  return different;
}

static void check_schedule(const struct kind *kind, int steps, double shift) {
  const struct ms_tensor_view *sigmas = find(kind->name, steps, shift, "sigmas");
  const struct ms_tensor_view *timesteps = find(kind->name, steps, shift, "timesteps");
  struct ms_sampler sampler;
  if (!sigmas || !timesteps)
    return;
  if (ms_sampler_init(&sampler, kind->kind, steps, shift, 1, NULL) < 0) {
    check_ok(0, "%s cannot start", kind->name);
    return;
  }
  check_ok(sigmas->count == steps + 1 && !differing(sigmas, sampler.sigmas), "%s %d steps shift %g: sigmas",
           kind->name, steps, shift);
  check_ok(timesteps->count == steps && !differing(timesteps, sampler.timesteps),
           "%s %d steps shift %g: time steps", kind->name, steps, shift);
  ms_sampler_release(&sampler);
}

/* The velocity that the fixtures were made with. */
static void velocity_at(const float *x, double t, int64_t count, float *velocity) {
  for (int64_t n = 0; n < count; n++)
    velocity[n] = (float)(0.3 * x[n] * sin(t / 1000 * 3) + 0.1 * cos(x[n]));
}

static void check_trajectory(const struct kind *kind, int steps, double shift) {
  const struct ms_tensor_view *view = find(kind->name, steps, shift, "traj");
  const struct ms_tensor_view *start = ms_safetensors_find(file, "x0");
  struct ms_sampler sampler;
  double worst = 0;
  float *x, *velocity, *want;
  if (!view || !start)
    return;
  x = check_alloc_f32(start->count);
  velocity = check_alloc_f32(start->count);
  want = check_alloc_f32(view->count);
  ms_tensor_read_f32(start, x);
  ms_tensor_read_f32(view, want);
  if (view->count != start->count * (steps + 1) ||
      ms_sampler_init(&sampler, kind->kind, steps, shift, start->count, NULL) < 0) {
    check_ok(0, "%s %d steps: trajectory", kind->name, steps);
    return;
  }
  for (int i = 0; i < steps; i++) {
    double error = 0, norm = 0;
    velocity_at(x, sampler.timesteps[i], start->count, velocity);
    ms_sampler_step(&sampler, i, x, velocity);
    for (int64_t n = 0; n < start->count; n++) {
      double w = want[(i + 1) * start->count + n], d = x[n] - w;
      error += d * d;
      norm += w * w;
    }
    error = sqrt(error / norm);
    if (!(error <= worst))
      worst = error;
  }
  ms_sampler_release(&sampler);
  check_ok(worst <= TRAJECTORY_TOLERANCE, "%s %d steps shift %g: trajectory, worst step %.2g", kind->name,
           steps, shift, worst);
}

/* A start at a middle level: the first sigma is the one asked for, the last 0, and a field that is constant
 * along straight paths (v = n - x0) is integrated exactly by every sampler. */
static void check_from(enum ms_sampler_kind kind, const char *name) {
  struct ms_sampler sampler;
  float x[4], velocity[4];
  const float data[4] = {0.5f, -1.25f, 2, 0.125f}, noise[4] = {-0.75f, 0.5f, 1.5f, -2};
  int good = 1;
  if (ms_sampler_init_from(&sampler, kind, 5, 3, 0.6, 4, NULL) < 0) {
    check_ok(0, "%s from 0.6", name);
    return;
  }
  for (int n = 0; n < 4; n++) {
    x[n] = (float)((1 - sampler.sigmas[0]) * data[n] + sampler.sigmas[0] * noise[n]);
    velocity[n] = noise[n] - data[n];
  }
  check_ok(fabs(sampler.sigmas[0] - 0.6) < 1e-6 && sampler.sigmas[5] == 0,
           "%s from 0.6: ends of the schedule", name);
  for (int i = 0; i < 5; i++) {
    good = good && sampler.sigmas[i + 1] < sampler.sigmas[i];
    ms_sampler_step(&sampler, i, x, velocity);
  }
  for (int n = 0; n < 4; n++)
    good = good && fabsf(x[n] - data[n]) < 1e-5f;
  check_ok(good, "%s from 0.6: reaches the data of a straight path", name);
  ms_sampler_release(&sampler);
}

static void check_refusals(void) {
  struct ms_sampler sampler;
  struct ms_error error = {0};
  enum ms_sampler_kind kind;
  check_ok(ms_sampler_init(&sampler, MS_SAMPLER_EULER, 0, 1, 1, &error) == MS_EUSAGE &&
               error.code == MS_EUSAGE,
           "0 steps are refused");
  check_ok(ms_sampler_init(&sampler, MS_SAMPLER_EULER, 1, NAN, 1, NULL) == MS_EUSAGE,
           "a shift that is no number is refused");
  check_ok(ms_sampler_init_from(&sampler, MS_SAMPLER_EULER, 1, 1, 1.5, 1, NULL) == MS_EUSAGE,
           "sigma above 1 is refused");
  check_ok(ms_sampler_kind_from_name("unipc", &kind) == 0 && kind == MS_SAMPLER_UNIPC,
           "unipc is known by name");
  check_ok(ms_sampler_kind_from_name("heun", &kind) == MS_EUSAGE, "an unknown name is refused");
}

/* The numbers of a list such as "1,3,5". */
static int numbers(const char *key, double *out, int room) {
  const char *text = ms_safetensors_metadata(file, key);
  int n = 0;
  while (text && n < room) {
    out[n++] = atof(text);
    text = strchr(text, ',');
    text = text ? text + 1 : NULL;
  }
  return n;
}

int main(int argc, char **argv) {
  static const struct kind kinds[] = {
      {"euler_sigmas", MS_SAMPLER_EULER}, {"unipc", MS_SAMPLER_UNIPC}, {"dpmpp", MS_SAMPLER_DPMPP}};
  const char *folder = getenv("MEGASLIDE_FIXTURES");
  char path[4096];
  double steps[16], shifts[16], traj_steps[16], traj_shift[16];
  int step_count, shift_count, traj_count, traj_shift_count;
  struct ms_error error = {0};
  check_begin(argc, argv);
  snprintf(path, sizeof path, "%s/schedulers.safetensors", folder ? folder : GOLDEN_DIR);
  if (ms_safetensors_open(&file, path, &error) < 0) {
    check_ok(0, "%s", error.message);
    return check_end();
  }
  step_count = numbers("steps", steps, 16);
  shift_count = numbers("shifts", shifts, 16);
  traj_count = numbers("traj_steps", traj_steps, 16);
  traj_shift_count = numbers("traj_shift", traj_shift, 16);
  check_ok(step_count && shift_count && traj_count && traj_shift_count, "metadata name steps and shifts");
  for (int k = 0; k < 3; k++) {
    for (int i = 0; i < step_count; i++)
      for (int j = 0; j < shift_count; j++)
        check_schedule(&kinds[k], (int)steps[i], shifts[j]);
    for (int i = 0; i < traj_count; i++)
      for (int j = 0; j < traj_shift_count; j++)
        check_trajectory(&kinds[k], (int)traj_steps[i], traj_shift[j]);
    check_from(kinds[k].kind, kinds[k].name);
  }
  check_refusals();
  check_free_all();
  ms_safetensors_close(&file);
  return check_end();
}
