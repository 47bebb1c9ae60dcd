/* The front door of training: makes the output folder, opens the model, runs the loop. */
#include "ms-train.h"

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "group/group.h"
#include "model/model.h"
#include "ms-models.h"
#include "msk-cpu.h"
#include "stream/disk-file.h"
#include "train/checkpoint.h"
#include "train/disk.h"
#include "train/loop.h"
#include "train/fit.h"
#include "train/output.h"
#include "train/run-file.h"

void ms_train_job_init(struct ms_train_job *job) {
  *job = (struct ms_train_job){.model = "starter",
                               .method = MS_METHOD_FULL,
                               .rank = 16,
                               .moment_bits = 32,
                               .steps = 1000,
                               .lr = 2e-4,
                               .final_lr = 0.05,
                               .warmup = 20,
                               .decay_from = -1,
                               .cosine = 1,
                               .beta1 = 0.9,
                               .beta2 = 0.99,
                               .weight_decay = 0.01,
                               .clip_norm = 1,
                               .ema = 0.99,
                               .batch = 4,
                               .accumulate = 1,
                               .sigma_shift = {1.5, 6},
                               .sigma_shifts = 2,
                               .empty_caption = 0.1,
                               .keep = 2,
                               .validation = 0.1,
                               .validate_every = 50,
                               .on_missing_caption = MS_CAPTION_ERROR};
}

int ms_train_check_job(const struct ms_train_job *job, struct ms_error *error) {
  if (job->steps < 1 || job->batch < 1 || job->batch > 4096 || job->accumulate < 1)
    return ms_error_set(error, MS_EUSAGE,
                        "steps, batch and accumulate must be 1 or more (batch at most 4096)");
  if (!(job->lr > 0) || job->lr > 10)
    return ms_error_set(error, MS_EUSAGE, "learning rate %g cannot be used: it must lie between 0 and 10",
                        job->lr);
  if (job->method == MS_METHOD_LORA && (job->rank < 1 || job->rank > MS_LORA_MAX_RANK))
    return ms_error_set(error, MS_EUSAGE, "adapters of rank %d: 1 to %d are possible", job->rank,
                        MS_LORA_MAX_RANK);
  if (job->moment_bits != 32 && job->moment_bits != 8)
    return ms_error_set(error, MS_EUSAGE, "moments of %d bits cannot be used: 32 or 8 can", job->moment_bits);
  return 0;
}

/* In a group budgets and threads that are not said are a rank's part of what its machine has. */
static void take_part(struct ms_machine *machine) {
  const struct ms_group *group = machine->group;
  size_t budget = ms_memory_budget(machine);
  cpu_set_t set;
  if (group && !machine->host_memory)
    budget /= (size_t)group->host_ranks;
  if (group && !machine->threads && group->beside > 1 && sched_getaffinity(0, sizeof set, &set) == 0)
    machine->threads = CPU_COUNT(&set) > group->beside ? CPU_COUNT(&set) / group->beside : 1;
  machine->host_memory = budget; /* one budget from the start to the end */
}

/* Before any rank makes working files there. */
static void sweep_state(const char *output) {
  char folder[1200];
  snprintf(folder, sizeof folder, "%s/state", output);
  ms_disk_file_sweep(folder);
}

/* The batches of a step are those of all ranks. */
static int share_batches(struct ms_train_job *job, const struct ms_group *group, struct ms_error *error) {
  int ranks = ms_group_size(group);
  if (ranks > 1 && !job->resume && job->unsaid & 1u << MS_SETTING_ACCUMULATE)
    job->accumulate = ranks;
  if (job->accumulate % ranks)
    return ms_error_set(error, MS_EUSAGE,
                        "--accumulate %d, the batches of a step, cannot be shared by %d ranks: make it a "
                        "multiple of them, or start as many ranks as divide it",
                        job->accumulate, ranks);
  return 0;
}

int ms_train(const struct ms_train_job *asked, const struct ms_clip_source *given,
             const struct ms_machine *given_machine, const struct ms_hooks *hooks,
             struct ms_train_result *result, struct ms_error *error) {
  struct ms_machine own = *given_machine, *machine = &own;
  struct ms_train_job job = *asked;
  struct ms_clip_source source = {0};
  struct ms_compute compute = {0};
  struct ms_model model = {0};
  struct ms_train_clips clips = {.held = ms_memory_held()};
  json_t *kept = NULL;
  struct ms_train_fit fit = {0};
  char folder[1024];
  const struct ms_hooks quiet = {.cancel = hooks ? hooks->cancel : NULL};
  struct ms_group *group = given_machine->group;
  int first = ms_group_rank(group) == 0; /* who writes and speaks */
  int code = ms_train_check_job(&job, error), own_source = 0, own_output = 0, lock = -1;
  memset(result, 0, sizeof *result);
  take_part(&own);
  if (!first)
    hooks = &quiet;
  if (code == 0 && (!job.output || !job.output[0]))
    code = ms_error_set(error, MS_EUSAGE, "no output folder: name one with -o");
  if (code == 0 && job.resume) {
    code = ms_run_file_take(&job, &kept, error);
    if (code == 0)
      code = ms_train_check_job(&job, error);
  }
  if (code == 0)
    code = share_batches(&job, group, error);
  if (code == 0 && !given)
    code = ms_train_output_check(job.dataset, job.output, error);
  if (code == 0)
    code = ms_model_find(job.model, machine->data_folder, machine->user_folder, folder, sizeof folder, error);
  if (code == 0 && first)
    code = ms_train_output_open(job.output, job.resume, &lock, error);
  own_output = code == 0 && !job.resume && first;
  if (code == 0 && group && first)
    sweep_state(job.output);
  if (code == 0 && job.resume && ms_checkpoint_newest(job.output) > job.steps)
    code = ms_train_refuse_steps(&job, ms_checkpoint_newest(job.output), error);
  if (code == 0 && given)
    source = *given;
  if (code == 0 && !given) {
    code = ms_clip_folder_open(&source, job.dataset, job.on_missing_caption, hooks, error);
    own_source = code == 0;
  }
  if (code == 0)
    code = ms_compute_open(&compute, machine->threads, machine->reference ? 0 : msk_cpu_detect(), error);
  if (code == 0) {
    ms_pool_set_cancel(compute.pool, hooks ? hooks->cancel : NULL);
    code = ms_model_read(&model, folder, error);
  }
  if (code == 0) {
    model.lora_rank = job.method == MS_METHOD_LORA ? job.rank : 0;
    code = ms_model_open_root(&model, &compute, model.root, MS_MODEL_ALL, error);
  }
  if (code == 0 && !job.width) {
    job.width = model.defaults.width;
    job.height = model.defaults.height;
  }
  if (code == 0 && !job.frames)
    job.frames = model.defaults.frames;
  if (code == 0) {
    clips.count = source.count;
    clips.masks = source.read_mask != NULL;
    code = ms_train_fit_check(&model, &job, &clips, machine, &fit, error);
  }
  if (code == 0 && first)
    code = ms_train_disk_check(&model, &job, fit.trained, fit.disk_bytes, error);
  if (code == 0)
    code = ms_model_load(&model, folder, MS_MODEL_CODEC | MS_MODEL_TEXT, MSK_BF16, MSK_PRECISION_BF16, error);
  code = ms_group_agree(group, code, error);
  if (code == 0 && first)
    code = ms_train_output_parts(&model, folder, &job, error);
  if (code == 0 && first) {
    ms_run_file_compare_clips(kept, &source, hooks);
    code = ms_run_file_write(&job, folder, &source, error);
  }
  code = ms_group_agree(group, code, error);
  if (code == 0)
    code = ms_train_loop(&model, &job, &source, &clips, machine, hooks, result, error);
  result->planned_host_bytes = (size_t)fit.host_bytes;
  if (code == MS_EOUTPUT && fit.trained > 0 && error)
    code = ms_train_disk_explain(&job, fit.trained, error);
  /* Only what this run began: a folder that was refused belongs to somebody. */
  if (code < 0 && result->steps == 0 && own_output)
    ms_train_output_discard(job.output);
  ms_train_output_close(job.output, lock);
  ms_model_release(&model);
  ms_compute_release(&compute);
  if (own_source)
    source.close(source.data);
  json_decref(kept);
  return code;
}
