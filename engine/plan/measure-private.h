/* What the files that measure this machine share. */
#pragma once
#include "plan/plan-private.h"

#define MS_MEASURE_CHANNELS 16

struct ms_measure {
  struct ms_compute compute;
  const struct ms_hooks *hooks;
  const char *folder;
  struct ms_error *error;
};

struct ms_probe_shape {
  int dim, ffn, heads, layers, text_dim, text_len, lattice[3];
  enum ms_attention_kind kind;
  int training;
};

struct ms_probe {
  struct ms_dit *dit;
  struct ms_dit_batch batch;
  float time, *latents, *text, *velocity, *grad;
  const float *texts[1];
  int rows[1];
  double load_seconds; /* memory taken, weights written there and packed */
};

/* One probe: its best seconds, and where the model FLOPs of its passes go. */
struct ms_reading {
  double seconds, load_seconds, parameters;
  struct ms_plan_work work;
};

/* MS_ECANCELLED once the hooks say so, else 0. */
int ms_measure_stopped(const struct ms_measure *m);
/* Best of several calls; ends at the first that fails. */
int ms_measure_best(int (*fn)(void *data, struct ms_error *error), void *data, double *seconds,
                    struct ms_error *error);
/* Random numbers; malloc. NULL if out of memory. */
float *ms_measure_normals(int64_t count);

/* A network with random weights, prepared, and a batch of one sample for it. Close also after a failure. */
int ms_probe_open(struct ms_measure *m, const struct ms_probe_shape *shape, struct ms_probe *probe);
void ms_probe_close(struct ms_probe *probe);
#define MS_MEASURE_MOST_PROBES 4
/* Several probes in turn, again and again, so that what else runs on the machine disturbs them alike; each
 * keeps its best. spend: seconds, at least two rounds. */
int ms_probes_read(struct ms_measure *m, const struct ms_probe_shape *shapes, int count, double spend,
                   struct ms_reading *readings);

/* measure-media.c: rates of the codec and of writing video. */
int ms_measure_codec(struct ms_measure *m, struct ms_rates *rates);
int ms_measure_video(struct ms_measure *m, struct ms_rates *rates);

/* measure-disk.c: rates of the disk under `folder`, in large requests. */
int ms_measure_disk(struct ms_measure *m, struct ms_rates *rates);
