/* The loops around a register or AMX tile, and the epilogue: what the AVX-512 and AMX kernels of products
 * share.
 *
 * A tile is `height` rows by 32 columns; its sums lie in memory as [height][32] float32. Blocks of k change
 * no bit: the sums of a tile leave the registers as float32 and come back as they were. */
#pragma once
#include "cpu/product-avx512-pack.h"

/* 2^t for |t| <= 126: 2^n times a polynomial on [-1/2, 1/2], minimax of the relative error (3e-9; 8e-8 in
 * float32). */
MSK_INLINE __m512 msk_exp2_16(__m512 t) {
  __m512 n = _mm512_roundscale_ps(t, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC), f = _mm512_sub_ps(t, n);
  __m512 y = _mm512_set1_ps(0x1.470b4ap-13f);
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.5f7276p-10f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.3b270ep-7f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.c6ae72p-5f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.ebfbe2p-3f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(0x1.62e432p-1f));
  y = _mm512_fmadd_ps(y, f, _mm512_set1_ps(1.0f));
  return _mm512_scalef_ps(y, n);
}

/* x / (1 + 2^t): x times the logistic function of -t ln 2. The limits keep the reciprocal normal; NaN passes.
 */
MSK_INLINE __m512 msk_logistic_times(__m512 x, __m512 t) {
  t = _mm512_max_ps(_mm512_set1_ps(-120), _mm512_min_ps(_mm512_set1_ps(120), t));
  __m512 d = _mm512_add_ps(_mm512_set1_ps(1), msk_exp2_16(t)), r = _mm512_rcp14_ps(d);
  r = _mm512_fmadd_ps(r, _mm512_fnmadd_ps(d, r, _mm512_set1_ps(1)), r);
  return _mm512_mul_ps(x, r);
}

/* tanh (u) = 1 - 2 / (1 + exp (2 u)), so gelu (x) = x / (1 + exp (-2 sqrt (2 / pi) (x + 0.044715 x^3))). */
MSK_INLINE __m512 msk_gelu_16(__m512 x) {
  const float scale = -2.0f * 0.7978845608f * 1.4426950409f;
  __m512 x2 = _mm512_mul_ps(x, x);
  __m512 slope = _mm512_fmadd_ps(x2, _mm512_set1_ps(0.044715f * scale), _mm512_set1_ps(scale));
  return msk_logistic_times(x, _mm512_mul_ps(x, slope));
}

MSK_INLINE __m512 msk_silu_16(__m512 x) {
  return msk_logistic_times(x, _mm512_mul_ps(x, _mm512_set1_ps(-1.4426950409f)));
}

MSK_INLINE void msk_store_16(void *x, enum msk_type type, int64_t i, __mmask16 mask, __m512 v) {
  if (type == MSK_F32)
    _mm512_mask_storeu_ps((float *)x + i, mask, v);
  else
    _mm256_mask_storeu_epi16((uint16_t *)x + i, mask, msk_f32_to_bf16_16(v));
}

/* An epilogue under way: sums [rows][32] of C at row i, column j. */
struct msk_finish {
  const struct msk_product *p;
  const float *acc;
  int64_t i, j, rows, done;
  __mmask16 mask[2];
};

MSK_INLINE struct msk_finish msk_finish_begin(const struct msk_product *p, const float *acc, int64_t i, int64_t j,
                                              int64_t rows, int64_t columns) {
  return (struct msk_finish){p, acc, i, j, rows, 0, {msk_mask16(columns), msk_mask16(columns - 16)}};
}

/* The next `count` rows, or as many as are left. */
MSK_INLINE void msk_finish_rows(struct msk_finish *f, int64_t count) {
  const struct msk_product *p = f->p;
  int64_t end = f->rows - f->done < count ? f->rows : f->done + count, left = 0;
  const float *gate = NULL;
  if (p->gate) {
    int64_t i = f->i + f->done;
    left = p->gate_rows - i % p->gate_rows;
    gate = p->gate + i / p->gate_rows * p->gate_ld + f->j;
  }
  for (; f->done < end; f->done++) {
    int64_t i = f->i + f->done;
    for (int h = 0; h < 2; h++) {
      int64_t j = f->j + 16 * h;
      __mmask16 mask = f->mask[h];
      __m512 v = _mm512_load_ps(f->acc + f->done * MSK_PANEL + 16 * h);
      if (p->bias)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, p->bias + j));
      if (p->pre)
        msk_store_16(p->pre, p->pre_type, i * p->pre_ld + j, mask, v);
      if (p->act == MSK_ACT_GELU_TANH)
        v = msk_gelu_16(v);
      else if (p->act == MSK_ACT_SILU)
        v = msk_silu_16(v);
      if (gate)
        v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(mask, gate + 16 * h));
      if (p->residual)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, p->residual + i * p->residual_ld + j));
      if (p->accumulate)
        v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, (const float *)p->c + i * p->c_ld + j));
      msk_store_16(p->c, p->c_type, i * p->c_ld + j, mask, v);
    }
    if (gate && --left == 0) {
      gate += p->gate_ld;
      left = p->gate_rows;
    }
  }
}

/* acc (+)= A block (lines of height x 64 bytes) times B panel (lines of MSK_PANEL_LINE); `first`: acc starts at 0.
 * Between the lines it may prefetch `ahead`, `ahead_step` bytes for each line, which the next tiles read, and continue
 * the epilogue of the tile before (`finish`), which leaves most of a processor that has AMX idle otherwise. */
struct msk_tile {
  const char *a, *b;
  int64_t lines;
  float *acc;
  int first;
  const char *ahead;
  int64_t ahead_step;
  struct msk_finish *finish;
};

typedef void (*msk_tile_fn)(struct msk_tile t);

struct msk_tiling {
  enum msk_line line;
  int64_t height;  /* rows of a tile */
  int64_t rows;    /* rows of A packed at a time, a multiple of height */
  int64_t columns; /* columns of C whose sums wait for the next block of k, a multiple of 32 */
  int64_t lines;   /* lines of a block of k */
};

MSK_INLINE int64_t msk_round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

/* Scratch: [rows of A][sums of rows x columns, or of two tiles if k is one block][a row to gather taps in]. */
MSK_INLINE int64_t msk_packed_rows(const struct msk_product *p, struct msk_tiling t) {
  return msk_round_up(p->m < t.rows ? p->m : t.rows, t.height);
}

MSK_INLINE int64_t msk_sums(const struct msk_product *p, struct msk_tiling t) {
  if (msk_lines(t.line, p->k) <= t.lines)
    return 2 * t.height * MSK_PANEL;
  return msk_packed_rows(p, t) * msk_round_up(p->n < t.columns ? p->n : t.columns, MSK_PANEL);
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
  struct msk_finish finish = {.p = p};
  int64_t turn = 0; /* between the sums of two tiles */
  for (int64_t i0 = m0; i0 < m1; i0 += t.rows) {
    int64_t rows = m1 - i0 < t.rows ? m1 - i0 : t.rows, blocks = (rows + t.height - 1) / t.height;
    if (p->a_type == MSK_F32)
      msk_pack_a(p, i0, rows, t.height, a, row, t.line, MSK_F32);
    else
      msk_pack_a(p, i0, rows, t.height, a, row, t.line, MSK_BF16);
    for (int64_t j0 = n0; j0 < n1; j0 += t.columns) {
      int64_t j1 = n1 - j0 < t.columns ? n1 : j0 + t.columns, l = 0;
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
            float *acc = sums + (turn ^= t.height * MSK_PANEL);
            if (parts > 1)
              acc = sums + ((j - j0) * blocks + r / t.height * MSK_PANEL) * t.height;
            tile((struct msk_tile){a + r / t.height * block_bytes + l * t.height * 64, b, here, acc, l == 0, ahead, step,
                                   &finish});
            ahead += here * step;
            msk_finish_rows(&finish, t.height);
            if (last)
              finish = msk_finish_begin(p, acc, i0 + r, j, rows - r < t.height ? rows - r : t.height,
                                        j1 - j < MSK_PANEL ? j1 - j : MSK_PANEL);
          }
        }
        l += here;
      } while (l < lines);
    }
  }
  msk_finish_rows(&finish, t.height);
}
