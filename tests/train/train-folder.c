/* A folder of clips looked at and opened: what is told of each file, in order, and what makes the folder
 * unusable. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "harness.h"
#include "ms-media.h"
#include "ms-train.h"
#include "scratch.h"

static void make_clip(const char *name, int frames) {
  struct ms_encoder_params params = ms_encoder_params_default();
  struct ms_encoder *encoder = NULL;
  uint8_t *rgb = malloc(64 * 64 * 3);
  struct ms_error error = {0};
  params.width = params.height = 64;
  params.fps = 8;
  ms_encoder_open(&encoder, scratch_path(name), &params, &error);
  for (int f = 0; f < frames; f++) {
    memset(rgb, 40 * f % 256, 64 * 64 * 3);
    ms_encoder_write(encoder, rgb, &error);
  }
  check_ok(ms_encoder_finish(encoder, &error) == 0, "a clip is made: %s", error.message);
  ms_encoder_close(&encoder);
  free(rgb);
}

static void put_text(const char *name, const char *text) {
  scratch_put(name, text, strlen(text));
}

struct seen {
  int count, usable;
  char text[4096];
  atomic_int cancel;
};

static void see(void *data, const struct ms_clip_check *check) {
  struct seen *seen = data;
  size_t used = strlen(seen->text);
  seen->count++;
  seen->usable += check->usable;
  snprintf(seen->text + used, sizeof seen->text - used, "%s %dx%d %lld %g [%s] %d %s|", check->name,
           check->width, check->height, (long long)check->frames, check->fps,
           check->caption ? check->caption : "-", check->usable, check->reason);
}

static int look(struct seen *seen, enum ms_missing_caption on_missing) {
  struct ms_error error = {0};
  int cancel = atomic_load(&seen->cancel);
  memset(seen, 0, sizeof *seen);
  atomic_store(&seen->cancel, cancel);
  return ms_clip_folder_check(scratch_path("clips"), on_missing, see, seen, &seen->cancel, &error);
}

static void check_table(void) {
  struct seen seen = {0};
  check_ok(look(&seen, MS_CAPTION_ERROR) == 0 && seen.count == 4, "four files are looked at");
  check_ok(!strncmp(seen.text, "a.mp4 64x64 5 8 [a red ball] 1 |", 32), "the first can be used");
  check_ok(strstr(seen.text, "|b\n.mp4 64x64 3 8 [-] 0 no caption|") != NULL, "the second has no caption");
  check_ok(strstr(seen.text, "|c.mp4 64x64 2 8 [-] 0 its caption is not UTF-8 text|") != NULL,
           "the third's caption is no text");
  check_ok(strstr(seen.text, "|d.mp4 0x0 0 0 [-] 0 ") != NULL && seen.usable == 1,
           "the fourth is no video, and says why");
  look(&seen, MS_CAPTION_EMPTY);
  check_ok(strstr(seen.text, "|b\n.mp4 64x64 3 8 [] 1 |") != NULL && seen.usable == 2,
           "a missing caption may be taken as empty");
  atomic_store(&seen.cancel, 1);
  check_ok(look(&seen, MS_CAPTION_ERROR) == MS_ECANCELLED && seen.count == 0, "and it can be stopped");
}

static void note_line(void *data, enum ms_log_level level, const char *message) {
  char *text = data;
  size_t used = strlen(text);
  snprintf(text + used, 4096 - used, "%s\n", message);
}

static void check_open(void) {
  struct ms_clip_source source;
  struct ms_error error = {0};
  char text[4096] = "";
  struct ms_hooks hooks = {.data = text, .log = note_line};
  int code = ms_clip_folder_open(&source, scratch_path("clips"), MS_CAPTION_ERROR, &hooks, &error);
  check_ok(code == MS_EINPUT && strstr(error.message, "b\\n.mp4") && !strchr(error.message, '\n'),
           "a folder with a caption missing is refused, by a name that can be printed: %s", error.message);
  memset(&error, 0, sizeof error);
  code = ms_clip_folder_open(&source, scratch_path("clips"), MS_CAPTION_SKIP, &hooks, &error);
  check_ok(code == MS_EINPUT && strstr(error.message, "c.txt"), "so is one whose caption is no text: %s",
           error.message);
  remove(scratch_path("clips/c.txt"));
  memset(&error, 0, sizeof error);
  text[0] = 0;
  code = ms_clip_folder_open(&source, scratch_path("clips"), MS_CAPTION_SKIP, &hooks, &error);
  check_ok(code == 0 && source.count == 1, "with captions missing that may be, it opens: %s", error.message);
  check_ok(strstr(text, "b\\n.mp4") && strstr(text, "skipped: no caption"),
           "the table has a line a clip, and line breaks in names are escaped");
  if (code == 0)
    source.close(source.data);
  memset(&error, 0, sizeof error);
  check_ok(ms_clip_folder_open(&source, scratch_path("nowhere"), MS_CAPTION_SKIP, &hooks, &error) ==
               MS_EINPUT,
           "a folder that is not there is an error: %s", error.message);
}

int main(int argc, char **argv) {
  static const char bytes[] = "\xff\xfe";
  check_begin(argc, argv);
  scratch_begin();
  mkdir(scratch_path("clips"), 0777);
  make_clip("clips/a.mp4", 5);
  put_text("clips/a.txt", "a red\nball\n");
  make_clip("clips/b\n.mp4", 3);
  make_clip("clips/c.mp4", 2);
  scratch_put("clips/c.txt", bytes, 2);
  put_text("clips/d.mp4", "no video at all");
  check_table();
  check_open();
  scratch_end();
  return check_end();
}
