/* A clip as numbered pictures: which frame lies at which time, and the picture of any frame, soon.
 *
 * A worker thread decodes what is wanted and what is likely next. Clips that fit in a budget of memory are
 * decoded once and kept, so that loops and steps cost nothing; of longer ones the frames around the wanted
 * one are kept, and their frames are counted by a second thread meanwhile. All functions are for the main
 * thread and return at once. */
#pragma once
#include <gdk/gdk.h>

#define MSU_TYPE_REEL (msu_reel_get_type())
G_DECLARE_FINAL_TYPE(MsuReel, msu_reel, MSU, REEL, GObject)

/* Signal "changed": pictures have come, or what is known of the clip has changed. At most one a turn of the
 * main loop. The threads end soon after the last reference is dropped. */
MsuReel *msu_reel_new(const char *path);
/* A sentence for a person; NULL if all is well or not known yet. */
const char *msu_reel_get_error(MsuReel *reel);
/* 0 until the first picture is there; an estimate until exact. */
gint64 msu_reel_get_frames(MsuReel *reel);
gboolean msu_reel_get_exact(MsuReel *reel);
gboolean msu_reel_has_sound(MsuReel *reel); /* beside its pictures; known with the first one */
/* Seconds at which a frame is seen, and the end of the last one for number `frames`. */
double msu_reel_get_time(MsuReel *reel, gint64 frame);
gint64 msu_reel_find(MsuReel *reel, double seconds); /* the frame that is seen then */
/* Size as it is meant to be seen (square pixels); 0 until the first picture. */
int msu_reel_get_width(MsuReel *reel);
int msu_reel_get_height(MsuReel *reel);
/* The picture, if it is decoded: a new reference, else NULL. */
GdkTexture *msu_reel_peek(MsuReel *reel, gint64 frame);
/* Asks for a frame and those that follow it in a direction (1 or -1), past the end from the start if it
 * loops. */
void msu_reel_want(MsuReel *reel, gint64 frame, int direction, gboolean loop);
