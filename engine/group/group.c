#include "group/group.h"

#include <dlfcn.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "group/group-config.h"

/* Floats of all ranks that are summed at a time. */
#define STAGED 1048576

/* How many processes a launcher says it has started: a variable of Open MPI, of PMI (MPICH, Intel MPI, Slurm)
 * and of a Slurm step. */
static int launched(void) {
  static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const char *text = getenv(names[i]);
    if (text && atoi(text) > 1)
      return atoi(text);
  }
  return 1;
}

/* Beside the program in the build folder, or where it is installed. MPI libraries load parts of themselves
 * that look for the library's symbols among the global ones. */
static void *load_module(char *path, size_t size) {
  static const char *const places[] = {"../engine/group", "../" MS_GROUP_LIBDIR "/megaslide"};
  char program[PATH_MAX];
  ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  void *library = NULL;
  program[n > 0 ? n : 0] = 0;
  if (strrchr(program, '/'))
    *strrchr(program, '/') = 0;
  for (size_t i = 0; i < sizeof places / sizeof *places && !library; i++) {
    snprintf(path, size, "%s/%s/%s", program, places[i], MS_GROUP_MODULE);
    if (access(path, R_OK) == 0)
      library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  }
  return library;
}

int ms_group_take_memory(struct ms_group *g, struct ms_error *error) {
  g->staging = malloc((size_t)STAGED * sizeof *g->staging);
  g->sums = malloc((size_t)STAGED * sizeof *g->sums);
  g->counts = malloc((size_t)g->size * sizeof *g->counts);
  g->places = malloc((size_t)g->size * sizeof *g->places);
  g->codes = malloc((size_t)g->size * sizeof *g->codes);
  if (g->staging && g->sums && g->counts && g->places && g->codes)
    return 0;
  return ms_error_set(error, MS_ENOMEM, "out of memory for a group of processes");
}

void ms_group_give_memory(struct ms_group *g) {
  free(g->staging);
  free(g->sums);
  free(g->counts);
  free(g->places);
  free(g->codes);
}

/* The library stays: it may have threads and handlers of its own. */
static void release(struct ms_group *g) {
  ms_group_give_memory(g);
  free(g);
}

int ms_group_open(struct ms_group **out, struct ms_error *error) {
  int started = launched();
  char path[PATH_MAX + 128];
  ms_group_module_fn entry;
  struct ms_group *g;
  const char *why = NULL;
  *out = NULL;
  if (started < 2)
    return 0;
  g = calloc(1, sizeof *g);
  if (!g)
    return ms_error_set(error, MS_ENOMEM, "out of memory for a group of processes");
  g->library = load_module(path, sizeof path);
  entry = g->library ? (ms_group_module_fn)dlsym(g->library, MS_GROUP_MODULE_ENTRY) : NULL;
  if (!entry) {
    why = g->library || access(path, R_OK) == 0 ? dlerror() : NULL;
    release(g);
    return ms_error_set(
        error, MS_EUSAGE,
        "started as one of %d processes, but this program has no MPI module%s%.300s: build it "
        "where MPI is installed (libopenmpi-dev), or start one process",
        started, why ? ": " : "", why ? why : "");
  }
  why = entry(g);
  if (why || g->size < 2) {
    if (!why)
      g->close(g->data);
    ms_error_set(
        error, MS_EUSAGE,
        "started as one of %d processes, but %s: start it with the mpirun of the MPI library that it "
        "was built with, or with srun --mpi=pmix",
        started, why ? why : "MPI knows of one alone");
    release(g);
    return MS_EUSAGE;
  }
  *out = g;
  g->torn = ms_group_take_memory(g, error) < 0;
  return g->torn ? MS_ENOMEM : 0;
}

void ms_group_close(struct ms_group **pointer, int status) {
  struct ms_group *g = *pointer;
  if (!g)
    return;
  *pointer = NULL;
  if (g->torn)
    g->abort(g->data, status);
  else
    g->close(g->data);
  release(g);
}

int ms_group_rank(const struct ms_group *g) {
  return g ? g->rank : 0;
}

int ms_group_size(const struct ms_group *g) {
  return g ? g->size : 1;
}

int ms_group_is_torn(const struct ms_group *g) {
  return g && g->torn;
}

static int64_t clamp(int64_t value, int64_t most) {
  return value < 0 ? 0 : value > most ? most : value;
}

int64_t ms_group_share(const struct ms_group *g, int64_t all, int64_t *first, int64_t *owned) {
  int64_t size = ms_group_size(g), share = (all + size - 1) / size;
  if (g)
    share = (share + MS_GROUP_ALIGN - 1) / MS_GROUP_ALIGN * MS_GROUP_ALIGN;
  *first = clamp(ms_group_rank(g) * share, all);
  *owned = clamp(all - *first, share);
  return share;
}

uint64_t ms_group_bytes(const struct ms_group *g) {
  /* what the library copies beside it is of the same size */
  return g ? 4 * (uint64_t)STAGED * sizeof(float) : 0;
}

void ms_group_reduce(struct ms_group *g, const float *gradient, int64_t all, float *own) {
  int64_t first, owned, share = ms_group_share(g, all, &first, &owned), most = STAGED / g->size;
  for (int64_t at = 0; at < share; at += most) {
    int64_t n = share - at < most ? share - at : most;
    for (int r = 0; r < g->size; r++) {
      int64_t from = r * share + at, has = clamp(all - from, n);
      memcpy(g->staging + r * n, gradient + (has ? from : 0), (size_t)has * sizeof *gradient);
      memset(g->staging + r * n + has, 0, (size_t)(n - has) * sizeof *gradient);
    }
    g->reduce_scatter(g->data, g->staging, g->sums, (int)n);
    if (at < owned)
      memcpy(own + at, g->sums, (size_t)clamp(owned - at, n) * sizeof *own);
  }
}

void ms_group_gather(struct ms_group *g, uint16_t *values, int64_t all) {
  int64_t first, owned, share = ms_group_share(g, all, &first, &owned);
  for (int r = 0; r < g->size; r++) {
    g->places[r] = (int)clamp(r * share, all);
    g->counts[r] = (int)clamp(all - g->places[r], share);
  }
  g->all_gather(g->data, values, g->counts, g->places);
}

double ms_group_most(struct ms_group *g, double mine) {
  if (!g || g->torn)
    return mine;
  g->all_gather_doubles(g->data, &mine, 1, g->codes);
  for (int r = 0; r < g->size; r++)
    mine = g->codes[r] > mine ? g->codes[r] : mine;
  return mine;
}

int ms_group_agree(struct ms_group *g, int code, struct ms_error *error) {
  struct ms_error said = {0};
  double mine = code;
  int first = 0;
  if (!g || g->torn)
    return code;
  g->all_gather_doubles(g->data, &mine, 1, g->codes);
  while (first < g->size && !(g->codes[first] < 0))
    first++;
  if (first == g->size)
    return 0;
  if (g->rank == first && error)
    said = *error;
  g->broadcast(g->data, &said, (int)sizeof said, first);
  code = (int)g->codes[first];
  if (g->rank == first || !error)
    return code;
  memset(error, 0, sizeof *error);
  return first == 0 ? ms_error_set(error, code, "%s", said.message)
                    : ms_error_set(error, code, "rank %d: %.480s", first, said.message);
}
