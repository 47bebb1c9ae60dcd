#include "output.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "ms-system.h"

void msa_output_init(struct msa_output *output, const char *command, int json) {
  const char *terminal = getenv("TERM");
  *output = (struct msa_output){
      .command = command,
      .json = json,
      .terminal = isatty(STDERR_FILENO) && !(terminal && !strcmp(terminal, "dumb")),
  };
}

static void clear_line(struct msa_output *output) {
  if (output->line_shown)
    fputs("\r\033[K", stderr);
  output->line_shown = 0;
}

json_t *msa_json_number(double value) {
  return isfinite(value) ? json_real(value) : json_null();
}

json_t *msa_json_text(const char *text) {
  if (!text)
    return json_null();
  json_t *string = json_string(text);
  if (string)
    return string;
  char *clean = strdup(text);
  if (!clean)
    return json_null();
  for (char *c = clean; *c; c++)
    if ((unsigned char)*c >= 0x80)
      *c = '?';
  string = json_string(clean);
  free(clean);
  return string;
}

void msa_output_event(struct msa_output *output, const char *event, json_t *object) {
  if (output->json && object) {
    json_t *line = json_object();
    json_object_set_new(line, "event", json_string(event));
    json_object_update(line, object);
    char *text = json_dumps(line, JSON_COMPACT);
    if (text)
      puts(text);
    fflush(stdout);
    free(text);
    json_decref(line);
  }
  json_decref(object);
}

void msa_output_say(struct msa_output *output, const char *format, ...) {
  if (output->json)
    return;
  clear_line(output);
  va_list arguments;
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
}

void msa_output_note(struct msa_output *output, const char *format, ...) {
  clear_line(output);
  fprintf(stderr, "megaslide %s: ", output->command);
  va_list arguments;
  va_start(arguments, format);
  vfprintf(stderr, format, arguments);
  va_end(arguments);
  fputc('\n', stderr);
}

static const char *format_time(double seconds, char *text, size_t size) {
  if (seconds < 10)
    snprintf(text, size, "%.1f s", seconds);
  else if (seconds < 120)
    snprintf(text, size, "%.0f s", seconds);
  else if (seconds < 7200)
    snprintf(text, size, "%.0f min", seconds / 60);
  else
    snprintf(text, size, "%.1f h", seconds / 3600);
  return text;
}

void msa_output_progress(struct msa_output *output, const struct ms_progress *progress) {
  const double now = ms_seconds();
  const int changed = strcmp(output->phase, progress->phase) != 0,
            ends = progress->total > 0 && progress->done >= progress->total;
  char spent[32], left[32];
  /* Ten lines a second are enough for eyes and logs; the ends of a phase are always told. */
  if (!changed && !ends && now - output->told < .1)
    return;
  if (output->json) {
    json_t *object = json_pack("{s:s, s:I, s:I}", "phase", progress->phase, "done",
                               (json_int_t)progress->done, "total", (json_int_t)progress->total);
    json_object_set_new(object, "seconds", msa_json_number(progress->seconds));
    json_object_set_new(object, "seconds_left",
                        progress->seconds_left < 0 ? json_null() : msa_json_number(progress->seconds_left));
    msa_output_event(output, "progress", object);
  }
  if (output->terminal) {
    fprintf(stderr, "\r\033[K%s", progress->phase);
    if (progress->total > 0)
      fprintf(stderr, " %lld/%lld", (long long)progress->done, (long long)progress->total);
    fprintf(stderr, ", %s", format_time(progress->seconds, spent, sizeof spent));
    if (progress->seconds_left >= 0)
      fprintf(stderr, ", %s left", format_time(progress->seconds_left, left, sizeof left));
    fflush(stderr);
    output->line_shown = 1;
  }
  output->told = now;
  snprintf(output->phase, sizeof output->phase, "%s", progress->phase);
}

static void hook_progress(void *data, const struct ms_progress *progress) {
  msa_output_progress(data, progress);
}

static void hook_metrics(void *data, int64_t step, const struct ms_metric *metrics, int count) {
  struct msa_output *output = data;
  if (!output->json)
    return;
  json_t *object = json_pack("{s:I}", "step", (json_int_t)step);
  for (int i = 0; i < count; i++)
    json_object_set_new(object, metrics[i].name, msa_json_number(metrics[i].value));
  msa_output_event(output, "metric", object);
}

static void hook_log(void *data, enum ms_log_level level, const char *message) {
  msa_output_note(data, "%s%s", level == MS_LOG_WARNING ? "warning: " : "", message);
}

struct ms_hooks msa_output_hooks(struct msa_output *output, const atomic_int *cancel) {
  return (struct ms_hooks){
      .data = output,
      .progress = hook_progress,
      .metrics = hook_metrics,
      .log = hook_log,
      .cancel = cancel,
  };
}

int msa_output_failure(struct msa_output *output, const struct ms_error *error) {
  const int status = msa_signal_status(ms_error_exit_status(error->code));
  const char *message = error->message[0] ? error->message : ms_error_text(error->code);
  json_t *object = json_pack("{s:i, s:s}", "exit", status, "kind", ms_error_text(error->code));
  json_object_set_new(object, "message", msa_json_text(message));
  msa_output_event(output, "error", object);
  msa_output_note(output, "%s", message);
  return status;
}

int msa_output_finish(struct msa_output *output, int status) {
  clear_line(output);
  if ((fflush(stdout) || ferror(stdout)) && !status) {
    msa_output_note(output, "standard output cannot be written");
    return ms_error_exit_status(MS_EOUTPUT);
  }
  return status;
}
