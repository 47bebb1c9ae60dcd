#include "base/system.h"

#include <stdio.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string.h>
#include <time.h>

double ms_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The value in bytes of "KEY:  123 kB" in a file of /proc, or 0. */
static size_t read_kilobytes(const char *path, const char *key) {
  char line[256];
  size_t bytes = 0;
  FILE *file = fopen(path, "re");
  if (!file)
    return 0;
  while (fgets(line, sizeof line, file)) {
    unsigned long long value;
    size_t length = strlen(key);
    if (!strncmp(line, key, length) && line[length] == ':' &&
        sscanf(line + length + 1, "%llu", &value) == 1) {
      bytes = (size_t)value * 1024;
      break;
    }
  }
  fclose(file);
  return bytes;
}

size_t ms_memory_peak(void) {
  return read_kilobytes("/proc/self/status", "VmHWM");
}

size_t ms_memory_resident(void) {
  return read_kilobytes("/proc/self/status", "VmRSS");
}

static size_t read_number(const char *path) {
  unsigned long long value = 0;
  FILE *file = fopen(path, "re");
  if (!file)
    return 0;
  if (fscanf(file, "%llu", &value) != 1)
    value = 0; /* "max": no limit */
  fclose(file);
  return (size_t)value;
}

size_t ms_memory_available(void) {
  size_t available = read_kilobytes("/proc/meminfo", "MemAvailable");
  size_t limit = read_number("/sys/fs/cgroup/memory.max"),
         used = read_number("/sys/fs/cgroup/memory.current");
  if (limit && limit > used && limit - used < available)
    available = limit - used;
  return available;
}

const char *ms_format_bytes(double bytes, char *text, size_t size) {
  if (bytes >= 1073741824.0)
    snprintf(text, size, "%.2f GiB", bytes / 1073741824.0);
  else if (bytes >= 1048576.0)
    snprintf(text, size, "%.0f MiB", bytes / 1048576.0);
  else if (bytes >= 1024)
    snprintf(text, size, "%.0f KiB", bytes / 1024.0);
  else
    snprintf(text, size, "%.0f B", bytes);
  return text;
}

void ms_memory_trim(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
