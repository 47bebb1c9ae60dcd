/* Which clips of a source train and which are held out. */
#pragma once
#include "ms-train.h"

struct ms_split {
  int64_t *validation; /* [validation_count], ascending; owned */
  int64_t validation_count;
};

/* How many clips of a source of `count` a job holds out. */
int64_t ms_split_held_out(const struct ms_train_job *job, int64_t count);
/* A share of a small source is drawn from the seed (at least one clip of three or more, if the share is not
 * 0); of a source with more than 100,000 clips the last validation_clips are held out. */
int ms_split_init(struct ms_split *split, const struct ms_train_job *job, const struct ms_clip_source *source,
                  struct ms_error *error);
void ms_split_release(struct ms_split *split);
/* Numbers of the training clips of a bucket: *numbers (owned by the caller) and their count. MS_EINPUT if
 * none is left. */
int ms_split_training(const struct ms_split *split, const struct ms_clip_source *source,
                      const struct ms_train_bucket *bucket, int64_t **numbers, int64_t *count,
                      struct ms_error *error);
/* The order in which `items` items are visited in an epoch: order [items]. */
void ms_split_order(uint64_t seed, int bucket, int64_t epoch, int64_t items, int64_t *order);
