/* A file shown in the desktop's file manager, selected in its folder. */
#pragma once
#include <gtk/gtk.h>

/* Returns at once; opens the folder alone where the file manager cannot select. */
void msu_reveal_file(GtkWidget *widget, const char *path);
