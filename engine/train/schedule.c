#include "train/schedule.h"

#include <math.h>

double ms_schedule_lr(const struct ms_train_job *job, int64_t step) {
  int64_t decay_from = job->decay_from >= 0 ? job->decay_from : job->warmup;
  double lr = job->lr;
  if (step < job->warmup)
    return lr * (double)(step + 1) / (double)job->warmup;
  if (step > decay_from && job->steps > decay_from) {
    double part = (double)(step - decay_from) / (double)(job->steps - decay_from);
    double fall = job->cosine ? 0.5 * (1 + cos(M_PI * part)) : 1 - part;
    lr *= job->final_lr + (1 - job->final_lr) * fall;
  }
  return lr;
}
