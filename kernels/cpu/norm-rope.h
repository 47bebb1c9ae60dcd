/* RMS norm and rotary embedding over vectors. A table row has the shape of the elements that it rotates (cos,
 * sin over a pair), so a part of a head is a row of vectors of its own; the two passes over a row meet in L1.
 */
#pragma once

struct rope_row {
  const float *table[3];
  int64_t width[3]; /* floats: twice the pairs */
};

static struct rope_row rope_row_at(const struct msk_rms_rope *p, int64_t r) {
  int64_t h = p->lattice[1], w = p->lattice[2], token = r % (p->lattice[0] * h * w);
  struct rope_row row = {.width = {2 * p->pairs_t, 2 * p->pairs_y, 2 * p->pairs_x}};
  assert((row.width[0] + row.width[1] + row.width[2]) * p->heads == p->c);
  row.table[0] = p->rope_t + token / (h * w) * row.width[0];
  row.table[1] = p->rope_y + token / w % h * row.width[1];
  row.table[2] = p->rope_x + token % w * row.width[2];
  return row;
}

/* y = weight x factor, the weight left out where there is none. */
VEC_INLINE vec_f32 scaled_n(const float *x, const float *weight, vec_f32 factor, int64_t i, int n) {
  vec_f32 v = vec_load_n(x + i, n) * factor;
  if (weight)
    v *= vec_load_n(weight + i, n);
  return v;
}

VEC_INLINE void scale_body(const float *x, const float *weight, vec_f32 factor, float *y, int64_t i, int n) {
  vec_store_n(y + i, n, scaled_n(x, weight, factor, i, n));
}

VEC_INLINE void rotate_body(const float *x, const float *weight, vec_f32 factor, const float *table, float *y,
                            int64_t i, int n) {
  vec_store_n(y + i, n, vec_rotate(scaled_n(x, weight, factor, i, n), vec_load_n(table + i, n), 0));
}

static void rms_rope(const struct msk_rms_rope *p, int64_t r0, int64_t r1) {
  for (int64_t r = r0; r < r1; r++) {
    const float *x = p->x + r * p->x_ld, *weight = p->weight;
    float *y = p->y + r * p->y_ld, rstd = 1;
    vec_f32 factor;
    if (weight) {
      rstd = reciprocal_root(sum_squares_row(x, 0, p->c) / (double)p->c, p->eps);
      if (p->rstd)
        p->rstd[r] = rstd;
    }
    factor = vec_set(rstd);
    if (p->rope_t) {
      struct rope_row row = rope_row_at(p, r);
      for (int64_t head = 0; head < p->heads; head++)
        for (int part = 0; part < 3; part++) {
          int64_t width = row.width[part];
          VEC_ROW(width, rotate_body, x, weight, factor, row.table[part], y);
          x += width;
          y += width;
          weight = weight ? weight + width : NULL;
        }
    } else {
      VEC_ROW(p->c, scale_body, x, weight, factor, y);
    }
  }
}

/* Gradient before the rotation, kept in dx (which may be dy), and its product with weight and x. */
VEC_INLINE void unrotate_body(const float *dy, const float *table, const float *x, const float *weight,
                              float *dx, vec_f32 *dot, int64_t i, int n) {
  vec_f32 g = vec_rotate(vec_load_n(dy + i, n), vec_load_n(table + i, n), 1);
  vec_store_n(dx + i, n, g);
  if (weight)
    *dot = vec_fma(g * vec_load_n(weight + i, n), vec_load_n(x + i, n), *dot);
}

VEC_INLINE void weighted_dot_body(const float *g, const float *x, const float *weight, vec_f32 *dot,
                                  int64_t i, int n) {
  *dot = vec_fma(vec_load_n(g + i, n) * vec_load_n(weight + i, n), vec_load_n(x + i, n), *dot);
}

struct rms_rows {
  const float *x[ROWS], *g[ROWS];
  float *dx[ROWS];
  float rstd[ROWS], dot[ROWS]; /* dot: of g weight x, times rstd^2 / c */
};

VEC_INLINE void rms_dx_body(const struct rms_rows *rows, int count, const float *weight, float *dweight,
                            int64_t i, int n) {
  vec_f32 w = vec_load_n(weight + i, n), dw = vec_set(0);
  for (int k = 0; k < count; k++) {
    vec_f32 g = vec_load_n(rows->g[k] + i, n), x = vec_load_n(rows->x[k] + i, n),
            rstd = vec_set(rows->rstd[k]);
    dw = vec_fma(g * rstd, x, dw);
    vec_store_n(rows->dx[k] + i, n, vec_fnma(x, vec_set(rows->dot[k]), g * w) * rstd);
  }
  if (dweight)
    vec_store_n(dweight + i, n, vec_load_n(dweight + i, n) + dw);
}

/* The first pass over a row of the backward pass. Without a table the gradient is read where it is. */
static void rms_rope_unrotate(const struct msk_rms_rope *p, int64_t r, struct rms_rows *rows, int k) {
  const float *x = p->x + r * p->x_ld, *dy = p->dy + r * p->dy_ld, *weight = p->weight;
  float *dx = p->dx + r * p->dx_ld;
  vec_f32 dots[2] = {vec_set(0), vec_set(0)};
  rows->x[k] = x;
  rows->dx[k] = dx;
  rows->g[k] = p->rope_t ? dx : dy;
  if (p->rope_t) {
    struct rope_row row = rope_row_at(p, r);
    for (int64_t head = 0; head < p->heads; head++)
      for (int part = 0; part < 3; part++) {
        int64_t width = row.width[part];
        VEC_ROW(width, unrotate_body, dy, row.table[part], x, weight, dx, dots + (part & 1));
        x += width;
        dy += width;
        dx += width;
        weight = weight ? weight + width : NULL;
      }
  } else if (weight) {
    VEC_ROW(p->c, weighted_dot_body, dy, x, weight, dots);
  } else if (dx != dy) {
    memmove(dx, dy, (size_t)p->c * sizeof *dx);
  }
  if (p->weight) {
    rows->rstd[k] = p->rstd[r];
    rows->dot[k] = vec_sum(dots[0] + dots[1]) * p->rstd[r] * p->rstd[r] / (float)p->c;
  }
}

static void rms_rope_backward(const struct msk_rms_rope *p, int64_t r0, int64_t r1, float *dweight) {
  struct rms_rows rows;
  int64_t r = r0;
  for (; r + ROWS <= r1; r += ROWS) {
    for (int k = 0; k < ROWS; k++)
      rms_rope_unrotate(p, r + k, &rows, k);
    if (p->weight)
      VEC_ROW(p->c, rms_dx_body, &rows, ROWS, p->weight, dweight);
  }
  for (; r < r1; r++) {
    rms_rope_unrotate(p, r, &rows, 0);
    if (p->weight)
      VEC_ROW(p->c, rms_dx_body, &rows, 1, p->weight, dweight);
  }
}
