/* When each operation of a run began and ended, kept for the last ones, and written as a Chrome trace (the
 * JSON array of complete events that chrome://tracing and Perfetto read). */
#pragma once
#include <pthread.h>
#include "stream/schedule.h"

struct ms_trace_event {
  enum ms_op_kind kind;
  enum ms_lane lane;
  int layer, piece;
  int64_t step;
  double begin, end; /* seconds of ms_seconds() */
  double bytes;
};

struct ms_trace {
  pthread_mutex_t lock;          /* guards all below; taken last */
  struct ms_trace_event *events; /* [room], a ring; owned */
  int64_t room, added;
};

/* Keeps the last `room` events; 0: none. */
int ms_trace_open(struct ms_trace *trace, int64_t room, struct ms_error *error);
void ms_trace_release(struct ms_trace *trace);
/* From any thread. */
void ms_trace_add(struct ms_trace *trace, const struct ms_trace_event *event);
/* Whole or not at all. MS_EOUTPUT, MS_ENOMEM. */
int ms_trace_write(struct ms_trace *trace, const char *path, struct ms_error *error);
