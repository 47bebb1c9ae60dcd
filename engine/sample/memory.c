#include "sample/memory.h"

#include <string.h>

/* What H.264 keeps of a picture while it looks ahead: up to some fifty frames of 4:2:0 with their motion. */
#define ENCODER_BYTES_A_PIXEL 3
#define ENCODER_FRAMES 55
#define ENCODER_SPARE 14 /* references and frames between its threads, however short the clip */
/* Its tables and threads, whatever the size. */
#define ENCODER_BYTES ((size_t)10 << 20)

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* A codec's stream with the frames that go in or out at once, as float32. */
static size_t stream_bytes(const struct ms_model *model, enum msk_precision precision, int decoder,
                           const struct ms_stage *stage) {
  int strides[3];
  ms_codec_strides(model->codec, strides);
  return ms_model_codec_bytes(model, precision, decoder, 1, stage->lattice + 1) +
         (size_t)strides[0] * stage->width * stage->height * 3 * sizeof(float);
}

void ms_sample_memory(const struct ms_model *model, const struct ms_stage_plan *plan,
                      enum msk_precision precision, struct ms_memory *need) {
  int channels = ms_codec_channels(model->codec);
  size_t most = 0, layers = 0;
  ms_model_memory(model, precision == MSK_PRECISION_BF16 ? MSK_BF16 : MSK_F32, precision, 0, need);
  for (int i = 0; i < plan->count; i++) {
    const struct ms_stage *stage = &plan->list[i];
    const int *lattice = stage->lattice;
    struct ms_dit_batch batch = {.samples = 1, .coarse = stage->coarse, .text_slot = 1};
    size_t cells = (size_t)lattice[0] * lattice[1] * lattice[2], clips, media = 0, activations;
    int frames =
        lattice[0] * 4 + ENCODER_SPARE < ENCODER_FRAMES ? lattice[0] * 4 + ENCODER_SPARE : ENCODER_FRAMES;
    memcpy(batch.lattice, lattice, sizeof batch.lattice);
    activations = ms_model_activation_bytes(model, &batch, precision, 0);
    if (stage->guidance != 1) /* the negative prompt's beside those of the prompt */
      activations += ms_model_text_bytes(model, precision);
    clips = 6 * cells * (size_t)channels * sizeof(float); /* with velocities and the sampler's history */
    if (i > 0) { /* the layers' buffers of the stage before stay while its clip is enlarged */
      media = stream_bytes(model, precision, 1, stage - 1) + stream_bytes(model, precision, 0, stage);
      most = larger(most, layers + media + clips / 3);
    }
    layers = larger(layers, activations);
    media = 0;
    if (i + 1 ==
        plan->count) /* and those of the last one while it is decoded, when the velocities are gone */
      media = stream_bytes(model, precision, 1, stage) + ENCODER_BYTES +
              (size_t)ENCODER_BYTES_A_PIXEL * frames * stage->width * stage->height;
    need->activations = layers;
    need->clips = larger(need->clips, clips);
    need->media = larger(need->media, media);
    most = larger(most, layers + larger(clips, clips / 6 + media));
  }
  need->device += need->activations;
  need->host += most;
}
