/* The engine's errors as GErrors: one domain, the engine's codes, the engine's sentence.
 *
 * A message names what failed, the subject in quotes and what to do, so it is shown as it is. */
#pragma once
#include <glib.h>

#define MSA_ERROR (msa_error_quark())
GQuark msa_error_quark(void);

enum msa_error_code {
  MSA_ERROR_FAULT = 1, /* internal */
  MSA_ERROR_USAGE,     /* a value that cannot be */
  MSA_ERROR_INPUT,     /* missing or bad model, clip, caption */
  MSA_ERROR_BUDGET,    /* does not fit in memory */
  MSA_ERROR_OUTPUT,    /* cannot be written */
  MSA_ERROR_DEVICE,
  MSA_ERROR_NOT_FINITE,
  MSA_ERROR_CANCELLED,
  MSA_ERROR_STORE /* the data base of jobs and clips */
};
