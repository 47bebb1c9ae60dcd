/* What train has resident at its peak: see model/memory.h. */
#pragma once
#include "model/memory.h"
#include "ms-train.h"

struct ms_train_clips {
  int64_t count; /* of the source */
  int masks;     /* it has subject masks */
};

/* model: networks opened, weights not needed; job: sizes resolved (width, height and frames not 0, or
 * buckets). The whole state counts: weights, gradients, moments, average, clips, activations of the largest
 * batch or validation pass, the model that makes sample clips. */
void ms_train_memory(const struct ms_model *model, const struct ms_train_job *job,
                     const struct ms_train_clips *clips, struct ms_memory *need);
/* How many items of a bucket are stored, and how many clips are held out for validation. */
int64_t ms_train_items(const struct ms_train_bucket *bucket, int64_t source_count, int64_t training_clips);
