#include "window/msu-settings.h"
#include <string.h>

#define SCHEMA "org.megaslide.Studio"

const char *msu_settings_build_folder(void) {
  g_autofree char *program = g_file_read_link("/proc/self/exe", NULL);
  return program && g_str_has_prefix(program, MSU_BUILD_FOLDER "/") ? MSU_BUILD_FOLDER : NULL;
}

static GSettingsSchema *find_schema(void) {
  GSettingsSchemaSource *installed = g_settings_schema_source_get_default();
  GSettingsSchema *schema = installed ? g_settings_schema_source_lookup(installed, SCHEMA, TRUE) : NULL;
  const char *build = msu_settings_build_folder();
  if (schema || !build)
    return schema;
  g_autofree char *folder = g_build_filename(build, "data", NULL);
  g_autoptr(GSettingsSchemaSource) built =
      g_settings_schema_source_new_from_directory(folder, installed, TRUE, NULL);
  return built ? g_settings_schema_source_lookup(built, SCHEMA, FALSE) : NULL;
}

/* Looked up once: the form asks for settings with every key stroke, and the main thread leaves the disk
 * alone. */
GSettings *msu_settings_open(void) {
  static gsize looked;
  static GSettingsSchema *schema;
  if (g_once_init_enter(&looked)) {
    schema = find_schema();
    g_once_init_leave(&looked, 1);
  }
  return schema ? g_settings_new_full(schema, NULL, NULL) : NULL;
}

guint64 msu_settings_host_memory(void) {
  g_autoptr(GSettings) settings = msu_settings_open();
  return settings ? (guint64)(g_settings_get_double(settings, "memory-budget") * (1 << 30)) : 0;
}

int msu_settings_threads(void) {
  g_autoptr(GSettings) settings = msu_settings_open();
  return settings ? g_settings_get_int(settings, "threads") : 0;
}
