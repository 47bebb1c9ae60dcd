/* The flow-matching objective (Lipman et al. 2023, as in Wan): x = (1 - s) x0 + s n, the network predicts v =
 * n - x0.
 *
 * loss = mean over batch, channels, cells of w (v_hat - v)^2, over the batch's mean w, with w = 1 +
 * subject_weight where the mask is. All random draws depend on (seed, step, sample) alone. */
#pragma once
#include "train/store.h"

#define MS_VALIDATION_SAMPLES 4 /* noise levels that a held-out clip is judged at, in one pass */

struct ms_objective {
  struct ms_model *model;
  const struct ms_train_job *job;
  int samples_max;
  int64_t elements_max;                    /* of a batch */
  float *x, *target, *velocity, *gradient; /* [samples][C, lattice]; owned */
  float *text;                             /* [samples][text_len, text_dim]; owned */
  const float **text_rows_at;
  int *text_rows;
  float *timesteps;
  double *sigmas;
  const uint8_t **masks;
  struct ms_dit_batch batch; /* ready for ms_dit_forward after make */
};

int ms_objective_init(struct ms_objective *objective, struct ms_model *model, const struct ms_train_job *job,
                      int samples_max, int64_t elements_max, struct ms_error *error);
void ms_objective_release(struct ms_objective *objective);
/* A training batch of items [samples] of the store. draw numbers the batch (step * accumulate + micro-batch).
 */
int ms_objective_make(struct ms_objective *objective, const struct ms_store *store, const int64_t *items,
                      int samples, uint64_t draw, struct ms_error *error);
/* A validation batch: sample i at sigmas[i], first caption, noise from the item's number alone. */
int ms_objective_make_fixed(struct ms_objective *objective, const struct ms_store *store,
                            const int64_t *items, const double *sigmas, int samples, struct ms_error *error);
/* After the forward pass wrote objective->velocity: the loss; with scale > 0 also objective->gradient = scale
 * dloss/dvelocity. */
double ms_objective_loss(struct ms_objective *objective, double scale);
