/* What the files of the streamer share. */
#pragma once
#include "stream/streamer.h"

#define MS_LANE_THREADS 3 /* read, write, host */

struct streamer_lane {
  struct ms_streamer *streamer;
  enum ms_lane lane;
  pthread_t thread;
  int started;
  uint64_t seen; /* number of the pass that it has worked on */
};

struct ms_streamer {
  struct ms_streamer_params p;
  struct ms_schedule_params schedule_params;
  struct ms_dit_source source;
  struct ms_pool *update_pool; /* owned */
  struct streamer_lane lanes[MS_LANE_THREADS];
  /* memory, each owned, aligned to 4096 */
  unsigned char *slots[64], *ring_blocks[64];
  float *ring_gradients[64], *gradients[64], *inputs[3];
  uint16_t *outer_average;
  float *outer_gradient;
  double *sums; /* of the largest shard */
  struct ms_disk_file input_file;
  int64_t input_bytes;    /* of one input in the file */
  uint64_t *input_hashes; /* [layers] */
  /* the update that waits */
  struct ms_update update;
  int waits;
  /* of the last backward pass */
  double *squares;  /* [layers + 1] sums of squares of the shards */
  const char **bad; /* [layers + 1] */
  /* the pass at work */
  enum ms_stream_kind kind;
  struct ms_schedule schedules[8]; /* by kind and whether an update waits: made once */
  const struct ms_schedule *schedule;
  int *op_of[2]; /* [layers + 2] the compute lane's operations by pass and shard */
  double op_began;
  int64_t step;
  double began;
  struct ms_streamer_stats stats;
  pthread_mutex_t lock; /* guards what follows, and schedule above while lanes work */
  pthread_cond_t changed;
  uint64_t pass;
  unsigned char *done; /* [done_room] operations of the schedule */
  int done_room;
  int left[MS_LANES]; /* the lane takes no more operations of this pass */
  int working;        /* lanes that are not through */
  int stopping, quit;
  int code;
  struct ms_error why;
};

/* streamer-lanes.c */
int ms_streamer_start_lanes(struct ms_streamer *s, struct ms_error *error);
void ms_streamer_stop_lanes(struct ms_streamer *s);
/* Waits until the operation may begin. 0, or 1: it never can. */
int ms_streamer_wait_op(struct ms_streamer *s, int op);
void ms_streamer_finish_op(struct ms_streamer *s, int op, double began);
void ms_streamer_fail(struct ms_streamer *s, int code, const struct ms_error *why);

/* streamer-source.c */
int ms_streamer_source_begin(void *data, enum ms_dit_pass pass, int shard, struct ms_dit_loan *loan,
                             struct ms_error *error);
int ms_streamer_source_end(void *data, enum ms_dit_pass pass, int shard, struct ms_error *error);
