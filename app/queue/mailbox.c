#include "queue/mailbox.h"

#include "core/main-thread.h"

struct msa_mailbox {
  gatomicrefcount references;
  void (*deliver)(const struct msa_news *news, gpointer data); /* main thread alone; NULL: silenced */
  gpointer data;
  GMutex lock; /* guards all below; nothing else is locked under it */
  struct msa_news news;
  gboolean pending; /* an idle callback is on its way */
};

static void sample_free(gpointer data) {
  struct msa_news_sample *sample = data;
  g_free(sample->prompt);
  g_free(sample->path);
  g_free(sample);
}

static void news_clear(struct msa_news *news) {
  g_clear_pointer(&news->preview, msa_frames_unref);
  g_clear_pointer(&news->points, g_array_unref);
  g_clear_pointer(&news->samples, g_ptr_array_unref);
  g_clear_pointer(&news->clip, msa_clip_row_free);
  g_free(news->sentence);
  g_free(news->skipped);
  *news = (struct msa_news){0};
}

struct msa_mailbox *msa_mailbox_new(void (*deliver)(const struct msa_news *news, gpointer data),
                                    gpointer data) {
  struct msa_mailbox *mailbox = g_new0(struct msa_mailbox, 1);
  g_atomic_ref_count_init(&mailbox->references);
  g_mutex_init(&mailbox->lock);
  mailbox->deliver = deliver;
  mailbox->data = data;
  return mailbox;
}

void msa_mailbox_unref(struct msa_mailbox *mailbox) {
  if (!g_atomic_ref_count_dec(&mailbox->references))
    return;
  news_clear(&mailbox->news);
  g_mutex_clear(&mailbox->lock);
  g_free(mailbox);
}

void msa_mailbox_silence(struct msa_mailbox *mailbox) {
  MSA_ASSERT_MAIN();
  mailbox->deliver = NULL;
}

static void unref_mailbox(gpointer mailbox) {
  msa_mailbox_unref(mailbox);
}

static gboolean deliver_cb(gpointer data) {
  struct msa_mailbox *mailbox = data;
  struct msa_news news;
  g_mutex_lock(&mailbox->lock);
  news = mailbox->news;
  mailbox->news = (struct msa_news){0};
  mailbox->pending = FALSE;
  g_mutex_unlock(&mailbox->lock);
  if (mailbox->deliver)
    mailbox->deliver(&news, mailbox->data);
  news_clear(&news);
  return G_SOURCE_REMOVE;
}

static struct msa_news *begin(struct msa_mailbox *mailbox) {
  g_mutex_lock(&mailbox->lock);
  return &mailbox->news;
}

static void commit(struct msa_mailbox *mailbox) {
  if (!mailbox->pending) {
    mailbox->pending = TRUE;
    g_atomic_ref_count_inc(&mailbox->references);
    /* Not an idle's priority: where drawing is slow and something moves, frames leave no idle moment. */
    g_idle_add_full(G_PRIORITY_DEFAULT, deliver_cb, mailbox, unref_mailbox);
  }
  g_mutex_unlock(&mailbox->lock);
}

void msa_mailbox_progress(struct msa_mailbox *mailbox, const char *phase, gint64 done, gint64 total,
                          double seconds, double seconds_left) {
  struct msa_news *news = begin(mailbox);
  news->progress = TRUE;
  news->phase = g_intern_string(phase);
  news->done = done;
  news->total = total;
  news->seconds = seconds;
  news->seconds_left = seconds_left;
  news->at = g_get_monotonic_time();
  commit(mailbox);
}

void msa_mailbox_preview(struct msa_mailbox *mailbox, MsaFrames *preview) {
  struct msa_news *news = begin(mailbox);
  g_clear_pointer(&news->preview, msa_frames_unref);
  news->preview = preview;
  commit(mailbox);
}

void msa_mailbox_point(struct msa_mailbox *mailbox, const char *name, gint64 step, double value) {
  const struct msa_point point = {g_intern_string(name), step, value};
  struct msa_news *news = begin(mailbox);
  if (!news->points)
    news->points = g_array_new(FALSE, FALSE, sizeof(struct msa_point));
  g_array_append_val(news->points, point);
  commit(mailbox);
}

void msa_mailbox_sample(struct msa_mailbox *mailbox, gint64 step, const char *prompt, const char *path) {
  struct msa_news_sample *sample = g_new0(struct msa_news_sample, 1);
  *sample = (struct msa_news_sample){step, g_strdup(prompt), g_strdup(path)};
  struct msa_news *news = begin(mailbox);
  if (!news->samples)
    news->samples = g_ptr_array_new_with_free_func(sample_free);
  g_ptr_array_add(news->samples, sample);
  commit(mailbox);
}

static void end(struct msa_mailbox *mailbox, const struct msa_news *last) {
  struct msa_news *news = begin(mailbox);
  news->outcome = last->outcome;
  news->sentence = last->sentence;
  news->halt = last->halt;
  news->skipped = last->skipped;
  news->clip = last->clip;
  commit(mailbox);
}

void msa_mailbox_done(struct msa_mailbox *mailbox, char *skipped, struct msa_clip_row *clip) {
  end(mailbox, &(struct msa_news){.outcome = MSA_OUTCOME_DONE, .skipped = skipped, .clip = clip});
}

void msa_mailbox_stopped(struct msa_mailbox *mailbox, char *skipped) {
  end(mailbox, &(struct msa_news){.outcome = MSA_OUTCOME_STOPPED, .skipped = skipped});
}

void msa_mailbox_failed(struct msa_mailbox *mailbox, char *skipped, char *sentence, gboolean halt) {
  end(mailbox, &(struct msa_news){
                   .outcome = MSA_OUTCOME_FAILED, .skipped = skipped, .sentence = sentence, .halt = halt});
}
