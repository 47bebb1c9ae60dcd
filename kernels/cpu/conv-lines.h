/* Depthwise convolution over vectors of channels. A tile of up to TILE neighbouring outputs of one vector of
 * channels is held in registers; each of the nine lines that it sees is read once, and an element read serves
 * the three outputs around it. The gradient of x is the same with the taps in reverse.
 *
 * Neighbours in a line lie C channels apart, a distance that maps them to a few sets of the caches. So,
 * unless all that a call reads fits the cache, the lines in use are copied, a chunk of channels at a time, to
 * a ring in scratch where they are dense: three rows of a block of planes, and each element comes from memory
 * about once. */
#pragma once

#define TILE (VEC == 16 ? 12 : 8)
#define CHUNK 256       /* channels of the ring at most */
#define CACHE (1 << 20) /* bytes of second-level cache to count on */

static int64_t least(int64_t a, int64_t b) {
  return a < b ? a : b;
}

static int64_t up_to_vec(int64_t c) {
  return (c + VEC - 1) / VEC * VEC;
}

/* Lines of [W+2,width], the outer columns zero; line (plane, y % 3), plane 0 being the one before the block.
 */
struct conv_ring {
  float *lines;
  int64_t width, line; /* floats of a position, of a line */
  int64_t block;       /* planes of a block */
};

static struct conv_ring conv_ring(const struct msk_depthwise *p, void *scratch) {
  int64_t room = CACHE / (9 * (p->lattice[2] + 2) * (int64_t)sizeof(float)) / VEC * VEC, planes;
  struct conv_ring ring = {.width = least(least(CHUNK, room > VEC ? room : VEC), up_to_vec(p->c))};
  ring.line = (p->lattice[2] + 2) * ring.width;
  planes = CACHE / (3 * ring.line * (int64_t)sizeof(float)) - 2;
  ring.block = planes < 1 ? 1 : least(planes, p->lattice[0]);
  ring.lines = (float *)scratch + up_to_vec(p->c) * 27;
  return ring;
}

static size_t depthwise_scratch(const struct msk_depthwise *p) {
  struct conv_ring ring = conv_ring(p, NULL);
  return (size_t)(up_to_vec(p->c) * 27 + (ring.block + 2) * 3 * ring.line) * sizeof(float);
}

static float *ring_line(const struct conv_ring *ring, int64_t plane, int64_t y) {
  return ring->lines + (plane * 3 + y % 3) * ring->line;
}

static void ring_clear_columns(const struct conv_ring *ring) {
  for (int64_t k = 0; k < (ring->block + 2) * 3; k++) {
    memset(ring->lines + k * ring->line, 0, (size_t)ring->width * sizeof(float));
    memset(ring->lines + (k + 1) * ring->line - ring->width, 0, (size_t)ring->width * sizeof(float));
  }
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

/* What every tile of a call shares. */
struct conv_call {
  const struct msk_depthwise *p;
  const float *source, *bias;
  const float *packed; /* taps, from pack_taps */
  float *out;
  int accumulate;
  int direct; /* source is read where it lies */
  int stream; /* outputs bypass the cache */
  struct conv_ring ring;
};

/* Copies channels [c0,c1) of row y of planes [t0,t1) to the ring, whose plane 0 is t0, and fetches the row
 * after. */
static void ring_fill(const struct conv_call *call, int64_t t0, int64_t t1, int64_t y, int64_t c0,
                      int64_t c1) {
  const struct msk_depthwise *p = call->p;
  int64_t height = p->lattice[1], columns = p->lattice[2];
  if (call->direct || y < 0 || y >= height)
    return;
  for (int64_t t = t0 < 0 ? 0 : t0; t < least(t1, p->lattice[0]); t++) {
    const float *from = call->source + (t * height + y) * columns * p->c;
    float *to = ring_line(&call->ring, t - t0, y) + call->ring.width;
    int64_t next = y + 1 < height ? columns * p->c : 0;
    for (int64_t x = 0; x < columns; x++, from += p->c, to += call->ring.width) {
      int64_t c = c0;
      for (; c + VEC <= c1; c += VEC) {
        _mm_prefetch((const char *)(from + next + c), _MM_HINT_T1);
        vec_store(to + (c - c0), vec_load(from + c));
      }
      if (c < c1)
        vec_store(to + (c - c0), vec_load_n(from + c, (int)(c1 - c)));
    }
  }
}

/* Where a tile lies and what its outputs start from. */
struct conv_tile {
  const float *rows[9]; /* at the column before the tile's first; NULL outside the lattice */
  int left, right;      /* whether the columns beside the tile are there to be read */
  int64_t width, ld;    /* floats from a column to the next, in rows and in out */
  const float *start;   /* bias or NULL */
  const float *taps;    /* [27,VEC] */
  float *out;
  int lanes, accumulate, stream;
};

VEC_INLINE void conv_tile(const struct conv_tile *k, int columns) {
  vec_f32 sum[12], start = k->start ? vec_load_n(k->start, k->lanes) : vec_set(0);
#pragma GCC unroll 12
  for (int j = 0; j < columns; j++)
    sum[j] = start;
  for (int line = 0; line < 9; line++) {
    const float *row = k->rows[line], *taps = k->taps + line * 3 * VEC;
    vec_f32 w0 = vec_load(taps), w1 = vec_load(taps + VEC), w2 = vec_load(taps + 2 * VEC);
    if (!row)
      continue;
    if (k->left)
      sum[0] = vec_fma(w0, vec_load(row), sum[0]);
#pragma GCC unroll 12
    for (int j = 0; j < columns; j++) { /* a column gives to the outputs around it */
      vec_f32 v = vec_load(row + (j + 1) * k->width);
      if (j > 0)
        sum[j - 1] = vec_fma(w2, v, sum[j - 1]);
      sum[j] = vec_fma(w1, v, sum[j]);
      if (j + 1 < columns)
        sum[j + 1] = vec_fma(w0, v, sum[j + 1]);
    }
    if (k->right)
      sum[columns - 1] = vec_fma(w2, vec_load(row + (columns + 1) * k->width), sum[columns - 1]);
  }
#pragma GCC unroll 12
  for (int j = 0; j < columns; j++) {
    if (k->accumulate)
      sum[j] += vec_load_n(k->out + j * k->ld, k->lanes);
    if (k->stream)
      vec_stream(k->out + j * k->ld, sum[j]);
    else if (k->lanes == VEC)
      vec_store(k->out + j * k->ld, sum[j]);
    else
      vec_store_n(k->out + j * k->ld, k->lanes, sum[j]);
  }
}

static void conv_tile_of(const struct conv_tile *k, int columns) {
  switch (columns) {
  case 1:
    conv_tile(k, 1);
    break;
  case 2:
    conv_tile(k, 2);
    break;
  case 3:
    conv_tile(k, 3);
    break;
  case 4:
    conv_tile(k, 4);
    break;
  case 5:
    conv_tile(k, 5);
    break;
  case 6:
    conv_tile(k, 6);
    break;
  case 7:
    conv_tile(k, 7);
    break;
  case 8:
    conv_tile(k, 8);
    break;
#if VEC == 16
  case 9:
    conv_tile(k, 9);
    break;
  case 10:
    conv_tile(k, 10);
    break;
  case 11:
    conv_tile(k, 11);
    break;
  case 12:
    conv_tile(k, 12);
    break;
#endif
  }
}

/* One line of outputs, channels [c0,c1), in plane t of a block that starts at tb. */
static void conv_line(const struct conv_call *call, int64_t t, int64_t tb, int64_t y, int64_t c0,
                      int64_t c1) {
  const struct msk_depthwise *p = call->p;
  int64_t columns = p->lattice[2], tiles = (columns + TILE - 1) / TILE;
  struct conv_tile k = {.left = 1,
                        .right = 1,
                        .width = call->ring.width,
                        .ld = p->c,
                        .accumulate = call->accumulate,
                        .stream = call->stream};
  const float *lines[9]; /* at column -1 */
  for (int n = 0; n < 9; n++) {
    int64_t tt = t + n / 3 - 1, yy = y + n % 3 - 1;
    if (tt < 0 || tt >= p->lattice[0] || yy < 0 || yy >= p->lattice[1])
      lines[n] = NULL;
    else if (call->direct)
      lines[n] = call->source + (((tt * p->lattice[1] + yy) * columns - 1) * p->c + c0);
    else
      lines[n] = ring_line(&call->ring, tt - tb + 1, yy);
  }
  if (call->direct)
    k.width = p->c;
  for (int64_t tile = 0; tile < tiles; tile++) {
    int64_t x0 = tile * columns / tiles, x1 = (tile + 1) * columns / tiles;
    if (call->direct) {
      k.left = x0 > 0;
      k.right = x1 < columns;
    }
    for (int64_t c = c0; c < c1; c += VEC) {
      for (int n = 0; n < 9; n++)
        k.rows[n] = lines[n] ? lines[n] + x0 * k.width + (c - c0) : NULL;
      k.start = call->bias ? call->bias + c : NULL;
      k.taps = call->packed + c * 27;
      k.out = call->out + ((t * p->lattice[1] + y) * columns + x0) * p->c + c;
      k.lanes = (int)least(VEC, c1 - c);
      conv_tile_of(&k, (int)(x1 - x0));
    }
  }
}

static void conv_lines(struct conv_call *call, int64_t l0, int64_t l1, void *scratch) {
  const struct msk_depthwise *p = call->p;
  int64_t height = p->lattice[1], t0 = l0 / height, t1 = (l1 + height - 1) / height;
  int64_t y0 = t1 - t0 > 1 ? 0 : l0 - t0 * height, y1 = t1 - t0 > 1 ? height : l1 - t0 * height;
  int64_t bytes = p->lattice[2] * p->c * (int64_t)sizeof(float); /* of a line */
  int whole = p->c % VEC == 0;
  call->packed = scratch;
  call->ring = conv_ring(p, scratch);
  call->direct = whole && least(t1 - t0 + 2, p->lattice[0]) * least(y1 - y0 + 2, height) * bytes <= CACHE;
  /* Outputs too many to be found in the cache later need not be read into it; whole lines of 64 bytes can
   * pass it by. */
  call->stream =
      VEC == 16 && whole && !call->accumulate && (uintptr_t)call->out % 64 == 0 && (l1 - l0) * bytes > CACHE;
  if (!call->direct)
    ring_clear_columns(&call->ring);
  for (int64_t c0 = 0; c0 < p->c; c0 += call->ring.width)
    for (int64_t tb = t0; tb < t1; tb += call->ring.block) {
      int64_t te = least(tb + call->ring.block, t1), c1 = least(c0 + call->ring.width, p->c);
      ring_fill(call, tb - 1, te + 1, y0 - 1, c0, c1);
      ring_fill(call, tb - 1, te + 1, y0, c0, c1);
      for (int64_t y = y0; y < y1; y++) {
        ring_fill(call, tb - 1, te + 1, y + 1, c0, c1);
        for (int64_t t = tb; t < te; t++)
          if (t * height + y >= l0 && t * height + y < l1)
            conv_line(call, t, tb, y, c0, c1);
      }
    }
  if (call->stream)
    _mm_sfence();
}

static void depthwise(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  struct conv_call call = {.p = p, .source = p->x, .bias = p->bias, .out = p->y};
  if (l0 >= l1)
    return;
  pack_taps(p, 0, scratch);
  conv_lines(&call, l0, l1, scratch);
}

static void depthwise_backward_x(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  struct conv_call call = {.p = p, .source = p->dy, .out = p->dx, .accumulate = p->accumulate};
  if (l0 >= l1)
    return;
  pack_taps(p, 1, scratch);
  conv_lines(&call, l0, l1, scratch);
}
