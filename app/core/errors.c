#include "core/errors.h"

#include <gio/gio.h>

G_DEFINE_QUARK(msa - error - quark, msa_error)

static int code_of(int engine) {
  switch (engine) {
  case MS_EUSAGE:
    return MSA_ERROR_USAGE;
  case MS_EINPUT:
    return MSA_ERROR_INPUT;
  case MS_EBUDGET:
  case MS_ENOMEM:
    return MSA_ERROR_BUDGET;
  case MS_EOUTPUT:
    return MSA_ERROR_OUTPUT;
  case MS_EDEVICE:
    return MSA_ERROR_DEVICE;
  case MS_ENOTFINITE:
    return MSA_ERROR_NOT_FINITE;
  default:
    return MSA_ERROR_FAULT;
  }
}

gboolean msa_error_set_from_engine(GError **error, const struct ms_error *from) {
  const char *message = from->message[0] ? from->message : ms_error_text(from->code);
  if (from->code == MS_ECANCELLED)
    g_set_error_literal(error, G_IO_ERROR, G_IO_ERROR_CANCELLED, message);
  else
    g_set_error_literal(error, MSA_ERROR, code_of(from->code), message);
  return FALSE;
}
