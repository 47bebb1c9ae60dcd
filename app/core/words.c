#include "core/words.h"

#include <glib/gi18n-lib.h>
#include <math.h>

char *msa_words_bytes(guint64 bytes) {
  const double mega = (double)bytes / (1 << 20), giga = mega / 1024;
  if (mega < 1)
    return g_strdup_printf(_("%.0f KB"), ceil((double)bytes / 1024));
  if (giga < 1)
    return g_strdup_printf(_("%.0f MB"), mega);
  return g_strdup_printf(giga < 99.95 ? _("%.1f GB") : _("%.0f GB"), giga);
}

char *msa_words_seconds(double seconds) {
  const int minutes = (int)(seconds / 60 + 0.5);
  if (seconds < 99.5)
    return g_strdup_printf(_("%d s"), MAX(1, (int)(seconds + 0.5)));
  if (minutes < 100)
    return g_strdup_printf(_("%d min"), minutes);
  return g_strdup_printf(_("%d h %d min"), minutes / 60, minutes % 60);
}
