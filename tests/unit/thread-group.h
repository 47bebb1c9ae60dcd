/* A group whose ranks are threads of one program, for tests without MPI. */
#pragma once
#include <pthread.h>

#include "group/group.h"

#define THREAD_GROUP_MOST 6

struct thread_group {
  struct ms_group ranks[THREAD_GROUP_MOST];
  struct thread_member {
    struct thread_group *all;
    int rank;
  } members[THREAD_GROUP_MOST];
  int size;
  pthread_barrier_t barrier;
  const void *shown[THREAD_GROUP_MOST]; /* what each rank lets the others see */
  pthread_mutex_t lock;                 /* guards post */
  pthread_cond_t changed;
  struct thread_post {
    const void *bytes; /* NULL: nothing is on its way */
    int count;
  } post[THREAD_GROUP_MOST][THREAD_GROUP_MOST]; /* from, to */
};

void thread_group_open(struct thread_group *group, int size);
void thread_group_close(struct thread_group *group);
/* Runs work (data + rank * bytes) on each rank's own thread. */
void thread_group_run(struct thread_group *group, void *(*work)(void *data), void *data, size_t bytes);
