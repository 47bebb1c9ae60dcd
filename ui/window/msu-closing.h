/* The end of a session: a job that runs is asked about, the store is closed in order. */
#pragma once
#include "window/msu-window.h"

/* Called when the window is to be closed. Asks if a job runs ("Pause and close", "Keep running", "Cancel"),
 * else hides the window, closes the studio and then destroys the window. */
void msu_closing_begin(MsuWindow *window);
/* Hidden windows close themselves when the last job has ended. */
void msu_closing_watch(MsuWindow *window);
