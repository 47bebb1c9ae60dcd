/* Low-rank adapters in the matrices that the kernels read: W + s B A takes the place of W. It is made in
 * float32, in pieces that stay in a core's cache, where a task packs W, so that no matrix is ever held
 * merged. Both directions are made of the same sums and agree bit for bit. */
#include <string.h>

#include "model/dit-private.h"

static size_t rounded(size_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/* Packed: A transposed [k,r], A [r,k], B transposed [r,n]. */
static size_t merge_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix) {
  return rounded(ms_dit_pack_bytes(dit, MSK_PRECISION_F32, matrix->k, dit->config.lora_rank));
}

static size_t down_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix,
                         enum msk_precision precision) {
  return rounded(ms_dit_pack_bytes(dit, precision, dit->config.lora_rank, matrix->k));
}

static size_t up_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix,
                       enum msk_precision precision) {
  return rounded(ms_dit_pack_bytes(dit, precision, dit->config.lora_rank, matrix->n / matrix->parts));
}

size_t ms_dit_adapter_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix,
                            enum msk_precision precision, int training) {
  size_t bytes;
  if (!matrix->adapters)
    return 0;
  bytes = merge_bytes(dit, matrix);
  if (training)
    bytes += down_bytes(dit, matrix, precision) + up_bytes(dit, matrix, precision);
  return (size_t)matrix->parts * bytes;
}

int ms_dit_bind_adapters(const struct ms_dit *dit, struct dit_matrix *matrix, const char *values,
                         int64_t begin, int backward, unsigned char *packed, struct dit_pack *list) {
  enum msk_type type = dit->params.type;
  int64_t rank = dit->config.lora_rank, n = matrix->n / matrix->parts;
  int count = 0;
  for (int i = 0; i < matrix->parts; i++) {
    const struct ms_param *param = &dit->params.list[matrix->adapters + 2 * i];
    struct dit_adapter *adapter = &matrix->adapter[i];
    struct msk_pack a = {.src = values + (size_t)(param[0].offset - begin) * msk_type_size(type),
                         .type = type,
                         .ld = matrix->k};
    struct msk_pack b = {
        .src = values + (size_t)(param[1].offset - begin) * msk_type_size(type), .type = type, .ld = rank};
    adapter->b = b.src;
    adapter->merge = packed;
    packed += merge_bytes(dit, matrix);
    a.n = matrix->k;
    a.k = rank;
    a.transposed = 1;
    list[count++] = (struct dit_pack){.precision = MSK_PRECISION_F32, .pack = a, .dst = adapter->merge};
    if (!dit->training)
      continue;
    adapter->down = packed;
    packed += down_bytes(dit, matrix, matrix->precision);
    adapter->up = packed;
    packed += up_bytes(dit, matrix, matrix->precision);
    if (!backward)
      continue;
    a.n = rank;
    a.k = matrix->k;
    a.transposed = 0;
    list[count++] = (struct dit_pack){.precision = matrix->precision, .pack = a, .dst = adapter->down};
    b.n = rank;
    b.k = n;
    b.transposed = 1;
    list[count++] = (struct dit_pack){.precision = matrix->precision, .pack = b, .dst = adapter->up};
  }
  return count;
}

static void widen(const void *from, enum msk_type type, float *to, int64_t count) {
  if (type == MSK_F32)
    memcpy(to, from, (size_t)count * sizeof *to);
  else
    for (int64_t i = 0; i < count; i++)
      to[i] = msk_bf16_to_f32(((const uint16_t *)from)[i]);
}

/* Rows [row, row + rows) of s B A of one part, added to c. */
static struct msk_product merging(const struct ms_dit *dit, const struct dit_matrix *matrix, int part,
                                  int64_t row, int64_t rows, float *c, int64_t ld) {
  const char *b = matrix->adapter[part].b;
  int64_t rank = dit->config.lora_rank;
  return (struct msk_product){
      .m = rows,
      .n = matrix->k,
      .k = rank,
      .a = b ? b + (size_t)(row * rank) * msk_type_size(dit->params.type) : NULL,
      .a_type = dit->params.type,
      .a_ld = rank,
      .b = matrix->adapter[part].merge,
      .c = c,
      .c_ld = ld,
      .gate = dit->lora_scales,
      .gate_rows = rows,
      .accumulate = 1,
  };
}

struct msk_pack ms_dit_merge(const struct ms_dit *dit, const struct dit_pack *item, int64_t n0, int64_t n1,
                             void *scratch) {
  const struct dit_matrix *matrix = item->matrix;
  struct msk_pack pack = item->pack;
  int64_t row0 = pack.transposed ? 0 : n0, row1 = pack.transposed ? matrix->n : n1;
  int64_t col0 = pack.transposed ? n0 : 0, col1 = pack.transposed ? n1 : matrix->k;
  int64_t width = col1 - col0, part_rows = matrix->n / matrix->parts;
  float *merged = scratch;
  unsigned char *kernels =
      (unsigned char *)scratch + rounded((size_t)((row1 - row0) * width) * sizeof *merged);
  for (int64_t i = row0; i < row1; i++)
    widen((const char *)pack.src + (size_t)(i * pack.ld + col0) * msk_type_size(pack.type), pack.type,
          merged + (i - row0) * width, width);
  for (int part = 0; part < matrix->parts; part++) {
    int64_t from = part * part_rows, to = from + part_rows;
    struct msk_product p;
    from = from > row0 ? from : row0;
    to = to < row1 ? to : row1;
    if (from >= to)
      continue;
    p = merging(dit, matrix, part, from - part * part_rows, to - from, merged + (from - row0) * width - col0,
                width);
    dit->compute->product[MSK_PRECISION_F32].run(&p, 0, p.m, col0, col1, kernels);
  }
  pack.src = merged - (pack.transposed ? col0 : row0 * width);
  pack.type = MSK_F32;
  pack.ld = width;
  return pack;
}

static size_t piece_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix, int transposed) {
  int64_t n = transposed ? matrix->k : matrix->n, k = transposed ? matrix->n : matrix->k;
  int64_t step = ms_dit_pack_step(dit, matrix->exact ? MSK_PRECISION_F32 : dit->precision, n, k, 1);
  int64_t rows = transposed ? matrix->n / matrix->parts : step;
  struct msk_product p = merging(dit, matrix, 0, 0, rows, NULL, step);
  return rounded((size_t)(step * k) * sizeof(float)) +
         rounded(dit->compute->product[MSK_PRECISION_F32].scratch_bytes(&p));
}

size_t ms_dit_merge_scratch(const struct ms_dit *dit) {
  size_t most = 0;
  if (!dit->config.lora_rank)
    return 0;
  for (int i = 0; i < dit->config.layers; i++) {
    const struct dit_layer *layer = &dit->layers[i];
    const struct dit_matrix *const list[] = {&layer->qkv,      &layer->out,       &layer->cross_q,
                                             &layer->cross_kv, &layer->cross_out, &layer->up,
                                             &layer->down};
    for (size_t j = 0; j < sizeof list / sizeof *list; j++)
      for (int transposed = 0; transposed < 2; transposed++) {
        size_t bytes = piece_bytes(dit, list[j], transposed);
        most = bytes > most ? bytes : most;
      }
  }
  return most;
}
