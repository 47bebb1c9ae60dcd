#include "library/msu-reveal.h"

struct reveal {
  GWeakRef root; /* GtkWindow */
  char *path;
};

static void reveal_free(struct reveal *reveal) {
  g_weak_ref_clear(&reveal->root);
  g_free(reveal->path);
  g_free(reveal);
}

static void shown_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct reveal *reveal = data;
  g_autoptr(GVariant) reply = g_dbus_connection_call_finish(G_DBUS_CONNECTION(source), result, NULL);
  g_autoptr(GtkWindow) root = g_weak_ref_get(&reveal->root);
  if (!reply && root) {
    g_autofree char *folder = g_path_get_dirname(reveal->path);
    g_autofree char *uri = g_filename_to_uri(folder, NULL, NULL);
    gtk_show_uri(root, uri, GDK_CURRENT_TIME);
  }
  reveal_free(reveal);
}

static void bus_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct reveal *reveal = data;
  g_autoptr(GDBusConnection) bus = g_bus_get_finish(result, NULL);
  g_autofree char *uri = g_filename_to_uri(reveal->path, NULL, NULL);
  if (!bus || !uri) {
    reveal_free(reveal);
    return;
  }
  const char *uris[] = {uri, NULL};
  g_dbus_connection_call(bus, "org.freedesktop.FileManager1", "/org/freedesktop/FileManager1",
                         "org.freedesktop.FileManager1", "ShowItems", g_variant_new("(^ass)", uris, ""), NULL,
                         G_DBUS_CALL_FLAGS_NONE, -1, NULL, shown_cb, reveal);
}

void msu_reveal_file(GtkWidget *widget, const char *path) {
  struct reveal *reveal = g_new0(struct reveal, 1);
  g_weak_ref_init(&reveal->root, gtk_widget_get_root(widget));
  reveal->path = g_strdup(path);
  g_bus_get(G_BUS_TYPE_SESSION, NULL, bus_cb, reveal);
}
