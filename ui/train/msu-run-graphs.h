/* The curves of a training run as small multiples over one axis of steps, with the sample clips on the same
 * axis; other runs can be laid over them. */
#pragma once
#include "msa-run.h"
#include <gtk/gtk.h>

#define MSU_TYPE_RUN_GRAPHS (msu_run_graphs_get_type())
G_DECLARE_FINAL_TYPE(MsuRunGraphs, msu_run_graphs, MSU, RUN_GRAPHS, GtkWidget)

GtkWidget *msu_run_graphs_new(void);
/* others: of MsaRun, to compare with; may be NULL. run NULL empties it. */
void msu_run_graphs_set_runs(MsuRunGraphs *graphs, MsaRun *run, GPtrArray *others);
/* Of the loss and the gradient norm. */
void msu_run_graphs_set_log(MsuRunGraphs *graphs, gboolean log);
/* All graphs that show something as one picture with the run's name, two pixels a unit. NULL without a run.
 */
GdkTexture *msu_run_graphs_render(MsuRunGraphs *graphs);
