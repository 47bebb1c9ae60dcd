#include "stream/dit-file.h"

#include <string.h>

int ms_dit_file_open(struct ms_dit_file *file, struct ms_dit *dit, const char *path, struct ms_error *error) {
  *file = (struct ms_dit_file){.dit = dit};
  return ms_safetensors_open(&file->file, path, error);
}

void ms_dit_file_close(struct ms_dit_file *file) {
  ms_safetensors_close(&file->file);
}

int ms_dit_file_read(void *data, int shard, uint16_t *weights, struct ms_error *error) {
  const struct ms_dit_file *file = data;
  const struct ms_params *params = ms_dit_params(file->dit);
  int64_t begin, count, done = 0;
  int code = 0;
  ms_dit_shard_range(file->dit, shard, &begin, &count);
  for (int i = ms_params_index(params, begin);
       i < params->count && params->list[i].offset < begin + count && code == 0; i++) {
    const struct ms_param *param = &params->list[i];
    int64_t at = param->offset - begin;
    memset(weights + done, 0, (size_t)(at - done) * sizeof *weights);
    if (ms_dit_is_adapter(file->dit, i))
      ms_params_start(params, i, file->seed, MSK_BF16, weights + at);
    else
      code = ms_params_read(params, i, &file->file, 1, "", MSK_BF16, weights + at, error);
    done = at + param->count;
  }
  memset(weights + done, 0, (size_t)(count - done) * sizeof *weights);
  return code;
}

int ms_dit_memory_read(void *data, int shard, uint16_t *weights, struct ms_error *error) {
  const struct ms_params *params = ms_dit_params(data);
  int64_t begin, count;
  ms_dit_shard_range(data, shard, &begin, &count);
  if (params->type == MSK_BF16) {
    memcpy(weights, (const uint16_t *)params->data + begin, (size_t)count * sizeof *weights);
    return 0;
  }
  for (int64_t i = 0; i < count; i++)
    weights[i] = msk_f32_to_bf16(((const float *)params->data)[begin + i]);
  return 0;
}
