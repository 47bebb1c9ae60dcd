#include "library/trash.h"

#include <errno.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/main-thread.h"
#include "msa-error.h"

/* The highest folder on the same disk as the file. */
static char *top_folder(const char *path, dev_t disk) {
  char *top = g_path_get_dirname(path);
  while (strcmp(top, "/")) {
    char *above = g_path_get_dirname(top);
    struct stat info;
    if (stat(above, &info) < 0 || info.st_dev != disk) {
      g_free(above);
      break;
    }
    g_free(top);
    top = above;
  }
  return top;
}

/* Whether the note NAME.trashinfo is about `path`, which it may name from the top folder of its disk. */
static gboolean is_about(const char *note, const char *path, const char *top) {
  g_autoptr(GKeyFile) file = g_key_file_new();
  if (!g_key_file_load_from_file(file, note, G_KEY_FILE_NONE, NULL))
    return FALSE;
  g_autofree char *escaped = g_key_file_get_string(file, "Trash Info", "Path", NULL);
  g_autofree char *named = escaped ? g_uri_unescape_string(escaped, NULL) : NULL;
  if (!named)
    return FALSE;
  if (g_path_is_absolute(named))
    return !strcmp(named, path);
  g_autofree char *whole = g_build_filename(top, named, NULL);
  return !strcmp(whole, path);
}

static char *find_in(const char *trash, const char *path, const char *top, const struct stat *file) {
  g_autofree char *notes = g_build_filename(trash, "info", NULL);
  g_autoptr(GDir) dir = g_dir_open(notes, 0, NULL);
  const char *name;
  while (dir && (name = g_dir_read_name(dir))) {
    if (!g_str_has_suffix(name, ".trashinfo"))
      continue;
    g_autofree char *own = g_strndup(name, strlen(name) - strlen(".trashinfo"));
    g_autofree char *location = g_build_filename(trash, "files", own, NULL);
    g_autofree char *note = g_build_filename(notes, name, NULL);
    struct stat info;
    if (lstat(location, &info) == 0 && info.st_ino == file->st_ino && info.st_dev == file->st_dev &&
        is_about(note, path, top))
      return g_steal_pointer(&location);
  }
  return NULL;
}

static char *find(const char *path, const struct stat *file) {
  g_autofree char *top = top_folder(path, file->st_dev);
  char *const trashes[] = {g_build_filename(g_get_user_data_dir(), "Trash", NULL),
                           g_strdup_printf("%s/.Trash/%d", top, (int)getuid()),
                           g_strdup_printf("%s/.Trash-%d", top, (int)getuid())};
  char *location = NULL;
  for (guint i = 0; i < G_N_ELEMENTS(trashes); i++) {
    if (!location)
      location = find_in(trashes[i], path, top, file);
    g_free(trashes[i]);
  }
  return location;
}

static char *move_to_own(const char *path, const char *own_trash, GError **error) {
  g_autofree char *name = g_path_get_basename(path);
  if (g_mkdir_with_parents(own_trash, 0700) < 0) {
    g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
                _("The folder “%s” cannot be made: %s. Check who may write there."), own_trash,
                g_strerror(errno));
    return NULL;
  }
  g_autoptr(GFile) from = g_file_new_for_path(path);
  for (int i = 0;; i++) {
    char *location =
        i ? g_strdup_printf("%s/%d-%s", own_trash, i, name) : g_build_filename(own_trash, name, NULL);
    g_autoptr(GFile) to = g_file_new_for_path(location);
    g_autoptr(GError) failure = NULL;
    if (g_file_move(from, to, G_FILE_COPY_NOFOLLOW_SYMLINKS, NULL, NULL, NULL, &failure))
      return location;
    g_free(location);
    if (!g_error_matches(failure, G_IO_ERROR, G_IO_ERROR_EXISTS)) {
      g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
                  _("“%s” cannot be moved to the trash: %s. Check who may write in its folder."), path,
                  failure->message);
      return NULL;
    }
  }
}

char *msa_trash_move(const char *path, const char *own_trash, GError **error) {
  g_autoptr(GFile) file = g_file_new_for_path(path);
  struct stat info;
  MSA_ASSERT_OFF_MAIN();
  if (lstat(path, &info) < 0 && (errno == ENOENT || errno == ENOTDIR))
    return g_strdup("");
  if (!g_file_trash(file, NULL, NULL))
    return move_to_own(path, own_trash, error);
  char *location = find(path, &info);
  /* It is in some trash that we cannot see into; the desktop can bring it back. */
  return location ? location : g_strdup("?");
}

gboolean msa_trash_restore(const char *location, const char *path, GError **error) {
  MSA_ASSERT_OFF_MAIN();
  if (!*location)
    return TRUE;
  if (!strcmp(location, "?")) {
    g_set_error(error, MSA_ERROR, MSA_ERROR_INPUT,
                _("“%s” is in the desktop’s trash: restore it there, then add it again"), path);
    return FALSE;
  }
  g_autoptr(GFile) from = g_file_new_for_path(location);
  g_autoptr(GFile) to = g_file_new_for_path(path);
  g_autofree char *folder = g_path_get_dirname(path);
  g_autoptr(GError) failure = NULL;
  g_mkdir_with_parents(folder, 0777);
  if (!g_file_move(from, to, G_FILE_COPY_NOFOLLOW_SYMLINKS, NULL, NULL, NULL, &failure)) {
    if (g_error_matches(failure, G_IO_ERROR, G_IO_ERROR_EXISTS))
      g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
                  _("Something else is at “%s” now: move it away, then restore again."), path);
    else
      g_set_error(error, MSA_ERROR, MSA_ERROR_OUTPUT,
                  _("“%s” cannot be restored from the trash: %s. Check who may write in its folder."), path,
                  failure->message);
    return FALSE;
  }
  /* the desktop's note of it; our own trash has none */
  g_autofree char *files = g_path_get_dirname(location), *trash = g_path_get_dirname(files),
                  *name = g_path_get_basename(location);
  g_autofree char *note = g_strdup_printf("%s/info/%s.trashinfo", trash, name);
  g_unlink(note);
  return TRUE;
}
