/* What the benchmarks share: buffers, timing, peaks. */
#pragma once
#include "base/compute.h"
#include "ms-bench.h"
#include "msk-peak.h"

struct ms_bench_peaks { /* of all threads together */
  double f32, bf16;     /* FLOP/s */
  double copy, adamw;   /* bytes/s */
};

struct ms_bench_run {
  struct ms_compute compute;
  struct msk_peak_ops peak_ops;
  struct ms_bench_peaks peaks;
  const struct ms_machine *machine;
  int64_t parameters; /* of the optimizer's vectors */
  const char *folder; /* where layers of the stream benchmark lie on disk */
  const struct ms_hooks *hooks;
  void (*row)(void *data, const struct ms_bench_row *row);
  void *row_data;
  struct ms_error *error;
};

/* Best seconds of fn (data): at least three calls, then until 0.4 s are spent. */
double ms_bench_time(void (*fn)(void *data), void *data);
/* Fills n floats with small reproducible numbers. NULL if out of memory; free with free. */
float *ms_bench_floats(int64_t n);
void *ms_bench_bytes(size_t bytes);
/* Sends a row. flops, bytes: of one call, 0 if they do not apply; peak: which peak of_peak refers to. */
void ms_bench_row(const struct ms_bench_run *run, const char *name, const char *shape, const char *kernel,
                  double seconds, double flops, double bytes, const char *peak);
/* The same for a sweep of an optimizer over `parameters` elements. */
void ms_bench_row_of(const struct ms_bench_run *run, const char *name, const char *shape, const char *kernel,
                     double seconds, double parameters, double bytes);
int ms_bench_cancelled(const struct ms_bench_run *run);

/* Operands of an attention kernel over `rows` rows of heads x head_dim channels. */
struct ms_bench_operands {
  int64_t heads, head_dim, ld;
  float *q, *k, *v, *o, *d_o, *dq, *dk, *dv, *lse;
  void *packed;
  size_t pack_bytes; /* of one head or group */
};
/* The fields that msk_attention and msk_slide have in common, for a designated initializer. */
#define MS_BENCH_OPERANDS(b)                                                                                 \
  .heads = (b)->heads, .head_dim = (b)->head_dim, .scale = 1 / sqrtf((float)(b)->head_dim), .q = (b)->q,     \
  .k = (b)->k, .v = (b)->v, .o = (b)->o, .lse = (b)->lse, .d_o = (b)->d_o, .dq = (b)->dq, .dk = (b)->dk,     \
  .dv = (b)->dv, .q_ld = (b)->ld, .k_ld = (b)->ld, .v_ld = (b)->ld, .o_ld = (b)->ld, .d_o_ld = (b)->ld,      \
  .dq_ld = (b)->ld, .dk_ld = (b)->ld, .dv_ld = (b)->ld
/* Release also after a failure. */
int ms_bench_operands_open(struct ms_bench_operands *b, int64_t rows, int64_t heads, int64_t head_dim,
                           struct ms_error *error);
void ms_bench_operands_release(struct ms_bench_operands *b);
/* Room for `parts` packed operands of pack_bytes each, and scratch for the kernels. */
int ms_bench_operands_pack(struct ms_bench_operands *b, struct ms_compute *compute, size_t pack_bytes,
                           int64_t parts, size_t forward_scratch, size_t backward_scratch,
                           struct ms_error *error);

/* Seconds of attention in windows that do not overlap, over a lattice. Negative: a code. */
double ms_bench_window(struct ms_bench_run *run, const int64_t lattice[3], const int64_t window[3],
                       int64_t heads, int64_t head_dim);
/* Seconds of all products of a layer with these widths, one behind the other. Negative: a code. */
double ms_bench_layer_products(struct ms_bench_run *run, int64_t tokens, int64_t dim, int64_t ffn);

/* The offsets that the starter gives the windows of a lattice, in the middle of making a clip of that size.
 */
struct ms_bench_offsets {
  int layers;
  int64_t row; /* floats a token: groups x points x 3 */
  float **z;   /* [layers] of [tokens, row]; owned */
  double mean; /* |Delta| in tokens over all layers */
};
int ms_bench_starter_offsets(struct ms_bench_run *run, const int64_t lattice[3],
                             struct ms_bench_offsets *offsets);
void ms_bench_offsets_release(struct ms_bench_offsets *offsets);

int ms_bench_measure_peaks(struct ms_bench_run *run);
int ms_bench_products(struct ms_bench_run *run);
int ms_bench_rows(struct ms_bench_run *run);      /* norms, rotary embedding, activations */
int ms_bench_attention(struct ms_bench_run *run); /* dense, cross */
int ms_bench_slide(struct ms_bench_run *run);     /* 3D-DSA, windows, offset head */
int ms_bench_optimizer(struct ms_bench_run *run);
int ms_bench_layers(struct ms_bench_run *run);
int ms_bench_stream(struct ms_bench_run *run);   /* steps in memory and from the disk */
int ms_bench_training(struct ms_bench_run *run); /* whole steps of the starter */
