/* A training run in the list: dot of its state, name, step and last loss. */
#pragma once
#include "msa-run.h"
#include <gtk/gtk.h>

#define MSU_TYPE_RUN_ROW (msu_run_row_get_type())
G_DECLARE_FINAL_TYPE(MsuRunRow, msu_run_row, MSU, RUN_ROW, GtkListBoxRow)

GtkWidget *msu_run_row_new(MsaRun *run);
MsaRun *msu_run_row_get_run(MsuRunRow *row); /* borrowed */

/* "Running", "Stopped and kept", ... */
const char *msu_run_state_name(enum msa_job_state state);
/* "Step 340 of 2,000, 1 h 12 min left"; free it. */
char *msu_run_progress(MsaRun *run);
