/* One clip of the grid: its middle frame, which moves under the pointer or the focus, and its prompt. Loads
 * nothing before it is bound, and drops its load when it is not needed any more. */
#pragma once
#include "msa-clip.h"
#include <gtk/gtk.h>

#define MSU_TYPE_CLIP_CELL (msu_clip_cell_get_type())
G_DECLARE_FINAL_TYPE(MsuClipCell, msu_clip_cell, MSU, CLIP_CELL, GtkWidget)

/* Signal "star" (gboolean): the person pressed it. */
GtkWidget *msu_clip_cell_new(void);
void msu_clip_cell_bind(MsuClipCell *cell, MsaClip *clip); /* NULL: nothing */
MsaClip *msu_clip_cell_get_clip(MsuClipCell *cell);        /* borrowed */
