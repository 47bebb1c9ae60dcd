/* Deformable slide attention with AVX-512 BF16: the dense products of slide-run.h on pairs of bfloat16, sums
 * in float32.
 *
 * A packed block of 32 cells is [channel pair][32 cells][2] for scores and [16 cell pairs][channel][2] for
 * sums over cells. Sums over lanes take [16 lane pairs][32 cells][2] and [16 lane pairs][channel][2];
 * accumulators of dk and dv are [cell][channel]. */
#include "slide-tile.h"

#include <string.h>

#define ENGINE_DEPTH 32
#define ENGINE_NARROW 256

typedef uint16_t engine_element;

static void engine_begin(void) {
}

static void engine_end(void) {
}

static inline __m512i two_to_bf16(__m512 low, __m512 high) {
  return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* Rows a and b as pairs of one element of each. */
static inline __m512i interleave(__m512 a, __m512 b) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7,
                                         22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return _mm512_permutexvar_epi16(order, two_to_bf16(a, b));
}

static inline __m512 load_part(const float *x, int64_t ld, int64_t row, int64_t rows, int64_t channel,
                               int64_t channels) {
  return row < rows ? _mm512_maskz_loadu_ps(slide_first(channels - channel), x + row * ld + channel)
                    : _mm512_setzero_ps();
}

static inline __m512 dot_pairs(__m512 sum, __m512i a, __m512i b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}

/* The pair at x in every lane. */
static inline __m512i one_pair(const engine_element *x) {
  int32_t pair;
  memcpy(&pair, x, sizeof pair);
  return _mm512_set1_epi32(pair);
}

static void engine_pack_scores(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                               engine_element *block) {
  for (int64_t c = 0; c < depth; c += 32)
    for (int64_t half = 0; half < 32; half += 16) {
      __m512i r[16];
      for (int64_t i = 0; i < 16; i++)
        r[i] = two_to_bf16(load_part(x, ld, half + i, rows, c, channels),
                           load_part(x, ld, half + i, rows, c + 16, channels));
      slide_transpose(r);
      for (int64_t i = 0; i < 16; i++)
        _mm512_store_si512(block + ((c / 2 + i) * 32 + half) * 2, r[i]);
    }
}

static void interleave_rows(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                            engine_element *to) {
  for (int64_t i = 0; i < 32; i += 2)
    for (int64_t c = 0; c < depth; c += 16, to += 32)
      _mm512_store_si512(
          to, interleave(load_part(x, ld, i, rows, c, channels), load_part(x, ld, i + 1, rows, c, channels)));
}

static void engine_pack_sums(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                             engine_element *block) {
  interleave_rows(x, ld, rows, channels, depth, block);
}

static void engine_query(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                         engine_element *query) {
  for (int64_t i = 0; i < 32; i++)
    for (int64_t c = 0; c < depth; c += 32)
      _mm512_store_si512(query + i * depth + c, two_to_bf16(load_part(x, ld, i, rows, c, channels),
                                                            load_part(x, ld, i, rows, c + 16, channels)));
}

static void engine_query_across(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                                engine_element *query) {
  interleave_rows(x, ld, rows, channels, depth, query);
}

static void engine_scores(const engine_element *query, int64_t halves, int64_t depth,
                          const engine_element *form, const int32_t *list, int64_t blocks, float *rows,
                          int64_t ld) {
  for (int64_t i = 0; i < blocks; i++)
    for (int64_t lane = 0; lane < 16 * halves; lane += 8) {
      const engine_element *cells = form + list[i] * SLIDE_BLOCK * depth, *q = query + lane * depth;
      __m512 sum[8][2];
      for (int k = 0; k < 8; k++)
        sum[k][0] = sum[k][1] = _mm512_setzero_ps();
      for (int64_t c = 0; c < depth; c += 2, cells += 64, q += 2) {
        __m512i first = _mm512_load_si512(cells), second = _mm512_load_si512(cells + 32);
        for (int k = 0; k < 8; k++) {
          __m512i one = one_pair(q + k * depth);
          sum[k][0] = dot_pairs(sum[k][0], one, first);
          sum[k][1] = dot_pairs(sum[k][1], one, second);
        }
      }
      for (int k = 0; k < 8; k++) {
        _mm512_storeu_ps(rows + (lane + k) * ld + i * 32, sum[k][0]);
        _mm512_storeu_ps(rows + (lane + k) * ld + i * 32 + 16, sum[k][1]);
      }
    }
}

/* 8 lanes and 32 channels of blocks [i0,i1), whose rows are in narrow. */
static inline void sums_part(const engine_element *narrow, int64_t i0, int64_t i1, const engine_element *form,
                             const int32_t *list, int64_t depth, float *out) {
  __m512 sum[8][2];
  for (int k = 0; k < 8; k++)
    for (int m = 0; m < 2; m++)
      sum[k][m] = _mm512_load_ps(out + k * depth + 16 * m);
  for (int64_t i = i0; i < i1; i++) {
    const engine_element *cells = form + list[i] * SLIDE_BLOCK * depth, *weight = narrow + (i - i0) * 32;
    for (int64_t j = 0; j < 16; j++, cells += 2 * depth, weight += 2) {
      __m512i first = _mm512_load_si512(cells), second = _mm512_load_si512(cells + 32);
      for (int k = 0; k < 8; k++) {
        __m512i one = one_pair(weight + k * ENGINE_NARROW);
        sum[k][0] = dot_pairs(sum[k][0], one, first);
        sum[k][1] = dot_pairs(sum[k][1], one, second);
      }
    }
  }
  for (int k = 0; k < 8; k++)
    for (int m = 0; m < 2; m++)
      _mm512_store_ps(out + k * depth + 16 * m, sum[k][m]);
}

static void engine_sums(const float *rows, int64_t halves, int64_t ld, int64_t blocks, engine_element *narrow,
                        const engine_element *form, const int32_t *list, int64_t depth, float *out) {
  memset(out, 0, (size_t)(32 * depth) * sizeof *out);
  for (int64_t i0 = 0; i0 < blocks; i0 += ENGINE_NARROW / 32) {
    int64_t i1 = i0 + ENGINE_NARROW / 32 < blocks ? i0 + ENGINE_NARROW / 32 : blocks;
    for (int64_t lane = 0; lane < 16 * halves; lane++)
      for (int64_t i = i0; i < i1; i++) {
        const float *row = rows + lane * ld + i * 32;
        _mm512_store_si512(narrow + lane * ENGINE_NARROW + (i - i0) * 32,
                           two_to_bf16(_mm512_loadu_ps(row), _mm512_loadu_ps(row + 16)));
      }
    for (int64_t lane = 0; lane < 16 * halves; lane += 8)
      for (int64_t c = 0; c < depth; c += 32)
        sums_part(narrow + lane * ENGINE_NARROW, i0, i1, form + 2 * c, list, depth, out + lane * depth + c);
  }
}

static void engine_across(const float *rows, int64_t halves, int64_t ld, int64_t blocks,
                          engine_element *across) {
  for (int64_t i = 0; i < blocks; i++)
    for (int64_t pair = 0; pair < 16; pair++)
      for (int64_t half = 0; half < 32; half += 16, across += 32) {
        const float *row = rows + 2 * pair * ld + i * 32 + half;
        _mm512_store_si512(across, pair < 8 * halves
                                       ? interleave(_mm512_loadu_ps(row), _mm512_loadu_ps(row + ld))
                                       : _mm512_setzero_si512());
      }
}

struct engine_part {
  const engine_element *rows, *query;
};

static void engine_outer(const struct engine_part *parts, int count, int64_t depth, float *block) {
  for (int64_t j = 0; j < 32; j += 8)
    for (int64_t c = 0; c < depth; c += 32) {
      float *to = block + j * depth + c;
      __m512 sum[8][2];
      for (int k = 0; k < 8; k++)
        for (int m = 0; m < 2; m++)
          sum[k][m] = _mm512_load_ps(to + k * depth + 16 * m);
      for (int n = 0; n < count; n++) {
        const engine_element *weight = parts[n].rows + 2 * j, *query = parts[n].query + 2 * c;
        for (int64_t pair = 0; pair < 16; pair++, weight += 64, query += 2 * depth) {
          __m512i first = _mm512_load_si512(query), second = _mm512_load_si512(query + 32);
          for (int k = 0; k < 8; k++) {
            __m512i one = one_pair(weight + 2 * k);
            sum[k][0] = dot_pairs(sum[k][0], one, first);
            sum[k][1] = dot_pairs(sum[k][1], one, second);
          }
        }
      }
      for (int k = 0; k < 8; k++)
        for (int m = 0; m < 2; m++)
          _mm512_store_ps(to + k * depth + 16 * m, sum[k][m]);
    }
}

static void engine_flush(const float *block, int64_t count, int64_t channels, int64_t depth, float *x,
                         int64_t ld) {
  for (int64_t i = 0; i < count; i++)
    for (int64_t c = 0; c < channels; c += 16) {
      __mmask16 mask = slide_first(channels - c);
      __m512 sum =
          _mm512_add_ps(_mm512_load_ps(block + i * depth + c), _mm512_maskz_loadu_ps(mask, x + i * ld + c));
      _mm512_mask_storeu_ps(x + i * ld + c, mask, sum);
    }
}

#include "slide-backward.h"

void msk_slide_init_avx512bf16(struct msk_slide_ops *bf16) {
  *bf16 = (struct msk_slide_ops){
      .name = "avx512bf16",
      .precision = MSK_PRECISION_BF16,
      .token_step = 1,
      .pack_bytes = slide_pack_bytes,
      .pack = slide_pack,
      .forward_scratch = slide_forward_scratch,
      .forward = slide_forward,
      .backward_scratch = slide_backward_scratch,
      .backward = slide_backward,
  };
}
