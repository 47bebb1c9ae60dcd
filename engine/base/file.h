/* Files that are there whole or not at all, and reading small files.
 *
 *   struct ms_file_out out;
 *   if (ms_file_out_open (&out, path, error) < 0) return ...;
 *   if (ms_file_out_write (&out, data, size, error) < 0 || ms_file_out_commit (&out, error) < 0)
 *     ms_file_out_abandon (&out);
 *
 * The bytes grow in PATH.part in the same folder, locked against a second writer; commit syncs it, renames it
 * to PATH and syncs the folder. What a killed program leaves behind is PATH.part, which the next writer of
 * PATH takes over. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ms-error.h"

struct ms_file_out {
  int fd;     /* of PATH.part; -1: closed */
  char *path; /* the target; owned */
  char *part; /* PATH.part; owned */
};

/* Returns 0, or MS_EOUTPUT with the path and the reason: no such folder, not a folder, no permission, disk
 * full, target is a folder or a device, somebody else is writing it. On failure `out` needs no release. */
int ms_file_out_open(struct ms_file_out *out, const char *path, struct ms_error *error);
int ms_file_out_write(struct ms_file_out *out, const void *data, size_t size, struct ms_error *error);
/* Returns 0: the file is at `path` and `out` is released; or MS_EOUTPUT: what was at `path` before stands,
 * and the caller still has to abandon (only if the folder cannot be synced at the very end, the new file is
 * there, but may not outlive a crash). */
int ms_file_out_commit(struct ms_file_out *out, struct ms_error *error);
/* As commit, without waiting for the disk: the file is whole whatever becomes of this process, but what a
 * power failure leaves may be less; a reader must be able to tell. */
int ms_file_out_publish(struct ms_file_out *out, struct ms_error *error);
/* Removes PATH.part and releases. Harmless after commit, or on a zeroed object. */
void ms_file_out_abandon(struct ms_file_out *out);

/* Writes a whole file in one go. MS_EOUTPUT. */
int ms_file_write_all(const char *path, const void *data, size_t size, struct ms_error *error);
/* Told after each piece of a copy; less than 0 ends it with that code. */
typedef int (*ms_copied_fn)(void *data, size_t bytes, struct ms_error *error);
/* Copies a file whole, of any size; copied may be NULL. MS_EINPUT (from), MS_EOUTPUT (to), MS_ENOMEM, or what
 * copied returned. */
int ms_file_copy(const char *from, const char *to, ms_copied_fn copied, void *data, struct ms_error *error);
/* Tries whether a file can be made at path, by making PATH.part, writing a little and removing it.
 * MS_EOUTPUT. */
int ms_file_check(const char *path, struct ms_error *error);

/* Takes the lock file FOLDER/lock for this process, until ms_folder_unlock or the process's end; makes the
 * folder if it is not there and `make` is set. Returns a descriptor of 0 or more; MS_EOUTPUT: another process
 * holds it
 * (`what`, "another run writes the unfinished clip in", begins the message), or it cannot be made. */
int ms_folder_lock(const char *folder, int make, const char *what, struct ms_error *error);
/* Takes the lock file away, the folder too if nothing else is in it, and gives the lock back. lock < 0:
 * nothing. */
void ms_folder_unlock(const char *folder, int lock);

/* Reads a regular file of at most max_bytes; *data is allocated, the caller frees it, and a zero byte follows
 * the contents. MS_EINPUT (missing, not a file, too large, read error) or MS_ENOMEM. */
int ms_file_read_all(const char *path, size_t max_bytes, char **data, size_t *size, struct ms_error *error);
