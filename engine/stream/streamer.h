/* Carries out the schedule of a step: lanes that read, update and write beside the layers that the caller's
 * thread computes, and the source (model/dit.h) through which the DiT gets each layer when it is there.
 *
 *   code = ms_streamer_open (&streamer, &params, &error);
 *   ms_dit_prepare_source (dit, ms_streamer_source (streamer), precision, 1, &error);
 *   for each step:
 *     ms_streamer_begin (streamer, MS_STREAM_STEP, &error);      // the update that waits is done on the way
 *     ms_dit_forward_all (dit, ...); ms_dit_backward_all (dit, ...);
 *     ms_streamer_end (streamer, code, &error);
 *     ms_streamer_norm (streamer, &norm, &name);
 *     ms_streamer_put_update (streamer, &update);                // waits for the next step, or flush
 *   ms_streamer_flush (streamer, &error);                        // before a checkpoint
 *
 * In a group (the store's) all ranks make the same passes: each layer's gradient is summed over the ranks
 * when it is complete, and its new weights or averages are brought together when it is computed.
 *
 * Results do not depend on homes, slots, pieces, budgets or threads: each update is made once from the same
 * numbers, and sums run over shards in order. Functions are called from one thread, that which computes. */
#pragma once
#include "model/dit.h"
#include "stream/shard-store.h"
#include "stream/trace.h"
#include "stream/update.h"

struct ms_streamer;

struct ms_streamer_params {
  struct ms_shard_store *store;              /* borrowed, as all below */
  const struct ms_params *params;            /* the DiT's */
  const struct ms_schedule_params *schedule; /* layers, counts, homes, piece, slots, ...: must be those of the
                                                store; what a step does is not read */
  struct ms_compute *compute;                /* its kernels; its pool sums gradients between layers */
  const char *folder;                        /* for inputs on disk; NULL: none are */
  int64_t input_elements;   /* floats of one layer's inputs, all batches, at most; 0: not lent */
  const atomic_int *cancel; /* NULL: never; of a group all ranks' flags are raised between the same passes */
  struct ms_trace *trace;   /* NULL: not wanted */
};

int ms_streamer_open(struct ms_streamer **streamer, const struct ms_streamer_params *params,
                     struct ms_error *error);
void ms_streamer_close(struct ms_streamer **streamer);
const struct ms_dit_source *ms_streamer_source(struct ms_streamer *streamer);

enum ms_stream_kind {
  MS_STREAM_STEP,    /* forward and backward */
  MS_STREAM_FORWARD, /* forward alone, with the weights */
  MS_STREAM_AVERAGE, /* forward alone, with their average; as FORWARD if there is none */
  MS_STREAM_FLUSH    /* neither: only the update that waits */
};
/* Lanes begin to work. An update that waits is done on the way (before an AVERAGE it must be flushed). */
int ms_streamer_begin(struct ms_streamer *streamer, enum ms_stream_kind kind, struct ms_error *error);
/* Waits for the lanes. code: what became of the computing; if it failed the lanes stop as soon as what they
 * hold is consistent, and an update that was not finished still waits for the rest. Returns code, or the
 * first failure of a lane. In a group a pass that was not finite on a rank is ended by all of them together
 * and fails on all; another failure tears the group. */
int ms_streamer_end(struct ms_streamer *streamer, int code, struct ms_error *error);
/* Does all of an update that waits. */
int ms_streamer_flush(struct ms_streamer *streamer, struct ms_error *error);
/* After a step: the global norm of the gradients; not finite: *name is the first parameter (in the list's
 * order) with a gradient that is not, or NULL. */
double ms_streamer_norm(const struct ms_streamer *streamer, const char **name); /* in a group: of all */
/* The step's gradients are to be applied so. Not called after a step: they are dropped. */
void ms_streamer_put_update(struct ms_streamer *streamer, const struct ms_update *update);
int ms_streamer_waits(const struct ms_streamer *streamer); /* whether an update waits */

struct ms_streamer_stats { /* of the last pass that ended */
  double seconds, waited;  /* waited: of the compute lane, for lanes; and for the last of them at the end */
  double busy[MS_LANES], bytes[MS_LANES];
};
void ms_streamer_stats(const struct ms_streamer *streamer, struct ms_streamer_stats *stats);
void ms_streamer_set_step(struct ms_streamer *streamer, int64_t step); /* for the trace */
