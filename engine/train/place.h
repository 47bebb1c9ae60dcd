/* What a training run asks of a placement (stream/placement.h): shard by shard how much is trained, and how
 * much memory everything else takes. The planner and the trainer ask for the same. */
#pragma once
#include "group/group.h"
#include "model/dit.h"
#include "stream/placement.h"
#include "train/memory.h"

/* Operations that a run's trace keeps, where one is wanted: some steps of a large model. */
#define MS_TRAIN_TRACED 200000

struct ms_train_need {
  struct ms_placement_job job; /* for the CPU, budgets left 0 for the caller to set; points into the arrays */
  int64_t counts[MS_MAX_LAYERS], trained[MS_MAX_LAYERS];
  /* What is trained on all ranks of a group; trained and outer_trained are then this rank's share of it. */
  int64_t gathered[MS_MAX_LAYERS], outer_gathered;
  /* Peak of the host while clips are encoded. The training's memory is taken after that. */
  uint64_t encode_bytes;
};

/* Model FLOPs of a step for one clip, without the layers' recomputation: a backward pass is two forward
 * passes, but makes no products for the gradients of matrices that the method leaves alone. */
double ms_train_flops(const struct ms_dit *dit, enum ms_train_method method, const int lattice[3],
                      int coarse);
/* model: networks opened, of method lora with its rank, weights not needed; job: sizes resolved; group: of
 * which the need is that of this rank, NULL: alone. Must not be copied afterwards. */
void ms_train_need(const struct ms_model *model, const struct ms_train_job *job,
                   const struct ms_train_clips *clips, const struct ms_group *group,
                   struct ms_train_need *need);
