/* A harness in the manner of dav1d's checkasm: each implementation of a family against the reference, on
 * random data in guarded buffers, at odd sizes; the same binary times them (--bench). Output is TAP. --seed N
 * repeats a run. */
#pragma once
#include <stddef.h>
#include <stdint.h>

void check_begin(int argc, char **argv);
int check_end(void); /* prints the plan; returns the exit status */
int check_bench_wanted(void);

/* The instruction sets of this machine, smallest first: flags to give to msk_<family>_init; the first is 0
 * (C). */
int check_sets(unsigned sets[8]);
const char *check_set_name(unsigned flags);

/* Memory between two guard zones, aligned to 64 and filled with a NaN pattern; guards are looked at by
 * check_free_all, which also frees everything. */
void *check_alloc(size_t bytes);
float *check_alloc_f32(int64_t n);
void check_free_all(void);

double check_uniform(double low, double high);
int64_t check_below(int64_t n);
void check_fill(float *x, int64_t n, double scale); /* normal */
void check_fill_uniform(float *x, int64_t n, double low, double high);
void check_to_bf16(const float *x, uint16_t *y, int64_t n);

/* One TAP line each. The message tells the figure, and the seed when it fails. */
void check_ok(int good, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* ||got - want|| / ||want|| <= tolerance; NaN or a wrong guard fails. */
void check_relative_l2(const float *got, const double *want, int64_t n, double tolerance, const char *format,
                       ...) __attribute__((format(printf, 5, 6)));
void check_relative_l2_f32(const float *got, const float *want, int64_t n, double tolerance,
                           const char *format, ...) __attribute__((format(printf, 5, 6)));
void check_bytes(const void *got, const void *want, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Seconds of one call: best of enough repetitions. */
double check_time(void (*fn)(void *), void *data);
/* Prints "# bench name: seconds, GFLOP/s, GB/s". */
void check_bench(const char *name, double seconds, double flops, double bytes);
