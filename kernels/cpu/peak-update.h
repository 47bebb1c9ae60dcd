/* The sweep of a split master, written once and compiled per instruction set: whole cache lines are read,
 * added to and written, as many at a time of each array as hold 64 elements. */
#pragma once
#include <stdint.h>

#include "msk-peak.h"

/* One cache line; a set with narrower registers takes it in parts. */
struct __attribute__((may_alias)) peak_line {
  uint64_t word[8];
};

static inline __attribute__((always_inline)) void peak_lines(void *array, int bytes, int64_t i, int64_t ahead,
                                                             uint64_t x) {
  struct peak_line *line = (struct peak_line *)((char *)array + i * bytes);
  for (int j = 0; j < bytes; j++) {
    if (ahead)
      __builtin_prefetch((const void *)((uintptr_t)(line + j) + (uintptr_t)(ahead * bytes)), 1);
    for (int k = 0; k < 8; k++)
      line[j].word[k] += x;
  }
}

static inline __attribute__((always_inline)) double update_split_as(const void *g, int g_bytes, void *hi,
                                                                    void *lo, void *m, void *v,
                                                                    int moment_bytes, int64_t ahead,
                                                                    int64_t n) {
  for (int64_t i = 0; i + 64 <= n; i += 64) {
    const struct peak_line *line = (const struct peak_line *)((const char *)g + i * g_bytes);
    uint64_t x = 0;
    for (int j = 0; j < g_bytes; j++) {
      if (ahead)
        __builtin_prefetch((const void *)((uintptr_t)(line + j) + (uintptr_t)(ahead * g_bytes)), 0);
      x += line[j].word[0];
    }
    peak_lines(hi, 2, i, ahead, x);
    peak_lines(lo, 2, i, ahead, x);
    peak_lines(m, moment_bytes, i, ahead, x);
    peak_lines(v, moment_bytes, i, ahead, x);
  }
  return (double)(n / 64 * 64) * (g_bytes + 4 + 2 * moment_bytes);
}

static double update_split(const void *g, int g_bytes, void *hi, void *lo, void *m, void *v, int moment_bytes,
                           int64_t ahead, int64_t n) {
  if (moment_bytes == 4)
    return g_bytes == 4 ? update_split_as(g, 4, hi, lo, m, v, 4, ahead, n)
                        : update_split_as(g, 2, hi, lo, m, v, 4, ahead, n);
  return g_bytes == 4 ? update_split_as(g, 4, hi, lo, m, v, 1, ahead, n)
                      : update_split_as(g, 2, hi, lo, m, v, 1, ahead, n);
}
