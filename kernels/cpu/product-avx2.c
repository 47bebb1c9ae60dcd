/* float32 products on AVX2: a tile of C is 6 x 16, twelve accumulators fed by broadcasts of A. The bf16 table
 * multiplies the same way, after its operands were rounded to bfloat16. A is packed in blocks of [k][6], B in
 * panels of [k][16]; what does not exist is zero. */
#include "cpu/product.h"
#include "cpu/vec-avx2.h"
#include "cpu/vec-math.h"

#define HEIGHT 6
#define WIDTH 16
#define ROWS (16 * HEIGHT) /* of A packed at a time */
#define DEPTH 256          /* of a block of k */

static int64_t smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t round_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

static inline float round_bf16(float x) {
  return msk_bf16_to_f32(msk_f32_to_bf16(x));
}

/* ---- B ---- */

static size_t pack_b_bytes(int64_t n, int64_t k) {
  return (size_t)(round_up(n, WIDTH) * k) * sizeof(float);
}

static void pack_b(const struct msk_pack *pack, int64_t n0, int64_t n1, float *dst, int rounded) {
  for (int64_t j0 = n0; j0 < n1; j0 += WIDTH) {
    int64_t columns = smaller(WIDTH, pack->n - j0);
    float *to = dst + j0 * pack->k;
    int64_t at[WIDTH], step = pack->transposed ? pack->ld : 1;
    for (int64_t j = 0; j < columns; j++)
      at[j] = msk_product_b_at(pack, j0 + j, 0);
    for (int64_t l = 0; l < pack->k; l++, to += WIDTH) {
      for (int64_t j = 0; j < columns; j++)
        to[j] = msk_product_load(pack->src, pack->type, at[j] + l * step);
      for (int64_t j = columns; j < WIDTH; j++)
        to[j] = 0;
      if (rounded)
        for (int64_t j = 0; j < WIDTH; j++)
          to[j] = round_bf16(to[j]);
    }
  }
}

static void pack_b_f32(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  pack_b(pack, n0, n1, dst, 0);
}

static void pack_b_bf16(const struct msk_pack *pack, int64_t n0, int64_t n1, void *dst) {
  pack_b(pack, n0, n1, dst, 1);
}

/* ---- A ---- */

/* `count` neighbours along k from element `at` of A, into one row of a block. */
static inline void pack_run(const struct msk_product *p, int64_t at, int64_t count, float *to) {
  if (p->a_type == MSK_F32)
    for (int64_t l = 0; l < count; l++)
      to[l * HEIGHT] = ((const float *)p->a)[at + l];
  else
    for (int64_t l = 0; l < count; l++)
      to[l * HEIGHT] = msk_bf16_to_f32(((const uint16_t *)p->a)[at + l]);
}

/* Row l of a transposed A is contiguous along the rows of the block. */
static void pack_transposed(const struct msk_product *p, int64_t i0, int64_t rows, float *dst) {
  for (int64_t l = 0; l < p->k; l++)
    for (int64_t r0 = 0; r0 < rows; r0 += HEIGHT) {
      float *to = dst + r0 * p->k + l * HEIGHT;
      int64_t at = l * p->a_ld + i0 + r0, here = smaller(HEIGHT, rows - r0);
      for (int64_t r = 0; r < here; r++)
        to[r] = msk_product_load(p->a, p->a_type, at + r);
    }
}

static void pack_a(const struct msk_product *p, int64_t i0, int64_t rows, float *dst, int rounded) {
  int64_t k_tap = p->taps > 1 ? p->k / p->taps : p->k, full = round_up(rows, HEIGHT);
  for (int64_t r = p->a_transposed ? rows : 0; r < full; r++) {
    float *to = dst + r / HEIGHT * HEIGHT * p->k + r % HEIGHT;
    if (r >= rows)
      for (int64_t l = 0; l < p->k; l++)
        to[l * HEIGHT] = 0;
    else
      for (int64_t l = 0; l < p->k; l += k_tap)
        pack_run(p, msk_product_a_at(p, i0 + r, l), k_tap, to + l * HEIGHT);
  }
  if (p->a_transposed)
    pack_transposed(p, i0, rows, dst);
  if (rounded && p->a_type == MSK_F32)
    for (int64_t x = 0; x < full * p->k; x++)
      dst[x] = round_bf16(dst[x]);
}

/* ---- the tile ---- */

static inline void tile_6x16(const float *a, const float *b, int64_t depth, float *acc, int first) {
  __m256 c[HEIGHT][2];
#pragma GCC unroll 6
  for (int r = 0; r < HEIGHT; r++) {
    c[r][0] = first ? _mm256_setzero_ps() : _mm256_load_ps(acc + r * WIDTH);
    c[r][1] = first ? _mm256_setzero_ps() : _mm256_load_ps(acc + r * WIDTH + 8);
  }
  for (int64_t l = 0; l < depth; l++, a += HEIGHT, b += WIDTH) {
    __m256 b0 = _mm256_load_ps(b), b1 = _mm256_load_ps(b + 8);
#pragma GCC unroll 6
    for (int r = 0; r < HEIGHT; r++) {
      __m256 v = _mm256_broadcast_ss(a + r);
      c[r][0] = _mm256_fmadd_ps(v, b0, c[r][0]);
      c[r][1] = _mm256_fmadd_ps(v, b1, c[r][1]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < HEIGHT; r++) {
    _mm256_store_ps(acc + r * WIDTH, c[r][0]);
    _mm256_store_ps(acc + r * WIDTH + 8, c[r][1]);
  }
}

/* ---- epilogue ---- */

VEC_INLINE vec_f32 activate(enum msk_act act, vec_f32 x) {
  vec_f32 slope; /* not wanted here */
  if (act == MSK_ACT_NONE)
    return x;
  if (act == MSK_ACT_SILU)
    return x * vec_sigmoid(vec_set(0) - x, &slope);
  /* tanh (u) = 1 - 2 / (1 + exp (2 u)) */
  vec_f32 minus_2u = x * vec_fma(x * x, vec_set(-2 * 0.7978845608f * 0.044715f), vec_set(-2 * 0.7978845608f));
  return x * vec_sigmoid(minus_2u, &slope);
}

/* n <= 8 sums of row i from column j. */
VEC_INLINE void finish_vector(const struct msk_product *p, int64_t i, int64_t j, const float *acc, int n) {
  vec_f32 v = vec_load(acc);
  if (p->bias)
    v += vec_load_n(p->bias + j, n);
  if (p->pre)
    vec_store_as_n(p->pre, p->pre_type, i * p->pre_ld + j, n, v);
  v = activate(p->act, v);
  if (p->gate)
    v *= vec_load_n(p->gate + i / p->gate_rows * p->gate_ld + j, n);
  if (p->residual)
    v += vec_load_n(p->residual + i * p->residual_ld + j, n);
  if (p->accumulate)
    v += vec_load_n((const float *)p->c + i * p->c_ld + j, n);
  vec_store_as_n(p->c, p->c_type, i * p->c_ld + j, n, v);
}

static void finish_tile(const struct msk_product *p, int64_t i0, int64_t j0, int64_t rows, int64_t columns,
                        const float *acc) {
  for (int64_t i = i0; i < i0 + rows; i++, acc += WIDTH) {
    if (columns == WIDTH) {
      finish_vector(p, i, j0, acc, VEC);
      finish_vector(p, i, j0 + VEC, acc + VEC, VEC);
    } else {
      finish_vector(p, i, j0, acc, (int)smaller(columns, VEC));
      if (columns > VEC)
        finish_vector(p, i, j0 + VEC, acc + VEC, (int)(columns - VEC));
    }
  }
}

/* ---- loops ---- */

/* Scratch: [rows of A][sums of those rows and one panel]. */
static size_t scratch_bytes(const struct msk_product *p) {
  return (size_t)(ROWS * p->k + ROWS * WIDTH) * sizeof(float);
}

static void run(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1, float *scratch,
                int rounded) {
  float *sums = scratch, *a = scratch + ROWS * WIDTH;
  for (int64_t i0 = m0; i0 < m1; i0 += ROWS) {
    int64_t rows = smaller(ROWS, m1 - i0);
    pack_a(p, i0, rows, a, rounded);
    for (int64_t j = n0; j < n1; j += WIDTH) {
      const float *b = (const float *)p->b + j * p->k;
      int64_t l = 0;
      do {
        int64_t depth = smaller(DEPTH, p->k - l);
        for (int64_t r = 0; r < rows; r += HEIGHT)
          tile_6x16(a + r * p->k + l * HEIGHT, b + l * WIDTH, depth, sums + r * WIDTH, l == 0);
        l += depth;
      } while (l < p->k);
      for (int64_t r = 0; r < rows; r += HEIGHT)
        finish_tile(p, i0 + r, j, smaller(HEIGHT, rows - r), smaller(WIDTH, n1 - j), sums + r * WIDTH);
    }
  }
}

static void run_f32(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                    void *scratch) {
  run(p, m0, m1, n0, n1, scratch, 0);
}

static void run_bf16(const struct msk_product *p, int64_t m0, int64_t m1, int64_t n0, int64_t n1,
                     void *scratch) {
  run(p, m0, m1, n0, n1, scratch, 1);
}

void msk_product_init_avx2(struct msk_product_ops *f32, struct msk_product_ops *bf16) {
  *f32 = (struct msk_product_ops){
      .name = "avx2",
      .precision = MSK_PRECISION_F32,
      .m_step = HEIGHT,
      .n_step = WIDTH,
      .pack_b_bytes = pack_b_bytes,
      .pack_b = pack_b_f32,
      .scratch_bytes = scratch_bytes,
      .run = run_f32,
  };
  *bf16 = *f32;
  bf16->precision = MSK_PRECISION_BF16;
  bf16->pack_b = pack_b_bf16;
  bf16->run = run_bf16;
}
