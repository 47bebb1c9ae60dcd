/* Attention on vdpbf16ps: the tiles of the AMX version, multiplied in vector registers. */
#include "attention-bf16-backward.h"

static inline void tiles_begin(void) {
}

static inline void tiles_end(void) {
}

#define HALF 8 /* rows of a tile that are summed at a time: 8 x 2 vectors fit the registers */

static inline __attribute__((always_inline)) void tile_half(float *c, int64_t c_col, const uint16_t *a,
                                                            int64_t a_step, const uint16_t *b, int64_t b_col,
                                                            int64_t b_step, int64_t steps, const int cols,
                                                            int accumulate) {
  __m512 sum[HALF][2];
  for (int r = 0; r < HALF; r++)
    for (int h = 0; h < cols; h++)
      sum[r][h] = accumulate ? _mm512_load_ps(c + r * 16 + h * c_col) : _mm512_setzero_ps();
  for (int64_t l = 0; l < steps; l++, a += a_step, b += b_step)
    for (int64_t pair = 0; pair < 16; pair++) {
      __m512bh columns[2];
      for (int h = 0; h < cols; h++)
        columns[h] = (__m512bh)_mm512_load_si512(b + pair * 32 + h * b_col);
      for (int r = 0; r < HALF; r++) {
        int32_t two;
        __m512bh x;
        memcpy(&two, a + r * 32 + pair * 2, sizeof two);
        x = (__m512bh)_mm512_set1_epi32(two);
        for (int h = 0; h < cols; h++)
          sum[r][h] = _mm512_dpbf16_ps(sum[r][h], x, columns[h]);
      }
    }
  for (int r = 0; r < HALF; r++)
    for (int h = 0; h < cols; h++)
      _mm512_store_ps(c + r * 16 + h * c_col, sum[r][h]);
}

static inline void tiles_multiply(float *c, int64_t c_row, int64_t c_col, const uint16_t *a, int64_t a_row,
                                  int64_t a_step, const uint16_t *b, int64_t b_col, int64_t b_step,
                                  int64_t steps, const int cols, int accumulate) {
  for (int half = 0; half < 4; half++) {
    float *to = c + half / 2 * c_row + half % 2 * HALF * 16;
    const uint16_t *from = a + half / 2 * a_row + half % 2 * HALF * 32;
    if (cols > 1)
      tile_half(to, c_col, from, a_step, b, b_col, b_step, steps, 2, accumulate);
    else
      tile_half(to, c_col, from, a_step, b, b_col, b_step, steps, 1, accumulate);
  }
}

static inline void tiles_scores_weights(float *next, const uint16_t *k, const uint16_t *q, int64_t steps,
                                        const float *s, uint16_t *p, int64_t p_col,
                                        struct forward_state *state, const int cols) {
  tiles_multiply(next, TILE_C, 2 * TILE_C, k, steps * TILE, TILE, q, steps * TILE, TILE, steps, cols, 0);
  forward_weights(s, p, p_col, 32, state, cols);
}

void msk_attention_init_avx512bf16(struct msk_attention_ops *f32, struct msk_attention_ops *bf16) {
  set_table(bf16, "avx512bf16");
}
