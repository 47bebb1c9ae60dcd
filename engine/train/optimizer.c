#include "train/optimizer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Pieces of the flat array that one task sums or updates: part of the result. */
#define PIECE 65536

struct ms_optimizer_params ms_optimizer_params_default(void) {
  return (struct ms_optimizer_params){
      .beta1 = 0.9f, .beta2 = 0.99f, .eps = 1e-8f, .decay = 0.01f, .clip_norm = 1};
}

static void *allocate(int64_t count, size_t size) {
  size_t bytes = ((size_t)count * size + 63) / 64 * 64;
  void *memory = aligned_alloc(64, bytes ? bytes : 64);
  if (memory)
    memset(memory, 0, bytes);
  return memory;
}

/* The master weights of [begin,end) as float32. */
static void read_master(const struct ms_optimizer *o, int64_t begin, int64_t end, float *out) {
  if (o->lo)
    o->compute->adamw.join((const uint16_t *)o->params->data + begin, o->lo + begin, out, end - begin);
  else
    memcpy(out, (const float *)o->params->data + begin, (size_t)(end - begin) * sizeof *out);
}

int ms_optimizer_open(struct ms_optimizer *o, struct ms_compute *compute, struct ms_params *params,
                      const struct ms_optimizer_params *settings, struct ms_error *error) {
  memset(o, 0, sizeof *o);
  o->compute = compute;
  o->params = params;
  o->settings = *settings;
  o->m = allocate(params->total, sizeof *o->m);
  o->v = allocate(params->total, sizeof *o->v);
  o->lo = params->type == MSK_BF16 ? allocate(params->total, sizeof *o->lo) : NULL;
  o->ema = settings->ema > 0 ? allocate(params->total, sizeof *o->ema) : NULL;
  if (!o->m || !o->v || (params->type == MSK_BF16 && !o->lo) || (settings->ema > 0 && !o->ema)) {
    ms_optimizer_release(o);
    return ms_error_set(error, MS_ENOMEM, "out of memory for the optimizer's state of %lld parameters",
                        (long long)params->total);
  }
  if (o->ema)
    read_master(o, 0, params->total, o->ema);
  return 0;
}

void ms_optimizer_release(struct ms_optimizer *o) {
  free(o->m);
  free(o->v);
  free(o->lo);
  free(o->ema);
  memset(o, 0, sizeof *o);
}

/* The part of [*from,*to) that lies in a parameter; returns whether there is one. */
static int clip_to_param(const struct ms_param *param, int64_t *from, int64_t *to) {
  *from = param->offset > *from ? param->offset : *from;
  *to = param->offset + param->count < *to ? param->offset + param->count : *to;
  return *from < *to;
}

struct norm_run {
  struct ms_optimizer *o;
  const float *grad;
  double *sums; /* one a piece */
};

static void norm_piece(void *data, int64_t begin, int64_t end, void *scratch) {
  struct norm_run *run = data;
  const struct ms_params *params = run->o->params;
  double sum = 0;
  for (int i = ms_params_index(params, begin); i < params->count && params->list[i].offset < end; i++) {
    int64_t from = begin, to = end;
    if (params->list[i].kind != MS_PARAM_FROZEN && clip_to_param(&params->list[i], &from, &to))
      sum += run->o->compute->norm.sum_squares(run->grad + from, to - from);
  }
  run->sums[begin / PIECE] = sum;
}

static int is_finite_all(const float *x, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(x[i]))
      return 0;
  return 1;
}

static int refuse_gradient(const struct ms_optimizer *o, const float *grad, struct ms_error *error) {
  for (int i = 0; i < o->params->count; i++) {
    const struct ms_param *param = &o->params->list[i];
    if (param->kind != MS_PARAM_FROZEN && !is_finite_all(grad + param->offset, param->count))
      return ms_error_set(error, MS_ENOTFINITE, "the gradient of \"%s\" is not finite", param->name);
  }
  return ms_error_set(error, MS_ENOTFINITE, "the gradient's norm is not finite");
}

struct update {
  struct ms_optimizer *o;
  const float *grad;
  struct msk_adamw adamw;
  float ema;
};

/* Part [begin,end) of the flat array that lies in one parameter. */
static void update_part(struct update *u, const struct ms_param *param, int64_t begin, int64_t end) {
  struct ms_optimizer *o = u->o;
  struct msk_adamw adamw = u->adamw;
  int64_t n = end - begin;
  if (param->kind == MS_PARAM_FROZEN)
    return;
  adamw.decay = param->kind == MS_PARAM_MATRIX ? o->settings.decay : 0;
  if (o->lo)
    o->compute->adamw.step_split(&adamw, u->grad + begin, MSK_F32, (uint16_t *)o->params->data + begin,
                                 o->lo + begin, o->m + begin, o->v + begin, n);
  else
    o->compute->adamw.step_f32(&adamw, u->grad + begin, (float *)o->params->data + begin, o->m + begin,
                               o->v + begin, n);
}

static void update_piece(void *data, int64_t begin, int64_t end, void *scratch) {
  struct update *u = data;
  struct ms_optimizer *o = u->o;
  const struct ms_params *params = o->params;
  for (int i = ms_params_index(params, begin); i < params->count && params->list[i].offset < end; i++) {
    int64_t from = begin, to = end;
    if (clip_to_param(&params->list[i], &from, &to))
      update_part(u, &params->list[i], from, to);
  }
  for (int64_t i = begin; o->ema && i < end; i += 1024) {
    float master[1024];
    int64_t n = end - i < 1024 ? end - i : 1024;
    read_master(o, i, i + n, master);
    o->compute->norm.axpby(1 - u->ema, master, u->ema, o->ema + i, n);
  }
}

int ms_optimizer_step(struct ms_optimizer *o, const float *grad, double lr, double *norm,
                      struct ms_error *error) {
  int64_t total = o->params->total, pieces = (total + PIECE - 1) / PIECE;
  struct norm_run norm_run = {o, grad, calloc((size_t)pieces + 1, sizeof(double))};
  struct update u = {.o = o, .grad = grad};
  double sum = 0, length, n = (double)o->step;
  if (!norm_run.sums)
    return ms_error_set(error, MS_ENOMEM, "out of memory in the optimizer");
  ms_compute_ranges(o->compute, total, PIECE, norm_piece, &norm_run);
  for (int64_t i = 0; i < pieces; i++)
    sum += norm_run.sums[i];
  free(norm_run.sums);
  length = sqrt(sum);
  if (!isfinite(length))
    return refuse_gradient(o, grad, error);
  if (norm)
    *norm = length;
  o->step++;
  u.adamw = (struct msk_adamw){.lr = lr,
                               .beta1 = o->settings.beta1,
                               .beta2 = o->settings.beta2,
                               .eps = o->settings.eps,
                               .correction1 = 1 - pow(o->settings.beta1, (double)o->step),
                               .correction2 = 1 - pow(o->settings.beta2, (double)o->step),
                               .grad_scale = 1};
  if (o->settings.clip_norm > 0 && length > o->settings.clip_norm)
    u.adamw.grad_scale = o->settings.clip_norm / length;
  u.ema = (float)fmin(o->settings.ema, (1 + n) / (10 + n));
  ms_compute_ranges(o->compute, total, PIECE, update_piece, &u);
  return 0;
}

void ms_optimizer_read_average(const struct ms_optimizer *o, float *out) {
  if (o->ema)
    memcpy(out, o->ema, (size_t)o->params->total * sizeof *out);
  else
    read_master(o, 0, o->params->total, out);
}

int ms_optimizer_save(void *optimizer, const char *path, uint64_t *sum, struct ms_error *error) {
  const struct ms_optimizer *o = optimizer;
  struct ms_tensor_out tensors[5];
  char step[32], parameters[32];
  const char *metadata[] = {"step", step, "parameters", parameters, NULL};
  uint64_t hash = MS_HASH_START;
  int64_t total = o->params->total;
  int n = 0;
  snprintf(step, sizeof step, "%lld", (long long)o->step);
  snprintf(parameters, sizeof parameters, "%d", o->params->count);
  tensors[n++] =
      (struct ms_tensor_out){"weights", o->lo ? MS_DTYPE_BF16 : MS_DTYPE_F32, 1, {total}, o->params->data};
  tensors[n++] = (struct ms_tensor_out){"m", MS_DTYPE_F32, 1, {total}, o->m};
  tensors[n++] = (struct ms_tensor_out){"v", MS_DTYPE_F32, 1, {total}, o->v};
  if (o->lo)
    tensors[n++] = (struct ms_tensor_out){"low", MS_DTYPE_U16, 1, {total}, o->lo};
  if (o->ema)
    tensors[n++] = (struct ms_tensor_out){"average", MS_DTYPE_F32, 1, {total}, o->ema};
  for (int i = 0; i < n; i++)
    hash = ms_hash_bytes(hash, tensors[i].data, (size_t)total * ms_dtype_size(tensors[i].dtype));
  *sum = hash;
  return ms_safetensors_write(path, tensors, n, metadata, error);
}

static int load_part(const struct ms_safetensors *file, const char *name, enum ms_dtype dtype, int64_t total,
                     void *out, uint64_t *hash, struct ms_error *error) {
  const struct ms_tensor_view *view = ms_safetensors_find(file, name);
  int code;
  if (!view || view->dtype != dtype || view->count != total)
    return ms_error_set(error, MS_EINPUT,
                        "\"%s\" was saved by a run of another model or other settings: \"%s\" does not fit",
                        ms_safetensors_path(file), name);
  code = ms_safetensors_read(file, view, 0, total, out, error);
  *hash = ms_hash_bytes(*hash, out, view->bytes);
  return code;
}

int ms_optimizer_load(void *optimizer, const char *path, uint64_t sum, struct ms_error *error) {
  struct ms_optimizer *o = optimizer;
  struct ms_safetensors *file = NULL;
  int64_t total = o->params->total;
  const char *step, *parameters;
  uint64_t hash = MS_HASH_START;
  int code = ms_safetensors_open(&file, path, error);
  if (code < 0)
    return code;
  step = ms_safetensors_metadata(file, "step");
  parameters = ms_safetensors_metadata(file, "parameters");
  if (!step || !parameters || atoi(parameters) != o->params->count)
    code = ms_error_set(error, MS_EINPUT, "\"%s\" was saved by a run of another model", path);
  if (code == 0)
    code = load_part(file, "weights", o->lo ? MS_DTYPE_BF16 : MS_DTYPE_F32, total, o->params->data, &hash,
                     error);
  if (code == 0)
    code = load_part(file, "m", MS_DTYPE_F32, total, o->m, &hash, error);
  if (code == 0)
    code = load_part(file, "v", MS_DTYPE_F32, total, o->v, &hash, error);
  if (code == 0 && o->lo)
    code = load_part(file, "low", MS_DTYPE_U16, total, o->lo, &hash, error);
  if (code == 0 && o->ema)
    code = load_part(file, "average", MS_DTYPE_F32, total, o->ema, &hash, error);
  if (code == 0 && hash != sum)
    code = ms_error_set(error, MS_EINPUT, "\"%s\" is damaged: its values do not add up", path);
  if (code == 0)
    o->step = strtoll(step, NULL, 10);
  ms_safetensors_close(&file);
  return code;
}
