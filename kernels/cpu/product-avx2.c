/* float32 products on AVX2: a tile of C is 6 x 16, twelve accumulators fed by broadcasts of A. The bf16 table
 * multiplies the same way, after its operands were rounded to bfloat16. Packing and epilogue are loops that
 * the compiler vectorises. A is packed in blocks of [k][6], B in panels of [k][16]; what does not exist is
 * zero. */
#include <immintrin.h>

#include "cpu/product.h"

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

/* `count` elements of k from element `at` of A, `step` apart, into row r of a block from k-row l. */
static inline void pack_run(const struct msk_product *p, int64_t at, int64_t step, int64_t count, float *to) {
  if (p->a_type == MSK_F32)
    for (int64_t l = 0; l < count; l++)
      to[l * HEIGHT] = ((const float *)p->a)[at + l * step];
  else
    for (int64_t l = 0; l < count; l++)
      to[l * HEIGHT] = msk_bf16_to_f32(((const uint16_t *)p->a)[at + l * step]);
}

static void pack_a(const struct msk_product *p, int64_t i0, int64_t rows, float *dst, int rounded) {
  int64_t k_tap = p->taps > 1 ? p->k / p->taps : p->k;
  for (int64_t r = 0; r < round_up(rows, HEIGHT); r++) {
    float *to = dst + r / HEIGHT * HEIGHT * p->k + r % HEIGHT;
    if (r >= rows)
      for (int64_t l = 0; l < p->k; l++)
        to[l * HEIGHT] = 0;
    else
      for (int64_t l = 0; l < p->k; l += k_tap)
        pack_run(p, msk_product_a_at(p, i0 + r, l), p->a_transposed ? p->a_ld : 1, k_tap, to + l * HEIGHT);
  }
  if (rounded && p->a_type == MSK_F32)
    for (int64_t x = 0; x < round_up(rows, HEIGHT) * p->k; x++)
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

/* 2^t for |t| <= 120: adding 1.5 * 2^23 rounds t to a whole number n in the low bits, which then goes to the
 * exponent; the polynomial is minimax on [-1/2, 1/2]. */
static inline float exp2_near(float t) {
  union {
    float f;
    int32_t i;
  } n = {.f = t + 12582912.0f}, scale;
  float f = t - (n.f - 12582912.0f), y = 0x1.470b4ap-13f;
  y = y * f + 0x1.5f7276p-10f;
  y = y * f + 0x1.3b270ep-7f;
  y = y * f + 0x1.c6ae72p-5f;
  y = y * f + 0x1.ebfbe2p-3f;
  y = y * f + 0x1.62e432p-1f;
  y = y * f + 1.0f;
  scale.i = (n.i - 0x4b400000 + 127) << 23;
  return y * scale.f;
}

/* x / (1 + 2^t); NaN passes through x. */
static inline float logistic_times(float x, float t) {
  t = t < 120.0f ? t : 120.0f;
  t = t > -120.0f ? t : -120.0f;
  return x / (1.0f + exp2_near(t));
}

static inline float activate(enum msk_act act, float x) {
  const float gelu = -2.0f * 0.7978845608f * 1.4426950409f;
  if (act == MSK_ACT_GELU_TANH)
    return logistic_times(x, x * (gelu + gelu * 0.044715f * x * x));
  return logistic_times(x, -1.4426950409f * x);
}

static inline void store_row(void *x, enum msk_type type, int64_t at, const float *r, int64_t columns) {
  for (int64_t j = 0; j < columns; j++)
    if (type == MSK_F32)
      ((float *)x)[at + j] = r[j];
    else
      ((uint16_t *)x)[at + j] = msk_f32_to_bf16(r[j]);
}

static inline void finish_row(const struct msk_product *p, int64_t i, int64_t j0, int64_t columns, float *r) {
  if (p->bias)
    for (int64_t j = 0; j < columns; j++)
      r[j] += p->bias[j0 + j];
  if (p->pre)
    store_row(p->pre, p->pre_type, i * p->pre_ld + j0, r, columns);
  if (p->act == MSK_ACT_GELU_TANH)
    for (int64_t j = 0; j < WIDTH; j++)
      r[j] = activate(MSK_ACT_GELU_TANH, r[j]);
  else if (p->act == MSK_ACT_SILU)
    for (int64_t j = 0; j < WIDTH; j++)
      r[j] = activate(MSK_ACT_SILU, r[j]);
  if (p->gate)
    for (int64_t j = 0; j < columns; j++)
      r[j] *= p->gate[i / p->gate_rows * p->gate_ld + j0 + j];
  if (p->residual)
    for (int64_t j = 0; j < columns; j++)
      r[j] += p->residual[i * p->residual_ld + j0 + j];
  if (p->accumulate)
    for (int64_t j = 0; j < columns; j++)
      r[j] += ((const float *)p->c)[i * p->c_ld + j0 + j];
  store_row(p->c, p->c_type, i * p->c_ld + j0, r, columns);
}

static void finish_tile(const struct msk_product *p, int64_t i0, int64_t j0, int64_t rows, int64_t columns,
                        float *acc) {
  for (int64_t r = 0; r < rows; r++)
    if (columns == WIDTH) /* a length that the compiler knows */
      finish_row(p, i0 + r, j0, WIDTH, acc + r * WIDTH);
    else
      finish_row(p, i0 + r, j0, columns, acc + r * WIDTH);
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
