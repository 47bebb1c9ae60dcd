/* AdamW over the flat parameters of a network, with clipping and an optional moving average of the weights
 * (EMA).
 *
 * The state lies beside ms_params: for bf16 parameters params->data is the high word of a split master
 * (msk-adamw.h) and the optimizer holds the low words; for float32 parameters data is the master itself.
 * Matrices decay, vectors do not, frozen parameters are left alone. Same bits for any number of threads. */
#pragma once
#include "base/compute.h"
#include "weights/params.h"
#include "weights/safetensors.h"

struct ms_optimizer_params {
  float beta1, beta2, eps, decay;
  float clip_norm; /* 0: no clipping */
  float ema;       /* moving average with decay min (ema, (1 + n) / (10 + n)) after n updates; 0: off */
};
struct ms_optimizer_params ms_optimizer_params_default(void); /* 0.9, 0.99, 1e-8, 0.01, 1, 0 */

struct ms_optimizer {
  struct ms_compute *compute; /* borrowed */
  struct ms_params *params;   /* borrowed; allocated */
  struct ms_optimizer_params settings;
  float *m, *v; /* [total], owned */
  uint16_t *lo; /* [total] for bf16 parameters, owned */
  float *ema;   /* [total] or NULL, owned */
  int64_t step; /* updates done */
};

/* Starts from params->data (low words, moments zero; EMA = the weights). 0 or MS_ENOMEM. */
int ms_optimizer_open(struct ms_optimizer *optimizer, struct ms_compute *compute, struct ms_params *params,
                      const struct ms_optimizer_params *settings, struct ms_error *error);
void ms_optimizer_release(struct ms_optimizer *optimizer);
/* One update with gradient grad[total] (unclipped; its global norm is written to *norm if not NULL).
 * MS_ENOTFINITE, and nothing is touched, if the norm is not finite: the message names the first parameter
 * whose gradient is not. */
int ms_optimizer_step(struct ms_optimizer *optimizer, const float *grad, double lr, double *norm,
                      struct ms_error *error);
/* The averaged weights (the weights themselves if EMA is off) as float32 [total]. */
void ms_optimizer_read_average(const struct ms_optimizer *optimizer, float *out);
/* Writes weights as stored, low words, moments, EMA and the step to a safetensors file, and reads them back
 * bit for bit: state of a checkpoint (checkpoint.h), data: the optimizer. Load is MS_EINPUT if the file was
 * made for other parameters, or its values do not give *sum. */
int ms_optimizer_save(void *optimizer, const char *path, uint64_t *sum, struct ms_error *error);
int ms_optimizer_load(void *optimizer, const char *path, uint64_t sum, struct ms_error *error);
