/* What a training run tells of each step: metrics.csv, hooks->metrics and hooks->progress. */
#pragma once
#include "base/compute.h"
#include "ms-train.h"
#include "stream/streamer.h"

struct ms_train_figures { /* of one step */
  int64_t step;           /* updates done, from 1 */
  double loss, smoothed_loss, learning_rate, gradient_norm;
  double seconds, tokens, flops; /* model FLOPs, without recomputation */
  double validation_loss;        /* NaN: not looked at */
  struct ms_streamer_stats lanes;
  int saved;               /* a checkpoint was written: the folder's size is told */
  int layers, disk_layers; /* of the model, and those at home on the disk; layers 0: not told (again) */
  double state_bytes;      /* working state on the disk, in files that no folder names */
};

/* Calls the hooks. Metrics: loss, smoothed_loss, learning_rate, gradient_norm, seconds, tokens_per_second,
 * model_flops_per_second, host_bytes (resident now); what the lanes did in seconds: compute_seconds,
 * read_seconds, write_seconds, optimizer_seconds, and waited_seconds (computing waited for them), with
 * read_bytes and written_bytes of the disk; layers and disk_layers at the first step after a start; mfu where
 * peak (FLOP/s of bf16) is known, that is above 0; validation_loss where it was measured; disk_bytes of the
 * folder `output` with the working state at the first step and after a checkpoint. */
void ms_train_report(const struct ms_hooks *hooks, const struct ms_train_figures *figures, double peak,
                     const char *output, int64_t steps, double spent, double seconds_per_step);
/* The processor's best rate of bf16 multiply-adds with all threads of the pool, in FLOP/s, measured for some
 * hundredths of a second. */
double ms_train_peak(struct ms_compute *compute);
