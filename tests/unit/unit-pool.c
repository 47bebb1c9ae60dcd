#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "harness.h"

enum { TASKS = 5000 };

struct job {
  atomic_int done[TASKS];
  atomic_int stop;
  atomic_int started;
  int64_t stop_at; /* task that sets stop; -1: none */
  int wrong_scratch;
};

static void count_task(void *data, int64_t task, void *scratch) {
  struct job *job = data;
  atomic_fetch_add(&job->done[task], 1);
  atomic_fetch_add(&job->started, 1);
  if (task == job->stop_at)
    atomic_store(&job->stop, 1);
  if (scratch) { /* whoever shares scratch with us would spoil the pattern */
    memset(scratch, (int)task & 255, 1000);
    for (int i = 0; i < 1000; i++)
      if (((unsigned char *)scratch)[i] != (task & 255))
        job->wrong_scratch = 1;
    if ((uintptr_t)scratch % 64)
      job->wrong_scratch = 1;
  }
}

static int each_once(const struct job *job, int64_t n) {
  for (int64_t i = 0; i < TASKS; i++)
    if (atomic_load(&job->done[i]) != (i < n))
      return 0;
  return 1;
}

static void count_run(void *data, int64_t task, void *scratch) {
  ++*(int *)data;
}

/* After it nothing is run with less scratch than was asked for. */
static void check_starved(void) {
  struct ms_pool *pool = NULL;
  struct ms_error error = {0};
  int runs = 0;
  if (ms_pool_open(&pool, 2, &error) < 0) {
    check_ok(0, "a pool opens: %s", error.message);
    return;
  }
  check_ok(ms_pool_stopped(pool, "cancelled", &error) == 0, "a pool is not stopped");
  check_ok(ms_pool_reserve(pool, (size_t)1 << 60) == MS_ENOMEM, "scratch that no machine has");
  ms_pool_run(pool, count_run, &runs, 3);
  check_ok(runs == 0, "then nothing is run");
  check_ok(ms_pool_stopped(pool, "cancelled", &error) == MS_ENOMEM, "which is told");
  ms_pool_close(&pool);
}

int main(int argc, char **argv) {
  static const int threads[] = {1, 2, 3, 8};
  static struct job job;
  struct ms_pool *pool;
  struct ms_error error = {0};
  check_begin(argc, argv);
  for (int t = 0; t < 4; t++) {
    int good = 1;
    check_ok(ms_pool_open(&pool, threads[t], &error) == 0 && ms_pool_threads(pool) == threads[t],
             "a pool of %d opens", threads[t]);
    check_ok(ms_pool_reserve(pool, 1000) == 0 && ms_pool_scratch_bytes(pool) >= 1000, "scratch is reserved");
    for (int round = 0; round < 200 && good;
         round++) { /* many short runs: the hand-over between runs is the hard part */
      int64_t n = round == 0 ? 0 : round == 1 ? 1 : round == 2 ? TASKS : check_below(40);
      memset(&job, 0, sizeof job);
      job.stop_at = -1;
      ms_pool_run(pool, count_task, &job, n);
      good = each_once(&job, n) && !job.wrong_scratch;
      if (round % 50 == 49)
        usleep(2000); /* lets workers fall asleep */
    }
    check_ok(good, "%d threads run each task once, with scratch of their own", threads[t]);
    memset(&job, 0, sizeof job);
    job.stop_at = 10;
    ms_pool_set_cancel(pool, &job.stop);
    ms_pool_run(pool, count_task, &job, TASKS);
    check_ok(ms_pool_cancelled(pool) && atomic_load(&job.started) < TASKS && atomic_load(&job.done[10]) == 1,
             "%d threads: cancel skips the rest (%d of %d ran)", threads[t], atomic_load(&job.started),
             TASKS);
    ms_pool_set_cancel(pool, NULL);
    check_ok(!ms_pool_cancelled(pool), "no flag, not cancelled");
    ms_pool_close(&pool);
    check_ok(!pool, "close empties the pointer");
    ms_pool_close(&pool);
  }
  check_ok(ms_pool_open(&pool, 0, &error) == 0 && ms_pool_threads(pool) >= 1, "0 asks for all processors");
  ms_pool_close(&pool);
  check_ok(ms_pool_open_counting(&pool, 500, &error) == 0 && ms_pool_threads(pool) == 500,
           "a pool that only counts has 500 threads");
  ms_pool_close(&pool);
  check_ok(pool == NULL, "and closes");
  check_starved();
  return check_end();
}
