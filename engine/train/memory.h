/* What train has resident at its peak: see model/memory.h. */
#pragma once
#include "model/memory.h"
#include "ms-train.h"

struct ms_train_clips {
  int64_t count; /* of the source */
  int masks;     /* it has subject masks */
  size_t held;   /* bytes that the process held beside the bare program when the run began */
};
/* Bytes of what a run has beside the DiT's weights and their state; the largest of all buckets. */
struct ms_train_parts {
  size_t clips;       /* stored latents and captions */
  size_t batch;       /* the latents of one batch: four copies of each live at once */
  size_t media;       /* decoders of video files */
  size_t encoding;    /* pixels and the codec's buffers while clips are encoded, before the training begins */
  size_t kept;        /* of them what stays */
  size_t activations; /* of a step, inputs of layers that wait for the backward pass included */
  size_t working;     /* the same without those inputs, of all batches that are accumulated */
  size_t input;       /* one layer's input, of all batches that are accumulated */
  size_t validation;  /* activations of a look at held-out clips */
};
void ms_train_parts(const struct ms_model *model, const struct ms_train_job *job,
                    const struct ms_train_clips *clips, struct ms_train_parts *parts);

/* How many items of a bucket are stored, and how many clips are held out for validation. */
int64_t ms_train_items(const struct ms_train_bucket *bucket, int64_t source_count, int64_t training_clips);
