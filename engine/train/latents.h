/* Latents of training clips on the disk, so that a run that goes on need not decode and encode them again:
 * OUT/latents/, a small safetensors file for each window of a clip.
 *
 * An entry is taken only if the clip's contents, the codec (description, weights, scale, processor), the
 * crop, the number of frames, the frame rate and the type of the values are those it was made with, and its
 * checksum is right; else it is made anew, and why is told to hooks->log, once a clip. Captions are not part
 * of it. */
#pragma once
#include "model/model.h"
#include "ms-clips.h"
#include "ms-job.h"

struct ms_latents_cache {
  char folder[1100];
  uint64_t codec;
  const struct ms_hooks *hooks;
  int full; /* an entry could not be written: no more are tried */
};

struct ms_latents_key {
  char name[256]; /* of the clip */
  uint64_t content;
  uint32_t variant;
  struct ms_clip_request request;
};

/* model: with its codec's weights. The folder is made with the first entry. */
void ms_latents_cache_open(struct ms_latents_cache *cache, const char *output, const struct ms_model *model,
                           const struct ms_hooks *hooks);
/* 1: latents [count] are filled; 0: not there, and *why is a constant text that says what is amiss. */
int ms_latents_cache_find(const struct ms_latents_cache *cache, const struct ms_latents_key *key,
                          float *latents, int64_t count, const char **why);
/* Keeps them. A full disk is told once and does no harm. */
void ms_latents_cache_put(struct ms_latents_cache *cache, const struct ms_latents_key *key,
                          const float *latents, int64_t count);
/* Removes OUT/latents. */
void ms_latents_cache_discard(const char *output);
