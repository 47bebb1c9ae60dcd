/* The player on a real display: exact frames both ways, loops, files that cannot be played, and nothing left
 * behind. Arguments: a short clip, a clip too large to be kept, a folder for scratch files. */
#include <adwaita.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "msa-frames.h"
#include "player/msu-player.h"
#include "player/msu-video-paintable.h"
#include "wait.h"

static MsuVideoPaintable *paintable_of(MsuPlayer *player) {
  return MSU_VIDEO_PAINTABLE(msu_player_get_paintable(player));
}

/* TRUE when what is seen is what is meant. */
static gboolean settled(gpointer data) {
  MsuPlayer *player = data;
  return msu_player_get_frames(player) > 0 &&
         msu_video_paintable_get_frame(paintable_of(player)) == msu_player_get_frame(player);
}

static gboolean failed(gpointer data) {
  g_autofree char *error = NULL;
  g_object_get(data, "error", &error, NULL);
  return error != NULL;
}

struct expected {
  MsuPlayer *player;
  gint64 frames;
};

static gboolean counted(gpointer data) {
  struct expected *expected = data;
  return msu_player_get_frames(expected->player) == expected->frames;
}

/* Pixels of what is seen, as B G R A. */
static guint8 *pixels(MsuPlayer *player, int *width, int *height) {
  GdkTexture *texture = msu_video_paintable_get_texture(paintable_of(player));
  *width = *height = 0;
  if (!texture)
    return NULL;
  *width = gdk_texture_get_width(texture);
  *height = gdk_texture_get_height(texture);
  guint8 *data = g_malloc((gsize)*width * *height * 4);
  gdk_texture_download(texture, data, (gsize)*width * 4);
  return data;
}

static char *fingerprint(MsuPlayer *player) {
  int width, height;
  g_autofree guint8 *data = pixels(player, &width, &height);
  return data ? g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, (gsize)width * height * 4)
              : g_strdup("");
}

/* Opens and waits for the first picture and the exact count. */
static gboolean open_clip(MsuPlayer *player, const char *path, gint64 frames) {
  struct expected expected = {player, frames};
  msu_player_set_path(player, path);
  return wait_for(counted, &expected, 60) && wait_for(settled, player, 60);
}

static char **walk(MsuPlayer *player, gint64 from, gint64 to) {
  GPtrArray *prints = g_ptr_array_new();
  gint64 step = to < from ? -1 : 1;
  for (gint64 frame = from; frame != to + step; frame += step) {
    msu_player_set_frame(player, frame);
    if (!wait_for(settled, player, 60))
      break;
    g_ptr_array_add(prints, fingerprint(player));
  }
  g_ptr_array_add(prints, NULL);
  return (char **)g_ptr_array_free(prints, FALSE);
}

static void check_walk(MsuPlayer *player, const char *name, gint64 from, gint64 count) {
  g_auto(GStrv) on = walk(player, from, from + count - 1), back = walk(player, from + count - 1, from);
  gint64 same = 0, moves = 0;
  check_ok((gint64)g_strv_length(on) == count && (gint64)g_strv_length(back) == count,
           "%s: %d frames on and as many back", name, (int)count);
  if ((gint64)g_strv_length(on) != count || (gint64)g_strv_length(back) != count)
    return;
  for (gint64 i = 0; i < count; i++) {
    same += !strcmp(on[i], back[count - 1 - i]);
    moves += i > 0 && strcmp(on[i], on[i - 1]);
  }
  check_ok(same == count, "%s: the same pictures on the way back (%d of %d)", name, (int)same, (int)count);
  check_ok(moves == count - 1, "%s: each frame is another picture", name);
}

struct loaded {
  MsaFrames *frames;
  gboolean done;
};

static void loaded_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct loaded *loaded = data;
  loaded->frames = msa_frames_load_finish(result, NULL);
  loaded->done = TRUE;
}

static gboolean load_done(gpointer data) {
  return ((struct loaded *)data)->done;
}

static double difference(const guint8 *bgra, const guint8 *rgb, int pixels) {
  double sum = 0;
  for (int i = 0; i < pixels; i++)
    for (int c = 0; c < 3; c++)
      sum += abs(bgra[i * 4 + 2 - c] - rgb[i * 3 + c]);
  return sum / (3. * pixels);
}

/* The engine decodes too, by another way: frame n is the same picture there, and its neighbours are not. */
static void check_numbers(MsuPlayer *player, const char *clip) {
  struct loaded loaded = {0};
  int wrong = 0;
  double most = 0;
  gint64 count = msu_player_get_frames(player);
  msa_frames_load_async(clip, 1024, 1000, NULL, loaded_cb, &loaded);
  if (!wait_for(load_done, &loaded, 30) || !loaded.frames || loaded.frames->count != count) {
    check_ok(0, "the engine finds as many frames");
    return;
  }
  for (gint64 frame = 0; frame < count; frame++) {
    int width, height;
    msu_player_set_frame(player, frame);
    wait_for(settled, player, 30);
    g_autofree guint8 *data = pixels(player, &width, &height);
    if (width != loaded.frames->width || height != loaded.frames->height) {
      wrong++;
      continue;
    }
    gsize size = (gsize)width * height * 3;
    double own = difference(data, loaded.frames->rgb + size * frame, width * height);
    most = MAX(most, own);
    for (gint64 other = MAX(frame - 2, 0); other <= MIN(frame + 2, count - 1); other++)
      wrong += other != frame && difference(data, loaded.frames->rgb + size * other, width * height) <= own;
  }
  check_ok(wrong == 0 && most < 4,
           "every number is the engine's frame of that number (off by %.2f, %d wrong)", most, wrong);
  msa_frames_unref(loaded.frames);
}

static void check_playing(MsuPlayer *player) {
  gint64 last = -1, turns = 0, holes = 0, seen = 0;
  gint64 frames = msu_player_get_frames(player);
  g_autofree gboolean *which = g_new0(gboolean, frames);
  msu_player_set_frame(player, 0);
  g_object_set(player, "loop", TRUE, "speed", 4., NULL);
  msu_player_set_playing(player, TRUE);
  gint64 end = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
  while (turns < 3 && g_get_monotonic_time() < end) {
    g_main_context_iteration(NULL, TRUE);
    gint64 frame = msu_video_paintable_get_frame(paintable_of(player));
    if (frame < 0) {
      holes++;
      continue;
    }
    turns += frame < last;
    seen += !which[frame];
    which[frame] = TRUE;
    last = frame;
  }
  gboolean playing;
  g_object_get(player, "playing", &playing, NULL);
  check_ok(turns == 3 && playing && !holes, "it goes round and round without a hole");
  check_ok(seen > frames / 2, "and shows its frames (%d of %d at four times the speed)", (int)seen,
           (int)frames);
  g_object_set(player, "loop", FALSE, NULL);
  end = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
  do {
    g_main_context_iteration(NULL, TRUE);
    g_object_get(player, "playing", &playing, NULL);
  } while (playing && g_get_monotonic_time() < end);
  wait_for(settled, player, 10);
  check_ok(!playing && msu_player_get_frame(player) == frames - 1,
           "without the loop it stays on the last frame");
  g_object_set(player, "loop", TRUE, "speed", 1., NULL);
}

static void check_broken(MsuPlayer *player, const char *clip, gint64 frames, const char *folder) {
  static const guint8 rgb[3 * 2 * 3] = {0};
  g_autoptr(MsaFrames) poster = msa_frames_new(rgb, 3, 2, 1, 8);
  g_autofree char *whole = NULL;
  gsize size = 0;
  g_autofree char *path = g_build_filename(folder, "broken.mp4", NULL);
  if (!g_file_get_contents(clip, &whole, &size, NULL)) {
    check_ok(0, "the clip can be read");
    return;
  }
  const struct {
    const char *name;
    gsize bytes;
    gboolean garbage, plays;
  } cases[] = {{"an empty file", 0, FALSE, FALSE},
               {"noise", 5000, TRUE, FALSE},
               {"a header alone", 40, FALSE, FALSE},
               {"half a clip", size * 3 / 4, FALSE, TRUE}};
  for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
    g_autofree char *data = g_memdup2(whole, size);
    if (cases[i].garbage)
      for (gsize k = 0; k < cases[i].bytes; k++)
        data[k] = (char)check_below(256);
    g_file_set_contents(path, data, (gssize)MIN(cases[i].bytes, size), NULL);
    msu_player_set_path(player, path);
    msu_player_set_playing(player, TRUE);
    if (cases[i].plays) {
      check_ok(wait_for(settled, player, 30) && msu_player_get_frames(player) > 0 && !failed(player),
               "%s plays as far as it goes", cases[i].name);
    } else {
      check_ok(wait_for(failed, player, 30) && msu_player_get_frames(player) == 0, "%s gives a sentence",
               cases[i].name);
    }
  }
  msu_player_set_path(player, clip);
  msu_player_set_poster(player, poster);
  check_ok(gdk_paintable_get_intrinsic_width(msu_player_get_paintable(player)) == 3 && !failed(player),
           "a poster stands until the first frame");
  check_ok(wait_for(settled, player, 30) &&
               gdk_paintable_get_intrinsic_width(msu_player_get_paintable(player)) > 3,
           "which takes its place");
  msu_player_set_poster(player, poster);
  check_ok(gdk_paintable_get_intrinsic_width(msu_player_get_paintable(player)) > 3,
           "and keeps it when a poster is late");
  msu_player_set_path(player, "/nowhere/at/all.mp4");
  check_ok(wait_for(failed, player, 30), "a file that is not there gives a sentence");
  check_ok(open_clip(player, clip, frames) && !failed(player), "the next clip plays again");
}

static gboolean in_place(gpointer data) {
  return gtk_widget_get_first_child(data) != NULL;
}

static gboolean away(gpointer data) {
  return !in_place(data);
}

/* In full screen the body of the player lies in a window of its own. */
static void check_full_screen(MsuPlayer *player) {
  GtkWidget *body = gtk_widget_get_first_child(GTK_WIDGET(player));
  gtk_widget_activate_action(body, "player.full", NULL);
  check_ok(wait_for(away, player, 10) && GTK_IS_WINDOW(gtk_widget_get_root(body)) &&
               gtk_widget_get_root(body) != gtk_widget_get_root(GTK_WIDGET(player)),
           "full screen is a window of its own");
  msu_player_set_frame(player, 4);
  wait_for(settled, player, 30);
  gtk_widget_activate_action(body, "player.on", NULL);
  check_ok(wait_for(settled, player, 30) && msu_player_get_frame(player) == 5, "where its buttons work");
  msu_player_set_playing(player, TRUE);
  wait_seconds(.5);
  check_ok(msu_player_get_frame(player) != 5, "and it plays");
  gtk_widget_activate_action(body, "player.full", NULL);
  check_ok(wait_for(in_place, player, 10) && gtk_widget_get_first_child(GTK_WIDGET(player)) == body,
           "it comes back to its place");
  gtk_widget_activate_action(body, "player.back", NULL);
  gtk_widget_activate_action(body, "player.one-to-one", NULL);
  check_ok(wait_for(settled, player, 30), "and goes on there");
}

static int count_entries(const char *folder) {
  g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
  int count = 0;
  while (dir && g_dir_read_name(dir))
    count++;
  return count;
}

static gint64 resident_bytes(void) {
  g_autofree char *text = NULL;
  long long size = 0, resident = 0;
  malloc_trim(0);
  if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL) ||
      sscanf(text, "%lld %lld", &size, &resident) != 2)
    return 0;
  return resident * 4096;
}

static gboolean threads_gone(gpointer data) {
  return count_entries("/proc/self/task") <= *(int *)data;
}

static void check_leaks(MsuPlayer *player, const char *clip, gint64 frames) {
  enum { WARM = 40, OPENS = 200 };
  int threads = 0, files = 0;
  gint64 bytes = 0;
  msu_player_set_path(player, NULL);
  for (int i = 0; i < WARM + OPENS; i++) {
    if (i == WARM) {
      msu_player_set_path(player, NULL);
      wait_seconds(1);
      threads = count_entries("/proc/self/task");
      files = count_entries("/proc/self/fd");
      bytes = resident_bytes();
    }
    msu_player_set_path(player, clip);
    if (i % 3 == 0) /* every third is closed while it opens */
      continue;
    wait_for(settled, player, 30);
    if (i % 3 == 1)
      msu_player_set_frame(player, frames - 1);
  }
  msu_player_set_path(player, NULL);
  gboolean ended = wait_for(threads_gone, &threads, 20);
  check_ok(ended, "the threads of %d clips have ended (%d, were %d)", OPENS, count_entries("/proc/self/task"),
           threads);
  check_ok(count_entries("/proc/self/fd") <= files, "no file stays open");
  gint64 grown = resident_bytes() - bytes;
#ifdef __SANITIZE_ADDRESS__
  grown = 0; /* it keeps what is freed */
#endif
  check_ok(grown < (16 << 20), "memory grew by %.1f MB, less than 0.1 for a clip", grown / 1e6);
}

int main(int argc, char **argv) {
  check_begin(1, argv);
  if (argc != 6) {
    printf("Bail out! usage: check-player CLIP FRAMES LARGE FRAMES FOLDER\n");
    return 1;
  }
  const char *clip = argv[1], *large = argv[3], *folder = argv[5];
  gint64 frames = g_ascii_strtoll(argv[2], NULL, 10), large_frames = g_ascii_strtoll(argv[4], NULL, 10);
  g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
  adw_init();
  GtkWidget *window = gtk_window_new(), *widget = msu_player_new();
  MsuPlayer *player = MSU_PLAYER(widget);
  gtk_window_set_default_size(GTK_WINDOW(window), 640, 480);
  gtk_window_set_child(GTK_WINDOW(window), widget);
  gtk_window_present(GTK_WINDOW(window));
  check_ok(open_clip(player, clip, frames), "the clip opens with its %d frames", (int)frames);
  check_walk(player, "a clip that is kept", 0, frames);
  check_numbers(player, clip);
  check_playing(player);
  check_full_screen(player);
  check_ok(open_clip(player, large, large_frames), "a large clip opens with its %d frames",
           (int)large_frames);
  check_walk(player, "one that is not kept", large_frames - 12, 11);
  check_walk(player, "from its start", 0, 11);
  check_broken(player, clip, frames, folder);
  check_leaks(player, clip, frames);
  gboolean gone = FALSE;
  g_object_weak_ref(G_OBJECT(widget), wait_gone_cb, &gone);
  msu_player_set_path(player, clip);
  gtk_widget_activate_action(gtk_widget_get_first_child(widget), "player.full", NULL);
  wait_for(away, player, 10);
  gtk_window_destroy(GTK_WINDOW(window));
  check_ok(wait_for(wait_flag, &gone, 30),
           "the player is finalised out of full screen, while it opens a clip");
  return check_end();
}
