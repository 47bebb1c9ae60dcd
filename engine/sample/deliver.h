/* From final latents to a verified file: decode in chunks of one latent frame with carried state, crop to the
 * asked size, encode. */
#pragma once
#include "model/model.h"
#include "ms-job.h"

struct ms_deliver {
  struct ms_model *model;
  const float *latents; /* [C, lattice] */
  int lattice[3];
  int width, height, frames; /* what the file holds */
  double fps;
  const char *output, *comment;
  void (*frame_done)(void *data, int frame, int frames);
  void *frame_data;
};

int ms_deliver_run(const struct ms_deliver *deliver, struct ms_error *error);
