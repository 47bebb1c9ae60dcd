#include "base/random.h"

#include <math.h>

/* Constants of Philox4x32: Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3 (SC 2011).
 */
#define M0 0xD2511F53u
#define M1 0xCD9E8D57u
#define W0 0x9E3779B9u
#define W1 0xBB67AE85u
#define TWO_PI 6.283185307179586476925286766559

void ms_random_block(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]) {
  uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = (uint32_t)stream,
           c3 = (uint32_t)(stream >> 32);
  uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);
  for (int round = 0; round < 10; round++) {
    uint64_t p0 = (uint64_t)M0 * c0, p1 = (uint64_t)M1 * c2;
    uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
    c1 = (uint32_t)p1;
    c3 = (uint32_t)p0;
    c0 = n0;
    c2 = n2;
    k0 += W0;
    k1 += W1;
  }
  out[0] = c0;
  out[1] = c1;
  out[2] = c2;
  out[3] = c3;
}

static double open_unit(uint32_t u) { /* (0,1) */
  return ((double)u + 0.5) * 0x1p-32;
}

/* One block gives four normals. */
static void normal_block(uint64_t seed, uint64_t stream, uint64_t block, float out[4]) {
  uint32_t u[4];
  ms_random_block(seed, stream, block, u);
  for (int i = 0; i < 4; i += 2) {
    double r = sqrt(-2.0 * log(open_unit(u[i]))), a = TWO_PI * open_unit(u[i + 1]);
    out[i] = (float)(r * cos(a));
    out[i + 1] = (float)(r * sin(a));
  }
}

void ms_random_normal_fill(uint64_t seed, uint64_t stream, uint64_t index, float *out, int64_t n) {
  float block[4];
  for (int64_t i = 0; i < n; i++) {
    uint64_t at = index + (uint64_t)i;
    if (i == 0 || at % 4 == 0)
      normal_block(seed, stream, at / 4, block);
    out[i] = block[at % 4];
  }
}

uint32_t ms_random_u32(struct ms_random *random) {
  uint32_t u[4];
  uint64_t at = random->position++;
  ms_random_block(random->seed, random->stream, at / 4, u);
  return u[at % 4];
}

double ms_random_uniform(struct ms_random *random) {
  return (double)ms_random_u32(random) * 0x1p-32;
}

double ms_random_range(struct ms_random *random, double low, double high) {
  return low + (high - low) * ms_random_uniform(random);
}

int64_t ms_random_below(struct ms_random *random, int64_t n) {
  int64_t i = (int64_t)(ms_random_uniform(random) * (double)n);
  return i < n ? i : n - 1;
}

double ms_random_normal(struct ms_random *random) {
  double r = sqrt(-2.0 * log(open_unit(ms_random_u32(random))));
  return r * cos(TWO_PI * open_unit(ms_random_u32(random)));
}
