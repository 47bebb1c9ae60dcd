/* Finding widgets by their type and what stands on them. */
#pragma once
#include <gtk/gtk.h>
#include <string.h>

/* What stands on a button or a label, or in an entry; NULL for other widgets. Borrowed. */
static inline const char *find_text(GtkWidget *widget) {
  return GTK_IS_BUTTON(widget)     ? gtk_button_get_label(GTK_BUTTON(widget))
         : GTK_IS_LABEL(widget)    ? gtk_label_get_text(GTK_LABEL(widget))
         : GTK_IS_EDITABLE(widget) ? gtk_editable_get_text(GTK_EDITABLE(widget))
                                   : NULL;
}

/* The first of a type, the widget itself included, for which it holds; NULL: none. */
static inline GtkWidget *find_where(GtkWidget *widget, GType type,
                                    gboolean (*holds)(GtkWidget *widget, gpointer data), gpointer data) {
  if (g_type_is_a(G_OBJECT_TYPE(widget), type) && holds(widget, data))
    return widget;
  for (GtkWidget *child = gtk_widget_get_first_child(widget); child;
       child = gtk_widget_get_next_sibling(child)) {
    GtkWidget *found = find_where(child, type, holds, data);
    if (found)
      return found;
  }
  return NULL;
}

static inline gboolean find_says(GtkWidget *widget, gpointer part) {
  const char *text = part ? find_text(widget) : "";
  return !part || (text && strstr(text, part));
}

static inline gboolean find_shows(GtkWidget *widget, gpointer part) {
  return gtk_widget_get_visible(widget) && find_says(widget, part);
}

static inline gboolean find_reads(GtkWidget *widget, gpointer whole) {
  const char *text = find_text(widget);
  return text && !strcmp(text, whole);
}

/* The first of a type, seen or not, whose text has this part; NULL: any text or none. */
static inline GtkWidget *find(GtkWidget *widget, GType type, const char *part) {
  return find_where(widget, type, find_says, (gpointer)part);
}

/* Of those that are visible. */
static inline GtkWidget *find_shown(GtkWidget *widget, GType type, const char *part) {
  return find_where(widget, type, find_shows, (gpointer)part);
}

/* Whose text is this and no more. */
static inline GtkWidget *find_exact(GtkWidget *widget, GType type, const char *whole) {
  return find_where(widget, type, find_reads, (gpointer)whole);
}
