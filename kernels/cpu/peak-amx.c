#include <immintrin.h>

#include "cpu/peak.h"
#include "cpu/tiles-amx.h"

/* Four tiles of sums, as the products use them: a single one would wait for itself. */
static double peak_bf16(int64_t n) {
  uint16_t operand[2][16 * 32];
  uint32_t state = 1;
  for (int i = 0; i < 2 * 16 * 32; i++) { /* +-[1,2): bits that differ, as those of data do */
    state = state * 1664525u + 1013904223u;
    (&operand[0][0])[i] = (uint16_t)(0x3f80u | (state >> 16 & 0x807fu));
  }
  msk_tiles_begin();
  _tile_loadd(4, operand[0], 64);
  _tile_loadd(5, operand[1], 64);
  _tile_loadd(6, operand[1], 64);
  _tile_loadd(7, operand[0], 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t k = 0; k < n; k++) {
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_release();
  return (double)n * 4 * 16 * 16 * 32 * 2;
}

void msk_peak_init_amx(struct msk_peak_ops *ops) {
  ops->name = "amx";
  ops->bf16 = peak_bf16;
}
