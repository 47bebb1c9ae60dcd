/* The streamer: whatever lies where, in whatever pieces, a run has the bits of one whose layers are all in
 * memory; a pass that is stopped leaves a state that goes on; what the disk changed is not used.
 *
 * The model is a fake: a layer's output and gradients are a few sums over its weights and inputs, so that any
 * weight that came late, twice or not at all shows. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "fake-shards.h"
#include "harness.h"
#include "msk-cpu.h"
#include "scratch.h"
#include "stream/state-file.h"
#include "stream/streamer.h"

#define LAYERS 7
#define INPUTS 3000
#define STEPS 6

struct variant {
  const char *name;
  unsigned disk; /* bits of the layers at home on disk */
  int slots, ring, gradients, threads;
  int64_t piece;
  int inputs_on_disk, moment_bits, average, part; /* part: only the last parameters of a layer are trained */
};

struct model {
  struct ms_params params;
  struct ms_shard_layout layout[LAYERS + 1];
  int64_t counts[LAYERS], trained[LAYERS];
  enum ms_home homes[LAYERS];
  struct ms_compute compute;
  struct ms_schedule_params schedule;
  struct ms_shard_store *store;
  struct ms_streamer *streamer;
  struct ms_trace trace;
  atomic_int cancel;
  float *x[LAYERS + 1]; /* inputs that are not lent */
  int64_t step;
};

static void open_model(struct model *m, const struct variant *v) {
  struct ms_error error = {0};
  struct ms_shard_store_params store = {.layers = LAYERS,
                                        .layout = m->layout,
                                        .homes = m->homes,
                                        .moment_bits = v->moment_bits,
                                        .average = v->average,
                                        .piece = v->piece,
                                        .folder = scratch_path(".")};
  struct ms_streamer_params params = {.params = &m->params,
                                      .schedule = &m->schedule,
                                      .compute = &m->compute,
                                      .folder = store.folder,
                                      .input_elements = INPUTS,
                                      .cancel = &m->cancel,
                                      .trace = &m->trace};
  memset(m, 0, sizeof *m);
  ms_params_init(&m->params);
  m->params.type = MSK_BF16;
  for (int i = -1; i < LAYERS; i++)
    fake_shard_add(&m->params, &m->layout[i + 1], i, 40, v->part);
  m->schedule = ms_schedule_params_default();
  for (int i = 0; i < LAYERS; i++) {
    m->counts[i] = m->layout[i + 1].count;
    m->trained[i] = m->layout[i + 1].owned;
    m->homes[i] = v->disk >> i & 1 ? MS_HOME_DISK : MS_HOME_HOST;
    m->x[i] = calloc(INPUTS, sizeof(float));
  }
  m->x[LAYERS] = calloc(INPUTS, sizeof(float));
  m->schedule.layers = LAYERS;
  m->schedule.counts = m->counts;
  m->schedule.trained = m->trained;
  m->schedule.homes = m->homes;
  m->schedule.outer = m->layout[0].count;
  m->schedule.outer_trained = m->layout[0].owned;
  m->schedule.piece = v->piece;
  m->schedule.slots = v->slots;
  m->schedule.ring = v->ring;
  m->schedule.gradient_buffers = v->gradients;
  m->schedule.inputs = v->inputs_on_disk ? MS_INPUT_DISK : MS_INPUT_DEVICE;
  m->schedule.average_bytes = v->average ? 4 : 0;
  check_ok(ms_trace_open(&m->trace, 4096, &error) == 0 &&
               ms_compute_open(&m->compute, v->threads, msk_cpu_detect(), &error) == 0 &&
               ms_shard_store_open(&m->store, &store, m->compute.pool, &error) == 0,
           "%s: opened: %s", v->name, error.message);
  for (int i = -1; i < LAYERS; i++)
    if (ms_shard_store_fill(m->store, i, fake_shard_weights, m->layout, &error) < 0)
      check_ok(0, "%s: filled: %s", v->name, error.message);
  params.store = m->store;
  check_ok(ms_streamer_open(&m->streamer, &params, &error) == 0, "%s: streamer: %s", v->name, error.message);
}

static void close_model(struct model *m) {
  ms_streamer_close(&m->streamer);
  ms_shard_store_close(&m->store);
  ms_compute_release(&m->compute);
  ms_params_release(&m->params);
  ms_trace_release(&m->trace);
  for (int i = 0; i <= LAYERS; i++)
    free(m->x[i]);
}

/* One pass over the layers; stop_at: the computing is cancelled before that layer. *out: what came out. */
static int pass(struct model *m, enum ms_dit_pass which, int stop_at, double *out, struct ms_error *error) {
  const struct ms_dit_source *source = ms_streamer_source(m->streamer);
  int forward = which == MS_PASS_FORWARD, code = 0;
  float *outer = NULL;
  for (int i = 0; i < LAYERS + 2 && code == 0; i++) {
    int shard = forward ? i - 1 : LAYERS - i;
    struct ms_dit_loan loan;
    const float *x;
    float *y;
    if (shard == stop_at) {
      atomic_store(&m->cancel, 1);
      return MS_ECANCELLED;
    }
    code = source->begin(source->data, which, shard, &loan, error);
    if (code < 0)
      return code;
    x = shard < 0 ? NULL : loan.x ? loan.x : m->x[shard];
    y = shard == LAYERS || !forward ? NULL : loan.y ? loan.y : m->x[shard + 1];
    if (forward && shard < 0) {
      double w = fake_shard_weigh(loan.values, m->layout[0].count, m->step);
      for (int j = 0; j < INPUTS; j++)
        y[j] = (float)(w + (double)(j % 5) * 0.1);
    } else if (forward && shard < LAYERS) {
      double w = fake_shard_weigh(loan.values, m->layout[shard + 1].count, m->step + shard);
      for (int j = 0; j < INPUTS; j++)
        y[j] = (float)(x[j] * 0.9 + w * (1 + j % 3));
    } else if (forward) {
      double sum = 0;
      for (int j = 0; j < INPUTS; j++)
        sum += x[j] * (double)(j % 11 - 5);
      *out = sum;
    } else if (shard == LAYERS) {
      outer = loan.gradient;
      for (int64_t j = m->layout[0].first; j < m->layout[0].count; j++)
        outer[j] += x[j % INPUTS] * 0.01f;
    } else {
      const struct ms_shard_layout *l = &m->layout[shard + 1];
      for (int64_t j = l->first; j < l->count; j++) /* frozen ones are not there */
        loan.gradient[j] += shard < 0 ? 0.001f * (float)(j % 3)
                                      : x[(j * 3) % INPUTS] * 0.02f +
                                            msk_bf16_to_f32(((const uint16_t *)loan.values)[j]) * 0.05f;
    }
    usleep(shard == 2 ? 300 : 0); /* lanes run ahead */
    code = source->end(source->data, which, shard, error);
  }
  return code;
}

static int step(struct model *m, int stop_forward, int stop_backward, double *trail, struct ms_error *error) {
  const char *bad;
  struct ms_update update;
  int code = ms_streamer_begin(m->streamer, MS_STREAM_STEP, error);
  if (code < 0)
    return code;
  code = pass(m, MS_PASS_FORWARD, stop_forward, &trail[0], error);
  if (code == 0)
    code = pass(m, MS_PASS_BACKWARD, stop_backward, NULL, error);
  code = ms_streamer_end(m->streamer, code, error);
  if (code < 0)
    return code;
  trail[1] = ms_streamer_norm(m->streamer, &bad);
  update = fake_shard_update(m->step, trail[1] > 1 ? 1 / trail[1] : 1);
  ms_streamer_put_update(m->streamer, &update);
  m->step++;
  return 0;
}

/* Losses and norms of the steps, loss with averaged weights, and a hash of the state at the end. */
struct outcome {
  double trail[STEPS][2], averaged;
  uint64_t state, exported;
};

static uint64_t hash_of(const char *path) {
  struct ms_error error = {0};
  uint64_t hash = 0;
  check_ok(ms_hash_file(path, &hash, &error) == 0, "%s is read: %s", path, error.message);
  return hash;
}

static void finish(struct model *m, const struct variant *v, struct outcome *outcome) {
  struct ms_error error = {0};
  uint64_t sum;
  int code = ms_streamer_begin(m->streamer, MS_STREAM_AVERAGE, &error);
  if (code == 0)
    code = pass(m, MS_PASS_FORWARD, -5, &outcome->averaged, &error);
  code = ms_streamer_end(m->streamer, code, &error);
  check_ok(code == 0 && !ms_streamer_waits(m->streamer), "%s: a pass with the average: %s", v->name,
           error.message);
  check_ok(ms_state_file_write(m->store, scratch_path("state"), &sum, &error) == 0 &&
               ms_state_file_export(m->store, &m->params, scratch_path("weights"), &error) == 0,
           "%s: saved: %s", v->name, error.message);
  outcome->state = hash_of(scratch_path("state"));
  outcome->exported = hash_of(scratch_path("weights"));
}

static struct outcome run(const struct variant *v) {
  struct outcome outcome = {0};
  struct ms_error error = {0};
  struct model m;
  int code = 0;
  open_model(&m, v);
  for (int i = 0; i < STEPS && code == 0; i++)
    code = step(&m, -5, -5, outcome.trail[i], &error);
  check_ok(code == 0, "%s: %d steps: %s", v->name, STEPS, error.message);
  finish(&m, v, &outcome);
  close_model(&m);
  return outcome;
}

static void check_same(const struct variant *v, const struct outcome *got, const struct outcome *want) {
  int same = 1;
  for (int i = 0; i < STEPS; i++)
    same &= got->trail[i][0] == want->trail[i][0] && got->trail[i][1] == want->trail[i][1];
  check_ok(same && isfinite(want->trail[STEPS - 1][0]), "%s: losses and norms of all steps", v->name);
  check_ok(got->averaged == want->averaged, "%s: loss with averaged weights: %.17g, %.17g", v->name,
           got->averaged, want->averaged);
  check_ok(got->state == want->state && got->exported == want->exported, "%s: state and weights", v->name);
}

/* Stopped in a forward or backward pass at every place in turn, the run is flushed, saved, opened anew from
 * the file, and ends with the same bits. */
static void check_stops(const struct variant *v, const struct outcome *want) {
  for (int stop = -1; stop < LAYERS + 1; stop += 2) {
    struct outcome got = *want;
    struct ms_error error = {0};
    struct model m, second;
    uint64_t sum = 0;
    int code = 0, at = STEPS / 2;
    open_model(&m, v);
    for (int i = 0; i < at && code == 0; i++)
      code = step(&m, -5, -5, got.trail[i], &error);
    code = step(&m, stop % 4 == 1 ? stop : -5, stop % 4 == 1 ? -5 : stop, got.trail[at], &error);
    check_ok(code == MS_ECANCELLED, "%s: stopped at %d", v->name, stop);
    memset(&error, 0, sizeof error);
    code = ms_streamer_flush(m.streamer, &error);
    if (code == 0)
      code = ms_state_file_write(m.store, scratch_path("stopped"), &sum, &error);
    check_ok(code == 0, "%s: flushed and saved: %s", v->name, error.message);
    close_model(&m);
    open_model(&second, v);
    second.step = at;
    code = ms_state_file_read(second.store, scratch_path("stopped"), sum, &error);
    check_ok(code == 0, "%s: read: %s", v->name, error.message);
    for (int i = at; i < STEPS && code == 0; i++)
      code = step(&second, -5, -5, got.trail[i], &error);
    finish(&second, v, &got);
    check_same(v, &got, want);
    close_model(&second);
  }
}

/* A bit that flips in any part of a shard on disk ends the step, or the next one, with the layer's name. */
static void check_damage(const struct variant *v) {
  for (int part = 0; part < 4; part++) {
    struct ms_error error = {0};
    struct model m;
    struct ms_shard *shard;
    double trail[2];
    unsigned char byte;
    int64_t at;
    int code = 0;
    open_model(&m, v);
    for (int i = 0; i < 2 && code == 0; i++)
      code = step(&m, -5, -5, trail, &error);
    shard = ms_shard_store_at(m.store, 3);
    at = part == 0   ? 100
         : part == 1 ? shard->state_at + 77
         : part == 2
             ? shard->state_at + (int64_t)ms_state_offset(m.store, MS_STATE_V, shard->pieces[0].count) + 9
             : shard->gradient_at + 4001;
    check_ok(code == 0 && pread(shard->file.fd, &byte, 1, at) == 1, "%s: two steps: %s", v->name,
             error.message);
    byte ^= 4;
    code = pwrite(shard->file.fd, &byte, 1, at) == 1 ? 0 : -1;
    fsync(shard->file.fd);
    if (code == 0)
      code = step(&m, -5, -5, trail, &error);
    check_ok(code == MS_EINPUT && strstr(error.message, "layer 4"), "%s: damaged part %d: %d %s", v->name,
             part, code, error.message);
    close_model(&m);
  }
}

/* A state file of which a byte was changed is refused, and the store is as it was. */
static void check_damaged_file(const struct variant *v) {
  struct ms_error error = {0};
  struct model m;
  uint64_t sum = 0, again = 0;
  double trail[2];
  FILE *file;
  open_model(&m, v);
  check_ok(step(&m, -5, -5, trail, &error) == 0 && ms_streamer_flush(m.streamer, &error) == 0 &&
               ms_state_file_write(m.store, scratch_path("whole"), &sum, &error) == 0,
           "%s: saved: %s", v->name, error.message);
  file = fopen(scratch_path("whole"), "r+b");
  fseek(file, -5000, SEEK_END);
  fputc(0x5a, file);
  fclose(file);
  check_ok(ms_state_file_read(m.store, scratch_path("whole"), sum, &error) == MS_EINPUT &&
               strstr(error.message, "add up"),
           "%s: a changed file is refused: %s", v->name, error.message);
  memset(&error, 0, sizeof error);
  check_ok(ms_state_file_write(m.store, scratch_path("again"), &again, &error) == 0 && again == sum,
           "%s: and nothing was taken from it", v->name);
  check_ok(ms_trace_write(&m.trace, scratch_path("trace.json"), &error) == 0 && m.trace.added > 20,
           "the trace is written: %s", error.message);
  close_model(&m);
}

int main(int argc, char **argv) {
  static const struct variant resident[] = {
      {"resident", 0, 2, 4, 2, 1, 8192, 0, 32, 1, 0},
      {"resident, no average", 0, 2, 4, 2, 1, 8192, 0, 32, 0, 0},
      {"resident, 8 bits", 0, 2, 4, 2, 1, 8192, 0, 8, 1, 0},
      {"resident, trained in part", 0, 2, 4, 2, 1, 8192, 0, 32, 1, 1},
  };
  static const struct variant others[] = {
      {"resident, three threads, other pieces", 0, 2, 4, 2, 3, 4096, 0, 32, 1, 0},
      {"all on disk", 127, 2, 2, 2, 1, 4096, 0, 32, 1, 0},
      {"all on disk, large pieces, three slots", 127, 3, 5, 3, 2, 65536, 0, 32, 1, 0},
      {"some on disk, inputs too", 0x55, 2, 3, 2, 2, 8192, 1, 32, 1, 0},
      {"inputs on disk", 0, 2, 3, 2, 2, 8192, 1, 32, 1, 0},
      {"on disk, no average", 127, 2, 3, 2, 2, 4096, 1, 32, 0, 0},
      {"on disk, 8 bits", 127, 2, 3, 2, 2, 4096, 1, 8, 1, 0},
      {"some on disk, 8 bits, large pieces", 0x2a, 4, 2, 2, 2, 65536, 0, 8, 1, 0},
      {"on disk, trained in part", 127, 2, 3, 2, 2, 4096, 1, 32, 1, 1},
      {"some on disk, trained in part", 0x66, 2, 3, 2, 3, 8192, 0, 32, 1, 1},
  };
  static const int reference[] = {0, 0, 0, 0, 0, 1, 2, 2, 3, 3};
  struct outcome want[4];
  check_begin(argc, argv);
  scratch_begin();
  for (int i = 0; i < 4; i++)
    want[i] = run(&resident[i]);
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    struct outcome got = run(&others[i]);
    check_same(&others[i], &got, &want[reference[i]]);
  }
  check_stops(&others[1], &want[0]);
  check_stops(&others[3], &want[0]);
  check_stops(&resident[2], &want[2]);
  check_damage(&others[1]);
  check_damaged_file(&others[7]);
  check_ok(want[0].state != want[1].state && want[0].state != want[2].state,
           "the settings make a difference");
  scratch_end();
  return check_end();
}
