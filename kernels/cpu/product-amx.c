/* bfloat16 products on AMX: a tile of C is 32 x 32, four accumulators of 16 x 16, fed by two tiles of A and
 * two of B.
 *
 * Tile instructions leave the vector units and most of the load ports idle, but the processor does not look
 * far enough ahead to find other work for them. So it is mixed in by hand: while a tile is multiplied, line
 * after line, the tile before it leaves the accumulators and goes through the epilogue, the rows of A that
 * the next tile needs are packed, and memory is fetched. */
#include "cpu/product-avx512-run.h"
#include "cpu/tiles-amx.h"

#define SIDE 32 /* of a tile of C */
/* Bytes of packed A or B that leave room for everything else in the second-level cache. */
#define CACHED (1 << 20)

static const struct msk_tiling tiling = {
    .line = MSK_LINE_BF16, .height = SIDE, .rows = 8 * SIDE, .columns = 512, .lines = 16, .keep = 1};

static size_t pack_b_bytes(int64_t n, int64_t k) {
  return msk_packed_b_bytes(n, k, MSK_LINE_BF16);
}

static void pack_b(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  msk_pack_b(pack, n0, n1, dst, MSK_LINE_BF16);
}

/* Two ways through C. Where sums are short and all of B stays in the second-level cache, C is made in strips
 * of 32 rows: a strip of A stays in the first-level cache, B streams past it, and the rows of C are written
 * from end to end. Else blocks of 256 rows are made, panel after panel: part of a panel of B stays in the
 * first-level cache and A streams past it; sums of several panels wait for the next part if A is too large to
 * stream past each panel again. */
struct way {
  struct msk_cut cut;
  int strips;
};

static struct way way_of(const struct msk_product *p) {
  struct way way = {msk_cut_of(p, tiling), 0};
  way.strips =
      way.cut.parts == 1 && p->n > 2 * SIDE && msk_round_up(p->n, SIDE) * way.cut.lines * 64 <= CACHED;
  if (way.strips)
    way.cut.rows = SIDE;
  if (way.strips)
    way.cut.columns = msk_round_up(p->n, SIDE);
  else if (way.cut.rows * way.cut.lines * 64 <= CACHED)
    way.cut.columns = SIDE;
  return way;
}

/* Scratch: [a tile on its way to the epilogue][sums of rows x columns, if k has several parts][rows of A, and
 * in strips those of the next strip][a row to gather taps in]. */
struct layout {
  int64_t sums, packed, row, end; /* in bytes */
};

static struct layout layout_of(const struct msk_product *p, struct way way) {
  struct layout at = {.sums = SIDE * SIDE * 4};
  at.packed = at.sums + (way.cut.parts > 1 ? way.cut.rows * way.cut.columns * 4 : 0);
  at.row = at.packed + (way.strips ? 2 : 1) * way.cut.rows * way.cut.lines * 64;
  at.end = at.row + (p->taps > 1 ? msk_round_up(way.cut.deep * 128, 64) : 0);
  return at;
}

static size_t scratch_bytes(const struct msk_product *p) {
  return (size_t)layout_of(p, way_of(p)).end;
}

/* Work beside the tile instructions. */
struct aside {
  int place;              /* of the epilogue */
  struct msk_done done;   /* a tile that goes through the epilogue; rows 0: none */
  struct msk_pack_a pack; /* what the next strip needs of A, pieces [from, to) of it now */
  int64_t from, to;
};

/* This work from part a to part b of SIDE. */
static __attribute__((noinline)) void do_aside(const struct aside *w, int64_t a, int64_t b) {
  int64_t pieces = w->to - w->from;
  if (w->done.rows > a)
    msk_finish(&w->done, a, w->done.rows < b ? w->done.rows : b, w->place);
  if (pieces * a / SIDE < pieces * b / SIDE)
    msk_pack_a(&w->pack, w->from + pieces * a / SIDE, w->from + pieces * b / SIDE, MSK_LINE_BF16);
}

/* One tile: `lines` lines of A and B. The accumulators first give what they hold to `out` (NULL: nothing) and
 * take what is in `in` (NULL: zeros), one by one, so that multiplication never waits for all of them. */
struct step {
  const char *a, *b;
  int64_t lines;
  float *out;
  const float *in;
  const char *ahead; /* to fetch into the second-level cache, ahead_step bytes a line */
  int64_t ahead_step;
};

#define TAKE(tile, offset)                                                                                   \
  do {                                                                                                       \
    if (s.out)                                                                                               \
      _tile_stored(tile, s.out + (offset), 128);                                                             \
    if (s.in)                                                                                                \
      _tile_loadd(tile, s.in + (offset), 128);                                                               \
    else                                                                                                     \
      _tile_zero(tile);                                                                                      \
  } while (0)

/* What streams past is loaded with the hint that keeps it from driving out of the first-level cache what
 * stays. */
#define LOAD(tile, from, streams)                                                                            \
  do {                                                                                                       \
    if (streams)                                                                                             \
      _tile_stream_loadd(tile, from, 64);                                                                    \
    else                                                                                                     \
      _tile_loadd(tile, from, 64);                                                                           \
  } while (0)

MSK_INLINE void multiply(struct step s, const struct aside *aside, int strips) {
  int64_t each = s.lines > 2 ? SIDE / 2 : SIDE; /* after the second line half, after the third the rest */
  int64_t at = aside->done.rows > 0 || aside->from < aside->to ? 0 : SIDE;
  MSK_TILES_SEE_MEMORY();
  if (s.lines > 0) {
    LOAD(4, s.a, !strips);
    LOAD(6, s.b, strips);
    LOAD(7, s.b + 1024, strips);
    LOAD(5, s.a + 1024, !strips);
  } else {
    _tile_zero(4);
    _tile_zero(5);
  }
  TAKE(0, 0);
  _tile_dpbf16ps(0, 4, 6);
  TAKE(1, 16);
  _tile_dpbf16ps(1, 4, 7);
  TAKE(2, 16 * 32);
  _tile_dpbf16ps(2, 5, 6);
  TAKE(3, 16 * 32 + 16);
  _tile_dpbf16ps(3, 5, 7);
  MSK_TILES_SEE_MEMORY();
  for (int64_t l = 1; l < s.lines; l++) {
    s.a += 2048;
    s.b += MSK_PANEL_LINE;
    for (int64_t x = 0; x < s.ahead_step; x += 64)
      _mm_prefetch(s.ahead + x, _MM_HINT_T1);
    s.ahead += s.ahead_step;
    LOAD(4, s.a, !strips);
    LOAD(6, s.b, strips);
    _tile_dpbf16ps(0, 4, 6);
    LOAD(7, s.b + 1024, strips);
    _tile_dpbf16ps(1, 4, 7);
    LOAD(5, s.a + 1024, !strips);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    if (at < SIDE) {
      do_aside(aside, at, at + each);
      at += each;
    }
  }
  if (at < SIDE)
    do_aside(aside, at, SIDE);
}

/* Brings the tile that the accumulators hold to C. */
static void finish_last(struct msk_done done, int place) {
  float *out = (float *)done.acc;
  _tile_stored(0, out, 128);
  _tile_stored(1, out + 16, 128);
  _tile_stored(2, out + 16 * 32, 128);
  _tile_stored(3, out + 16 * 32 + 16, 128);
  MSK_TILES_SEE_MEMORY();
  msk_finish(&done, 0, done.rows, place);
}

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static void run_strips(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                       char *scratch, struct way way) {
  const struct layout at = layout_of(p, way);
  const int64_t lines = way.cut.lines, bytes = lines * MSK_PANEL_LINE;
  float *leaving = (float *)scratch;
  char *packed[2] = {scratch + at.packed, scratch + at.packed + bytes};
  struct aside aside = {.place = msk_steps_place(p)};
  struct msk_done before = {0}; /* the tile that the accumulators hold */
  for (int64_t i = m0, turn = 0; i < m1; i += SIDE, turn ^= 1) {
    int64_t rows = smaller(m1 - i, SIDE), pieces, place = 0, places = (n1 - n0 + SIDE - 1) / SIDE;
    struct msk_pack_a pack = {p, i, rows, 0, lines, SIDE, 0, packed[turn], scratch + at.row};
    if (i == m0)
      msk_pack_a(&pack, 0, msk_pieces_of_a(&pack, MSK_LINE_BF16), MSK_LINE_BF16);
    pack.i += SIDE;
    pack.rows = smaller(m1 - pack.i, SIDE);
    pack.dst = packed[!turn];
    aside.pack = pack;
    pieces = pack.rows > 0 ? msk_pieces_of_a(&pack, MSK_LINE_BF16) : 0;
    for (int64_t j = n0; j < n1; j += SIDE, place++) {
      struct step s = {.a = packed[turn],
                       .b = (const char *)p->b + j / SIDE * bytes,
                       .lines = lines,
                       .out = before.rows ? leaving : NULL};
      aside.done = before;
      aside.from = pieces * place / places;
      aside.to = pieces * (place + 1) / places;
      multiply(s, &aside, 1);
      before = (struct msk_done){p, leaving, i, j, rows, smaller(n1 - j, SIDE)};
    }
  }
  finish_last(before, aside.place);
}

static void run_blocks(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                       char *scratch, struct way way) {
  const struct msk_cut cut = way.cut;
  const struct layout at = layout_of(p, way);
  const int64_t panel_bytes = cut.lines * MSK_PANEL_LINE, block_bytes = cut.lines * SIDE * 64;
  float *leaving = (float *)scratch, *sums = (float *)(scratch + at.sums), *out = NULL;
  struct aside aside = {.place = msk_steps_place(p)};
  struct msk_done before = {0}; /* the tile that the accumulators hold, if its sums are whole */
  for (int64_t i0 = m0; i0 < m1; i0 += cut.rows) {
    int64_t rows = smaller(m1 - i0, cut.rows), blocks = (rows + SIDE - 1) / SIDE;
    for (int64_t j0 = n0; j0 < n1; j0 += cut.columns) {
      int64_t j1 = smaller(n1, j0 + cut.columns), l = 0;
      do {
        int64_t here = smaller(cut.lines - l, cut.deep);
        int last = l + here >= cut.lines;
        char *a = scratch + at.packed + l * SIDE * 64;
        if (j0 == n0) {
          struct msk_pack_a pack = {p, i0, rows, l, here, SIDE, block_bytes, a, scratch + at.row};
          msk_pack_a(&pack, 0, msk_pieces_of_a(&pack, MSK_LINE_BF16), MSK_LINE_BF16);
        }
        for (int64_t j = j0; j < j1; j += SIDE) {
          const char *b = (const char *)p->b + j / SIDE * panel_bytes + l * MSK_PANEL_LINE;
          const char *ahead = cut.columns == SIDE ? b + here * MSK_PANEL_LINE : b + panel_bytes;
          int64_t step = msk_round_up((MSK_PANEL_LINE + blocks - 1) / blocks, 64);
          if (cut.columns > SIDE && j + SIDE >= j1 && !last)
            ahead = (const char *)p->b + j0 / SIDE * panel_bytes + (l + here) * MSK_PANEL_LINE;
          else if (j + SIDE >= n1 && last)
            step = 0;
          for (int64_t r = 0; r < rows; r += SIDE) {
            float *sum = sums + (j - j0) * cut.rows + r * SIDE;
            struct step s = {a + r / SIDE * block_bytes, b, here, out, l > 0 ? sum : NULL, ahead, step};
            aside.done = before;
            multiply(s, &aside, 0);
            before = (struct msk_done){
                p, leaving, i0 + r, j, last ? smaller(rows - r, SIDE) : 0, smaller(j1 - j, SIDE)};
            out = last ? leaving : sum;
            ahead += here * step;
          }
        }
        l += here;
      } while (l < cut.lines);
    }
  }
  finish_last(before, aside.place);
}

static void run(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1, void *scratch) {
  struct way way = way_of(p);
  if (m0 >= m1 || n0 >= n1)
    return;
  msk_tiles_begin();
  if (way.strips)
    run_strips(p, m0, m1, n0, n1, scratch, way);
  else
    run_blocks(p, m0, m1, n0, n1, scratch, way);
  _tile_release();
}

void msk_product_init_amx(struct msk_product_ops *bf16) {
  *bf16 = (struct msk_product_ops){
      .name = "amx",
      .precision = MSK_PRECISION_BF16,
      .m_step = SIDE,
      .n_step = MSK_PANEL,
      .pack_b_bytes = pack_b_bytes,
      .pack_b = pack_b,
      .scratch_bytes = scratch_bytes,
      .run = run,
  };
}
