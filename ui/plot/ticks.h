/* Where a scale has its marks, and how numbers are written beside them. */
#pragma once
#include <glib.h>

#define MSU_TICKS_MAX 24

struct msu_ticks {
  double at[MSU_TICKS_MAX]; /* ascending, within the range */
  int count;
  double step; /* between two marks; 0 on a logarithmic scale */
};

/* Marks at multiples of 1, 2 or 5 times a power of ten (of two for unit "B": whole KB, MB, ...), at most
 * `wanted` of them. whole: never closer than 1. */
void msu_ticks_linear(struct msu_ticks *ticks, double low, double high, int wanted, gboolean whole);
void msu_ticks_bytes(struct msu_ticks *ticks, double low, double high, int wanted);
/* Marks at decades, with 2 and 5 between them where there is room; every n-th decade where there is none.
 * Both ends above 0. A range too narrow for three of them gets linear marks. */
void msu_ticks_log(struct msu_ticks *ticks, double low, double high, int wanted);

/* All texts follow the locale's separators. Units: NULL, "B" (powers of 1024), "%" (the value is a fraction)
 * or what is put behind the number ("steps/s"). All return `text`. */
#define MSU_NUMBER_ROOM 48
/* A whole number in groups of three: "12,000". */
char *msu_number_whole(char text[MSU_NUMBER_ROOM], gint64 value);
/* As a mark of a scale with this step (0: logarithmic) whose largest mark is `top`: no more digits than tell
 * the marks apart, and all marks in the same power of the unit. */
char *msu_number_tick(char text[MSU_NUMBER_ROOM], double value, double step, double top, const char *unit);
/* As a value on its own: four significant digits and the unit. "-" if it is not finite. */
char *msu_number_value(char text[MSU_NUMBER_ROOM], double value, const char *unit);
