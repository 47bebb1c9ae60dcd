#include "train/memory.h"

#include <stdio.h>
#include <string.h>

#include "sample/memory.h"
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

/* The model that makes a sample clip stands beside the one that is trained. */
static size_t preview_bytes(const struct ms_model *model) {
  const struct ms_model_defaults *d = &model->defaults;
  struct ms_stage_plan plan;
  struct ms_memory need;
  ms_stages_plan(model, d->width, d->height, d->frames, d->steps, d->guidance, &plan);
  ms_sample_memory(model, &plan, MSK_PRECISION_BF16, &need);
  return need.host - need.program;
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

void ms_train_memory(const struct ms_model *model, const struct ms_train_job *job,
                     const struct ms_train_clips *clips, struct ms_memory *need) {
  size_t parameters = (size_t)ms_dit_params(model->dit)->total, inference_packed, extra, encode_phase,
         train_phase;
  struct ms_train_parts parts;
  ms_train_parts(model, job, clips, &parts);
  ms_model_memory(model, MSK_BF16, MSK_PRECISION_BF16, 0, need);
  inference_packed = need->packed;
  ms_model_memory(model, MSK_BF16, MSK_PRECISION_BF16, 1, need);
  need->state =
      parameters * (4 + 4 + 4 + 2 + (job->ema > 0 ? 4 : 0)); /* gradient, m, v, low words, average */
  need->activations = larger(parts.activations, parts.validation);
  need->clips = parts.clips + 4 * parts.batch; /* noisy latents, target, velocity and its gradient */
  need->media = parts.media + parts.encoding;
  /* the averaged weights as float32, to validate with and to write */
  extra = parameters * sizeof(float);
  if (job->sample_prompt && job->sample_every > 0)
    extra = larger(extra, preview_bytes(model));
  encode_phase = inference_packed + need->clips + parts.encoding;
  train_phase = need->packed + need->state + need->clips + need->activations + parts.kept + extra;
  need->host = need->program + need->weights + parts.media + larger(encode_phase, train_phase);
  need->device = need->weights + need->packed + need->state + need->activations;
}

struct trial {
  const struct ms_model *model;
  const struct ms_train_clips *clips;
  const struct ms_machine *machine;
  struct ms_train_job job;
  int width, height; /* as asked */
};

static int fits(const struct trial *trial) {
  struct ms_memory need;
  ms_train_memory(trial->model, &trial->job, trial->clips, &need);
  return ms_memory_fits(&need, trial->machine);
}

/* Lengths and sizes that the codec and the patches divide. */
static int frames_at(const struct ms_model *model, int steps) {
  int strides[3];
  ms_codec_strides(model->codec, strides);
  return 1 + steps * strides[0] * ms_dit_config(model->dit)->patch[0];
}

static int side_at(const struct ms_model *model, int axis, int side, int eighths) {
  int strides[3], unit;
  ms_codec_strides(model->codec, strides);
  unit = strides[axis] * ms_dit_config(model->dit)->patch[axis];
  side = side * eighths / 8 / unit * unit;
  return side < unit ? unit : side;
}

/* The greatest value of one setting below `bad`, which does not fit, that does; 0: none. set puts it into the
 * job. */
static int greatest(struct trial *trial, int bad, void (*set)(struct trial *trial, int value)) {
  int good = 0;
  while (bad - good > 1) {
    int middle = good + (bad - good) / 2;
    set(trial, middle);
    if (fits(trial))
      good = middle;
    else
      bad = middle;
  }
  if (good)
    set(trial, good);
  return good;
}

static void set_batch(struct trial *trial, int batch) {
  trial->job.batch = batch;
}

static void set_length(struct trial *trial, int steps) {
  trial->job.frames = frames_at(trial->model, steps - 1);
}

static void set_size(struct trial *trial, int eighths) {
  trial->job.width = side_at(trial->model, 2, trial->width, eighths);
  trial->job.height = side_at(trial->model, 1, trial->height, eighths);
}

/* The nearest settings that fit, one thing changed after the other: the batch, then the length, then the
 * size. */
static void advise(struct trial *trial, char *advice, size_t size) {
  struct ms_train_job *job = &trial->job;
  int lengths = 1;
  if (greatest(trial, job->batch, set_batch)) {
    snprintf(advice, size, "--batch %d would fit", job->batch);
    return;
  }
  job->batch = 1;
  while (frames_at(trial->model, lengths - 1) < job->frames)
    lengths++;
  if (greatest(trial, lengths, set_length)) {
    snprintf(advice, size, "--batch 1 with --frames %d would fit", job->frames);
    return;
  }
  job->frames = 1;
  if (greatest(trial, 8, set_size))
    snprintf(advice, size, "--batch 1 with --frames 1 and --size %dx%d would fit", job->width, job->height);
  else
    snprintf(advice, size, "the model with its optimizer alone does not fit");
}

int ms_train_memory_check(const struct ms_model *model, const struct ms_train_job *job,
                          const struct ms_train_clips *clips, const struct ms_machine *machine,
                          size_t *planned, struct ms_error *error) {
  struct trial trial = {model, clips, machine, *job, job->width, job->height};
  struct ms_memory need;
  char what[96], advice[96] = "take smaller buckets";
  ms_train_memory(model, job, clips, &need);
  *planned = need.host;
  if (ms_memory_fits(&need, machine))
    return 0;
  if (job->bucket_count) {
    snprintf(what, sizeof what, "training with the recipe's buckets");
  } else {
    snprintf(what, sizeof what, "training at %dx%d with %d frame%s and batches of %d", job->width,
             job->height, job->frames, job->frames == 1 ? "" : "s", job->batch);
    advise(&trial, advice, sizeof advice);
  }
  return ms_memory_check(&need, machine, what, advice, error);
}
