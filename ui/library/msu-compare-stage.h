/* Two paintables beside each other, or one over the other up to a line that can be dragged. */
#pragma once
#include <gtk/gtk.h>

#define MSU_TYPE_COMPARE_STAGE (msu_compare_stage_get_type())
G_DECLARE_FINAL_TYPE(MsuCompareStage, msu_compare_stage, MSU, COMPARE_STAGE, GtkWidget)

/* Both are referenced. */
void msu_compare_stage_set_paintables(MsuCompareStage *stage, GdkPaintable *left, GdkPaintable *right);
void msu_compare_stage_set_wipe(MsuCompareStage *stage, gboolean wipe);
/* TRUE: the two change places. */
void msu_compare_stage_set_flipped(MsuCompareStage *stage, gboolean flipped);
/* Moves the line of the wipe by a share of the width. */
void msu_compare_stage_move(MsuCompareStage *stage, double by);
