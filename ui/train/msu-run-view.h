/* One training run: how far it is, what can be done with it, its graphs and sample clips. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_RUN_VIEW (msu_run_view_get_type())
G_DECLARE_FINAL_TYPE(MsuRunView, msu_run_view, MSU, RUN_VIEW, GtkWidget)

GtkWidget *msu_run_view_new(MsaStudio *studio);
/* NULL empties it. */
void msu_run_view_set_run(MsuRunView *view, MsaRun *run);
MsaRun *msu_run_view_get_run(MsuRunView *view); /* borrowed */
