#include "train/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/system.h"

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

int ms_store_fill(struct ms_store *store, struct ms_model *model, const struct ms_clip_source *source,
                  const struct ms_train_bucket *bucket, const int64_t *clip_numbers, int64_t clip_count,
                  int64_t items, const struct ms_hooks *hooks, struct ms_error *error) {
  struct ms_clip_request request = {bucket->width, bucket->height, bucket->frames, model->defaults.fps};
  size_t pixels = (size_t)bucket->frames * bucket->height * bucket->width;
  uint8_t *rgb = malloc(pixels * 3), *mask = source->read_mask ? malloc(pixels) : NULL;
  float *frames = malloc(pixels * 3 * sizeof *frames);
  double start = ms_seconds();
  int strides[3], code = 0;
  int64_t volume;
  memset(store, 0, sizeof *store);
  ms_codec_strides(model->codec, strides);
  store->bucket = *bucket;
  store->channels = ms_codec_channels(model->codec);
  ms_model_latent_size(model, bucket->frames, bucket->height, bucket->width, store->lattice);
  volume = (int64_t)store->lattice[0] * store->lattice[1] * store->lattice[2];
  store->tokens = volume / (ms_dit_config(model->dit)->patch[0] * ms_dit_config(model->dit)->patch[1] *
                            ms_dit_config(model->dit)->patch[2]);
  store->items = items;
  store->clips = calloc((size_t)items, sizeof *store->clips);
  store->latents = malloc((size_t)items * (size_t)volume * store->channels * sizeof *store->latents);
  store->masks = source->read_mask ? malloc((size_t)items * (size_t)volume) : NULL;
  store->captions = calloc((size_t)items * MS_STORE_CAPTIONS, sizeof *store->captions);
  if (!rgb || !frames || (source->read_mask && (!mask || !store->masks)) || !store->clips ||
      !store->latents || !store->captions)
    code = ms_error_set(error, MS_ENOMEM, "out of memory for %lld clips of %dx%d with %d frames",
                        (long long)items, bucket->width, bucket->height, bucket->frames);
  if (code == 0 && (bucket->frames - 1) % strides[0])
    code = ms_error_set(error, MS_EUSAGE, "clips of %d frames cannot be trained: choose %d n + 1, such as %d",
                        bucket->frames, strides[0], bucket->frames / strides[0] * strides[0] + 1);
  if (code == 0 &&
      (store->lattice[1] * strides[1] != bucket->height || store->lattice[2] * strides[2] != bucket->width))
    code = ms_error_set(error, MS_EUSAGE,
                        "clips of %dx%d cannot be trained: choose multiples of %d, such as %dx%d",
                        bucket->width, bucket->height, strides[2] * ms_dit_config(model->dit)->patch[2],
                        store->lattice[2] * strides[2], store->lattice[1] * strides[1]);
  for (int64_t item = 0; item < items && code == 0; item++) {
    char caption[CAPTION_MAX];
    int64_t clip = clip_numbers[item % clip_count];
    store->clips[item] = clip;
    code = source->read(source->data, clip, (uint32_t)(item / clip_count), &request, rgb, caption,
                        sizeof caption, error);
    if (code < 0)
      break;
    for (size_t i = 0; i < pixels * 3; i++)
      frames[i] = (float)rgb[i] / 127.5f - 1;
    code = ms_codec_encode(model->codec, frames, bucket->frames, bucket->height, bucket->width,
                           store->latents + item * volume * store->channels, error);
    if (code == 0)
      code = read_captions(store, source, item, clip, caption, error);
    if (code == 0 && store->masks) {
      code = source->read_mask(source->data, clip, &request, mask, error);
      if (code == 0)
        shrink_mask(mask, store, strides, store->masks + item * volume);
    }
    if (code == 0 && hooks && hooks->cancel && atomic_load(hooks->cancel))
      code = ms_error_set(error, MS_ECANCELLED, "stopped while encoding clips");
    if (code == 0 && hooks && hooks->progress && (item % 16 == 15 || item + 1 == items)) {
      double spent = ms_seconds() - start;
      struct ms_progress progress = {"encode", item + 1, items, spent,
                                     spent / (double)(item + 1) * (double)(items - item - 1)};
      hooks->progress(hooks->data, &progress);
    }
  }
  free(rgb);
  free(mask);
  free(frames);
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
