/* What a command tells: lines of JSON or words on standard output, messages and a progress line on standard
 * error.
 *
 * With --json every line of standard output is one object with its `event`; the result comes last. */
#pragma once
#include <jansson.h>
#include "ms-job.h"

struct msa_output {
  const char *command; /* name in front of messages */
  int json;
  int terminal;   /* standard error is one: the progress line is drawn */
  int line_shown; /* a progress line stands there now */
  char phase[32]; /* of the last progress told */
  double told;    /* when, in seconds */
};

/* Colours are never used; a terminal only gets the moving progress line. */
void msa_output_init(struct msa_output *output, const char *command, int json);
/* Hooks that report to `output` and stop when `cancel` is set. */
struct ms_hooks msa_output_hooks(struct msa_output *output, const atomic_int *cancel);
/* With --json: `object` (taken) as a line with "event" in front; otherwise it is only released. */
void msa_output_event(struct msa_output *output, const char *event, json_t *object);
/* A line of words on standard output; nothing with --json. */
void msa_output_say(struct msa_output *output, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A message for a person, on standard error. */
void msa_output_note(struct msa_output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void msa_output_progress(struct msa_output *output, const struct ms_progress *progress);
/* The error event and message. Returns the exit status for it. */
int msa_output_failure(struct msa_output *output, const struct ms_error *error);
/* Ends the progress line and sees standard output written. Returns `status`, or 5 if it could not be written.
 */
int msa_output_finish(struct msa_output *output, int status);

/* A JSON string of any bytes: what is not UTF-8 becomes '?'. null for NULL. */
json_t *msa_json_text(const char *text);
/* A JSON number; null where it is not finite. */
json_t *msa_json_number(double value);
