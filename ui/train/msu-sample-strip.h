/* The sample clips of a run below its graph, each at the place of its step on the graph's axis. A press
 * enlarges one. Where they would cover each other, the newer one stays. */
#pragma once
#include "msa-run.h"
#include "plot/msu-plot.h"

#define MSU_TYPE_SAMPLE_STRIP (msu_sample_strip_get_type())
G_DECLARE_FINAL_TYPE(MsuSampleStrip, msu_sample_strip, MSU, SAMPLE_STRIP, GtkWidget)

GtkWidget *msu_sample_strip_new(MsuPlotAxis *axis);
/* NULL empties it. It takes no room without samples. */
void msu_sample_strip_set_run(MsuSampleStrip *strip, MsaRun *run);
