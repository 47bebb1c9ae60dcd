/* megaslide-studio: the window. */
#include "window/msu-application.h"
#include "window/msu-settings.h"
#include <glib/gi18n.h>
#include <locale.h>

int main(int argc, char **argv) {
  const char *build = msu_settings_build_folder();
  g_autofree char *translations = build ? g_build_filename(build, "po", NULL) : g_strdup(MSU_LOCALE_FOLDER);
  setlocale(LC_ALL, "");
  bindtextdomain(GETTEXT_PACKAGE, translations);
  bind_textdomain_codeset(GETTEXT_PACKAGE, "UTF-8");
  textdomain(GETTEXT_PACKAGE);
  g_set_application_name("MegaSlide Studio");
  g_autoptr(MsuApplication) application = msu_application_new();
  return g_application_run(G_APPLICATION(application), argc, argv);
}
