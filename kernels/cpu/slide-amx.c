/* Deformable slide attention with AMX tiles: the dense products of slide-run.h in bfloat16, sums in float32.
 *
 * Packed blocks of 32 cells are made of whole tiles of 1 KB. For scores: per 32 channels, two tiles (16 cells
 * each) of [16 channel pairs][16 cells][2]. For sums over cells: per 16 channels one tile [16 cell pairs][16
 * channels][2]. Accumulators of dk and dv: per 16 channels two tiles [16 channels][16 cells]. */
#include "slide-tile.h"

#include <string.h>

#define ENGINE_DEPTH 32
#define ENGINE_NARROW 256
#define TILE 512 /* bf16 elements of a tile */

/* The compiler does not know that tile loads read memory. */
#define MEMORY_BARRIER() __asm__ volatile("" ::: "memory")

typedef uint16_t engine_element;

/* Tiles 0-3 accumulate, 4 and 5 hold the left operand, 6 and 7 the right one. */
static void engine_begin(void) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t colsb[16];
    uint8_t rows[16];
  } config __attribute__((aligned(64))) = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    config.colsb[i] = 64;
    config.rows[i] = 16;
  }
  MEMORY_BARRIER();
  _tile_loadconfig(&config);
}

static void engine_end(void) {
  _tile_release();
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

static void engine_pack_scores(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                               engine_element *block) {
  for (int64_t c = 0; c < depth; c += 32)
    for (int64_t half = 0; half < 32; half += 16, block += TILE) {
      __m512i r[16];
      for (int64_t i = 0; i < 16; i++)
        r[i] = two_to_bf16(load_part(x, ld, half + i, rows, c, channels),
                           load_part(x, ld, half + i, rows, c + 16, channels));
      slide_transpose(r);
      for (int64_t i = 0; i < 16; i++)
        _mm512_store_si512(block + i * 32, r[i]);
    }
}

static void engine_pack_sums(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                             engine_element *block) {
  for (int64_t c = 0; c < depth; c += 16)
    for (int64_t i = 0; i < 32; i += 2, block += 32)
      _mm512_store_si512(block, interleave(load_part(x, ld, i, rows, c, channels),
                                           load_part(x, ld, i + 1, rows, c, channels)));
}

/* [32 lanes][depth] */
static void engine_query(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                         engine_element *query) {
  for (int64_t i = 0; i < 32; i++)
    for (int64_t c = 0; c < depth; c += 32)
      _mm512_store_si512(query + i * depth + c, two_to_bf16(load_part(x, ld, i, rows, c, channels),
                                                            load_part(x, ld, i, rows, c + 16, channels)));
}

/* [depth][32 lanes] */
static void engine_query_across(const float *x, int64_t ld, int64_t rows, int64_t channels, int64_t depth,
                                engine_element *query) {
  for (int64_t c = 0; c < depth; c += 16)
    for (int64_t half = 0; half < 32; half += 16) {
      __m512i r[16];
      for (int64_t i = 0; i < 16; i++)
        r[i] = _mm512_castps_si512(load_part(x, ld, half + i, rows, c, channels));
      slide_transpose(r);
      for (int64_t i = 0; i < 16; i++)
        _mm256_store_si256((__m256i *)(query + (c + i) * 32 + half),
                           (__m256i)_mm512_cvtneps_pbh(_mm512_castsi512_ps(r[i])));
    }
}

static void engine_scores(const engine_element *query, int64_t halves, int64_t depth,
                          const engine_element *form, const int32_t *list, int64_t blocks, float *rows,
                          int64_t ld) {
  int64_t stride = ld * (int64_t)sizeof(float);
  MEMORY_BARRIER();
  for (int64_t i = 0; i < blocks; i++) {
    const engine_element *cells = form + list[i] * SLIDE_BLOCK * depth;
    float *to = rows + i * 32;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int64_t c = 0; c < depth; c += 32, cells += 2 * TILE) {
      _tile_loadd(4, query + c, depth * 2);
      _tile_loadd(6, cells, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, cells + TILE, 64);
      _tile_dpbf16ps(1, 4, 7);
      if (halves > 1) {
        _tile_loadd(5, query + 16 * depth + c, depth * 2);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
    _tile_stored(0, to, stride);
    _tile_stored(1, to + 16, stride);
    if (halves > 1) {
      _tile_stored(2, to + 16 * ld, stride);
      _tile_stored(3, to + 16 * ld + 16, stride);
    }
  }
}

/* Rows in parts of ENGINE_NARROW cells, which stay in the first cache while all channels pass. */
static void engine_sums(const float *rows, int64_t halves, int64_t ld, int64_t blocks, engine_element *narrow,
                        const engine_element *form, const int32_t *list, int64_t depth, float *out) {
  const int64_t stride = ENGINE_NARROW * 2;
  memset(out, 0, (size_t)(32 * depth) * sizeof *out);
  for (int64_t i0 = 0; i0 < blocks; i0 += ENGINE_NARROW / 32) {
    int64_t i1 = i0 + ENGINE_NARROW / 32 < blocks ? i0 + ENGINE_NARROW / 32 : blocks;
    for (int64_t lane = 0; lane < 16 * halves; lane++)
      for (int64_t i = i0; i < i1; i++) {
        const float *row = rows + lane * ld + i * 32;
        _mm512_store_si512(narrow + lane * ENGINE_NARROW + (i - i0) * 32,
                           two_to_bf16(_mm512_loadu_ps(row), _mm512_loadu_ps(row + 16)));
      }
    MEMORY_BARRIER();
    for (int64_t c = 0; c < depth; c += 32) {
      float *to = out + c;
      _tile_loadd(0, to, depth * 4);
      _tile_loadd(1, to + 16, depth * 4);
      _tile_loadd(2, to + 16 * depth, depth * 4);
      _tile_loadd(3, to + 16 * depth + 16, depth * 4);
      for (int64_t i = i0; i < i1; i++) {
        const engine_element *cells = form + list[i] * SLIDE_BLOCK * depth + c / 16 * TILE;
        const engine_element *part = narrow + (i - i0) * 32;
        _tile_loadd(4, part, stride);
        _tile_loadd(6, cells, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_loadd(7, cells + TILE, 64);
        _tile_dpbf16ps(1, 4, 7);
        if (halves > 1) {
          _tile_loadd(5, part + 16 * ENGINE_NARROW, stride);
          _tile_dpbf16ps(2, 5, 6);
          _tile_dpbf16ps(3, 5, 7);
        }
      }
      _tile_stored(0, to, depth * 4);
      _tile_stored(1, to + 16, depth * 4);
      _tile_stored(2, to + 16 * depth, depth * 4);
      _tile_stored(3, to + 16 * depth + 16, depth * 4);
    }
  }
}

/* Per block two operands (16 cells each) of [16 lane pairs][16 cells][2]. */
static void engine_across(const float *rows, int64_t halves, int64_t ld, int64_t blocks,
                          engine_element *across) {
  for (int64_t half = 0; half < 2 * blocks; half++)
    for (int64_t pair = 0; pair < 16; pair++, across += 32) {
      const float *row = rows + 2 * pair * ld + half * 16;
      _mm512_store_si512(across, pair < 8 * halves
                                     ? interleave(_mm512_loadu_ps(row), _mm512_loadu_ps(row + ld))
                                     : _mm512_setzero_si512());
    }
}

struct engine_part {
  const engine_element *rows, *query;
};

static void engine_outer(const struct engine_part *parts, int count, int64_t depth, float *block) {
  MEMORY_BARRIER();
  for (int64_t c = 0; c < depth; c += 32, block += 4 * 256) {
    _tile_loadd(0, block, 64);
    _tile_loadd(1, block + 256, 64);
    _tile_loadd(2, block + 512, 64);
    _tile_loadd(3, block + 768, 64);
    for (int n = 0; n < count; n++) {
      _tile_loadd(4, parts[n].query + c * 32, 64);
      _tile_loadd(6, parts[n].rows, 64);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(7, parts[n].rows + TILE, 64);
      _tile_dpbf16ps(1, 4, 7);
      _tile_loadd(5, parts[n].query + c * 32 + TILE, 64);
      _tile_dpbf16ps(2, 5, 6);
      _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, block, 64);
    _tile_stored(1, block + 256, 64);
    _tile_stored(2, block + 512, 64);
    _tile_stored(3, block + 768, 64);
  }
}

static void engine_flush(const float *block, int64_t count, int64_t channels, int64_t depth, float *x,
                         int64_t ld) {
  for (int64_t c = 0; c < channels; c += 16)
    for (int64_t half = 0; half < 2; half++) {
      __m512i r[16];
      for (int64_t i = 0; i < 16; i++)
        r[i] = _mm512_loadu_si512(block + (c * 2 + half * 16 + i) * 16);
      slide_transpose(r);
      for (int64_t i = 0; i < 16 && half * 16 + i < count; i++) {
        float *to = x + (half * 16 + i) * ld + c;
        __mmask16 mask = slide_first(channels - c);
        _mm512_mask_storeu_ps(to, mask,
                              _mm512_add_ps(_mm512_castsi512_ps(r[i]), _mm512_maskz_loadu_ps(mask, to)));
      }
    }
}

#include "slide-backward.h"

void msk_slide_init_amx(struct msk_slide_ops *bf16) {
  *bf16 = (struct msk_slide_ops){
      .name = "amx",
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
