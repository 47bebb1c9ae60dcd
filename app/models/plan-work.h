/* Plans as the window shows them, made of the engine's; inside the app only, off the main thread. */
#pragma once
#include "ms-plan.h"
#include "msa-planner.h"

/* What plans are made with. */
struct msa_plan_place {
  struct ms_rates rates;
  gboolean measured; /* FALSE: rates are stand-ins, so that seconds mean nothing */
  const char *user_models;
  const char *runs; /* the folder in which a run's own will lie */
};

/* Rates that are good for sizes alone. */
void msa_rates_stand_in(struct ms_rates *rates);
MsaPlan *msa_plan_clip(const struct msa_plan_place *place, const MsaGenerateParams *params, GError **error);
MsaPlan *msa_plan_training(const struct msa_plan_place *place, const MsaTrainParams *params, GError **error);
/* "Runs here: about 6 s a clip" or what is missing, newly allocated. */
char *msa_plan_verdict(const MsaPlan *plan);
