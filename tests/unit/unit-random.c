#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "harness.h"

/* Known answers that Random123 publishes for philox4x32-10 (kat_vectors). */
static void check_known(void) {
  static const struct {
    uint64_t seed, stream, index;
    uint32_t want[4];
  } known[] = {
      {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {~0ull, ~0ull, ~0ull, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {0x299f31d0a4093822ull,
       0x0370734413198a2eull,
       0x85a308d3243f6a88ull,
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (int i = 0; i < 3; i++) {
    uint32_t got[4];
    ms_random_block(known[i].seed, known[i].stream, known[i].index, got);
    check_bytes(got, known[i].want, sizeof got, "Philox known answer %d", i);
  }
}

static void check_normal(void) {
  enum { N = 40000 };
  static float all[N], part[N];
  double sum = 0, squares = 0, cubes = 0, fourth = 0, products = 0;
  ms_random_normal_fill(42, 7, 0, all, N);
  for (int i = 0; i < N; i++) {
    double x = all[i];
    sum += x;
    squares += x * x;
    cubes += x * x * x;
    fourth += x * x * x * x;
    products += i ? x * all[i - 1] : 0;
  }
  /* five standard errors of each statistic: sqrt(1, 2, 15, 96, 1) / sqrt(N) */
  check_ok(fabs(sum / N) < 5 / sqrt(N), "mean %.4f", sum / N);
  check_ok(fabs(squares / N - 1) < 5 * sqrt(2.0 / N), "variance %.4f", squares / N);
  check_ok(fabs(cubes / N) < 5 * sqrt(15.0 / N), "third moment %.4f", cubes / N);
  check_ok(fabs(fourth / N - 3) < 5 * sqrt(96.0 / N), "fourth moment %.4f", fourth / N);
  check_ok(fabs(products / N) < 5 / sqrt(N), "correlation of neighbours %.4f", products / N);
  for (int i = 0; i < 200; i++) {
    int64_t at = check_below(N - 100), n = check_below(100) + 1;
    ms_random_normal_fill(42, 7, (uint64_t)at, part, n);
    if (memcmp(part, all + at, (size_t)n * sizeof *part)) {
      check_ok(0, "values %lld .. %lld alone", (long long)at, (long long)(at + n - 1));
      return;
    }
  }
  check_ok(1, "any part alone has the same bits");
  ms_random_normal_fill(42, 8, 0, part, N);
  check_ok(memcmp(part, all, sizeof all) != 0, "another stream has other values");
  ms_random_normal_fill(43, 7, 0, part, N);
  check_ok(memcmp(part, all, sizeof all) != 0, "another seed has other values");
}

int main(int argc, char **argv) {
  struct ms_random random = {.seed = 1, .stream = 2}, again = random;
  uint32_t block[4];
  int counts[7] = {0}, good = 1;
  double least = 1, most = 0;
  check_begin(argc, argv);
  check_known();
  check_normal();
  ms_random_block(1, 2, 1, block);
  for (int i = 0; i < 5; i++)
    ms_random_u32(&random);
  check_ok(ms_random_u32(&random) == block[1], "a sequence walks through the blocks");
  for (int i = 0; i < 70000; i++) {
    double u = ms_random_uniform(&random);
    int64_t k = ms_random_below(&random, 7);
    least = u < least ? u : least;
    most = u > most ? u : most;
    good &= k >= 0 && k < 7;
    counts[k]++;
  }
  check_ok(least >= 0 && least < 1e-3 && most < 1 && most > 0.999, "uniform values fill [0,1)");
  for (int i = 0; i < 7; i++)
    good &= abs(counts[i] - 10000) < 5 * 93; /* five standard deviations of a binomial */
  check_ok(good, "below (7) gives each number alike");
  for (int i = 0; i < 1000; i++) {
    double x = ms_random_range(&random, -3, 5);
    good &= x >= -3 && x < 5;
  }
  check_ok(good, "range keeps its bounds");
  random = again;
  least = ms_random_normal(&random);
  check_ok(least == ms_random_normal(&again) && random.position == again.position,
           "a copied sequence repeats");
  return check_end();
}
