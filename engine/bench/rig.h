/* A DiT trained over the streamer without a data set: what the benchmarks of steps run. */
#pragma once
#include "bench/bench-private.h"
#include "model/dit.h"
#include "stream/shard-store.h"
#include "stream/streamer.h"

struct ms_bench_rig {
  struct ms_dit *dit; /* borrowed */
  struct ms_shard_layout layout[MS_MAX_LAYERS + 1];
  int64_t counts[MS_MAX_LAYERS];
  enum ms_home homes[MS_MAX_LAYERS];
  struct ms_schedule_params schedule;
  struct ms_shard_store *store;
  struct ms_streamer *streamer;
  int64_t updates;
};

struct ms_bench_rig_params {
  const char *folder; /* where layers lie on disk; NULL: all are in memory */
  int sync, average;
  ms_shard_read_fn read; /* first weights */
  void *read_data;
};

/* Binds dit, whose weights are then the rig's. */
int ms_bench_rig_open(struct ms_bench_run *run, struct ms_bench_rig *rig, struct ms_dit *dit,
                      const struct ms_bench_rig_params *params);
void ms_bench_rig_close(struct ms_bench_rig *rig);
/* Weights as random ones start, but from a short list of numbers: drawing each would take longer than the
 * benchmark. An ms_shard_read_fn; data: the dit. */
int ms_bench_rig_weights(void *data, int shard, uint16_t *weights, struct ms_error *error);
/* A step with its update, or without one. loss (NULL: none) is called between the passes and fills
 * dvelocities. */
int ms_bench_rig_step(struct ms_bench_run *run, struct ms_bench_rig *rig, const struct ms_dit_batch *batch,
                      float *velocity, float *dvelocity, int update, void (*loss)(void *data),
                      void *loss_data);
/* The same with nothing computed: every layer is taken and given back at once. */
int ms_bench_rig_ghost(struct ms_bench_run *run, struct ms_bench_rig *rig);
