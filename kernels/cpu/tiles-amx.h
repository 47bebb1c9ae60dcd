/* Set-up of the AMX tile registers: eight tiles of 16 rows of 64 bytes. Begin with msk_tiles_begin, end with
 * _tile_release, within one kernel call. */
#pragma once
#include <immintrin.h>
#include <stdint.h>

/* The tile intrinsics do not tell the compiler that they read memory; what was stored before must be there.
 */
#define MSK_TILES_SEE_MEMORY() __asm__ volatile("" ::: "memory")

struct msk_tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes_per_row[16];
  uint8_t rows[16];
};

static inline void msk_tiles_begin(void) {
  static const struct msk_tile_config config __attribute__((aligned(64))) = {
      .palette = 1,
      .bytes_per_row = {64, 64, 64, 64, 64, 64, 64, 64},
      .rows = {16, 16, 16, 16, 16, 16, 16, 16},
  };
  MSK_TILES_SEE_MEMORY();
  _tile_loadconfig(&config);
}
