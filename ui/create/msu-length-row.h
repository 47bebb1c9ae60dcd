/* The length of the clip in seconds or in frames; the row says the other. Signal "changed". */
#pragma once
#include <adwaita.h>

#define MSU_TYPE_LENGTH_ROW (msu_length_row_get_type())
G_DECLARE_FINAL_TYPE(MsuLengthRow, msu_length_row, MSU, LENGTH_ROW, AdwActionRow)

void msu_length_row_set_frames(MsuLengthRow *row, int frames);
int msu_length_row_get_frames(MsuLengthRow *row);
/* Frames a second; the number of frames stays. */
void msu_length_row_set_fps(MsuLengthRow *row, double fps);
