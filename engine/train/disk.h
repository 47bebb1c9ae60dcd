/* Room on the disk for a run: looked at before the work, and waited for where it runs out in the middle. */
#pragma once
#include "model/model.h"
#include "ms-train.h"

/* Bytes of one checkpoint of so many parameters that are trained. */
uint64_t ms_train_checkpoint_bytes(int64_t trained, const struct ms_train_job *job);
/* MS_EOUTPUT, with both figures, if the output's disk has not room for what every run writes: a checkpoint,
 * the weights and the parts that are copied; and `state` bytes of working state. */
int ms_train_disk_check(const struct ms_model *model, const struct ms_train_job *job, int64_t trained,
                        uint64_t state, struct ms_error *error);

/* Adds to an MS_EOUTPUT how much is free and how much a checkpoint needs, where that is more. Returns the
 * code. */
int ms_train_disk_explain(const struct ms_train_job *job, int64_t trained, struct ms_error *error);

/* 1: the disk of the folder has less than `need` free, so that what could not be written may be written
 * later. */
int ms_disk_lacks(const char *folder, uint64_t need);
/* Tells it to hooks->log and waits until there is room. 0, or MS_ECANCELLED. */
int ms_disk_wait(const char *folder, uint64_t need, const struct ms_hooks *hooks, struct ms_error *error);
