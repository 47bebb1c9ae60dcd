/* Learning rate by step: linear warm-up, then constant until decay_from, then cosine or linear down to
 * final_lr times lr. */
#pragma once
#include "ms-train.h"

double ms_schedule_lr(const struct ms_train_job *job, int64_t step); /* step counts from 0 */
