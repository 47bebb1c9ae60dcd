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
  double *squares;      /* [layers + 1] sums of squares of the shards */
  const char **bad;     /* [layers + 1] */
  unsigned char *stale; /* [layers + 1] in a group: other ranks' new weights have not come yet */
  float *whole[2]; /* in a group: gradients of all that is trained of the layer at work, and of shard -1 */
  double *told;    /* [(1 + size) * 2 (layers + 1)] in a group: what ranks tell each other of a step */
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

/* streamer-group.c: what ranks do together; nothing without a group. */
/* Weights of a shard that is about to be computed: the parts that other ranks have updated, or averaged. */
void ms_streamer_gather(struct ms_streamer *s, const struct ms_op *op, int shard);
/* A shard's gradient is complete: own, this rank's part, becomes the sum over all. */
void ms_streamer_reduce(struct ms_streamer *s, float *own, int shard);
/* Carries on a pass that this rank does not compute, for the sake of the others. */
int ms_streamer_drain(struct ms_streamer *s, struct ms_error *error);
/* After the lanes have ended: one outcome for all. */
int ms_streamer_agree(struct ms_streamer *s, int code, struct ms_error *error);

/* streamer-lanes.c */
int ms_streamer_start_lanes(struct ms_streamer *s, struct ms_error *error);
void ms_streamer_stop_lanes(struct ms_streamer *s);
/* Waits until the operation may begin. 0, or 1: it never can. */
int ms_streamer_wait_op(struct ms_streamer *s, int op);
void ms_streamer_finish_op(struct ms_streamer *s, int op, double began);
void ms_streamer_fail(struct ms_streamer *s, int code, const struct ms_error *why);

/* streamer-source.c */
uint16_t *ms_streamer_weights(struct ms_streamer *s, const struct ms_op *op, int shard);
int ms_streamer_source_begin(void *data, enum ms_dit_pass pass, int shard, struct ms_dit_loan *loan,
                             struct ms_error *error);
int ms_streamer_source_end(void *data, enum ms_dit_pass pass, int shard, struct ms_error *error);
