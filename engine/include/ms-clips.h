/* Where training clips come from: a table of functions, so that the trainer knows neither files nor
 * renderers.
 *
 * A source numbers its clips 0 .. count-1. `read` must give the same clip for the same number and size
 * whenever it is asked. Calls come from one thread. */
#pragma once
#include <stdint.h>
#include "ms-error.h"

struct ms_clip_request {
  int width, height, frames; /* exactly these come out */
  double fps;                /* wanted time step of the frames; 0: as in the clip */
};

struct ms_clip_source {
  void *data;
  const char *name;
  int64_t count;
  /* Fills rgb [frames, height, width, 3] and caption (caption_size bytes). variant picks one of several
   * captions (any number is allowed) and, if the source can, an augmentation. MS_EINPUT if the clip cannot be
   * used at all. */
  int (*read)(void *data, int64_t clip, uint32_t variant, const struct ms_clip_request *request, uint8_t *rgb,
              char *caption, size_t caption_size, struct ms_error *error);
  /* Optional (NULL: one caption a clip): another caption of a clip, without making its frames. */
  int (*read_caption)(void *data, int64_t clip, uint32_t variant, char *caption, size_t caption_size,
                      struct ms_error *error);
  /* Optional (NULL: everything counts the same): mask [frames, height, width], 255 where the clip's subject
   * is. */
  int (*read_mask)(void *data, int64_t clip, const struct ms_clip_request *request, uint8_t *mask,
                   struct ms_error *error);
  /* Optional: class numbers of a clip for pre-training a text encoder; labels <= 8. Returns their number;
   * class_counts may be NULL. */
  int (*read_labels)(void *data, int64_t clip, int classes[8], int class_counts[8]);
  /* Optional (NULL: latents of these clips are not kept on disk): a name of the clip that stays the same from
   * run to run, and (content not NULL) a hash of its contents. A source that has it must have read_caption,
   * which is then asked for variant 0 too. */
  int (*read_identity)(void *data, int64_t clip, char *name, size_t name_size, uint64_t *content,
                       struct ms_error *error);
  void (*close)(void *data);
};
