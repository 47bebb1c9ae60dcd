#include "core/studio-folders.h"

/* The environment is read each time, not GLib's copy of it, so that a test can move its folders. */
static char *base(const char *variable, const char *below_home) {
  const char *named = g_getenv(variable);
  if (named && g_path_is_absolute(named))
    return g_build_filename(named, "megaslide", NULL);
  return g_build_filename(g_get_home_dir(), below_home, "megaslide", NULL);
}

struct msa_studio_folders *msa_studio_folders_new(void) {
  struct msa_studio_folders *folders = g_new0(struct msa_studio_folders, 1);
  folders->home = base("XDG_DATA_HOME", ".local/share");
  folders->clips = g_build_filename(folders->home, "clips", NULL);
  folders->models = g_build_filename(folders->home, "models", NULL);
  folders->runs = g_build_filename(folders->home, "runs", NULL);
  folders->jobs = g_build_filename(folders->home, "jobs", NULL);
  folders->store = g_build_filename(folders->home, "studio.db", NULL);
  folders->cache = base("XDG_CACHE_HOME", ".cache");
  return folders;
}

void msa_studio_folders_free(struct msa_studio_folders *folders) {
  g_free(folders->home);
  g_free(folders->clips);
  g_free(folders->models);
  g_free(folders->runs);
  g_free(folders->jobs);
  g_free(folders->store);
  g_free(folders->cache);
  g_free(folders);
}
