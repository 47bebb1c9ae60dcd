/* What the training run will take, told while its settings are made. Signals: "changed" (the verdict),
 * "apply" (MsaTrainParams: a suggestion that fits was pressed). */
#pragma once
#include "msa-planner.h"
#include <gtk/gtk.h>

#define MSU_TYPE_TRAIN_PLAN (msu_train_plan_get_type())
G_DECLARE_FINAL_TYPE(MsuTrainPlan, msu_train_plan, MSU, TRAIN_PLAN, GtkWidget)

GtkWidget *msu_train_plan_new(MsaPlanner *planner);
/* problem: what the form lacks, shown in the place of the verdict; may be NULL. params NULL: no plan. */
void msu_train_plan_set(MsuTrainPlan *plan, const MsaTrainParams *params, const char *problem);
/* FALSE: the newest settings are known not to fit or to be wrong. */
gboolean msu_train_plan_allows(MsuTrainPlan *plan);
/* < 0: not known (yet). */
double msu_train_plan_get_seconds_per_step(MsuTrainPlan *plan);
