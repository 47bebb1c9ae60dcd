/* Two clips in lock step: side by side, or one wiped over the other; Space held flips between them. Both show
 * the same frame number at any time. */
#pragma once
#include "msa-clip.h"
#include <gtk/gtk.h>

#define MSU_TYPE_COMPARE (msu_compare_get_type())
G_DECLARE_FINAL_TYPE(MsuCompare, msu_compare, MSU, COMPARE, GtkWidget)

/* Signal "closed": the person is done. Properties: "frame" (int64), "playing", "wipe" (gboolean). */
GtkWidget *msu_compare_new(void);
/* NULL, NULL stops and empties. */
void msu_compare_set_clips(MsuCompare *compare, MsaClip *left, MsaClip *right);
/* Of both clips at once; -1 while they do not show the same frame. */
gint64 msu_compare_get_shown(MsuCompare *compare);
