/* A training run before it starts: the folder's clips at the left, the recipe, what it takes and Start at the
 * right. Signals: "started" (MsaJob), "choose": the person wants another folder. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_NEW_RUN (msu_new_run_get_type())
G_DECLARE_FINAL_TYPE(MsuNewRun, msu_new_run, MSU, NEW_RUN, GtkWidget)

GtkWidget *msu_new_run_new(MsaStudio *studio);
void msu_new_run_set_folder(MsuNewRun *new_run, const char *folder);
