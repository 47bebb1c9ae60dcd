/* The training loop of the DiT: stores of encoded clips, batches, forward, backward, AdamW, validation,
 * checkpoints, samples. */
#pragma once
#include "model/model.h"
#include "ms-train.h"
#include "train/memory.h"

/* model: opened, codec and text prepared for inference; the DiT's weights are started in memory (and given
 * back) or lie in the model's folder. clips: of the source. machine: host_memory said. Trains to job->steps
 * (from the newest checkpoint in job->output if job->resume), and leaves dit.safetensors, metrics.csv and
 * checkpoints in job->output, which exists. On MS_ECANCELLED a checkpoint has been saved. */
int ms_train_loop(struct ms_model *model, const struct ms_train_job *job, const struct ms_clip_source *source,
                  const struct ms_train_clips *clips, const struct ms_machine *machine,
                  const struct ms_hooks *hooks, struct ms_train_result *result, struct ms_error *error);
/* MS_EUSAGE: the run has done more steps than are asked for. */
int ms_train_refuse_steps(const struct ms_train_job *job, int64_t done, struct ms_error *error);
/* MS_EUSAGE: a value that no run can have, or a method that this version cannot train. Folders are not looked
 * at. */
int ms_train_check_job(const struct ms_train_job *job, struct ms_error *error);
