#include "thread-group.h"

#include <stdlib.h>
#include <string.h>

static void show(const struct thread_member *m, const void *what) {
  m->all->shown[m->rank] = what;
  pthread_barrier_wait(&m->all->barrier);
}

static void part(const struct thread_member *m) {
  pthread_barrier_wait(&m->all->barrier);
}

static void reduce_scatter(void *data, const float *values, float *own, int block) {
  const struct thread_member *m = data;
  show(m, values);
  for (int i = 0; i < block; i++) {
    own[i] = 0;
    for (int r = 0; r < m->all->size; r++)
      own[i] += ((const float *)m->all->shown[r])[(size_t)m->rank * block + i];
  }
  part(m);
}

static void all_gather(void *data, uint16_t *values, const int *counts, const int *places) {
  const struct thread_member *m = data;
  show(m, values);
  for (int r = 0; r < m->all->size; r++)
    if (r != m->rank)
      memcpy(values + places[r], (const uint16_t *)m->all->shown[r] + places[r],
             (size_t)counts[r] * sizeof *values);
  part(m);
}

static void all_gather_doubles(void *data, const double *mine, int count, double *all) {
  const struct thread_member *m = data;
  show(m, mine);
  for (int r = 0; r < m->all->size; r++)
    memcpy(all + (size_t)r * count, m->all->shown[r], (size_t)count * sizeof *all);
  part(m);
}

static void broadcast(void *data, void *bytes, int count, int root) {
  const struct thread_member *m = data;
  show(m, bytes);
  if (m->rank != root)
    memcpy(bytes, m->all->shown[root], (size_t)count);
  part(m);
}

/* Until it has been taken. */
static void send_bytes(void *data, const void *bytes, int count, int to) {
  const struct thread_member *m = data;
  struct thread_group *g = m->all;
  pthread_mutex_lock(&g->lock);
  g->post[m->rank][to] = (struct thread_post){bytes, count};
  pthread_cond_broadcast(&g->changed);
  while (g->post[m->rank][to].bytes)
    pthread_cond_wait(&g->changed, &g->lock);
  pthread_mutex_unlock(&g->lock);
}

static void receive_bytes(void *data, void *bytes, int count, int from) {
  const struct thread_member *m = data;
  struct thread_group *g = m->all;
  struct thread_post *post = &g->post[from][m->rank];
  pthread_mutex_lock(&g->lock);
  while (!post->bytes)
    pthread_cond_wait(&g->changed, &g->lock);
  memcpy(bytes, post->bytes, (size_t)(count < post->count ? count : post->count));
  post->bytes = NULL;
  pthread_cond_broadcast(&g->changed);
  pthread_mutex_unlock(&g->lock);
}

void thread_group_open(struct thread_group *g, int size) {
  memset(g, 0, sizeof *g);
  g->size = size;
  pthread_barrier_init(&g->barrier, NULL, (unsigned)size);
  pthread_mutex_init(&g->lock, NULL);
  pthread_cond_init(&g->changed, NULL);
  for (int r = 0; r < size; r++) {
    g->members[r] = (struct thread_member){g, r};
    g->ranks[r] = (struct ms_group){.rank = r,
                                    .size = size,
                                    .host_ranks = size,
                                    .beside = size,
                                    .data = &g->members[r],
                                    .reduce_scatter = reduce_scatter,
                                    .all_gather = all_gather,
                                    .all_gather_doubles = all_gather_doubles,
                                    .broadcast = broadcast,
                                    .send = send_bytes,
                                    .receive = receive_bytes};
    if (ms_group_take_memory(&g->ranks[r], NULL) < 0)
      abort();
  }
}

void thread_group_close(struct thread_group *g) {
  for (int r = 0; r < g->size; r++)
    ms_group_give_memory(&g->ranks[r]);
  pthread_barrier_destroy(&g->barrier);
  pthread_mutex_destroy(&g->lock);
  pthread_cond_destroy(&g->changed);
}

void thread_group_run(struct thread_group *g, void *(*work)(void *data), void *data, size_t bytes) {
  pthread_t threads[THREAD_GROUP_MOST];
  for (int r = 0; r < g->size; r++)
    if (pthread_create(&threads[r], NULL, work, (char *)data + (size_t)r * bytes) != 0)
      abort();
  for (int r = 0; r < g->size; r++)
    pthread_join(threads[r], NULL);
}
