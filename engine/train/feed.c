#include "train/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/text.h"
#include "train/memory.h"
#include "train/objective.h"

#define STREAM_BUCKET ((uint64_t)4 << 40)

static int fill_bucket(struct ms_feed *feed, struct ms_model *model, int b,
                       const struct ms_train_bucket *bucket, const struct ms_hooks *hooks,
                       struct ms_error *error) {
  int64_t *numbers = NULL, clips = 0, items;
  struct ms_store *store = &feed->stores[b];
  int code = ms_split_training(&feed->split, feed->source, bucket, &numbers, &clips, error);
  if (code < 0)
    return code;
  items = ms_train_items(bucket, feed->source->count, clips);
  code = ms_store_fill(store, model, feed->source, bucket, numbers, clips, items, &feed->cache, hooks, error);
  free(numbers);
  feed->store_count = b + 1;
  if (code < 0)
    return code;
  feed->orders[b] = malloc((size_t)items * sizeof *feed->orders[b]);
  if (!feed->orders[b])
    return ms_error_set(error, MS_ENOMEM, "out of memory for the order of clips");
  feed->epochs[b] = -1;
  if (ms_store_elements(store) * bucket->batch > feed->elements)
    feed->elements = ms_store_elements(store) * bucket->batch;
  if (bucket->batch > feed->samples)
    feed->samples = bucket->batch;
  return 0;
}

int ms_feed_open(struct ms_feed *feed, struct ms_model *model, const struct ms_train_job *job,
                 const struct ms_clip_source *source, int keeps, const struct ms_hooks *hooks,
                 struct ms_error *error) {
  const struct ms_train_bucket single = {
      .width = job->width, .height = job->height, .frames = job->frames, .batch = job->batch, .share = 1};
  const struct ms_train_bucket *buckets = job->bucket_count ? job->buckets : &single;
  int count = job->bucket_count ? job->bucket_count : 1, code;
  memset(feed, 0, sizeof *feed);
  feed->job = job;
  feed->source = source;
  feed->samples = MS_VALIDATION_SAMPLES;
  code = ms_split_init(&feed->split, job, source, error);
  ms_latents_cache_open(&feed->cache, job->output, model, hooks);
  feed->cache.full = !keeps;
  for (int b = 0; b < count && code == 0; b++)
    code = fill_bucket(feed, model, b, &buckets[b], hooks, error);
  if (code < 0 || !feed->split.validation_count)
    return code;
  code =
      ms_store_fill(&feed->held_out, model, source, buckets, feed->split.validation,
                    feed->split.validation_count, feed->split.validation_count, &feed->cache, hooks, error);
  if (code == 0 && ms_store_elements(&feed->held_out) * MS_VALIDATION_SAMPLES > feed->elements)
    feed->elements = ms_store_elements(&feed->held_out) * MS_VALIDATION_SAMPLES;
  return code;
}

void ms_feed_release(struct ms_feed *feed) {
  for (int b = 0; b < feed->store_count; b++) {
    ms_store_release(&feed->stores[b]);
    free(feed->orders[b]);
  }
  ms_store_release(&feed->held_out);
  ms_split_release(&feed->split);
  memset(feed, 0, sizeof *feed);
}

int ms_feed_bucket(const struct ms_feed *feed, int64_t step) {
  struct ms_random random = {.seed = feed->job->seed, .stream = STREAM_BUCKET + (uint64_t)step};
  double total = 0, at = ms_random_uniform(&random);
  for (int b = 0; b < feed->store_count; b++)
    total += feed->stores[b].bucket.share;
  at *= total;
  for (int b = 0; b < feed->store_count - 1; b++) {
    at -= feed->stores[b].bucket.share;
    if (at < 0)
      return b;
  }
  return feed->store_count - 1;
}

void ms_feed_draw(struct ms_feed *feed, int b, int64_t *drawn, int count, int64_t *items) {
  int64_t all = feed->stores[b].items;
  for (int i = 0; i < count; i++) {
    int64_t number = (*drawn)++;
    if (number / all != feed->epochs[b]) {
      feed->epochs[b] = number / all;
      ms_split_order(feed->job->seed, b, feed->epochs[b], all, feed->orders[b]);
    }
    items[i] = feed->orders[b][number % all];
  }
}

const char *ms_feed_name(const struct ms_feed *feed, int b, int64_t item, char *text, size_t size) {
  int64_t clip = feed->stores[b].clips[item];
  char name[256];
  if (feed->source->read_identity &&
      feed->source->read_identity(feed->source->data, clip, name, sizeof name, NULL, NULL) == 0)
    return ms_text_printable(name, text, size);
  snprintf(text, size, "%lld", (long long)clip + 1);
  return text;
}
