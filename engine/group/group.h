/* What the ranks of a group do together. The table is filled by a module (mpi-module.c); ranks call each of
 * its functions in the same order. They do not fail: an MPI library that does ends all processes.
 *
 * Everybody computes a part of a step's batches and keeps a part of each shard's state: rank r of N the
 * parameters [r share, (r + 1) share) of those that have one, as far as there are so many. */
#pragma once
#include <stdint.h>
#include "ms-group.h"

/* Shares are multiples of this, so that they begin where pages, pieces and blocks of 8-bit moments do. */
#define MS_GROUP_ALIGN 4096

struct ms_group {
  int rank, size;
  int host_ranks; /* ranks on this machine */
  int beside;     /* of them those that may use the same processors; this one counts */
  int torn;       /* this rank left a step in which the others wait for it */
  void *data;     /* the module's */
  /* values [size * block]: own [block] becomes the sum over the ranks of their part number `rank`. */
  void (*reduce_scatter)(void *data, const float *values, float *own, int block);
  /* values: rank r's [places[r], places[r] + counts[r]) comes to all. */
  void (*all_gather)(void *data, uint16_t *values, const int *counts, const int *places);
  /* mine [count], all [size * count] */
  void (*all_gather_doubles)(void *data, const double *mine, int count, double *all);
  void (*broadcast)(void *data, void *bytes, int count, int root);
  void (*send)(void *data, const void *bytes, int count, int to);
  void (*receive)(void *data, void *bytes, int count, int from);
  void (*abort)(void *data, int status);
  void (*close)(void *data); /* waits for all */
  /* memory of group.c */
  float *staging, *sums;
  int *counts, *places;
  double *codes;
  void *library;
};

/* Entry of the module: fills rank .. close. 0, or a text that says what is wrong. */
typedef const char *(*ms_group_module_fn)(struct ms_group *group);
#define MS_GROUP_MODULE "megaslide-mpi.so"
#define MS_GROUP_MODULE_ENTRY "ms_group_module_open"

/* Memory for a group whose table is filled, and back. */
int ms_group_take_memory(struct ms_group *group, struct ms_error *error);
void ms_group_give_memory(struct ms_group *group);

/* The share of each rank of `all` parameters, and this one's part of them (*owned may be 0). Alone: all. */
int64_t ms_group_share(const struct ms_group *group, int64_t all, int64_t *first, int64_t *owned);
uint64_t ms_group_bytes(const struct ms_group *group); /* that the calls below take */

/* gradient [all]: own [its part] becomes the sum over the ranks. own may be its place in gradient. In pieces
 * whose size depends on nothing but the number of ranks. */
void ms_group_reduce(struct ms_group *group, const float *gradient, int64_t all, float *own);
/* values [all]: every rank gets the parts of the others. */
void ms_group_gather(struct ms_group *group, uint16_t *values, int64_t all);
/* The greatest of a number that each rank has; alone: its own. */
double ms_group_most(struct ms_group *group, double mine);
/* All ranks get the code of the first of them that failed, with its message and number; 0 if none did. Alone,
 * or torn: what is given. error may be NULL. */
int ms_group_agree(struct ms_group *group, int code, struct ms_error *error);
