/* How "megaslide plan" tells a plan: in words and as JSON. */
#pragma once
#include "ms-plan.h"
#include "output.h"

void msa_plan_put_json(struct msa_output *output, const struct ms_plan *plan, const struct ms_rates *rates);
void msa_plan_put_words(struct msa_output *output, const struct ms_plan *plan, const struct ms_rates *rates);

/* For struct ms_plan_study: data is a table. */
struct msa_study_table {
  struct msa_output *output;
  int bounds, trials;
};
void msa_plan_put_bound(void *data, const struct ms_plan_bound *bound);
void msa_plan_put_trial(void *data, const struct ms_plan_trial *trial);
