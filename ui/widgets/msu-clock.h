/* Time that passes while a widget is seen, told on the frame clock: for pictures that move. It rests while
 * the widget is not mapped, and what passed meanwhile is not made up for. */
#pragma once
#include <gtk/gtk.h>

struct msu_clock;

/* seen: decides by being mapped; beat: the widget whose frame clock counts, which may be the same. Both must
 * live longer than the clock. step gets the seconds since the last one, at most a quarter of one: after a
 * main loop that was held up, the picture goes on from where it was seen. step may stop the clock. Rests at
 * first. */
struct msu_clock *msu_clock_new(GtkWidget *seen, GtkWidget *beat, void (*step)(gpointer data, double passed),
                                gpointer data);
void msu_clock_set_running(struct msu_clock *clock, gboolean running);
gboolean msu_clock_turns(const struct msu_clock *clock); /* it runs, and the widget is seen */
void msu_clock_free(struct msu_clock *clock);
