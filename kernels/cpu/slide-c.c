/* 3D deformable slide attention: the specification. Samples directly, one point and one corner after the
 * other, with double accumulators; only dk and dv, which belong to the caller, are added to in float32. */
#include "slide.h"
#include "msk-cpu.h"

#include <assert.h>
#include <math.h>

struct point {
  int64_t row[8];
  double weight[8];
  double slope[8][3]; /* derivative of the weight by t, y, x */
  double moved[3];    /* d Delta / d z */
};

/* Scratch of one call: everything about the window of one token. */
struct window {
  struct point *points; /* [K] */
  double *weights;      /* [K], P */
  double *doffset;      /* [K, 3] */
  double *dq;           /* [head_dim] */
};

static size_t scratch_bytes(const struct msk_slide *p) {
  size_t points = (size_t)msk_slide_window_points(p);
  return points * (sizeof(struct point) + 4 * sizeof(double)) + (size_t)p->head_dim * sizeof(double);
}

static struct window scratch_split(const struct msk_slide *p, void *scratch) {
  int64_t points = msk_slide_window_points(p);
  struct window w = {.points = scratch};
  w.weights = (double *)(w.points + points);
  w.doffset = w.weights + points;
  w.dq = w.doffset + points * 3;
  return w;
}

static void place_point(const struct msk_slide *p, const int64_t base[3], const int64_t at[3], const float *z,
                        struct point *point) {
  struct msk_slide_axis axis[3];
  for (int a = 0; a < 3; a++) {
    double tangent = z ? tanh((double)z[a] / p->bounds[a]) : 0;
    axis[a] = msk_slide_axis(base[a] + at[a], (float)(p->bounds[a] * tangent), p->lattice[a]);
    point->moved[a] = 1 - tangent * tangent;
  }
  for (int c = 0; c < 8; c++) {
    int upper[3] = {c >> 2, c >> 1 & 1, c & 1};
    double factor[3];
    int64_t row = 0;
    for (int a = 0; a < 3; a++) {
      factor[a] = upper[a] ? axis[a].fraction : 1 - (double)axis[a].fraction;
      row = row * p->lattice[a] + axis[a].cell + (upper[a] ? axis[a].step : 0);
    }
    point->row[c] = row;
    point->weight[c] = factor[0] * factor[1] * factor[2];
    for (int a = 0; a < 3; a++) {
      double others = factor[(a + 1) % 3] * factor[(a + 2) % 3];
      point->slope[c][a] = !axis[a].step ? 0 : upper[a] ? others : -others;
    }
  }
}

static void place_window(const struct msk_slide *p, int64_t group, int64_t token, struct point *points) {
  int64_t at[3], base[3], index[3];
  int64_t count = msk_slide_window_points(p);
  index[2] = token % p->lattice[2];
  index[1] = token / p->lattice[2] % p->lattice[1];
  index[0] = token / p->lattice[2] / p->lattice[1];
  for (int a = 0; a < 3; a++)
    base[a] = msk_slide_base(index[a], p->window[a], p->lattice[a]);
  for (at[0] = 0; at[0] < p->window[0]; at[0]++)
    for (at[1] = 0; at[1] < p->window[1]; at[1]++)
      for (at[2] = 0; at[2] < p->window[2]; at[2]++) {
        int64_t j = (at[0] * p->window[1] + at[1]) * p->window[2] + at[2];
        const float *z = NULL;
        if (p->z)
          z = p->z + token * p->z_ld + (p->mode == MSK_SLIDE_POINT ? group * count + j : group) * 3;
        place_point(p, base, at, z, &points[j]);
      }
}

static double dot(const float *a, const float *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    sum += (double)a[i] * b[i];
  return sum;
}

static void check(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1) {
  assert(p->heads % p->groups == 0 && group >= 0 && group < p->groups);
  assert(i0 >= 0 && i1 <= p->lattice[0] * p->lattice[1] * p->lattice[2]);
  for (int a = 0; a < 3; a++)
    assert(p->window[a] >= 1 && p->window[a] <= p->lattice[a] && p->bounds[a] > 0);
}

static void forward_head(const struct msk_slide *p, int64_t head, int64_t token, struct window *w) {
  int64_t count = msk_slide_window_points(p), first = head * p->head_dim;
  const float *q = p->q + token * p->q_ld + first;
  float *o = p->o + token * p->o_ld + first;
  double top = -INFINITY, sum = 0;
  for (int64_t j = 0; j < count; j++) {
    double score = 0;
    for (int c = 0; c < 8; c++)
      if (w->points[j].weight[c] != 0)
        score += w->points[j].weight[c] * dot(q, p->k + w->points[j].row[c] * p->k_ld + first, p->head_dim);
    w->weights[j] = score * p->scale;
    top = fmax(top, w->weights[j]);
  }
  for (int64_t j = 0; j < count; j++)
    sum += w->weights[j] = exp(w->weights[j] - top);
  for (int64_t d = 0; d < p->head_dim; d++) {
    double value = 0;
    for (int64_t j = 0; j < count; j++)
      for (int c = 0; c < 8; c++)
        if (w->points[j].weight[c] != 0)
          value += w->weights[j] * w->points[j].weight[c] * p->v[w->points[j].row[c] * p->v_ld + first + d];
    o[d] = (float)(value / sum);
  }
  if (p->lse)
    p->lse[token * p->heads + head] = (float)(top + log(sum));
}

static void forward(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1, void *scratch) {
  struct window w = scratch_split(p, scratch);
  int64_t heads = p->heads / p->groups;
  check(p, group, i0, i1);
  for (int64_t token = i0; token < i1; token++) {
    place_window(p, group, token, w.points);
    for (int64_t head = group * heads; head < (group + 1) * heads; head++)
      forward_head(p, head, token, &w);
  }
}

static void backward_head(const struct msk_slide *p, int64_t head, int64_t token, struct window *w) {
  int64_t count = msk_slide_window_points(p), first = head * p->head_dim;
  const float *q = p->q + token * p->q_ld + first, *d_o = p->d_o + token * p->d_o_ld + first;
  float *dq = p->dq + token * p->dq_ld + first;
  double mean = dot(d_o, p->o + token * p->o_ld + first, p->head_dim);
  double lse = p->lse[token * p->heads + head];
  for (int64_t d = 0; d < p->head_dim; d++)
    w->dq[d] = 0;
  for (int64_t j = 0; j < count; j++) {
    const struct point *point = &w->points[j];
    double qk[8], ov[8], score = 0, dweight = 0;
    for (int c = 0; c < 8; c++) {
      qk[c] = p->scale * dot(q, p->k + point->row[c] * p->k_ld + first, p->head_dim);
      ov[c] = dot(d_o, p->v + point->row[c] * p->v_ld + first, p->head_dim);
      score += point->weight[c] * qk[c];
      dweight += point->weight[c] * ov[c];
    }
    double weight = exp(score - lse), dscore = weight * (dweight - mean);
    for (int c = 0; c < 8; c++) {
      const float *k = p->k + point->row[c] * p->k_ld + first;
      float *dk = p->dk + point->row[c] * p->dk_ld + first, *dv = p->dv + point->row[c] * p->dv_ld + first;
      for (int a = 0; a < 3; a++)
        w->doffset[j * 3 + a] += point->slope[c][a] * (dscore * qk[c] + weight * ov[c]);
      if (point->weight[c] == 0)
        continue;
      double to_k = dscore * point->weight[c] * p->scale, to_v = weight * point->weight[c];
      for (int64_t d = 0; d < p->head_dim; d++) {
        w->dq[d] += to_k * k[d];
        dk[d] = (float)(dk[d] + to_k * q[d]);
        dv[d] = (float)(dv[d] + to_v * d_o[d]);
      }
    }
  }
  for (int64_t d = 0; d < p->head_dim; d++)
    dq[d] = (float)w->dq[d];
}

static void write_doffset(const struct msk_slide *p, int64_t group, int64_t token, const struct window *w) {
  int64_t count = msk_slide_window_points(p);
  float *dz = p->dz + token * p->dz_ld + (p->mode == MSK_SLIDE_POINT ? group * count : group) * 3;
  for (int a = 0; a < 3; a++) {
    double sum = 0;
    for (int64_t j = 0; j < count; j++) {
      double moved = w->doffset[j * 3 + a] * w->points[j].moved[a];
      if (p->mode == MSK_SLIDE_POINT)
        dz[j * 3 + a] = (float)moved;
      sum += moved;
    }
    if (p->mode == MSK_SLIDE_SHIFT)
      dz[a] = (float)sum;
  }
}

static void backward(const struct msk_slide *p, int64_t group, int64_t i0, int64_t i1, void *scratch) {
  struct window w = scratch_split(p, scratch);
  int64_t heads = p->heads / p->groups, count = msk_slide_window_points(p);
  check(p, group, i0, i1);
  for (int64_t token = i0; token < i1; token++) {
    place_window(p, group, token, w.points);
    for (int64_t i = 0; i < count * 3; i++)
      w.doffset[i] = 0;
    for (int64_t head = group * heads; head < (group + 1) * heads; head++)
      backward_head(p, head, token, &w);
    if (p->dz)
      write_doffset(p, group, token, &w);
  }
}

static size_t pack_bytes(const struct msk_slide *p) {
  return 0;
}

static void pack(const struct msk_slide *p, int64_t group, void *packed_group) {
}

void msk_slide_init(struct msk_slide_ops *f32, struct msk_slide_ops *bf16, unsigned cpu_flags) {
  *f32 = (struct msk_slide_ops){
      .name = "c",
      .precision = MSK_PRECISION_F32,
      .token_step = 1,
      .pack_bytes = pack_bytes,
      .pack = pack,
      .forward_scratch = scratch_bytes,
      .forward = forward,
      .backward_scratch = scratch_bytes,
      .backward = backward,
  };
  *bf16 = *f32;
  bf16->precision = MSK_PRECISION_BF16;
#if MSK_X86
  if (!(cpu_flags & MSK_CPU_AVX512))
    return;
  msk_slide_init_avx512(f32, bf16);
  if (!(cpu_flags & MSK_CPU_AVX512BF16))
    return;
  msk_slide_init_avx512bf16(bf16);
  if (!(cpu_flags & MSK_CPU_AMX))
    return;
  msk_slide_init_amx(bf16);
#endif
}
