#include "widgets/msu-stacks.h"

#include <adwaita.h>

static void tell(GtkWidget *stack) {
  for (GtkWidget *page = gtk_widget_get_first_child(stack); page; page = gtk_widget_get_next_sibling(page)) {
    const gboolean hidden = !gtk_widget_get_child_visible(page) || !gtk_widget_get_visible(page);
    gtk_accessible_update_state(GTK_ACCESSIBLE(page), GTK_ACCESSIBLE_STATE_HIDDEN, hidden, -1);
  }
}

static void changed_cb(GObject *stack, GParamSpec *property, gpointer data) {
  tell(GTK_WIDGET(stack));
}

/* A stack is met when it is first shown, whoever made it. */
static gboolean mapped_cb(GSignalInvocationHint *hint, guint count, const GValue *values, gpointer data) {
  GtkWidget *widget = g_value_get_object(&values[0]);
  if (!GTK_IS_STACK(widget) && !ADW_IS_VIEW_STACK(widget))
    return TRUE;
  if (!g_object_get_data(G_OBJECT(widget), "msu-tells-hidden-pages")) {
    g_object_set_data(G_OBJECT(widget), "msu-tells-hidden-pages", GINT_TO_POINTER(1));
    g_signal_connect_after(widget, "notify::visible-child", G_CALLBACK(changed_cb), NULL);
    g_signal_connect_after(widget, "notify::transition-running", G_CALLBACK(changed_cb), NULL);
  }
  tell(widget);
  return TRUE;
}

void msu_stacks_tell_hidden_pages(void) {
  gpointer widget_class = g_type_class_ref(GTK_TYPE_WIDGET);
  g_signal_add_emission_hook(g_signal_lookup("map", GTK_TYPE_WIDGET), 0, mapped_cb, NULL, NULL);
  g_type_class_unref(widget_class);
}
