#include "train/memory.h"

#include <string.h>

#include "train/objective.h"
#include "train/split.h"
#include "train/store.h"

/* A small data set is seen through so many windows of each clip. */
#define WINDOWS_OF_A_CLIP 8
#define SMALL_SOURCE 1000
/* Bytes of a clip's captions with what malloc adds. */
#define CAPTION_BYTES 160
/* Decoders of video files with what they leave mapped and touched; the size of the clips trained on does not
 * tell it. */
#define READER_BYTES ((size_t)20 << 20)
/* The codec keeps its buffers of whole clips up to this size. */
#define CODEC_KEPT_BYTES ((size_t)96 << 20)

int64_t ms_train_items(const struct ms_train_bucket *bucket, int64_t source_count, int64_t training_clips) {
  if (bucket->clips)
    return bucket->clips;
  return source_count <= SMALL_SOURCE ? training_clips * WINDOWS_OF_A_CLIP : training_clips;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Sizes of one bucket. */
struct shape {
  int lattice[3];
  size_t elements, cells; /* of a clip's latents */
};

static struct shape shape_of(const struct ms_model *model, const struct ms_train_bucket *bucket) {
  struct shape shape;
  ms_model_latent_size(model, bucket->frames, bucket->height, bucket->width, shape.lattice);
  shape.cells = (size_t)shape.lattice[0] * shape.lattice[1] * shape.lattice[2];
  shape.elements = shape.cells * (size_t)ms_codec_channels(model->codec);
  return shape;
}

static size_t stored_bytes(const struct shape *shape, int64_t items, int masks) {
  return (size_t)items *
         (shape->elements * sizeof(float) + (masks ? shape->cells : 0) + MS_STORE_CAPTIONS * CAPTION_BYTES);
}

/* While clips are encoded: pixels as bytes and floats, and the encoder, which may stay. */
static size_t encoding_bytes(const struct ms_model *model, const struct ms_train_bucket *bucket,
                             const struct shape *shape, size_t *kept) {
  size_t pixels = (size_t)bucket->width * bucket->height * bucket->frames;
  size_t encoder = ms_model_codec_bytes(model, MSK_PRECISION_BF16, 0, shape->lattice[0], shape->lattice + 1);
  *kept = encoder <= CODEC_KEPT_BYTES ? encoder : 0;
  return pixels * (3 + 3 * sizeof(float)) + encoder;
}

static size_t pass_bytes(const struct ms_model *model, const struct shape *shape, int samples, int coarse,
                         int training) {
  struct ms_dit_batch batch = {.samples = samples, .coarse = coarse};
  memcpy(batch.lattice, shape->lattice, sizeof batch.lattice);
  return ms_model_activation_bytes(model, &batch, MSK_PRECISION_BF16, training);
}

void ms_train_parts(const struct ms_model *model, const struct ms_train_job *job,
                    const struct ms_train_clips *clips, struct ms_train_parts *parts) {
  struct ms_train_bucket single = {
      .width = job->width, .height = job->height, .frames = job->frames, .batch = job->batch, .share = 1};
  int buckets = job->bucket_count ? job->bucket_count : 1;
  int64_t held = ms_split_held_out(job, clips->count);
  memset(parts, 0, sizeof *parts);
  parts->media = READER_BYTES;
  for (int b = 0; b < buckets; b++) {
    const struct ms_train_bucket *bucket = job->bucket_count ? &job->buckets[b] : &single;
    struct shape shape = shape_of(model, bucket);
    int64_t training = clips->count - held;
    struct ms_dit_batch batch = {.samples = bucket->batch, .coarse = bucket->coarse};
    memcpy(batch.lattice, shape.lattice, sizeof batch.lattice);
    parts->clips +=
        stored_bytes(&shape, ms_train_items(bucket, clips->count, training > 0 ? training : 1), clips->masks);
    parts->encoding = larger(parts->encoding, encoding_bytes(model, bucket, &shape, &parts->kept));
    parts->activations =
        larger(parts->activations, pass_bytes(model, &shape, bucket->batch, bucket->coarse, 1));
    parts->working =
        larger(parts->working, ms_model_working_bytes(model, &batch, job->accumulate, MSK_PRECISION_BF16, 1));
    parts->input = larger(parts->input, ms_dit_input_bytes(model->dit, &batch, job->accumulate));
    parts->batch = larger(parts->batch, shape.elements * (size_t)bucket->batch * sizeof(float));
    if (b > 0 || !held)
      continue;
    parts->clips += stored_bytes(&shape, held, clips->masks);
    parts->validation = pass_bytes(model, &shape, MS_VALIDATION_SAMPLES, bucket->coarse, 0);
    parts->batch = larger(parts->batch, shape.elements * MS_VALIDATION_SAMPLES * sizeof(float));
  }
}
