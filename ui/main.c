/* megaslide-studio: the window. */
#include <adwaita.h>
#include <glib/gi18n.h>

static void activate_cb(GApplication *application, gpointer data) {
  GtkWindow *window = gtk_application_get_active_window(GTK_APPLICATION(application));
  if (!window)
    window = GTK_WINDOW(adw_application_window_new(GTK_APPLICATION(application)));
  gtk_window_present(window);
}

int main(int argc, char **argv) {
  g_autoptr(AdwApplication) application =
      adw_application_new("org.megaslide.Studio", G_APPLICATION_HANDLES_OPEN);
  g_signal_connect(application, "activate", G_CALLBACK(activate_cb), NULL);
  return g_application_run(G_APPLICATION(application), argc, argv);
}
