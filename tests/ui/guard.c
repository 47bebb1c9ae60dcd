/* A library that is loaded before the Studio: reports every use of the user's files and of the data base on
 * the main thread, which must never wait for a disk.
 *
 * MEGASLIDE_GUARD names the file that reports are appended to; MEGASLIDE_GUARD_FOLDERS the folders that
 * count, divided by colons. Fonts, icons, themes and settings, which the toolkit reads by itself, lie
 * elsewhere. */
/* Both names of a call are wanted: programs that are built for large files use the second. */
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int on_main(void) {
  return syscall(SYS_gettid) == getpid();
}

static int counts(const char *path) {
  const char *folders = getenv("MEGASLIDE_GUARD_FOLDERS");
  while (path && folders && *folders) {
    const size_t n = strcspn(folders, ":");
    if (n && !strncmp(path, folders, n) && (path[n] == '/' || !path[n]))
      return 1;
    folders += n + (folders[n] == ':');
  }
  return 0;
}

static void report(const char *what, const char *subject) {
  const char *to = getenv("MEGASLIDE_GUARD");
  char line[600];
  const int n = snprintf(line, sizeof line, "%s %.500s\n", what, subject);
  const int file =
      to ? (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0)
    return;
  if (write(file, line, (size_t)n) != n)
    abort();
  close(file);
}

static void look(const char *what, const char *path) {
  if (counts(path) && on_main())
    report(what, path);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define OPENS(name)                                                                                          \
  __attribute__((visibility("default"))) int name(const char *path, int flags, ...) {                        \
    va_list list;                                                                                            \
    va_start(list, flags);                                                                                   \
    const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;                            \
    va_end(list);                                                                                            \
    look(#name, path);                                                                                       \
    return NEXT(name)(path, flags, mode);                                                                    \
  }
OPENS(open)
OPENS(open64)

#define PATHS(type, name, parameters, arguments)                                                             \
  __attribute__((visibility("default"))) type name parameters {                                              \
    look(#name, path);                                                                                       \
    return NEXT(name) arguments;                                                                             \
  }
PATHS(FILE *, fopen, (const char *path, const char *mode), (path, mode))
PATHS(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
PATHS(int, stat, (const char *path, struct stat *info), (path, info))
PATHS(int, lstat, (const char *path, struct stat *info), (path, info))
PATHS(int, stat64, (const char *path, struct stat64 *info), (path, info))
PATHS(int, lstat64, (const char *path, struct stat64 *info), (path, info))
PATHS(int, access, (const char *path, int mode), (path, mode))
PATHS(int, unlink, (const char *path), (path))
PATHS(int, rmdir, (const char *path), (path))
PATHS(int, mkdir, (const char *path, mode_t mode), (path, mode))
PATHS(int, rename, (const char *path, const char *to), (path, to))
PATHS(DIR *, opendir, (const char *path), (path))

struct sqlite3_stmt;
int sqlite3_step(struct sqlite3_stmt *statement);
__attribute__((visibility("default"))) int sqlite3_step(struct sqlite3_stmt *statement) {
  if (on_main())
    report("sqlite3_step", "");
  return NEXT(sqlite3_step)(statement);
}
