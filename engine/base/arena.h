/* A bump allocator: one block, sized beforehand, from which buffers are taken and given back in stack order.
 *
 * Activations of a job come from one arena, so nothing is allocated inside a step. Opened with size 0 it only
 * measures: take returns NULL and `peak` says how much the same calls would need. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "ms-error.h"

struct ms_arena {
  unsigned char *base; /* aligned to 64; owned */
  size_t size, used, peak;
};

/* Memory that starts at a page, contents undefined; large blocks start at a huge page and ask for more of
 * them, which sweeps over memory are glad of. NULL: out of memory; free with free. */
void *ms_pages_take(size_t bytes);

int ms_arena_open(struct ms_arena *arena, size_t size, struct ms_error *error);
void ms_arena_release(struct ms_arena *arena);
/* `bytes` aligned to 64, contents undefined. NULL only when the arena measures; taking more than it holds is
 * a bug. */
void *ms_arena_take(struct ms_arena *arena, size_t bytes);
float *ms_arena_take_f32(struct ms_arena *arena, int64_t count);
static inline size_t ms_arena_mark(const struct ms_arena *arena) {
  return arena->used;
}
static inline void ms_arena_rewind(struct ms_arena *arena, size_t mark) {
  arena->used = mark;
}
