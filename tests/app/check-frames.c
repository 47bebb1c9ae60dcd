/* Frames in memory: loading, scaling, spacing, the cache, cancelling. */
#include <string.h>

#include "harness.h"
#include "msa-frames.h"
#include "room.h"

static MsaFrames *load(const char *path, int side, int most, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_frames_load_async(path, side, most, NULL, room_done, &result);
  return msa_frames_load_finish(room_wait(&result), error);
}

static void check_made(void) {
  static const guint8 rgb[2 * 3 * 2 * 3] = {1, 2, 3};
  MsaFrames *frames = msa_frames_new(rgb, 3, 2, 2, 12);
  MsaFrames *second = msa_frames_ref(frames);
  check_ok(frames->width == 3 && frames->height == 2 && frames->count == 2 && frames->fps == 12,
           "frames say what they are");
  check_ok(frames->rgb != rgb && !memcmp(frames->rgb, rgb, sizeof rgb), "and hold a copy of the pixels");
  msa_frames_unref(frames);
  check_ok(second->rgb[1] == 2, "which lives as long as the last reference");
  msa_frames_unref(second);
}

/* Brightness of the bar at the top, which runs from 0 to 255 over the clip. */
static int bar(const MsaFrames *frames, int i) {
  return frames->rgb[(gsize)i * frames->width * frames->height * 3 + frames->width / 2 * 3];
}

static void check_spacing(const char *path) {
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaFrames) all = load(path, 96, 1000, &error), few = load(path, 48, 4, &error),
                       one = load(path, 48, 1, &error);
  check_ok(!error, "a clip loads: %s", error ? error->message : "");
  if (error)
    return;
  check_ok(all->count == 17 && all->width == 96 && all->height == 64 && all->fps == 8,
           "whole: %d of %dx%d at %g", all->count, all->width, all->height, all->fps);
  check_ok(few->count == 4 && few->width == 48 && few->height == 32, "four of them at half the size");
  check_ok(few->fps * 17 / 8 > 3.99 && few->fps * 17 / 8 < 4.01, "last as long: %g frames a second",
           few->fps);
  gboolean apart = TRUE;
  for (int i = 0; i < 4; i++)
    apart = apart && ABS(bar(few, i) - (int)((i + 0.5) / 4 * 17) * 255 / 16) < 12;
  check_ok(apart, "they are evenly spaced: %d %d %d %d", bar(few, 0), bar(few, 1), bar(few, 2), bar(few, 3));
  check_ok(one->count == 1 && ABS(bar(one, 0) - 127) < 12, "a single one is the middle one: %d", bar(one, 0));
}

static void check_cache(const char *path) {
  g_autoptr(MsaFrames) a = load(path, 32, 3, NULL), b = load(path, 32, 3, NULL),
                       other = load(path, 32, 4, NULL);
  check_ok(a == b, "the same again comes from the cache");
  check_ok(other != a && other->count == 4, "something else does not");
  room_clip(path, 9, NULL);
  g_autoptr(MsaFrames) c = load(path, 32, 3, NULL);
  check_ok(c && c != a, "a file that was written again is read again");
}

struct order {
  int *next;
  int place;
  GAsyncResult *result;
};

static void order_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct order *order = data;
  order->place = (*order->next)++;
  order->result = g_object_ref(result);
}

static gboolean all_answered(gpointer data) {
  return *(int *)data == 40;
}

static void check_queue(const char *path) {
  static struct order loads[40];
  int next = 0, cancelled = 0, late = 0;
  g_autoptr(GCancellable) cancellable = g_cancellable_new();
  for (int i = 0; i < 40; i++) {
    loads[i].next = &next;
    msa_frames_load_async(path, 20 + i, 5, i % 2 ? cancellable : NULL, order_cb, &loads[i]);
  }
  g_cancellable_cancel(cancellable);
  check_ok(room_until(all_answered, &next, 60), "forty loads are answered");
  for (int i = 0; i < 40 && loads[i].result; i++) {
    g_autoptr(GError) error = NULL;
    MsaFrames *frames = msa_frames_load_finish(loads[i].result, &error);
    cancelled += g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED);
    late += i < 4 && i % 2 == 0 && loads[i].place >= 20;
    if (frames)
      msa_frames_unref(frames);
    g_object_unref(loads[i].result);
  }
  check_ok(cancelled == 20, "the cancelled ones as cancelled (%d)", cancelled);
  /* the first two may have begun before the others were asked for */
  check_ok(late <= 2 && loads[38].place < 12, "the newest was not kept waiting for the older ones (place %d)",
           loads[38].place);
}

static void check_broken(void) {
  g_autofree char *missing = room_path("missing.mp4"), *text = room_path("text.mp4");
  g_autoptr(GError) a = NULL, b = NULL;
  room_write(text, "this is no video");
  const MsaFrames *none = load(missing, 32, 3, &a), *no_video = load(text, 32, 3, &b);
  check_ok(!none && strstr(a->message, "missing.mp4"), "a missing file: %s", a ? a->message : "");
  check_ok(!no_video && strstr(b->message, "text.mp4"), "a file that is no video: %s", b ? b->message : "");
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  g_autofree char *path = room_path("clip.mp4");
  room_clip(path, 17, NULL);
  check_made();
  check_spacing(path);
  check_queue(path);
  check_cache(path);
  check_broken();
  return room_end();
}
