#include "stream/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

int ms_trace_open(struct ms_trace *trace, int64_t room, struct ms_error *error) {
  memset(trace, 0, sizeof *trace);
  if (room > 0 && !(trace->events = malloc((size_t)room * sizeof *trace->events)))
    return ms_error_set(error, MS_ENOMEM, "out of memory for a trace of %lld events", (long long)room);
  trace->room = room;
  pthread_mutex_init(&trace->lock, NULL);
  return 0;
}

void ms_trace_release(struct ms_trace *trace) {
  if (trace->events)
    pthread_mutex_destroy(&trace->lock);
  free(trace->events);
  memset(trace, 0, sizeof *trace);
}

void ms_trace_add(struct ms_trace *trace, const struct ms_trace_event *event) {
  if (!trace->room)
    return;
  pthread_mutex_lock(&trace->lock);
  trace->events[trace->added++ % trace->room] = *event;
  pthread_mutex_unlock(&trace->lock);
}

static int write_event(struct ms_file_out *out, const struct ms_trace_event *e, double start, int first,
                       struct ms_error *error) {
  char text[400];
  int n = snprintf(
      text, sizeof text,
      "%s{\"name\":\"%s %d\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.1f,\"dur\":%.1f,"
      "\"args\":{\"step\":%lld,\"piece\":%d,\"bytes\":%.0f}}",
      first ? "" : ",\n", ms_op_name(e->kind), e->layer, ms_lane_name(e->lane), (int)e->lane,
      (e->begin - start) * 1e6, (e->end - e->begin) * 1e6, (long long)e->step, e->piece, e->bytes);
  return ms_file_out_write(out, text, (size_t)n, error);
}

static int write_lanes(struct ms_file_out *out, struct ms_error *error) {
  int code = 0;
  for (int lane = 0; lane < MS_LANES && code == 0; lane++) {
    char text[160];
    int n =
        snprintf(text, sizeof text,
                 ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
                 lane, ms_lane_name((enum ms_lane)lane));
    code = ms_file_out_write(out, text, (size_t)n, error);
  }
  return code;
}

int ms_trace_write(struct ms_trace *trace, const char *path, struct ms_error *error) {
  struct ms_file_out out;
  int64_t first, count;
  double start = 0;
  int code = ms_file_out_open(&out, path, error);
  if (code < 0)
    return code;
  pthread_mutex_lock(&trace->lock);
  count = trace->added < trace->room ? trace->added : trace->room;
  first = trace->added - count;
  for (int64_t i = 0; i < count; i++) {
    double begin = trace->events[(first + i) % trace->room].begin;
    if (i == 0 || begin < start)
      start = begin;
  }
  code = ms_file_out_write(&out, "[\n", 2, error);
  for (int64_t i = 0; i < count && code == 0; i++)
    code = write_event(&out, &trace->events[(first + i) % trace->room], start, i == 0, error);
  if (code == 0 && count)
    code = write_lanes(&out, error);
  pthread_mutex_unlock(&trace->lock);
  if (code == 0)
    code = ms_file_out_write(&out, "\n]\n", 3, error);
  if (code == 0)
    code = ms_file_out_commit(&out, error);
  if (code < 0)
    ms_file_out_abandon(&out);
  return code;
}
