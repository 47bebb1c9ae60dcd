#include "train/place.h"

#include <string.h>

#include "sample/memory.h"
#include "stream/trace.h"

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

/* Of a shard: all of it, its offset head, or its adapters; these are the last parameters of a block. */
static void count_shard(const struct ms_model *model, const struct ms_train_job *job, int shard,
                        int64_t *count, int64_t *trained) {
  const struct ms_params *params = ms_dit_params(model->dit);
  const char *part = job->method == MS_METHOD_LORA ? ".lora_" : ".offset.";
  int64_t begin, first;
  ms_dit_shard_range(model->dit, shard, &begin, count);
  first = *count;
  *trained = *count;
  if (job->method == MS_METHOD_FULL)
    return;
  for (int i = 0; i < params->count; i++) {
    const struct ms_param *param = &params->list[i];
    if (param->offset >= begin && param->offset - begin < first && strstr(param->name, part))
      first = param->offset - begin;
  }
  *trained = *count - first;
}

double ms_train_flops(const struct ms_dit *dit, enum ms_train_method method, const int lattice[3],
                      int coarse) {
  double all = ms_dit_forward_flops(dit, lattice, coarse), attention = 0;
  if (method == MS_METHOD_FULL)
    return 3 * all;
  for (int kind = MS_ATTENTION_DENSE; kind <= MS_ATTENTION_DSA; kind++)
    attention += ms_dit_attention_flops(dit, lattice, coarse, (enum ms_attention_kind)kind);
  return 2 * all + attention;
}

/* A clip of the sample prompt while training goes on: its activations, and what the host holds of it. */
static void add_preview(const struct ms_model *model, size_t *working, size_t *host) {
  const struct ms_model_defaults *d = &model->defaults;
  struct ms_stage_plan plan;
  struct ms_memory need;
  ms_stages_plan(model, d->width, d->height, d->frames, d->steps, d->guidance, &plan);
  ms_sample_memory(model, &plan, MSK_PRECISION_BF16, &need);
  *working = larger(*working, need.activations);
  *host += need.clips + need.media + ms_model_beside_bytes(model, MSK_PRECISION_BF16);
}

/* Of a step's batches a rank makes its part, and it keeps its part of what is trained. */
static void take_share(const struct ms_group *group, struct ms_train_need *need) {
  int64_t first, most = 0;
  need->outer_gathered = need->job.outer_trained;
  ms_group_share(group, need->outer_gathered, &first, &need->job.outer_trained);
  for (int l = 0; l < need->job.layers; l++) {
    need->gathered[l] = need->trained[l];
    ms_group_share(group, need->gathered[l], &first, &need->trained[l]);
    most = need->gathered[l] > most ? need->gathered[l] : most;
  }
  if (group) /* gradients on their way to those who own them */
    need->job.host_fixed += ms_group_bytes(group) + (uint64_t)(most + need->outer_gathered) * sizeof(float);
}

void ms_train_need(const struct ms_model *model, const struct ms_train_job *asked,
                   const struct ms_train_clips *clips, const struct ms_group *group,
                   struct ms_train_need *need) {
  struct ms_train_job own = *asked, *job = &own;
  const struct ms_dit_config *config = ms_dit_config(model->dit);
  struct ms_train_parts parts;
  struct ms_memory memory;
  size_t packed = 0, working, beside = ms_model_beside_bytes(model, MSK_PRECISION_BF16), fixed;
  memset(need, 0, sizeof *need);
  own.accumulate = (own.accumulate + ms_group_size(group) - 1) / ms_group_size(group);
  ms_train_parts(model, job, clips, &parts);
  ms_model_memory(model, MSK_BF16, MSK_PRECISION_BF16, 1, &memory);
  need->job = (struct ms_placement_job){.layers = config->layers,
                                        .counts = need->counts,
                                        .trained = need->trained,
                                        .training = 1,
                                        .moment_bits = job->moment_bits,
                                        .average = job->ema > 0,
                                        .input_bytes = parts.input};
  count_shard(model, job, -1, &need->job.outer, &need->job.outer_trained);
  for (int l = 0; l < config->layers; l++) {
    count_shard(model, job, l, &need->counts[l], &need->trained[l]);
    packed = larger(packed, ms_model_shard_packed_bytes(model, MSK_BF16, MSK_PRECISION_BF16, l, 1));
  }
  packed += ms_model_shard_packed_bytes(model, MSK_BF16, MSK_PRECISION_BF16, -1, 1);
  fixed = clips->held + memory.program + beside + parts.media + parts.clips + parts.kept +
          4 * parts.batch * (size_t)job->accumulate;
  if (job->trace)
    fixed += MS_TRAIN_TRACED * sizeof(struct ms_trace_event);
  working = larger(parts.working, parts.validation);
  if (job->sample_prompt && job->sample_every > 0)
    add_preview(model, &working, &fixed);
  need->job.working = packed + working;
  need->job.host_fixed = fixed;
  take_share(group, need);
  need->encode_bytes = clips->held + memory.program + beside + parts.media + parts.clips + parts.encoding;
}
