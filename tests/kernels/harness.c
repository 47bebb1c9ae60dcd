#include "harness.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "msk-cpu.h"
#include "msk-types.h"

#define GUARD 256

struct block {
  struct block *next;
  unsigned char *base;
  size_t bytes;
};

static struct {
  uint64_t seed, state;
  int bench, tests, failures;
  struct block *blocks;
} run;

static uint64_t next_random(void) { /* splitmix64 */
  uint64_t z = run.state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

void check_begin(int argc, char **argv) {
  run.seed = (uint64_t)time(NULL);
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--bench"))
      run.bench = 1;
    else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
      run.seed = strtoull(argv[++i], NULL, 0);
  }
  run.state = run.seed;
  printf("# seed %llu\n", (unsigned long long)run.seed);
}

int check_end(void) {
  check_free_all();
  printf("1..%d\n", run.tests);
  return run.failures ? 1 : 0;
}

int check_bench_wanted(void) {
  return run.bench;
}

int check_sets(unsigned sets[8]) {
  static const unsigned ladder[] = {MSK_CPU_AVX2, MSK_CPU_AVX512, MSK_CPU_AVX512BF16, MSK_CPU_AMX};
  unsigned have = msk_cpu_detect(), flags = 0;
  int n = 0;
  sets[n++] = 0;
  for (int i = 0; i < 4; i++)
    if (have & ladder[i])
      sets[n++] = flags |= ladder[i];
  return n;
}

const char *check_set_name(unsigned flags) {
  if (flags & MSK_CPU_AMX)
    return "amx";
  if (flags & MSK_CPU_AVX512BF16)
    return "avx512bf16";
  if (flags & MSK_CPU_AVX512)
    return "avx512";
  return flags & MSK_CPU_AVX2 ? "avx2" : "c";
}

void *check_alloc(size_t bytes) {
  struct block *block = malloc(sizeof *block);
  size_t room = (bytes + 63) / 64 * 64 + 2 * GUARD;
  if (!block || !(block->base = aligned_alloc(64, room)))
    abort();
  memset(block->base, 0xff, room); /* float32 and bf16 NaN */
  block->bytes = bytes;
  block->next = run.blocks;
  run.blocks = block;
  return block->base + GUARD;
}

float *check_alloc_f32(int64_t n) {
  return check_alloc((size_t)n * sizeof(float));
}

void check_free_all(void) {
  while (run.blocks) {
    struct block *block = run.blocks;
    size_t room = (block->bytes + 63) / 64 * 64 + 2 * GUARD;
    int good = 1;
    for (size_t i = 0; i < GUARD; i++)
      good &= block->base[i] == 0xff;
    for (size_t i = GUARD + block->bytes; i < room; i++)
      good &= block->base[i] == 0xff;
    if (!good)
      check_ok(0, "guard of a buffer of %zu bytes overwritten", block->bytes);
    run.blocks = block->next;
    free(block->base);
    free(block);
  }
}

double check_uniform(double low, double high) {
  return low + (high - low) * ((double)(next_random() >> 11) * 0x1p-53);
}

int64_t check_below(int64_t n) {
  return (int64_t)(next_random() % (uint64_t)n);
}

void check_fill(float *x, int64_t n, double scale) {
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)(scale * sqrt(-2 * log(check_uniform(1e-12, 1))) *
                   cos(6.283185307179586 * check_uniform(0, 1)));
}

void check_fill_uniform(float *x, int64_t n, double low, double high) {
  for (int64_t i = 0; i < n; i++)
    x[i] = (float)check_uniform(low, high);
}

void check_to_bf16(const float *x, uint16_t *y, int64_t n) {
  for (int64_t i = 0; i < n; i++)
    y[i] = msk_f32_to_bf16(x[i]);
}

static void report(int good, const char *format, va_list args, const char *figure) {
  printf("%s %d - ", good ? "ok" : "not ok", ++run.tests);
  vprintf(format, args);
  printf("%s", figure);
  if (!good) {
    printf(" (seed %llu)", (unsigned long long)run.seed);
    run.failures++;
  }
  printf("\n");
}

void check_ok(int good, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(good, format, args, "");
  va_end(args);
}

void check_relative_l2(const float *got, const double *want, int64_t n, double tolerance, const char *format,
                       ...) {
  double difference = 0, norm = 0, error;
  char figure[96];
  va_list args;
  for (int64_t i = 0; i < n; i++) {
    difference += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    norm += want[i] * want[i];
  }
  error = sqrt(difference) / (norm > 0 ? sqrt(norm) : 1);
  snprintf(figure, sizeof figure, ": relative L2 %.2e (at most %.0e)", error, tolerance);
  va_start(args, format);
  report(error <= tolerance, format, args, figure);
  va_end(args);
}

void check_relative_l2_f32(const float *got, const float *want, int64_t n, double tolerance,
                           const char *format, ...) {
  double difference = 0, norm = 0, error;
  char figure[96];
  va_list args;
  for (int64_t i = 0; i < n; i++) {
    difference += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
    norm += (double)want[i] * want[i];
  }
  error = sqrt(difference) / (norm > 0 ? sqrt(norm) : 1);
  snprintf(figure, sizeof figure, ": relative L2 %.2e (at most %.0e)", error, tolerance);
  va_start(args, format);
  report(error <= tolerance, format, args, figure);
  va_end(args);
}

void check_bytes(const void *got, const void *want, size_t bytes, const char *format, ...) {
  va_list args;
  va_start(args, format);
  report(!memcmp(got, want, bytes), format, args, ": identical");
  va_end(args);
}

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double check_time(void (*fn)(void *), void *data) {
  double best = 1e30, total = 0;
  for (int i = 0; i < 1000 && (i < 3 || total < 0.3); i++) {
    double start = seconds_now(), spent;
    fn(data);
    spent = seconds_now() - start;
    total += spent;
    if (spent < best)
      best = spent;
  }
  return best;
}

void check_bench(const char *name, double seconds, double flops, double bytes) {
  printf("# bench %-40s %10.2f us %9.1f GFLOP/s %7.1f GB/s\n", name, seconds * 1e6, flops / seconds * 1e-9,
         bytes / seconds * 1e-9);
}
