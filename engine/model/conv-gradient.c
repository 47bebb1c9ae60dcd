#include "model/conv.h"

#include <stdlib.h>
#include <string.h>

/* Weight gradients: rows of a chunk, the most chunks, and the bytes of packed taps that stay in a
 * second-level cache. */
#define CHUNK_ROWS 704
#define MOST_CHUNKS 16
#define TAP_BYTES ((size_t)1024 << 10)
/* Rows of one partial column sum. */
#define SUM_ROWS 256

void ms_conv_work_release(struct ms_conv_work *work) {
  free(work->sums);
  memset(work, 0, sizeof *work);
}

int ms_conv_work_sums(struct ms_conv_work *work, size_t count, struct ms_error *error) {
  if (count <= work->sums_count)
    return 0;
  free(work->sums);
  work->sums_count = 0;
  work->sums = aligned_alloc(64, (count * sizeof(float) + 63) / 64 * 64);
  if (!work->sums)
    return ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for gradients",
                        (double)count * 4 / 1048576);
  work->sums_count = count;
  return 0;
}

/* Weight gradients go by chunks of rows, each packed and multiplied by one thread within its second-level
 * cache, into a sum of its own; the sums are added in order. The chunks depend on the number of rows alone.
 */
struct gradient_run {
  const struct ms_conv *conv;
  const struct msk_product_ops *ops;
  int64_t rows, chunk_rows, chunks;
  int taps, group; /* taps packed at once */
  const int64_t *tap_rows;
  const unsigned char *x, *dy;
  enum msk_type x_type, dy_type;
  size_t packed_bytes;
  float *sums; /* [chunks, out, taps, in] */
  float *grad; /* [out, in, taps] */
};

/* Few outputs: x is packed once, and dy is read at the rows shifted back by each tap. */
static void gradient_chunk_shifted(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct gradient_run *run = data;
  int64_t in = run->conv->in, out = run->conv->out;
  float *sums = run->sums + begin / run->chunk_rows * out * run->taps * in;
  struct msk_pack pack = {
      .n = in,
      .k = end - begin,
      .src = run->x + begin * in * (int64_t)msk_type_size(run->x_type),
      .type = run->x_type,
      .ld = in,
      .transposed = 1,
  };
  run->ops->pack_b(&pack, 0, in, scratch);
  for (int tap = 0; tap < run->taps; tap++) {
    struct msk_product product = {
        .m = out,
        .n = in,
        .k = end - begin,
        .a = run->dy + (begin - run->tap_rows[tap]) * out * (int64_t)msk_type_size(run->dy_type),
        .a_type = run->dy_type,
        .a_ld = out,
        .a_transposed = 1,
        .b = scratch,
        .c = sums + tap * in,
        .c_type = MSK_F32,
        .c_ld = run->taps * in,
    };
    run->ops->run(&product, 0, out, 0, in, (unsigned char *)scratch + run->packed_bytes);
  }
}

static void gradient_chunk(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct gradient_run *run = data;
  int64_t in = run->conv->in, out = run->conv->out, rows = end - begin;
  float *sums = run->sums + begin / run->chunk_rows * out * run->taps * in;
  for (int first = 0; first < run->taps; first += run->group) {
    int n = run->taps - first < run->group ? run->taps - first : run->group;
    struct msk_pack pack = {
        .n = n * in,
        .k = rows,
        .src = run->x + begin * in * (int64_t)msk_type_size(run->x_type),
        .type = run->x_type,
        .ld = in,
        .transposed = 1,
        .taps = n,
        .tap_rows = run->tap_rows + first,
    };
    struct msk_product product = {
        .m = out,
        .n = n * in,
        .k = rows,
        .a = run->dy + begin * out * (int64_t)msk_type_size(run->dy_type),
        .a_type = run->dy_type,
        .a_ld = out,
        .a_transposed = 1,
        .b = scratch,
        .c = sums + first * in,
        .c_type = MSK_F32,
        .c_ld = run->taps * in,
    };
    if (n == 1) { /* a single tap is a shift of the source */
      pack.src =
          (const unsigned char *)pack.src + run->tap_rows[first] * in * (int64_t)msk_type_size(run->x_type);
      pack.taps = 0;
    }
    run->ops->pack_b(&pack, 0, pack.n, scratch);
    run->ops->run(&product, 0, out, 0, product.n, (unsigned char *)scratch + run->packed_bytes);
  }
}

static void add_chunks(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct gradient_run *run = data;
  int64_t in = run->conv->in, row = run->taps * in;
  float *sum = scratch;
  for (int64_t o = begin; o < end; o++) {
    float *grad = run->grad + o * row;
    memcpy(sum, run->sums + o * row, (size_t)row * sizeof(float));
    for (int64_t chunk = 1; chunk < run->chunks; chunk++) {
      const float *from = run->sums + (chunk * run->conv->out + o) * row;
      for (int64_t i = 0; i < row; i++)
        sum[i] += from[i];
    }
    for (int tap = 0; tap < run->taps; tap++)
      for (int64_t i = 0; i < in; i++)
        grad[i * run->taps + tap] += sum[tap * in + i];
  }
}

int ms_conv_backward_w(const struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                       const struct ms_grid *grid, const void *x, enum msk_type x_type, const void *dy,
                       enum msk_type dy_type, float *grad, struct ms_conv_work *work,
                       struct ms_error *error) {
  int64_t tap_rows[MS_CONV_MAX_TAPS], rows = ms_grid_rows(grid);
  struct gradient_run run = {
      .conv = conv,
      .ops = &compute->product[precision],
      .rows = rows,
      .taps = ms_conv_taps(conv, grid, tap_rows),
      .tap_rows = tap_rows,
      .x = x,
      .dy = dy,
      .x_type = x_type,
      .dy_type = dy_type,
      .grad = grad,
  };
  struct msk_product product = {
      .m = conv->out, .a = dy, .a_type = dy_type, .a_ld = conv->out, .a_transposed = 1, .c_type = MSK_F32};
  size_t tap_bytes, scratch, row_bytes = (size_t)(run.taps * conv->in) * sizeof(float);
  int result, shifted = 2 * conv->out <= conv->in && run.taps > 1 && conv->kt == 1 && conv->stride == 1;
  run.chunks = (rows + CHUNK_ROWS - 1) / CHUNK_ROWS;
  if (run.chunks > MOST_CHUNKS)
    run.chunks = MOST_CHUNKS;
  run.chunk_rows = ((rows + run.chunks - 1) / run.chunks + 31) / 32 * 32;
  run.chunks = (rows + run.chunk_rows - 1) / run.chunk_rows;
  tap_bytes = run.ops->pack_b_bytes(conv->in, run.chunk_rows);
  run.group = tap_bytes > TAP_BYTES ? 1 : (int)(TAP_BYTES / tap_bytes);
  if (run.group > run.taps)
    run.group = run.taps;
  if (shifted)
    run.group = 1;
  run.packed_bytes = (run.ops->pack_b_bytes(run.group * conv->in, run.chunk_rows) + 63) / 64 * 64;
  product.n = run.group * conv->in;
  product.k = run.chunk_rows;
  scratch = run.packed_bytes + run.ops->scratch_bytes(&product);
  if ((result = ms_conv_work_sums(work, (size_t)(run.chunks * conv->out * run.taps * conv->in), error)) < 0)
    return result;
  run.sums = work->sums;
  ms_pool_reserve(compute->pool, scratch > row_bytes ? scratch : row_bytes);
  ms_compute_ranges(compute, rows, run.chunk_rows, shifted ? gradient_chunk_shifted : gradient_chunk, &run);
  ms_compute_ranges(compute, conv->out, 8, add_chunks, &run);
  return 0;
}

struct column_run {
  struct ms_compute *compute;
  const float *x;
  int64_t c;
  uint16_t *rounded;
  float *sums;
};

static void column_block(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct column_run *run = data;
  int64_t c = run->c;
  float *sums = run->sums ? run->sums + begin / SUM_ROWS * c : NULL;
  if (run->rounded)
    run->compute->adamw.f32_to_bf16(run->x + begin * c, run->rounded + begin * c, (end - begin) * c);
  if (!sums)
    return;
  memset(sums, 0, (size_t)c * sizeof(float));
  run->compute->norm.column_sum(run->x + begin * c, c, c, end - begin, sums);
}

int ms_conv_column_sums(struct ms_compute *compute, const float *x, int64_t c, int64_t rows,
                        uint16_t *rounded, float *out, struct ms_conv_work *work, struct ms_error *error) {
  struct column_run run = {compute, x, c, rounded, NULL};
  int64_t blocks = (rows + SUM_ROWS - 1) / SUM_ROWS;
  if (out) {
    int result = ms_conv_work_sums(work, (size_t)(blocks * c), error);
    if (result < 0)
      return result;
    run.sums = work->sums;
  }
  ms_compute_ranges(compute, rows, SUM_ROWS, column_block, &run);
  for (int64_t block = 0; out && block < blocks; block++)
    for (int64_t i = 0; i < c; i++)
      out[i] += run.sums[block * c + i];
  return 0;
}
