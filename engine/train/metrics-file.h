/* metrics.csv of a run: a line a step. A resumed run cuts the lines after its checkpoint and goes on. */
#pragma once
#include <stdint.h>
#include <stdio.h>
#include "ms-error.h"

struct ms_metrics_file {
  FILE *file; /* owned */
};

struct ms_metrics_row {
  int64_t step; /* updates done, from 1 */
  double loss, learning_rate, gradient_norm, seconds, tokens,
      validation_loss; /* validation NaN: left empty */
};

/* Keeps the lines of steps up to `step`. MS_EOUTPUT. */
int ms_metrics_file_open(struct ms_metrics_file *metrics, const char *path, int64_t step,
                         struct ms_error *error);
int ms_metrics_file_add(struct ms_metrics_file *metrics, const struct ms_metrics_row *row,
                        struct ms_error *error);
void ms_metrics_file_close(struct ms_metrics_file *metrics);
