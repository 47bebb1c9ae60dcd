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
#include "base/hash.h"
#include "base/text.h"
#include "ms-media.h"
#include "ms-train.h"

#define CAPTION_FILE_MAX 65536

struct folder_clip {
  char *path, *caption;
  int width, height;
  int64_t frames;
  double fps;
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

static int folder_read_caption(void *data, int64_t number, uint32_t variant, char *caption,
                               size_t caption_size, struct ms_error *error) {
  const struct folder *folder = data;
  snprintf(caption, caption_size, "%s", folder->clips[number].caption);
  return 0;
}

/* The whole file: a clip that was cut or graded anew often keeps its name, size and time. */
static int folder_read_identity(void *data, int64_t number, char *name, size_t name_size, uint64_t *content,
                                struct ms_error *error) {
  const struct folder *folder = data;
  const char *path = folder->clips[number].path, *slash = strrchr(path, '/');
  snprintf(name, name_size, "%s", slash ? slash + 1 : path);
  return content ? ms_hash_file(path, content, error) : 0;
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

/* A line of the table of clips. */
static void log_check(const struct ms_hooks *hooks, const struct ms_clip_check *check) {
  char line[1024], name[400], verdict[300];
  if (!hooks || !hooks->log)
    return;
  ms_text_printable(check->name, name, sizeof name);
  if (!check->usable)
    snprintf(verdict, sizeof verdict, "skipped: %s", check->reason);
  else
    snprintf(verdict, sizeof verdict, "%s", check->caption[0] ? "used" : "used, with an empty caption");
  if (check->frames > 0)
    snprintf(line, sizeof line, "%-32s %4dx%-4d %5lld frames %7.3f fps%s  %s", name, check->width,
             check->height, (long long)check->frames, check->fps, check->variable_rate ? " (variable)" : "",
             verdict);
  else
    snprintf(line, sizeof line, "%-32s %s", name, verdict);
  hooks->log(hooks->data, check->usable ? MS_LOG_INFO : MS_LOG_WARNING, line);
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

/* The clip cannot be used, and why. */
static void set_aside(struct ms_clip_check *check, const char *reason) {
  char shown[256];
  check->usable = 0;
  snprintf(check->reason, sizeof check->reason, "%s", ms_text_printable(reason, shown, sizeof shown));
}

/* Looks at one file. *caption is owned by the caller. Returns 0, or an error that is not about this file; a
 * file that stands in the way of the whole folder is also told in *refusal. */
static int check_file(const char *path, enum ms_missing_caption on_missing, struct ms_clip_check *check,
                      char **caption, struct ms_error *refusal, struct ms_error *error) {
  struct ms_video *video = NULL;
  struct ms_error why = {0};
  char shown[400];
  int code = ms_video_open(&video, path, &why), captioned;
  *caption = NULL;
  ms_text_printable(path, shown, sizeof shown);
  if (code == 0)
    code = ms_video_count(video, &why);
  if (code == 0 && ms_video_info(video)->frames < 1)
    code = ms_error_set(&why, MS_EINPUT, "no frame can be decoded");
  if (code == 0) {
    const struct ms_video_info *info = ms_video_info(video);
    check->width = info->width;
    check->height = info->height;
    check->frames = info->frames;
    check->fps = info->fps > 0 ? info->fps : 25;
    check->variable_rate = info->variable_rate;
  }
  ms_video_close(&video);
  if (code < 0) {
    set_aside(check, why.message);
    return code == MS_ENOMEM ? ms_error_set(error, code, "%s", why.message) : 0;
  }
  captioned = read_caption(path, caption, &why);
  if (captioned == 0 && on_missing == MS_CAPTION_EMPTY) {
    *caption = strdup("");
    captioned = *caption ? 1 : ms_error_set(&why, MS_ENOMEM, "out of memory");
  }
  check->caption = *caption;
  check->usable = captioned == 1;
  if (captioned == MS_ENOMEM)
    return ms_error_set(error, MS_ENOMEM, "%s", why.message);
  if (captioned < 0) {
    set_aside(check, "its caption is not UTF-8 text");
    ms_error_set(refusal, captioned, "%s", why.message);
  } else if (captioned == 0) {
    set_aside(check, "no caption");
    if (on_missing == MS_CAPTION_ERROR)
      ms_error_set(refusal, MS_EINPUT,
                   "\"%s\" has no caption: write one sentence into a .txt file of the same name, or choose "
                   "--on-missing-caption empty or skip",
                   shown);
  }
  return 0;
}

/* The files of a folder in order of their names. */
struct listing {
  struct dirent **entries;
  int count;
};

static int list_files(struct listing *listing, const char *path, struct ms_error *error) {
  listing->count = scandir(path, &listing->entries, only_clips, alphasort);
  if (listing->count < 0)
    return ms_error_set(error, MS_EINPUT, "cannot read the folder \"%s\": %s", path, strerror(errno));
  return 0;
}

static void release_listing(struct listing *listing) {
  for (int i = 0; i < listing->count; i++)
    free(listing->entries[i]);
  free(listing->entries);
}

/* Calls see for each file; what it returns below 0 ends the walk. *caption may be taken by setting it NULL.
 */
typedef int (*see_fn)(void *data, const struct ms_clip_check *check, char **path, char **caption,
                      const struct ms_error *refusal, struct ms_error *error);

static int walk(const struct listing *listing, const char *folder, enum ms_missing_caption on_missing,
                see_fn see, void *data, const atomic_int *cancel, struct ms_error *error) {
  int code = 0;
  for (int i = 0; i < listing->count && code == 0; i++) {
    const char *name = listing->entries[i]->d_name;
    size_t room = strlen(folder) + strlen(name) + 2;
    char *path = malloc(room), *caption = NULL;
    struct ms_clip_check check = {.name = name, .path = path};
    struct ms_error refusal = {0};
    if (!path)
      return ms_error_set(error, MS_ENOMEM, "out of memory");
    snprintf(path, room, "%s/%s", folder, name);
    if (cancel && atomic_load(cancel))
      code = ms_error_set(error, MS_ECANCELLED, "stopped while looking at the clips of \"%s\"", folder);
    if (code == 0)
      code = check_file(path, on_missing, &check, &caption, &refusal, error);
    if (code == 0)
      code = see(data, &check, &path, &caption, &refusal, error);
    free(path);
    free(caption);
  }
  return code;
}

struct telling {
  void (*clip)(void *data, const struct ms_clip_check *check);
  void *data;
};

static int tell_clip(void *data, const struct ms_clip_check *check, char **path, char **caption,
                     const struct ms_error *refusal, struct ms_error *error) {
  struct telling *telling = data;
  telling->clip(telling->data, check);
  return 0;
}

int ms_clip_folder_check(const char *folder, enum ms_missing_caption on_missing,
                         void (*clip)(void *data, const struct ms_clip_check *check), void *data,
                         const atomic_int *cancel, struct ms_error *error) {
  struct telling telling = {clip, data};
  struct listing listing;
  int code = list_files(&listing, folder, error);
  if (code < 0)
    return code;
  code = walk(&listing, folder, on_missing, tell_clip, &telling, cancel, error);
  release_listing(&listing);
  return code;
}

struct gathering {
  struct folder *folder;
  const struct ms_hooks *hooks;
};

/* Takes a clip that can be used. */
static int gather_clip(void *data, const struct ms_clip_check *check, char **path, char **caption,
                       const struct ms_error *refusal, struct ms_error *error) {
  struct gathering *gathering = data;
  struct folder *folder = gathering->folder;
  if (refusal->code)
    return ms_error_set(error, refusal->code, "%s", refusal->message);
  log_check(gathering->hooks, check);
  if (check->usable) {
    folder->clips[folder->count++] = (struct folder_clip){.path = *path,
                                                          .caption = *caption,
                                                          .width = check->width,
                                                          .height = check->height,
                                                          .frames = check->frames,
                                                          .fps = check->fps};
    *path = *caption = NULL;
  }
  return 0;
}

/* "no clip in X can be used: it holds a.doc, b.pdf": up to five names. */
static int refuse_empty(const char *path, struct dirent **entries, int entry_count, struct ms_error *error) {
  char seen[300] = "";
  size_t used = 0;
  for (int i = 0; i < entry_count && i < 5; i++) {
    char name[64];
    used += (size_t)snprintf(seen + used, used < sizeof seen ? sizeof seen - used : 0, "%s%.40s",
                             i ? ", " : "", ms_text_printable(entries[i]->d_name, name, sizeof name));
  }
  return ms_error_set(error, MS_EINPUT, "no clip in \"%s\" can be used: %s%s", path,
                      entry_count ? "it holds " : "there is no video file in it", seen);
}

int ms_clip_folder_open(struct ms_clip_source *source, const char *path, enum ms_missing_caption on_missing,
                        const struct ms_hooks *hooks, struct ms_error *error) {
  struct listing listing;
  struct gathering gathering = {.hooks = hooks};
  struct folder *folder;
  int code = list_files(&listing, path, error);
  memset(source, 0, sizeof *source);
  if (code < 0)
    return code;
  folder = gathering.folder = calloc(1, sizeof *folder);
  if (folder) {
    folder->clips = calloc((size_t)listing.count + 1, sizeof *folder->clips);
    folder->name = strdup(path);
  }
  if (!folder || !folder->clips || !folder->name)
    code = ms_error_set(error, MS_ENOMEM, "out of memory");
  if (code == 0)
    code = walk(&listing, path, on_missing, gather_clip, &gathering, hooks ? hooks->cancel : NULL, error);
  if (code == 0 && !folder->count)
    code = refuse_empty(path, listing.entries, listing.count, error);
  release_listing(&listing);
  if (code < 0) {
    folder_close(folder);
    return code;
  }
  *source = (struct ms_clip_source){.data = folder,
                                    .name = folder->name,
                                    .count = folder->count,
                                    .read = folder_read,
                                    .read_caption = folder_read_caption,
                                    .read_identity = folder_read_identity,
                                    .close = folder_close};
  return 0;
}
