/* A clip that is dropped on the window: its settings come back on the Create page. */
#pragma once
#include "window/msu-window.h"

/* Accepts files anywhere in the window but where a page takes them itself (Train: a folder of clips). */
void msu_dropping_attach(MsuWindow *window, AdwViewStack *pages, GtkBox *messages);
/* As if `file` had been dropped. */
void msu_dropping_open(MsuWindow *window, GtkBox *messages, GFile *file);
