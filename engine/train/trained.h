/* The model while it is trained: its state by shard where the placement puts it, the streamer that brings
 * layers to the DiT, and AdamW's settings.
 *
 *   code = ms_trained_open (&trained, model, job, &clips, machine, hooks, &error);
 *   code = ms_trained_begin (&trained, &error);      // lanes start
 *   ... ms_dit_forward_all (dit, ...), ms_dit_backward_all (dit, ...) ...
 *   code = ms_trained_end (&trained, code, &error);
 *   code = ms_trained_update (&trained, lr, &norm, &error);
 *
 * An update is carried out while the next step's layers are loaded; ms_trained_flush does what waits. */
#pragma once
#include "model/model.h"
#include "stream/dit-file.h"
#include "stream/placement.h"
#include "stream/state-file.h"
#include "stream/streamer.h"
#include "train/checkpoint.h"
#include "train/memory.h"
#include "train/place.h"

struct ms_trained {
  struct ms_model *model; /* borrowed */
  const struct ms_train_job *job;
  struct ms_group *group; /* borrowed; NULL: alone */
  struct ms_train_need need;
  struct ms_placement placement;
  struct ms_shard_layout layout[MS_MAX_LAYERS + 1];
  struct ms_shard_store *store;
  struct ms_streamer *streamer;
  struct ms_trace trace;
  int64_t updates;   /* done or waiting */
  char folder[1100]; /* OUT/state, "" if nothing lies on the disk */
};

/* What `need` comes to within the machine's budgets: 0 whether it fits or not. */
int ms_trained_place(struct ms_placement *placement, struct ms_train_need *need,
                     const struct ms_machine *machine, struct ms_error *error);

/* Takes the memory that the placement says, makes OUT/state for what is at home on the disk, reads the
 * weights (from the DiT's parameters if they are in memory, which are then released, else from the model's
 * folder) and binds the DiT. Frozen parameters of the job's method are marked. MS_EBUDGET, MS_ENOMEM,
 * MS_EOUTPUT (the disk has no room), MS_EINPUT (weights), MS_ECANCELLED. */
int ms_trained_open(struct ms_trained *trained, struct ms_model *model, const struct ms_train_job *job,
                    const struct ms_train_clips *clips, const struct ms_machine *machine,
                    const struct ms_hooks *hooks, struct ms_error *error);
void ms_trained_close(struct ms_trained *trained);

/* Around the passes of a step. */
int ms_trained_begin(struct ms_trained *trained, enum ms_stream_kind kind, int64_t step,
                     struct ms_error *error);
int ms_trained_end(struct ms_trained *trained, int code, struct ms_error *error);
/* After a step that ended well: leaves its update to do. MS_ENOTFINITE, and the gradients are dropped: names
 * the first parameter whose gradient is not finite. */
int ms_trained_update(struct ms_trained *trained, double lr, double *norm, struct ms_error *error);
int ms_trained_flush(struct ms_trained *trained, struct ms_error *error);

/* For ms_checkpoint_save and load; flushed before. */
struct ms_checkpoint_state ms_trained_state(struct ms_trained *trained);
/* In a group: ranks but the first, while that saves, until it calls served. */
int ms_trained_serve(struct ms_trained *trained, struct ms_error *error);
void ms_trained_served(struct ms_trained *trained);
/* The averaged weights (or the weights) as OUT/dit.safetensors, with adapters merged in, which are also a
 * file beside it; flushed before. MS_EOUTPUT. Of a group rank 0 writes, and the others serve it. */
int ms_trained_export(struct ms_trained *trained, struct ms_error *error);
