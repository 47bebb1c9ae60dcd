/* The bar of a player: where the clip is, to be dragged; the frame under the pointer is shown over it. */
#pragma once
#include <gtk/gtk.h>

#define MSU_TYPE_SCRUBBER (msu_scrubber_get_type())
G_DECLARE_FINAL_TYPE(MsuScrubber, msu_scrubber, MSU, SCRUBBER, GtkWidget)

/* Signals: "scrub" (int64 frame: a person moved it), "grabbed" and "released" around a drag. */

/* The clip whose frames are shown; they are loaded when the pointer first comes. NULL: none. */
void msu_scrubber_set_path(MsuScrubber *scrubber, const char *path);
void msu_scrubber_set_frames(MsuScrubber *scrubber, gint64 frames, double seconds);
void msu_scrubber_set_frame(MsuScrubber *scrubber, gint64 frame); /* no "scrub" */
