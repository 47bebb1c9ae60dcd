#include "train/stage.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/system.h"
#include "train/recipe-file.h"
#include "train/schedule.h"
#include "weights/params-file.h"

int ms_stage_open(struct ms_stage_loop *loop, const char *phase, const json_t *settings,
                  struct ms_compute *compute, struct ms_params *params, const char *output,
                  const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_optimizer_params optimizer = ms_optimizer_params_default();
  int code;
  memset(loop, 0, sizeof *loop);
  ms_train_job_init(&loop->job);
  loop->phase = phase;
  loop->hooks = hooks;
  loop->start = ms_seconds();
  loop->job.steps = 1000;
  loop->job.save_every = 500;
  code = ms_recipe_phase(settings, &loop->job, error);
  if (code < 0)
    return code;
  snprintf(loop->folder, sizeof loop->folder, "%s/%s", output, phase);
  if (mkdir(loop->folder, 0777) < 0 && errno != EEXIST)
    return ms_error_set(error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", loop->folder,
                        strerror(errno));
  optimizer.decay = (float)loop->job.weight_decay;
  optimizer.ema = (float)loop->job.ema;
  loop->state = (struct ms_checkpoint_state){&loop->optimizer, ms_optimizer_save, ms_optimizer_load};
  code = ms_optimizer_open(&loop->optimizer, compute, params, &optimizer, error);
  if (code == 0)
    code = ms_checkpoint_load(loop->folder, &loop->at, &loop->state, hooks, error);
  loop->grad = malloc((size_t)params->total * sizeof *loop->grad);
  if (code >= 0 && !loop->grad)
    return ms_error_set(error, MS_ENOMEM, "out of memory for gradients");
  return code < 0 ? code : 0;
}

int ms_stage_update(struct ms_stage_loop *loop, double loss, const char *figure, double value,
                    struct ms_error *error) {
  double norm = 0, lr = ms_schedule_lr(&loop->job, loop->at.step), spent;
  int code = ms_optimizer_step(&loop->optimizer, loop->grad, lr, &norm, error);
  if (code < 0)
    return code;
  loop->at.step++;
  loop->at.loss = loop->at.step == 1 ? loss : loop->at.loss + 0.02 * (loss - loop->at.loss);
  spent = ms_seconds() - loop->start;
  if (loop->hooks && loop->hooks->metrics) {
    struct ms_metric metrics[] = {{"loss", loss},
                                  {"learning_rate", lr},
                                  {"gradient_norm", norm},
                                  {"smoothed_loss", loop->at.loss},
                                  {figure, value}};
    loop->hooks->metrics(loop->hooks->data, loop->at.step, metrics, 5);
  }
  if (loop->hooks && loop->hooks->progress) {
    struct ms_progress progress = {loop->phase, loop->at.step, loop->job.steps, spent, -1};
    loop->hooks->progress(loop->hooks->data, &progress);
  }
  if ((loop->job.save_every > 0 && loop->at.step % loop->job.save_every == 0) ||
      loop->at.step == loop->job.steps)
    code = ms_checkpoint_save(loop->folder, &loop->at, &loop->state, 1, error);
  if (code == 0 && loop->hooks && loop->hooks->cancel && atomic_load(loop->hooks->cancel)) {
    ms_checkpoint_save(loop->folder, &loop->at, &loop->state, 1, NULL);
    code = ms_error_set(error, MS_ECANCELLED, "stopped at step %lld of the %s", (long long)loop->at.step,
                        loop->phase);
  }
  return code;
}

int ms_stage_finish(struct ms_stage_loop *loop, const char *output, const char *file,
                    struct ms_error *error) {
  struct ms_params *params = loop->optimizer.params;
  char path[1200];
  int code;
  ms_optimizer_read_average(&loop->optimizer, loop->grad);
  snprintf(path, sizeof path, "%s/%s", output, file);
  code = ms_params_save_values(params, loop->grad, MS_DTYPE_BF16, path, NULL, error);
  return code;
}

void ms_stage_release(struct ms_stage_loop *loop) {
  ms_optimizer_release(&loop->optimizer);
  free(loop->grad);
  loop->grad = NULL;
}
