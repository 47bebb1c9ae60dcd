/* How much memory a run may take, typed with its unit: "4 GB", "600 MB", or nothing, which leaves it to the
 * program. Signal "changed". */
#pragma once
#include <adwaita.h>

#define MSU_TYPE_MEMORY_ROW (msu_memory_row_get_type())
G_DECLARE_FINAL_TYPE(MsuMemoryRow, msu_memory_row, MSU, MEMORY_ROW, AdwActionRow)

GtkWidget *msu_memory_row_new(void);
/* FALSE: what is typed is no amount of memory. 0 bytes: it is left to the program. */
gboolean msu_memory_row_get_bytes(MsuMemoryRow *row, guint64 *bytes);
void msu_memory_row_set_bytes(MsuMemoryRow *row, guint64 bytes);
const char *msu_memory_row_get_text(MsuMemoryRow *row); /* as typed; borrowed */
/* What the program takes if it is left to it; 0: not known. */
void msu_memory_row_set_automatic(MsuMemoryRow *row, guint64 bytes);
