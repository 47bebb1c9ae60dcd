/* The loops around a register or AMX tile, and the epilogue: what the AVX-512 and AMX kernels of products
 * share.
 *
 * A tile is `height` rows by 32 columns; its sums lie in memory as [height][32] float32. Blocks of k change
 * no bit: the sums of a tile leave the registers as float32 and come back as they were. */
#pragma once
#include "cpu/product-avx512-pack.h"

/* 2^t: 2^floor t times a polynomial on [0, 1], minimax of the relative error: 1.5e-7 in float32, or 2.7e-6
 * where the result goes to bfloat16, whose own step is 4e-3. t = -infinity gives 0. */
MSK_INLINE __m512 msk_exp2_16(__m512 t, int rough) {
  __m512 f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC), y;
  if (rough) {
    y = _mm512_fmadd_ps(_mm512_set1_ps(0x1.bb7cd4p-7f), f, _mm512_set1_ps(0x1.aa13f0p-5f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.ee798ap-3f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.62d166p-1f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.00002cp+0f));
  } else {
    y = _mm512_fmadd_ps(_mm512_set1_ps(0x1.ec320ap-10f), f, _mm512_set1_ps(0x1.26900cp-7f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.c95444p-5f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.ebd5a8p-3f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.62e4f6p-1f));
    y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.fffffep-1f));
  }
  return _mm512_scalef_ps(y, t);
}

/* x / (1 + 2^t): x times the logistic function of -t ln 2. The limit keeps the reciprocal normal; NaN passes.
 * The estimate of the reciprocal is good to 6e-5, a step of Newton's makes it exact to float32. */
MSK_INLINE __m512 msk_logistic_times(__m512 x, __m512 t, int rough) {
  __m512 power = msk_exp2_16(_mm512_min_ps(_mm512_set1_ps(120), t), rough);
  __m512 d = _mm512_add_ps(_mm512_set1_ps(1), power), r = _mm512_rcp14_ps(d);
  if (!rough)
    r = _mm512_fmadd_ps(r, _mm512_fnmadd_ps(d, r, _mm512_set1_ps(1)), r);
  return _mm512_mul_ps(x, r);
}

/* tanh (u) = 1 - 2 / (1 + exp (2 u)), so gelu (x) = x / (1 + exp (-2 sqrt (2 / pi) (x + 0.044715 x^3))). */
MSK_INLINE __m512 msk_gelu_16(__m512 x, int rough) {
  const float scale = -2.0f * 0.7978845608f * 1.4426950409f;
  __m512 x2 = _mm512_mul_ps(x, x);
  __m512 slope = _mm512_fmadd_ps(x2, _mm512_set1_ps(0.044715f * scale), _mm512_set1_ps(scale));
  return msk_logistic_times(x, _mm512_mul_ps(x, slope), rough);
}

MSK_INLINE __m512 msk_silu_16(__m512 x, int rough) {
  return msk_logistic_times(x, _mm512_mul_ps(x, _mm512_set1_ps(-1.4426950409f)), rough);
}

MSK_INLINE void msk_store_16(void *x, enum msk_type type, int64_t i, __mmask16 mask, __m512 v) {
  if (type == MSK_F32)
    _mm512_mask_storeu_ps((float *)x + i, mask, v);
  else
    _mm256_mask_storeu_epi16((uint16_t *)x + i, mask, msk_f32_to_bf16_16(v));
}

/* The steps of an epilogue. Where a set of them is common its loop is compiled for it, without the questions.
 */
struct msk_steps {
  int bias, pre, pre_type, act, gate, residual, accumulate, c_type;
};

static const struct msk_steps msk_common_steps[] = {
    {.bias = 1},
    {.bias = 1, .gate = 1, .residual = 1},
    {.bias = 1, .pre = 1, .pre_type = MSK_BF16, .act = MSK_ACT_GELU_TANH, .c_type = MSK_BF16},
    {.bias = 1, .act = MSK_ACT_GELU_TANH, .c_type = MSK_BF16},
    {.accumulate = 1},
    {.bias = 0},
};

MSK_INLINE struct msk_steps msk_steps_of(const struct msk_product *p) {
  return (struct msk_steps){p->bias != NULL, p->pre != NULL,      p->pre ? p->pre_type : 0, p->act,
                            p->gate != NULL, p->residual != NULL, p->accumulate != 0,       p->c_type};
}

/* The place among the common ones, or their number. */
static inline int msk_steps_place(const struct msk_product *p) {
  struct msk_steps steps = msk_steps_of(p);
  int i = 0, n = (int)(sizeof msk_common_steps / sizeof *msk_common_steps);
  while (i < n && memcmp(&steps, &msk_common_steps[i], sizeof steps))
    i++;
  return i;
}

/* A tile of C whose sums [rows][32] are done. */
struct msk_done {
  const struct msk_product *p;
  const float *acc;
  int64_t i, j, rows, columns;
};

/* `whole`: all 32 columns are there. Everything is read into locals first, for stores may alias what p points
 * to. */
MSK_INLINE void msk_finish_steps(const struct msk_done *d, int64_t from, int64_t to, struct msk_steps steps,
                                 int whole) {
  const struct msk_product p = *d->p;
  const int64_t columns = d->columns;
  const float *gate = NULL, *acc = d->acc + from * MSK_PANEL;
  int64_t i = d->i + from, stop = d->i + to, j = d->j, left = 0;
  if (steps.gate) {
    left = p.gate_rows - i % p.gate_rows;
    gate = p.gate + i / p.gate_rows * p.gate_ld + j;
  }
  for (; i < stop; i++, acc += MSK_PANEL) {
#pragma GCC unroll 4
    for (int h = 0; h < MSK_PANEL / 16; h++) {
      __mmask16 mask = whole ? 0xffff : msk_mask16(columns - 16 * h);
      int64_t at = j + 16 * h;
      __m512 v = _mm512_load_ps(acc + 16 * h);
      if (steps.bias)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, p.bias + at));
      if (steps.pre)
        msk_store_16(p.pre, steps.pre_type, i * p.pre_ld + at, mask, v);
      if (steps.act == MSK_ACT_GELU_TANH)
        v = msk_gelu_16(v, steps.c_type == MSK_BF16);
      else if (steps.act == MSK_ACT_SILU)
        v = msk_silu_16(v, steps.c_type == MSK_BF16);
      if (steps.gate)
        v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, gate + 16 * h));
      if (steps.residual)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, p.residual + i * p.residual_ld + at));
      if (steps.accumulate)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, (const float *)p.c + i * p.c_ld + at));
      msk_store_16(p.c, steps.c_type, i * p.c_ld + at, mask, v);
    }
    if (steps.gate && --left == 0) {
      gate += p.gate_ld;
      left = p.gate_rows;
    }
  }
}

/* Rows [from, to) of the tile. */
static __attribute__((noinline)) void msk_finish(const struct msk_done *d, int64_t from, int64_t to,
                                                 int place) {
  switch (d->columns == MSK_PANEL ? place : -1) {
  case 0:
    msk_finish_steps(d, from, to, msk_common_steps[0], 1);
    return;
  case 1:
    msk_finish_steps(d, from, to, msk_common_steps[1], 1);
    return;
  case 2:
    msk_finish_steps(d, from, to, msk_common_steps[2], 1);
    return;
  case 3:
    msk_finish_steps(d, from, to, msk_common_steps[3], 1);
    return;
  case 4:
    msk_finish_steps(d, from, to, msk_common_steps[4], 1);
    return;
  case 5:
    msk_finish_steps(d, from, to, msk_common_steps[5], 1);
    return;
  default:
    msk_finish_steps(d, from, to, msk_steps_of(d->p), 0);
  }
}

/* acc (+)= A block times B panel, over `lines` lines; `first`: acc starts at 0. Row r of the block lies a_row
 * bytes after row r - 1, its lines a_line bytes apart; or the block is packed across. Between the lines it
 * may prefetch what the next tiles read of B: `ahead_step` bytes a line from `ahead`. */
struct msk_tile {
  const char *a;
  int64_t a_row, a_line;
  int64_t a_next; /* bytes from this block of A to the next */
  int across;
  const char *b;
  int64_t lines;
  float *acc;
  int first;
  int64_t rows, columns; /* that exist; rows beyond height are those of the next block */
  const char *ahead;
  int64_t ahead_step;
};

typedef void (*msk_tile_fn)(struct msk_tile t);

struct msk_tiling {
  enum msk_line line;
  int64_t height; /* rows of a tile */
  int64_t rows; /* rows of C whose sums are made together, a multiple of height and of MSK_ACROSS if across */
  int64_t columns; /* columns of C whose sums wait for the next block of k, a multiple of MSK_PANEL */
  int64_t lines;   /* lines of a block of k */
  int keep;        /* A is packed once for all columns, else again for each range of them */
  int direct;      /* tiles can read rows of A where they lie, if its type is that of a line */
  int across;      /* tiles take A packed across, if it is stored transposed */
  int pairs;       /* tiles take two blocks of A where at most half of a panel's columns exist */
};

/* How one product is cut. */
struct msk_cut {
  int64_t lines, parts, deep; /* lines of k in all, blocks of them, lines of a block */
  int64_t rows;               /* of a range, rounded up to whole tiles */
  int64_t columns;
  int direct, across;
};

MSK_INLINE struct msk_cut msk_cut_of(const struct msk_product *p, struct msk_tiling t) {
  struct msk_cut cut = {.lines = msk_lines(t.line, p->k)};
  int64_t most = p->n <= MSK_PANEL / 2 ? 2 * t.lines : t.lines; /* of half a panel twice as much stays */
  cut.parts = cut.lines > most ? (cut.lines + most - 1) / most : 1;
  cut.deep = (cut.lines + cut.parts - 1) / cut.parts;
  cut.direct = t.direct && !p->a_transposed && p->taps <= 1 && p->k % msk_line_k(t.line) == 0 &&
               p->a_type == (t.line == MSK_LINE_BF16 ? MSK_BF16 : MSK_F32);
  cut.across = t.across && p->a_transposed;
  cut.rows = msk_round_up(p->m < t.rows ? p->m : t.rows, cut.across ? MSK_ACROSS : t.height);
  cut.columns = msk_round_up(p->n < t.columns ? p->n : t.columns, MSK_PANEL);
  return cut;
}

/* Scratch: [rows of A][sums of rows x columns, or of two tiles if k is one block][a row to gather taps in].
 */
MSK_INLINE int64_t msk_packed_bytes(struct msk_cut cut, struct msk_tiling t) {
  int64_t rows = cut.direct ? t.height : cut.across ? cut.rows / MSK_ACROSS * MSK_ACROSS_LD : cut.rows;
  return rows * (t.keep ? cut.lines : cut.deep) * 64;
}

MSK_INLINE int64_t msk_sums_bytes(struct msk_cut cut, struct msk_tiling t) {
  return (cut.parts > 1 ? cut.rows * cut.columns : 2 * t.height * MSK_PANEL) * 4;
}

MSK_INLINE size_t msk_run_scratch(const struct msk_product *p, struct msk_tiling t) {
  struct msk_cut cut = msk_cut_of(p, t);
  int64_t row = p->taps > 1 ? msk_round_up(cut.deep * msk_line_k(t.line) * 4, 64) : 0;
  return (size_t)(msk_packed_bytes(cut, t) + msk_sums_bytes(cut, t) + row);
}

MSK_INLINE void msk_run_tiles(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                              void *scratch, struct msk_tiling t, msk_tile_fn tile) {
  const struct msk_cut cut = msk_cut_of(p, t);
  const int64_t panel_bytes = cut.lines * MSK_PANEL_LINE, size = (int64_t)msk_type_size(p->a_type);
  const int64_t block_rows = cut.across ? MSK_ACROSS_LD : t.height;
  const int64_t block_bytes = (t.keep ? cut.lines : cut.deep) * block_rows * 64;
  float *sums = (float *)((char *)scratch + msk_packed_bytes(cut, t));
  char *row = (char *)sums + msk_sums_bytes(cut, t);
  int place = msk_steps_place(p);
  for (int64_t i0 = m0; i0 < m1; i0 += cut.rows) {
    int64_t rows = m1 - i0 < cut.rows ? m1 - i0 : cut.rows, blocks = (rows + t.height - 1) / t.height;
    int64_t whole = cut.direct ? rows / t.height * t.height : 0; /* rows that tiles read where they lie */
    int64_t step = msk_round_up((MSK_PANEL_LINE + blocks - 1) / blocks, 64);
    for (int64_t j0 = n0; j0 < n1; j0 += cut.columns) {
      int64_t j1 = n1 - j0 < cut.columns ? n1 : j0 + cut.columns, l = 0;
      do {
        int64_t here = cut.lines - l < cut.deep ? cut.lines - l : cut.deep;
        int last = l + here == cut.lines;
        char *packed = (char *)scratch + (t.keep ? l * block_rows * 64 : 0);
        if (whole < rows && (!t.keep || j0 == n0)) {
          struct msk_pack_a what = {p, i0 + whole, rows - whole, l, here, t.height, block_bytes, packed, row};
          if (cut.across && p->a_type == MSK_F32)
            msk_pack_a_across(what, t.line, MSK_F32);
          else if (cut.across)
            msk_pack_a_across(what, t.line, MSK_BF16);
          else
            msk_pack_a(&what, 0, msk_pieces_of_a(&what, t.line), t.line);
        }
        for (int64_t j = j0; j < j1; j += MSK_PANEL) {
          const char *b = (const char *)p->b + j / MSK_PANEL * panel_bytes + l * MSK_PANEL_LINE;
          struct msk_tile x = {.b = b,
                               .lines = here,
                               .first = l == 0,
                               .across = cut.across,
                               .columns = j1 - j < MSK_PANEL ? j1 - j : MSK_PANEL,
                               .ahead = b + panel_bytes,
                               .ahead_step = step};
          if (j + MSK_PANEL >= j1 && !last)
            x.ahead = (const char *)p->b + j0 / MSK_PANEL * panel_bytes + (l + here) * MSK_PANEL_LINE;
          else if (j + MSK_PANEL >= n1)
            x.ahead_step = 0;
          int pairs = t.pairs && x.columns <= MSK_PANEL / 2;
          for (int64_t r = 0; r < rows; r += x.rows) {
            x.acc = cut.parts > 1 ? sums + (j - j0) * cut.rows + r * MSK_PANEL : sums;
            x.rows = rows - r < t.height ? rows - r : t.height;
            if (pairs && r + t.height < rows && (r >= whole || r + 2 * t.height <= whole) &&
                (!cut.across || r % MSK_ACROSS + 2 * t.height <= MSK_ACROSS))
              x.rows = rows - r < 2 * t.height ? rows - r : 2 * t.height;
            if (r < whole) {
              x.a = (const char *)p->a + ((i0 + r) * p->a_ld + l * msk_line_k(t.line)) * size;
              x.a_row = p->a_ld * size;
              x.a_line = 64;
              x.a_next = t.height * x.a_row;
            } else if (cut.across) {
              x.a = packed + r / MSK_ACROSS * block_bytes + r % MSK_ACROSS * 4;
              x.a_line = MSK_ACROSS_LD * 64;
              x.a_next = t.height * 4;
            } else {
              x.a = packed + (r - whole) / t.height * block_bytes;
              x.a_row = 64;
              x.a_line = t.height * 64;
              x.a_next = block_bytes;
            }
            tile(x);
            x.ahead += here * x.ahead_step;
            if (last) {
              struct msk_done done = {p, x.acc, i0 + r, j, x.rows, x.columns};
              msk_finish(&done, 0, x.rows, place);
            }
          }
        }
        l += here;
      } while (l < cut.lines);
    }
  }
}
