#include "msk-conv.h"

#include "conv-sets.h"
#include "msk-cpu.h"

/* Offset of position (t,y,x) in [T,H,W,C], or -1 outside the lattice. */
static int64_t offset_of(const struct msk_depthwise *p, int64_t t, int64_t y, int64_t x) {
  const int64_t *n = p->lattice;
  if (t < 0 || y < 0 || x < 0 || t >= n[0] || y >= n[1] || x >= n[2])
    return -1;
  return ((t * n[1] + y) * n[2] + x) * p->c;
}

static size_t depthwise_scratch(const struct msk_depthwise *p) {
  return 0;
}

/* Sum over taps of weight * source at the tap's position; sign -1 runs the taps backwards. */
static double taps_at(const struct msk_depthwise *p, const float *source, int64_t line, int64_t x, int64_t c,
                      int sign) {
  double sum = 0;
  int64_t t = line / p->lattice[1], y = line % p->lattice[1];
  for (int tap = 0; tap < 27; tap++) {
    int64_t at =
        offset_of(p, t + sign * (tap / 9 - 1), y + sign * (tap / 3 % 3 - 1), x + sign * (tap % 3 - 1));
    if (at >= 0)
      sum += (double)p->weight[c * 27 + tap] * source[at + c];
  }
  return sum;
}

static void depthwise(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  for (int64_t l = l0; l < l1; l++)
    for (int64_t x = 0; x < p->lattice[2]; x++)
      for (int64_t c = 0; c < p->c; c++)
        p->y[(l * p->lattice[2] + x) * p->c + c] =
            (float)(taps_at(p, p->x, l, x, c, 1) + (p->bias ? p->bias[c] : 0.0));
}

static void depthwise_backward_x(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  for (int64_t l = l0; l < l1; l++)
    for (int64_t x = 0; x < p->lattice[2]; x++)
      for (int64_t c = 0; c < p->c; c++) {
        float *dx = p->dx + (l * p->lattice[2] + x) * p->c + c;
        *dx = (float)(taps_at(p, p->dy, l, x, c, -1) + (p->accumulate ? *dx : 0.0));
      }
}

static void depthwise_backward_w(const struct msk_depthwise *p, int64_t l0, int64_t l1, int64_t c0,
                                 int64_t c1, float *dweight, float *dbias) {
  for (int64_t c = c0; c < c1; c++) {
    double sum[27] = {0}, bias = 0;
    for (int64_t l = l0; l < l1; l++)
      for (int64_t x = 0; x < p->lattice[2]; x++) {
        double dy = p->dy[(l * p->lattice[2] + x) * p->c + c];
        bias += dy;
        for (int tap = 0; tap < 27; tap++) {
          int64_t at = offset_of(p, l / p->lattice[1] + tap / 9 - 1, l % p->lattice[1] + tap / 3 % 3 - 1,
                                 x + tap % 3 - 1);
          if (at >= 0)
            sum[tap] += dy * p->x[at + c];
        }
      }
    for (int tap = 0; tap < 27 && dweight; tap++)
      dweight[c * 27 + tap] = (float)(dweight[c * 27 + tap] + sum[tap]);
    if (dbias)
      dbias[c] = (float)(dbias[c] + bias);
  }
}

void msk_conv_init(struct msk_conv_ops *ops, unsigned cpu_flags) {
  *ops = (struct msk_conv_ops){
      .name = "c",
      .depthwise_scratch = depthwise_scratch,
      .depthwise = depthwise,
      .depthwise_backward_x = depthwise_backward_x,
      .depthwise_backward_w = depthwise_backward_w,
  };
#if MSK_X86
  if (!(cpu_flags & MSK_CPU_AVX2))
    return;
  msk_conv_init_avx2(ops);
  if (!(cpu_flags & MSK_CPU_AVX512))
    return;
  msk_conv_init_avx512(ops);
#endif
}
