/* bfloat16 products on AMX: a tile of C is 32 x 32, four accumulators of 16 x 16, fed by two tiles of A and
 * two of B. */
#include "cpu/product-avx512-run.h"
#include "cpu/tiles-amx.h"

static const struct msk_tiling tiling = {
    .line = MSK_LINE_BF16, .height = 32, .rows = 256, .columns = 128, .columns_deep = 512, .lines = 20};

/* A is read once per panel and B by every tile of it, so A is loaded with the hint that keeps it from driving
 * B out of the first-level cache. */
MSK_INLINE void tile_32x32(struct msk_tile t) {
  MSK_TILES_SEE_MEMORY();
  if (t.first) {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  } else {
    _tile_loadd(0, t.acc, 128);
    _tile_loadd(1, t.acc + 16, 128);
    _tile_loadd(2, t.acc + 16 * 32, 128);
    _tile_loadd(3, t.acc + 16 * 32 + 16, 128);
  }
  for (int64_t l = 0; l < t.lines; l++, t.a += 2048, t.b += MSK_PANEL_LINE, t.ahead += t.ahead_step) {
    for (int64_t x = 0; x < t.ahead_step; x += 64)
      _mm_prefetch(t.ahead + x, _MM_HINT_T1);
    _tile_stream_loadd(4, t.a, 64);
    _tile_loadd(6, t.b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, t.b + 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_stream_loadd(5, t.a + 1024, 64);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, t.acc, 128);
  _tile_stored(1, t.acc + 16, 128);
  _tile_stored(2, t.acc + 16 * 32, 128);
  _tile_stored(3, t.acc + 16 * 32 + 16, 128);
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
  msk_tiles_begin();
  msk_run_tiles(p, m0, m1, n0, n1, scratch, tiling, tile_32x32);
  _tile_release();
}

void msk_product_init_amx(struct msk_product_ops *bf16) {
  *bf16 = (struct msk_product_ops){
      .name = "amx",
      .precision = MSK_PRECISION_BF16,
      .m_step = 32,
      .n_step = MSK_PANEL,
      .pack_b_bytes = pack_b_bytes,
      .pack_b = pack_b,
      .scratch_bytes = scratch_bytes,
      .run = run,
  };
}
