/* The work of one step over a model whose layers do not all lie where they are computed, as data: operations
 * on lanes, and what each waits for. The streamer (streamer.h) carries it out; the timeline (timeline.h) runs
 * it against a hardware profile without any data. That both follow one schedule is what makes the second
 * tell the truth about the first.
 *
 *   struct ms_schedule_params params = ms_schedule_params_default ();
 *   params.layers = 98; ... params.backward = 1;
 *   code = ms_schedule_make (&schedule, &params, &error);
 *   for (i = 0; i < schedule.count; i++) ... schedule.ops[i] ...
 *   ms_schedule_release (&schedule);
 *
 * Layers are read into weight slots and updated there piece by piece on the way to the forward pass (the
 * update that the step before left to do), so that AdamW runs beside reading and computing. The backward pass
 * reads only weights. Slots and buffers are used again after the last operation that touches them: that is
 * all that keeps memory bounded. Operations of one lane run in the order in which they are listed, and wait
 * only for operations listed before them. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ms-error.h"

enum ms_lane {
  MS_LANE_READ,    /* disk to host */
  MS_LANE_WRITE,   /* host to disk */
  MS_LANE_HOST,    /* the optimizer */
  MS_LANE_UP,      /* host to device */
  MS_LANE_DOWN,    /* device to host */
  MS_LANE_COMPUTE, /* layers */
  MS_LANES
};

enum ms_op_kind {
  MS_OP_READ_STATE, /* a piece: weights into the slot; low words, moments, average, gradient into the ring */
  MS_OP_READ_AVERAGE,  /* a piece of the average into the ring */
  MS_OP_UPDATE,        /* AdamW on a piece; in a pass with averaged weights: rounding them into the slot */
  MS_OP_WRITE_STATE,   /* a piece back */
  MS_OP_WRITE_WEIGHTS, /* of a layer those that other ranks updated */
  MS_OP_READ_WEIGHTS,  /* of a layer into its slot */
  MS_OP_UP_WEIGHTS,
  MS_OP_FORWARD, /* layer -1: embedding; layers: head */
  MS_OP_BACKWARD,
  MS_OP_DOWN_INPUT, /* a layer's input, kept for the backward pass */
  MS_OP_WRITE_INPUT,
  MS_OP_READ_INPUT,
  MS_OP_UP_INPUT,
  MS_OP_DOWN_GRADIENT,
  MS_OP_WRITE_GRADIENT,
  MS_OPS
};

#define MS_OP_DEPENDENCIES 6

struct ms_op {
  enum ms_op_kind kind;
  enum ms_lane lane;
  int layer;            /* -1 .. layers */
  int piece;            /* of the layer; -1: all of it */
  int64_t begin, count; /* parameters of the piece, from the layer's first */
  int slot;   /* weight slot (READ_*, UPDATE, UP_WEIGHTS, FORWARD, BACKWARD); -1: the layer's home */
  int buffer; /* ring buffer of a piece, input buffer, or gradient buffer; -1: none */
  int needs[MS_OP_DEPENDENCIES]; /* indices of operations, ascending; need_count of them */
  int need_count;
  double bytes;   /* READ, WRITE, UP, DOWN: moved; UPDATE: of parameters, their number in `count` */
  double seconds; /* FORWARD, BACKWARD: as the params say; else 0 */
};

enum ms_home { MS_HOME_HOST, MS_HOME_DISK };

/* Where the inputs of layers wait for the backward pass. */
enum ms_input_home { MS_INPUT_DEVICE, MS_INPUT_HOST, MS_INPUT_DISK };

struct ms_schedule_params {
  int layers;
  const int64_t *counts;     /* [layers] parameters of each */
  const int64_t *trained;    /* [layers] how many of them have a state (the last ones); NULL: all */
  const enum ms_home *homes; /* [layers]; NULL: all in the host */
  /* [layers] how many of them have a state on any rank of a group: those of other ranks come when the layer
   * is computed. NULL: alone */
  const int64_t *gathered;
  int64_t outer, outer_trained; /* parameters of shard -1: always in the host, and on the device */
  int64_t piece;                /* parameters that are updated at a time */
  int device;                   /* 1: computes on a device with memory of its own; 0: the host computes */
  int slots, ring, gradient_buffers; /* weight slots, pieces of state under way, gradients under way */
  enum ms_input_home inputs;
  double input_bytes;                               /* of one layer's input */
  double weight_bytes, state_bytes, gradient_bytes; /* a parameter: 2; low word and moments (10), with average
                                                       14; 4 */
  double average_bytes;                             /* of them the average: 0 or 4 */
  int update, forward, backward;                    /* what the step does. update: an update waits */
  int average; /* forward with the averaged weights (then update and backward are 0) */
  int sync;    /* every operation waits for the one before it: nothing overlaps */
  const double *forward_seconds, *backward_seconds; /* [layers], for the timeline; NULL: 0 */
  double outer_forward_seconds, outer_backward_seconds;
};
struct ms_schedule_params
ms_schedule_params_default(void); /* pieces of 4 Mi, 2 slots, ring of 4, 2 gradients */

struct ms_schedule {
  struct ms_op *ops; /* owned */
  int count, room;
  double bytes[MS_LANES]; /* moved on each lane */
  double updated;         /* parameters */
};

/* 0, MS_ENOMEM or MS_EUSAGE (no layers, fewer than two slots or buffers). Arrays of params are read only
 * here. */
int ms_schedule_make(struct ms_schedule *schedule, const struct ms_schedule_params *params,
                     struct ms_error *error);
void ms_schedule_release(struct ms_schedule *schedule);
const char *ms_lane_name(enum ms_lane lane);  /* "read", "write", "optimizer", "up", "down", "compute" */
const char *ms_op_name(enum ms_op_kind kind); /* "read state" ... */
