/* float32 products on AVX-512: a tile of C is 6 x 64, 24 accumulators fed by four vectors of B and broadcasts
 * of A. Wide tiles load least for what they multiply, and with fewer loads processors hold a higher clock.
 * Without bfloat16 instructions the bf16 table multiplies the same way, after its operands were rounded to
 * bfloat16. */
#define MSK_PANEL 64
#include "cpu/product-avx512-run.h"

#define HEIGHT 6

static const struct msk_tiling tiling_f32 = {.line = MSK_LINE_F32,
                                             .height = HEIGHT,
                                             .rows = 5 * MSK_ACROSS,
                                             .columns = 1536,
                                             .lines = 8,
                                             .direct = 1,
                                             .across = 1,
                                             .pairs = 1};
static const struct msk_tiling tiling_bf16 = {.line = MSK_LINE_ROUNDED,
                                              .height = HEIGHT,
                                              .rows = 5 * MSK_ACROSS,
                                              .columns = 1536,
                                              .lines = 8,
                                              .across = 1,
                                              .pairs = 1};

/* A tile of `blocks` times 6 rows and 16 * `vectors` columns. */
MSK_INLINE void tile_of(struct msk_tile t, int blocks, int vectors, int across) {
  __m512 acc[2 * HEIGHT][4];
#pragma GCC unroll 12
  for (int r = 0; r < blocks * HEIGHT; r++)
#pragma GCC unroll 4
    for (int c = 0; c < vectors; c++)
      acc[r][c] = t.first ? _mm512_setzero_ps() : _mm512_load_ps(t.acc + r * MSK_PANEL + 16 * c);
  for (int64_t l = 0; l < t.lines; l++, t.a += t.a_line, t.b += MSK_PANEL_LINE, t.ahead += t.ahead_step) {
    for (int64_t x = 0; x < t.ahead_step; x += 64)
      _mm_prefetch(t.ahead + x, _MM_HINT_T1);
#pragma GCC unroll 1
    for (int quarter = 0; quarter < 4; quarter++) {
      const float *b = (const float *)t.b + quarter * 4 * MSK_PANEL;
      const char *a[4]; /* of three rows each */
      a[0] = t.a + quarter * (across ? 16 * MSK_ACROSS_LD : 16);
      a[1] = a[0] + 3 * t.a_row;
      a[2] = a[0] + t.a_next;
      a[3] = a[1] + t.a_next;
#pragma GCC unroll 4
      for (int k = 0; k < 4; k++) {
        __m512 v[4];
#pragma GCC unroll 4
        for (int c = 0; c < vectors; c++)
          v[c] = _mm512_load_ps(b + k * MSK_PANEL + 16 * c);
#pragma GCC unroll 12
        for (int r = 0; r < blocks * HEIGHT; r++) {
          const char *at = across ? a[0] + (k * MSK_ACROSS_LD + r) * 4 : a[r / 3] + r % 3 * t.a_row + k * 4;
          __m512 x = _mm512_set1_ps(*(const float *)at);
#pragma GCC unroll 4
          for (int c = 0; c < vectors; c++)
            acc[r][c] = _mm512_fmadd_ps(x, v[c], acc[r][c]);
        }
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < blocks * HEIGHT; r++)
#pragma GCC unroll 4
    for (int c = 0; c < vectors; c++)
      _mm512_store_ps(t.acc + r * MSK_PANEL + 16 * c, acc[r][c]);
}

MSK_INLINE void tile_wide(struct msk_tile t, int across) {
  if (t.columns > 48)
    tile_of(t, 1, 4, across);
  else if (t.columns > 32)
    tile_of(t, 1, 3, across);
  else if (t.columns > 16 && t.rows > HEIGHT)
    tile_of(t, 2, 2, across);
  else if (t.columns > 16)
    tile_of(t, 1, 2, across);
  else if (t.rows > HEIGHT)
    tile_of(t, 2, 1, across);
  else
    tile_of(t, 1, 1, across);
}

static void tile_6x64(struct msk_tile t) {
  if (t.across)
    tile_wide(t, 1);
  else
    tile_wide(t, 0);
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

static size_t scratch_bytes_f32(const struct msk_product *p) {
  return msk_run_scratch(p, tiling_f32);
}

static size_t scratch_bytes_bf16(const struct msk_product *p) {
  return msk_run_scratch(p, tiling_bf16);
}

static void run_f32(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                    void *scratch) {
  msk_run_tiles(p, m0, m1, n0, n1, scratch, tiling_f32, tile_6x64);
}

static void run_bf16(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                     void *scratch) {
  msk_run_tiles(p, m0, m1, n0, n1, scratch, tiling_bf16, tile_6x64);
}

void msk_product_init_avx512(struct msk_product_ops *f32, struct msk_product_ops *bf16) {
  *f32 = (struct msk_product_ops){
      .name = "avx512",
      .precision = MSK_PRECISION_F32,
      .m_step = HEIGHT,
      .n_step = MSK_PANEL,
      .pack_b_bytes = pack_b_bytes,
      .pack_b = pack_b_f32,
      .scratch_bytes = scratch_bytes_f32,
      .run = run_f32,
  };
  *bf16 = *f32;
  bf16->precision = MSK_PRECISION_BF16;
  bf16->pack_b = pack_b_bf16;
  bf16->scratch_bytes = scratch_bytes_bf16;
  bf16->run = run_bf16;
}
