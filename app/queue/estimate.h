/* How long a waiting job will take, from how long jobs of its kind took; inside the app only. Main thread.
 *
 * The work of a clip is counted as pixels times passes of the network (two a step with guidance). Clips of
 * the same size and steps give their mean; else the nearest in work is scaled. */
#pragma once
#include "msa-library.h"
#include "msa-models.h"
#include "msa-params.h"

/* Seconds; < 0: nothing like it was made yet. models may be NULL. */
double msa_estimate_generate(MsaLibrary *library, MsaModels *models, const MsaGenerateParams *params);
/* runs: a GListModel of MsaRun. */
double msa_estimate_train(GListModel *runs, const MsaTrainParams *params);
