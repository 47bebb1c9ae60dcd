#include "model/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "model/codec-net.h"
#include "model/dit-private.h"

/* The program with FFmpeg and its encoders mapped and touched, before a model is loaded: measured 29 MiB, 40
 * once libav* have opened a file. */
#define PROGRAM_BYTES ((size_t)40 << 20)

struct packing {
  enum msk_precision precision;
  int training;
  size_t bytes;
};

static void count_packed(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  struct packing *packing = data;
  enum msk_precision precision = matrix->exact ? MSK_PRECISION_F32 : packing->precision;
  packing->bytes += ms_dit_pack_bytes(dit, precision, matrix->n, matrix->k);
  if (packing->training)
    packing->bytes += ms_dit_pack_bytes(dit, precision, matrix->k, matrix->n);
  packing->bytes += ms_dit_adapter_bytes(dit, matrix, packing->precision, packing->training);
}

static size_t total_bytes(const struct ms_params *params, enum msk_type type) {
  return (size_t)params->total * msk_type_size(type);
}

/* Copies of vectors as float32. */
static size_t vector_bytes(const struct ms_params *params) {
  size_t bytes = 0;
  for (int i = 0; i < params->count; i++)
    if (params->list[i].ndim != 2)
      bytes += (size_t)params->list[i].count * sizeof(float);
  return bytes;
}

size_t ms_model_beside_bytes(const struct ms_model *model, enum msk_precision precision) {
  const struct ms_params *codec = ms_codec_params(model->codec), *text = ms_text_params(model->text);
  /* convolutions keep their weights in another order beside what the products read */
  return 2 * total_bytes(codec, MSK_F32) +
         total_bytes(codec, precision == MSK_PRECISION_BF16 ? MSK_BF16 : MSK_F32) +
         2 * total_bytes(text, MSK_F32);
}

void ms_model_memory(const struct ms_model *model, enum msk_type dit_type, enum msk_precision precision,
                     int training, struct ms_memory *need) {
  struct packing packing = {precision, training, 0};
  const struct ms_params *dit = ms_dit_params(model->dit), *codec = ms_codec_params(model->codec),
                         *text = ms_text_params(model->text);
  memset(need, 0, sizeof *need);
  need->program = PROGRAM_BYTES;
  need->weights = total_bytes(dit, dit_type) + total_bytes(codec, MSK_F32) + total_bytes(text, MSK_F32);
  ms_dit_each_matrix(model->dit, count_packed, &packing);
  need->packed = packing.bytes + (dit_type == MSK_F32 ? 0 : vector_bytes(dit));
  need->packed +=
      ms_model_beside_bytes(model, precision) - total_bytes(codec, MSK_F32) - total_bytes(text, MSK_F32);
  need->device = need->weights + need->packed;
  need->host = need->program + need->device;
}

/* The network as it would be after ms_dit_prepare. */
static struct ms_dit *prepared_view(const struct ms_model *model, enum msk_precision precision) {
  struct ms_dit *view = malloc(sizeof *view);
  if (view) {
    *view = *model->dit;
    view->precision = precision;
  }
  return view;
}

size_t ms_model_text_bytes(const struct ms_model *model, enum msk_precision precision) {
  struct ms_dit *view = prepared_view(model, precision);
  struct dit_text text = {.samples = 1};
  struct ms_arena measure = {0};
  if (!view)
    return SIZE_MAX / 4;
  ms_dit_slot_layout(view, &text, &measure);
  free(view);
  return measure.peak;
}

size_t ms_model_activation_bytes(const struct ms_model *model, const struct ms_dit_batch *batch,
                                 enum msk_precision precision, int training) {
  struct ms_dit *view = prepared_view(model, precision);
  size_t bytes;
  if (!view)
    return SIZE_MAX / 4;
  bytes = ms_dit_activation_bytes(view, batch, training);
  free(view);
  return bytes;
}

size_t ms_model_working_bytes(const struct ms_model *model, const struct ms_dit_batch *batch, int count,
                              enum msk_precision precision, int training) {
  struct ms_dit *view = prepared_view(model, precision);
  size_t bytes;
  if (!view)
    return SIZE_MAX / 4;
  bytes = ms_dit_working_bytes(view, batch, count, training);
  free(view);
  return bytes;
}

size_t ms_model_shard_packed_bytes(const struct ms_model *model, enum msk_type dit_type,
                                   enum msk_precision precision, int shard, int training) {
  struct dit_shard_size size = ms_dit_shard_size(model->dit, shard, precision, 1, training != 0);
  (void)dit_type; /* vectors are copied whatever their type: a source takes its own back */
  return size.bytes + (size_t)size.floats * sizeof(float);
}

size_t ms_model_codec_bytes(const struct ms_model *model, enum msk_precision precision, int decoder,
                            int latent_frames, const int size[2]) {
  struct ms_codec view = *model->codec;
  view.type = precision == MSK_PRECISION_BF16 ? MSK_BF16 : MSK_F32;
  return latent_frames > 1 ? ms_codec_clip_bytes(&view, decoder, latent_frames, size[0], size[1])
                           : ms_codec_stream_bytes(&view, decoder, size[0], size[1]);
}

size_t ms_memory_held(void) {
  size_t resident = ms_memory_resident();
  return resident > PROGRAM_BYTES ? resident - PROGRAM_BYTES : 0;
}

size_t ms_memory_budget(const struct ms_machine *machine) {
  return machine->host_memory ? machine->host_memory : ms_memory_available() / 10 * 7;
}

static size_t host_need(const struct ms_memory *need) {
  /* a process that holds more than the bare program: a window, a job before this one */
  size_t resident = ms_memory_resident();
  return resident > need->program ? need->host - need->program + resident : need->host;
}

int ms_memory_fits(const struct ms_memory *need, const struct ms_machine *machine) {
  size_t budget = ms_memory_budget(machine);
  return (!budget || host_need(need) <= budget) &&
         (!machine->device_memory || need->device <= machine->device_memory);
}

int ms_memory_check(const struct ms_memory *need, const struct ms_machine *machine, const char *what,
                    const char *advice, struct ms_error *error) {
  size_t budget = ms_memory_budget(machine), wanted = host_need(need);
  const char *resource = "host memory";
  char wanted_text[32], over_text[32], budget_text[32];
  if (ms_memory_fits(need, machine))
    return 0;
  if (!budget || wanted <= budget) {
    resource = "device memory";
    wanted = need->device;
    budget = machine->device_memory;
  }
  return ms_error_set(error, MS_EBUDGET, "%s needs %s of %s, %s more than the %s allowed%s%s", what,
                      ms_format_bytes((double)wanted, wanted_text, sizeof wanted_text), resource,
                      ms_format_bytes((double)(wanted - budget), over_text, sizeof over_text),
                      ms_format_bytes((double)budget, budget_text, sizeof budget_text), advice ? ": " : "",
                      advice ? advice : "");
}
