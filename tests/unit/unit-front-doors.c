/* The engine's front doors are complete: this program is built with their folder only, as a program outside
 * this tree would be, and each header once alone (front-door.c.in). */
#include <string.h>

#include "harness.h"
#include "ms-generate.h"
#include "ms-media.h"
#include "ms-system.h"
#include "ms-tensors.h"
#include "ms-train.h"

static void check_told(double bytes, const char *wanted) {
  char text[32];
  check_ok(!strcmp(ms_format_bytes(bytes, text, sizeof text), wanted), "bytes are told: %s", text);
}

int main(int argc, char **argv) {
  struct ms_train_job job;
  enum ms_format format;
  check_begin(argc, argv);
  check_told(1.5 * 1073741824, "1.50 GiB");
  check_told(320.4 * 1048576, "320 MiB");
  check_told(102400, "100 KiB");
  check_told(100, "100 B");
  check_told(0, "0 B");
  ms_train_job_init(&job);
  check_ok(job.steps > 0 && ms_generate_job_default().seed < 0 && ms_memory_resident() > 0 &&
               ms_seconds() > 0,
           "jobs and the system are there");
  check_ok(ms_format_from_path("a.mp4", &format, NULL) == 0 && format == MS_FORMAT_H264, "so are media");
  check_ok(ms_dtype_size(MS_DTYPE_BF16) == 2 && !strcmp(ms_error_text(MS_EBUDGET), "does not fit"),
           "weights and errors");
  return check_end();
}
