/* Whether a training run keeps within the budgets, known before any work; and if not, what would. */
#pragma once
#include "train/place.h"

struct ms_train_fit {
  int fits;
  const char *short_of;             /* "host", "device"; NULL: it fits */
  uint64_t short_bytes, need_bytes; /* need: the least that the run comes to of what it is short of */
  uint64_t host_bytes;              /* the planned peak of the process */
  int64_t trained;                  /* parameters with a state, on any rank */
  uint64_t disk_bytes;              /* of the working state in OUT/state/ */
};

/* The budgets of a machine. What the process holds beside the bare program counts (clips->held). 0 or
 * MS_ENOMEM. */
int ms_train_fit(const struct ms_model *model, const struct ms_train_job *job,
                 const struct ms_train_clips *clips, const struct ms_machine *machine,
                 struct ms_train_fit *fit, struct ms_error *error);
/* The same, and MS_EBUDGET if it does not fit: names the resource, by how much it falls short, and the
 * nearest batch, length or size that would fit. To be called before the work begins. */
int ms_train_fit_check(const struct ms_model *model, const struct ms_train_job *job,
                       const struct ms_train_clips *clips, const struct ms_machine *machine,
                       struct ms_train_fit *fit, struct ms_error *error);
