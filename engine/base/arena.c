#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* From this size on an arena asks for large pages: a step walks through all of it, and misses in the table of 4 KiB
 * pages cost about a tenth of the time. */
#define LARGE_PAGE ((size_t)2 << 20)

int ms_arena_open(struct ms_arena *arena, size_t size, struct ms_error *error) {
  size_t page = 4096;
  memset(arena, 0, sizeof *arena);
  if (!size)
    return 0;
  if (size >= 2 * LARGE_PAGE)
    page = LARGE_PAGE;
  size = (size + page - 1) / page * page;
  arena->base = aligned_alloc(page, size);
  if (!arena->base)
    return ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for activations", (double)size / 1048576);
  if (page == LARGE_PAGE)
    madvise(arena->base, size, MADV_HUGEPAGE); /* a wish: without it everything works, a little slower */
  arena->size = size;
  return 0;
}

void ms_arena_release(struct ms_arena *arena) {
  free(arena->base);
  memset(arena, 0, sizeof *arena);
}

void *ms_arena_take(struct ms_arena *arena, size_t bytes) {
  size_t start = arena->used;
  arena->used = start + (bytes + 63) / 64 * 64;
  if (arena->used > arena->peak)
    arena->peak = arena->used;
  if (!arena->base)
    return NULL;
  assert(arena->used <= arena->size);
  return arena->base + start;
}

float *ms_arena_take_f32(struct ms_arena *arena, int64_t count) {
  return ms_arena_take(arena, (size_t)count * sizeof(float));
}
