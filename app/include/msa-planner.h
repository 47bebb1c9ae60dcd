/* What a job will need and take, told before it starts; quick enough to follow every key stroke. */
#pragma once
#include "msa-params.h"
#include <gio/gio.h>

typedef struct MsaPlanSuggestion {
  char *label;                 /* "512 x 288", "49 frames", "Batch of 2", "Memory 620 MB", "8 bit moments" */
  MsaGenerateParams *generate; /* the whole job with that change; one of the two is NULL */
  MsaTrainParams *train;
} MsaPlanSuggestion;

typedef struct MsaPlan MsaPlan;
struct MsaPlan {
  gboolean fits;
  guint64 host_bytes, host_budget, device_bytes, disk_bytes;
  gboolean automatic; /* nobody asked for that budget: it is what the program takes by itself */
  gint64 tokens;
  double flops, seconds; /* of the whole job */
  double seconds_per_step;
  int steps;
  int width, height, frames; /* with the model's defaults filled in */
  double fps;
  /* Training: where the model's layers lie, and what passes through memory. */
  int layers, disk_layers;  /* 0 of them on the disk: everything is in memory */
  guint64 state_bytes;      /* of `disk_bytes`: weights, state and inputs at home there while it runs */
  guint64 checkpoint_bytes; /* the rest of them: a checkpoint and the model */
  guint64 moved_bytes;      /* a step, between disk and memory */
  double exposed_seconds;   /* of seconds_per_step: computing waits for that */
  char *sentence;           /* what does not fit and by how much; NULL if it fits */
  GPtrArray *suggestions;   /* of MsaPlanSuggestion, may be empty */
};
void msa_plan_free(MsaPlan *plan);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(MsaPlan, msa_plan_free)

#define MSA_TYPE_PLANNER (msa_planner_get_type())
G_DECLARE_FINAL_TYPE(MsaPlanner, msa_planner, MSA, PLANNER, GObject)
/* Only the newest request counts: an older one that still waits ends with G_IO_ERROR_CANCELLED. The machine's
 * rates are measured once in the background at the first start and kept in the cache folder ("ready"
 * property); until then seconds is < 0. */
void msa_planner_generate_async(MsaPlanner *planner, const MsaGenerateParams *params,
                                GAsyncReadyCallback callback, gpointer data);
void msa_planner_train_async(MsaPlanner *planner, const MsaTrainParams *params, GAsyncReadyCallback callback,
                             gpointer data);
MsaPlan *msa_planner_finish(MsaPlanner *planner, GAsyncResult *result, GError **error);
