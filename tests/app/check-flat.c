/* Memory stays flat over fifty jobs in one process. */
#include "harness.h"
#include "ms-system.h"
#include "studio-room.h"

#define JOBS 50
#define WARM 10

/* The engine thread gives back what it can after it told the end. */
static size_t settled(void) {
  room_idle(.5);
  return ms_memory_resident();
}

static gboolean is_ready(gpointer data) {
  gboolean ready;
  g_object_get(data, "ready", &ready, NULL);
  return ready;
}

int main(int argc, char **argv) {
  size_t early = 0, late = 0;
  int done = 0;
  room_begin(argc, argv);
  MsaStudio *studio = room_open();
  /* its measurement of the machine takes memory for a moment */
  check_ok(room_until(is_ready, msa_studio_get_planner(studio), 200), "the planner is ready");
  for (int i = 1; i <= JOBS; i++) {
    g_autoptr(MsaGenerateParams) params = room_params("a red ball moves right", 2, i);
    params->frames = 1 + i % 5;
    g_autoptr(MsaJob) job = msa_queue_add_generate(msa_studio_get_queue(studio), params);
    done += room_reaches(job, MSA_JOB_DONE, 60);
    if (i == WARM)
      early = settled();
  }
  late = settled();
  check_ok(done == JOBS, "%d jobs in one process", JOBS);
  check_ok(early > 0 && (double)late < 1.02 * (double)early,
           "memory after %d jobs is %.1f MiB, after %d %.1f MiB", WARM, (double)early / 1048576, JOBS,
           (double)late / 1048576);
  room_close(studio);
  return room_end();
}
