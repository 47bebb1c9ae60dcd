/* Weights as the kernels want them: matrices packed, vectors and tables as float32. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/dit-private.h"

/* Vectors, tables and the depthwise convolution are read as float32; two-dimensional matrices and the patch
 * are packed. */
static int is_read_directly(const struct ms_dit *dit, int i) {
  return dit->params.list[i].ndim != 2 && i != dit->patch_weight;
}

static int64_t rounded(int64_t count) {
  return (count + 15) / 16 * 16;
}

/* Columns of the patch matrix with the coordinate features behind those of the patch, and a place for the
 * parts as they are read. */
static int64_t joined_floats(const struct ms_dit *dit) {
  return dit->config.coordinate_features ? 2 * rounded(dit->patch.n * dit->patch.k) + 16 : 0;
}

static size_t packed_bytes(const struct ms_dit *dit, const struct dit_matrix *matrix,
                           enum msk_precision precision, int transposed) {
  int64_t n = transposed ? matrix->k : matrix->n, k = transposed ? matrix->n : matrix->k;
  return (ms_dit_pack_bytes(dit, matrix->exact ? MSK_PRECISION_F32 : precision, n, k) + 63) / 64 * 64;
}

struct measure {
  struct dit_shard_size size;
  enum msk_precision precision;
  int training;
};

static void measure_matrix(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  struct measure *measure = data;
  measure->size.floats += matrix->parts > 1 ? rounded(matrix->n) : 0;
  for (int transposed = 0; transposed <= measure->training; transposed++)
    measure->size.bytes += packed_bytes(dit, matrix, measure->precision, transposed);
  measure->size.bytes += ms_dit_adapter_bytes(dit, matrix, measure->precision, measure->training);
}

struct dit_shard_size ms_dit_shard_size(struct ms_dit *dit, int shard, enum msk_precision precision,
                                        int copied, int training) {
  struct measure measure = {.precision = precision, .training = training};
  int first, end;
  ms_dit_shard_params(dit, shard, &first, &end);
  for (int i = first; i < end && copied; i++)
    measure.size.floats += is_read_directly(dit, i) ? rounded(dit->params.list[i].count) : 0;
  if (shard < 0)
    measure.size.floats += joined_floats(dit);
  ms_dit_shard_matrices(dit, shard, measure_matrix, &measure);
  return measure.size;
}

/* One shard's way from a part of the list of parameters into vectors and packs. */
struct binding {
  const char *values; /* of the list from element `begin` on */
  int64_t begin;
  int copied, backward; /* vectors are copied even if float32; transposes are packed too */
  float *next;          /* where vectors go */
  unsigned char *packed;
  int packs, adapter_packs; /* listed in pack_list and in adapter_list */
};

static const void *values_of(const struct ms_dit *dit, const struct binding *b, int i) {
  return b->values + (size_t)(dit->params.list[i].offset - b->begin) * msk_type_size(dit->params.type);
}

static void read_values(const struct ms_dit *dit, const struct binding *b, int i, float *to) {
  int64_t count = dit->params.list[i].count;
  const void *from = values_of(dit, b, i);
  if (dit->params.type == MSK_F32)
    memcpy(to, from, (size_t)count * sizeof *to);
  else
    for (int64_t j = 0; j < count; j++)
      to[j] = msk_bf16_to_f32(((const uint16_t *)from)[j]);
}

/* The patch matrix with the columns of the coordinate features; returns it. */
static const float *join_coordinates(const struct ms_dit *dit, struct binding *b) {
  int64_t in = dit->patch_in, rows = dit->patch.n, ld = dit->patch.k;
  float *to = b->next, *end = to + rows * ld;
  read_values(dit, b, dit->patch_weight, end);
  read_values(dit, b, dit->coordinate_weight, end + rows * in);
  for (int64_t i = 0; i < rows; i++) {
    memcpy(to + i * ld, end + i * in, (size_t)in * sizeof *to);
    memcpy(to + i * ld + in, end + rows * in + i * 15, 15 * sizeof *to);
  }
  b->next += joined_floats(dit);
  return to;
}

/* Biases of q, k and v one behind the other. */
static void fuse_bias(struct ms_dit *dit, struct dit_matrix *matrix, struct binding *b) {
  int64_t n = matrix->n / matrix->parts;
  matrix->bias_values = dit->vectors[matrix->bias];
  if (matrix->parts == 1)
    return;
  matrix->bias_values = b->next;
  for (int i = 0; i < matrix->parts; i++)
    memcpy(b->next + i * n, dit->vectors[matrix->bias + i], (size_t)n * sizeof(float));
  b->next += rounded(matrix->n);
}

static void bind_matrix(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  struct binding *b = data;
  const void *from = values_of(dit, b, matrix->weight);
  enum msk_type type = dit->params.type;
  if (matrix == &dit->patch && dit->config.coordinate_features) {
    from = join_coordinates(dit, b);
    type = MSK_F32;
  }
  matrix->precision = matrix->exact ? MSK_PRECISION_F32 : dit->precision;
  fuse_bias(dit, matrix, b);
  if (matrix->adapters) {
    b->adapter_packs += ms_dit_bind_adapters(dit, matrix, b->values, b->begin, b->backward, b->packed,
                                             dit->adapter_list + b->adapter_packs);
    b->packed += ms_dit_adapter_bytes(dit, matrix, dit->precision, dit->training);
  }
  for (int transposed = 0; transposed <= dit->training; transposed++) {
    void *dst = b->packed;
    b->packed += packed_bytes(dit, matrix, dit->precision, transposed);
    *(transposed ? &matrix->backward : &matrix->forward) = dst;
    if (transposed <= b->backward)
      dit->pack_list[b->packs++] = (struct dit_pack){
          .precision = matrix->precision,
          .pack = {.n = transposed ? matrix->k : matrix->n,
                   .k = transposed ? matrix->n : matrix->k,
                   .src = from,
                   .type = type,
                   .ld = matrix->k,
                   .transposed = transposed},
          .dst = dst,
          .matrix = matrix->adapters ? matrix : NULL,
      };
  }
}

/* Adapters first: matrices are packed with them. */
static void pack(struct ms_dit *dit, const struct binding *b) {
  if (b->adapter_packs)
    ms_dit_pack_all(dit, dit->adapter_list, b->adapter_packs);
  ms_dit_pack_all(dit, dit->pack_list, b->packs);
}

/* Lists the shard's packs; the next shard goes behind it. */
static void bind_shard(struct ms_dit *dit, int shard, struct binding *b) {
  int first, end;
  ms_dit_shard_params(dit, shard, &first, &end);
  for (int i = first; i < end; i++) {
    if (!is_read_directly(dit, i))
      continue;
    if (!b->copied) {
      dit->vectors[i] = values_of(dit, b, i);
    } else {
      read_values(dit, b, i, b->next);
      dit->vectors[i] = b->next;
      b->next += rounded(dit->params.list[i].count);
    }
  }
  ms_dit_shard_matrices(dit, shard, bind_matrix, b);
}

/* Weights of the parts of a matrix must lie side by side, or one pack could not take them together. */
static void assert_adjacent(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  for (int i = 1; i < matrix->parts; i++)
    assert(dit->params.list[matrix->weight + i].offset ==
           dit->params.list[matrix->weight].offset + i * (matrix->n / matrix->parts) * matrix->k);
}

/* Memory for so many vectors and packs. */
static int make_room(struct ms_dit *dit, struct dit_shard_size size, struct ms_error *error) {
  if (!dit->vectors)
    dit->vectors = calloc((size_t)dit->params.count, sizeof *dit->vectors);
  if (!dit->vector_store || size.floats > dit->vector_elements) {
    free(dit->vector_store);
    dit->vector_store = aligned_alloc(64, (size_t)(size.floats + 16) * sizeof(float) / 64 * 64);
    dit->vector_elements = size.floats;
  }
  if (!dit->vectors || !dit->vector_store ||
      ms_pool_reserve(dit->compute->pool, ms_dit_merge_scratch(dit)) < 0)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the model's tables");
  if (size.bytes != dit->packed.peak) {
    int code;
    ms_arena_release(&dit->packed);
    code = ms_arena_open(&dit->packed, size.bytes, error);
    if (code < 0)
      return code;
    ms_arena_take(&dit->packed, size.bytes);
  }
  return 0;
}

static void begin_prepare(struct ms_dit *dit, const struct ms_dit_source *source,
                          enum msk_precision precision, int training) {
  dit->source = source ? *source : (struct ms_dit_source){0};
  dit->precision = precision;
  dit->training = training != 0;
  dit->prepared = 0;
  dit->run.ready = 0;
  ms_dit_forget_text(dit);
  ms_dit_each_matrix(dit, assert_adjacent, NULL);
}

int ms_dit_prepare(struct ms_dit *dit, enum msk_precision precision, int training, struct ms_error *error) {
  struct binding all = {.copied = dit->params.type != MSK_F32, .backward = training != 0};
  struct dit_shard_size total = {0};
  int code;
  assert(dit->params.data);
  begin_prepare(dit, NULL, precision, training);
  for (int i = -1; i < dit->config.layers; i++) {
    struct dit_shard_size size = ms_dit_shard_size(dit, i, precision, all.copied, dit->training);
    total.floats += size.floats;
    total.bytes += size.bytes;
  }
  if ((code = make_room(dit, total, error)) < 0)
    return code;
  all.values = dit->params.data;
  all.next = dit->vector_store;
  all.packed = dit->packed.base;
  for (int i = -1; i < dit->config.layers; i++)
    bind_shard(dit, i, &all);
  pack(dit, &all);
  dit->prepared = 1;
  return ms_pool_stopped(dit->compute->pool, "cancelled", error);
}

int ms_dit_prepare_source(struct ms_dit *dit, const struct ms_dit_source *source,
                          enum msk_precision precision, int training, struct ms_error *error) {
  struct dit_shard_size outer, layer = {0};
  int code;
  begin_prepare(dit, source, precision, training);
  outer = ms_dit_shard_size(dit, -1, precision, 1, dit->training);
  for (int i = 0; i < dit->config.layers; i++) {
    struct dit_shard_size size = ms_dit_shard_size(dit, i, precision, 1, dit->training);
    layer.floats = size.floats > layer.floats ? size.floats : layer.floats;
    layer.bytes = size.bytes > layer.bytes ? size.bytes : layer.bytes;
  }
  dit->outer_elements = outer.floats;
  dit->outer_packed = outer.bytes;
  outer.floats += layer.floats;
  outer.bytes += layer.bytes;
  if ((code = make_room(dit, outer, error)) < 0)
    return code;
  dit->prepared = 1;
  return 0;
}

void ms_dit_bind(struct ms_dit *dit, int shard, const void *values, int backward) {
  struct binding b = {.values = values,
                      .copied = 1,
                      .backward = backward,
                      .next = dit->vector_store + (shard < 0 ? 0 : dit->outer_elements),
                      .packed = dit->packed.base + (shard < 0 ? 0 : dit->outer_packed)};
  int64_t count;
  ms_dit_shard_range(dit, shard, &b.begin, &count);
  bind_shard(dit, shard, &b);
  pack(dit, &b);
}
