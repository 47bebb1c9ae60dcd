/* A small window at the right edge of the screen from which a file can be dragged, as from a file manager:
 * drag-source FILE X Y. Says when it can be dragged from, and ends after the file was taken or the drag given
 * up. */
#include <X11/Xlib.h>
#include <gdk/x11/gdkx.h>
#include <gtk/gtk.h>
#include <stdio.h>
#include <stdlib.h>

struct place {
  int x, y;
};

static GdkContentProvider *prepare_cb(GtkDragSource *source, double x, double y, gpointer path) {
  g_autoptr(GFile) file = g_file_new_for_path(path);
  GSList *files = g_slist_append(NULL, file);
  GdkFileList *list = gdk_file_list_new_from_list(files);
  GdkContentProvider *content = gdk_content_provider_new_typed(GDK_TYPE_FILE_LIST, list);
  g_boxed_free(GDK_TYPE_FILE_LIST, list);
  g_slist_free(files);
  return content;
}

/* There is no window manager that would place it. */
static void map_cb(GtkWidget *window, gpointer data) {
  const struct place *place = data;
  GdkSurface *surface = gtk_native_get_surface(GTK_NATIVE(window));
  Display *display = gdk_x11_display_get_xdisplay(gtk_widget_get_display(window));
  XMoveWindow(display, gdk_x11_surface_get_xid(surface), place->x, place->y);
}

static void end_cb(GtkDragSource *source, GdkDrag *drag, gboolean delete, gboolean *ended) {
  *ended = TRUE;
}

/* Once it was drawn, the server has it where it was moved to. */
static gboolean drawn_cb(GtkWidget *window, GdkFrameClock *clock, gpointer frames) {
  if (++*(int *)frames < 3)
    return G_SOURCE_CONTINUE;
  puts("ready");
  fflush(stdout);
  return G_SOURCE_REMOVE;
}

int main(int argc, char **argv) {
  if (argc < 4 || !gtk_init_check())
    return 2;
  gboolean ended = FALSE;
  int frames = 0;
  struct place place = {atoi(argv[2]), atoi(argv[3])};
  GtkWidget *window = gtk_window_new(), *label = gtk_label_new("drag me");
  GtkDragSource *source = gtk_drag_source_new();
  gtk_drag_source_set_actions(source, GDK_ACTION_COPY);
  g_signal_connect(source, "prepare", G_CALLBACK(prepare_cb), argv[1]);
  g_signal_connect(source, "drag-end", G_CALLBACK(end_cb), &ended);
  gtk_widget_add_controller(label, GTK_EVENT_CONTROLLER(source));
  gtk_window_set_child(GTK_WINDOW(window), label);
  gtk_window_set_decorated(GTK_WINDOW(window), FALSE);
  gtk_window_set_default_size(GTK_WINDOW(window), 100, 100);
  g_signal_connect(window, "map", G_CALLBACK(map_cb), &place);
  gtk_widget_add_tick_callback(window, drawn_cb, &frames, NULL);
  gtk_window_present(GTK_WINDOW(window));
  while (!ended)
    g_main_context_iteration(NULL, TRUE);
}
