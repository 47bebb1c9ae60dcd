/* From what a person asked for to what the engine is given; inside the app only. The jobs borrow the
 * strings of the parameters. */
#pragma once
#include "ms-generate.h"
#include "ms-train.h"
#include "msa-params.h"

/* Output and resume are left to the caller. */
struct ms_generate_job msa_engine_generate_job(const MsaGenerateParams *params);
/* MS_EUSAGE for a method that does not exist. */
int msa_engine_train_job(const MsaTrainParams *params, struct ms_train_job *job, struct ms_error *error);
