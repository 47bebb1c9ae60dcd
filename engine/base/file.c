#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* strerror keeps its text in static memory; strerrordesc_np's texts are constants, so safe with threads. */
static const char *reason(int number) {
  const char *text = strerrordesc_np(number);
  return text ? text : "unknown error";
}

/* The folder part of path, "." if there is none. NULL: out of memory. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash)
    return strdup(".");
  return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

static int open_failed(const char *path, int number, struct ms_error *error) {
  char *folder = folder_of(path);
  int code;
  if (folder && number == ENOENT)
    code = ms_error_set(error, MS_EOUTPUT, "cannot write \"%.200s\": the folder \"%.160s\" does not exist",
                        path, folder);
  else
    code = ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": %s", path, reason(number));
  free(folder);
  return code;
}

/* Opens and locks the part file. A writer that was finishing may have renamed the file between our open and
 * our lock; then what we hold is no longer the part file but somebody's result, and we start again. Returns a
 * descriptor or -errno. */
static int open_part(const char *part) {
  for (int tries = 0; tries < 100; tries++) {
    struct stat mine, there;
    int fd = open(part, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666), number;
    if (fd < 0)
      return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
      close(fd);
      return -EWOULDBLOCK;
    }
    if (fstat(fd, &mine) == 0 && stat(part, &there) == 0 && mine.st_ino == there.st_ino &&
        mine.st_dev == there.st_dev) {
      if (ftruncate(fd, 0) == 0)
        return fd;
      number = errno;
      unlink(part);
      close(fd);
      return -number;
    }
    close(fd);
  }
  return -EBUSY;
}

/* Links there name what a process has open; a file renamed over one would stand in every program's way. */
static int is_device_link(const char *path) {
  struct stat info;
  return !strncmp(path, "/dev/", 5) && strncmp(path, "/dev/shm/", 9) != 0 && lstat(path, &info) == 0 &&
         S_ISLNK(info.st_mode);
}

int ms_file_out_open(struct ms_file_out *out, const char *path, struct ms_error *error) {
  struct stat info;
  int code;
  memset(out, 0, sizeof *out);
  out->fd = -1;
  if (!*path)
    return ms_error_set(error, MS_EOUTPUT, "cannot write a file without a name");
  if (is_device_link(path) || (stat(path, &info) == 0 && !S_ISREG(info.st_mode)))
    return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": it is %s, not a file", path,
                        !is_device_link(path) && S_ISDIR(info.st_mode) ? "a folder" : "a device or the like");
  out->path = strdup(path);
  out->part = malloc(strlen(path) + sizeof ".part");
  if (!out->path || !out->part) {
    code = ms_error_set(error, MS_ENOMEM, "cannot write \"%.300s\": out of memory", path);
    goto fail;
  }
  sprintf(out->part, "%s.part", path);
  out->fd = open_part(out->part);
  if (out->fd == -EWOULDBLOCK) {
    code = ms_error_set(error, MS_EOUTPUT,
                        "cannot write \"%.200s\": another program is writing it (\"%.200s\" is in use)", path,
                        out->part);
    goto fail;
  }
  if (out->fd < 0) {
    code = open_failed(path, -out->fd, error);
    goto fail;
  }
  return 0;
fail:
  free(out->path);
  free(out->part);
  memset(out, 0, sizeof *out);
  out->fd = -1;
  return code;
}

int ms_file_out_write(struct ms_file_out *out, const void *data, size_t size, struct ms_error *error) {
  const char *at = data;
  while (size) {
    /* the kernel writes at most 2 GiB in one call */
    ssize_t n = write(out->fd, at, size < (size_t)1 << 30 ? size : (size_t)1 << 30);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": %s", out->path,
                          reason(n < 0 ? errno : ENOSPC));
    at += n;
    size -= (size_t)n;
  }
  return 0;
}

static int sync_folder(const char *path) {
  char *folder = folder_of(path);
  int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, number = 0;
  free(folder);
  if (fd < 0)
    return 0; /* a folder that may be written but not read cannot be synced */
  if (fsync(fd) < 0 && errno != EINVAL && errno != ENOTSUP && errno != EROFS)
    number = errno;
  close(fd);
  return number;
}

static int finish(struct ms_file_out *out, int sync, struct ms_error *error) {
  int number = 0;
  if ((sync && fsync(out->fd) < 0) || rename(out->part, out->path) < 0)
    return ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": %s", out->path, reason(errno));
  if (sync)
    number = sync_folder(out->path);
  /* closed after the rename, so that the lock covers it */
  close(out->fd);
  out->fd = -1;
  if (number)
    ms_error_set(error, MS_EOUTPUT, "cannot write \"%.300s\": %s", out->path, reason(number));
  free(out->path);
  free(out->part);
  memset(out, 0, sizeof *out);
  out->fd = -1;
  return number ? MS_EOUTPUT : 0;
}

int ms_file_out_commit(struct ms_file_out *out, struct ms_error *error) {
  return finish(out, 1, error);
}

int ms_file_out_publish(struct ms_file_out *out, struct ms_error *error) {
  return finish(out, 0, error);
}

void ms_file_out_abandon(struct ms_file_out *out) {
  if (!out->path)
    return;
  unlink(out->part);
  close(out->fd);
  free(out->path);
  free(out->part);
  memset(out, 0, sizeof *out);
  out->fd = -1;
}

int ms_file_write_all(const char *path, const void *data, size_t size, struct ms_error *error) {
  struct ms_file_out out;
  int code = ms_file_out_open(&out, path, error);
  if (code < 0)
    return code;
  code = ms_file_out_write(&out, data, size, error);
  if (code == 0)
    code = ms_file_out_commit(&out, error);
  ms_file_out_abandon(&out);
  return code;
}

int ms_file_copy(const char *from, const char *to, ms_copied_fn copied, void *data, struct ms_error *error) {
  static const size_t piece = (size_t)1 << 20;
  struct ms_file_out out = {.fd = -1};
  struct stat info;
  int code = 0, in = open(from, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not block */
  char *buffer = malloc(piece);
  ssize_t n;
  if (in < 0 || fstat(in, &info) < 0)
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", from, reason(errno));
  else if (!S_ISREG(info.st_mode))
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": it is not a file", from);
  else if (!buffer)
    code = ms_error_set(error, MS_ENOMEM, "cannot copy \"%.300s\": out of memory", from);
  if (code == 0)
    code = ms_file_out_open(&out, to, error);
  while (code == 0 && (n = read(in, buffer, piece)) != 0)
    if (n > 0) {
      code = ms_file_out_write(&out, buffer, (size_t)n, error);
      if (code == 0 && copied)
        code = copied(data, (size_t)n, error);
    } else if (errno != EINTR) {
      code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", from, reason(errno));
    }
  if (code == 0)
    code = ms_file_out_commit(&out, error);
  ms_file_out_abandon(&out);
  if (in >= 0)
    close(in);
  free(buffer);
  return code;
}

int ms_folder_lock(const char *folder, int make, const char *what, struct ms_error *error) {
  char *path = malloc(strlen(folder) + sizeof "/lock");
  int code = 0, number = EBUSY;
  if (!path)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  sprintf(path, "%s/lock", folder);
  /* Whoever held the lock may have removed the folder between our open and our lock: then we hold nothing. */
  for (int tries = 0; tries < 100 && code == 0; tries++) {
    struct stat mine, there;
    int fd;
    if (make && mkdir(folder, 0777) < 0 && errno != EEXIST) {
      number = errno;
      break;
    }
    fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0) {
      number = errno;
      if (make && number == ENOENT)
        continue;
      break;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
      code = ms_error_set(error, MS_EOUTPUT, "%s \"%.300s\": wait for it, or name another", what, folder);
    } else if (fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
               mine.st_dev == there.st_dev) {
      free(path);
      return fd;
    }
    close(fd);
  }
  free(path);
  return code < 0 ? code
                  : ms_error_set(error, MS_EOUTPUT, "cannot use the folder \"%.300s\": %s", folder,
                                 reason(number));
}

void ms_folder_unlock(const char *folder, int lock) {
  char *path;
  if (lock < 0)
    return;
  path = malloc(strlen(folder) + sizeof "/lock");
  if (path) {
    sprintf(path, "%s/lock", folder);
    unlink(path);
    rmdir(folder);
    free(path);
  }
  close(lock);
}

int ms_file_check(const char *path, struct ms_error *error) {
  static const char probe[65536];
  struct ms_file_out out;
  int code = ms_file_out_open(&out, path, error);
  if (code < 0)
    return code;
  code = ms_file_out_write(&out, probe, sizeof probe, error);
  ms_file_out_abandon(&out);
  return code;
}

int ms_file_read_all(const char *path, size_t max_bytes, char **data, size_t *size, struct ms_error *error) {
  struct stat info;
  size_t got = 0, want;
  char *bytes = NULL;
  int code, fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe must not block */
  *data = NULL;
  *size = 0;
  if (fd < 0 || fstat(fd, &info) < 0) {
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", path, reason(errno));
    goto done;
  }
  if (!S_ISREG(info.st_mode)) {
    code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": it is not a file", path);
    goto done;
  }
  if ((uint64_t)info.st_size > max_bytes) {
    code = ms_error_set(error, MS_EINPUT,
                        "cannot read \"%.300s\": %lld bytes are more than the %zu expected at most", path,
                        (long long)info.st_size, max_bytes);
    goto done;
  }
  want = (size_t)info.st_size;
  bytes = malloc(want + 1);
  if (!bytes) {
    code = ms_error_set(error, MS_ENOMEM, "cannot read \"%.300s\": no memory for %zu bytes", path, want);
    goto done;
  }
  while (got < want) {
    ssize_t n = read(fd, bytes + got, want - got);
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      code = ms_error_set(error, MS_EINPUT, "cannot read \"%.300s\": %s", path,
                          n < 0 ? reason(errno) : "it became shorter");
      goto done;
    }
    got += (size_t)n;
  }
  bytes[want] = 0;
  *data = bytes;
  *size = want;
  bytes = NULL;
  code = 0;
done:
  free(bytes);
  if (fd >= 0)
    close(fd);
  return code;
}
