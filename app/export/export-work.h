/* A clip again in another format, with its settings: what `megaslide export` and the Studio's export both do.
 * Plain C over the engine; blocks until the file is verified, so it belongs on a worker. */
#pragma once
#include <stdatomic.h>
#include "ms-media.h"

struct msa_export_work {
  const char *clip, *output;
  const char *format;       /* a name of ms_format_from_name; NULL: by the output's extension */
  int quality;              /* 0..100 */
  double fps;               /* 0: the clip's; all frames stay, so the clip gets faster or slower */
  const atomic_int *cancel; /* non-zero: stop; polled at each frame. NULL: never */
  /* After each frame; may be NULL. seconds_left is a guess. */
  void (*progress)(void *data, int64_t done, int64_t frames, double seconds, double seconds_left);
  void *data;
};

struct msa_export_result {
  int width, height; /* even, as video formats need it: a clip of odd size loses its last row or column */
  int clip_width, clip_height;
  int64_t frames;
  double fps;
};

/* 0, or MS_EUSAGE (format, quality, output is the clip itself), MS_EINPUT (clip), MS_EOUTPUT, MS_ECANCELLED,
 * MS_ENOMEM. On failure nothing is at `output` that was not there before. */
int msa_export_run(const struct msa_export_work *work, struct msa_export_result *result,
                   struct ms_error *error);
