/* What a job reports, on its way from the engine thread to the main thread: the latest values wait in one
 * place, and at most one idle callback is pending to fetch them. */
#pragma once
#include "msa-frames.h"
#include "store/runs.h"

struct msa_news_sample {
  gint64 step;
  char *prompt, *path;
};

enum msa_outcome_kind {
  MSA_OUTCOME_NONE, /* goes on */
  MSA_OUTCOME_DONE,
  MSA_OUTCOME_STOPPED,
  MSA_OUTCOME_FAILED
};

/* What came since the last delivery. */
struct msa_news {
  gboolean progress; /* the six below are news */
  const char *phase; /* interned */
  gint64 done, total;
  double seconds, seconds_left;
  gint64 at;          /* monotonic time of that report */
  MsaFrames *preview; /* NULL: no new one */
  GArray *points;     /* of struct msa_point, NULL: none */
  GPtrArray *samples; /* of struct msa_news_sample, NULL: none */
  enum msa_outcome_kind outcome;
  char *sentence;            /* why it failed */
  gboolean halt;             /* the next job would fail for the same reason: a disk that is full */
  char *skipped;             /* words that the model does not know, NULL: not told */
  struct msa_clip_row *clip; /* that was made, in the store already */
};

struct msa_mailbox;
/* deliver is called on the main context, its news are valid until it returns. */
struct msa_mailbox *msa_mailbox_new(void (*deliver)(const struct msa_news *news, gpointer data),
                                    gpointer data);
/* Any thread; a delivery that is pending keeps the mailbox. */
void msa_mailbox_unref(struct msa_mailbox *mailbox);
/* Main thread: nothing is delivered any more. */
void msa_mailbox_silence(struct msa_mailbox *mailbox);

/* Engine thread. */
void msa_mailbox_progress(struct msa_mailbox *mailbox, const char *phase, gint64 done, gint64 total,
                          double seconds, double seconds_left);
void msa_mailbox_preview(struct msa_mailbox *mailbox, MsaFrames *preview); /* takes it */
void msa_mailbox_point(struct msa_mailbox *mailbox, const char *name, gint64 step, double value);
void msa_mailbox_sample(struct msa_mailbox *mailbox, gint64 step, const char *prompt, const char *path);
/* The last news. Each takes its strings and the clip. */
void msa_mailbox_done(struct msa_mailbox *mailbox, char *skipped, struct msa_clip_row *clip);
void msa_mailbox_stopped(struct msa_mailbox *mailbox, char *skipped);
void msa_mailbox_failed(struct msa_mailbox *mailbox, char *skipped, char *sentence, gboolean halt);
