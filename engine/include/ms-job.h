/* What every job of the engine shares: the machine it may use and the hooks through which it reports.
 *
 * A job runs on the caller's thread until it is done; hooks are called on that thread (never from pool
 * threads), must be quick and must not call the engine. Strings and arrays given to a hook live until it
 * returns. */
#pragma once
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include "ms-error.h"

struct ms_group;

struct ms_machine {
  int threads;        /* 0: one per processor that the process may use */
  int reference;      /* use the C reference kernels only */
  size_t host_memory; /* bytes the process may have resident at its peak; 0: 70 % of what is available at the
                         start */
  size_t device_memory; /* bytes of the device that the working set may take: weights, activations, scratch.
                           On the CPU device a part of host_memory; 0: no limit of its own */
  const char *data_folder; /* where models, configurations and recipes lie */
  const char *user_folder; /* where the person's own models lie; NULL: none */
  struct ms_group *group;  /* processes that train together (ms-group.h), borrowed; NULL: alone. Budgets and
                              threads are of each; where they are not said the ranks of a machine share it */
};

struct ms_progress {
  const char
      *phase; /* "load", "text", "sample", "decode", "refine", "train", "encode", "render", "validate" ... */
  int64_t done, total;
  double seconds, seconds_left; /* of the whole job; left < 0: not known yet */
};

struct ms_metric { /* a named number at a step, or at a time */
  const char *name;
  double value;
};

struct ms_preview { /* a small moving picture of the clip as the network sees it now */
  int width, height, frames;
  double fps;
  const uint8_t *rgb; /* [frames, height, width, 3] */
  int step, steps;
};

enum ms_log_level { MS_LOG_INFO, MS_LOG_WARNING };

struct ms_hooks {
  void *data;
  void (*progress)(void *data, const struct ms_progress *progress);
  void (*metrics)(void *data, int64_t step, const struct ms_metric *metrics, int count);
  void (*preview)(void *data, const struct ms_preview *preview);
  void (*log)(void *data, enum ms_log_level level, const char *message);
  /* Training: a clip of `prompt` that the model made after `step` lies at `path`, whole. */
  void (*sample)(void *data, int64_t step, const char *prompt, const char *path);
  const atomic_int *cancel; /* non-zero: stop; polled between tiles, so within a second. NULL: never */
};
