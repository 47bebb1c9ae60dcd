/* The process is killed in the middle of a job; the next one finds the queue and ends with the same bytes. */
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

static int spawn_victim(const char *program) {
  int status = 0;
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, "--victim", NULL);
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
  check_ok(msa_job_get_done(job) >= 50, "from its last steps (%d)", (int)msa_job_get_done(job));
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

/* A close in the middle of a job is an interruption too; what was damaged meanwhile is told. */
static void check_close(void) {
  g_autofree char *states = room_path("data/megaslide/jobs");
  MsaStudio *studio = room_open();
  g_autoptr(MsaJob) job = room_add(studio, PROMPT, STEPS, 12);
  check_ok(room_stepped(job, 30, 60), "a job runs");
  room_close(studio);
  studio = room_open();
  MsaQueue *queue = msa_studio_get_queue(studio);
  check_ok(room_nth(studio, 0) && msa_job_get_state(room_nth(studio, 0)) == MSA_JOB_PAUSED &&
               msa_queue_get_paused(queue),
           "after a close in the middle it is there, paused");
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

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--victim"))
    return run_victim();
  char program[4096] = "";
  room_begin(argc, argv);
  check_ok(readlink("/proc/self/exe", program, sizeof program - 1) > 0, "the program's own path");
  const int status = spawn_victim(program);
  check_ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "a Studio is killed in the middle of a job");
  check_resume();
  check_close();
  return room_end();
}
