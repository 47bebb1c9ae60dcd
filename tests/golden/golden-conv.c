/* Convolutions on padded grids against ops.safetensors: values and gradients, every instruction set, both
 * precisions. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "model/conv.h"
#include "weights/safetensors.h"

/* Relative L2 of single operators, from the README beside the fixtures. */
#define TOLERANCE 2e-6
/* bfloat16 products: normalised mean-square error 5e-4, as a relative L2 its root. */
#define BF16_TOLERANCE 2.24e-2

static struct ms_safetensors *file;

static const struct ms_tensor_view *find(const char *op, const char *key) {
  char text[256];
  snprintf(text, sizeof text, "%s.%s", op, key);
  return ms_safetensors_find(file, text);
}

static float *load(const char *op, const char *key) {
  const struct ms_tensor_view *view = find(op, key);
  float *x;
  if (!view) {
    fprintf(stderr, "%s.%s is missing\n", op, key);
    exit(99);
  }
  x = check_alloc_f32(view->count);
  ms_tensor_read_f32(view, x);
  return x;
}

enum shape { CAUSAL, TIME_UP, TIME_DOWN, DOWN, UP, LINEAR };

static const struct {
  const char *op;
  enum shape shape;
} ops[] = {
    {"causal_conv3d", CAUSAL},
    {"causal_conv3d_cache1", CAUSAL},
    {"causal_conv3d_cache2", CAUSAL},
    {"time_conv_up", TIME_UP},
    {"time_conv_down", TIME_DOWN},
    {"vae_down2d", DOWN},
    {"vae_up2d", UP},
    {"linear", LINEAR},
};

/* Between planar [C,T,H,W] tensors and grid rows; frame 0 of the tensor is frame `first` of the grid, every
 * `every`-th frame. */
static void move(const struct ms_grid *grid, int64_t channels, float *rows, float *planar, int64_t frames,
                 int64_t first, int64_t every, int to_planar) {
  int64_t h = grid->height, w = grid->width;
  for (int64_t c = 0; c < channels; c++)
    for (int64_t t = 0; t < frames; t++)
      for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
          float *at = &planar[((c * frames + t) * h + y) * w + x];
          float *row =
              &rows[((first + t * every) * ms_grid_step(grid) + y * ms_grid_pitch(grid) + x) * channels + c];
          if (to_planar)
            *at = *row;
          else
            *row = *at;
        }
}

static float *take(struct ms_arena *arena, const struct ms_grid *grid, int64_t channels, int lead) {
  return ms_grid_take(arena, grid, channels, MSK_F32, lead);
}

static void run(struct ms_compute *compute, enum msk_precision precision, const char *op, enum shape shape) {
  const struct ms_tensor_view *wv = find(op, "weight"), *xv = find(op, "x"), *yv = find(op, "y"),
                              *cv = find(op, "cache");
  double tolerance = precision == MSK_PRECISION_F32 ? TOLERANCE : BF16_TOLERANCE;
  const char *set = compute->product[precision].name, *kind = precision == MSK_PRECISION_F32 ? "f32" : "bf16";
  struct ms_error error = {0};
  struct ms_params params;
  struct ms_conv conv;
  struct ms_conv_work work = {0};
  struct ms_arena arena;
  struct ms_grid out, in;
  float *x, *up, *y, *dy, *dx, *dx_up, *grad, *planar, *phases = NULL, *read;
  int64_t frames, cache = cv ? cv->dims[1] : 0, every = 1, first = 0;
  int kt = wv->ndim == 5 ? (int)wv->dims[2] : 0, kh = wv->ndim == 2 ? 1 : (int)wv->dims[wv->ndim - 2];
  int kw = wv->ndim == 2 ? 1 : (int)wv->dims[wv->ndim - 1], lead = kt ? kt - 1 : 0;
  int64_t cin = wv->dims[1], cout = wv->dims[0];
  if (shape == LINEAR) {
    frames = 1;
    in = (struct ms_grid){1, 1, 1, xv->dims[0]};
    out = in;
  } else {
    frames = xv->dims[1];
    in = (struct ms_grid){frames, 1, xv->dims[2], xv->dims[3]};
    out = (struct ms_grid){frames, 1, yv->dims[2], yv->dims[3]};
  }
  if (shape ==
      TIME_DOWN) { /* no padding: the first two frames are what lies before; every second result counts */
    in.frames = out.frames = frames - 2;
    first = -2;
    every = 2;
  }
  ms_params_init(&params);
  if (ms_conv_list(&conv, &params, "conv", cout, cin, kt, kh, kw, shape == DOWN ? 2 : 1, 1) < 0 ||
      ms_params_allocate(&params, MSK_F32, &error) < 0 || ms_arena_open(&arena, (size_t)16 << 20, &error) < 0)
    exit(99);
  memset(arena.base, 0, arena.size);
  memcpy(ms_params_at(&params, conv.weight), load(op, "weight"), (size_t)wv->count * 4);
  memcpy(ms_params_at(&params, conv.bias), load(op, "bias"), (size_t)cout * 4);
  grad = check_alloc_f32(params.total);
  memset(grad, 0, (size_t)params.total * 4);
  if (ms_conv_pack(&conv, compute, precision, &params, 1, &error) < 0)
    exit(99);
  x = take(&arena, &in, cin, lead);
  dx = take(&arena, &in, cin, lead);
  y = take(&arena, &out, cout, lead);
  dy = take(&arena, &out, cout, lead);
  up = take(&arena, &out, cin, lead);
  dx_up = take(&arena, &out, cin, lead);
  if (shape == LINEAR) {
    memcpy(x, load(op, "x"), (size_t)xv->count * 4);
    memcpy(dy, load(op, "dy"), (size_t)yv->count * 4);
  } else {
    move(&in, cin, x, load(op, "x"), frames, first, 1, 0);
    if (cache)
      move(&in, cin, x, load(op, "cache"), cache, -cache, 1, 0);
    move(&out, cout, dy, load(op, "dy"), yv->dims[1], 0, every, 0);
  }
  read = x;
  if (shape == DOWN) {
    size_t count = (size_t)(4 * ms_grid_extent(&out) * cin);
    read = phases = check_alloc_f32((int64_t)count);
    ms_conv_phases(compute, &in, &out, x, cin, phases, MSK_F32);
  } else if (shape == UP) {
    read = up;
    for (int64_t t = 0; t < frames; t++)
      for (int64_t v = 0; v < out.height; v++)
        for (int64_t u = 0; u < out.width; u++)
          memcpy(up + (t * ms_grid_step(&out) + v * ms_grid_pitch(&out) + u) * cin,
                 x + (t * ms_grid_step(&in) + v / 2 * ms_grid_pitch(&in) + u / 2) * cin, (size_t)cin * 4);
  }
  ms_conv_forward(&conv, compute, precision, &out, read, MSK_F32, NULL, y);
  if (shape == DOWN) {
    float *back = check_alloc_f32(4 * ms_grid_extent(&out) * cin);
    ms_conv_backward_x(&conv, compute, precision, &out, dy, MSK_F32, back);
    ms_conv_unphase(compute, &in, &out, back, cin, dx);
  } else if (shape == UP) {
    ms_conv_backward_x(&conv, compute, precision, &out, dy, MSK_F32, dx_up);
    for (int64_t t = 0; t < frames; t++)
      for (int64_t v = 0; v < out.height; v++)
        for (int64_t u = 0; u < out.width; u++)
          for (int64_t c = 0; c < cin; c++)
            dx[(t * ms_grid_step(&in) + v / 2 * ms_grid_pitch(&in) + u / 2) * cin + c] +=
                dx_up[(t * ms_grid_step(&out) + v * ms_grid_pitch(&out) + u) * cin + c];
  } else {
    ms_conv_backward_x(&conv, compute, precision, &out, dy, MSK_F32, dx);
  }
  if (ms_conv_backward_w(&conv, compute, precision, &out, read, MSK_F32, dy, MSK_F32,
                         grad + params.list[conv.weight].offset, &work, &error) < 0 ||
      ms_conv_column_sums(compute, dy, cout, ms_grid_rows(&out), NULL, grad + params.list[conv.bias].offset,
                          &work, &error) < 0)
    exit(99);
  planar = check_alloc_f32(yv->count);
  if (shape == LINEAR)
    memcpy(planar, y, (size_t)yv->count * 4);
  else
    move(&out, cout, y, planar, yv->dims[1], 0, every, 1);
  check_relative_l2_f32(planar, load(op, "y"), yv->count, tolerance, "%s %s %s y", op, kind, set);
  planar = check_alloc_f32(xv->count);
  if (shape == LINEAR)
    memcpy(planar, dx, (size_t)xv->count * 4);
  else
    move(&in, cin, dx, planar, frames, first, 1, 1);
  check_relative_l2_f32(planar, load(op, "d.x"), xv->count, tolerance, "%s %s %s dx", op, kind, set);
  if (cache) {
    planar = check_alloc_f32(cv->count);
    move(&in, cin, dx, planar, cache, -cache, 1, 1);
    check_relative_l2_f32(planar, load(op, "d.cache"), cv->count, tolerance, "%s %s %s dcache", op, kind,
                          set);
  }
  check_relative_l2_f32(grad + params.list[conv.weight].offset, load(op, "d.weight"), wv->count, tolerance,
                        "%s %s %s dweight", op, kind, set);
  check_relative_l2_f32(grad + params.list[conv.bias].offset, load(op, "d.bias"), cout, tolerance,
                        "%s %s %s dbias", op, kind, set);
  ms_conv_release(&conv);
  ms_conv_work_release(&work);
  ms_params_release(&params);
  ms_arena_release(&arena);
  check_free_all();
}

int main(int argc, char **argv) {
  const char *folder = getenv("MEGASLIDE_FIXTURES");
  struct ms_error error = {0};
  unsigned sets[8];
  int count;
  char path[1024];
  check_begin(argc, argv);
  snprintf(path, sizeof path, "%s/ops.safetensors", folder ? folder : GOLDEN_DIR);
  if (ms_safetensors_open(&file, path, &error) < 0) {
    fprintf(stderr, "%s\n", error.message);
    return 99;
  }
  count = check_sets(sets);
  for (int i = 0; i < count; i++) {
    struct ms_compute compute;
    if (ms_compute_open(&compute, 2, sets[i], &error) < 0)
      return 99;
    for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
      for (int precision = 0; precision < 2; precision++)
        run(&compute, precision, ops[op].op, ops[op].shape);
    ms_compute_release(&compute);
  }
  ms_safetensors_close(&file);
  return check_end();
}
