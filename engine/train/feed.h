/* What a run trains on: encoded clips by bucket, those held out, and which of them come next. */
#pragma once
#include "train/split.h"
#include "train/store.h"

struct ms_feed {
  const struct ms_train_job *job; /* borrowed, as is source */
  const struct ms_clip_source *source;
  struct ms_split split;
  struct ms_store stores[MS_TRAIN_MAX_BUCKETS], held_out;
  int64_t *orders[MS_TRAIN_MAX_BUCKETS], epochs[MS_TRAIN_MAX_BUCKETS];
  int store_count;
  struct ms_latents_cache cache;
  int samples;      /* most clips of a batch, of validation too */
  int64_t elements; /* most latents of a batch */
};

/* Reads and encodes the clips of all buckets. keeps: what was encoded is kept in OUT/latents; 0: only looked
 * for there. */
int ms_feed_open(struct ms_feed *feed, struct ms_model *model, const struct ms_train_job *job,
                 const struct ms_clip_source *source, int keeps, const struct ms_hooks *hooks,
                 struct ms_error *error);
void ms_feed_release(struct ms_feed *feed);
/* The bucket of a step, by the buckets' shares. */
int ms_feed_bucket(const struct ms_feed *feed, int64_t step);
/* The next `count` items of bucket b: epochs of shuffled items, a short last batch is filled from the next
 * epoch. *drawn counts the bucket's items; to go back set it to what it was. */
void ms_feed_draw(struct ms_feed *feed, int b, int64_t *drawn, int count, int64_t *items);
/* A clip as a person knows it: its file, or its number among those of the source, from 1. Returns text. */
const char *ms_feed_name(const struct ms_feed *feed, int b, int64_t item, char *text, size_t size);
