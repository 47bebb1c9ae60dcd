/* The group over MPI: a module of its own, since it alone needs the MPI library. */
#include <mpi.h>
#include <sched.h>
#include <stdlib.h>

#include "group/group.h"

#define TAG 7

static void reduce_scatter(void *data, const float *values, float *own, int block) {
  MPI_Reduce_scatter_block(values, own, block, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void all_gather(void *data, uint16_t *values, const int *counts, const int *places) {
  MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, values, counts, places, MPI_UINT16_T, MPI_COMM_WORLD);
}

static void all_gather_doubles(void *data, const double *mine, int count, double *all) {
  MPI_Allgather(mine, count, MPI_DOUBLE, all, count, MPI_DOUBLE, MPI_COMM_WORLD);
}

static void broadcast(void *data, void *bytes, int count, int root) {
  MPI_Bcast(bytes, count, MPI_BYTE, root, MPI_COMM_WORLD);
}

static void send_bytes(void *data, const void *bytes, int count, int to) {
  MPI_Send(bytes, count, MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static void receive_bytes(void *data, void *bytes, int count, int from) {
  MPI_Recv(bytes, count, MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void end_all(void *data, int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
}

static void close_all(void *data) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}

/* A number that is the same where the processors are. */
static unsigned long processors(void) {
  unsigned long sum = 5381;
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  for (int i = 0; i < CPU_SETSIZE; i++)
    if (CPU_ISSET(i, &set))
      sum = sum * 33 + (unsigned long)i;
  return sum;
}

/* Who shares this machine and its processors. */
static void count_neighbours(struct ms_group *group) {
  unsigned long mine = processors(), *all;
  MPI_Comm host;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  MPI_Comm_size(host, &group->host_ranks);
  all = calloc((size_t)group->host_ranks, sizeof *all);
  group->beside = all ? 0 : 1;
  if (all)
    MPI_Allgather(&mine, 1, MPI_UNSIGNED_LONG, all, 1, MPI_UNSIGNED_LONG, host);
  for (int i = 0; all && i < group->host_ranks; i++)
    group->beside += all[i] == mine;
  free(all);
  MPI_Comm_free(&host);
}

__attribute__((visibility("default"))) const char *ms_group_module_open(struct ms_group *group);

const char *ms_group_module_open(struct ms_group *group) {
  int given = 0;
  if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS)
    return "MPI cannot be started";
  if (given < MPI_THREAD_FUNNELED)
    return "its MPI library cannot be used by a program with threads";
  MPI_Comm_rank(MPI_COMM_WORLD, &group->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &group->size);
  count_neighbours(group);
  group->reduce_scatter = reduce_scatter;
  group->all_gather = all_gather;
  group->all_gather_doubles = all_gather_doubles;
  group->broadcast = broadcast;
  group->send = send_bytes;
  group->receive = receive_bytes;
  group->abort = end_all;
  group->close = close_all;
  return NULL;
}
