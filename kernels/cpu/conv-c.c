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

/* Channels whose sums are held in double at a time. */
#define CHANNELS 64

/* Adds the sum over taps of weight * source at the tap's position, for n channels from c on; sign -1 runs the
 * taps backwards. */
static void add_taps(const struct msk_depthwise *p, const float *source, int64_t line, int64_t x, int64_t c,
                     int64_t n, int sign, double *sum) {
  int64_t t = line / p->lattice[1], y = line % p->lattice[1];
  for (int tap = 0; tap < 27; tap++) {
    int64_t at =
        offset_of(p, t + sign * (tap / 9 - 1), y + sign * (tap / 3 % 3 - 1), x + sign * (tap % 3 - 1));
    for (int64_t k = 0; k < n && at >= 0; k++)
      sum[k] += (double)p->weight[(c + k) * 27 + tap] * source[at + c + k];
  }
}

static void depthwise(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  for (int64_t at = l0 * p->lattice[2]; at < l1 * p->lattice[2]; at++)
    for (int64_t c = 0; c < p->c; c += CHANNELS) {
      int64_t n = p->c - c < CHANNELS ? p->c - c : CHANNELS;
      double sum[CHANNELS];
      for (int64_t k = 0; k < n; k++)
        sum[k] = p->bias ? p->bias[c + k] : 0;
      add_taps(p, p->x, at / p->lattice[2], at % p->lattice[2], c, n, 1, sum);
      for (int64_t k = 0; k < n; k++)
        p->y[at * p->c + c + k] = (float)sum[k];
    }
}

static void depthwise_backward_x(const struct msk_depthwise *p, int64_t l0, int64_t l1, void *scratch) {
  for (int64_t at = l0 * p->lattice[2]; at < l1 * p->lattice[2]; at++)
    for (int64_t c = 0; c < p->c; c += CHANNELS) {
      int64_t n = p->c - c < CHANNELS ? p->c - c : CHANNELS;
      double sum[CHANNELS];
      for (int64_t k = 0; k < n; k++)
        sum[k] = p->accumulate ? p->dx[at * p->c + c + k] : 0;
      add_taps(p, p->dy, at / p->lattice[2], at % p->lattice[2], c, n, -1, sum);
      for (int64_t k = 0; k < n; k++)
        p->dx[at * p->c + c + k] = (float)sum[k];
    }
}

static void depthwise_backward_w(const struct msk_depthwise *p, int64_t l0, int64_t l1, int64_t c0,
                                 int64_t c1, float *dweight, float *dbias) {
  int64_t height = p->lattice[1], width = p->lattice[2];
  for (int64_t c = c0; c < c1; c += CHANNELS) {
    int64_t n = c1 - c < CHANNELS ? c1 - c : CHANNELS;
    double sum[27][CHANNELS] = {0}, bias[CHANNELS] = {0};
    for (int64_t at = l0 * width; at < l1 * width; at++) {
      const float *dy = p->dy + at * p->c + c;
      int64_t t = at / (height * width), y = at / width % height, x = at % width;
      for (int64_t k = 0; k < n; k++)
        bias[k] += dy[k];
      for (int tap = 0; tap < 27; tap++) {
        int64_t from = offset_of(p, t + tap / 9 - 1, y + tap / 3 % 3 - 1, x + tap % 3 - 1);
        for (int64_t k = 0; k < n && from >= 0; k++)
          sum[tap][k] += (double)dy[k] * p->x[from + c + k];
      }
    }
    for (int64_t k = 0; k < n; k++) {
      for (int tap = 0; tap < 27 && dweight; tap++)
        dweight[(c + k) * 27 + tap] = (float)(dweight[(c + k) * 27 + tap] + sum[tap][k]);
      if (dbias)
        dbias[c + k] = (float)(dbias[c + k] + bias[k]);
    }
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
