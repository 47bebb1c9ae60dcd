#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "harness.h"

/* The same calls on a measuring and on a real arena. */
static size_t use(struct ms_arena *arena) {
  size_t mark;
  ms_arena_take(arena, 1);
  mark = ms_arena_mark(arena);
  ms_arena_take_f32(arena, 1000);
  ms_arena_take(arena, 65);
  ms_arena_rewind(arena, mark);
  ms_arena_take(arena, 100);
  return arena->peak;
}

int main(int argc, char **argv) {
  struct ms_arena plan, arena;
  struct ms_error error = {0};
  size_t need, mark;
  unsigned char *a, *b, *c;
  check_begin(argc, argv);
  check_ok(ms_arena_open(&plan, 0, &error) == 0, "an arena that measures opens");
  need = use(&plan);
  check_ok(ms_arena_take(&plan, 8) == NULL, "measuring gives no memory");
  check_ok(need == 64 + 4032 + 128, "peak is %zu bytes, rounded per buffer to 64", need);
  check_ok(ms_arena_open(&arena, need, &error) == 0 && arena.size >= need,
           "an arena of the measured size opens");
  check_ok(use(&arena) == need, "the real arena has the peak that was measured");
  ms_arena_rewind(&arena, 0);
  a = ms_arena_take(&arena, 3);
  mark = ms_arena_mark(&arena);
  b = ms_arena_take(&arena, 64);
  check_ok((uintptr_t)a % 64 == 0 && (uintptr_t)b % 64 == 0 && b == a + 64,
           "buffers are aligned and side by side");
  memset(a, 1, 64);
  memset(b, 2, 64);
  ms_arena_rewind(&arena, mark);
  c = ms_arena_take(&arena, 1);
  check_ok(c == b, "what was given back is taken again");
  ms_arena_release(&arena);
  check_ok(!arena.base && !arena.size, "release leaves an empty object");
  ms_arena_release(&arena);
  check_ok(ms_arena_open(&arena, (size_t)1 << 60, &error) == MS_ENOMEM && error.code == MS_ENOMEM &&
               strstr(error.message, "MiB"),
           "an impossible size is an error that names it: %s", error.message);
  return check_end();
}
