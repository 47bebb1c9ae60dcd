/* The process is killed in the middle of a job; the next one finds the queue and ends with the same bytes. */
#include <glib/gstdio.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "studio-room.h"

#define STEPS 900
#define PROMPT "a red ball moves right"

/* The child: two jobs; killed when the first has done some steps. */
static int run_victim(void) {
  MsaStudio *studio = room_open();
  MsaJob *job = room_add(studio, PROMPT, STEPS, 11);
  room_add(studio, "b", 2, 2);
  if (room_stepped(job, 60, 60) && room_listed(studio, 2, 5))
    kill(getpid(), SIGKILL);
  return 1;
}

#define TRAIN_STEPS 10
#define SAVE_EVERY 4

static MsaJob *add_training(MsaStudio *studio) {
  g_autoptr(MsaTrainParams) params = msa_train_params_new();
  g_autofree char *dataset = g_build_filename(g_getenv("XDG_DATA_HOME"), "clips", NULL);
  params->name = g_strdup("run");
  params->dataset = g_strdup(dataset);
  params->steps = TRAIN_STEPS;
  params->save_every = SAVE_EVERY;
  params->validate_every = 0;
  params->batch = 1;
  params->width = params->height = 64;
  params->frames = 5;
  return msa_queue_add_train(msa_studio_get_queue(studio), params);
}

/* Killed between two checkpoints. */
static int run_training_victim(void) {
  MsaStudio *studio = room_open();
  MsaJob *job = add_training(studio);
  if (room_stepped(job, SAVE_EVERY + 2, 200))
    kill(getpid(), SIGKILL);
  return 1;
}

static int spawn_victim(const char *program, const char *which) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, which, NULL);
    _exit(127);
  }
  waitpid(child, &status, 0);
  return status;
}

static void check_resume(void) {
  MsaStudio *studio = room_open();
  MsaQueue *queue = msa_studio_get_queue(studio);
  check_ok(room_listed(studio, 2, 5) && msa_queue_get_paused(queue), "the queue is there, paused");
  g_autoptr(MsaJob) job = g_object_ref(room_nth(studio, 0)), second = g_object_ref(room_nth(studio, 1));
  check_ok(msa_job_get_state(job) == MSA_JOB_PAUSED && !strcmp(msa_job_get_title(job), PROMPT),
           "the interrupted job first");
  check_ok(msa_job_get_state(second) == MSA_JOB_QUEUED, "the other one waits");
  msa_queue_resume_job(queue, job);
  check_ok(!msa_queue_get_paused(queue), "going on with it ends the pause that nobody asked for");
  check_ok(room_reaches(job, MSA_JOB_RUNNING, 5) && room_stepped(job, 1, 30), "it goes on");
  /* Steps of milliseconds are not saved one by one where that would cost more than they do. */
  check_ok(msa_job_get_done(job) >= 10, "from a late step (%d)", (int)msa_job_get_done(job));
  check_ok(room_reaches(job, MSA_JOB_DONE, 120) && room_reaches(second, MSA_JOB_DONE, 60), "both are made");
  g_autoptr(MsaJob) whole = room_add(studio, PROMPT, STEPS, 11);
  check_ok(room_reaches(whole, MSA_JOB_DONE, 120) &&
               room_same_bytes(msa_clip_get_path(msa_job_get_clip(job)),
                               msa_clip_get_path(msa_job_get_clip(whole))),
           "the resumed clip has the bytes of one that was never interrupted");
  check_ok(strcmp(msa_clip_get_path(msa_job_get_clip(job)), msa_clip_get_path(msa_job_get_clip(whole))),
           "in a file of its own");
  room_close(studio);
}

/* Points of the last second before the end may be missing, none is there twice. */
static gboolean is_whole(gpointer data) {
  const gsize length = msa_series_get_length(data);
  const double *x = msa_series_get_x(data);
  for (gsize i = 1; i < length; i++)
    if (x[i] <= x[i - 1])
      return FALSE;
  return length >= TRAIN_STEPS - SAVE_EVERY && x[length - 1] == TRAIN_STEPS;
}

static void check_training(const char *program) {
  g_autofree char *dataset = g_build_filename(g_getenv("XDG_DATA_HOME"), "clips", NULL);
  g_mkdir(dataset, 0700);
  for (int i = 0; i < 3; i++) {
    g_autofree char *clip = g_strdup_printf("%s/%d.mp4", dataset, i),
                    *caption = g_strdup_printf("%s/%d.txt", dataset, i);
    room_clip(clip, 5 + i, NULL);
    room_write(caption, "a red ball moves right\n");
  }
  const int status = spawn_victim(program, "--training-victim");
  check_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a Studio is killed in the middle of a run");
  MsaStudio *studio = room_open();
  check_ok(room_listed(studio, 1, 5) && g_list_model_get_n_items(msa_studio_get_runs(studio)) == 1,
           "the run is there");
  g_autoptr(MsaRun) run = g_list_model_get_item(msa_studio_get_runs(studio), 0);
  g_autoptr(MsaJob) job = g_object_ref(room_nth(studio, 0));
  check_ok(msa_run_get_state(run) == MSA_JOB_PAUSED && msa_run_get_job(run) == job &&
               msa_run_get_step(run) < TRAIN_STEPS,
           "paused at step %d", (int)msa_run_get_step(run));
  MsaSeries *loss = msa_run_get_series(run, "loss");
  msa_queue_resume_job(msa_studio_get_queue(studio), job);
  check_ok(room_reaches(job, MSA_JOB_DONE, 200) && room_until(is_whole, loss, 5),
           "resumed it ends, and its curve goes on to the end");
  g_autoptr(MsaJob) straight = add_training(studio);
  check_ok(room_reaches(straight, MSA_JOB_DONE, 200), "beside a straight run");
  g_autoptr(MsaRun) other = g_list_model_get_item(msa_studio_get_runs(studio), 0);
  g_autofree char *a = g_build_filename(msa_run_get_folder(run), "dit.safetensors", NULL),
                  *b = g_build_filename(msa_run_get_folder(other), "dit.safetensors", NULL);
  check_ok(strcmp(a, b) && room_same_bytes(a, b), "both learned the same, bit for bit");
  room_close(studio);
}

/* A close in the middle of a job is an interruption too; what was damaged meanwhile is told. */
static void check_close(void) {
  g_autofree char *states = room_path("data/megaslide/jobs");
  MsaStudio *studio = room_open();
  g_autoptr(MsaJob) job = room_add(studio, PROMPT, STEPS, 12);
  check_ok(room_stepped(job, 30, 60), "a job runs");
  const double fraction = msa_job_get_fraction(job);
  room_close(studio);
  studio = room_open();
  MsaQueue *queue = msa_studio_get_queue(studio);
  check_ok(room_nth(studio, 0) && msa_job_get_state(room_nth(studio, 0)) == MSA_JOB_PAUSED &&
               msa_queue_get_paused(queue),
           "after a close in the middle it is there, paused");
  check_ok(fraction > 0 && msa_job_get_fraction(room_nth(studio, 0)) >= fraction, "as far as it was (%.3f)",
           msa_job_get_fraction(room_nth(studio, 0)));
  g_autoptr(MsaJob) again = g_object_ref(room_nth(studio, 0));
  g_autofree char *damage = g_strdup_printf("truncate -s 100 %s/*/*.safetensors", states);
  check_ok(system(damage) == 0, "its state is damaged");
  msa_queue_set_paused(queue, FALSE);
  room_reaches(again, MSA_JOB_FAILED, 30);
  check_ok(msa_job_get_error(again) && strstr(msa_job_get_error(again), "state.safetensors"),
           "it fails and says why: %s", msa_job_get_error(again));
  msa_queue_cancel_job(queue, again);
  check_ok(room_listed(studio, 0, 1), "and can be cancelled");
  room_close(studio);
}

/* What a power failure leaves of the job's description: nothing. The settings stand in the store. */
static void check_empty_state(void) {
  g_autofree char *states = room_path("data/megaslide/jobs");
  MsaStudio *studio = room_open();
  g_autoptr(MsaJob) job = room_add(studio, PROMPT, STEPS, 13);
  check_ok(room_stepped(job, 30, 60), "another job runs");
  room_close(studio);
  g_autofree char *damage = g_strdup_printf("truncate -s 0 %s/*/job.json", states);
  check_ok(system(damage) == 0, "its description is lost");
  studio = room_open();
  g_autoptr(MsaJob) again = g_object_ref(room_nth(studio, 0));
  msa_queue_set_paused(msa_studio_get_queue(studio), FALSE);
  room_reaches(again, MSA_JOB_DONE, 120);
  check_ok(msa_job_get_clip(again) != NULL, "it begins anew and becomes a clip");
  room_close(studio);
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--victim"))
    return run_victim();
  if (argc > 1 && !strcmp(argv[1], "--training-victim"))
    return run_training_victim();
  char program[4096] = "";
  room_begin(argc, argv);
  check_ok(readlink("/proc/self/exe", program, sizeof program - 1) > 0, "the program's own path");
  const int status = spawn_victim(program, "--victim");
  check_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a Studio is killed in the middle of a job");
  check_resume();
  check_close();
  check_empty_state();
  check_training(program);
  return room_end();
}
