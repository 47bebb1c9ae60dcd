#include "msk-norm.h"

#include <assert.h>
#include <math.h>

#include "norm-sets.h"
#include "msk-cpu.h"

/* Columns whose sums over rows are held in double at a time. */
#define COLUMNS 64

static void store(void *y, enum msk_type type, int64_t i, double value) {
  if (type == MSK_F32)
    ((float *)y)[i] = (float)value;
  else
    ((uint16_t *)y)[i] = msk_f32_to_bf16((float)value);
}

static void layer_norm(const struct msk_layer_norm *p, int64_t r0, int64_t r1) {
  for (int64_t r = r0; r < r1; r++) {
    const float *x = p->x + r * p->x_ld;
    int64_t mod = p->scale || p->shift ? r / p->mod_rows * p->mod_ld : 0;
    double mean = 0, variance = 0, rstd;
    for (int64_t j = 0; j < p->c; j++)
      mean += x[j];
    mean /= (double)p->c;
    for (int64_t j = 0; j < p->c; j++)
      variance += (x[j] - mean) * (x[j] - mean);
    rstd = 1 / sqrt(variance / (double)p->c + p->eps);
    for (int64_t j = 0; j < p->c; j++) {
      double mul = p->scale ? p->scale[mod + j] + (p->one_plus ? 1.0 : 0.0) : 1.0;
      double add = p->shift ? p->shift[mod + j] : 0.0;
      store(p->y, p->y_type, r * p->y_ld + j, (x[j] - mean) * rstd * mul + add);
    }
    if (p->mean)
      p->mean[r] = (float)mean;
    if (p->rstd)
      p->rstd[r] = (float)rstd;
  }
}

static void layer_norm_backward(const struct msk_layer_norm *p, int64_t r0, int64_t r1, float *dmul,
                                float *dadd) {
  for (int64_t j0 = 0; j0 < p->c && (dmul || dadd); j0 += COLUMNS) {
    int64_t n = p->c - j0 < COLUMNS ? p->c - j0 : COLUMNS;
    double mul[COLUMNS] = {0}, add[COLUMNS] = {0};
    for (int64_t r = r0; r < r1; r++) {
      const float *x = p->x + r * p->x_ld + j0, *dy = p->dy + r * p->dy_ld + j0;
      double mean = p->mean[r], rstd = p->rstd[r];
      for (int64_t j = 0; j < n; j++) {
        mul[j] += dy[j] * (x[j] - mean) * rstd;
        add[j] += dy[j];
      }
    }
    for (int64_t j = 0; j < n; j++) {
      if (dmul)
        dmul[j0 + j] = (float)(dmul[j0 + j] + mul[j]);
      if (dadd)
        dadd[j0 + j] = (float)(dadd[j0 + j] + add[j]);
    }
  }
  for (int64_t r = r0; r < r1; r++) {
    const float *x = p->x + r * p->x_ld, *dy = p->dy + r * p->dy_ld;
    const float *scale = p->scale ? p->scale + r / p->mod_rows * p->mod_ld : NULL;
    float *dx = p->dx + r * p->dx_ld;
    double mean = p->mean[r], rstd = p->rstd[r], plus = p->one_plus ? 1 : 0, sum = 0, dot = 0;
    for (int64_t j = 0; j < p->c; j++) {
      double g = dy[j] * (scale ? scale[j] + plus : 1.0);
      sum += g;
      dot += g * (x[j] - mean) * rstd;
    }
    sum /= (double)p->c;
    dot /= (double)p->c;
    for (int64_t j = 0; j < p->c; j++) {
      double g = dy[j] * (scale ? scale[j] + plus : 1.0);
      double d = rstd * (g - sum - (x[j] - mean) * rstd * dot);
      dx[j] = (float)(p->accumulate ? dx[j] + d : d);
    }
  }
}

/* Where row r finds its angles: a table row for each part of a head. */
struct rope_row {
  const float *table[3];
  int64_t head, first[3]; /* elements of a head; the first of each part */
};

static struct rope_row rope_row(const struct msk_rms_rope *p, int64_t r) {
  struct rope_row row = {.head = p->c / p->heads};
  int64_t h = p->lattice[1], w = p->lattice[2], token;
  if (!p->rope_t)
    return row;
  assert(2 * (p->pairs_t + p->pairs_y + p->pairs_x) * p->heads == p->c);
  token = r % (p->lattice[0] * h * w);
  row.table[0] = p->rope_t + token / (h * w) * p->pairs_t * 2;
  row.table[1] = p->rope_y + token / w % h * p->pairs_y * 2;
  row.table[2] = p->rope_x + token % w * p->pairs_x * 2;
  row.first[1] = 2 * p->pairs_t;
  row.first[2] = 2 * (p->pairs_t + p->pairs_y);
  return row;
}

/* Cosine and sine of element j; 1 and 0 without a table. */
static void rope_at(const struct rope_row *row, int64_t j, double *cosine, double *sine) {
  int part;
  *cosine = 1;
  *sine = 0;
  if (!row->table[0])
    return;
  j = j % row->head & ~(int64_t)1;
  part = j >= row->first[2] ? 2 : j >= row->first[1] ? 1 : 0;
  *cosine = row->table[part][j - row->first[part]];
  *sine = row->table[part][j - row->first[part] + 1];
}

static void rms_rope(const struct msk_rms_rope *p, int64_t r0, int64_t r1) {
  for (int64_t r = r0; r < r1; r++) {
    const float *x = p->x + r * p->x_ld;
    float *y = p->y + r * p->y_ld;
    struct rope_row row = rope_row(p, r);
    double sum = 0, rstd = 1;
    if (p->weight) {
      for (int64_t j = 0; j < p->c; j++)
        sum += (double)x[j] * x[j];
      rstd = 1 / sqrt(sum / (double)p->c + p->eps);
      if (p->rstd)
        p->rstd[r] = (float)rstd;
    }
    if (!p->rope_t) {
      for (int64_t j = 0; j < p->c; j++)
        y[j] = (float)(x[j] * rstd * (p->weight ? p->weight[j] : 1.0));
      continue;
    }
    for (int64_t j = 0; j < p->c; j += 2) {
      double cosine, sine, a = x[j] * rstd, b = x[j + 1] * rstd;
      rope_at(&row, j, &cosine, &sine);
      if (p->weight) {
        a *= p->weight[j];
        b *= p->weight[j + 1];
      }
      y[j] = (float)(a * cosine - b * sine);
      y[j + 1] = (float)(a * sine + b * cosine);
    }
  }
}

/* Gradient of element j before the rotation. */
static double unrotated(const struct rope_row *row, int64_t j, const float *dy) {
  double cosine, sine;
  if (!row->table[0])
    return dy[j];
  rope_at(row, j, &cosine, &sine);
  return j & 1 ? dy[j] * cosine - dy[j - 1] * sine : dy[j] * cosine + dy[j + 1] * sine;
}

static void rms_rope_backward(const struct msk_rms_rope *p, int64_t r0, int64_t r1, float *dweight) {
  for (int64_t j0 = 0; j0 < p->c && p->weight && dweight; j0 += COLUMNS) {
    int64_t n = p->c - j0 < COLUMNS ? p->c - j0 : COLUMNS;
    double sum[COLUMNS] = {0};
    for (int64_t r = r0; r < r1; r++) {
      struct rope_row row = rope_row(p, r);
      for (int64_t j = 0; j < n; j++)
        sum[j] += unrotated(&row, j0 + j, p->dy + r * p->dy_ld) * p->x[r * p->x_ld + j0 + j] * p->rstd[r];
    }
    for (int64_t j = 0; j < n; j++)
      dweight[j0 + j] = (float)(dweight[j0 + j] + sum[j]);
  }
  for (int64_t r = r0; r < r1; r++) {
    const float *x = p->x + r * p->x_ld, *dy = p->dy + r * p->dy_ld;
    float *dx = p->dx + r * p->dx_ld;
    struct rope_row row = rope_row(p, r);
    double rstd = p->weight ? p->rstd[r] : 1, dot = 0;
    int64_t step = p->rope_t ? 2 : 1;
    for (int64_t j = 0; j < p->c && p->weight; j++)
      dot += unrotated(&row, j, dy) * p->weight[j] * x[j] * rstd;
    dot /= (double)p->c;
    /* Both elements of a pair are read before either is written: dx may be dy. */
    for (int64_t j = 0; j < p->c; j += step) {
      double g[2];
      for (int64_t k = 0; k < step; k++)
        g[k] = unrotated(&row, j + k, dy);
      for (int64_t k = 0; k < step; k++)
        dx[j + k] = (float)(p->weight ? rstd * (g[k] * p->weight[j + k] - x[j + k] * rstd * dot) : g[k]);
    }
  }
}

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double silu_slope(double x) {
  double s = sigmoid(x);
  return s * (1 + x * (1 - s));
}

static double norm_of(const float *x, int64_t c) {
  double sum = 0;
  for (int64_t j = 0; j < c; j++)
    sum += (double)x[j] * x[j];
  return fmax(sqrt(sum), 1e-12);
}

static void l2_norm(const float *x, const float *gamma, int64_t c, int64_t rows, int silu, void *y,
                    enum msk_type y_type) {
  for (int64_t r = 0; r < rows; r++) {
    double factor = sqrt((double)c) / norm_of(x + r * c, c);
    for (int64_t j = 0; j < c; j++) {
      double z = x[r * c + j] * factor * gamma[j];
      store(y, y_type, r * c + j, silu ? z * sigmoid(z) : z);
    }
  }
}

static double l2_upstream(double x, double gamma, double factor, int silu, double dy) {
  return silu ? dy * silu_slope(x * factor * gamma) : dy;
}

static void l2_norm_backward(const float *x, const float *gamma, int64_t c, int64_t rows, int silu,
                             const float *dy, float *dx, int accumulate, float *dgamma) {
  for (int64_t j0 = 0; j0 < c && dgamma; j0 += COLUMNS) {
    int64_t n = c - j0 < COLUMNS ? c - j0 : COLUMNS;
    double sum[COLUMNS] = {0};
    for (int64_t r = 0; r < rows; r++) {
      double factor = sqrt((double)c) / norm_of(x + r * c, c);
      for (int64_t j = 0; j < n; j++) {
        int64_t i = r * c + j0 + j;
        sum[j] += l2_upstream(x[i], gamma[j0 + j], factor, silu, dy[i]) * x[i] * factor;
      }
    }
    for (int64_t j = 0; j < n; j++)
      dgamma[j0 + j] = (float)(dgamma[j0 + j] + sum[j]);
  }
  for (int64_t r = 0; r < rows; r++) {
    const float *xr = x + r * c, *dyr = dy + r * c;
    float *dxr = dx + r * c;
    double norm = norm_of(xr, c), factor = sqrt((double)c) / norm, dot = 0;
    for (int64_t j = 0; j < c && norm > 1e-12; j++)
      dot += l2_upstream(xr[j], gamma[j], factor, silu, dyr[j]) * gamma[j] * xr[j];
    dot /= norm * norm;
    for (int64_t j = 0; j < c; j++) {
      double d = factor * (l2_upstream(xr[j], gamma[j], factor, silu, dyr[j]) * gamma[j] - xr[j] * dot);
      dxr[j] = (float)(accumulate ? dxr[j] + d : d);
    }
  }
}

#define SQRT_2_PI 0.79788456080286535588
#define GELU_CUBE 0.044715

static void gelu(const float *x, void *y, enum msk_type y_type, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double v = x[i];
    store(y, y_type, i, 0.5 * v * (1 + tanh(SQRT_2_PI * (v + GELU_CUBE * v * v * v))));
  }
}

static void gelu_backward(const void *x, enum msk_type x_type, const float *dy, float *dx, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    double v = x_type == MSK_F32 ? ((const float *)x)[i] : msk_bf16_to_f32(((const uint16_t *)x)[i]);
    double t = tanh(SQRT_2_PI * (v + GELU_CUBE * v * v * v));
    dx[i] =
        (float)(dy[i] * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * SQRT_2_PI * (1 + 3 * GELU_CUBE * v * v)));
  }
}

static void silu(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = (float)(x[i] * sigmoid(x[i]));
}

static void silu_backward(const float *x, const float *dy, float *dx, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    dx[i] = (float)(dy[i] * silu_slope(x[i]));
}

static void gate_backward(const float *dy, int64_t dy_ld, const float *b, int64_t b_ld, const float *gate,
                          int64_t c, int64_t rows, float *db, int64_t db_ld, float *dgate) {
  for (int64_t j0 = 0; j0 < c && dgate; j0 += COLUMNS) {
    int64_t n = c - j0 < COLUMNS ? c - j0 : COLUMNS;
    double sum[COLUMNS] = {0};
    for (int64_t r = 0; r < rows; r++)
      for (int64_t j = 0; j < n; j++)
        sum[j] += (double)dy[r * dy_ld + j0 + j] * b[r * b_ld + j0 + j];
    for (int64_t j = 0; j < n; j++)
      dgate[j0 + j] = (float)(dgate[j0 + j] + sum[j]);
  }
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < c; j++)
      db[r * db_ld + j] = gate[j] * dy[r * dy_ld + j];
}

static void column_sum(const float *x, int64_t ld, int64_t c, int64_t rows, float *out) {
  for (int64_t j0 = 0; j0 < c; j0 += COLUMNS) {
    int64_t n = c - j0 < COLUMNS ? c - j0 : COLUMNS;
    double sum[COLUMNS] = {0};
    for (int64_t r = 0; r < rows; r++)
      for (int64_t j = 0; j < n; j++)
        sum[j] += x[r * ld + j0 + j];
    for (int64_t j = 0; j < n; j++)
      out[j0 + j] = (float)(out[j0 + j] + sum[j]);
  }
}

static void add(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] += x[i];
}

static void axpby(float a, const float *x, float b, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = (float)((double)a * x[i] + (double)b * y[i]);
}

static double sum_squares(const float *x, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; i += 4096) {
    double sum = 0;
    for (int64_t j = i; j < n && j < i + 4096; j++)
      sum += (double)x[j] * x[j];
    total += sum;
  }
  return total;
}

void msk_norm_init(struct msk_norm_ops *ops, unsigned cpu_flags) {
  *ops = (struct msk_norm_ops){
      .name = "c",
      .layer_norm = layer_norm,
      .layer_norm_backward = layer_norm_backward,
      .rms_rope = rms_rope,
      .rms_rope_backward = rms_rope_backward,
      .l2_norm = l2_norm,
      .l2_norm_backward = l2_norm_backward,
      .gelu = gelu,
      .gelu_backward = gelu_backward,
      .silu = silu,
      .silu_backward = silu_backward,
      .gate_backward = gate_backward,
      .column_sum = column_sum,
      .add = add,
      .axpby = axpby,
      .sum_squares = sum_squares,
  };
#if MSK_X86
  if (!(cpu_flags & MSK_CPU_AVX2))
    return;
  msk_norm_init_avx2(ops);
  if (!(cpu_flags & MSK_CPU_AVX512))
    return;
  msk_norm_init_avx512(ops);
#endif
}
