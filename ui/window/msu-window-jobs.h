/* What the queue's popover and the application ask of the window, beyond msu-window.h. */
#pragma once
#include "window/msu-window.h"

/* Shows a waiting job's settings on the Create page, to be changed there. */
void msu_window_edit_job(MsuWindow *window, MsaJob *job);
/* Opens a file as if it had been dropped on the window. */
void msu_window_open_file(MsuWindow *window, GFile *file);
/* The store could not be opened: shows the sentence in the place of the pages, with "Try again". */
void msu_window_show_failure(MsuWindow *window, const char *sentence);
/* The store is open: warnings and an interrupted job are told. */
void msu_window_show_opened(MsuWindow *window);
