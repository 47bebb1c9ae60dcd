/* A run of twenty steps: its curves, samples and state, paused and resumed, with a curve of a million points
 * beside it. */
#include <glib/gstdio.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <time.h>

#include "harness.h"
#include "studio-room.h"

#define STEPS 20
#define CLIPS 4

static MsaTrainParams *train_params(const char *name, const char *dataset) {
  MsaTrainParams *params = msa_train_params_new();
  params->name = g_strdup(name);
  params->dataset = g_strdup(dataset);
  params->sample_prompt = g_strdup("a red ball");
  params->steps = STEPS;
  params->save_every = 0;
  params->sample_every = 10;
  params->validate_every = 10;
  params->batch = 1;
  params->width = params->height = 64;
  params->frames = 5;
  return params;
}

static MsaRun *first_run(MsaStudio *studio) {
  g_autoptr(MsaRun) run = g_list_model_get_item(msa_studio_get_runs(studio), 0);
  return run;
}

struct growing {
  MsaSeries *series;
  gsize length;
};

static gboolean has_length(gpointer data) {
  const struct growing *growing = data;
  return msa_series_get_length(growing->series) >= growing->length;
}

static gboolean grows_to(MsaSeries *series, gsize length, double seconds) {
  struct growing growing = {series, length};
  return room_until(has_length, &growing, seconds);
}

static gboolean is_one_by_one(MsaSeries *series, gsize length) {
  if (msa_series_get_length(series) != length)
    return FALSE;
  for (gsize i = 0; i < length; i++)
    if (msa_series_get_x(series)[i] != (double)i + 1 || !isfinite(msa_series_get_y(series)[i]))
      return FALSE;
  return TRUE;
}

static gboolean has_samples(gpointer data) {
  return msa_run_get_samples(data)->len == STEPS / 10;
}

static gboolean library_has(gpointer data) {
  return g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_library(data))) >= STEPS / 10;
}

static char *weights_of(MsaRun *run) {
  return g_build_filename(msa_run_get_folder(run), "dit.safetensors", NULL);
}

static void phase_cb(MsaJob *job, GParamSpec *property, GString *phases) {
  g_string_append_printf(phases, "%s ", msa_job_get_phase(job));
  if (!strcmp(msa_job_get_phase(job), "cache") && msa_job_get_seconds_left(job) >= 0)
    g_string_append(phases, "with a time that it cannot know ");
}

static void check_run(MsaStudio *studio, const char *dataset) {
  g_autoptr(GString) phases = g_string_new(NULL);
  g_autoptr(MsaTrainParams) params = train_params("My run", dataset);
  g_autoptr(MsaJob) job = msa_queue_add_train(msa_studio_get_queue(studio), params);
  check_ok(room_listed(studio, 1, 5) && g_list_model_get_n_items(msa_studio_get_runs(studio)) == 1,
           "a run is in the list");
  MsaRun *run = first_run(studio);
  check_ok(msa_run_get_job(run) == job && msa_run_get_steps(run) == STEPS && isnan(msa_run_get_loss(run)),
           "with its job");
  MsaSeries *loss = msa_run_get_series(run, "loss");
  g_signal_connect(job, "notify::phase", G_CALLBACK(phase_cb), phases);
  room_reaches(job, MSA_JOB_DONE, 200);
  g_signal_handlers_disconnect_by_data(job, phases);
  check_ok(msa_job_get_state(job) == MSA_JOB_DONE, "it is trained (%s)",
           msa_job_get_error(job) ? msa_job_get_error(job) : "no error");
  check_ok(msa_run_get_state(run) == MSA_JOB_DONE && !msa_run_get_job(run) &&
               msa_run_get_step(run) == STEPS && isfinite(msa_run_get_loss(run)),
           "and its run is done");
  const char *cache = strstr(phases->str, "cache "), *train = strstr(phases->str, "train ");
  check_ok(cache && train && cache < train && !strstr(phases->str, "encode") && !strstr(phases->str, "time"),
           "clips were prepared before it learned, with no word of the time left: %s", phases->str);
  check_ok(is_one_by_one(loss, STEPS), "the loss has a point a step (%d)", (int)msa_series_get_length(loss));
  check_ok(msa_series_get_y(loss)[STEPS - 1] == msa_run_get_loss(run), "the last one is the run's");
  MsaSeries *rate = msa_run_get_series(run, "learning_rate");
  check_ok(msa_series_get_length(rate) == 0 && grows_to(rate, STEPS, 5) && is_one_by_one(rate, STEPS),
           "a curve that is asked for later comes from the store");
  MsaSeries *validation = msa_run_get_series(run, "validation_loss");
  check_ok(grows_to(validation, 2, 5), "validation has its points");
  check_ok(msa_series_get_length(msa_run_get_series(run, "no-such-curve")) == 0,
           "a name that does not exist is an empty curve");
  check_ok(room_until(has_samples, run, 5) && ((MsaSample *)msa_run_get_samples(run)->pdata[0])->step == 10 &&
               room_exists(((MsaSample *)msa_run_get_samples(run)->pdata[1])->path),
           "sample clips are there, by step");
  check_ok(room_until(library_has, studio, 10), "in the library too");
  g_autofree char *weights = weights_of(run);
  check_ok(room_exists(weights), "the folder is a model");
}

static void check_csv(MsaRun *run) {
  g_autofree char *path = room_path("curves.csv"), *text = NULL, *bad = room_path("no/such/folder.csv");
  g_autoptr(GAsyncResult) result = NULL, bad_result = NULL;
  g_autoptr(GError) error = NULL;
  msa_run_save_csv_async(run, path, room_done, &result);
  room_wait(&result);
  check_ok(msa_run_save_csv_finish(run, result, NULL) && g_file_get_contents(path, &text, NULL, NULL),
           "curves are saved as CSV");
  g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);
  check_ok(g_strv_length(lines) == STEPS + 2 && g_str_has_prefix(lines[0], "step,loss,") &&
               strstr(lines[0], "learning_rate") && g_str_has_prefix(lines[STEPS], "20,"),
           "a line a step under the names");
  msa_run_save_csv_async(run, bad, room_done, &bad_result);
  room_wait(&bad_result);
  const gboolean saved = msa_run_save_csv_finish(run, bad_result, &error);
  check_ok(!saved && strstr(error->message, "folder.csv"), "where it cannot be written: %s",
           error ? error->message : "no error");
}

/* Paused and resumed, also over a restart: the same weights as the straight run. */
static MsaStudio *check_pause(MsaStudio *studio, const char *dataset) {
  g_autofree char *straight = weights_of(first_run(studio)), *resumed = NULL;
  g_autoptr(MsaTrainParams) params = train_params("My run", dataset);
  g_autoptr(MsaJob) job = msa_queue_add_train(msa_studio_get_queue(studio), params);
  check_ok(room_listed(studio, 1, 5) && strcmp(msa_run_get_folder(first_run(studio)), straight),
           "a second run of that name has a folder of its own");
  g_autoptr(MsaRun) run = g_object_ref(first_run(studio));
  MsaSeries *loss = msa_run_get_series(run, "loss");
  check_ok(grows_to(loss, 4, 100), "it learns");
  msa_queue_pause_job(msa_studio_get_queue(studio), job);
  check_ok(room_reaches(job, MSA_JOB_PAUSED, 20) && msa_run_get_state(run) == MSA_JOB_PAUSED &&
               msa_run_get_step(run) < STEPS,
           "it is paused at step %d", (int)msa_run_get_step(run));
  const gint64 step = msa_run_get_step(run);
  g_clear_object(&run);
  room_close(studio);
  studio = room_open();
  run = g_object_ref(first_run(studio));
  loss = msa_run_get_series(run, "loss");
  check_ok(msa_run_get_state(run) == MSA_JOB_PAUSED && msa_run_get_step(run) == step &&
               msa_run_get_job(run) && grows_to(loss, (gsize)step, 5),
           "after a restart it is there with its curve");
  g_autoptr(MsaJob) again = g_object_ref(msa_run_get_job(run));
  msa_queue_resume_job(msa_studio_get_queue(studio), again);
  check_ok(room_reaches(again, MSA_JOB_DONE, 200) && is_one_by_one(loss, STEPS), "resumed it is trained");
  resumed = weights_of(run);
  check_ok(room_same_bytes(straight, resumed), "to the same weights as the straight run");
  return studio;
}

static void check_stop(MsaStudio *studio, const char *dataset) {
  g_autoptr(MsaTrainParams) params = train_params("Stopped", dataset);
  params->steps = 100000;
  params->sample_every = 0;
  g_autoptr(MsaJob) job = msa_queue_add_train(msa_studio_get_queue(studio), params);
  check_ok(room_listed(studio, 1, 5) && grows_to(msa_run_get_series(first_run(studio), "loss"), 3, 100),
           "a long run learns");
  g_autoptr(MsaRun) run = g_object_ref(first_run(studio));
  msa_queue_cancel_job(msa_studio_get_queue(studio), job);
  check_ok(room_reaches(job, MSA_JOB_CANCELLED, 20) && msa_run_get_state(run) == MSA_JOB_CANCELLED &&
               !msa_run_get_job(run) && room_listed(studio, 0, 1),
           "stopped it leaves the queue");
  g_autofree char *weights = weights_of(run);
  check_ok(room_exists(weights), "and keeps a usable model");
  g_autoptr(MsaTrainParams) lost = train_params("Lost", "/no/such/folder");
  g_autoptr(MsaJob) failing = msa_queue_add_train(msa_studio_get_queue(studio), lost);
  room_reaches(failing, MSA_JOB_FAILED, 30);
  check_ok(msa_job_get_error(failing) && strstr(msa_job_get_error(failing), "/no/such/folder"),
           "a folder that is not there: %s", msa_job_get_error(failing));
  msa_queue_cancel_job(msa_studio_get_queue(studio), failing);
  msa_studio_forget_run(studio, first_run(studio));
  check_ok(g_list_model_get_n_items(msa_studio_get_runs(studio)) == 3, "a run is forgotten");
}

/* A million points arrive in pieces that leave the main loop free. */
#define MILLION 1000000

static void fill_million(void) {
  g_autofree char *path = room_path("data/megaslide/studio.db");
  sqlite3 *db;
  g_assert(sqlite3_open(path, &db) == SQLITE_OK);
  g_assert(sqlite3_exec(db,
                        "INSERT INTO series (run, name) SELECT max (id), 'long' FROM runs;"
                        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) "
                        "INSERT INTO metrics SELECT (SELECT max (id) FROM series), i, 1.0 / i FROM n",
                        NULL, NULL, NULL) == SQLITE_OK);
  sqlite3_close(db);
}

/* Of this thread, so that other programs do not count. */
static gint64 busy_microseconds(void) {
  struct timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return (gint64)time.tv_sec * G_USEC_PER_SEC + time.tv_nsec / 1000;
}

static void check_million(void) {
  fill_million();
  MsaStudio *studio = room_open();
  MsaSeries *series = msa_run_get_series(first_run(studio), "long");
  const gint64 begin = g_get_monotonic_time();
  gint64 longest = 0;
  while (msa_series_get_length(series) < MILLION && g_get_monotonic_time() - begin < 30 * G_USEC_PER_SEC) {
    const gint64 from = busy_microseconds();
    g_main_context_iteration(NULL, TRUE);
    longest = MAX(longest, busy_microseconds() - from);
  }
  const double seconds = (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
  check_ok(msa_series_get_length(series) == MILLION && msa_series_get_y(series)[MILLION - 1] == 1e-6,
           "a million points are loaded in %.2f s", seconds);
  check_ok(longest > 0 && longest < 50000, "and the main thread is never busy for 50 ms (%.2f ms)",
           (double)longest / 1000);
  room_close(studio);
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  g_autofree char *dataset = room_path("clips");
  g_mkdir(dataset, 0700);
  for (int i = 0; i < CLIPS; i++) {
    g_autofree char *clip = g_strdup_printf("%s/%d.mp4", dataset, i),
                    *caption = g_strdup_printf("%s/%d.txt", dataset, i);
    room_clip(clip, 5 + i, NULL);
    room_write(caption, "a red ball moves right\n");
  }
  MsaStudio *studio = room_open();
  check_run(studio, dataset);
  check_csv(first_run(studio));
  studio = check_pause(studio, dataset);
  check_stop(studio, dataset);
  room_close(studio);
  check_million();
  return room_end();
}
