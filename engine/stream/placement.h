/* Where the parts of a model lie while a job computes with it, within hard budgets of host and device memory:
 * which layers are at home in the host and which on the disk, where the inputs of layers wait for the
 * backward pass, and how large the buffers between the tiers are. Made before anything is allocated; who
 * allocates what it says keeps the budgets.
 *
 *   struct ms_placement_job job = {.layers = 30, .counts = counts, .training = 1, .moment_bits = 32, ...};
 *   code = ms_placement_make (&placement, &job, &error);
 *   if (code == 0 && !placement.fits) ... placement.short_of, placement.short_bytes ...
 *   code = ms_schedule_make (&schedule, &placement.params, &error);
 *   ms_placement_release (&placement);
 *
 * As many layers as fit are at home in the host, spread evenly over the depth, so that reading one from the
 * disk overlaps with computing others. More memory never means more disk traffic. */
#pragma once
#include "msk-adamw.h"
#include "stream/schedule.h"

/* Regions of a home and buffers begin and end at multiples of this, in memory and in files. */
#define MS_PLACEMENT_ALIGN 4096
/* Inputs of layers under way where they do not all wait in memory: see schedule.h. */
#define MS_PLACEMENT_INPUTS 3

struct ms_placement_job {
  int layers;
  const int64_t *counts;        /* [layers] parameters of each */
  const int64_t *trained;       /* [layers] how many of them are trained; NULL: all */
  int64_t outer, outer_trained; /* of shard -1 */
  int training;                 /* 0: weights alone, and a disk home is the model's own file */
  int moment_bits;              /* 32 or 8 */
  int average;                  /* an average of the weights is kept, and passes are made with it */
  double weight_bytes;          /* a parameter; 0: 2 */
  double gradient_bytes;        /* a parameter; 0: 4, on a device 2 */
  int device;                   /* 1: a device with memory of its own computes */
  uint64_t host_fixed;  /* bytes of the host beside all this: program, codec, text encoder, clips, media */
  uint64_t working;     /* activations and the packed memory of shard -1 and of one layer: on the device if
                           there is one, else in the host */
  uint64_t input_bytes; /* of one layer's input, all batches of a step together; not training: 0 */
  uint64_t slab_bytes;  /* of an input's buffer on a device that computes layers in slabs, so that inputs are
                           never there whole; 0: it does not */
  /* 0: no limit. Without a device device_budget limits a part of the host's bytes: `working`, weight slots
   * and buffers of inputs. */
  uint64_t host_budget, device_budget;
};

/* What one tier holds, in bytes. */
struct ms_placement_bytes {
  uint64_t fixed, working;         /* as the job says */
  uint64_t outer;                  /* shard -1: weights, state, gradient; on a device weights and gradient */
  uint64_t layers;                 /* weights, state and gradients of the layers at home there */
  uint64_t slots, ring, gradients; /* buffers of weights, of pieces of state, of gradients */
  uint64_t inputs;                 /* of layers */
};

struct ms_placement {
  int fits;
  const char *short_of; /* "host" or "device"; NULL: it fits */
  uint64_t short_bytes; /* by how much, even with everything on the disk */
  /* Filled but for the seconds; update, forward and backward as in a step of the job. Its arrays belong to
   * the placement. slots, ring and gradient_buffers are valid numbers even where none are allocated. */
  struct ms_schedule_params params;
  int host_layers; /* layers at home in the host */
  /* Buffers to allocate, each of so many bytes: weight slots in the host (none if every layer is there and
   * there is no average) and on the device; pieces of state in the host (none without layers on the disk);
   * gradients of what is trained of a layer in the host (none if every layer is there) and on the device. */
  int host_slots, device_slots, ring, host_gradients, device_gradients;
  uint64_t slot_bytes, ring_bytes, gradient_bytes;
  int host_inputs, device_inputs; /* buffers of input_bytes (slab_bytes) rounded up */
  struct ms_placement_bytes host, device, disk;
  /* Sums. Without a device device_bytes is the part of host_bytes that device_budget limits. disk_bytes: of
   * OUT/state/, without checkpoints. */
  uint64_t host_bytes, device_bytes, disk_bytes;
  double disk_traffic; /* bytes that a step reads and writes there; not training: that a pass reads */
};

/* 0 whether it fits or not (then the placement is the smallest there is), MS_ENOMEM, or MS_EUSAGE (no layers,
 * other moment bits). Keeps nothing of the job. */
int ms_placement_make(struct ms_placement *placement, const struct ms_placement_job *job,
                      struct ms_error *error);
void ms_placement_release(struct ms_placement *placement);

/* Bytes of a trained parameter beside weight and gradient: low word, two moments, average. */
double ms_placement_state_bytes(const struct ms_placement_job *job);
/* Bytes of the state of a piece of so many parameters: low words, first and second moments, average; of 8-bit
 * moments values and scales apart, each part rounded up. */
uint64_t ms_placement_piece_bytes(const struct ms_placement_job *job, int64_t piece);
/* Bytes of a shard at home anywhere: weights and gradient, each rounded up, and the state of its pieces, all
 * of them of the full length. Not training: weights alone. */
uint64_t ms_placement_home_bytes(const struct ms_placement_job *job, int64_t piece, int64_t count,
                                 int64_t trained);
