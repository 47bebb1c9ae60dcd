/* Into the trash and back; inside the app only, off the main thread.
 *
 * The desktop's trash (freedesktop.org's specification) is used where there is one for the file's disk, so
 * that a person finds the file there. Elsewhere it is moved to a folder of our own. GIO does not say where a
 * file went; it is found again by its identity on the disk. */
#pragma once
#include <gio/gio.h>

/* Moves a file or folder away; returns its location for msa_trash_restore (newly allocated), or NULL and an
 * error. A file that is not there any more has the location "". */
char *msa_trash_move(const char *path, const char *own_trash, GError **error);
/* Moves it back to `path`, where nothing may have taken its place. */
gboolean msa_trash_restore(const char *location, const char *path, GError **error);
