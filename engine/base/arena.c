#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)
#define LARGE_PAGE ((size_t)2 << 20)
/* From this size on memory asks for large pages, which may round it up by one of them: a step walks through
 * all of an arena, and misses in the table of 4 KiB pages cost about a tenth of the time. */
#define LARGE_ARENA (2 * LARGE_PAGE)
#define LARGE_BUFFER (16 * LARGE_PAGE)

/* Of pages of 4 KiB, or of large ones. */
static void *take_pages(size_t *bytes, int large) {
  size_t page = large ? LARGE_PAGE : PAGE;
  void *memory;
  *bytes = *bytes ? (*bytes + page - 1) / page * page : page;
  memory = aligned_alloc(page, *bytes);
  if (memory && large)
    madvise(memory, *bytes, MADV_HUGEPAGE); /* a wish: without it everything works, a little slower */
  return memory;
}

void *ms_pages_take(size_t bytes) {
  return take_pages(&bytes, bytes >= LARGE_BUFFER);
}

int ms_arena_open(struct ms_arena *arena, size_t size, struct ms_error *error) {
  memset(arena, 0, sizeof *arena);
  if (!size)
    return 0;
  arena->base = take_pages(&size, size >= LARGE_ARENA);
  if (!arena->base)
    return ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for activations", (double)size / 1048576);
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
