#include "train/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/system.h"
#include "base/text.h"

#define CAPTION_MAX 1024

/* A cell counts as the subject's if any pixel of it, or of a neighbouring cell in space, does. */
static void shrink_mask(const uint8_t *pixels, const struct ms_store *store, const int strides[3],
                        uint8_t *mask) {
  const struct ms_train_bucket *b = &store->bucket;
  int th = store->lattice[1], tw = store->lattice[2];
  memset(mask, 0, (size_t)store->lattice[0] * th * tw);
  for (int f = 0; f < b->frames; f++) {
    int t = f == 0 ? 0 : 1 + (f - 1) / strides[0];
    for (int y = 0; y < b->height; y++)
      for (int x = 0; x < b->width; x++) {
        int cy = y / strides[1], cx = x / strides[2];
        if (pixels[((size_t)f * b->height + y) * b->width + x] < 128)
          continue;
        for (int ny = cy - 1; ny <= cy + 1; ny++)
          for (int nx = cx - 1; nx <= cx + 1; nx++)
            if (ny >= 0 && ny < th && nx >= 0 && nx < tw)
              mask[((size_t)t * th + ny) * tw + nx] = 1;
      }
  }
}

static int read_captions(struct ms_store *store, const struct ms_clip_source *source, int64_t item,
                         int64_t clip, const char *first, struct ms_error *error) {
  char text[CAPTION_MAX];
  for (int i = 0; i < MS_STORE_CAPTIONS; i++) {
    const char *caption = first;
    if (i > 0 && source->read_caption) {
      int code = source->read_caption(source->data, clip, (uint32_t)(item * MS_STORE_CAPTIONS + i), text,
                                      sizeof text, error);
      if (code < 0)
        return code;
      caption = text;
    }
    store->captions[item * MS_STORE_CAPTIONS + i] = strdup(caption);
    if (!store->captions[item * MS_STORE_CAPTIONS + i])
      return ms_error_set(error, MS_ENOMEM, "out of memory for captions");
  }
  return 0;
}

/* What the items of a store are made with and in. */
struct filling {
  struct ms_store *store;
  struct ms_model *model;
  const struct ms_clip_source *source;
  struct ms_clip_request request;
  struct ms_latents_cache *cache; /* NULL: nothing is kept */
  const struct ms_hooks *hooks;
  size_t pixels; /* of a clip */
  uint8_t *rgb, *mask;
  float *frames;
  uint64_t *contents;  /* [clip_count] hashes of the clips, 0: not known yet */
  unsigned char *told; /* [clip_count] that it is encoded, and why */
};

static int64_t volume_of(const struct ms_store *store) {
  return (int64_t)store->lattice[0] * store->lattice[1] * store->lattice[2];
}

static int check_sizes(const struct ms_store *store, const int strides[3], const int patch[3],
                       struct ms_error *error) {
  const struct ms_train_bucket *b = &store->bucket;
  if ((b->frames - 1) % strides[0])
    return ms_error_set(error, MS_EUSAGE, "clips of %d frames cannot be trained: choose %d n + 1, such as %d",
                        b->frames, strides[0], b->frames / strides[0] * strides[0] + 1);
  if (store->lattice[1] * strides[1] != b->height || store->lattice[2] * strides[2] != b->width)
    return ms_error_set(
        error, MS_EUSAGE, "clips of %dx%d cannot be trained: choose multiples of %d, such as %dx%d", b->width,
        b->height, strides[2] * patch[2], store->lattice[2] * strides[2], store->lattice[1] * strides[1]);
  return 0;
}

static int allocate(struct filling *f, int64_t items, int64_t clip_count, struct ms_error *error) {
  struct ms_store *store = f->store;
  int masks = f->source->read_mask != NULL;
  f->rgb = malloc(f->pixels * 3);
  f->mask = masks ? malloc(f->pixels) : NULL;
  f->frames = malloc(f->pixels * 3 * sizeof *f->frames);
  f->contents = calloc((size_t)clip_count, sizeof *f->contents);
  f->told = calloc((size_t)clip_count, 1);
  store->clips = calloc((size_t)items, sizeof *store->clips);
  store->latents = malloc((size_t)items * (size_t)ms_store_elements(store) * sizeof *store->latents);
  store->masks = masks ? malloc((size_t)items * (size_t)volume_of(store)) : NULL;
  store->captions = calloc((size_t)items * MS_STORE_CAPTIONS, sizeof *store->captions);
  if (f->rgb && f->frames && (!masks || (f->mask && store->masks)) && f->contents && f->told &&
      store->clips && store->latents && store->captions)
    return 0;
  return ms_error_set(error, MS_ENOMEM, "out of memory for %lld clips of %dx%d with %d frames",
                      (long long)items, f->request.width, f->request.height, f->request.frames);
}

/* Decodes and encodes a clip's window. */
static int encode_item(struct filling *f, int64_t clip, uint32_t variant, float *latents, char *caption,
                       size_t caption_size, struct ms_error *error) {
  const struct ms_clip_request *r = &f->request;
  int code = f->source->read(f->source->data, clip, variant, r, f->rgb, caption, caption_size, error);
  if (code < 0)
    return code;
  for (size_t i = 0; i < f->pixels * 3; i++)
    f->frames[i] = (float)f->rgb[i] / 127.5f - 1;
  return ms_codec_encode(f->model->codec, f->frames, r->frames, r->height, r->width, latents, error);
}

static void tell_encoded(const struct filling *f, const char *name, const char *why) {
  char message[400], shown[280];
  if (!f->hooks || !f->hooks->log)
    return;
  snprintf(message, sizeof message, "%s is encoded at %dx%d: %s",
           ms_text_printable(name, shown, sizeof shown), f->request.width, f->request.height, why);
  f->hooks->log(f->hooks->data, MS_LOG_INFO, message);
}

/* The same through the cache. number: the clip's place in the list. */
static int take_item(struct filling *f, int64_t clip, int64_t number, uint32_t variant, float *latents,
                     char *caption, size_t caption_size, struct ms_error *error) {
  struct ms_latents_key key = {.variant = variant, .request = f->request};
  const char *why;
  int code;
  if (!f->cache || !f->source->read_identity || f->store->masks)
    return encode_item(f, clip, variant, latents, caption, caption_size, error);
  /* a file is hashed once, not for each of its windows */
  code = f->source->read_identity(f->source->data, clip, key.name, sizeof key.name,
                                  f->contents[number] ? NULL : &f->contents[number], error);
  if (code < 0)
    return code;
  key.content = f->contents[number];
  if (ms_latents_cache_find(f->cache, &key, latents, ms_store_elements(f->store), &why))
    return f->source->read_caption(f->source->data, clip, variant, caption, caption_size, error);
  if (!f->told[number])
    tell_encoded(f, key.name, why);
  f->told[number] = 1;
  code = encode_item(f, clip, variant, latents, caption, caption_size, error);
  if (code == 0)
    ms_latents_cache_put(f->cache, &key, latents, ms_store_elements(f->store));
  return code;
}

static int fill_item(struct filling *f, int64_t item, const int64_t *clip_numbers, int64_t clip_count,
                     const int strides[3], struct ms_error *error) {
  struct ms_store *store = f->store;
  char caption[CAPTION_MAX];
  int64_t clip = clip_numbers[item % clip_count];
  int code;
  store->clips[item] = clip;
  code = take_item(f, clip, item % clip_count, (uint32_t)(item / clip_count),
                   store->latents + item * ms_store_elements(store), caption, sizeof caption, error);
  if (code == 0)
    code = read_captions(store, f->source, item, clip, caption, error);
  if (code == 0 && store->masks) {
    code = f->source->read_mask(f->source->data, clip, &f->request, f->mask, error);
    if (code == 0)
      shrink_mask(f->mask, store, strides, store->masks + item * volume_of(store));
  }
  if (code == 0 && f->hooks && f->hooks->cancel && atomic_load(f->hooks->cancel))
    code = ms_error_set(error, MS_ECANCELLED, "stopped while encoding clips");
  return code;
}

int ms_store_fill(struct ms_store *store, struct ms_model *model, const struct ms_clip_source *source,
                  const struct ms_train_bucket *bucket, const int64_t *clip_numbers, int64_t clip_count,
                  int64_t items, struct ms_latents_cache *cache, const struct ms_hooks *hooks,
                  struct ms_error *error) {
  struct filling f = {
      .store = store,
      .model = model,
      .source = source,
      .request = {bucket->width, bucket->height, bucket->frames, model->defaults.fps},
      .cache = cache,
      .hooks = hooks,
      .pixels = (size_t)bucket->frames * bucket->height * bucket->width,
  };
  const int *patch = ms_dit_config(model->dit)->patch;
  double start = ms_seconds();
  int strides[3], code;
  memset(store, 0, sizeof *store);
  ms_codec_strides(model->codec, strides);
  store->bucket = *bucket;
  store->channels = ms_codec_channels(model->codec);
  ms_model_latent_size(model, bucket->frames, bucket->height, bucket->width, store->lattice);
  store->tokens = volume_of(store) / (patch[0] * patch[1] * patch[2]);
  store->items = items;
  code = check_sizes(store, strides, patch, error);
  if (code == 0)
    code = allocate(&f, items, clip_count, error);
  for (int64_t item = 0; item < items && code == 0; item++) {
    code = fill_item(&f, item, clip_numbers, clip_count, strides, error);
    if (code == 0 && hooks && hooks->progress && (item % 16 == 15 || item + 1 == items)) {
      double spent = ms_seconds() - start;
      struct ms_progress progress = {"encode", item + 1, items, spent,
                                     spent / (double)(item + 1) * (double)(items - item - 1)};
      hooks->progress(hooks->data, &progress);
    }
  }
  free(f.rgb);
  free(f.mask);
  free(f.frames);
  free(f.contents);
  free(f.told);
  if (code < 0)
    ms_store_release(store);
  return code;
}

void ms_store_release(struct ms_store *store) {
  for (int64_t i = 0; store->captions && i < store->items * MS_STORE_CAPTIONS; i++)
    free(store->captions[i]);
  free(store->captions);
  free(store->clips);
  free(store->latents);
  free(store->masks);
  memset(store, 0, sizeof *store);
}
