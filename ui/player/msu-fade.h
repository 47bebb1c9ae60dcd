/* Lets controls fade while nothing happens over the picture, and brings them back. They stay in the
 * accessible tree and can be pressed from it at any time. */
#pragma once
#include <gtk/gtk.h>

#define MSU_TYPE_FADE (msu_fade_get_type())
G_DECLARE_FINAL_TYPE(MsuFade, msu_fade, MSU, FADE, GObject)

/* Neither widget is referenced; the fade must be dropped before them. */
MsuFade *msu_fade_new(GtkWidget *area, GtkWidget *controls);
/* Shows the controls for a while. */
void msu_fade_wake(MsuFade *fade);
