/* A training run as the main thread sees it: its state, its curves, its sample clips. */
#pragma once
#include "msa-job.h"

/* A curve: y over x, appended in order of x; y may be NaN (a gap). Main thread only. Signal "changed"
 * (guint64: index of the first point that is new or was replaced), once an append. */
#define MSA_TYPE_SERIES (msa_series_get_type())
G_DECLARE_FINAL_TYPE(MsaSeries, msa_series, MSA, SERIES, GObject)
MsaSeries *msa_series_new(const char *name);
const char *msa_series_get_name(MsaSeries *series);
gsize msa_series_get_length(MsaSeries *series);
/* Valid until the series changes. */
const double *msa_series_get_x(MsaSeries *series);
const double *msa_series_get_y(MsaSeries *series);
/* Points at the end; points whose x is not above the last one replace it from there (a resumed run repeats
 * steps). Points without a finite x are left out. */
void msa_series_append(MsaSeries *series, const double *x, const double *y, gsize count);

/* A clip made on the way. */
typedef struct MsaSample {
  gint64 step;
  char *path, *prompt;
} MsaSample;

#define MSA_TYPE_RUN (msa_run_get_type())
G_DECLARE_FINAL_TYPE(MsaRun, msa_run, MSA, RUN, GObject)
/* Properties: "name", "state" (enum msa_job_state), "step", "steps" (int64), "loss" (double, NaN: none yet),
 * "seconds-left", "error". Signal "samples-changed". */
gint64 msa_run_get_id(MsaRun *run);
const char *msa_run_get_name(MsaRun *run);
const char *msa_run_get_folder(MsaRun *run);
const MsaTrainParams *msa_run_get_params(MsaRun *run);
enum msa_job_state msa_run_get_state(MsaRun *run);
MsaJob *msa_run_get_job(MsaRun *run); /* borrowed; NULL when it is no longer in the queue */
gint64 msa_run_get_step(MsaRun *run);
gint64 msa_run_get_steps(MsaRun *run);
double msa_run_get_loss(MsaRun *run);
/* The names the engine gives: "loss", "smoothed_loss", "validation_loss", "learning_rate", "gradient_norm",
 * "seconds", "tokens_per_second", "model_flops_per_second", "mfu", "host_bytes", "disk_bytes"; of the lanes
 * of each step "compute_seconds", "read_seconds", "write_seconds", "optimizer_seconds", "waited_seconds",
 * "read_bytes", "written_bytes"; "layers" and "disk_layers" at the first step after a start. Never NULL: an
 * unknown name gives an empty series. The first call starts loading from the store; "changed" follows.
 * Borrowed. */
MsaSeries *msa_run_get_series(MsaRun *run, const char *name);
/* Of MsaSample, by step; borrowed. */
GPtrArray *msa_run_get_samples(MsaRun *run);
/* Writes all curves as CSV (step, one column a name). */
void msa_run_save_csv_async(MsaRun *run, const char *path, GAsyncReadyCallback callback, gpointer data);
gboolean msa_run_save_csv_finish(MsaRun *run, GAsyncResult *result, GError **error);
/* Writes what the lanes did in the last steps before the run ended or rested, as a Chrome trace (JSON).
 * MSA_ERROR_INPUT: it has not done so yet. */
void msa_run_save_trace_async(MsaRun *run, const char *path, GAsyncReadyCallback callback, gpointer data);
gboolean msa_run_save_trace_finish(MsaRun *run, GAsyncResult *result, GError **error);
