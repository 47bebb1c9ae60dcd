/* A pool of threads that runs numbered tasks, and scratch memory for each of them.
 *
 *   struct ms_pool *pool;
 *   if (ms_pool_open (&pool, 2, &error) < 0) ...
 *   ms_pool_reserve (pool, bytes);                       // scratch for each worker, before the loop
 *   ms_pool_run (pool, fn, data, tasks);                 // fn (data, task, scratch) for task 0 .. tasks-1,
 * returns when done ms_pool_close (&pool);
 *
 * The caller's thread is worker 0. Tasks are handed out in ascending order; which worker gets which is not
 * fixed, so a task may write only what belongs to it. Once `cancel` is non-zero remaining tasks are skipped.
 * One run at a time; a task must not call run. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdatomic.h>
#include "ms-error.h"

struct ms_pool;
typedef void (*ms_task_fn)(void *data, int64_t task, void *scratch);

int ms_pool_open(struct ms_pool **pool, int threads,
                 struct ms_error *error); /* threads 0: one per processor allowed */
/* A pool that starts no thread and runs nothing: it only answers how many there would be, for code that
 * plans. */
int ms_pool_open_counting(struct ms_pool **pool, int threads, struct ms_error *error);
void ms_pool_close(struct ms_pool **pool);
int ms_pool_threads(const struct ms_pool *pool);
/* Makes each worker's scratch at least `bytes` (aligned to 64). Returns 0 or MS_ENOMEM. Not during a run. Who
 * cannot return that either may leave it: after it the pool runs nothing, and counts as cancelled. */
int ms_pool_reserve(struct ms_pool *pool, size_t bytes);
size_t ms_pool_scratch_bytes(const struct ms_pool *pool); /* of one worker, as reserved */
void ms_pool_run(struct ms_pool *pool, ms_task_fn fn, void *data, int64_t tasks);
/* The flag polled between tasks; borrowed; NULL: none. */
void ms_pool_set_cancel(struct ms_pool *pool, const atomic_int *cancel);
int ms_pool_cancelled(const struct ms_pool *pool);
/* Whether what was run came to its end: 0, MS_ECANCELLED with these words, or MS_ENOMEM if scratch was
 * missing. */
int ms_pool_stopped(const struct ms_pool *pool, const char *words, struct ms_error *error);
