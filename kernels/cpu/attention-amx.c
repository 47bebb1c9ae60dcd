/* Attention on AMX tiles: bfloat16 products of 16 x 32 by 32 x 16, float32 sums. */
#include "attention-tiles.h"

/* GCC's tileloadd does not tell the compiler that memory is read. */
#define TILE_LOAD(tile, from, stride)                                                                        \
  __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"(from), "r"((int64_t)(stride)) : "memory")
#define TILE_STORE(tile, to, stride)                                                                         \
  __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(stride)) : "memory")

struct tile_config {
  uint8_t palette, start_row, reserved[14];
  uint16_t columns[16]; /* bytes of a row */
  uint8_t rows[16];
};

static inline void tiles_begin(void) {
  static const struct tile_config config = {
      .palette = 1, .columns = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
  _tile_loadconfig(&config);
}

static inline void tiles_end(void) {
  _tile_release();
}

/* Tiles 0 to 3 sum, 4 and 5 hold A, 6 and 7 hold B. */
static inline __attribute__((always_inline)) void tiles_multiply(float *c, int64_t c_row, int64_t c_col,
                                                                 const uint16_t *a, int64_t a_row,
                                                                 int64_t a_step, const uint16_t *b,
                                                                 int64_t b_col, int64_t b_step, int64_t steps,
                                                                 const int cols, int accumulate) {
  if (accumulate) {
    TILE_LOAD(0, c, 64);
    TILE_LOAD(1, c + c_row, 64);
    if (cols > 1) {
      TILE_LOAD(2, c + c_col, 64);
      TILE_LOAD(3, c + c_col + c_row, 64);
    }
  } else {
    _tile_zero(0);
    _tile_zero(1);
    if (cols > 1) {
      _tile_zero(2);
      _tile_zero(3);
    }
  }
  for (int64_t l = 0; l < steps; l++, a += a_step, b += b_step) {
    TILE_LOAD(4, a, 64);
    TILE_LOAD(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    TILE_LOAD(5, a + a_row, 64);
    _tile_dpbf16ps(1, 5, 6);
    if (cols > 1) {
      TILE_LOAD(7, b + b_col, 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
  }
  TILE_STORE(0, c, 64);
  TILE_STORE(1, c + c_row, 64);
  if (cols > 1) {
    TILE_STORE(2, c + c_col, 64);
    TILE_STORE(3, c + c_col + c_row, 64);
  }
}

#include "attention-bf16-backward.h"

/* Sixteen pairs of keys are spread over the steps, so that the tile unit and the vector units are busy
 * together. */
static inline __attribute__((always_inline)) void
tiles_scores_weights(float *next, const uint16_t *k, const uint16_t *q, int64_t steps, const float *s,
                     uint16_t *p, int64_t p_col, struct forward_state *state, const int cols) {
  int64_t j = 0;
  _tile_zero(0);
  _tile_zero(1);
  if (cols > 1) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t l = 0; l < steps; l++) {
    TILE_LOAD(4, k + l * TILE, 64);
    TILE_LOAD(6, q + l * TILE, 64);
    _tile_dpbf16ps(0, 4, 6);
    TILE_LOAD(5, k + (steps + l) * TILE, 64);
    _tile_dpbf16ps(1, 5, 6);
    if (cols > 1) {
      TILE_LOAD(7, q + (steps + l) * TILE, 64);
      _tile_dpbf16ps(2, 4, 7);
      _tile_dpbf16ps(3, 5, 7);
    }
    for (int64_t end = (l + 1) * 16 / steps; j < end; j++)
      forward_pair(s, p, p_col, j, state, cols);
  }
  TILE_STORE(0, next, 64);
  TILE_STORE(1, next + TILE_C, 64);
  if (cols > 1) {
    TILE_STORE(2, next + 2 * TILE_C, 64);
    TILE_STORE(3, next + 3 * TILE_C, 64);
  }
}

void msk_attention_init_amx(struct msk_attention_ops *f32, struct msk_attention_ops *bf16) {
  set_table(bf16, "amx");
}
