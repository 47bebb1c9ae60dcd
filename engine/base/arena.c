#include "base/arena.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int ms_arena_open(struct ms_arena *arena, size_t size, struct ms_error *error) {
  memset(arena, 0, sizeof *arena);
  if (!size)
    return 0;
  size = (size + 4095) / 4096 * 4096;
  arena->base = aligned_alloc(4096, size);
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
