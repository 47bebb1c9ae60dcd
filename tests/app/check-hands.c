/* Many hands on the queue at once: whatever is asked for, in whatever order, also over closes, the list, the
 * store, the library and the folders agree in the end. */
#include <string.h>

#include "harness.h"
#include "studio-room.h"

#define ROUNDS 3
#define ACTIONS 120
#define JOBS_MOST 8

struct tally {
  int done, cancelled, failed, wrong;
};

static void ended_cb(MsaQueue *queue, MsaJob *job, gpointer data) {
  struct tally *tally = data;
  const enum msa_job_state state = msa_job_get_state(job);
  MsaClip *clip = msa_job_get_clip(job);
  tally->done += state == MSA_JOB_DONE;
  tally->cancelled += state == MSA_JOB_CANCELLED;
  tally->failed += state == MSA_JOB_FAILED;
  tally->wrong += (state == MSA_JOB_DONE) != (clip && room_exists(msa_clip_get_path(clip)));
}

static void act(MsaStudio *studio, struct tally *tally) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(queue));
  g_autoptr(MsaJob) job =
      count ? g_list_model_get_item(G_LIST_MODEL(queue), (guint)check_below((gint64)count)) : NULL;
  switch (job ? check_below(12) : 0) {
  case 0:
  case 1:
  case 2:
    if (count < JOBS_MOST) {
      g_autoptr(MsaJob) added = room_add(studio, "a red ball", 1 + (int)check_below(60), check_below(1000));
      if (check_below(8) == 0)
        msa_queue_cancel_job(queue, added);
    }
    break;
  case 3:
    msa_queue_pause_job(queue, job);
    break;
  case 4:
  case 5:
    msa_queue_resume_job(queue, job);
    break;
  case 6:
    msa_queue_cancel_job(queue, job);
    break;
  case 7:
    msa_queue_take_job(queue, job);
    break;
  case 8:
    msa_queue_move_job(queue, job, (guint)check_below(5));
    break;
  case 9: {
    g_autoptr(MsaGenerateParams) params = room_params("a blue star", 1 + (int)check_below(30), 5);
    msa_queue_edit_job(queue, job, params);
    break;
  }
  case 10:
    msa_queue_set_paused(queue, check_below(3) == 0);
    break;
  default:
    msa_queue_retry_job(queue, job);
  }
  /* the running job is always the first */
  if (msa_queue_get_running(queue) && room_nth(studio, 0) != msa_queue_get_running(queue))
    tally->wrong++;
}

static void finish_all(MsaStudio *studio) {
  MsaQueue *queue = msa_studio_get_queue(studio);
  msa_queue_set_paused(queue, FALSE);
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(queue)); i++)
    msa_queue_resume_job(queue, room_nth(studio, i));
  room_idle(.05);
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(queue)); i++)
    msa_queue_resume_job(queue, room_nth(studio, i));
}

int main(int argc, char **argv) {
  struct tally tally = {0};
  int known = 0;
  room_begin(argc, argv);
  g_autofree char *states = room_path("data/megaslide/jobs");
  for (int round = 0; round < ROUNDS; round++) {
    tally = (struct tally){0};
    MsaStudio *studio = room_open();
    /* A clip that was ready while the last studio closed is only met now. */
    const int before = (int)g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_library(studio)));
    check_ok(before == known || before == known + 1, "no clip of the time before is lost (%d of %d)", before,
             known);
    g_signal_connect(msa_studio_get_queue(studio), "job-ended", G_CALLBACK(ended_cb), &tally);
    msa_queue_set_paused(msa_studio_get_queue(studio), FALSE);
    for (int i = 0; i < ACTIONS; i++) {
      act(studio, &tally);
      room_idle(check_uniform(0, .04));
    }
    if (round == ROUNDS - 1) {
      finish_all(studio);
      check_ok(room_listed(studio, 0, 120), "everything that was asked for ends");
      room_idle(.3);
      check_ok(room_count(states) == 0, "no state is left");
    }
    const guint listed = g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_library(studio)));
    const guint files = room_count(msa_studio_get_clips_folder(studio));
    check_ok(tally.wrong == 0 && tally.failed == 0,
             "%d clips, %d cancelled: each with its file, the running job first", tally.done,
             tally.cancelled);
    check_ok((int)listed == before + tally.done, "the library has them all (%d)", (int)listed);
    check_ok(files == listed || round < ROUNDS - 1, "and the folder no others (%d)", (int)files);
    known = (int)listed;
    room_close(studio);
  }
  return room_end();
}
