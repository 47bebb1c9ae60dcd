/* Random draws for scenes and captions: splitmix64 (Steele, Lea, Flood 2014), started from a hash of what the
 * draws are for. */
#pragma once
#include <stdint.h>

struct msa_draws {
  uint64_t state;
};

static inline uint64_t msa_draws_next(struct msa_draws *draws) {
  uint64_t z = draws->state += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

static inline struct msa_draws msa_draws_start(uint64_t seed, uint64_t number, uint64_t purpose) {
  struct msa_draws a = {seed}, b = {msa_draws_next(&a) ^ number}, c = {msa_draws_next(&b) ^ purpose};
  return (struct msa_draws){msa_draws_next(&c)};
}

static inline double msa_draws_range(struct msa_draws *draws, double low, double high) {
  return low + (high - low) * (double)(msa_draws_next(draws) >> 11) * 0x1p-53;
}

static inline int msa_draws_below(struct msa_draws *draws, int n) {
  return (int)(((msa_draws_next(draws) >> 32) * (uint64_t)n) >> 32);
}

static inline int msa_draws_chance(struct msa_draws *draws, double share) {
  return msa_draws_range(draws, 0, 1) < share;
}
