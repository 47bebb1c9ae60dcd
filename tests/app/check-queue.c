/* The queue with real, tiny jobs: order, edit, pause, resume, stop, take, failure; and how often it wakes the
 * main thread. */
#include <glib/gstdio.h>
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "harness.h"
#include "queue/mailbox.h"
#include "studio-room.h"

#define LONG 900 /* steps: seconds of work */

static void ended_cb(MsaQueue *queue, MsaJob *job, gpointer data) {
  g_ptr_array_add(data, g_object_ref(job));
}

static const char *title_at(MsaStudio *studio, guint position) {
  MsaJob *job = room_nth(studio, position);
  return job ? msa_job_get_title(job) : "";
}

static gboolean order_is(MsaStudio *studio, const char *letters) {
  gboolean good = g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_queue(studio))) == strlen(letters);
  for (guint i = 0; good && letters[i]; i++)
    good = title_at(studio, i)[0] == letters[i];
  return good;
}

static gboolean has_time(gpointer data) {
  return msa_queue_get_seconds_left(data) > 0;
}

/* Once the machine's rates are known. */
static void check_time_left(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(queue));
  check_ok(room_until(has_time, queue, 60), "waiting jobs have a time");
  double sum = 0;
  gboolean known = TRUE;
  for (guint i = 0; i < count; i++) {
    const double left = msa_job_get_seconds_left(room_nth(studio, i));
    known = known && left > 0;
    sum += left;
  }
  check_ok(known && fabs(sum - msa_queue_get_seconds_left(queue)) < 1e-9 * sum,
           "the queue's is their sum (%.2f s)", sum);
}

static gint64 count_files(MsaStudio *studio) {
  return room_count(msa_studio_get_clips_folder(studio));
}

/* While the queue is paused, so that nothing runs meanwhile. */
static void check_order(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  g_autoptr(MsaJob) a = NULL, b = NULL, c = NULL, d = NULL;
  msa_queue_set_paused(queue, TRUE);
  a = room_add(studio, "a", 2, 1);
  check_ok(g_list_model_get_n_items(G_LIST_MODEL(queue)) == 0,
           "a job is not in the list before it is stored");
  b = room_add(studio, "b", 2, 2);
  c = room_add(studio, "c", 2, 3);
  d = room_add(studio, "d", 2, 4);
  check_ok(room_listed(studio, 4, 5) && order_is(studio, "abcd"), "jobs come in the order of asking");
  room_idle(.1);
  check_ok(!msa_queue_get_running(queue) && msa_job_get_state(a) == MSA_JOB_QUEUED,
           "while the queue is paused nothing starts");
  check_time_left(studio);
  msa_queue_move_job(queue, d, 0);
  check_ok(order_is(studio, "dabc"), "a job moves to the head");
  msa_queue_move_job(queue, d, 2);
  check_ok(order_is(studio, "abdc"), "and down again");
  msa_queue_move_job(queue, a, 99);
  check_ok(order_is(studio, "bdca"), "past the end is the end");
  msa_queue_pause_job(queue, b);
  msa_queue_move_job(queue, c, 0);
  check_ok(msa_job_get_state(b) == MSA_JOB_PAUSED && order_is(studio, "bcda"),
           "positions count the waiting jobs only");
  g_autoptr(MsaGenerateParams) other = room_params("e", 3, 7);
  check_ok(msa_queue_edit_job(queue, c, other) && !strcmp(msa_job_get_title(c), "e"),
           "a waiting job gets other settings");
  check_ok(!msa_queue_edit_job(queue, b, other), "a paused one does not");
  msa_queue_cancel_job(queue, d);
  check_ok(order_is(studio, "bea") && msa_job_get_state(d) == MSA_JOB_CANCELLED,
           "a waiting job is cancelled");
}

static void check_after_restart(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  check_ok(msa_queue_get_paused(queue) && order_is(studio, "bea"),
           "after a restart the queue is there, paused and in order");
  check_ok(msa_job_get_generate(room_nth(studio, 1))->seed == 7 &&
               msa_job_get_state(room_nth(studio, 0)) == MSA_JOB_PAUSED,
           "with settings and states");
  g_autoptr(GPtrArray) ended = g_ptr_array_new_with_free_func(g_object_unref);
  const gulong handler = g_signal_connect(queue, "job-ended", G_CALLBACK(ended_cb), ended);
  msa_queue_set_paused(queue, FALSE);
  check_ok(room_listed(studio, 1, 60) && order_is(studio, "b"), "then all but the paused one run");
  msa_queue_resume_job(queue, room_nth(studio, 0));
  check_ok(room_listed(studio, 0, 60), "and that one when it is resumed");
  const char *const order[] = {"e", "a", "b"};
  gboolean good = ended->len == 3;
  for (guint i = 0; good && i < 3; i++) {
    MsaClip *clip = msa_job_get_clip(ended->pdata[i]);
    good = !strcmp(msa_job_get_title(ended->pdata[i]), order[i]) && clip &&
           room_exists(msa_clip_get_path(clip)) && !strcmp(msa_clip_get_kind(clip), "made") &&
           msa_job_get_fraction(ended->pdata[i]) == 1;
  }
  check_ok(good, "each ended with its clip, in the order of the list");
  check_ok(g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_library(studio))) == 3, "all in the library");
  g_signal_handler_disconnect(queue, handler);
}

static double seconds_to(MsaJob *job, enum msa_job_state state) {
  const gint64 from = g_get_monotonic_time();
  return room_reaches(job, state, 30) ? (double)(g_get_monotonic_time() - from) / G_USEC_PER_SEC : INFINITY;
}

/* Threads that carry the engine's name (its helpers inherit it) and the least of their priorities. */
static int engine_threads(int *politest, gboolean *batch) {
  g_autoptr(GDir) dir = g_dir_open("/proc/self/task", 0, NULL);
  const char *name;
  int count = 0;
  *politest = 99;
  *batch = TRUE;
  while (dir && (name = g_dir_read_name(dir))) {
    g_autofree char *path = g_strdup_printf("/proc/self/task/%s/comm", name), *comm = NULL;
    const int thread = (int)g_ascii_strtoll(name, NULL, 10);
    if (!g_file_get_contents(path, &comm, NULL, NULL) || strcmp(g_strchomp(comm), "engine"))
      continue;
    count++;
    *politest = MIN(*politest, getpriority(PRIO_PROCESS, (id_t)thread));
    *batch = *batch && sched_getscheduler(thread) == SCHED_BATCH;
  }
  return count;
}

static void check_priority(void) {
  int nice;
  gboolean batch;
  const int count = engine_threads(&nice, &batch);
  const int own = getpriority(PRIO_PROCESS, (id_t)getpid());
  check_ok(count >= 1 && batch && nice == MIN(19, own + 10),
           "the engine's %d threads stand back (nice %d%s) behind the main thread (%d)", count, nice,
           batch ? ", batch" : "", own);
}

/* The least of what a job told. */
struct lowest {
  gint64 done;
  double fraction;
};

static void lowest_cb(MsaJob *job, GParamSpec *spec, gpointer data) {
  struct lowest *lowest = data;
  if (!strcmp(msa_job_get_phase(job), "sample"))
    lowest->done = MIN(lowest->done, msa_job_get_done(job));
  lowest->fraction = MIN(lowest->fraction, msa_job_get_fraction(job));
}

static void check_pause(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  g_autoptr(MsaJob) job = room_add(studio, "a red ball moves right", LONG, -1);
  check_ok(room_stepped(job, 40, 60) && msa_queue_get_running(queue) == job &&
               msa_job_get_state(job) == MSA_JOB_RUNNING,
           "a job runs");
  check_priority();
  const gint64 seed = msa_job_get_generate(job)->seed;
  check_ok(seed >= 0, "its seed was drawn at the start");
  check_ok(msa_job_get_preview(job) && msa_job_get_preview(job)->step > 0 &&
               msa_job_get_preview(job)->steps == LONG,
           "a preview of it is there");
  check_ok(msa_job_get_fraction(job) > 0 && msa_job_get_seconds_left(job) > 0 &&
               msa_queue_get_seconds_left(queue) > 0,
           "with its fraction and the time left");
  msa_queue_pause_job(queue, job);
  check_ok(msa_job_get_state(job) == MSA_JOB_STOPPING, "told to pause it is stopping");
  const double seconds = seconds_to(job, MSA_JOB_PAUSED);
  check_ok(seconds < 1, "and paused within a second (%.3f s)", seconds);
  const gint64 done = msa_job_get_done(job);
  const double fraction = msa_job_get_fraction(job);
  check_ok(done < LONG && !msa_queue_get_running(queue), "in the middle");
  g_autoptr(MsaJob) second = room_add(studio, "a blue star", 2, 1);
  check_ok(room_reaches(second, MSA_JOB_DONE, 60), "meanwhile another one is made");
  struct lowest lowest = {G_MAXINT64, 1};
  g_signal_connect(job, "notify::done", G_CALLBACK(lowest_cb), &lowest);
  msa_queue_resume_job(queue, job);
  check_ok(room_reaches(job, MSA_JOB_RUNNING, 5), "resumed it runs");
  check_ok(room_reaches(job, MSA_JOB_DONE, 120) && msa_job_get_generate(job)->seed == seed, "to its end");
  check_ok(lowest.done >= done && lowest.fraction >= fraction,
           "from where it was: step %d after %d, and the bar did not go back", (int)lowest.done, (int)done);
  g_signal_handlers_disconnect_by_data(job, &lowest);
  g_autoptr(MsaJob) whole = room_add(studio, "a red ball moves right", LONG, seed);
  check_ok(room_reaches(whole, MSA_JOB_DONE, 120) &&
               room_same_bytes(msa_clip_get_path(msa_job_get_clip(job)),
                               msa_clip_get_path(msa_job_get_clip(whole))),
           "and its clip has the bytes of one that was never paused");
}

/* What was sampled with the old settings is of no use to the new ones. */
static void check_edit_after_pause(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  g_autoptr(MsaJob) job = room_add(studio, "a red star", LONG, 3);
  check_ok(room_stepped(job, 20, 60), "a job runs");
  msa_queue_pause_job(queue, job);
  check_ok(room_reaches(job, MSA_JOB_PAUSED, 5), "is paused");
  msa_queue_set_paused(queue, TRUE);
  msa_queue_resume_job(queue, job);
  room_idle(.1);
  check_ok(msa_job_get_state(job) == MSA_JOB_QUEUED, "resumed it waits, as the queue is paused");
  g_autoptr(MsaGenerateParams) other = room_params("a blue star", 2, 4);
  check_ok(msa_queue_edit_job(queue, job, other) && msa_job_get_fraction(job) == 0, "gets other settings");
  msa_queue_set_paused(queue, FALSE);
  room_reaches(job, MSA_JOB_DONE, 60);
  check_ok(msa_job_get_clip(job) && msa_clip_get_params(msa_job_get_clip(job))->steps == 2 &&
               !strcmp(msa_clip_get_prompt(msa_job_get_clip(job)), "a blue star"),
           "and is made with them (%s)", msa_job_get_error(job) ? msa_job_get_error(job) : "no error");
}

static void check_cancel(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  g_autofree char *states = room_path("data/megaslide/jobs");
  const gint64 files = count_files(studio);
  g_autoptr(MsaJob) job = room_add(studio, "a green square", LONG, 5);
  check_ok(room_stepped(job, 20, 60) && room_count(states) == 1, "a job runs and its state lies on the disk");
  msa_queue_cancel_job(queue, job);
  const double seconds = seconds_to(job, MSA_JOB_CANCELLED);
  check_ok(seconds < 1, "it is cancelled within a second (%.3f s)", seconds);
  check_ok(room_listed(studio, 0, 5), "and no longer in the list");
  room_idle(.2);
  check_ok(room_count(states) == 0 && count_files(studio) == files, "nothing of it is left");
  g_autoptr(MsaJob) next = room_add(studio, "a green square", 2, 5);
  check_ok(room_reaches(next, MSA_JOB_DONE, 60), "the next one is made");
  g_autoptr(MsaJob) early = room_add(studio, "a green square", 2, 5);
  msa_queue_cancel_job(queue, early);
  room_idle(.3);
  check_ok(msa_job_get_state(early) == MSA_JOB_CANCELLED && room_listed(studio, 0, 1) &&
               count_files(studio) == files + 1,
           "one that is cancelled before it is stored never shows");
}

static void check_take(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  g_autofree char *states = room_path("data/megaslide/jobs");
  g_autoptr(MsaJob) job = room_add(studio, "a yellow ring", LONG, 6);
  check_ok(room_stepped(job, 20, 60), "a job runs");
  msa_queue_take_job(queue, job);
  check_ok(room_reaches(job, MSA_JOB_DONE, 30), "what is there is taken");
  MsaClip *clip = msa_job_get_clip(job);
  check_ok(clip && !strcmp(msa_clip_get_kind(clip), "partial") && room_exists(msa_clip_get_path(clip)) &&
               room_count(states) == 0,
           "as a partial clip");
  g_autoptr(MsaJob) other = room_add(studio, "a yellow heart", LONG, 6);
  check_ok(room_stepped(other, 20, 60), "another one runs");
  msa_queue_pause_job(queue, other);
  check_ok(room_reaches(other, MSA_JOB_PAUSED, 5), "is paused");
  msa_queue_set_paused(queue, TRUE);
  msa_queue_take_job(queue, other);
  room_reaches(other, MSA_JOB_DONE, 30);
  check_ok(msa_job_get_clip(other) && !strcmp(msa_clip_get_kind(msa_job_get_clip(other)), "partial"),
           "and taken later, although the queue is paused (state %d)", msa_job_get_state(other));
  msa_queue_set_paused(queue, FALSE);
}

static void check_failure(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  g_autoptr(MsaGenerateParams) params = room_params("a red ball", 2, 1);
  params->model = g_strdup("no-such-model");
  g_autoptr(MsaJob) job = msa_queue_add_generate(queue, params);
  room_reaches(job, MSA_JOB_FAILED, 30);
  check_ok(msa_job_get_error(job) && strstr(msa_job_get_error(job), "no-such-model") &&
               strstr(msa_job_get_error(job), "starter"),
           "a model that is not there: %s", msa_job_get_error(job));
  check_ok(room_nth(studio, 0) == job, "the failed job stays in the list");
  msa_queue_retry_job(queue, job);
  check_ok(msa_job_get_state(job) != MSA_JOB_FAILED && !msa_job_get_error(job) &&
               room_reaches(job, MSA_JOB_FAILED, 30),
           "tried once more it fails once more");
  msa_queue_cancel_job(queue, job);
  check_ok(room_listed(studio, 0, 1), "and leaves when it is cancelled");
  g_autoptr(MsaGenerateParams) cuda = room_params("a red ball", 2, 1);
  cuda->device = g_strdup("cuda");
  g_autoptr(MsaJob) device = msa_queue_add_generate(queue, cuda);
  room_reaches(device, MSA_JOB_FAILED, 30);
  check_ok(msa_job_get_error(device) && strstr(msa_job_get_error(device), "cuda"),
           "a device that is not there is no silent processor: %s", msa_job_get_error(device));
  msa_queue_cancel_job(queue, device);
  g_autoptr(MsaJob) words = room_add(studio, "a red ball and a zebra", 2, 1);
  check_ok(room_reaches(words, MSA_JOB_DONE, 30) && strstr(msa_job_get_skipped_words(words), "zebra"),
           "words that the model does not know are told");
}

/* Clips cannot be written: the first job says so, the second is not made to fail too. */
static void check_halt(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  const char *clips = msa_studio_get_clips_folder(studio);
  g_autofree char *away = g_strconcat(clips, "-away", NULL);
  check_ok(g_rename(clips, away) == 0, "the folder of clips is gone");
  g_autoptr(MsaJob) first = room_add(studio, "a red ball", 2, 1),
                    second = room_add(studio, "a blue ball", 2, 2);
  room_reaches(first, MSA_JOB_FAILED, 30);
  check_ok(msa_job_get_error(first) && strstr(msa_job_get_error(first), clips), "a job fails: %s",
           msa_job_get_error(first));
  room_idle(.1);
  check_ok(msa_queue_get_paused(queue) && msa_job_get_state(second) == MSA_JOB_QUEUED,
           "the queue pauses, so that the next one waits");
  check_ok(g_rename(away, clips) == 0, "the folder is there again");
  msa_queue_retry_job(queue, first);
  check_ok(room_reaches(first, MSA_JOB_DONE, 30) && room_reaches(second, MSA_JOB_DONE, 30),
           "tried once more it is made, and the other one after it");
}

/* 10,000 hook calls from another thread. */
struct counting {
  struct msa_mailbox *mailbox;
  guint deliveries, points;
  gint64 last;
  gboolean ended;
};

static void count_cb(const struct msa_news *news, gpointer data) {
  struct counting *counting = data;
  counting->deliveries++;
  counting->points += news->points ? news->points->len : 0;
  counting->last = news->progress ? news->done : counting->last;
  counting->ended = news->outcome == MSA_OUTCOME_DONE;
}

static gpointer report_thread(gpointer data) {
  struct counting *counting = data;
  static const guint8 rgb[3];
  for (int i = 1; i <= 10000; i++) {
    msa_mailbox_progress(counting->mailbox, "sample", i, 10000, i, 10000 - i);
    msa_mailbox_preview(counting->mailbox, msa_frames_new(rgb, 1, 1, 1, 8));
    msa_mailbox_point(counting->mailbox, "loss", i, i);
    if (i % 1000 == 0)
      g_usleep(1000);
  }
  msa_mailbox_done(counting->mailbox, NULL, NULL);
  return NULL;
}

static gboolean has_ended(gpointer data) {
  return ((const struct counting *)data)->ended;
}

static struct counting count_reports(gboolean busy) {
  struct counting counting = {0};
  counting.mailbox = msa_mailbox_new(count_cb, &counting);
  GThread *thread = g_thread_new("reports", report_thread, &counting);
  if (busy) /* with something else, as long as the reports come */
    g_thread_join(thread);
  check_ok(room_until(has_ended, &counting, 60), "the end arrives");
  if (!busy)
    g_thread_join(thread);
  check_ok(counting.last == 10000 && counting.points == 10000, "with the last value, and no point is lost");
  msa_mailbox_unref(counting.mailbox);
  return counting;
}

static void check_coalescing(void) {
  check_ok(count_reports(TRUE).deliveries == 1, "30,000 reports to a busy main thread are one callback");
  check_ok(count_reports(FALSE).deliveries < 30000, "to an idle one they are fewer than there are");
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  check_coalescing();
  MsaStudio *studio = room_open();
  check_order(studio);
  room_close(studio);
  studio = room_open();
  check_after_restart(studio);
  check_pause(studio);
  check_edit_after_pause(studio);
  check_cancel(studio);
  check_take(studio);
  check_failure(studio);
  check_halt(studio);
  room_close(studio);
  return room_end();
}
