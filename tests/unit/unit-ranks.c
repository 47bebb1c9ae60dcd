/* The streamer in a group, with threads in the place of processes: whatever number of ranks, wherever each
 * has its layers, the state ends with the bits of one that was alone, also after a step that was not finite
 * on one of them, and goes on from the file on another number of ranks.
 *
 * The model is a fake: gradients are whole numbers made of the weights and the step, cut into a part for each
 * rank, so that their sums are exact. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "fake-shards.h"
#include "harness.h"
#include "msk-cpu.h"
#include "scratch.h"
#include "stream/state-file.h"
#include "stream/streamer.h"
#include "thread-group.h"

#define LAYERS 5
#define FIRST_STEPS 4
#define STEPS 6
#define BAD_STEP 2 /* not finite on the last rank */

struct variant {
  const char *name;
  int ranks, later;          /* later: after the state was saved */
  unsigned disk, other_disk; /* bits of the layers at home on disk, of even and odd ranks */
  int64_t piece;
  int moment_bits, average, part; /* part: only the last parameters of a layer are trained */
};

struct outcome {
  double losses[STEPS], norms[STEPS], averaged;
  uint64_t saved, state, exported, sum;
};

struct rank {
  const struct variant *v;
  struct ms_group *group;                      /* NULL: alone */
  const char *from, *state, *weights, *folder; /* from NULL: the first weights */
  uint64_t from_sum;
  struct outcome *outcome; /* of the first rank */
  int number, size, begin, end, code;
  struct ms_error error;
  /* the model */
  struct ms_params params;
  struct ms_shard_layout layout[LAYERS + 1];
  int64_t counts[LAYERS], trained[LAYERS], gathered[LAYERS];
  enum ms_home homes[LAYERS];
  struct ms_compute compute;
  struct ms_schedule_params schedule;
  struct ms_shard_store *store;
  struct ms_streamer *streamer;
};

static void describe(struct rank *m) {
  const struct variant *v = m->v;
  unsigned disk = m->number % 2 ? v->other_disk : v->disk;
  int64_t first;
  ms_params_init(&m->params);
  m->params.type = MSK_BF16;
  for (int i = -1; i < LAYERS; i++)
    fake_shard_add(&m->params, &m->layout[i + 1], i, 11, v->part);
  m->schedule = ms_schedule_params_default();
  for (int i = 0; i < LAYERS; i++) {
    m->counts[i] = m->layout[i + 1].count;
    m->gathered[i] = m->layout[i + 1].owned;
    ms_group_share(m->group, m->gathered[i], &first, &m->trained[i]);
    m->homes[i] = disk >> i & 1 ? MS_HOME_DISK : MS_HOME_HOST;
  }
  m->schedule.layers = LAYERS;
  m->schedule.counts = m->counts;
  m->schedule.trained = m->trained;
  m->schedule.gathered = m->group ? m->gathered : NULL;
  m->schedule.homes = m->homes;
  m->schedule.outer = m->layout[0].count;
  ms_group_share(m->group, m->layout[0].owned, &first, &m->schedule.outer_trained);
  m->schedule.piece = v->piece;
  m->schedule.average_bytes = v->average ? 4 : 0;
}

static int open_model(struct rank *m) {
  struct ms_shard_store_params store = {.layers = LAYERS,
                                        .layout = m->layout,
                                        .homes = m->homes,
                                        .moment_bits = m->v->moment_bits,
                                        .average = m->v->average,
                                        .piece = m->v->piece,
                                        .folder = m->folder,
                                        .group = m->group};
  struct ms_streamer_params params = {.params = &m->params, .schedule = &m->schedule, .compute = &m->compute};
  int code;
  describe(m);
  code = ms_compute_open(&m->compute, 1, msk_cpu_detect(), &m->error);
  if (code == 0)
    code = ms_shard_store_open(&m->store, &store, m->compute.pool, &m->error);
  for (int i = -1; i < LAYERS && code == 0; i++)
    code = ms_shard_store_fill(m->store, i, fake_shard_weights, m->layout, &m->error);
  params.store = m->store;
  if (code == 0)
    code = ms_streamer_open(&m->streamer, &params, &m->error);
  if (code == 0 && m->from)
    code = ms_state_file_read(m->store, m->from, m->from_sum, &m->error);
  return code;
}

/* The rank's part of a gradient that is a whole number. */
static float part_of(const struct rank *m, int whole) {
  int part = whole / m->size;
  return (float)(m->number == 0 ? whole - part * (m->size - 1) : part);
}

static int forward(struct rank *m, int step, double *loss) {
  const struct ms_dit_source *source = ms_streamer_source(m->streamer);
  int code = 0;
  *loss = 0;
  for (int shard = -1; shard <= LAYERS && code == 0; shard++) {
    struct ms_dit_loan loan;
    code = source->begin(source->data, MS_PASS_FORWARD, shard, &loan, &m->error);
    if (code == 0 && shard < LAYERS)
      *loss += fake_shard_weigh(loan.values, m->layout[shard + 1].count, step + shard);
    if (code == 0)
      code = source->end(source->data, MS_PASS_FORWARD, shard, &m->error);
    if (code == 0 && step == BAD_STEP && shard == 1 && m->number == m->size - 1)
      code = ms_error_set(&m->error, MS_ENOTFINITE, "bad");
  }
  return code;
}

static int backward(struct rank *m, int step) {
  const struct ms_dit_source *source = ms_streamer_source(m->streamer);
  int code = 0;
  for (int shard = LAYERS; shard >= -1 && code == 0; shard--) {
    const struct ms_shard_layout *l = &m->layout[shard == LAYERS ? 0 : shard + 1];
    struct ms_dit_loan loan;
    code = source->begin(source->data, MS_PASS_BACKWARD, shard, &loan, &m->error);
    for (int64_t j = l->first; j < l->count && code == 0; j++) {
      int whole = (int)((j * 5 + step * 3) % 29) - 14;
      if (shard >= 0 && shard < LAYERS)
        whole += (int)(msk_bf16_to_f32(((const uint16_t *)loan.values)[j]) * 100);
      loan.gradient[j] += part_of(m, whole);
    }
    if (code == 0)
      code = source->end(source->data, MS_PASS_BACKWARD, shard, &m->error);
  }
  return code;
}

static int run_step(struct rank *m, int step) {
  struct ms_update update = fake_shard_update(step, 0.01);
  const char *bad;
  double loss;
  int code = ms_streamer_begin(m->streamer, MS_STREAM_STEP, &m->error);
  if (code < 0)
    return code;
  code = forward(m, step, &loss);
  if (code == 0)
    code = backward(m, step);
  code = ms_streamer_end(m->streamer, code, &m->error);
  if (code == MS_ENOTFINITE && step == BAD_STEP && strstr(m->error.message, "bad")) {
    memset(&m->error, 0, sizeof m->error);
    return 0;
  }
  if (code == 0 && step == BAD_STEP)
    return ms_error_set(&m->error, MS_EFAULT, "a step that was bad on one rank is not on rank %d", m->number);
  if (code < 0)
    return code;
  if (m->number == 0) {
    m->outcome->losses[step] = loss;
    m->outcome->norms[step] = ms_streamer_norm(m->streamer, &bad);
  }
  ms_streamer_put_update(m->streamer, &update);
  return 0;
}

static int save(struct rank *m) {
  int code = ms_streamer_flush(m->streamer, &m->error);
  if (code < 0)
    return code;
  if (m->number > 0)
    return ms_state_serve(m->store, &m->error);
  code = ms_state_file_write(m->store, m->state, &m->outcome->sum, &m->error);
  if (code == 0)
    code = ms_state_file_export(m->store, &m->params, m->weights, &m->error);
  if (m->group)
    ms_state_served(m->store);
  return code;
}

static void *work(void *data) {
  struct rank *m = data;
  double averaged = 0;
  m->code = open_model(m);
  for (int i = m->begin; i < m->end && m->code == 0; i++)
    m->code = run_step(m, i);
  if (m->code == 0)
    m->code = ms_streamer_flush(m->streamer, &m->error);
  if (m->code == 0)
    m->code = ms_streamer_begin(m->streamer, MS_STREAM_AVERAGE, &m->error);
  if (m->code == 0)
    m->code = ms_streamer_end(m->streamer, forward(m, STEPS, &averaged), &m->error);
  if (m->code == 0)
    m->code = save(m);
  if (m->number == 0)
    m->outcome->averaged = averaged;
  ms_streamer_close(&m->streamer);
  ms_shard_store_close(&m->store);
  ms_compute_release(&m->compute);
  ms_params_release(&m->params);
  return NULL;
}

static uint64_t hash_of(const char *path) {
  uint64_t hash = 0;
  check_ok(ms_hash_file(path, &hash, NULL) == 0, "%s is read", path);
  return hash;
}

/* Steps [begin, end) on so many ranks. */
static void run_part(const struct variant *v, int size, int begin, int end, const char *from, const char *to,
                     struct outcome *outcome) {
  struct rank *ranks = calloc((size_t)size, sizeof *ranks);
  struct thread_group group;
  uint64_t from_sum = outcome->sum;
  int code = 0;
  if (size > 1)
    thread_group_open(&group, size);
  for (int r = 0; r < size; r++)
    ranks[r] = (struct rank){.v = v,
                             .group = size > 1 ? &group.ranks[r] : NULL,
                             .from = from,
                             .from_sum = from_sum,
                             .state = to,
                             .weights = scratch_path("weights"),
                             .folder = scratch_path("."),
                             .outcome = outcome,
                             .number = r,
                             .size = size,
                             .begin = begin,
                             .end = end};
  if (size > 1)
    thread_group_run(&group, work, ranks, sizeof *ranks);
  else
    work(ranks);
  for (int r = 0; r < size; r++) {
    code |= ranks[r].code;
    check_ok(ranks[r].code == 0, "%s: rank %d of %d: %s", v->name, r, size, ranks[r].error.message);
  }
  if (size > 1)
    thread_group_close(&group);
  free(ranks);
}

static struct outcome run(const struct variant *v) {
  struct outcome outcome = {0};
  char first[600], last[600];
  snprintf(first, sizeof first, "%s", scratch_path("first"));
  snprintf(last, sizeof last, "%s", scratch_path("last"));
  run_part(v, v->ranks, 0, FIRST_STEPS, NULL, first, &outcome);
  outcome.saved = hash_of(first);
  run_part(v, v->later, FIRST_STEPS, STEPS, first, last, &outcome);
  outcome.state = hash_of(last);
  outcome.exported = hash_of(scratch_path("weights"));
  return outcome;
}

static void check_same(const struct variant *v, const struct outcome *got, const struct outcome *want) {
  int losses = 1, norms = 1;
  for (int i = 0; i < STEPS; i++) {
    losses &= got->losses[i] == want->losses[i];
    norms &= fabs(got->norms[i] - want->norms[i]) <= 1e-12 * want->norms[i];
  }
  check_ok(losses && want->losses[STEPS - 1] != 0, "%s: losses of all steps", v->name);
  check_ok(norms && want->norms[0] > 0, "%s: norms of all steps", v->name);
  check_ok(got->averaged == want->averaged, "%s: loss with averaged weights: %.17g, %.17g", v->name,
           got->averaged, want->averaged);
  check_ok(got->saved == want->saved, "%s: the state when it was saved", v->name);
  check_ok(got->state == want->state && got->exported == want->exported, "%s: state and weights", v->name);
}

int main(int argc, char **argv) {
  static const struct variant alone[] = {
      {"alone", 1, 1, 0, 0, 8192, 32, 1, 0},
      {"alone, no average", 1, 1, 0, 0, 8192, 32, 0, 0},
      {"alone, 8 bits", 1, 1, 0, 0, 8192, 8, 1, 0},
      {"alone, trained in part", 1, 1, 0, 0, 8192, 32, 1, 1},
  };
  static const struct variant others[] = {
      {"two ranks", 2, 2, 0, 0, 4096, 32, 1, 0},
      {"two ranks, then one", 2, 1, 0, 0, 8192, 32, 1, 0},
      {"one rank, then three on disk", 1, 3, 31, 31, 4096, 32, 1, 0},
      {"three ranks, some on disk", 3, 2, 0x15, 0x0a, 4096, 32, 1, 0},
      {"six ranks, some without a part", 6, 4, 31, 0, 4096, 32, 1, 0},
      {"two ranks on disk, no average", 2, 3, 31, 31, 4096, 32, 0, 0},
      {"two ranks, 8 bits", 2, 1, 0, 31, 4096, 8, 1, 0},
      {"two ranks, trained in part", 2, 2, 0, 0, 4096, 32, 1, 1},
      {"three ranks, trained in part, on disk", 3, 1, 31, 0x11, 4096, 32, 1, 1},
  };
  static const int reference[] = {0, 0, 0, 0, 0, 1, 2, 3, 3};
  struct outcome want[4];
  check_begin(argc, argv);
  scratch_begin();
  for (int i = 0; i < 4; i++)
    want[i] = run(&alone[i]);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct outcome got = run(&others[i]);
    check_same(&others[i], &got, &want[reference[i]]);
  }
  scratch_end();
  return check_end();
}
