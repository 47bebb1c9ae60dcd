/* Whole steps of training the starter: batch, text, forward pass, loss, backward pass, AdamW with its
 * average, all over the streamer with every layer in memory. Model FLOPs: three forward passes; what is
 * computed again does not count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/rig.h"
#include "model/model.h"
#include "ms-models.h"
#include "ms-train.h"
#include "stream/dit-file.h"
#include "train/objective.h"

#define CLIPS 32

struct step_case {
  struct ms_model model;
  struct ms_train_job job;
  struct ms_store store;
  struct ms_objective objective;
  struct ms_bench_run *run;
  struct ms_bench_rig rig;
  int64_t step;
  struct ms_error *error;
  int code;
};

static void take_loss(void *data) {
  ms_objective_loss(data, 1);
}

static void run_step(void *data) {
  struct step_case *c = data;
  int64_t items[CLIPS];
  int samples = c->store.bucket.batch;
  if (c->code < 0)
    return;
  for (int i = 0; i < samples; i++)
    items[i] = (c->step * samples + i) % c->store.items;
  c->code = ms_objective_make(&c->objective, &c->store, items, samples, (uint64_t)c->step++, c->error);
  if (c->code == 0)
    c->code = ms_bench_rig_step(c->run, &c->rig, &c->objective.batch, c->objective.velocity,
                                c->objective.gradient, 1, take_loss, &c->objective);
}

/* Clips as a store holds them, encoded long ago: noise of the right shape. */
static int fill_store(struct step_case *c, const struct ms_train_bucket *bucket) {
  static const char caption[] = "a red ball rolls to the right on a blue background";
  struct ms_store *store = &c->store;
  const struct ms_dit_config *config = ms_dit_config(c->model.dit);
  *store =
      (struct ms_store){.bucket = *bucket, .channels = ms_codec_channels(c->model.codec), .items = CLIPS};
  ms_model_latent_size(&c->model, bucket->frames, bucket->height, bucket->width, store->lattice);
  store->tokens = (int64_t)store->lattice[0] * (store->lattice[1] / config->patch[1]) *
                  (store->lattice[2] / config->patch[2]);
  store->clips = calloc(CLIPS, sizeof *store->clips);
  store->captions = calloc(CLIPS * MS_STORE_CAPTIONS, sizeof *store->captions);
  store->latents = ms_bench_floats(CLIPS * ms_store_elements(store));
  for (int i = 0; store->captions && i < CLIPS * MS_STORE_CAPTIONS; i++)
    if (!(store->captions[i] = strdup(caption)))
      return ms_error_set(c->error, MS_ENOMEM, "out of memory for the benchmark of training");
  if (!store->clips || !store->captions || !store->latents)
    return ms_error_set(c->error, MS_ENOMEM, "out of memory for the benchmark of training");
  return 0;
}

static int bench_bucket(struct ms_bench_run *run, struct step_case *c, const struct ms_train_bucket *bucket) {
  char shape[96];
  double seconds, tokens;
  int code = fill_store(c, bucket);
  if (code == 0)
    code = ms_objective_init(&c->objective, &c->model, &c->job, bucket->batch,
                             ms_store_elements(&c->store) * bucket->batch, c->error);
  if (code == 0) {
    seconds = ms_bench_time(run_step, c);
    code = c->code;
  }
  if (code == 0) {
    tokens = (double)c->store.tokens * bucket->batch;
    snprintf(shape, sizeof shape, "starter %dx%dx%d x %d, %s, %.0f tokens/s", bucket->width, bucket->height,
             bucket->frames, bucket->batch, bucket->coarse ? "dense" : "dsa point 3x5x5", tokens / seconds);
    ms_bench_row(run, "training step", shape, run->compute.product[MSK_PRECISION_BF16].name, seconds,
                 3 * ms_dit_forward_flops(c->model.dit, c->store.lattice, bucket->coarse) * bucket->batch, 0,
                 "bf16");
    code = ms_bench_cancelled(run);
  }
  ms_objective_release(&c->objective);
  ms_store_release(&c->store);
  return code;
}

int ms_bench_training(struct ms_bench_run *run) {
  static const struct ms_train_bucket buckets[] = {
      {.width = 64, .height = 64, .frames = 9, .batch = 32, .coarse = 1},
      {.width = 192, .height = 128, .frames = 33, .batch = 2, .coarse = 1},
      {.width = 192, .height = 128, .frames = 33, .batch = 2},
      {.width = 320, .height = 192, .frames = 33, .batch = 1},
  };
  struct step_case c = {.error = run->error, .run = run};
  struct ms_bench_rig_params params = {.average = 1, .read = ms_dit_memory_read};
  char folder[1024];
  int code = ms_model_find("starter", run->machine->data_folder, run->machine->user_folder, folder,
                           sizeof folder, run->error);
  ms_train_job_init(&c.job);
  if (code == 0)
    code = ms_model_open(&c.model, &run->compute, folder, MS_MODEL_ALL, MSK_BF16, MSK_PRECISION_BF16,
                         run->error);
  if (code < 0)
    return code;
  params.read_data = c.model.dit;
  code = ms_bench_rig_open(run, &c.rig, c.model.dit, &params);
  for (size_t i = 0; i < sizeof buckets / sizeof *buckets && code == 0; i++)
    code = bench_bucket(run, &c, &buckets[i]);
  ms_bench_rig_close(&c.rig);
  ms_model_release(&c.model);
  return code;
}
