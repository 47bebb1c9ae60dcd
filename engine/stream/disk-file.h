/* A working file on disk that is read and written in large pieces past the page cache (O_DIRECT), where the
 * file system lets it be. It has no name: the space is given back when the process ends, however it ends. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ms-error.h"

/* Offsets, lengths and addresses that are multiples of it go past the page cache. */
#define MS_DISK_ALIGN 4096

struct ms_disk_file {
  int fd, direct;    /* -1: closed; direct -1: the file system has none */
  char folder[1024]; /* for messages */
};

static inline int64_t ms_disk_round(int64_t bytes) {
  return (bytes + MS_DISK_ALIGN - 1) / MS_DISK_ALIGN * MS_DISK_ALIGN;
}

/* Makes a file of `bytes` in folder, whose space is taken at once, so that a full disk is known now and not
 * in the middle of a step; it reads as zeros. MS_EOUTPUT: no space (says how much is missing), no such
 * folder. */
int ms_disk_file_open(struct ms_disk_file *file, const char *folder, int64_t bytes, struct ms_error *error);
/* Removes what a program that was killed while it made such a file left in the folder, which no other may be
 * using. */
void ms_disk_file_sweep(const char *folder);
void ms_disk_file_close(struct ms_disk_file *file);
/* All of the bytes or an error: MS_EINPUT (read), MS_EOUTPUT (write). Several threads may read and write at
 * once. */
int ms_disk_file_read(const struct ms_disk_file *file, int64_t at, void *to, size_t bytes,
                      struct ms_error *error);
int ms_disk_file_write(const struct ms_disk_file *file, int64_t at, const void *from, size_t bytes,
                       struct ms_error *error);
