#include "train/latents.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "weights/safetensors.h"

/* Raised when clips are cut or encoded in another way than before. */
#define METHOD "1"

static uint64_t hash_key(uint64_t hash, const json_t *root, const char *key) {
  char *text = json_dumps(json_object_get(root, key), JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
  if (text)
    hash = ms_hash_text(hash, text);
  free(text);
  return hash;
}

void ms_latents_cache_open(struct ms_latents_cache *cache, const char *output, const struct ms_model *model,
                           const struct ms_hooks *hooks) {
  const struct ms_params *params = ms_codec_params(model->codec);
  const unsigned flags = model->compute->cpu_flags;
  uint64_t hash = ms_hash_text(MS_HASH_START, METHOD);
  memset(cache, 0, sizeof *cache);
  cache->hooks = hooks;
  hash = ms_hash_bytes(hash, params->data, (size_t)params->total * msk_type_size(params->type));
  hash = hash_key(hash, model->root, "codec");
  hash = hash_key(hash, model->root, "latent_mean");
  hash = hash_key(hash, model->root, "latent_std");
  cache->codec = ms_hash_bytes(hash, &flags, sizeof flags); /* another processor may round in another way */
  snprintf(cache->folder, sizeof cache->folder, "%.1080s/latents", output);
}

/* What an entry says of itself, as it must be. */
struct marks {
  char content[17], codec[17], crop[40], frames[16], fps[32];
};

static void fill_marks(const struct ms_latents_cache *cache, const struct ms_latents_key *key,
                       struct marks *marks) {
  ms_hash_format(key->content, marks->content);
  ms_hash_format(cache->codec, marks->codec);
  snprintf(marks->crop, sizeof marks->crop, "centre %dx%d", key->request.width, key->request.height);
  snprintf(marks->frames, sizeof marks->frames, "%d", key->request.frames);
  snprintf(marks->fps, sizeof marks->fps, "%.9g", key->request.fps);
}

/* The same clip at another size, length or window has a place of its own. */
static void entry_path(const struct ms_latents_cache *cache, const struct ms_latents_key *key,
                       char path[1200]) {
  char place[64], name[17];
  snprintf(place, sizeof place, "%u %dx%d %d", key->variant, key->request.width, key->request.height,
           key->request.frames);
  ms_hash_format(ms_hash_text(ms_hash_text(MS_HASH_START, key->name), place), name);
  snprintf(path, 1200, "%s/%s.safetensors", cache->folder, name);
}

static int differs(const struct ms_safetensors *file, const char *key, const char *wanted) {
  const char *found = ms_safetensors_metadata(file, key);
  return !found || strcmp(found, wanted);
}

static uint64_t sum_of(const float *latents, int64_t count) {
  return ms_hash_bytes(MS_HASH_START, latents, (size_t)count * sizeof *latents);
}

int ms_latents_cache_find(const struct ms_latents_cache *cache, const struct ms_latents_key *key,
                          float *latents, int64_t count, const char **why) {
  struct ms_safetensors *file = NULL;
  const struct ms_tensor_view *view;
  struct marks marks;
  char path[1200], sum[17];
  *why = "not kept yet";
  entry_path(cache, key, path);
  if (access(path, F_OK) < 0)
    return 0;
  *why = "what was kept is damaged";
  if (ms_safetensors_open(&file, path, NULL) < 0)
    return 0;
  fill_marks(cache, key, &marks);
  view = ms_safetensors_find(file, "latents");
  if (view && view->dtype == MS_DTYPE_F32 && view->count == count) {
    ms_tensor_read_f32(view, latents);
    if (!differs(file, "sum", ms_hash_format(sum_of(latents, count), sum)))
      *why = differs(file, "content", marks.content) ? "the file changed"
             : differs(file, "codec", marks.codec)   ? "the codec changed"
             : differs(file, "fps", marks.fps)       ? "the frame rate changed"
             : differs(file, "crop", marks.crop) || differs(file, "frames", marks.frames) ? "the size changed"
             : differs(file, "dtype", "f32")                                              ? "the type changed"
                                                                                          : NULL;
  } else if (view && !differs(file, "codec", marks.codec)) {
    *why = "what was kept is damaged";
  } else if (view) {
    *why = "the codec changed";
  }
  ms_safetensors_close(&file);
  return *why == NULL;
}

void ms_latents_cache_put(struct ms_latents_cache *cache, const struct ms_latents_key *key,
                          const float *latents, int64_t count) {
  const struct ms_tensor_out tensor = {"latents", MS_DTYPE_F32, 1, {count}, latents};
  struct marks marks;
  struct ms_error error = {0};
  char path[1200], sum[17], message[700];
  const char *metadata[] = {"content",  marks.content, "codec",      marks.codec, "crop",
                            marks.crop, "frames",      marks.frames, "fps",       marks.fps,
                            "dtype",    "f32",         "sum",        sum,         NULL};
  if (cache->full)
    return;
  fill_marks(cache, key, &marks);
  ms_hash_format(sum_of(latents, count), sum);
  entry_path(cache, key, path);
  /* what a crash leaves is known by its checksum, so the disk need not be waited for */
  if ((mkdir(cache->folder, 0777) == 0 || errno == EEXIST) &&
      ms_safetensors_write_quick(path, &tensor, 1, metadata, &error) == 0)
    return;
  ms_error_set(&error, MS_EOUTPUT, "cannot make the folder \"%s\": %s", cache->folder,
               strerrordesc_np(errno));
  snprintf(message, sizeof message, "latents of the clips are not kept from here on: %s", error.message);
  if (cache->hooks && cache->hooks->log)
    cache->hooks->log(cache->hooks->data, MS_LOG_WARNING, message);
  cache->full = 1;
}

void ms_latents_cache_discard(const char *output) {
  char folder[1200], path[2400];
  struct dirent *entry;
  DIR *dir;
  snprintf(folder, sizeof folder, "%.1080s/latents", output);
  dir = opendir(folder);
  while (dir && (entry = readdir(dir))) {
    snprintf(path, sizeof path, "%s/%.256s", folder, entry->d_name);
    if (strstr(entry->d_name, ".safetensors"))
      unlink(path);
  }
  if (dir)
    closedir(dir);
  rmdir(folder);
}
