/* Sampling with a model that does not fit in memory: its layers pass through, for all texts of a step at
 * once.
 *
 *   ms_sample_need (&model, &plan, precision, &need);
 *   need.job.host_budget = ...; ms_placement_make (&placement, &need.job, &error);
 *   code = ms_streamed_open (&streamed, &model, &placement, precision, hooks, &error);
 *   ... ms_streamed_forward (&streamed, batches, count, velocities, &error) ...
 *
 * Layers at home in the host are read once, the others from the model's own file in every pass. The bits are
 * those of a model that is in memory whole. */
#pragma once
#include "model/memory.h"
#include "sample/stages.h"
#include "stream/dit-file.h"
#include "stream/placement.h"
#include "stream/streamer.h"

struct ms_sample_need {
  struct ms_placement_job job; /* budgets left 0 for the caller to set; points into counts */
  int64_t counts[MS_MAX_LAYERS];
};

/* What the clip asks of a placement. model: networks opened, weights not needed. Must not be copied
 * afterwards. */
void ms_sample_need(const struct ms_model *model, const struct ms_stage_plan *plan,
                    enum msk_precision precision, struct ms_sample_need *need);

struct ms_streamed {
  struct ms_model *model; /* borrowed */
  struct ms_schedule_params schedule;
  struct ms_dit_file file;
  struct ms_shard_store *store;
  struct ms_streamer *streamer;
};

/* Reads the layers that are at home in the host, and binds the DiT. The placement must outlive it. MS_ENOMEM,
 * MS_EINPUT (weights), MS_ECANCELLED. */
int ms_streamed_open(struct ms_streamed *streamed, struct ms_model *model,
                     const struct ms_placement *placement, enum msk_precision precision,
                     const struct ms_hooks *hooks, struct ms_error *error);
void ms_streamed_close(struct ms_streamed *streamed);
/* As ms_dit_forward_all without keeping anything. */
int ms_streamed_forward(struct ms_streamed *streamed, const struct ms_dit_batch *batches, int count,
                        float *const *velocities, struct ms_error *error);
