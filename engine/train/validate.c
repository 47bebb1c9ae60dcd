#include "train/validate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system.h"
#include "ms-generate.h"

/* Noise levels of the validation loss. */
static const double validation_sigmas[MS_VALIDATION_SAMPLES] = {0.15, 0.4, 0.65, 0.9};

static int is_cancelled(const struct ms_hooks *hooks) {
  return hooks && hooks->cancel && atomic_load(hooks->cancel);
}

/* item: from the held-out ones of this rank; one past the last of them is looked at for the others' sake, and
 * counts nothing. */
static int look_at(struct ms_trained *trained, struct ms_feed *feed, struct ms_objective *o, int64_t item,
                   double *loss, struct ms_error *error) {
  int counts = item < feed->held_out.items, code;
  int64_t items[MS_VALIDATION_SAMPLES];
  for (int i = 0; i < MS_VALIDATION_SAMPLES; i++)
    items[i] = counts ? item : 0;
  code = ms_objective_make_fixed(o, &feed->held_out, items, validation_sigmas, MS_VALIDATION_SAMPLES, error);
  code = ms_group_agree(trained->group, code, error);
  if (code == 0)
    code = ms_trained_begin(trained, MS_STREAM_AVERAGE, -1, error);
  if (code < 0)
    return code;
  code = ms_dit_forward(trained->model->dit, &o->batch, 0, o->velocity, error);
  code = ms_trained_end(trained, code, error);
  if (code == 0)
    *loss = counts ? ms_objective_loss(o, 0) : 0;
  return code;
}

/* The clips that all ranks look at together: adds their losses in the clips' order. */
static int look_at_some(struct ms_trained *trained, struct ms_feed *feed, struct ms_objective *o,
                        int64_t first, double *sum, struct ms_error *error) {
  struct ms_group *g = trained->group;
  double loss = 0;
  int code = look_at(trained, feed, o, first + ms_group_rank(g), &loss, error);
  if (code < 0)
    return code;
  if (g)
    g->all_gather_doubles(g->data, &loss, 1, g->codes);
  for (int r = 0; r < ms_group_size(g); r++)
    *sum += g ? g->codes[r] : loss;
  return 0;
}

int ms_validate(struct ms_trained *trained, struct ms_feed *feed, struct ms_objective *objective,
                const struct ms_hooks *hooks, double start, double *loss, struct ms_error *error) {
  struct ms_error why = {0};
  double sum = 0;
  int code = ms_trained_flush(trained, error);
  *loss = NAN;
  if (code < 0)
    return code;
  for (int64_t i = 0; i < feed->held_out.items && code == 0; i += ms_group_size(trained->group)) {
    struct ms_progress progress = {"validate", i, feed->held_out.items, ms_seconds() - start, -1};
    if (hooks && hooks->progress)
      hooks->progress(hooks->data, &progress);
    code = look_at_some(trained, feed, objective, i, &sum, &why);
  }
  if (code == MS_ECANCELLED || is_cancelled(hooks))
    return 0;
  if (code < 0)
    return ms_error_set(error, code, "%s", why.message);
  *loss = sum / (double)feed->held_out.items;
  return 0;
}

/* The prompt as a part of a file's name. */
static void make_slug(const char *prompt, char slug[64]) {
  int n = 0;
  for (const char *p = prompt; *p && n < 40; p++)
    slug[n++] = (*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') ? *p : '-';
  slug[n] = 0;
}

int ms_make_sample(const struct ms_train_job *run, int64_t step, const struct ms_machine *machine,
                   const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_generate_job job = ms_generate_job_default();
  struct ms_generate_result result;
  struct ms_hooks quiet = {.cancel = hooks ? hooks->cancel : NULL};
  struct ms_error why = {0};
  char folder[1100], output[1300], slug[64], message[700];
  int code;
  make_slug(run->sample_prompt, slug);
  snprintf(folder, sizeof folder, "%s/samples", run->output);
  snprintf(output, sizeof output, "%s/step-%06lld-%s.mp4", folder, (long long)step, slug);
  if (mkdir(folder, 0777) < 0 && errno != EEXIST)
    return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", folder,
                        strerrordesc_np(errno));
  job.prompt = run->sample_prompt;
  job.model = run->output;
  job.output = output;
  job.seed = (int64_t)(run->seed & 0x7fffffff);
  code = ms_generate(&job, machine, &quiet, &result, &why);
  if (code == MS_ECANCELLED)
    return ms_error_set(error, code, "%s", why.message);
  if (code < 0) {
    snprintf(message, sizeof message, "no sample clip of step %lld: %.500s", (long long)step, why.message);
    if (hooks && hooks->log)
      hooks->log(hooks->data, MS_LOG_WARNING, message);
  } else if (hooks && hooks->sample) {
    hooks->sample(hooks->data, step, job.prompt, output);
  }
  return 0;
}
