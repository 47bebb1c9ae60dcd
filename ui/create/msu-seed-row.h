/* The seed: empty for another one each time, or a number that gives the same clip again. Signal "changed". */
#pragma once
#include <adwaita.h>

#define MSU_TYPE_SEED_ROW (msu_seed_row_get_type())
G_DECLARE_FINAL_TYPE(MsuSeedRow, msu_seed_row, MSU, SEED_ROW, AdwActionRow)

/* Below 0: random. */
void msu_seed_row_set_seed(MsuSeedRow *row, gint64 seed);
/* FALSE: what was typed is no seed; the row says so. *seed is below 0 for random. */
gboolean msu_seed_row_get_seed(MsuSeedRow *row, gint64 *seed);
/* What "Use the last seed" enters; below 0: none yet. */
void msu_seed_row_set_last(MsuSeedRow *row, gint64 seed);
