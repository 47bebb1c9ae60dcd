/* Where a paintable is shown: as large as fits, or one to one, then moved about by dragging. */
#pragma once
#include <gtk/gtk.h>

#define MSU_TYPE_STAGE (msu_stage_get_type())
G_DECLARE_FINAL_TYPE(MsuStage, msu_stage, MSU, STAGE, GtkWidget)

/* The paintable is referenced. */
void msu_stage_set_paintable(MsuStage *stage, GdkPaintable *paintable);
/* TRUE: a pixel of the clip is a pixel of the screen. */
void msu_stage_set_one_to_one(MsuStage *stage, gboolean one_to_one);
