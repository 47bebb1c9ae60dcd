/* What a job has resident at its peak, computed before anything is allocated. Needs the networks opened
 * (ms_model_read and ms_model_open_root with a compute that has its pool), not their weights, so that a model
 * that does not fit here can be planned. The estimates keep within 15 % of VmHWM.
 *
 *   ms_model_memory (&model, MSK_BF16, MSK_PRECISION_BF16, 0, &need);   // program, weights, packed weights
 *   ms_sample_memory (...) or ms_train_memory (...) call it and add the rest. */
#pragma once
#include "model/model.h"
#include "ms-job.h"

struct ms_memory {    /* bytes */
  size_t program;     /* code, libraries, threads */
  size_t weights;     /* as loaded: DiT, codec, text encoder */
  size_t packed;      /* the same as the kernels read them */
  size_t activations; /* layers, text, and the scratch of every thread */
  size_t state;       /* training: gradients, moments, low words, average */
  size_t clips; /* latents and captions of training clips; of a clip in the making, its latents and history */
  size_t media; /* codec streams, frames, the encoder of the file */
  size_t host;  /* the peak of the process: not always the sum, where parts never live together */
  size_t device; /* the working set: what a device must hold at once. Part of host on the CPU device */
};

/* Fills program, weights and packed (host and device as their sums), the rest 0. training: packed both ways.
 */
void ms_model_memory(const struct ms_model *model, enum msk_type dit_type, enum msk_precision precision,
                     int training, struct ms_memory *need);
/* Activations of a DiT that need not be prepared: as ms_dit_activation_bytes after a ms_dit_prepare. */
size_t ms_model_activation_bytes(const struct ms_model *model, const struct ms_dit_batch *batch,
                                 enum msk_precision precision, int training);
/* The same as ms_dit_working_bytes. */
size_t ms_model_working_bytes(const struct ms_model *model, const struct ms_dit_batch *batch, int count,
                              enum msk_precision precision, int training);

/* Weights of codec and text encoder, as loaded and as the kernels read them: part of what ms_model_memory
 * counts. */
size_t ms_model_beside_bytes(const struct ms_model *model, enum msk_precision precision);
/* Keys and values of one text for all layers, which sampling keeps for a whole stage. */
size_t ms_model_text_bytes(const struct ms_model *model, enum msk_precision precision);
/* What ms_dit_prepare_source keeps of one shard (-1: what belongs to no block) while it is at work: packed
 * matrices, and vectors as float32. It holds shard -1 and the largest of the layers. */
size_t ms_model_shard_packed_bytes(const struct ms_model *model, enum msk_type dit_type,
                                   enum msk_precision precision, int shard, int training);
/* Buffers of the codec for a picture of size [height, width] in latent cells: of a stream, or (latent_frames
 * more than 1) for a whole clip of so many latent frames. */
size_t ms_model_codec_bytes(const struct ms_model *model, enum msk_precision precision, int decoder,
                            int latent_frames, const int size[2]);

/* Bytes that the process has resident now beyond the bare program: a window, a job before this one. */
size_t ms_memory_held(void);
/* Bytes that a job may use: what the machine's owner said, or 70 % of what is available now. 0: not known. */
size_t ms_memory_budget(const struct ms_machine *machine);
/* 0, or MS_EBUDGET: `what` ("training at 192x128 ...") needs so much of host or device memory, so much more
 * than is allowed; advice (may be NULL) is put behind. */
int ms_memory_check(const struct ms_memory *need, const struct ms_machine *machine, const char *what,
                    const char *advice, struct ms_error *error);
/* Whether it fits. */
int ms_memory_fits(const struct ms_memory *need, const struct ms_machine *machine);
