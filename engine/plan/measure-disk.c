/* Rates of the disk, as layers on it are read and written: large requests past the page cache, one thread a
 * direction. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "plan/measure-private.h"
#include "stream/disk-file.h"

#define REQUEST ((size_t)8 << 20)
#define REQUESTS 12
#define FILE_BYTES ((int64_t)REQUEST * REQUESTS)
/* A slow disk is not worth more. */
#define SPEND_SECONDS 0.3

struct stream {
  const struct ms_disk_file *file;
  unsigned char *buffer;
  int write;
  double rate;
  int code;
  struct ms_error error;
};

static void *run_stream(void *data) {
  struct stream *s = data;
  double start = ms_seconds(), spent = 0;
  int64_t bytes = 0;
  s->code = 0;
  for (int i = 0; i < 2 * REQUESTS && s->code == 0 && (i < 2 || spent < SPEND_SECONDS); i++) {
    int64_t at = (int64_t)(i % REQUESTS) * (int64_t)REQUEST;
    s->code = s->write ? ms_disk_file_write(s->file, at, s->buffer, REQUEST, &s->error)
                       : ms_disk_file_read(s->file, at, s->buffer, REQUEST, &s->error);
    spent = ms_seconds() - start;
    bytes += (int64_t)REQUEST;
  }
  s->rate = (double)bytes / spent;
  return NULL;
}

/* Both directions at once: the sum of what they reach. */
static double run_both(struct stream *reader, struct stream *writer) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_stream, writer) != 0)
    return 0;
  run_stream(reader);
  pthread_join(thread, NULL);
  return reader->code == 0 && writer->code == 0 ? reader->rate + writer->rate : 0;
}

int ms_measure_disk(struct ms_measure *m, struct ms_rates *rates) {
  struct ms_disk_file file = {-1, -1, ""};
  struct stream reader = {.file = &file}, writer = {.file = &file, .write = 1};
  int code = ms_measure_stopped(m);
  if (code == 0)
    code = ms_disk_file_open(&file, m->folder, FILE_BYTES, m->error);
  if (code < 0)
    return code;
  reader.buffer = aligned_alloc(MS_DISK_ALIGN, REQUEST);
  writer.buffer = aligned_alloc(MS_DISK_ALIGN, REQUEST);
  if (!reader.buffer || !writer.buffer) {
    code = ms_error_set(m->error, MS_ENOMEM, "out of memory while measuring this machine");
  } else {
    memset(writer.buffer, 0x5a, REQUEST); /* no zeros, which some disks keep apart */
    memset(reader.buffer, 0, REQUEST);
    run_stream(&writer);
    rates->disk_write = writer.rate;
    if (writer.code == 0)
      run_stream(&reader);
    rates->disk_read = reader.rate;
    code = writer.code < 0 ? writer.code : reader.code;
    if (code < 0)
      ms_error_set(m->error, code, "%s", writer.code < 0 ? writer.error.message : reader.error.message);
    else
      rates->disk_both = run_both(&reader, &writer);
  }
  free(reader.buffer);
  free(writer.buffer);
  ms_disk_file_close(&file);
  return code;
}
