#include "train/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"

#define LARGE_SOURCE 100000
#define STREAM_SPLIT ((uint64_t)5 << 40)
#define STREAM_ORDER ((uint64_t)6 << 40)

static int ascending(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

static void shuffle(int64_t *list, int64_t count, struct ms_random *random) {
  for (int64_t i = count - 1; i > 0; i--) {
    int64_t j = ms_random_below(random, i + 1), t = list[i];
    list[i] = list[j];
    list[j] = t;
  }
}

int64_t ms_split_held_out(const struct ms_train_job *job, int64_t count) {
  int64_t n;
  if (count > LARGE_SOURCE)
    return job->validation_clips;
  if (!(job->validation > 0) || count < 3)
    return 0;
  n = (int64_t)llround(job->validation * (double)count);
  n = n < 1 ? 1 : n;
  if (job->validation_clips && n > job->validation_clips)
    n = job->validation_clips;
  return n > count - 1 ? count - 1 : n;
}

int ms_split_init(struct ms_split *split, const struct ms_train_job *job, const struct ms_clip_source *source,
                  struct ms_error *error) {
  int64_t n = ms_split_held_out(job, source->count);
  memset(split, 0, sizeof *split);
  if (!n)
    return 0;
  split->validation = malloc((size_t)n * sizeof *split->validation);
  if (!split->validation)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the list of clips");
  split->validation_count = n;
  if (source->count > LARGE_SOURCE) {
    for (int64_t i = 0; i < n; i++)
      split->validation[i] = source->count - n + i;
  } else {
    struct ms_random random = {.seed = job->seed, .stream = STREAM_SPLIT};
    int64_t *all = malloc((size_t)source->count * sizeof *all);
    if (!all)
      return ms_error_set(error, MS_ENOMEM, "out of memory for the list of clips");
    for (int64_t i = 0; i < source->count; i++)
      all[i] = i;
    shuffle(all, source->count, &random);
    memcpy(split->validation, all, (size_t)n * sizeof *all);
    free(all);
    qsort(split->validation, (size_t)n, sizeof *split->validation, ascending);
  }
  return 0;
}

void ms_split_release(struct ms_split *split) {
  free(split->validation);
  memset(split, 0, sizeof *split);
}

int ms_split_training(const struct ms_split *split, const struct ms_clip_source *source,
                      const struct ms_train_bucket *bucket, int64_t **numbers, int64_t *count,
                      struct ms_error *error) {
  int64_t first = bucket->first, end = source->count, n = 0, *list;
  if (bucket->clips && source->count > LARGE_SOURCE && first + bucket->clips < end)
    end = first + bucket->clips;
  if (first < 0 || first >= end)
    return ms_error_set(error, MS_EINPUT,
                        "the clips of \"%s\" end at number %lld, but the run asks for those from %lld on",
                        source->name, (long long)source->count, (long long)first);
  list = malloc((size_t)(end - first) * sizeof *list);
  if (!list)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the list of clips");
  for (int64_t clip = first; clip < end; clip++)
    if (!split->validation_count ||
        !bsearch(&clip, split->validation, (size_t)split->validation_count, sizeof clip, ascending))
      list[n++] = clip;
  if (!n) {
    free(list);
    return ms_error_set(error, MS_EINPUT, "all clips of \"%s\" are held out: lower the validation share",
                        source->name);
  }
  *numbers = list;
  *count = n;
  return 0;
}

void ms_split_order(uint64_t seed, int bucket, int64_t epoch, int64_t items, int64_t *order) {
  struct ms_random random = {
      .seed = seed, .stream = STREAM_ORDER + (uint64_t)epoch * MS_TRAIN_MAX_BUCKETS + (uint64_t)bucket};
  for (int64_t i = 0; i < items; i++)
    order[i] = i;
  shuffle(order, items, &random);
}
