/* Packing of operands for the AVX-512 and AMX kernels of matrix products.
 *
 * Both operands are cut into "lines": 64 bytes that hold 16 float32 or 32 bfloat16 neighbours along k.
 *   A: blocks of `height` rows; per block [line][row][64 bytes].
 *   B: panels of 32 columns; per panel [line][2048 bytes], inside a line
 *        float32  [16 k][32 columns]
 *        bfloat16 [2 halves][16 pairs of k][16 columns][2], the layout of AMX and of vdpbf16ps
 * Rows, columns and k that do not exist are zero.
 *
 * MSK_LINE_ROUNDED is float32 lines of values that were rounded to bfloat16: for processors without bf16
 * products. */
#pragma once
#include <immintrin.h>
#include <string.h>

#include "cpu/product.h"

#define MSK_INLINE static inline __attribute__((always_inline))
/* Columns of a panel of B: a file that multiplies other panels says so before it includes this. */
#ifndef MSK_PANEL
#define MSK_PANEL 32
#endif
#define MSK_PANEL_LINE (64 * MSK_PANEL) /* bytes of one line of a panel */

/* Blocks of A that are packed across, see msk_pack_a_across: rows of a block, and of its room. */
#define MSK_ACROSS 30
#define MSK_ACROSS_LD 32

enum msk_line { MSK_LINE_F32, MSK_LINE_ROUNDED, MSK_LINE_BF16 };

MSK_INLINE int64_t msk_line_k(enum msk_line line) {
  return line == MSK_LINE_BF16 ? 32 : 16;
}

MSK_INLINE int64_t msk_round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

MSK_INLINE int64_t msk_lines(enum msk_line line, int64_t k) {
  return (k + msk_line_k(line) - 1) / msk_line_k(line);
}

MSK_INLINE __mmask16 msk_mask16(int64_t n) {
  return (__mmask16)(n >= 16 ? 0xffff : n <= 0 ? 0 : (1 << n) - 1);
}

MSK_INLINE __mmask32 msk_mask32(int64_t n) {
  return n >= 32 ? 0xffffffffu : n <= 0 ? 0 : (1u << n) - 1;
}

MSK_INLINE __m512 msk_bf16_to_f32_16(__m256i h) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
}

/* 16 float32 to bfloat16 without the bf16 instructions, to nearest even, NaN kept; the result stays in the
 * upper halves. */
MSK_INLINE __m512i msk_round_bf16(__m512 x) {
  __m512i u = _mm512_castps_si512(x);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  __m512i r = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  r = _mm512_mask_or_epi32(r, nan, u, _mm512_set1_epi32(0x400000));
  return _mm512_and_si512(r, _mm512_set1_epi32((int)0xffff0000u));
}

MSK_INLINE __m256i msk_f32_to_bf16_16(__m512 x) {
#ifdef __AVX512BF16__
  return (__m256i)_mm512_cvtneps_pbh(x);
#else
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(msk_round_bf16(x), 16));
#endif
}

/* 16 elements of x as float32, those outside the mask 0. */
MSK_INLINE __m512 msk_load_16(const void *x, enum msk_type type, __mmask16 mask) {
  if (type == MSK_F32)
    return _mm512_maskz_loadu_ps(mask, x);
  return msk_bf16_to_f32_16(_mm256_maskz_loadu_epi16(mask, x));
}

#ifdef __AVX512BF16__
MSK_INLINE __m512i msk_join_bf16(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}
#else
MSK_INLINE __m512i msk_join_bf16(__m512 low, __m512 high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(msk_f32_to_bf16_16(low)), msk_f32_to_bf16_16(high), 1);
}
#endif

MSK_INLINE const void *msk_at(const void *x, enum msk_type type, int64_t i) {
  return (const char *)x + i * (int64_t)msk_type_size(type);
}

/* One line from n <= msk_line_k contiguous elements. */
MSK_INLINE __m512i msk_load_line(const void *x, enum msk_type type, int64_t n, enum msk_line line) {
  if (line == MSK_LINE_BF16) {
    if (type == MSK_BF16)
      return _mm512_maskz_loadu_epi16(msk_mask32(n), x);
    return msk_join_bf16(msk_load_16(x, type, msk_mask16(n)),
                         msk_load_16(msk_at(x, type, 16), type, msk_mask16(n - 16)));
  }
  __m512 v = msk_load_16(x, type, msk_mask16(n));
  return line == MSK_LINE_ROUNDED && type == MSK_F32 ? msk_round_bf16(v) : _mm512_castps_si512(v);
}

/* 16 neighbours (along m or n) of the k-row x: float32, or bfloat16 pairs with the next k-row y; y NULL:
 * zeros. */
MSK_INLINE __m512i msk_load_across(const void *x, const void *y, enum msk_type type, __mmask16 mask,
                                   enum msk_line line) {
  if (line != MSK_LINE_BF16) {
    __m512 v = msk_load_16(x, type, mask);
    return line == MSK_LINE_ROUNDED && type == MSK_F32 ? msk_round_bf16(v) : _mm512_castps_si512(v);
  }
  const __m512i pairs = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  __m512i v;
  if (type == MSK_F32)
    v = msk_join_bf16(_mm512_maskz_loadu_ps(mask, x),
                      y ? _mm512_maskz_loadu_ps(mask, y) : _mm512_setzero_ps());
  else
    v = _mm512_inserti64x4(_mm512_castsi256_si512(_mm256_maskz_loadu_epi16(mask, x)),
                           y ? _mm256_maskz_loadu_epi16(mask, y) : _mm256_setzero_si256(), 1);
  return _mm512_permutexvar_epi16(pairs, v);
}

/* 16 x 16 transpose of 32-bit elements, in place. */
MSK_INLINE void msk_transpose_16(__m512i v[16]) {
  __m512i t[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) { /* v[i + c]: column 4 q + c of rows i..i+3 in quarter q */
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; c++) {
    __m512i low01 = _mm512_shuffle_i32x4(v[c], v[c + 4], 0x44),
            high01 = _mm512_shuffle_i32x4(v[c], v[c + 4], 0xee);
    __m512i low23 = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0x44);
    __m512i high23 = _mm512_shuffle_i32x4(v[c + 8], v[c + 12], 0xee);
    t[c] = _mm512_shuffle_i32x4(low01, low23, 0x88);
    t[c + 4] = _mm512_shuffle_i32x4(low01, low23, 0xdd);
    t[c + 8] = _mm512_shuffle_i32x4(high01, high23, 0x88);
    t[c + 12] = _mm512_shuffle_i32x4(high01, high23, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++)
    v[i] = t[i];
}

/* ---- A ---- */

/* One row of A, k contiguous elements of src, into lines that lie `stride` bytes apart. */
MSK_INLINE void msk_pack_row(const void *src, enum msk_type type, int64_t k, char *dst, int64_t stride,
                             enum msk_line line) {
  int64_t step = msk_line_k(line), l = 0;
  for (; l + step <= k; l += step, dst += stride)
    _mm512_store_si512(dst, msk_load_line(msk_at(src, type, l), type, step, line));
  if (l < k)
    _mm512_store_si512(dst, msk_load_line(msk_at(src, type, l), type, k - l, line));
}

/* Runs along the taps of one row. */
struct msk_tap_walk {
  const struct msk_product *p;
  int64_t i, k_tap, tap, c;
};

/* Where the next n elements lie, n dividing k_tap; NULL past the end. */
MSK_INLINE const void *msk_next_run(struct msk_tap_walk *w, enum msk_type type, int64_t n) {
  if (w->tap == w->p->taps)
    return NULL;
  const void *x = msk_at(w->p->a, type, (w->i + w->p->tap_rows[w->tap]) * w->p->a_ld + w->c);
  w->c += n;
  if (w->c == w->k_tap) {
    w->c = 0;
    w->tap++;
  }
  return x;
}

/* Elements [k0, k1) of a row of A whose taps do not end between lines. Where they end inside runs of 16, they
 * are gathered first: `row` has room for them. */
MSK_INLINE void msk_pack_row_taps(const struct msk_product *p, int64_t i, int64_t k0, int64_t k1, char *dst,
                                  int64_t stride, char *row, enum msk_line line, enum msk_type type) {
  int64_t k_tap = p->k / p->taps, step = msk_line_k(line), size = (int64_t)msk_type_size(type);
  struct msk_tap_walk walk = {p, i, k_tap, k0 / k_tap, k0 % k_tap};
  if (k_tap % 16 == 0) { /* so lines hold 32 */
    for (int64_t l = k0; l < k1; l += step, dst += stride) {
      __m512 low = msk_load_16(msk_next_run(&walk, type, 16), type, 0xffff);
      const void *x = msk_next_run(&walk, type, 16);
      _mm512_store_si512(dst, msk_join_bf16(low, x ? msk_load_16(x, type, 0xffff) : _mm512_setzero_ps()));
    }
  } else {
    for (int64_t l = k0; l < k1; walk.c = 0, walk.tap++) {
      int64_t n = k_tap - walk.c < k1 - l ? k_tap - walk.c : k1 - l;
      memcpy(row + (l - k0) * size, msk_at(p->a, type, (i + p->tap_rows[walk.tap]) * p->a_ld + walk.c),
             (size_t)(n * size));
      l += n;
    }
    msk_pack_row(row, type, k1 - k0, dst, stride, line);
  }
}

/* What to pack of A: rows [i, i + rows), lines [l, l + lines), into blocks that lie `block` bytes apart.
 * `row` is scratch for taps. */
struct msk_pack_a {
  const struct msk_product *p;
  int64_t i, rows, l, lines, height, block;
  char *dst, *row;
};

/* A as it is stored transposed, k after k: blocks of MSK_ACROSS rows, [k][MSK_ACROSS_LD] of float32, whose
 * last ones are the first of the next block. */
MSK_INLINE void msk_pack_a_across(struct msk_pack_a w, enum msk_line line, enum msk_type type) {
  const __m512i none = _mm512_setzero_si512();
  for (int64_t k = 0; k < w.lines * 16; k++) {
    const void *x = msk_at(w.p->a, type, (w.l * 16 + k) * w.p->a_ld + w.i);
    char *to = w.dst + k * MSK_ACROSS_LD * 4;
    int64_t left = w.l * 16 + k < w.p->k ? w.rows : 0;
    for (; left >= MSK_ACROSS_LD; left -= MSK_ACROSS, to += w.block, x = msk_at(x, type, MSK_ACROSS)) {
      _mm_prefetch(msk_at(x, type, 8 * w.p->a_ld), _MM_HINT_T0);
      _mm_prefetch(msk_at(x, type, 8 * w.p->a_ld + 16), _MM_HINT_T0);
      _mm512_store_si512(to, msk_load_across(x, NULL, type, 0xffff, line));
      _mm512_store_si512(to + 64, msk_load_across(msk_at(x, type, 16), NULL, type, 0xffff, line));
    }
    for (; to < w.dst + (w.rows + MSK_ACROSS - 1) / MSK_ACROSS * w.block; left -= MSK_ACROSS, to += w.block) {
      __mmask16 low = msk_mask16(left), high = msk_mask16(left - 16);
      _mm512_store_si512(to, low ? msk_load_across(x, NULL, type, low, line) : none);
      _mm512_store_si512(to + 64, high ? msk_load_across(msk_at(x, type, 16), NULL, type, high, line) : none);
      x = msk_at(x, type, MSK_ACROSS);
    }
  }
}

/* Packing goes by pieces, so that it can be done between other work: one line of a block, or a row if taps
 * end inside lines. */
MSK_INLINE int msk_packs_rows(const struct msk_product *p, enum msk_line line) {
  return p->taps > 1 && p->k / p->taps % msk_line_k(line) != 0;
}

MSK_INLINE int64_t msk_pieces_of_a(const struct msk_pack_a *w, enum msk_line line) {
  int64_t full = msk_round_up(w->rows, w->height);
  return msk_packs_rows(w->p, line) ? full : full / w->height * w->lines;
}

/* One row. */
MSK_INLINE void msk_pack_a_row(struct msk_pack_a w, int64_t r, enum msk_line line, enum msk_type type) {
  int64_t step = msk_line_k(line), stride = w.height * 64;
  int64_t k0 = w.l * step, k1 = w.p->k < k0 + w.lines * step ? w.p->k : k0 + w.lines * step;
  char *to = w.dst + r / w.height * w.block + r % w.height * 64;
  if (r >= w.rows)
    for (int64_t l = 0; l < w.lines; l++)
      _mm512_store_si512(to + l * stride, _mm512_setzero_si512());
  else
    msk_pack_row_taps(w.p, w.i + r, k0, k1, to, stride, w.row, line, type);
}

/* `rows` rows of k elements, the first at x, into one line of a block of `height` rows. Written line by line:
 * stores that skip through memory would cost far more than loads that do. */
MSK_INLINE void msk_pack_a_line(const void *x, int64_t ld, int64_t rows, int64_t k, int64_t height, char *dst,
                                enum msk_line line, enum msk_type type) {
  const int64_t step = msk_line_k(line);
  int64_t r = 0;
  if (k >= step)
    for (; r < rows; r++, x = msk_at(x, type, ld))
      _mm512_store_si512(dst + r * 64, msk_load_line(x, type, step, line));
  else
    for (; r < rows; r++, x = msk_at(x, type, ld))
      _mm512_store_si512(dst + r * 64, msk_load_line(x, type, k, line));
  for (; r < height; r++)
    _mm512_store_si512(dst + r * 64, _mm512_setzero_si512());
}

/* The same of an A that is stored transposed. */
MSK_INLINE void msk_pack_a_turned(const struct msk_product *p, int64_t i, int64_t rows, int64_t k0,
                                  int64_t height, char *dst, enum msk_line line, enum msk_type type) {
  const int64_t per = msk_line_k(line) / 16;
  for (int64_t r = 0; r < height; r += 16) {
    int whole = rows - r >= 16 && k0 + 16 * per <= p->k;
    __mmask16 mask = msk_mask16(rows - r);
    __m512i v[16];
    if (whole) {
      const void *x = msk_at(p->a, type, k0 * p->a_ld + i + r);
#pragma GCC unroll 16
      for (int64_t q = 0; q < 16; q++, x = msk_at(x, type, per * p->a_ld))
        v[q] = msk_load_across(x, per == 2 ? msk_at(x, type, p->a_ld) : NULL, type, 0xffff, line);
    } else {
      for (int64_t q = 0; q < 16; q++) {
        int64_t k = k0 + q * per;
        const void *x = msk_at(p->a, type, k * p->a_ld + i + r);
        v[q] = mask && k < p->k
                   ? msk_load_across(x, per == 2 && k + 1 < p->k ? msk_at(x, type, p->a_ld) : NULL, type,
                                     mask, line)
                   : _mm512_setzero_si512();
      }
    }
    msk_transpose_16(v);
#pragma GCC unroll 16
    for (int64_t q = 0; q < 16; q++)
      if (r + q < height)
        _mm512_store_si512(dst + (r + q) * 64, v[q]);
  }
}

MSK_INLINE void msk_pack_a_pieces(struct msk_pack_a w, int64_t from, int64_t to, enum msk_line line,
                                  enum msk_type type) {
  const int64_t step = msk_line_k(line), blocks = msk_round_up(w.rows, w.height) / w.height;
  if (from >= to) /* so there are lines */
    return;
  if (msk_packs_rows(w.p, line)) {
    for (int64_t i = from; i < to; i++)
      msk_pack_a_row(w, i, line, type);
    return;
  }
  if (w.p->a_transposed) { /* all blocks of a line, so that memory is read in order */
    int64_t l = from / blocks, block = from % blocks;
    for (int64_t i = from; i < to; i++) {
      int64_t r = block * w.height, rows = w.rows - r < w.height ? w.rows - r : w.height;
      msk_pack_a_turned(w.p, w.i + r, rows, (w.l + l) * step, w.height,
                        w.dst + block * w.block + l * w.height * 64, line, type);
      if (++block == blocks) {
        block = 0;
        l++;
      }
    }
    return;
  }
  int64_t k_tap = w.p->taps > 1 ? w.p->k / w.p->taps : w.p->k + step; /* no tap ends if there are none */
  int64_t block = from / w.lines, l = from % w.lines, tap = (w.l + l) * step / k_tap;
  int64_t c = (w.l + l) * step % k_tap;
  for (int64_t i = from; i < to; i++) {
    int64_t r = block * w.height, rows = w.rows - r < w.height ? w.rows - r : w.height;
    int64_t row = w.i + r + (w.p->taps > 1 ? w.p->tap_rows[tap] : 0);
    msk_pack_a_line(msk_at(w.p->a, type, row * w.p->a_ld + c), w.p->a_ld, rows, w.p->k - (w.l + l) * step,
                    w.height, w.dst + block * w.block + l * w.height * 64, line, type);
    c += step;
    if (++l == w.lines) {
      block++;
      l = 0;
      tap = w.l * step / k_tap;
      c = w.l * step % k_tap;
    } else if (c == k_tap) {
      tap++;
      c = 0;
    }
  }
}

static __attribute__((noinline)) void msk_pack_a(const struct msk_pack_a *w, int64_t from, int64_t to,
                                                 enum msk_line line) {
  if (w->p->a_type == MSK_F32)
    msk_pack_a_pieces(*w, from, to, line, MSK_F32);
  else
    msk_pack_a_pieces(*w, from, to, line, MSK_BF16);
}

/* ---- B ---- */

MSK_INLINE size_t msk_packed_b_bytes(int64_t n, int64_t k, enum msk_line line) {
  return (size_t)((n + MSK_PANEL - 1) / MSK_PANEL * msk_lines(line, k) * MSK_PANEL_LINE);
}

/* Where k (or pair of k) q of a line has its 16 columns from j. */
MSK_INLINE char *msk_b_place(char *dst, int64_t j, int64_t l, int64_t q, int64_t lines, enum msk_line line) {
  char *to = dst + (j / MSK_PANEL * lines + l) * MSK_PANEL_LINE;
  int64_t half = j / 16 % (MSK_PANEL / 16);
  return line == MSK_LINE_BF16 ? to + half * 1024 + q * 64 : to + q * 4 * MSK_PANEL + half * 64;
}

MSK_INLINE void msk_pack_b_rows(const struct msk_pack *pack, int64_t n0, int64_t n1, char *dst,
                                enum msk_line line, enum msk_type type) {
  int64_t lines = msk_lines(line, pack->k), step = msk_line_k(line);
  for (int64_t j = n0; j < n1; j += 16)
    for (int64_t l = 0; l < lines; l++) {
      __m512i v[16];
      for (int64_t q = 0; q < 16; q++)
        v[q] = j + q < pack->n ? msk_load_line(msk_at(pack->src, type, (j + q) * pack->ld + l * step), type,
                                               pack->k - l * step, line)
                               : _mm512_setzero_si512();
      msk_transpose_16(v);
      for (int64_t q = 0; q < 16; q++)
        _mm512_store_si512(msk_b_place(dst, j, l, q, lines, line), v[q]);
    }
}

/* 16 columns from j of k-row l where taps end among them. */
MSK_INLINE void msk_gather_across(const struct msk_pack *pack, int64_t j, int64_t l, float row[16]) {
  for (int64_t q = 0; q < 16; q++)
    row[q] = j + q < pack->n && l < pack->k
                 ? msk_product_load(pack->src, pack->type, msk_product_b_at(pack, j + q, l))
                 : 0;
}

/* One k (or pair of k) of columns [n0, n1) where there are taps. */
MSK_INLINE void msk_pack_b_taps(const struct msk_pack *pack, int64_t n0, int64_t n1, int64_t l, int64_t q,
                                char *dst, enum msk_line line, enum msk_type type) {
  int64_t lines = msk_lines(line, pack->k), step = msk_line_k(line), per = step / 16, k = l * step + q * per;
  int64_t n_tap = pack->n / pack->taps, tap = n0 / n_tap, in_tap = n0 % n_tap;
  for (int64_t j = n0; j < n1; j += 16) {
    int64_t left = n_tap - in_tap; /* columns to the end of this tap */
    __m512i v = _mm512_setzero_si512();
    if (j < pack->n && left < 16 && j + left < pack->n) {
      float x[16], y[16];
      msk_gather_across(pack, j, k, x);
      msk_gather_across(pack, j, k + 1, y);
      v = msk_load_across(x, y, MSK_F32, 0xffff, line);
    } else if (j < pack->n) {
      const void *x = msk_at(pack->src, type, (k + pack->tap_rows[tap]) * pack->ld + in_tap);
      const void *y = per == 2 && k + 1 < pack->k ? msk_at(x, type, pack->ld) : NULL;
      v = msk_load_across(x, y, type, msk_mask16(left), line);
    }
    _mm512_store_si512(msk_b_place(dst, j, l, q, lines, line), v);
    for (in_tap += 16; in_tap >= n_tap; in_tap -= n_tap)
      tap++;
  }
}

/* Row after row of src, for those are long and lie in order. */
MSK_INLINE void msk_pack_b_columns(const struct msk_pack *pack, int64_t n0, int64_t n1, char *dst,
                                   enum msk_line line, enum msk_type type) {
  int64_t lines = msk_lines(line, pack->k), per = msk_line_k(line) / 16;
  for (int64_t i = 0; i < 16 * lines; i++) {
    int64_t l = i / 16, q = i % 16, k = i * per, j = n0;
    const void *x = msk_at(pack->src, type, k * pack->ld);
    const void *y = per == 2 && k + 1 < pack->k ? msk_at(x, type, pack->ld) : NULL;
    if (k >= pack->k) {
      for (; j < n1; j += 16)
        _mm512_store_si512(msk_b_place(dst, j, l, q, lines, line), _mm512_setzero_si512());
    } else if (pack->taps > 1) {
      msk_pack_b_taps(pack, n0, n1, l, q, dst, line, type);
    } else {
      for (; j + 16 <= pack->n && j < n1; j += 16)
        _mm512_store_si512(
            msk_b_place(dst, j, l, q, lines, line),
            msk_load_across(msk_at(x, type, j), y ? msk_at(y, type, j) : NULL, type, 0xffff, line));
      for (; j < n1; j += 16)
        _mm512_store_si512(msk_b_place(dst, j, l, q, lines, line),
                           msk_load_across(msk_at(x, type, j), y ? msk_at(y, type, j) : NULL, type,
                                           msk_mask16(pack->n - j), line));
    }
  }
}

MSK_INLINE void msk_pack_b(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst,
                           enum msk_line line) {
  int64_t end = (n1 + MSK_PANEL - 1) / MSK_PANEL * MSK_PANEL;
  if (pack->transposed && pack->type == MSK_F32)
    msk_pack_b_columns(pack, n0, end, dst, line, MSK_F32);
  else if (pack->transposed)
    msk_pack_b_columns(pack, n0, end, dst, line, MSK_BF16);
  else if (pack->type == MSK_F32)
    msk_pack_b_rows(pack, n0, end, dst, line, MSK_F32);
  else
    msk_pack_b_rows(pack, n0, end, dst, line, MSK_BF16);
}
