/* From the engine's errors to GErrors; inside the app only. */
#pragma once
#include "ms-error.h"
#include "msa-error.h"

/* Always FALSE, so that a function can end with it. Cancelled becomes G_IO_ERROR_CANCELLED, everything else
 * MSA_ERROR with the engine's sentence. */
gboolean msa_error_set_from_engine(GError **error, const struct ms_error *from);
