#include "base/pool.h"

#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* A worker that finds no new run spins this often before it sleeps: runs follow each other within
 * microseconds inside a step, and a sleep costs about 50 of them. */
#define SPINS 2000

struct worker {
  struct ms_pool *pool;
  pthread_t thread;
  void *scratch;
};

struct ms_pool {
  int threads, started;   /* as many, but in a pool that only counts: 1 */
  struct worker *workers; /* [threads], 0 is the caller */
  size_t scratch_bytes;
  const atomic_int *cancel;
  int starved; /* scratch that a run counts on is not there: nothing is run any more */
  /* Written by run before `generation` is raised, read by workers after they see it raised. */
  ms_task_fn fn;
  void *data;
  int64_t tasks;
  _Alignas(64) atomic_long next;
  _Alignas(64) atomic_uint generation;
  _Alignas(64) atomic_int busy; /* workers that have not left the current run */
  int stop;
  pthread_mutex_t lock; /* guards sleeping on `wake` and `done` */
  pthread_cond_t wake, done;
};

static inline void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void take_tasks(struct ms_pool *pool, void *scratch) {
  for (;;) {
    int64_t task = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
    if (task >= pool->tasks)
      return;
    if (!ms_pool_cancelled(pool))
      pool->fn(pool->data, task, scratch);
  }
}

static void *worker_main(void *data) {
  struct worker *worker = data;
  struct ms_pool *pool = worker->pool;
  unsigned seen = 0;
  for (;;) {
    int spins = 0;
    while (atomic_load_explicit(&pool->generation, memory_order_acquire) == seen) {
      if (++spins < SPINS) {
        relax();
        continue;
      }
      pthread_mutex_lock(&pool->lock);
      while (atomic_load_explicit(&pool->generation, memory_order_acquire) == seen)
        pthread_cond_wait(&pool->wake, &pool->lock);
      pthread_mutex_unlock(&pool->lock);
    }
    seen = atomic_load_explicit(&pool->generation, memory_order_acquire);
    if (pool->stop)
      return NULL;
    take_tasks(pool, worker->scratch);
    if (atomic_fetch_sub_explicit(&pool->busy, 1, memory_order_acq_rel) == 1) {
      pthread_mutex_lock(&pool->lock);
      pthread_cond_signal(&pool->done);
      pthread_mutex_unlock(&pool->lock);
    }
  }
}

static void announce(struct ms_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  atomic_fetch_add_explicit(&pool->generation, 1, memory_order_release);
  pthread_cond_broadcast(&pool->wake);
  pthread_mutex_unlock(&pool->lock);
}

/* Everything but the threads. */
static int make_pool(struct ms_pool **out, int threads, struct ms_error *error) {
  struct ms_pool *pool;
  if (threads <= 0) {
    cpu_set_t set;
    threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  }
  if (threads > 1024)
    threads = 1024;
  *out = NULL;
  pool = aligned_alloc(64, (sizeof *pool + 63) / 64 * 64);
  if (!pool)
    return ms_error_set(error, MS_ENOMEM, "cannot start %d threads: out of memory", threads);
  memset(pool, 0, sizeof *pool);
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->wake, NULL);
  pthread_cond_init(&pool->done, NULL);
  pool->threads = threads;
  pool->started = 1;
  pool->workers = calloc((size_t)threads, sizeof *pool->workers);
  if (!pool->workers) {
    ms_pool_close(&pool);
    return ms_error_set(error, MS_ENOMEM, "cannot start %d threads: out of memory", threads);
  }
  for (int i = 0; i < threads; i++)
    pool->workers[i].pool = pool;
  *out = pool;
  return 0;
}

int ms_pool_open(struct ms_pool **out, int threads, struct ms_error *error) {
  int code = make_pool(out, threads, error);
  struct ms_pool *pool = *out;
  for (; code == 0 && pool->started < pool->threads; pool->started++) {
    struct worker *worker = &pool->workers[pool->started];
    if (pthread_create(&worker->thread, NULL, worker_main, worker) != 0)
      code = ms_error_set(error, MS_EFAULT, "cannot start thread %d of %d: choose fewer with --threads",
                          pool->started + 1, pool->threads);
  }
  if (code < 0)
    ms_pool_close(out);
  return code;
}

int ms_pool_open_counting(struct ms_pool **out, int threads, struct ms_error *error) {
  return make_pool(out, threads, error);
}

void ms_pool_close(struct ms_pool **pointer) {
  struct ms_pool *pool = *pointer;
  if (!pool)
    return;
  *pointer = NULL;
  pool->stop = 1;
  announce(pool);
  for (int i = 1; i < pool->started; i++)
    pthread_join(pool->workers[i].thread, NULL);
  for (int i = 0; pool->workers && i < pool->threads; i++)
    free(pool->workers[i].scratch);
  pthread_cond_destroy(&pool->done);
  pthread_cond_destroy(&pool->wake);
  pthread_mutex_destroy(&pool->lock);
  free(pool->workers);
  free(pool);
}

int ms_pool_threads(const struct ms_pool *pool) {
  return pool->threads;
}

int ms_pool_reserve(struct ms_pool *pool, size_t bytes) {
  if (bytes <= pool->scratch_bytes)
    return 0;
  bytes = (bytes + 4095) / 4096 * 4096;
  for (int i = 0; i < pool->threads; i++) {
    void *scratch = aligned_alloc(4096, bytes);
    if (!scratch) {
      pool->starved = 1;
      return MS_ENOMEM;
    }
    free(pool->workers[i].scratch);
    pool->workers[i].scratch = scratch;
  }
  pool->scratch_bytes = bytes;
  return 0;
}

size_t ms_pool_scratch_bytes(const struct ms_pool *pool) {
  return pool->scratch_bytes;
}

void ms_pool_run(struct ms_pool *pool, ms_task_fn fn, void *data, int64_t tasks) {
  assert(pool->started == pool->threads);
  if (tasks <= 0)
    return;
  if (tasks == 1 || pool->threads == 1) {
    for (int64_t i = 0; i < tasks && !ms_pool_cancelled(pool); i++)
      fn(data, i, pool->workers[0].scratch);
    return;
  }
  pool->fn = fn;
  pool->data = data;
  pool->tasks = tasks;
  atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
  atomic_store_explicit(&pool->busy, pool->threads - 1, memory_order_relaxed);
  announce(pool);
  take_tasks(pool, pool->workers[0].scratch);
  for (int spins = 0; atomic_load_explicit(&pool->busy, memory_order_acquire) > 0; spins++) {
    if (spins < SPINS) {
      relax();
      continue;
    }
    pthread_mutex_lock(&pool->lock);
    while (atomic_load_explicit(&pool->busy, memory_order_acquire) > 0)
      pthread_cond_wait(&pool->done, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
  }
}

void ms_pool_set_cancel(struct ms_pool *pool, const atomic_int *cancel) {
  pool->cancel = cancel;
}

int ms_pool_stopped(const struct ms_pool *pool, const char *words, struct ms_error *error) {
  if (pool->starved)
    return ms_error_set(error, MS_ENOMEM, "out of memory for the work of a thread");
  return ms_pool_cancelled(pool) ? ms_error_set(error, MS_ECANCELLED, "%s", words) : 0;
}

int ms_pool_cancelled(const struct ms_pool *pool) {
  if (pool->starved)
    return 1;
  return pool->cancel && atomic_load_explicit(pool->cancel, memory_order_relaxed);
}
