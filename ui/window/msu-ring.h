/* A ring that fills clockwise from the top with the share of a job that is done. */
#pragma once
#include <gtk/gtk.h>

#define MSU_TYPE_RING (msu_ring_get_type())
G_DECLARE_FINAL_TYPE(MsuRing, msu_ring, MSU, RING, GtkWidget)

GtkWidget *msu_ring_new(void);
/* 0..1; below 0 only the track is drawn, faint, since nothing runs. */
void msu_ring_set_fraction(MsuRing *ring, double fraction);
/* Draws two bars inside, as for a queue that starts nothing new. */
void msu_ring_set_paused(MsuRing *ring, gboolean paused);
