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
MSK_INLINE void msk_finish_steps(struct msk_done d, struct msk_steps steps, int whole) {
  const struct msk_product p = *d.p;
  const __mmask16 masks[2] = {whole ? 0xffff : msk_mask16(d.columns),
                              whole ? 0xffff : msk_mask16(d.columns - 16)};
  const float *gate = NULL, *acc = d.acc;
  int64_t i = d.i, stop = d.i + d.rows, j = d.j, left = 0;
  if (steps.gate) {
    left = p.gate_rows - i % p.gate_rows;
    gate = p.gate + i / p.gate_rows * p.gate_ld + j;
  }
  for (; i < stop; i++, acc += MSK_PANEL) {
#pragma GCC unroll 2
    for (int h = 0; h < 2; h++) {
      __mmask16 mask = masks[h];
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

static __attribute__((noinline)) void msk_finish(struct msk_done d, int place) {
  switch (d.columns == MSK_PANEL ? place : -1) {
  case 0:
    msk_finish_steps(d, msk_common_steps[0], 1);
    return;
  case 1:
    msk_finish_steps(d, msk_common_steps[1], 1);
    return;
  case 2:
    msk_finish_steps(d, msk_common_steps[2], 1);
    return;
  case 3:
    msk_finish_steps(d, msk_common_steps[3], 1);
    return;
  case 4:
    msk_finish_steps(d, msk_common_steps[4], 1);
    return;
  case 5:
    msk_finish_steps(d, msk_common_steps[5], 1);
    return;
  default:
    msk_finish_steps(d, msk_steps_of(d.p), 0);
  }
}

/* acc (+)= A block (lines of height x 64 bytes) times B panel (lines of MSK_PANEL_LINE); `first`: acc starts
 * at 0. Between the lines it may prefetch `ahead`, `ahead_step` bytes for each line, which the next tiles
 * read. */
struct msk_tile {
  const char *a, *b;
  int64_t lines;
  float *acc;
  int first;
  const char *ahead;
  int64_t ahead_step;
};

typedef void (*msk_tile_fn)(struct msk_tile t);

struct msk_tiling {
  enum msk_line line;
  int64_t height;       /* rows of a tile */
  int64_t rows;         /* rows of A packed at a time, a multiple of height */
  int64_t columns;      /* columns of C whose sums wait for the next block of k, a multiple of 32 */
  int64_t columns_deep; /* the same where the packed rows of A outgrow half of the second-level cache, so that
                           they are read from beyond it for each such range of columns */
  int64_t lines;        /* lines of a block of k */
};

MSK_INLINE int64_t msk_round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

/* Scratch: [rows of A][sums of rows x columns, or of one tile if k is one block][a row to gather taps in].
 */
MSK_INLINE int64_t msk_packed_rows(const struct msk_product *p, struct msk_tiling t) {
  return msk_round_up(p->m < t.rows ? p->m : t.rows, t.height);
}

MSK_INLINE int64_t msk_columns(const struct msk_product *p, struct msk_tiling t) {
  return t.rows * msk_lines(t.line, p->k) * 64 > 1 << 20 ? t.columns_deep : t.columns;
}

MSK_INLINE int64_t msk_sums(const struct msk_product *p, struct msk_tiling t) {
  if (msk_lines(t.line, p->k) <= t.lines)
    return t.height * MSK_PANEL;
  int64_t columns = msk_columns(p, t);
  return msk_packed_rows(p, t) * msk_round_up(p->n < columns ? p->n : columns, MSK_PANEL);
}

MSK_INLINE size_t msk_run_scratch(const struct msk_product *p, struct msk_tiling t) {
  int64_t row = p->taps > 1 ? msk_round_up(p->k * 4, 64) : 0;
  return (size_t)(msk_packed_rows(p, t) * msk_lines(t.line, p->k) * 64 + msk_sums(p, t) * 4 + row);
}

MSK_INLINE void msk_run_tiles(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                              void *scratch, struct msk_tiling t, msk_tile_fn tile) {
  int64_t lines = msk_lines(t.line, p->k), parts = (lines + t.lines - 1) / t.lines;
  int64_t deep = parts > 1 ? (lines + parts - 1) / parts : t.lines;
  int64_t block_bytes = lines * t.height * 64, panel_bytes = lines * MSK_PANEL_LINE;
  char *a = scratch;
  float *sums = (float *)(a + msk_packed_rows(p, t) * lines * 64);
  char *row = (char *)(sums + msk_sums(p, t));
  int64_t columns = msk_columns(p, t);
  int place = msk_steps_place(p);
  for (int64_t i0 = m0; i0 < m1; i0 += t.rows) {
    int64_t rows = m1 - i0 < t.rows ? m1 - i0 : t.rows, blocks = (rows + t.height - 1) / t.height;
    if (p->a_type == MSK_F32)
      msk_pack_a(p, i0, rows, t.height, a, row, t.line, MSK_F32);
    else
      msk_pack_a(p, i0, rows, t.height, a, row, t.line, MSK_BF16);
    for (int64_t j0 = n0; j0 < n1; j0 += columns) {
      int64_t j1 = n1 - j0 < columns ? n1 : j0 + columns, l = 0;
      do {
        int64_t here = lines - l < deep ? lines - l : deep;
        int last = l + here == lines;
        for (int64_t j = j0; j < j1; j += MSK_PANEL) {
          const char *b = (const char *)p->b + j / MSK_PANEL * panel_bytes + l * MSK_PANEL_LINE;
          const char *ahead = b + panel_bytes;
          int64_t step = MSK_PANEL_LINE / blocks / 64 * 64;
          if (j + MSK_PANEL >= j1 && !last)
            ahead = (const char *)p->b + j0 / MSK_PANEL * panel_bytes + (l + here) * MSK_PANEL_LINE;
          else if (j + MSK_PANEL >= n1)
            step = 0;
          for (int64_t r = 0; r < rows; r += t.height) {
            float *acc = parts > 1 ? sums + ((j - j0) * blocks + r / t.height * MSK_PANEL) * t.height : sums;
            tile((struct msk_tile){a + r / t.height * block_bytes + l * t.height * 64, b, here, acc, l == 0,
                                   ahead, step});
            ahead += here * step;
            if (last)
              msk_finish((struct msk_done){p, acc, i0 + r, j, rows - r < t.height ? rows - r : t.height,
                                           j1 - j < MSK_PANEL ? j1 - j : MSK_PANEL},
                         place);
          }
        }
        l += here;
      } while (l < lines);
    }
  }
}
