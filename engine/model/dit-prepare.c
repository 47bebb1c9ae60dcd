/* Weights as the kernels want them: matrices packed, vectors and tables as float32. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "model/dit-private.h"

/* Vectors, tables and the depthwise convolution are read as float32; two-dimensional matrices and the patch
 * are packed. */
static int is_read_directly(const struct ms_dit *dit, int i) {
  const struct ms_param *param = &dit->params.list[i];
  return param->kind == MS_PARAM_VECTOR || (param->ndim > 2 && i != dit->patch_weight);
}

static int64_t rounded(int64_t count) {
  return (count + 15) / 16 * 16;
}

struct fused {
  float *store; /* NULL: only count */
  int64_t used;
};

/* Biases of q, k and v one behind the other. */
static void fuse_bias(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  struct fused *fused = data;
  if (matrix->parts == 1) {
    matrix->bias_values = dit->vectors[matrix->bias];
    return;
  }
  if (fused->store) {
    float *to = fused->store + fused->used;
    matrix->bias_values = to;
    for (int i = 0; i < matrix->parts; i++, to += matrix->n / matrix->parts)
      memcpy(to, dit->vectors[matrix->bias + i], (size_t)(matrix->n / matrix->parts) * sizeof *to);
  }
  fused->used += rounded(matrix->n);
}

/* The patch matrix with the columns of the coordinate features behind those of the patch. */
static void join_coordinates(struct ms_dit *dit, float *to) {
  int64_t in = dit->patch_in, rows = dit->patch.n, ld = dit->patch.k;
  float *end = to + rows * ld; /* a place for the parts as they are read: store_elements allows for it */
  ms_params_read_f32(&dit->params, dit->patch_weight, end);
  ms_params_read_f32(&dit->params, dit->coordinate_weight, end + rows * in);
  for (int64_t i = 0; i < rows; i++) {
    memcpy(to + i * ld, end + i * in, (size_t)in * sizeof *to);
    memcpy(to + i * ld + in, end + rows * in + i * 15, 15 * sizeof *to);
  }
  dit->patch.source = to;
  dit->patch.source_type = MSK_F32;
}

static int64_t store_elements(struct ms_dit *dit) {
  struct fused fused = {0};
  int64_t elements = 0;
  if (dit->params.type != MSK_F32)
    for (int i = 0; i < dit->params.count; i++)
      elements += is_read_directly(dit, i) ? rounded(dit->params.list[i].count) : 0;
  ms_dit_each_matrix(dit, fuse_bias, &fused);
  if (dit->config.coordinate_features)
    elements += 2 * rounded(dit->patch.n * dit->patch.k) + 16;
  return elements + fused.used;
}

static void fill_store(struct ms_dit *dit) {
  struct fused fused;
  float *next = dit->vector_store;
  for (int i = 0; i < dit->params.count; i++) {
    if (!is_read_directly(dit, i))
      continue;
    if (dit->params.type == MSK_F32) {
      dit->vectors[i] = ms_params_at(&dit->params, i);
    } else {
      ms_params_read_f32(&dit->params, i, next);
      dit->vectors[i] = next;
      next += rounded(dit->params.list[i].count);
    }
  }
  if (dit->config.coordinate_features) {
    join_coordinates(dit, next);
    next += 2 * rounded(dit->patch.n * dit->patch.k) + 16;
  }
  fused = (struct fused){.store = next};
  ms_dit_each_matrix(dit, fuse_bias, &fused);
}

struct packing {
  unsigned char *base; /* NULL: only measure */
  size_t used;
  struct dit_pack *list;
  int count;
};

static void *place(struct packing *packing, size_t bytes) {
  void *at = packing->base ? packing->base + packing->used : NULL;
  packing->used += (bytes + 63) / 64 * 64;
  return at;
}

static void pack_matrix(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  struct packing *packing = data;
  enum msk_precision precision = matrix->exact ? MSK_PRECISION_F32 : dit->precision;
  matrix->precision = precision;
  if (matrix != &dit->patch || !dit->config.coordinate_features) {
    matrix->source = ms_params_at(&dit->params, matrix->weight);
    matrix->source_type = dit->params.type;
  }
  for (int transposed = 0; transposed <= dit->training; transposed++) {
    int64_t n = transposed ? matrix->k : matrix->n, k = transposed ? matrix->n : matrix->k;
    void *dst = place(packing, ms_dit_pack_bytes(dit, precision, n, k));
    if (!packing->base)
      continue;
    *(transposed ? &matrix->backward : &matrix->forward) = dst;
    packing->list[packing->count++] = (struct dit_pack){
        .precision = precision,
        .pack = {.n = n,
                 .k = k,
                 .src = matrix->source,
                 .type = matrix->source_type,
                 .ld = matrix->k,
                 .transposed = transposed},
        .dst = dst,
    };
  }
}

/* Weights of the parts of a matrix must lie side by side, or one pack could not take them together. */
static void assert_adjacent(struct ms_dit *dit, struct dit_matrix *matrix, void *data) {
  for (int i = 1; i < matrix->parts; i++)
    assert(dit->params.list[matrix->weight + i].offset ==
           dit->params.list[matrix->weight].offset + i * (matrix->n / matrix->parts) * matrix->k);
}

int ms_dit_prepare(struct ms_dit *dit, enum msk_precision precision, int training, struct ms_error *error) {
  struct packing measure = {0}, packing = {0};
  int64_t elements;
  assert(dit->params.data);
  dit->precision = precision;
  dit->training = training != 0;
  dit->prepared = 0;
  ms_dit_forget_text(dit);
  ms_dit_each_matrix(dit, assert_adjacent, NULL);
  if (!dit->vectors)
    dit->vectors = calloc((size_t)dit->params.count, sizeof *dit->vectors);
  if (!dit->vectors)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the model's tables");
  elements = store_elements(dit);
  if (!dit->vector_store || elements > dit->vector_elements) {
    free(dit->vector_store);
    dit->vector_store = aligned_alloc(64, (size_t)(elements + 16) * sizeof(float) / 64 * 64);
    if (!dit->vector_store)
      return ms_error_set(error, MS_ENOMEM, "out of memory for the model's tables");
    dit->vector_elements = elements;
  }
  fill_store(dit);
  ms_dit_each_matrix(dit, pack_matrix, &measure);
  if (measure.used != dit->packed.peak) {
    int code;
    ms_arena_release(&dit->packed);
    code = ms_arena_open(&dit->packed, measure.used, error);
    if (code < 0)
      return code;
    ms_arena_take(&dit->packed, measure.used);
  }
  packing.base = dit->packed.base;
  packing.list = dit->pack_list;
  ms_dit_each_matrix(dit, pack_matrix, &packing);
  ms_dit_pack_all(dit, packing.list, packing.count);
  dit->prepared = 1;
  return ms_pool_cancelled(dit->compute->pool) ? ms_error_set(error, MS_ECANCELLED, "cancelled") : 0;
}
