/* Deformable slide attention with AVX-512: the dense products of slide-run.h in float32.
 *
 * A packed block of 32 cells is [channel][32 cells] for scores and [32 cells][channel] for sums over cells;
 * accumulators of dk and dv are [cell][channel]. All products keep 16 sums in registers; sums run over
 * channels, cells or lanes in ascending order. */
#include "slide-tile.h"

#include <string.h>

#define ENGINE_DEPTH 16
#define ENGINE_NARROW 0 /* rows are operands as they are */

typedef float engine_element;

static void engine_begin(void) {
}

static void engine_end(void) {
}

static inline __m512 load_part(const float *x, int64_t ld, int64_t row, int64_t rows, int64_t channel,
                               int64_t channels) {
  return row < rows ? _mm512_maskz_loadu_ps(slide_first(channels - channel), x + row * ld + channel)
                    : _mm512_setzero_ps();
}

static void engine_pack_scores(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                               engine_element *block) {
  for (int64_t c = 0; c < depth; c += 16)
    for (int64_t half = 0; half < 32; half += 16) {
      __m512i r[16];
      for (int64_t i = 0; i < 16; i++)
        r[i] = _mm512_castps_si512(load_part(x, ld, half + i, rows, c, channels));
      slide_transpose(r);
      for (int64_t i = 0; i < 16; i++)
        _mm512_store_si512(block + (c + i) * 32 + half, r[i]);
    }
}

static void copy_rows(const float *x, int64_t ld, int64_t rows, int64_t all, int64_t channels, int64_t depth,
                      float *to) {
  for (int64_t i = 0; i < all; i++)
    for (int64_t c = 0; c < depth; c += 16)
      _mm512_store_ps(to + i * depth + c, load_part(x, ld, i, rows, c, channels));
}

static void engine_pack_sums(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                             engine_element *block) {
  copy_rows(x, ld, rows, 32, channels, depth, block);
}

static void engine_query(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                         engine_element *query) {
  copy_rows(x, ld, rows, 32, channels, depth, query);
}

static void engine_query_across(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                                engine_element *query) {
  copy_rows(x, ld, rows, 32, channels, depth, query);
}

static void engine_scores(const engine_element *query, int64_t halves, int64_t depth,
                          const engine_element *form, const int32_t *list, int64_t blocks, float *rows,
                          int64_t ld) {
  for (int64_t i = 0; i < blocks; i++)
    for (int64_t lane = 0; lane < 16 * halves; lane += 8) {
      const float *cells = form + list[i] * SLIDE_BLOCK * depth, *q = query + lane * depth;
      __m512 sum[8][2];
      for (int k = 0; k < 8; k++)
        sum[k][0] = sum[k][1] = _mm512_setzero_ps();
      for (int64_t c = 0; c < depth; c++, cells += 32, q++) {
        __m512 first = _mm512_load_ps(cells), second = _mm512_load_ps(cells + 16);
        for (int k = 0; k < 8; k++) {
          __m512 one = _mm512_set1_ps(q[k * depth]);
          sum[k][0] = _mm512_fmadd_ps(one, first, sum[k][0]);
          sum[k][1] = _mm512_fmadd_ps(one, second, sum[k][1]);
        }
      }
      for (int k = 0; k < 8; k++) {
        _mm512_storeu_ps(rows + (lane + k) * ld + i * 32, sum[k][0]);
        _mm512_storeu_ps(rows + (lane + k) * ld + i * 32 + 16, sum[k][1]);
      }
    }
}

/* 8 lanes, 16 n channels */
static inline __attribute__((always_inline)) void sums_part(const float *rows, int64_t ld, int64_t blocks,
                                                            const float *form, const int32_t *list,
                                                            int64_t depth, float *out, int n) {
  __m512 sum[8][2];
  for (int k = 0; k < 8; k++)
    sum[k][0] = sum[k][1] = _mm512_setzero_ps();
  for (int64_t i = 0; i < blocks; i++) {
    const float *cell = form + list[i] * SLIDE_BLOCK * depth, *weight = rows + i * 32;
    for (int64_t j = 0; j < 32; j++, cell += depth, weight++) {
      __m512 value[2] = {_mm512_load_ps(cell), n > 1 ? _mm512_load_ps(cell + 16) : _mm512_setzero_ps()};
      for (int k = 0; k < 8; k++) {
        __m512 one = _mm512_set1_ps(weight[k * ld]);
        sum[k][0] = _mm512_fmadd_ps(one, value[0], sum[k][0]);
        if (n > 1)
          sum[k][1] = _mm512_fmadd_ps(one, value[1], sum[k][1]);
      }
    }
  }
  for (int k = 0; k < 8; k++)
    for (int m = 0; m < n; m++)
      _mm512_store_ps(out + k * depth + 16 * m, sum[k][m]);
}

static void engine_sums(const float *rows, int64_t halves, int64_t ld, int64_t blocks, engine_element *narrow,
                        const engine_element *form, const int32_t *list, int64_t depth, float *out) {
  for (int64_t lane = 0; lane < 16 * halves; lane += 8)
    for (int64_t c = 0; c < depth; c += 32) {
      if (c + 16 < depth)
        sums_part(rows + lane * ld, ld, blocks, form + c, list, depth, out + lane * depth + c, 2);
      else
        sums_part(rows + lane * ld, ld, blocks, form + c, list, depth, out + lane * depth + c, 1);
    }
}

static void engine_across(const float *rows, int64_t halves, int64_t ld, int64_t blocks,
                          engine_element *across) {
  for (int64_t i = 0; i < blocks; i++)
    for (int64_t lane = 0; lane < 32; lane++, across += 32) {
      __mmask16 used = lane < 16 * halves ? 0xffff : 0;
      _mm512_store_ps(across, _mm512_maskz_loadu_ps(used, rows + lane * ld + i * 32));
      _mm512_store_ps(across + 16, _mm512_maskz_loadu_ps(used, rows + lane * ld + i * 32 + 16));
    }
}

struct engine_part {
  const engine_element *rows, *query;
};

static void engine_outer(const struct engine_part *parts, int count, int64_t depth, float *block) {
  for (int64_t j = 0; j < 32; j += 8)
    for (int64_t c = 0; c < depth; c += 32) {
      float *to = block + j * depth + c;
      __mmask16 second = c + 16 < depth ? 0xffff : 0;
      __m512 sum[8][2];
      for (int k = 0; k < 8; k++) {
        sum[k][0] = _mm512_load_ps(to + k * depth);
        sum[k][1] = _mm512_maskz_loadu_ps(second, to + k * depth + 16);
      }
      for (int n = 0; n < count; n++) {
        const float *weight = parts[n].rows + j, *query = parts[n].query + c;
        for (int64_t lane = 0; lane < 32; lane++, weight += 32, query += depth) {
          __m512 value[2] = {_mm512_load_ps(query), _mm512_maskz_loadu_ps(second, query + 16)};
          for (int k = 0; k < 8; k++) {
            __m512 one = _mm512_set1_ps(weight[k]);
            sum[k][0] = _mm512_fmadd_ps(one, value[0], sum[k][0]);
            sum[k][1] = _mm512_fmadd_ps(one, value[1], sum[k][1]);
          }
        }
      }
      for (int k = 0; k < 8; k++) {
        _mm512_store_ps(to + k * depth, sum[k][0]);
        _mm512_mask_storeu_ps(to + k * depth + 16, second, sum[k][1]);
      }
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

void msk_slide_init_avx512(struct msk_slide_ops *f32, struct msk_slide_ops *bf16) {
  *f32 = (struct msk_slide_ops){
      .name = "avx512",
      .precision = MSK_PRECISION_F32,
      .token_step = 1,
      .pack_bytes = slide_pack_bytes,
      .pack = slide_pack,
      .forward_scratch = slide_forward_scratch,
      .forward = slide_forward,
      .backward_scratch = slide_backward_scratch,
      .backward = slide_backward,
  };
  *bf16 = *f32;
  bf16->precision = MSK_PRECISION_BF16;
}
