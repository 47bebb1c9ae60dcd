/* Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011). A value depends only on (seed, stream,
 * index), so any part of a noise tensor can be made alone, by any thread, with the same bits. */
#pragma once
#include <stdint.h>

struct ms_random { /* a sequence with a position, for code that draws one after the other */
  uint64_t seed, stream, position;
};

/* The 128 bits of counter `index`. */
void ms_random_block(uint64_t seed, uint64_t stream, uint64_t index, uint32_t out[4]);
/* Standard normal values index .. index + n - 1 of a stream (Box-Muller in double, rounded to float32). */
void ms_random_normal_fill(uint64_t seed, uint64_t stream, uint64_t index, float *out, int64_t n);

uint32_t ms_random_u32(struct ms_random *random);
double ms_random_uniform(struct ms_random *random); /* [0,1) */
double ms_random_range(struct ms_random *random, double low, double high);
int64_t ms_random_below(struct ms_random *random, int64_t n); /* 0 .. n-1 */
double ms_random_normal(struct ms_random *random);
