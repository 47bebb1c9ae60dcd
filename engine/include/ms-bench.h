/* How fast this machine runs the program's own work, beside what the machine can do at best, measured in the
 * same run.
 *
 * what: "kernels" (products, norms, attention, 3D-DSA with zero offsets, the starter's own and the widest,
 * AdamW), "layer" (whole DiT layers, forward and backward, of the starter and of the 1.3 B configuration, and
 * whole training steps of the starter), "optimizer" (AdamW alone), "stream" (steps of models whose layers lie
 * in memory or on the disk). NULL: all but the last. The starter is looked
 * for in the machine's data folder. */
#pragma once
#include "ms-job.h"

struct ms_bench_row {
  char name[64], shape[96];
  double seconds;      /* of one call, the best of several */
  double gflops, gbps; /* 0: does not apply */
  double parameters;   /* a second, of an optimizer's sweep; 0: does not apply */
  double of_peak;      /* fraction of `peak`; 0: no peak applies */
  double mfu, hfu;    /* of a training step: model and hardware FLOPs over the bf16 peak; 0: does not apply */
  double moved_bytes; /* between disk and memory */
  double exposed_seconds; /* in which computing waited for transfers */
  const char *peak;       /* "bf16", "f32", "copy", "adamw sweep" or "" */
  const char *kernel;     /* instruction set of the implementation */
};

/* Parameters of the optimizer's vectors unless told otherwise: their 0.6 GB are far beyond any cache. */
#define MS_BENCH_PARAMETERS ((int64_t)32 << 20)

/* parameters: of the vectors that the optimizer is timed on, 0 for MS_BENCH_PARAMETERS. folder: an existing
 * one for the stream benchmark's working files of some GiB; NULL: the current folder. Calls row for each
 * measurement as it is made. 0, MS_EUSAGE (unknown what), MS_ENOMEM, MS_EINPUT, MS_ECANCELLED. */
int ms_bench(const char *what, int64_t parameters, const char *folder, const struct ms_machine *machine,
             const struct ms_hooks *hooks, void (*row)(void *data, const struct ms_bench_row *row),
             void *data, struct ms_error *error);
