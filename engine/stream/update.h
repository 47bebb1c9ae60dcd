/* AdamW over a piece of a shard's state: what the optimizer lane does. */
#pragma once
#include "base/compute.h"
#include "stream/shard-store.h"
#include "weights/params.h"

struct ms_update {        /* one step's */
  struct msk_adamw adamw; /* decay: of matrices */
  float average;          /* decay of the moving average of the weights */
  uint32_t seed;          /* of the rounding of 8-bit moments */
};

struct ms_update_piece {
  const struct ms_params
      *params; /* names, kinds and places; frozen ones are left alone, vectors do not decay */
  const struct ms_compute *compute; /* its kernels */
  struct ms_pool *pool;             /* that runs them */
  const struct ms_shard_store *store;
  int64_t flat;  /* place of the piece in the flat list */
  int64_t first; /* place of the piece among the shard's owned parameters */
  const struct ms_piece *piece;
  uint16_t *weights; /* [count] of the piece */
  void *block;
  const float *gradient; /* [count] */
};

/* Same bits for any number of threads and any size of pieces. A block of 8-bit moments that begins in a
 * matrix decays whole. */
void ms_update_run(const struct ms_update_piece *piece, const struct ms_update *update);
/* Sum of squares of gradient [count] at flat place `flat`, frozen parameters left out; in pieces whose sums
 * are added in order, so the same for any number of threads. sums: memory for ms_update_sums (count) doubles.
 */
int64_t ms_update_sums(int64_t count);
double ms_update_square(const struct ms_params *params, const struct ms_compute *compute,
                        struct ms_pool *pool, int64_t flat, int64_t count, const float *gradient,
                        double *sums);
/* The first parameter in [flat, flat + count) with a gradient that is not finite; NULL: none. */
const char *ms_update_bad_gradient(const struct ms_params *params, int64_t flat, int64_t count,
                                   const float *gradient);
