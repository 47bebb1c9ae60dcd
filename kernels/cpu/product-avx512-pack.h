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
#define MSK_PANEL 32        /* columns of a panel of B */
#define MSK_PANEL_LINE 2048 /* bytes of one line of a panel */

enum msk_line { MSK_LINE_F32, MSK_LINE_ROUNDED, MSK_LINE_BF16 };

MSK_INLINE int64_t msk_line_k(enum msk_line line) {
  return line == MSK_LINE_BF16 ? 32 : 16;
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
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) { /* v[i + c]: column 4 q + c of rows i..i+3 in quarter q */
    v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
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

/* Runs of 16 elements along the taps of one row. */
struct msk_tap_walk {
  const struct msk_product *p;
  int64_t i, k_tap, tap, c;
};

MSK_INLINE __m512 msk_next_16(struct msk_tap_walk *w, enum msk_type type) {
  if (w->tap == w->p->taps)
    return _mm512_setzero_ps();
  const void *x = msk_at(w->p->a, type, (w->i + w->p->tap_rows[w->tap]) * w->p->a_ld + w->c);
  w->c += 16;
  if (w->c == w->k_tap) {
    w->c = 0;
    w->tap++;
  }
  return msk_load_16(x, type, 0xffff);
}

/* A row of A with taps. Where taps end inside runs of 16, it is gathered first: `row` has room for it. */
MSK_INLINE void msk_pack_row_taps(const struct msk_product *p, int64_t i, char *dst, int64_t stride,
                                  char *row, enum msk_line line, enum msk_type type) {
  int64_t k_tap = p->k / p->taps, step = msk_line_k(line), size = (int64_t)msk_type_size(type);
  if (k_tap % step == 0) {
    for (int64_t tap = 0; tap < p->taps; tap++, dst += k_tap / step * stride)
      msk_pack_row(msk_at(p->a, type, (i + p->tap_rows[tap]) * p->a_ld), type, k_tap, dst, stride, line);
  } else if (k_tap % 16 == 0) { /* so lines hold 32 */
    struct msk_tap_walk walk = {p, i, k_tap, 0, 0};
    for (int64_t l = 0; l < p->k; l += step, dst += stride) {
      __m512 low = msk_next_16(&walk, type);
      _mm512_store_si512(dst, msk_join_bf16(low, msk_next_16(&walk, type)));
    }
  } else {
    for (int64_t tap = 0; tap < p->taps; tap++)
      memcpy(row + tap * k_tap * size, msk_at(p->a, type, (i + p->tap_rows[tap]) * p->a_ld),
             (size_t)(k_tap * size));
    msk_pack_row(row, type, p->k, dst, stride, line);
  }
}

/* Rows [i0, i0 + rows) of A into dst; `row` is scratch for taps. */
MSK_INLINE void msk_pack_a(const struct msk_product *p, int64_t i0, int64_t rows, int64_t height, char *dst,
                           char *row, enum msk_line line, enum msk_type type) {
  int64_t lines = msk_lines(line, p->k), stride = height * 64, block = lines * stride;
  int64_t last = rows % height ? rows / height : -1; /* the block that is not full */
  if (last >= 0)
    for (int64_t l = 0; l < lines; l++)
      memset(dst + last * block + l * stride + rows % height * 64, 0,
             (size_t)((height - rows % height) * 64));
  if (!p->a_transposed) {
    for (int64_t r = 0; r < rows; r++) {
      char *to = dst + r / height * block + r % height * 64;
      if (p->taps > 1)
        msk_pack_row_taps(p, i0 + r, to, stride, row, line, type);
      else
        msk_pack_row(msk_at(p->a, type, (i0 + r) * p->a_ld), type, p->k, to, stride, line);
    }
    return;
  }
  int64_t step = msk_line_k(line), per = step / 16;
  for (int64_t l = 0; l < lines; l++)
    for (int64_t r0 = 0; r0 < rows; r0 += height)
      for (int64_t r = r0; r < r0 + height && r < rows; r += 16) {
        int64_t here = r0 + height - r < rows - r ? r0 + height - r : rows - r;
        __mmask16 mask = msk_mask16(here);
        char *to = dst + r0 / height * block + l * stride + (r - r0) * 64;
        __m512i v[16];
        for (int64_t q = 0; q < 16; q++) {
          int64_t k = l * step + q * per;
          const void *x = msk_at(p->a, type, k * p->a_ld + i0 + r);
          v[q] = k < p->k ? msk_load_across(x, per == 2 && k + 1 < p->k ? msk_at(x, type, p->a_ld) : NULL,
                                            type, mask, line)
                          : _mm512_setzero_si512();
        }
        msk_transpose_16(v);
        for (int64_t q = 0; q < 16 && q < here; q++)
          _mm512_store_si512(to + q * 64, v[q]);
      }
}

/* ---- B ---- */

MSK_INLINE size_t msk_packed_b_bytes(int64_t n, int64_t k, enum msk_line line) {
  return (size_t)((n + MSK_PANEL - 1) / MSK_PANEL * msk_lines(line, k) * MSK_PANEL_LINE);
}

/* Stores the 16 vectors (one per k or pair of k) of 16 columns; half: which columns of the panel. */
MSK_INLINE void msk_store_half(char *to, int64_t half, const __m512i v[16], enum msk_line line) {
  for (int64_t q = 0; q < 16; q++)
    _mm512_store_si512(line == MSK_LINE_BF16 ? to + half * 1024 + q * 64 : to + q * 128 + half * 64, v[q]);
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
      msk_store_half(dst + (j / MSK_PANEL * lines + l) * MSK_PANEL_LINE, j / 16 % 2, v, line);
    }
}

/* 16 columns from j of k-row l where taps end among them. */
MSK_INLINE void msk_gather_across(const struct msk_pack *pack, int64_t j, int64_t l, float row[16]) {
  for (int64_t q = 0; q < 16; q++)
    row[q] = j + q < pack->n && l < pack->k
                 ? msk_product_load(pack->src, pack->type, msk_product_b_at(pack, j + q, l))
                 : 0;
}

MSK_INLINE void msk_pack_b_columns(const struct msk_pack *pack, int64_t n0, int64_t n1, char *dst,
                                   enum msk_line line, enum msk_type type) {
  int64_t lines = msk_lines(line, pack->k), step = msk_line_k(line), per = step / 16;
  int64_t n_tap = pack->taps > 1 ? pack->n / pack->taps : pack->n;
  for (int64_t l = 0; l < lines; l++)
    for (int64_t j = n0; j < n1; j += 16) {
      int64_t tap = j / n_tap, in_tap = j % n_tap;
      int64_t shift = pack->taps > 1 && tap < pack->taps ? pack->tap_rows[tap] : 0;
      int straddles = pack->taps > 1 && in_tap + 16 > n_tap && j + (n_tap - in_tap) < pack->n;
      __mmask16 mask = msk_mask16(pack->n - j < n_tap - in_tap ? pack->n - j : n_tap - in_tap);
      __m512i v[16];
      for (int64_t q = 0; q < 16; q++) {
        int64_t k = l * step + q * per;
        if (k >= pack->k || j >= pack->n) {
          v[q] = _mm512_setzero_si512();
        } else if (straddles) {
          float x[16], y[16];
          msk_gather_across(pack, j, k, x);
          msk_gather_across(pack, j, k + 1, y);
          v[q] = msk_load_across(x, y, MSK_F32, 0xffff, line);
        } else {
          const void *x = msk_at(pack->src, type, (k + shift) * pack->ld + in_tap);
          const void *y = per == 2 && k + 1 < pack->k ? msk_at(x, type, pack->ld) : NULL;
          v[q] = msk_load_across(x, y, type, mask, line);
        }
      }
      msk_store_half(dst + (j / MSK_PANEL * lines + l) * MSK_PANEL_LINE, j / 16 % 2, v, line);
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
