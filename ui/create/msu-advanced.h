/* What most people leave alone: steps, guidance, sampler, attention, shift, frame rate, memory budget,
 * device. Signal "changed". */
#pragma once
#include "msa-models.h"
#include "msa-params.h"
#include <adwaita.h>

#define MSU_TYPE_ADVANCED (msu_advanced_get_type())
G_DECLARE_FINAL_TYPE(MsuAdvanced, msu_advanced, MSU, ADVANCED, AdwExpanderRow)

/* Values that stand at what the last model advises follow to what this one advises. */
void msu_advanced_set_model(MsuAdvanced *row, MsaModel *model);
/* Takes from params what it shows, or what the model advises where params leave it open. */
void msu_advanced_read(MsuAdvanced *row, const MsaGenerateParams *params);
void msu_advanced_write(MsuAdvanced *row, MsaGenerateParams *params);
double msu_advanced_get_fps(MsuAdvanced *row);
int msu_advanced_get_steps(MsuAdvanced *row);
void msu_advanced_set_steps(MsuAdvanced *row, int steps);
