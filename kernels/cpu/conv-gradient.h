/* Gradient of the weights of the depthwise convolution over vectors of channels. Follows conv-lines.h. */
#pragma once

#define GROUP 4 /* vectors of channels that go along a line together */

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

/* Up to GROUP vectors of channels from c on; the sums of one line are added to those of the lines before it.
 */
static void conv_gradient_group(const struct msk_depthwise *p, int64_t l0, int64_t l1, int64_t c, int64_t c1,
                                float *dweight, float *dbias) {
  float sums[GROUP][27 * VEC] = {0}, bias[GROUP][VEC] = {0};
  int64_t width = p->lattice[2];
  int groups = (int)((c1 - c + VEC - 1) / VEC);
  for (int64_t l = l0; l < l1; l++) {
    const float *rows[9], *around[9], *dy = p->dy + l * width * p->c;
    lines_around(p, p->x, l, rows);
    for (int g = 0; g < groups; g++) {
      int64_t at = c + g * VEC;
      int lanes = (int)least(VEC, c1 - at);
      for (int k = 0; k < 9; k++)
        around[k] = rows[k] ? rows[k] + at : NULL;
      for (int plane = 0; plane < 3 && dweight; plane++) {
        if (!around[plane * 3 + 1])
          continue;
        if (lanes == VEC)
          conv_gradient(around + plane * 3, dy + at, width, p->c, VEC, sums[g] + plane * 9 * VEC);
        else
          conv_gradient(around + plane * 3, dy + at, width, p->c, lanes, sums[g] + plane * 9 * VEC);
      }
      if (dbias) {
        vec_f32 sum = vec_load(bias[g]);
        for (int64_t x = 0; x < width; x++)
          sum += vec_load_n(dy + at + x * p->c, lanes);
        vec_store(bias[g], sum);
      }
    }
  }
  for (int64_t k = 0; k < c1 - c; k++) {
    for (int tap = 0; tap < 27 && dweight; tap++)
      dweight[(c + k) * 27 + tap] += sums[k / VEC][tap * VEC + k % VEC];
    if (dbias)
      dbias[c + k] += bias[k / VEC][k % VEC];
  }
}

static void depthwise_backward_w(const struct msk_depthwise *p, int64_t l0, int64_t l1, int64_t c0,
                                 int64_t c1, float *dweight, float *dbias) {
  for (int64_t c = c0; c < c1; c += GROUP * VEC)
    conv_gradient_group(p, l0, l1, c, least(c + GROUP * VEC, c1), dweight, dbias);
}
