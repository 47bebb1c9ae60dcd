/* A model's card as widgets: headings, paragraphs, lists, tables and code of Markdown, as far as cards use
 * them. Everything else is shown as it is written. */
#pragma once
#include <gtk/gtk.h>

GtkWidget *msu_markdown_new(const char *text);
/* The first two paragraphs below the title as Pango markup; newly allocated, "" if there are none. */
char *msu_markdown_summary(const char *text);
