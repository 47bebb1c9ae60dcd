/* The clips of a folder before training: moving thumbnail, name, size, length, caption (edited in place), and
 * for those that cannot be used the reason. Above it how many there are.
 *
 * Signals: "changed": how many can be used, or whether the check is still going on; "choose": the person
 * wants another folder. */
#pragma once
#include "msa-dataset.h"
#include <gtk/gtk.h>

#define MSU_TYPE_DATASET_TABLE (msu_dataset_table_get_type())
G_DECLARE_FINAL_TYPE(MsuDatasetTable, msu_dataset_table, MSU, DATASET_TABLE, GtkWidget)

GtkWidget *msu_dataset_table_new(void);
/* Looks at the folder (again). missing_caption: "error", "empty", "skip". NULL empties it. */
void msu_dataset_table_check(MsuDatasetTable *table, const char *folder, const char *missing_caption);
const char *msu_dataset_table_get_folder(MsuDatasetTable *table); /* NULL: none */
gboolean msu_dataset_table_is_checking(MsuDatasetTable *table);
guint msu_dataset_table_count_usable(MsuDatasetTable *table);
/* Videos without a caption. */
guint msu_dataset_table_count_uncaptioned(MsuDatasetTable *table);
/* Length of the shortest clip that can be used; 0 without one. */
double msu_dataset_table_shortest_seconds(MsuDatasetTable *table);
