/* A folder of clips as a source: files that FFmpeg opens, captions beside them. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "media/video.h"
#include "ms-train.h"

#define CAPTION_FILE_MAX 65536

struct folder_clip {
  char *path, *caption;
  int width, height;
  int64_t frames;
  double fps, duration;
};

struct folder {
  struct folder_clip *clips;
  int64_t count;
  char *name;
};

static void folder_close(void *data) {
  struct folder *folder = data;
  for (int64_t i = 0; folder && i < folder->count; i++) {
    free(folder->clips[i].path);
    free(folder->clips[i].caption);
  }
  if (folder) {
    free(folder->clips);
    free(folder->name);
  }
  free(folder);
}

/* The part of a w x h picture with the wanted shape, as large as it can be, in the middle. */
static void centre_crop(int w, int h, int want_w, int want_h, int crop[4]) {
  double scale = fmin((double)w / want_w, (double)h / want_h);
  crop[2] = (int)fmax(1, fmin(w, floor(want_w * scale + 1e-6)));
  crop[3] = (int)fmax(1, fmin(h, floor(want_h * scale + 1e-6)));
  crop[0] = (w - crop[2]) / 2;
  crop[1] = (h - crop[3]) / 2;
}

/* Where a window of `length` seconds begins: variant 0 in the middle, the others spread by the golden ratio.
 */
static double window_start(double duration, double length, uint32_t variant) {
  double room = duration - length, part = variant == 0 ? 0.5 : fmod(0.5 + 0.6180339887498949 * variant, 1.0);
  return room > 0 ? room * part : 0;
}

/* Frames nearest to evenly spaced times; a clip that ends early stands still at its last frame. */
static int folder_read(void *data, int64_t number, uint32_t variant, const struct ms_clip_request *request,
                       uint8_t *rgb, char *caption, size_t caption_size, struct ms_error *error) {
  struct folder *folder = data;
  const struct folder_clip *clip = &folder->clips[number];
  struct ms_video *video = NULL;
  size_t frame_bytes = (size_t)request->width * request->height * 3;
  double fps = request->fps > 0 ? request->fps : clip->fps, step = 1 / fps, start, time = 0;
  uint8_t *frame = malloc(frame_bytes);
  int crop[4], filled = 0, got = 0, code;
  start = window_start((double)clip->frames / clip->fps, request->frames * step, variant);
  snprintf(caption, caption_size, "%s", clip->caption);
  if (!frame)
    return ms_error_set(error, MS_ENOMEM, "out of memory while reading \"%s\"", clip->path);
  centre_crop(clip->width, clip->height, request->width, request->height, crop);
  code = ms_video_open(&video, clip->path, error);
  while (code == 0 && filled < request->frames &&
         (got = ms_video_read(video, request->width, request->height, crop, frame, &time, error)) > 0)
    while (filled < request->frames && time + 0.5 / clip->fps > start + filled * step)
      memcpy(rgb + (size_t)filled++ * frame_bytes, frame, frame_bytes);
  if (code == 0 && got < 0)
    code = got;
  while (code == 0 && filled > 0 && filled < request->frames) {
    memcpy(rgb + (size_t)filled * frame_bytes, rgb + (size_t)(filled - 1) * frame_bytes, frame_bytes);
    filled++;
  }
  if (code == 0 && filled == 0)
    code = ms_error_set(error, MS_EINPUT, "no frame of \"%s\" could be decoded", clip->path);
  ms_video_close(&video);
  free(frame);
  return code;
}

static int is_helper_file(const char *name) {
  static const char *const endings[] = {".txt", ".json", ".md", ".csv", ".part", ".safetensors"};
  size_t length = strlen(name);
  if (name[0] == '.')
    return 1;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    size_t n = strlen(endings[i]);
    if (length > n && !strcasecmp(name + length - n, endings[i]))
      return 1;
  }
  return 0;
}

static int only_clips(const struct dirent *entry) {
  return !is_helper_file(entry->d_name);
}

static void log_clip(const struct ms_hooks *hooks, enum ms_log_level level, const char *name,
                     const struct ms_video_info *info, const char *verdict) {
  char line[1024];
  if (!hooks || !hooks->log)
    return;
  if (info)
    snprintf(line, sizeof line, "%-32s %4dx%-4d %5lld frames %7.3f fps%s  %s", name, info->width,
             info->height, (long long)info->frames, info->fps, info->variable_rate ? " (variable)" : "",
             verdict);
  else
    snprintf(line, sizeof line, "%-32s %s", name, verdict);
  hooks->log(hooks->data, level, line);
}

/* The caption beside a clip: NAME.txt with the clip's ending cut off. Returns 1, 0 (none, or empty), or an
 * error. */
static int read_caption(const char *path, char **caption, struct ms_error *error) {
  char *text_path = malloc(strlen(path) + 5), *dot, *text = NULL;
  size_t size = 0;
  int code;
  struct stat info;
  *caption = NULL;
  if (!text_path)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  strcpy(text_path, path);
  dot = strrchr(text_path, '.');
  if (!dot || strchr(dot, '/'))
    dot = text_path + strlen(text_path);
  strcpy(dot, ".txt");
  if (stat(text_path, &info) < 0) {
    free(text_path);
    return 0;
  }
  code = ms_file_read_all(text_path, CAPTION_FILE_MAX, &text, &size, error);
  if (code == 0) {
    json_t *checked = json_stringn(text, size); /* none where it is not UTF-8 */
    if (!checked)
      code = ms_error_set(error, MS_EINPUT, "the caption \"%.300s\" is not UTF-8 text", text_path);
    json_decref(checked);
  }
  free(text_path);
  if (code < 0) {
    free(text);
    return code;
  }
  while (size && isspace((unsigned char)text[size - 1]))
    text[--size] = 0;
  for (size_t i = 0; i < size; i++)
    if (text[i] == '\n' || text[i] == '\r' || text[i] == '\t' || !text[i])
      text[i] = ' ';
  if (!size) {
    free(text);
    return 0;
  }
  *caption = text;
  return 1;
}

/* One file: a clip of the folder, or skipped with a reason. Negative only where the whole folder must be
 * refused. */
static int add_file(struct folder *folder, const char *directory, const char *name,
                    enum ms_missing_caption on_missing, const struct ms_hooks *hooks,
                    struct ms_error *error) {
  struct folder_clip *clip = &folder->clips[folder->count];
  struct ms_video *video = NULL;
  struct ms_error why = {0};
  char verdict[600];
  size_t room = strlen(directory) + strlen(name) + 2;
  int code, captioned;
  memset(clip, 0, sizeof *clip);
  clip->path = malloc(room);
  if (!clip->path)
    return ms_error_set(error, MS_ENOMEM, "out of memory");
  snprintf(clip->path, room, "%s/%s", directory, name);
  code = ms_video_open(&video, clip->path, &why);
  if (code == 0)
    code = ms_video_count(video, &why);
  if (code == 0 && ms_video_info(video)->frames < 1)
    code = ms_error_set(&why, MS_EINPUT, "no frame can be decoded");
  if (code < 0) {
    snprintf(verdict, sizeof verdict, "skipped: %s", why.message);
    log_clip(hooks, MS_LOG_WARNING, name, NULL, verdict);
    ms_video_close(&video);
    free(clip->path);
    return 0;
  }
  captioned = read_caption(clip->path, &clip->caption, error);
  if (captioned == 0 && on_missing == MS_CAPTION_EMPTY) {
    clip->caption = strdup("");
    captioned = 1;
  }
  if (captioned == 1) {
    const struct ms_video_info *info = ms_video_info(video);
    clip->width = info->width;
    clip->height = info->height;
    clip->frames = info->frames;
    clip->fps = info->fps > 0 ? info->fps : 25;
    log_clip(hooks, MS_LOG_INFO, name, info, clip->caption[0] ? "used" : "used, with an empty caption");
    folder->count++;
  } else {
    if (captioned == 0 && on_missing == MS_CAPTION_SKIP)
      log_clip(hooks, MS_LOG_WARNING, name, ms_video_info(video), "skipped: no caption");
    else if (captioned == 0)
      captioned = ms_error_set(
          error, MS_EINPUT,
          "\"%s\" has no caption: write one sentence into a .txt file of the same name, or choose "
          "--on-missing-caption empty or skip",
          clip->path);
    free(clip->path);
  }
  ms_video_close(&video);
  return captioned < 0 ? captioned : 0;
}

/* "no clip in X can be used: it holds a.doc, b.pdf": up to five names. */
static int refuse_empty(const char *path, struct dirent **entries, int entry_count, struct ms_error *error) {
  char seen[300] = "";
  size_t used = 0;
  for (int i = 0; i < entry_count && i < 5; i++)
    used += (size_t)snprintf(seen + used, used < sizeof seen ? sizeof seen - used : 0, "%s%.40s",
                             i ? ", " : "", entries[i]->d_name);
  return ms_error_set(error, MS_EINPUT, "no clip in \"%s\" can be used: %s%s", path,
                      entry_count ? "it holds " : "there is no video file in it", seen);
}

int ms_clip_folder_open(struct ms_clip_source *source, const char *path, enum ms_missing_caption on_missing,
                        const struct ms_hooks *hooks, struct ms_error *error) {
  struct dirent **entries = NULL;
  struct folder *folder;
  int count = scandir(path, &entries, only_clips, alphasort), code = 0;
  memset(source, 0, sizeof *source);
  if (count < 0)
    return ms_error_set(error, MS_EINPUT, "cannot read the folder \"%s\": %s", path, strerror(errno));
  folder = calloc(1, sizeof *folder);
  if (folder) {
    folder->clips = calloc((size_t)count + 1, sizeof *folder->clips);
    folder->name = strdup(path);
  }
  if (!folder || !folder->clips || !folder->name)
    code = ms_error_set(error, MS_ENOMEM, "out of memory");
  for (int i = 0; i < count && code == 0; i++)
    code = add_file(folder, path, entries[i]->d_name, on_missing, hooks, error);
  if (code == 0 && !folder->count)
    code = refuse_empty(path, entries, count, error);
  for (int i = 0; i < count; i++)
    free(entries[i]);
  free(entries);
  if (code < 0) {
    folder_close(folder);
    return code;
  }
  *source = (struct ms_clip_source){.data = folder,
                                    .name = folder->name,
                                    .count = folder->count,
                                    .read = folder_read,
                                    .close = folder_close};
  return 0;
}
