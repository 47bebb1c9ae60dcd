#include "sample/sampler.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double shifted(double sigma, double shift) {
  return shift * sigma / (1 + (shift - 1) * sigma);
}

/* The unshifted value that `shifted` maps to sigma. */
static double unshifted(double sigma, double shift) {
  return sigma / (shift - (shift - 1) * sigma);
}

/* sigmas[i], i < steps, before they are rounded to float32. The order of operations is that of the Wan
 * pipelines: many products sigma * 1000 lie one rounding error below an integer, and the time steps are
 * truncated. */
static double schedule_value(enum ms_sampler_kind kind, int i, int steps, double shift, double from) {
  if (kind == MS_SAMPLER_UNIPC)
    return shifted(i * ((0 - from) / steps) + from, shift);
  if (kind == MS_SAMPLER_DPMPP)
    return shifted(i * (-from / steps) + from, shift);
  /* the Euler scheduler computes in float32 from here on */
  float sigma = (float)(i * (-from / steps) + from), s = (float)shift;
  return s * sigma / (1.0f + (float)(shift - 1) * sigma);
}

static void fill_schedule(struct ms_sampler *sampler, double shift, double from) {
  for (int i = 0; i < sampler->steps; i++) {
    double sigma = schedule_value(sampler->kind, i, sampler->steps, shift, from);
    sampler->sigmas[i] = (float)sigma;
    sampler->timesteps[i] =
        sampler->kind == MS_SAMPLER_EULER ? (double)((float)sigma * 1000.0f) : floor(sigma * 1000);
  }
  sampler->sigmas[sampler->steps] = 0;
}

static int open_sampler(struct ms_sampler *sampler, enum ms_sampler_kind kind, int steps, double shift,
                        int64_t count, struct ms_error *error) {
  static const int histories[] = {[MS_SAMPLER_EULER] = 0, [MS_SAMPLER_UNIPC] = 3, [MS_SAMPLER_DPMPP] = 1};
  memset(sampler, 0, sizeof *sampler);
  if (steps < 1 || steps > 100000)
    return ms_error_set(error, MS_EUSAGE, "%d sampling steps: choose 1 or more", steps);
  if (!(shift > 0) || !isfinite(shift))
    return ms_error_set(error, MS_EUSAGE, "shift %g: choose a number above 0", shift);
  if (count < 1 || count > INT64_MAX / (int64_t)sizeof(float))
    return ms_error_set(error, MS_EUSAGE, "a sampler cannot hold %lld elements", (long long)count);
  sampler->kind = kind;
  sampler->steps = steps;
  sampler->count = count;
  sampler->sigmas = calloc((size_t)steps + 1, sizeof *sampler->sigmas);
  sampler->timesteps = calloc((size_t)steps, sizeof *sampler->timesteps);
  if (!sampler->sigmas || !sampler->timesteps)
    goto fail;
  for (int i = 0; i < histories[kind]; i++) {
    sampler->history[i] = calloc((size_t)count, sizeof(float));
    if (!sampler->history[i])
      goto fail;
  }
  return 0;
fail:
  ms_sampler_release(sampler);
  return ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for the sampler",
                      (double)count * histories[kind] * sizeof(float) / 1048576);
}

/* UniPC starts below 1, where the logarithm of its signal-to-noise ratio is finite; 0.999 as a float32, as in
 * Wan. */
static double first_value(enum ms_sampler_kind kind) {
  return kind == MS_SAMPLER_UNIPC ? (double)0.999f : 1;
}

int ms_sampler_init(struct ms_sampler *sampler, enum ms_sampler_kind kind, int steps, double shift,
                    int64_t count, struct ms_error *error) {
  int code = open_sampler(sampler, kind, steps, shift, count, error);
  if (code < 0)
    return code;
  fill_schedule(sampler, shift, first_value(kind));
  return 0;
}

int ms_sampler_init_from(struct ms_sampler *sampler, enum ms_sampler_kind kind, int steps, double shift,
                         double first_sigma, int64_t count, struct ms_error *error) {
  double from;
  int code = open_sampler(sampler, kind, steps, shift, count, error);
  if (code < 0)
    return code;
  if (!(first_sigma > 0 && first_sigma <= 1)) {
    ms_sampler_release(sampler);
    return ms_error_set(error, MS_EUSAGE, "first sigma %g: choose a number above 0, at most 1", first_sigma);
  }
  from = unshifted(first_sigma, shift);
  if (from > first_value(kind))
    from = first_value(kind);
  fill_schedule(sampler, shift, from);
  return 0;
}

void ms_sampler_release(struct ms_sampler *sampler) {
  free(sampler->sigmas);
  free(sampler->timesteps);
  for (int i = 0; i < 3; i++)
    free(sampler->history[i]);
  memset(sampler, 0, sizeof *sampler);
}

static double log_ratio(double sigma) { /* log of signal to noise: +-infinity at the ends */
  return log(1 - sigma) - log(sigma);
}

static void step_euler(struct ms_sampler *sampler, int i, float *x, const float *velocity) {
  double step = sampler->sigmas[i + 1] - sampler->sigmas[i];
  for (int64_t n = 0; n < sampler->count; n++)
    x[n] = (float)(x[n] + step * velocity[n]);
}

/* DPM-Solver++(2M), midpoint form (Lu et al. 2022), on the data prediction m = x - sigma v. The first and the
 * last step are of first order. history[0]: m of the step before. */
static void step_dpmpp(struct ms_sampler *sampler, int i, float *x, const float *velocity) {
  double sigma = sampler->sigmas[i], next = sampler->sigmas[i + 1], lambda = log_ratio(sigma);
  double h = log_ratio(next) - lambda, grow = exp(-h) - 1, keep = next / sigma, slope = 0;
  float *before = sampler->history[0];
  if (sampler->order_reached > 0 && i < sampler->steps - 1)
    slope = h / (lambda - log_ratio(sampler->sigmas[i - 1])); /* 0 after sigma 1, whose ratio is infinite */
  for (int64_t n = 0; n < sampler->count; n++) {
    double m = x[n] - sigma * velocity[n], d = (m - before[n]) * slope;
    x[n] = (float)(keep * x[n] - (1 - next) * grow * (m + d / 2));
    before[n] = (float)m;
  }
  sampler->order_reached = 1;
}

/* The coefficients of one UniPC update from sigma s to t in the B2(h) form (Zhao et al. 2023, data
 * prediction): x_t = keep x_s - pull m_s - weigh * (sum of rho D). */
struct unipc_update {
  double keep, pull, b1, b2, h, lambda;
};

static struct unipc_update unipc_coefficients(double s, double t) {
  struct unipc_update u = {.keep = t / s, .lambda = log_ratio(s)};
  double phi1, phi2;
  u.h = log_ratio(t) - u.lambda;
  phi1 = expm1(-u.h);
  u.pull = (1 - t) * phi1;
  phi2 = phi1 / -u.h - 1;
  u.b1 = phi2 / phi1;
  u.b2 = (phi2 / -u.h - 0.5) * 2 / phi1;
  return u;
}

/* Every step first corrects x with the model's new answer, then predicts. history: m of the step before, m of
 * two steps before, x from which the last prediction started. order_reached: how many of the m are there. */
static void step_unipc(struct ms_sampler *sampler, int i, float *x, const float *velocity) {
  double sigma = sampler->sigmas[i], rho_old = 0, rho_new = 0.5, ratio = 0;
  float *m1 = sampler->history[0], *m2 = sampler->history[1], *last = sampler->history[2];
  int have = sampler->order_reached, order = have + 1;
  struct unipc_update correct = {0}, predict = unipc_coefficients(sigma, sampler->sigmas[i + 1]);
  if (order > 2)
    order = 2;
  if (order > sampler->steps - i)
    order = sampler->steps - i;
  if (have > 0)
    correct = unipc_coefficients(sampler->sigmas[i - 1], sigma);
  if (have == 2) {
    double r = (log_ratio(sampler->sigmas[i - 2]) - correct.lambda) / correct.h;
    double rho = (correct.b2 - correct.b1) / (r - 1);
    rho_new = correct.b1 - rho;
    rho_old = rho / r;
  }
  if (order == 2)
    ratio = 0.5 * predict.h / (log_ratio(sampler->sigmas[i - 1]) - predict.lambda);
  for (int64_t n = 0; n < sampler->count; n++) {
    double m = x[n] - sigma * velocity[n], at = x[n], d;
    if (have > 0) {
      d = rho_old * ((double)m2[n] - m1[n]) + rho_new * (m - m1[n]);
      at = correct.keep * last[n] - correct.pull * (m1[n] + d);
    }
    d = order == 2 ? ratio * (m1[n] - m) : 0;
    x[n] = (float)(predict.keep * at - predict.pull * (m + d));
    last[n] = (float)at;
    m2[n] = (float)m;
  }
  sampler->history[0] = m2;
  sampler->history[1] = m1;
  sampler->order_reached = have < 2 ? have + 1 : 2;
}

void ms_sampler_step(struct ms_sampler *sampler, int i, float *x, const float *velocity) {
  assert(i >= 0 && i < sampler->steps);
  switch (sampler->kind) {
  case MS_SAMPLER_EULER:
    step_euler(sampler, i, x, velocity);
    break;
  case MS_SAMPLER_UNIPC:
    step_unipc(sampler, i, x, velocity);
    break;
  case MS_SAMPLER_DPMPP:
    step_dpmpp(sampler, i, x, velocity);
    break;
  }
}

int ms_sampler_kind_from_name(const char *name, enum ms_sampler_kind *kind) {
  static const char *const names[] = {
      [MS_SAMPLER_EULER] = "euler", [MS_SAMPLER_UNIPC] = "unipc", [MS_SAMPLER_DPMPP] = "dpmpp"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(name, names[i])) {
      *kind = (enum ms_sampler_kind)i;
      return 0;
    }
  return MS_EUSAGE;
}
