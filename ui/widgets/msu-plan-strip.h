/* What a clip or a training run will take, told while its settings are made: memory against the budget, disk,
 * time, of a run where the layers of the model lie and what a step waits for, and where it does not fit the
 * sentence and buttons that apply the nearest settings that do.
 *
 * Signals: "changed" (the verdict), "apply" (const MsaPlanSuggestion *, as a pointer that holds during the
 * emission: a suggestion was pressed). */
#pragma once
#include "msa-planner.h"
#include <gtk/gtk.h>

#define MSU_TYPE_PLAN_STRIP (msu_plan_strip_get_type())
G_DECLARE_FINAL_TYPE(MsuPlanStrip, msu_plan_strip, MSU, PLAN_STRIP, GtkWidget)

GtkWidget *msu_plan_strip_new(MsaPlanner *planner);
/* problem, if any, says what is missing in the form; params is NULL if nothing can be planned without it. */
void msu_plan_strip_set_clip(MsuPlanStrip *strip, const MsaGenerateParams *params, const char *problem);
void msu_plan_strip_set_run(MsuPlanStrip *strip, const MsaTrainParams *params, const char *problem);
/* FALSE if the newest settings are known not to fit or to be wrong. */
gboolean msu_plan_strip_allows(MsuPlanStrip *strip);
/* < 0: not known (yet). */
double msu_plan_strip_get_seconds_per_step(MsuPlanStrip *strip);
/* What a job takes whose memory is left to the program; 0: not known (yet). */
guint64 msu_plan_strip_get_automatic_memory(MsuPlanStrip *strip);
