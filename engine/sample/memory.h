/* What generate has resident at its peak: see model/memory.h. */
#pragma once
#include "model/memory.h"
#include "sample/stages.h"

/* model: networks opened, weights not needed; plan: from ms_stages_plan for the clip. DiT weights are bf16,
 * or float32 if precision is. */
void ms_sample_memory(const struct ms_model *model, const struct ms_stage_plan *plan,
                      enum msk_precision precision, struct ms_memory *need);
