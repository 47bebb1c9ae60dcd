#include "train/metrics-file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEADER "step,loss,learning_rate,gradient_norm,seconds,tokens,validation_loss\n"

/* Where the lines of steps beyond `step` begin. */
static long kept_bytes(FILE *file, int64_t step) {
  char line[512];
  long end = 0;
  while (fgets(line, sizeof line, file)) {
    if (!strchr(line, '\n')) /* a line that a killed run left half */
      break;
    if (end > 0 && strtoll(line, NULL, 10) > step)
      break;
    end = ftell(file);
  }
  return end;
}

int ms_metrics_file_open(struct ms_metrics_file *metrics, const char *path, int64_t step,
                         struct ms_error *error) {
  FILE *file = fopen(path, "r+e");
  long end;
  if (!file && errno == ENOENT)
    file = fopen(path, "w+e");
  metrics->file = file;
  if (!file)
    return ms_error_set(error, MS_EOUTPUT, "cannot write \"%s\": %s", path, strerrordesc_np(errno));
  end = step > 0 ? kept_bytes(file, step) : 0;
  if (ferror(file)) /* what cannot be read is not cut off */
    return ms_error_set(error, MS_EINPUT, "cannot read \"%s\": %s", path, strerrordesc_np(errno));
  if (ftruncate(fileno(file), end) < 0 || fseek(file, end, SEEK_SET) < 0 ||
      (end == 0 && fputs(HEADER, file) < 0))
    return ms_error_set(error, MS_EOUTPUT, "cannot write \"%s\": %s", path, strerror(errno));
  return 0;
}

int ms_metrics_file_add(struct ms_metrics_file *metrics, const struct ms_metrics_row *row,
                        struct ms_error *error) {
  int bad = fprintf(metrics->file, "%lld,%.7g,%.7g,%.7g,%.4f,%.0f,", (long long)row->step, row->loss,
                    row->learning_rate, row->gradient_norm, row->seconds, row->tokens) < 0;
  if (isfinite(row->validation_loss))
    bad |= fprintf(metrics->file, "%.7g", row->validation_loss) < 0;
  bad |= fputc('\n', metrics->file) == EOF || fflush(metrics->file) == EOF;
  return bad ? ms_error_set(error, MS_EOUTPUT, "cannot write metrics.csv: %s", strerror(errno)) : 0;
}

void ms_metrics_file_close(struct ms_metrics_file *metrics) {
  if (metrics->file)
    fclose(metrics->file);
  metrics->file = NULL;
}
