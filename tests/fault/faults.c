/* A library that is loaded before the program: makes one of its calls to the disk or for memory go wrong.
 *
 * MEGASLIDE_FAULT is "CALLS HOW N [MILLISECONDS]": the N-th of those calls (0: each of them)
 *   write  full   fails: the disk is full from then on, for so long (0: for good); half of it is written
 * first write  eio    fails once write  short  writes half read   eio, short read   flip   returns a byte
 * that is not what was written any    kill   ends the process by SIGKILL, in the middle of a write, or behind
 * a rename any    term   raises SIGTERM any    terms  raises it twice, so many milliseconds apart alloc  null
 * has no memory Calls of `write` are those that change files: write, pwrite, fflush, posix_fallocate,
 * ftruncate, fsync, rename, mkdir; of `read` read and pread; of `alloc` the program's own allocations of 64
 * KiB and more. MEGASLIDE_FAULT_UNDER: only files below this folder count; MEGASLIDE_FAULT_FILES: only those
 * whose path has this in it. MEGASLIDE_FAULT_COUNTS names a file for the numbers of calls, written at the
 * end. */
/* Both names of a call are wanted: programs that are built for large files use the second. */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OPEN __attribute__((visibility("default")))
#define LARGE 65536

enum calls { WRITE, READ, ANY, ALLOC, CALLS };
enum how { NOTHING, FULL, EIO_ONCE, SHORT, FLIP, KILL, TERM, TERMS, NO_MEMORY };
static const char *const calls_names[] = {"write", "read", "any", "alloc"};
static const char *const how_names[] = {"nothing", "full", "eio",   "short", "flip",
                                        "kill",    "term", "terms", "null"};

static struct {
  int ready;
  enum calls calls;
  enum how how;
  long long number, pause;
  char under[PATH_MAX], files[256], program[PATH_MAX];
} fault;
static atomic_llong counts[CALLS];
static atomic_llong full_until; /* milliseconds; 0: not full */

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

__attribute__((constructor)) static void read_fault(void) {
  const char *text = getenv("MEGASLIDE_FAULT"), *under = getenv("MEGASLIDE_FAULT_UNDER"),
             *files = getenv("MEGASLIDE_FAULT_FILES");
  char calls[16] = "", how[16] = "";
  ssize_t n = readlink("/proc/self/exe", fault.program, sizeof fault.program - 1);
  fault.program[n > 0 ? n : 0] = 0;
  snprintf(fault.under, sizeof fault.under, "%s", under ? under : "/nowhere");
  snprintf(fault.files, sizeof fault.files, "%s", files ? files : "");
  if (text && sscanf(text, "%15s %15s %lld %lld", calls, how, &fault.number, &fault.pause) < 3)
    abort();
  for (int i = 0; i < CALLS; i++)
    if (!strcmp(calls, calls_names[i]))
      fault.calls = (enum calls)i;
  for (int i = 0; i <= NO_MEMORY; i++)
    if (!strcmp(how, how_names[i]))
      fault.how = (enum how)i;
  fault.ready = 1;
}

__attribute__((destructor)) static void write_counts(void) {
  const char *path = getenv("MEGASLIDE_FAULT_COUNTS");
  char line[120];
  const int n = snprintf(line, sizeof line, "write %lld read %lld any %lld alloc %lld\n", counts[WRITE],
                         counts[READ], counts[ANY], counts[ALLOC]);
  const int file =
      path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0600) : -1;
  if (file < 0)
    return;
  if (syscall(SYS_write, file, line, n) != n)
    abort();
  close(file);
}

static int path_has(const char *path, const char *files) {
  char absolute[PATH_MAX * 2] = "";
  if (!fault.ready || !path)
    return 0;
  if (path[0] != '/' && getcwd(absolute, PATH_MAX))
    strncat(absolute, "/", 2);
  strncat(absolute, path, PATH_MAX - 1);
  return !strncmp(absolute, fault.under, strlen(fault.under)) && strstr(absolute, files);
}

static int path_counts(const char *path) {
  return path_has(path, fault.files);
}

static int file_counts(int file) {
  char link[64], path[PATH_MAX];
  const int before = errno;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t n = readlink(link, path, sizeof path - 1);
  errno = before;
  path[n > 0 ? n : 0] = 0;
  return path[0] == '/' && path_counts(path);
}

static void terminate(int times) {
  const struct timespec pause = {fault.pause / 1000, fault.pause % 1000 * 1000000};
  for (int i = 0; i < times; i++) {
    if (i > 0)
      nanosleep(&pause, NULL);
    kill(getpid(), SIGTERM);
  }
}

static void *terminate_twice(void *data) {
  terminate(2);
  return data;
}

/* Counts a call and says what becomes of it. KILL: the caller does half of it first. */
static enum how next(enum calls calls) {
  const long long n = ++counts[calls], any = calls == ALLOC ? 0 : ++counts[ANY];
  pthread_t thread;
  if (calls == WRITE && full_until > 0) {
    if (fault.pause == 0 || now() < full_until)
      return FULL;
    full_until = 0;
    return NOTHING;
  }
  if (fault.how == NOTHING || (fault.calls != calls && (fault.calls != ANY || calls == ALLOC)))
    return NOTHING;
  if (fault.number != 0 && fault.number != (fault.calls == ANY ? any : n))
    return NOTHING;
  if (fault.how == FULL)
    full_until = now() + fault.pause;
  if (fault.how == TERM)
    terminate(1);
  if (fault.how == TERMS && pthread_create(&thread, NULL, terminate_twice, NULL) == 0)
    pthread_detach(thread);
  return fault.how == TERM || fault.how == TERMS ? NOTHING : fault.how;
}

/* Of a call that has no half. Returns the error's number, or 0: it is to be done. */
static int whole(enum how how) {
  if (how == KILL)
    kill(getpid(), SIGKILL);
  return how == FULL ? ENOSPC : how == EIO_ONCE ? EIO : 0;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* at < 0: where the file stands. */
static ssize_t put(int file, const void *from, size_t bytes, off_t at) {
  const enum how how = file_counts(file) ? next(WRITE) : NOTHING;
  const int first = how == FULL && full_until - now() > fault.pause - 50; /* some of it still found room */
  ssize_t n = 0;
  if (how == SHORT || how == KILL || first)
    bytes = bytes > 1 ? bytes / 2 : bytes;
  if (how != EIO_ONCE && (how != FULL || first))
    n = at < 0 ? syscall(SYS_write, file, from, bytes) : syscall(SYS_pwrite64, file, from, bytes, at);
  if (how == KILL)
    kill(getpid(), SIGKILL);
  if (how == EIO_ONCE || (how == FULL && (!first || n <= 0))) {
    errno = how == FULL ? ENOSPC : EIO;
    return -1;
  }
  return n;
}

static ssize_t get(int file, void *to, size_t bytes, off_t at) {
  const enum how how = file_counts(file) ? next(READ) : NOTHING;
  if (whole(how)) {
    errno = EIO;
    return -1;
  }
  if (how == SHORT)
    bytes = bytes > 1 ? bytes / 2 : bytes;
  const ssize_t n = at < 0 ? syscall(SYS_read, file, to, bytes) : syscall(SYS_pread64, file, to, bytes, at);
  if (how == FLIP && n > 0)
    ((unsigned char *)to)[n / 3] ^= 0x10;
  return n;
}

OPEN ssize_t write(int file, const void *from, size_t bytes) {
  return put(file, from, bytes, -1);
}
OPEN ssize_t pwrite(int file, const void *from, size_t bytes, off_t at) {
  return put(file, from, bytes, at);
}
OPEN ssize_t pwrite64(int file, const void *from, size_t bytes, off64_t at) {
  return put(file, from, bytes, at);
}
OPEN ssize_t read(int file, void *to, size_t bytes) {
  return get(file, to, bytes, -1);
}
OPEN ssize_t pread(int file, void *to, size_t bytes, off_t at) {
  return get(file, to, bytes, at);
}
OPEN ssize_t pread64(int file, void *to, size_t bytes, off64_t at) {
  return get(file, to, bytes, at);
}

/* A stream's own writes cannot be seen, so its flush stands for them. */
OPEN int fflush(FILE *file) {
  const enum how how = file && file_counts(fileno(file)) ? next(WRITE) : NOTHING;
  if (how == KILL && __fpending(file) > 1) {
    const size_t half = __fpending(file) / 2;
    if (syscall(SYS_write, fileno(file), file->_IO_write_base, half) < 0)
      abort();
  }
  const int number = whole(how);
  if (!number)
    return NEXT(fflush)(file);
  errno = number;
  return EOF;
}

#define CHANGES(name, parameters, arguments, counted, result)                                                \
  OPEN int name parameters {                                                                                 \
    const enum how how = (counted) ? next(WRITE) : NOTHING;                                                  \
    const int number = how == KILL ? 0 : whole(how), done = number ? 0 : NEXT(name) arguments;               \
    if (how == KILL)                                                                                         \
      kill(getpid(), SIGKILL);                                                                               \
    if (!number)                                                                                             \
      return done;                                                                                           \
    errno = number;                                                                                          \
    return result;                                                                                           \
  }
CHANGES(rename, (const char *from, const char *to), (from, to), path_counts(to), -1)
CHANGES(renameat2, (int at, const char *from, int to_at, const char *to, unsigned flags),
        (at, from, to_at, to, flags), path_counts(to), -1)
CHANGES(mkdir, (const char *path, mode_t mode), (path, mode), path_counts(path), -1)
CHANGES(fsync, (int file), (file), file_counts(file), -1)
CHANGES(ftruncate, (int file, off_t bytes), (file, bytes), file_counts(file), -1)
CHANGES(ftruncate64, (int file, off64_t bytes), (file, bytes), file_counts(file), -1)
CHANGES(posix_fallocate, (int file, off_t at, off_t bytes), (file, at, bytes), file_counts(file), number)
CHANGES(posix_fallocate64, (int file, off64_t at, off64_t bytes), (file, at, bytes), file_counts(file),
        number)

static int is_full(const char *path) {
  return path_has(path, "") && full_until > 0 && (fault.pause == 0 || now() < full_until);
}
OPEN int statvfs(const char *path, struct statvfs *disk) {
  const int code = NEXT(statvfs)(path, disk);
  if (code == 0 && is_full(path))
    disk->f_bavail = 0;
  return code;
}
OPEN int statvfs64(const char *path, struct statvfs64 *disk) {
  const int code = NEXT(statvfs64)(path, disk);
  if (code == 0 && is_full(path))
    disk->f_bavail = 0;
  return code;
}

/* 1: the program's own allocation, which has no memory. */
static int refused(size_t bytes, const void *caller) {
  Dl_info info;
  if (bytes < LARGE || !fault.ready || !dladdr(caller, &info) || !info.dli_fname)
    return 0;
  const char *name = strrchr(info.dli_fname, '/'), *own = strrchr(fault.program, '/');
  if (strcmp(name ? name + 1 : info.dli_fname, own ? own + 1 : fault.program) || next(ALLOC) != NO_MEMORY)
    return 0;
  errno = ENOMEM;
  return 1;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
OPEN void *malloc(size_t bytes) {
  return refused(bytes, __builtin_return_address(0)) ? NULL : __libc_malloc(bytes);
}
OPEN void *calloc(size_t count, size_t bytes) {
  return refused(count * bytes, __builtin_return_address(0)) ? NULL : __libc_calloc(count, bytes);
}
OPEN void *realloc(void *memory, size_t bytes) {
  return refused(bytes, __builtin_return_address(0)) ? NULL : __libc_realloc(memory, bytes);
}
OPEN void *aligned_alloc(size_t alignment, size_t bytes) {
  return refused(bytes, __builtin_return_address(0)) ? NULL : __libc_memalign(alignment, bytes);
}
OPEN int posix_memalign(void **memory, size_t alignment, size_t bytes) {
  if (refused(bytes, __builtin_return_address(0)))
    return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory ? 0 : ENOMEM;
}
