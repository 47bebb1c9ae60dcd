/* float32 products on AVX-512: a tile of C is 14 x 32, 28 accumulators fed by broadcasts of A. Without
 * bfloat16 instructions the bf16 table multiplies the same way, after its operands were rounded to bfloat16.
 */
#include "cpu/product-avx512-run.h"

#define HEIGHT 14

static const struct msk_tiling tiling_f32 = {.line = MSK_LINE_F32,
                                             .height = HEIGHT,
                                             .rows = 10 * HEIGHT,
                                             .columns = 512,
                                             .columns_deep = 512,
                                             .lines = 16};
static const struct msk_tiling tiling_bf16 = {.line = MSK_LINE_ROUNDED,
                                              .height = HEIGHT,
                                              .rows = 10 * HEIGHT,
                                              .columns = 512,
                                              .columns_deep = 512,
                                              .lines = 16};

MSK_INLINE void tile_14x32(struct msk_tile t) {
  __m512 acc[HEIGHT][2];
#pragma GCC unroll 14
  for (int r = 0; r < HEIGHT; r++) {
    acc[r][0] = t.first ? _mm512_setzero_ps() : _mm512_load_ps(t.acc + r * MSK_PANEL);
    acc[r][1] = t.first ? _mm512_setzero_ps() : _mm512_load_ps(t.acc + r * MSK_PANEL + 16);
  }
  for (int64_t l = 0; l < t.lines; l++, t.a += HEIGHT * 64, t.b += MSK_PANEL_LINE, t.ahead += t.ahead_step) {
    const float *a = (const float *)t.a, *b = (const float *)t.b;
    for (int64_t x = 0; x < t.ahead_step; x += 64)
      _mm_prefetch(t.ahead + x, _MM_HINT_T1);
#pragma GCC unroll 2
    for (int k = 0; k < 16; k++) {
      __m512 b0 = _mm512_load_ps(b + k * MSK_PANEL), b1 = _mm512_load_ps(b + k * MSK_PANEL + 16);
#pragma GCC unroll 14
      for (int r = 0; r < HEIGHT; r++) {
        __m512 v = _mm512_set1_ps(a[r * 16 + k]);
        acc[r][0] = _mm512_fmadd_ps(v, b0, acc[r][0]);
        acc[r][1] = _mm512_fmadd_ps(v, b1, acc[r][1]);
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
  return msk_packed_b_bytes(n, k, MSK_LINE_F32);
}

static void pack_b_f32(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  msk_pack_b(pack, n0, n1, dst, MSK_LINE_F32);
}

static void pack_b_bf16(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  msk_pack_b(pack, n0, n1, dst, MSK_LINE_ROUNDED);
}

static size_t scratch_bytes(const struct msk_product *p) {
  return msk_run_scratch(p, tiling_f32);
}

static void run_f32(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                    void *scratch) {
  msk_run_tiles(p, m0, m1, n0, n1, scratch, tiling_f32, tile_14x32);
}

static void run_bf16(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                     void *scratch) {
  msk_run_tiles(p, m0, m1, n0, n1, scratch, tiling_bf16, tile_14x32);
}

void msk_product_init_avx512(struct msk_product_ops *f32, struct msk_product_ops *bf16) {
  *f32 = (struct msk_product_ops){
      .name = "avx512",
      .precision = MSK_PRECISION_F32,
      .m_step = HEIGHT,
      .n_step = MSK_PANEL,
      .pack_b_bytes = pack_b_bytes,
      .pack_b = pack_b_f32,
      .scratch_bytes = scratch_bytes,
      .run = run_f32,
  };
  *bf16 = *f32;
  bf16->precision = MSK_PRECISION_BF16;
  bf16->pack_b = pack_b_bf16;
  bf16->run = run_bf16;
}
