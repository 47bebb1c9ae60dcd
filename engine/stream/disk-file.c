#include "stream/disk-file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/system.h"

/* One request to the disk: large enough for its full rate, small enough to be stopped between two. */
#define REQUEST ((size_t)16 << 20)

int ms_disk_file_open(struct ms_disk_file *file, const char *folder, int64_t bytes, struct ms_error *error) {
  char path[1100], size[32];
  int failed;
  *file = (struct ms_disk_file){-1, -1, ""};
  snprintf(file->folder, sizeof file->folder, "%s", folder);
  snprintf(path, sizeof path, "%s/state-XXXXXX", file->folder);
  file->fd = mkostemp(path, O_CLOEXEC);
  if (file->fd < 0)
    return ms_error_set(error, MS_EOUTPUT, "cannot make a working file in \"%.300s\": %s", folder,
                        strerrordesc_np(errno));
  file->direct = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
  unlink(path);
  failed = bytes > 0 ? posix_fallocate(file->fd, 0, bytes) : 0;
  if (failed) {
    ms_disk_file_close(file);
    return ms_error_set(error, MS_EOUTPUT, "no room for %s of working state in \"%.300s\": %s",
                        ms_format_bytes((double)bytes, size, sizeof size), folder, strerrordesc_np(failed));
  }
  return 0;
}

void ms_disk_file_sweep(const char *folder) {
  char path[1400];
  struct dirent *entry;
  DIR *dir = opendir(folder);
  while (dir && (entry = readdir(dir)))
    if (!strncmp(entry->d_name, "state-", 6) && strlen(entry->d_name) == 12) {
      snprintf(path, sizeof path, "%.1100s/%.255s", folder, entry->d_name);
      unlink(path);
    }
  if (dir)
    closedir(dir);
}

void ms_disk_file_close(struct ms_disk_file *file) {
  if (file->fd >= 0)
    close(file->fd);
  if (file->direct >= 0)
    close(file->direct);
  file->fd = file->direct = -1;
}

static int is_aligned(int64_t at, const void *memory, size_t bytes) {
  return ((uint64_t)at | (uintptr_t)memory | bytes) % MS_DISK_ALIGN == 0;
}

/* All of the bytes in requests, past the cache while everything is aligned. Returns 0, an errno, or -1: the
 * file ends or takes no more. */
static int transfer(const struct ms_disk_file *file, int write, int64_t at, void *memory, size_t bytes) {
  int direct = file->direct >= 0 && is_aligned(at, memory, bytes);
  for (size_t done = 0; done < bytes;) {
    int fd = direct ? file->direct : file->fd;
    size_t part = bytes - done < REQUEST ? bytes - done : REQUEST;
    ssize_t n = write ? pwrite(fd, (char *)memory + done, part, at + (int64_t)done)
                      : pread(fd, (char *)memory + done, part, at + (int64_t)done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && direct && errno == EINVAL) {
      direct = 0;
      continue;
    }
    if (n <= 0)
      return n < 0 ? errno : -1;
    done += (size_t)n;
    if (direct && done % MS_DISK_ALIGN) /* less than was asked for: the rest is not aligned */
      direct = 0;
  }
  return 0;
}

int ms_disk_file_read(const struct ms_disk_file *file, int64_t at, void *to, size_t bytes,
                      struct ms_error *error) {
  int failed = transfer(file, 0, at, to, bytes);
  if (!failed)
    return 0;
  return ms_error_set(error, MS_EINPUT, "cannot read the working state in \"%.300s\": %s", file->folder,
                      failed > 0 ? strerrordesc_np(failed) : "the file is too short");
}

int ms_disk_file_write(const struct ms_disk_file *file, int64_t at, const void *from, size_t bytes,
                       struct ms_error *error) {
  int failed = transfer(file, 1, at, (void *)from, bytes);
  if (!failed)
    return 0;
  return ms_error_set(error, MS_EOUTPUT, "cannot write the working state in \"%.300s\": %s", file->folder,
                      failed > 0 ? strerrordesc_np(failed) : "nothing was written");
}
