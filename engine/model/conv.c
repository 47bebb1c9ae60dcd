#include "model/conv.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *ms_grid_take(struct ms_arena *arena, const struct ms_grid *grid, int64_t channels, enum msk_type type,
                   int lead) {
  size_t row = (size_t)channels * msk_type_size(type);
  size_t side = (size_t)(ms_grid_margin(grid) + lead * ms_grid_step(grid)) * row;
  unsigned char *base;
  side = (side + 63) / 64 * 64;
  base = ms_arena_take(arena, 2 * side + (size_t)ms_grid_rows(grid) * row);
  return base ? base + side : NULL;
}

struct clear {
  const struct ms_grid *grid;
  unsigned char *x;
  size_t row;
};

static void clear_images(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct clear *clear = data;
  int64_t width = clear->grid->width, pitch = width + 1, lines = clear->grid->height + 1;
  for (int64_t line = begin; line < end; line++) {
    unsigned char *at = clear->x + (size_t)(line * pitch) * clear->row;
    if (line % lines == lines - 1)
      memset(at, 0, (size_t)pitch * clear->row);
    else
      memset(at + (size_t)width * clear->row, 0, clear->row);
  }
}

void ms_grid_clear(struct ms_compute *compute, const struct ms_grid *grid, void *x, int64_t channels,
                   enum msk_type type) {
  struct clear clear = {grid, x, (size_t)channels * msk_type_size(type)};
  int64_t lines = grid->frames * grid->clips * (grid->height + 1);
  ms_compute_ranges(compute, lines, lines < 4096 ? lines : 2048, clear_images, &clear);
  memset(clear.x + (size_t)ms_grid_rows(grid) * clear.row, 0, (size_t)ms_grid_margin(grid) * clear.row);
}

static int taps_of(const struct ms_conv *conv) {
  return conv->kt * conv->kh * conv->kw;
}

int ms_conv_list(struct ms_conv *conv, struct ms_params *params, const char *name, int64_t out, int64_t in,
                 int kt, int kh, int kw, int stride, int bias) {
  char text[96];
  int64_t dims[5] = {out, in};
  int ndim = 2;
  memset(conv, 0, sizeof *conv);
  conv->in = in;
  conv->out = out;
  conv->kt = kt ? kt : 1;
  conv->kh = kh;
  conv->kw = kw;
  conv->stride = stride;
  conv->bias = -1;
  assert(taps_of(conv) <= MS_CONV_MAX_TAPS &&
         (stride == 1 || (stride == 2 && kt <= 1 && kh == 3 && kw == 3)));
  if (kt)
    dims[ndim++] = kt;
  dims[ndim++] = kh;
  dims[ndim++] = kw;
  snprintf(text, sizeof text, "%s.weight", name);
  conv->weight = ms_params_add(params, text, ndim, dims);
  if (conv->weight < 0)
    return conv->weight;
  params->list[conv->weight].start = MS_START_FAN_IN;
  if (bias) {
    snprintf(text, sizeof text, "%s.bias", name);
    conv->bias = ms_params_add(params, text, 1, &out);
    if (conv->bias < 0)
      return conv->bias;
  }
  return 0;
}

void ms_conv_release(struct ms_conv *conv) {
  free(conv->order);
  free(conv->offsets);
  free(conv->forward);
  for (int i = 0; i < 4; i++)
    free(conv->backward[i]);
  conv->order = conv->offsets = NULL;
  conv->forward = NULL;
  memset(conv->backward, 0, sizeof conv->backward);
}

/* Taps of phase (py, px) of a 3x3 kernel with stride 2: kernel lines py, py + 2 and columns px, px + 2
 * below 3. */
static int phase_taps(int phase, int taps[4]) {
  int n = 0;
  for (int y = phase / 2; y < 3; y += 2)
    for (int x = phase % 2; x < 3; x += 2)
      taps[n++] = y * 3 + x;
  return n;
}

int ms_conv_taps(const struct ms_conv *conv, const struct ms_grid *grid, int64_t rows[MS_CONV_MAX_TAPS]) {
  int64_t pitch = ms_grid_pitch(grid);
  int n = 0;
  for (int t = 0; t < conv->kt; t++)
    for (int y = 0; y < conv->kh; y++)
      for (int x = 0; x < conv->kw; x++)
        if (conv->stride == 2)
          rows[n++] = (2 * (y & 1) + (x & 1)) * ms_grid_extent(grid) + y / 2 * pitch + x / 2;
        else
          rows[n++] = (t - conv->kt + 1) * ms_grid_step(grid) + (y - conv->kh / 2) * pitch + x - conv->kw / 2;
  return n;
}

struct reorder {
  const struct ms_conv *conv;
  const void *weight;
  enum msk_type type;
  float *by_out, *by_tap; /* (out, tap, in); (tap, out, in) or NULL */
};

static void reorder_weights(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct reorder *run = data;
  int64_t in = run->conv->in, out = run->conv->out;
  int taps = taps_of(run->conv);
  for (int64_t o = begin; o < end; o++)
    for (int tap = 0; tap < taps; tap++) {
      float *row = run->by_out + (o * taps + tap) * in;
      if (run->type == MSK_F32) {
        const float *from = (const float *)run->weight + o * in * taps + tap;
        for (int64_t i = 0; i < in; i++)
          row[i] = from[i * taps];
      } else {
        const uint16_t *from = (const uint16_t *)run->weight + o * in * taps + tap;
        for (int64_t i = 0; i < in; i++)
          row[i] = msk_bf16_to_f32(from[i * taps]);
      }
      if (run->by_tap)
        memcpy(run->by_tap + (tap * out + o) * in, row, (size_t)in * sizeof(float));
    }
}

static int reserve(void **packed, size_t bytes, struct ms_error *error) {
  if (*packed)
    return 0;
  bytes = (bytes + 63) / 64 * 64;
  *packed = aligned_alloc(64, bytes);
  return *packed ? 0
                 : ms_error_set(error, MS_ENOMEM, "cannot allocate %.1f MiB for packed weights",
                                (double)bytes / 1048576);
}

int ms_conv_pack(struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                 const struct ms_params *params, int training, struct ms_error *error) {
  const struct msk_product_ops *ops = &compute->product[precision];
  int taps = taps_of(conv), phases = conv->stride == 2 ? 4 : 1;
  int64_t count = conv->out * conv->in * taps;
  struct reorder run = {.conv = conv, .weight = ms_params_at(params, conv->weight), .type = params->type};
  struct msk_pack pack = {.n = conv->out, .k = taps * conv->in, .ld = taps * conv->in, .type = MSK_F32};
  int result = reserve((void **)&conv->order, (size_t)count * (training ? 2 : 1) * sizeof(float), error);
  if (result < 0 || (result = reserve(&conv->forward, ops->pack_b_bytes(pack.n, pack.k), error)) < 0)
    return result;
  if (conv->bias >= 0) {
    if ((result = reserve((void **)&conv->offsets, (size_t)conv->out * sizeof(float), error)) < 0)
      return result;
    ms_params_read_f32(params, conv->bias, conv->offsets);
  }
  run.by_out = conv->order;
  run.by_tap = training ? conv->order + count : NULL;
  ms_compute_ranges(compute, conv->out, 16, reorder_weights, &run);
  pack.src = run.by_out;
  ms_compute_pack(compute, precision, &pack, conv->forward);
  for (int phase = 0; training && phase < phases; phase++) {
    int list[4], n = conv->stride == 2 ? phase_taps(phase, list) : taps;
    struct msk_pack back = {.n = conv->in, .ld = conv->in, .type = MSK_F32, .transposed = 1};
    back.k = n * conv->out;
    if (conv->stride == 2) { /* taps of the phase one after the other, over the (out, tap, in) copy that is no
                                longer needed */
      for (int i = 0; i < n; i++)
        memcpy(run.by_out + i * conv->out * conv->in, run.by_tap + list[i] * conv->out * conv->in,
               (size_t)(conv->out * conv->in) * sizeof(float));
      back.src = run.by_out;
    } else {
      back.src = run.by_tap;
    }
    result = reserve(&conv->backward[phase], ops->pack_b_bytes(back.n, back.k), error);
    if (result < 0)
      return result;
    ms_compute_pack(compute, precision, &back, conv->backward[phase]);
  }
  return 0;
}

void ms_conv_forward(const struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                     const struct ms_grid *grid, const void *x, enum msk_type x_type, const float *residual,
                     float *y) {
  int64_t rows[MS_CONV_MAX_TAPS];
  int taps = ms_conv_taps(conv, grid, rows);
  struct msk_product product = {
      .m = ms_grid_rows(grid),
      .n = conv->out,
      .k = taps * conv->in,
      .a = x,
      .a_type = x_type,
      .a_ld = conv->in,
      .taps = taps,
      .tap_rows = rows,
      .b = conv->forward,
      .c = y,
      .c_type = MSK_F32,
      .c_ld = conv->out,
      .bias = conv->offsets,
      .residual = residual,
      .residual_ld = conv->out,
  };
  ms_compute_product(compute, precision, &product);
  if (conv->bias >= 0 || conv->kh * conv->kw > 1)
    ms_grid_clear(compute, grid, y, conv->out, MSK_F32);
}

void ms_conv_backward_x(const struct ms_conv *conv, struct ms_compute *compute, enum msk_precision precision,
                        const struct ms_grid *grid, const void *dy, enum msk_type dy_type, float *dx) {
  int64_t rows[MS_CONV_MAX_TAPS], back[MS_CONV_MAX_TAPS];
  int taps = ms_conv_taps(conv, grid, rows);
  struct msk_product product = {
      .n = conv->in,
      .a_type = dy_type,
      .a_ld = conv->out,
      .tap_rows = back,
      .c_type = MSK_F32,
      .c_ld = conv->in,
  };
  if (conv->stride == 2) {
    int64_t extent = ms_grid_extent(grid);
    for (int phase = 0; phase < 4; phase++) {
      int list[4];
      product.taps = phase_taps(phase, list);
      for (int i = 0; i < product.taps; i++)
        back[i] = phase * extent - rows[list[i]];
      product.m = ms_grid_rows(grid);
      product.k = product.taps * conv->out;
      product.a = dy;
      product.b = conv->backward[phase];
      product.c = dx + phase * extent * conv->in;
      ms_compute_product(compute, precision, &product);
    }
    return;
  }
  {
    int64_t lead = (conv->kt - 1) * ms_grid_step(grid);
    struct ms_grid with_lead = *grid;
    with_lead.frames += conv->kt - 1;
    for (int i = 0; i < taps; i++)
      back[i] = -rows[i];
    product.m = ms_grid_rows(&with_lead);
    product.k = taps * conv->out;
    product.taps = taps;
    product.a = (const unsigned char *)dy - (size_t)(lead * conv->out) * msk_type_size(dy_type);
    product.b = conv->backward[0];
    product.c = dx - lead * conv->in;
    ms_compute_product(compute, precision, &product);
    ms_grid_clear(compute, &with_lead, product.c, conv->in, MSK_F32);
  }
}

struct phases {
  const struct ms_grid *full, *half;
  const float *x;
  int64_t channels;
  unsigned char *phases;
  enum msk_type type;
  void (*to_bf16)(const float *, uint16_t *, int64_t);
  const float *from;
  float *dx;
};

/* Lines of the half grid, padding included. */
static void gather_lines(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct phases *run = data;
  const struct ms_grid *full = run->full, *half = run->half;
  size_t size = msk_type_size(run->type);
  int64_t c = run->channels, lines = half->height + 1, pitch = ms_grid_pitch(half);
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / lines, y = line % lines;
    for (int phase = 0; phase < 4; phase++) {
      unsigned char *to = run->phases + (size_t)((phase * ms_grid_extent(half) + line * pitch) * c) * size;
      int64_t fy = 2 * y + phase / 2;
      const float *from = run->x + (image * ms_grid_plane(full) + fy * ms_grid_pitch(full)) * c;
      for (int64_t x = 0; x < pitch; x++) {
        int64_t fx = 2 * x + phase % 2;
        unsigned char *pixel = to + (size_t)(x * c) * size;
        if (fy >= full->height || fx >= full->width)
          memset(pixel, 0, (size_t)c * size);
        else if (run->type == MSK_F32)
          memcpy(pixel, from + fx * c, (size_t)c * size);
        else
          run->to_bf16(from + fx * c, (uint16_t *)pixel, c);
      }
    }
  }
}

void ms_conv_phases(struct ms_compute *compute, const struct ms_grid *full, const struct ms_grid *half,
                    const float *x, int64_t channels, void *phases, enum msk_type type) {
  struct phases run = {full, half, x, channels, phases, type, compute->adamw.f32_to_bf16, NULL, NULL};
  size_t row = (size_t)channels * msk_type_size(type);
  for (int phase = 0; phase < 4; phase++)
    memset(run.phases + (size_t)(phase * ms_grid_extent(half) + ms_grid_rows(half)) * row, 0,
           (size_t)ms_grid_margin(half) * row);
  ms_compute_ranges(compute, half->frames * half->clips * (half->height + 1), 64, gather_lines, &run);
}

/* Lines of the full grid, padding included. */
static void scatter_lines(void *data, int64_t begin, int64_t end, void *scratch) {
  const struct phases *run = data;
  const struct ms_grid *full = run->full, *half = run->half;
  int64_t c = run->channels, lines = full->height + 1, pitch = ms_grid_pitch(full);
  for (int64_t line = begin; line < end; line++) {
    int64_t image = line / lines, y = line % lines;
    float *to = run->dx + line * pitch * c;
    if (y == full->height) {
      memset(to, 0, (size_t)(pitch * c) * sizeof(float));
      continue;
    }
    for (int64_t x = 0; x < full->width; x++) {
      int64_t phase = 2 * (y & 1) + (x & 1);
      int64_t row =
          phase * ms_grid_extent(half) + image * ms_grid_plane(half) + y / 2 * ms_grid_pitch(half) + x / 2;
      memcpy(to + x * c, run->from + row * c, (size_t)c * sizeof(float));
    }
    memset(to + full->width * c, 0, (size_t)c * sizeof(float));
  }
}

void ms_conv_unphase(struct ms_compute *compute, const struct ms_grid *full, const struct ms_grid *half,
                     const float *phases, int64_t channels, float *dx) {
  struct phases run = {full, half, NULL, channels, NULL, MSK_F32, NULL, phases, dx};
  memset(dx + ms_grid_rows(full) * channels, 0, (size_t)(ms_grid_margin(full) * channels) * sizeof(float));
  ms_compute_ranges(compute, full->frames * full->clips * (full->height + 1), 64, scatter_lines, &run);
}
