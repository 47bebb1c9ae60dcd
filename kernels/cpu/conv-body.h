/* Depthwise convolution over vectors of channels. A tile of up to TILE neighbouring outputs of one vector of
 * channels is held in registers; each of the nine lines that it sees is read once, and an element read serves
 * the three outputs around it. The gradient of x is the same with the taps in reverse. */
#pragma once

#define TILE (VEC == 16 ? 12 : 8)

static size_t depthwise_scratch(const struct msk_depthwise *p) {
  return (size_t)((p->c + VEC - 1) / VEC) * 27 * VEC * sizeof(float);
}

/* [C,27] to blocks of [27,VEC], the lanes past the last channel zero. */
static void pack_taps(const struct msk_depthwise *p, int reversed, float *packed) {
  for (int64_t c0 = 0; c0 < p->c; c0 += VEC, packed += 27 * VEC) {
    const float *weight = p->weight + c0 * 27;
    int lanes = p->c - c0 < VEC ? (int)(p->c - c0) : VEC;
    if (lanes < VEC)
      memset(packed, 0, 27 * VEC * sizeof *packed);
    for (int tap = 0; tap < 27; tap++)
      for (int lane = 0; lane < lanes; lane++)
        packed[(reversed ? 26 - tap : tap) * VEC + lane] = weight[lane * 27 + tap];
  }
}

/* The nine lines (dt,dy) around a line, at column 0 and channel 0; NULL outside the lattice. */
static void lines_around(const struct msk_depthwise *p, const float *source, int64_t line,
                         const float *rows[9]) {
  int64_t t = line / p->lattice[1], y = line % p->lattice[1];
  for (int k = 0; k < 9; k++) {
    int64_t tt = t + k / 3 - 1, yy = y + k % 3 - 1;
    int inside = tt >= 0 && tt < p->lattice[0] && yy >= 0 && yy < p->lattice[1];
    rows[k] = inside ? source + (tt * p->lattice[1] + yy) * p->lattice[2] * p->c : NULL;
  }
}

/* Where a tile lies and what its outputs start from. */
struct conv_tile {
  const float *rows[9];
  int64_t at, ld;     /* offset of its first column and channel in a line; channels */
  int left, right;    /* whether the columns beside it exist */
  const float *start; /* [VEC] or NULL: bias */
  const float *taps;  /* [27,VEC] */
  float *out;
  int accumulate;
};

VEC_INLINE void conv_tile(const struct conv_tile *k, int columns, int lanes) {
  vec_f32 sum[12];
#pragma GCC unroll 12
  for (int j = 0; j < columns; j++) {
    sum[j] = k->start ? vec_load_n(k->start, lanes) : vec_set(0);
    if (k->accumulate)
      sum[j] += vec_load_n(k->out + j * k->ld, lanes);
  }
  for (int line = 0; line < 9; line++) {
    const float *row = k->rows[line], *taps = k->taps + line * 3 * VEC;
    vec_f32 w0 = vec_load(taps), w1 = vec_load(taps + VEC), w2 = vec_load(taps + 2 * VEC);
    if (!row)
      continue;
    row += k->at;
    if (k->left)
      sum[0] = vec_fma(w0, vec_load_n(row - k->ld, lanes), sum[0]);
#pragma GCC unroll 12
    for (int j = 0; j < columns; j++) {
      vec_f32 v = vec_load_n(row + j * k->ld, lanes);
      if (j > 0)
        sum[j - 1] = vec_fma(w2, v, sum[j - 1]);
      sum[j] = vec_fma(w1, v, sum[j]);
      if (j + 1 < columns)
        sum[j + 1] = vec_fma(w0, v, sum[j + 1]);
    }
    if (k->right)
      sum[columns - 1] = vec_fma(w2, vec_load_n(row + columns * k->ld, lanes), sum[columns - 1]);
  }
#pragma GCC unroll 12
  for (int j = 0; j < columns; j++)
    vec_store_n(k->out + j * k->ld, lanes, sum[j]);
}

static void conv_tile_of(const struct conv_tile *k, int columns) {
  switch (columns) {
  case 1:
    conv_tile(k, 1, VEC);
    break;
  case 2:
    conv_tile(k, 2, VEC);
    break;
  case 3:
    conv_tile(k, 3, VEC);
    break;
  case 4:
    conv_tile(k, 4, VEC);
    break;
  case 5:
    conv_tile(k, 5, VEC);
    break;
  case 6:
    conv_tile(k, 6, VEC);
    break;
  case 7:
    conv_tile(k, 7, VEC);
    break;
  case 8:
    conv_tile(k, 8, VEC);
    break;
#if VEC == 16
  case 9:
    conv_tile(k, 9, VEC);
    break;
  case 10:
    conv_tile(k, 10, VEC);
    break;
  case 11:
    conv_tile(k, 11, VEC);
    break;
  case 12:
    conv_tile(k, 12, VEC);
    break;
#endif
  }
}

/* Columns [x0,x1) of one line, all channels. */
static void conv_columns(const struct msk_depthwise *p, struct conv_tile *k, const float *bias,
                         const float *packed, float *line, int64_t x0, int64_t x1) {
  int64_t c = 0, width = p->lattice[2];
  for (; c + VEC <= p->c; c += VEC) {
    k->left = x0 > 0;
    k->right = x1 < width;
    k->at = x0 * p->c + c;
    k->start = bias ? bias + c : NULL;
    k->taps = packed + c * 27;
    k->out = line + k->at;
    conv_tile_of(k, (int)(x1 - x0));
  }
  for (int64_t x = x0; x < x1 && c < p->c; x++) {
    k->left = x > 0;
    k->right = x + 1 < width;
    k->at = x * p->c + c;
    k->start = bias ? bias + c : NULL;
    k->taps = packed + c * 27;
    k->out = line + k->at;
    conv_tile(k, 1, (int)(p->c - c));
  }
}

static void conv_lines(const struct msk_depthwise *p, const float *source, const float *bias, int accumulate,
                       const float *packed, float *out, int64_t l0, int64_t l1) {
  int64_t width = p->lattice[2], tiles = (width + TILE - 1) / TILE;
  for (int64_t l = l0; l < l1; l++) {
    struct conv_tile k = {.ld = p->c, .accumulate = accumulate};
    lines_around(p, source, l, k.rows);
    for (int64_t tile = 0; tile < tiles; tile++)
      conv_columns(p, &k, bias, packed, out + l * width * p->c, tile * width / tiles,
                   (tile + 1) * width / tiles);
  }
}

static void depthwise(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  pack_taps(p, 0, scratch);
  conv_lines(p, p->x, p->bias, 0, scratch, p->y, l0, l1);
}

static void depthwise_backward_x(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  pack_taps(p, 1, scratch);
  conv_lines(p, p->dy, NULL, p->accumulate, scratch, p->dx, l0, l1);
}

/* Adds the taps (dy,dx) of three lines of x (those of one dt) against one line of the gradient to sums
 * [9,VEC]: nine sums in registers are as many as the latency of the multiply-add asks for. */
VEC_INLINE void conv_gradient(const float *const rows[3], const float *dy, int64_t width, int64_t ld,
                              int lanes, float *sums) {
  vec_f32 before = vec_set(0), here = vec_load_n(dy, lanes), s[9];
  const float *r0 = rows[0] ? rows[0] : dy, *r1 = rows[1], *r2 = rows[2] ? rows[2] : dy;
  for (int k = 0; k < 9; k++)
    s[k] = vec_set(0);
  for (int64_t x = 0; x < width; x++) {
    vec_f32 after = x + 1 < width ? vec_load_n(dy + (x + 1) * ld, lanes) : vec_set(0);
    vec_f32 v0 = vec_load_n(r0 + x * ld, lanes), v1 = vec_load_n(r1 + x * ld, lanes);
    vec_f32 v2 = vec_load_n(r2 + x * ld, lanes);
    s[0] = vec_fma(v0, after, s[0]);
    s[1] = vec_fma(v0, here, s[1]);
    s[2] = vec_fma(v0, before, s[2]);
    s[3] = vec_fma(v1, after, s[3]);
    s[4] = vec_fma(v1, here, s[4]);
    s[5] = vec_fma(v1, before, s[5]);
    s[6] = vec_fma(v2, after, s[6]);
    s[7] = vec_fma(v2, here, s[7]);
    s[8] = vec_fma(v2, before, s[8]);
    before = here;
    here = after;
  }
  /* A line outside the lattice was stood in for by the gradient's own; its sums are dropped. */
  for (int k = 0; k < 9; k++)
    if (rows[k / 3])
      vec_store(sums + k * VEC, vec_load(sums + k * VEC) + s[k]);
}

VEC_INLINE void conv_gradient_block(const struct msk_depthwise *p, int64_t l0, int64_t l1, int64_t c,
                                    int lanes, float *dweight, float *dbias) {
  float sums[27 * VEC] = {0};
  vec_f32 bias = vec_set(0);
  int64_t width = p->lattice[2];
  for (int64_t l = l0; l < l1; l++) {
    const float *rows[9], *dy = p->dy + l * width * p->c + c;
    lines_around(p, p->x, l, rows);
    for (int k = 0; k < 9; k++)
      rows[k] = rows[k] ? rows[k] + c : NULL;
    if (dweight)
      for (int plane = 0; plane < 3; plane++)
        if (rows[plane * 3 + 1])
          conv_gradient(rows + plane * 3, dy, width, p->c, lanes, sums + plane * 9 * VEC);
    if (dbias)
      for (int64_t x = 0; x < width; x++)
        bias += vec_load_n(dy + x * p->c, lanes);
  }
  if (dbias)
    vec_store_n(dbias + c, lanes, vec_load_n(dbias + c, lanes) + bias);
  for (int lane = 0; lane < lanes && dweight; lane++)
    for (int tap = 0; tap < 27; tap++)
      dweight[(c + lane) * 27 + tap] += sums[tap * VEC + lane];
}

static void depthwise_backward_w(const struct msk_depthwise *p, int64_t l0, int64_t l1, int64_t c0,
                                 int64_t c1, float *dweight, float *dbias) {
  int64_t c = c0;
  for (; c + VEC <= c1; c += VEC)
    conv_gradient_block(p, l0, l1, c, VEC, dweight, dbias);
  if (c < c1)
    conv_gradient_block(p, l0, l1, c, (int)(c1 - c), dweight, dbias);
}
