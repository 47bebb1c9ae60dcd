/* bfloat16 products on AVX-512 BF16 (vdpbf16ps): a tile of C is 14 x 32, 28 accumulators, each step
 * multiplies a pair of k, broadcast from A. */
#include "cpu/product-avx512-run.h"

#define HEIGHT 14

static const struct msk_tiling tiling = {
    .line = MSK_LINE_BF16, .height = HEIGHT, .rows = 19 * HEIGHT, .columns = 512, .lines = 16, .keep = 1};

MSK_INLINE void tile_14x32(struct msk_tile t) {
  __m512 acc[HEIGHT][2];
#pragma GCC unroll 14
  for (int r = 0; r < HEIGHT; r++) {
    acc[r][0] = t.first ? _mm512_setzero_ps() : _mm512_load_ps(t.acc + r * MSK_PANEL);
    acc[r][1] = t.first ? _mm512_setzero_ps() : _mm512_load_ps(t.acc + r * MSK_PANEL + 16);
  }
  for (int64_t l = 0; l < t.lines; l++, t.a += HEIGHT * 64, t.b += MSK_PANEL_LINE, t.ahead += t.ahead_step) {
    for (int64_t x = 0; x < t.ahead_step; x += 64)
      _mm_prefetch(t.ahead + x, _MM_HINT_T1);
#pragma GCC unroll 2
    for (int pair = 0; pair < 16; pair++) {
      __m512bh b0 = (__m512bh)_mm512_load_ps(t.b + pair * 64);
      __m512bh b1 = (__m512bh)_mm512_load_ps(t.b + 1024 + pair * 64);
#pragma GCC unroll 14
      for (int r = 0; r < HEIGHT; r++) {
        int32_t two;
        memcpy(&two, t.a + r * 64 + pair * 4, sizeof two);
        __m512bh v = (__m512bh)_mm512_set1_epi32(two);
        acc[r][0] = _mm512_dpbf16_ps(acc[r][0], v, b0);
        acc[r][1] = _mm512_dpbf16_ps(acc[r][1], v, b1);
      }
    }
  }
#pragma GCC unroll 14
  for (int r = 0; r < HEIGHT; r++) {
    _mm512_store_ps(t.acc + r * MSK_PANEL, acc[r][0]);
    _mm512_store_ps(t.acc + r * MSK_PANEL + 16, acc[r][1]);
  }
}

static size_t pack_b_bytes(int64_t n, int64_t k) {
  return msk_packed_b_bytes(n, k, MSK_LINE_BF16);
}

static void pack_b(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  msk_pack_b(pack, n0, n1, dst, MSK_LINE_BF16);
}

static size_t scratch_bytes(const struct msk_product *p) {
  return msk_run_scratch(p, tiling);
}

static void run(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1, void *scratch) {
  msk_run_tiles(p, m0, m1, n0, n1, scratch, tiling, tile_14x32);
}

void msk_product_init_avx512bf16(struct msk_product_ops *bf16) {
  *bf16 = (struct msk_product_ops){
      .name = "avx512bf16",
      .precision = MSK_PRECISION_BF16,
      .m_step = HEIGHT,
      .n_step = MSK_PANEL,
      .pack_b_bytes = pack_b_bytes,
      .pack_b = pack_b,
      .scratch_bytes = scratch_bytes,
      .run = run,
  };
}
