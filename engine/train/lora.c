#include "train/lora.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stream/state-file.h"
#include "weights/safetensors.h"

#define STRIPE ((int64_t)1 << 20) /* elements of a matrix that are merged at a time */
#define NAME 128
#define PREFIX "diffusion_model."

/* Tensors of a file that is written, and what they are made of. */
struct export {
  struct ms_dit *dit;
  const struct ms_params *params;
  struct ms_state_values *values;
  struct ms_tensor_out *tensors; /* [params->count] and more for alpha */
  char(*names)[NAME];
  int *from, count; /* parameter of each tensor */
  int code;
  struct ms_error why;
};

static int open_export(struct export *e, struct ms_dit *dit, struct ms_shard_store *store,
                       struct ms_error *error) {
  size_t room = 2 * (size_t)ms_dit_params(dit)->count + 1;
  int code;
  *e = (struct export){.dit = dit, .params = ms_dit_params(dit)};
  code = ms_state_values_open(&e->values, store, error);
  e->tensors = calloc(room, sizeof *e->tensors);
  e->names = calloc(room, sizeof *e->names);
  e->from = calloc(room, sizeof *e->from);
  if (code == 0 && (!e->tensors || !e->names || !e->from))
    code = ms_error_set(error, MS_ENOMEM, "out of memory for the list of a file's tensors");
  return code;
}

static void close_export(struct export *e) {
  ms_state_values_close(&e->values);
  free(e->tensors);
  free(e->names);
  free(e->from);
}

static void add_tensor(struct export *e, int param) {
  const struct ms_param *p = &e->params->list[param];
  struct ms_tensor_out *tensor = &e->tensors[e->count];
  *tensor = (struct ms_tensor_out){.name = e->names[e->count], .dtype = MS_DTYPE_BF16, .ndim = p->ndim};
  memcpy(tensor->dims, p->dims, sizeof p->dims);
  snprintf(e->names[e->count], NAME, "%s", p->name);
  e->from[e->count++] = param;
}

/* Of a value: 0, or why it could not be made. */
static int outcome(const struct export *e, struct ms_error *error) {
  return e->code < 0 ? ms_error_set(error, e->code, "%s", e->why.message) : 0;
}

static void read_values(struct export *e, int param, int64_t begin, int64_t count, uint16_t *out) {
  if (e->code == 0)
    e->code = ms_state_values_read(e->values, e->params->list[param].offset + begin, count, out, &e->why);
}

static int fill_adapter(void *data, int tensor, int64_t begin, int64_t count, void *out,
                        struct ms_error *error) {
  struct export *e = data;
  read_values(e, e->from[tensor], begin, count, out);
  return outcome(e, error);
}

int ms_lora_write(struct ms_dit *dit, struct ms_shard_store *store, const char *path,
                  struct ms_error *error) {
  const struct ms_dit_config *config = ms_dit_config(dit);
  char rank[32], alpha[32];
  const char *const metadata[] = {"format", "pt", "rank", rank, "alpha", alpha, NULL};
  struct export e;
  int code = open_export(&e, dit, store, error);
  snprintf(rank, sizeof rank, "%d", config->lora_rank);
  snprintf(alpha, sizeof alpha, "%g", (double)config->lora_alpha);
  for (int i = 0; i < e.params->count && code == 0; i++) {
    char *name = e.names[e.count], *end;
    if (!ms_dit_is_adapter(dit, i))
      continue;
    add_tensor(&e, i);
    snprintf(name, NAME, PREFIX "%s", e.params->list[i].name);
    end = strstr(name, ".lora_A.");
    if (!end || config->lora_alpha == (float)config->lora_rank)
      continue;
    snprintf(e.names[e.count], NAME, "%.*s.alpha", (int)(end - name), name);
    e.tensors[e.count] = (struct ms_tensor_out){e.names[e.count], MS_DTYPE_F32, 1, {1}, &config->lora_alpha};
    e.count++;
  }
  if (code == 0)
    code = ms_safetensors_write_with(path, e.tensors, e.count, metadata, fill_adapter, &e, error);
  close_export(&e);
  return code;
}

/* W + s B A of some rows of a matrix. */
struct merging {
  struct export e;
  const struct msk_product_ops
      *ops;      /* on the caller's thread: a pool that was cancelled would leave rows out */
  int *adapters; /* [params->count] index of A, or 0 */
  uint16_t *a, *b, *rows;
  float *sums, *scales;
  unsigned char *packed, *scratch; /* A; of a product */
  int param;                       /* whose adapters are in a, b and packed; -1: none */
  int64_t row0, row1;              /* rows of it in `rows` */
};

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

static void *aligned(size_t bytes) {
  return aligned_alloc(MSK_ALIGN, bytes / MSK_ALIGN * MSK_ALIGN + MSK_ALIGN);
}

static int open_merging(struct merging *m, const struct ms_compute *compute, struct ms_error *error) {
  const struct ms_params *params = m->e.params;
  int rank = ms_dit_config(m->e.dit)->lora_rank;
  int64_t widest_n = 1, widest_k = 1;
  size_t packed = 0, scratch = 0;
  m->ops = &compute->product[MSK_PRECISION_F32];
  m->param = -1;
  m->adapters = calloc((size_t)params->count + 1, sizeof *m->adapters);
  if (!m->adapters)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the list of a file's tensors");
  for (int i = 0; i < params->count; i++) {
    const struct ms_param *a = &params->list[i], *w;
    struct msk_product product;
    char name[NAME], *end;
    snprintf(name, sizeof name, "%s", a->name);
    end = strstr(name, ".lora_A.");
    if (!end || !ms_dit_is_adapter(m->e.dit, i))
      continue;
    snprintf(end, (size_t)(name + sizeof name - end), ".weight");
    w = ms_params_find(params, name);
    m->adapters[w - params->list] = i;
    product = (struct msk_product){
        .m = w->dims[0], .n = w->dims[1], .k = rank, .a_type = MSK_BF16, .a_ld = rank, .c_ld = w->dims[1]};
    packed = larger(packed, m->ops->pack_b_bytes(product.n, rank));
    scratch = larger(scratch, m->ops->scratch_bytes(&product));
    widest_n = w->dims[0] > widest_n ? w->dims[0] : widest_n;
    widest_k = w->dims[1] > widest_k ? w->dims[1] : widest_k;
  }
  m->a = malloc((size_t)(rank * widest_k) * sizeof *m->a);
  m->b = malloc((size_t)(rank * widest_n) * sizeof *m->b);
  m->rows = malloc((size_t)(STRIPE + widest_k) * sizeof *m->rows);
  m->sums = malloc((size_t)(STRIPE + widest_k) * sizeof *m->sums);
  m->scales = malloc((size_t)widest_k * sizeof *m->scales);
  m->packed = aligned(packed);
  m->scratch = aligned(scratch);
  if (!m->a || !m->b || !m->rows || !m->sums || !m->scales || !m->packed || !m->scratch)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the rows of a matrix");
  for (int64_t i = 0; i < widest_k; i++)
    m->scales[i] = ms_dit_config(m->e.dit)->lora_alpha / (float)rank;
  return 0;
}

static void close_merging(struct merging *m) {
  free(m->adapters);
  free(m->a);
  free(m->b);
  free(m->rows);
  free(m->sums);
  free(m->scales);
  free(m->packed);
  free(m->scratch);
  close_export(&m->e);
}

/* Puts the row and those behind it into `rows`. */
static void merge_rows(struct merging *m, int param, int64_t row) {
  const struct ms_param *w = &m->e.params->list[param], *a = &m->e.params->list[m->adapters[param]];
  int64_t n = w->dims[0], k = w->dims[1], rank = a->dims[0], many = STRIPE / k > 1 ? STRIPE / k : 1;
  int64_t rows = n - row < many ? n - row : many, count = rows * k;
  struct msk_product product = {.m = rows,
                                .n = k,
                                .k = rank,
                                .a = m->b + row * rank,
                                .a_type = MSK_BF16,
                                .a_ld = rank,
                                .b = m->packed,
                                .c = m->sums,
                                .c_ld = k,
                                .gate = m->scales,
                                .gate_rows = rows,
                                .accumulate = 1};
  if (m->param != param) {
    struct msk_pack pack = {.n = k, .k = rank, .src = m->a, .type = MSK_BF16, .ld = k, .transposed = 1};
    read_values(&m->e, m->adapters[param], 0, a->count, m->a);
    read_values(&m->e, m->adapters[param] + 1, 0, n * rank, m->b);
    if (m->e.code == 0)
      m->ops->pack_b(&pack, 0, k, m->packed);
    m->param = param;
  }
  m->row0 = row;
  m->row1 = row + rows;
  read_values(&m->e, param, row * k, count, m->rows);
  if (m->e.code < 0)
    return;
  for (int64_t i = 0; i < count; i++)
    m->sums[i] = msk_bf16_to_f32(m->rows[i]);
  m->ops->run(&product, 0, rows, 0, k, m->scratch);
  for (int64_t i = 0; i < count; i++)
    m->rows[i] = msk_f32_to_bf16(m->sums[i]);
}

static int fill_merged(void *data, int tensor, int64_t begin, int64_t count, void *out,
                       struct ms_error *error) {
  struct merging *m = data;
  int param = m->e.from[tensor];
  int64_t k = m->e.params->list[param].dims[1];
  uint16_t *to = out;
  if (!m->adapters[param]) {
    read_values(&m->e, param, begin, count, to);
    return outcome(&m->e, error);
  }
  while (count > 0 && m->e.code == 0) {
    int64_t row = begin / k, at, has;
    if (m->param != param || row < m->row0 || row >= m->row1)
      merge_rows(m, param, row);
    at = begin - m->row0 * k;
    has = m->row1 * k - begin < count ? m->row1 * k - begin : count;
    memcpy(to, m->rows + at, (size_t)has * sizeof *to);
    to += has;
    begin += has;
    count -= has;
  }
  return outcome(&m->e, error);
}

int ms_lora_write_merged(struct ms_dit *dit, const struct ms_compute *compute, struct ms_shard_store *store,
                         const char *path, struct ms_error *error) {
  struct merging m = {0};
  int code = open_export(&m.e, dit, store, error);
  if (code == 0)
    code = open_merging(&m, compute, error);
  for (int i = 0; i < m.e.params->count && code == 0; i++)
    if (!ms_dit_is_adapter(dit, i))
      add_tensor(&m.e, i);
  if (code == 0)
    code = ms_safetensors_write_with(path, m.e.tensors, m.e.count, NULL, fill_merged, &m, error);
  close_merging(&m);
  return code;
}
