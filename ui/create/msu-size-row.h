/* The size of the clip: what the model was trained at, common sizes, or any even size from 64 x 64, which is
 * typed and checked in place. Signal "changed". */
#pragma once
#include "msa-models.h"
#include <adwaita.h>

#define MSU_TYPE_SIZE_ROW (msu_size_row_get_type())
G_DECLARE_FINAL_TYPE(MsuSizeRow, msu_size_row, MSU, SIZE_ROW, AdwComboRow)

/* Lists the model's sizes first; keeps the size that is chosen. NULL: common sizes alone. */
void msu_size_row_set_model(MsuSizeRow *row, MsaModel *model);
void msu_size_row_set_size(MsuSizeRow *row, int width, int height);
/* FALSE: what was typed is no size; the row says why. */
gboolean msu_size_row_get_size(MsuSizeRow *row, int *width, int *height);
/* The entry for another size, to be put below the row in the same list; the row shows it when needed. */
GtkWidget *msu_size_row_get_entry(MsuSizeRow *row);
