/* Graphs, curves and trace of a run as files, graphs on the clipboard too. Encoding and writing happen off
 * the main thread.
 */
#pragma once
#include "train/msu-run-graphs.h"

/* What came of it: where it is (a path), or why not. One of the two is NULL. Not called when the person
 * thinks better of it. */
typedef void (*MsuSavingDone)(gpointer owner, const char *path, const char *error);

/* Ask for a place first. owner is referenced until done is called. */
void msu_run_saving_png(MsuRunGraphs *graphs, MsaRun *run, MsuSavingDone done, GObject *owner);
void msu_run_saving_csv(GtkWidget *over, MsaRun *run, MsuSavingDone done, GObject *owner);
void msu_run_saving_trace(GtkWidget *over, MsaRun *run, MsuSavingDone done, GObject *owner);
void msu_run_saving_copy(MsuRunGraphs *graphs);
