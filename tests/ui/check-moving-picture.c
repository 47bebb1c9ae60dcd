/* The moving picture on a real display: which frame it shows, when, and that it goes away. */
#include <adwaita.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "wait.h"
#include "widgets/msu-moving-picture.h"

enum { COUNT = 5, WIDTH = 64, HEIGHT = 48 };
static const guint8 colours[COUNT][3] = {
    {250, 10, 10}, {10, 250, 10}, {10, 10, 250}, {250, 250, 10}, {10, 250, 250}};

static MsaFrames *make_frames(double fps, gboolean inverse) {
  g_autofree guint8 *rgb = g_malloc(COUNT * WIDTH * HEIGHT * 3);
  for (int i = 0; i < COUNT * WIDTH * HEIGHT; i++)
    for (int c = 0; c < 3; c++) {
      guint8 value = colours[i / (WIDTH * HEIGHT)][c];
      rgb[i * 3 + c] = inverse ? 255 - value : value;
    }
  return msa_frames_new(rgb, WIDTH, HEIGHT, COUNT, fps);
}

/* The pixel in the middle of a widget as it is drawn. */
static void middle_pixel(GtkWidget *widget, int rgb[3]) {
  g_autoptr(GdkPaintable) paintable = gtk_widget_paintable_new(widget);
  int width = gtk_widget_get_width(widget), height = gtk_widget_get_height(widget);
  GtkSnapshot *snapshot = gtk_snapshot_new();
  gdk_paintable_snapshot(paintable, GDK_SNAPSHOT(snapshot), width, height);
  GskRenderNode *node = gtk_snapshot_free_to_node(snapshot);
  rgb[0] = rgb[1] = rgb[2] = -1;
  if (!node)
    return;
  GskRenderer *renderer = gtk_native_get_renderer(gtk_widget_get_native(widget));
  g_autoptr(GdkTexture) texture =
      gsk_renderer_render_texture(renderer, node, &GRAPHENE_RECT_INIT(0, 0, width, height));
  gsk_render_node_unref(node);
  int w = gdk_texture_get_width(texture), h = gdk_texture_get_height(texture);
  g_autofree guint8 *data = g_malloc((gsize)w * h * 4);
  gdk_texture_download(texture, data, (gsize)w * 4);
  const guint8 *pixel = data + ((gsize)(h / 2) * w + w / 2) * 4; /* B G R A */
  for (int c = 0; c < 3; c++)
    rgb[c] = pixel[2 - c];
}

/* Number of the frame whose colour is drawn, -1 if it is none. */
static int seen(GtkWidget *picture, gboolean inverse) {
  int rgb[3];
  middle_pixel(picture, rgb);
  for (int i = 0; i < COUNT; i++) {
    int off = 0;
    for (int c = 0; c < 3; c++)
      off = MAX(off, ABS(rgb[c] - (inverse ? 255 - colours[i][c] : colours[i][c])));
    if (off <= 2)
      return i;
  }
  return -1;
}

static gboolean mapped(gpointer data) {
  return gtk_widget_get_width(data) > 0 && gtk_widget_get_mapped(data);
}

static gboolean loaded(gpointer data) {
  return msu_moving_picture_get_frames(data) != NULL;
}

static void check_frames(GtkWidget *picture) {
  MsuMovingPicture *self = MSU_MOVING_PICTURE(picture);
  g_autoptr(MsaFrames) frames = make_frames(10, FALSE), others = make_frames(10, TRUE);
  msu_moving_picture_set_playing(self, FALSE);
  msu_moving_picture_set_frames(self, frames);
  wait_seconds(.6);
  check_ok(seen(picture, FALSE) == COUNT / 2, "a still picture shows its middle frame");
  msu_moving_picture_set_playing(self, TRUE);
  unsigned which = 0;
  for (int i = 0; i < 60; i++) {
    wait_seconds(.03);
    int frame = seen(picture, FALSE);
    which |= frame < 0 ? 1u << COUNT : 1u << frame;
  }
  check_ok(which == (1u << COUNT) - 1, "a moving one shows all of its frames and nothing else (%#x)", which);
  msu_moving_picture_set_playing(self, FALSE);
  wait_seconds(.1);
  msu_moving_picture_set_frames(self, others);
  unsigned between = 0;
  gint64 end = g_get_monotonic_time() + G_USEC_PER_SEC * 2;
  while (seen(picture, TRUE) != COUNT / 2 && g_get_monotonic_time() < end) {
    between += seen(picture, FALSE) < 0;
    wait_seconds(.01);
  }
  check_ok(seen(picture, TRUE) == COUNT / 2, "other frames take the place of the first");
  check_ok(between > 0, "in between both are seen (%u mixed pictures)", between);
  check_ok(msu_moving_picture_get_frames(self) == others, "the frames are those that were set");
}

static void check_loads(GtkWidget *picture, const char *clip) {
  MsuMovingPicture *self = MSU_MOVING_PICTURE(picture);
  msu_moving_picture_load(self, clip, 48, 8);
  check_ok(msu_moving_picture_get_frames(self) == NULL, "a load empties the picture first");
  check_ok(wait_for(loaded, picture, 30), "a clip is loaded");
  const MsaFrames *frames = msu_moving_picture_get_frames(self);
  check_ok(frames && MAX(frames->width, frames->height) <= 48 && frames->count <= 8,
           "small and few, as it was asked");
  for (int i = 0; i < 50; i++)
    msu_moving_picture_load(self, i % 2 ? clip : "/nowhere/at/all.mp4", 32 + i, 4);
  check_ok(wait_for(loaded, picture, 30), "the last of many loads wins");
  msu_moving_picture_load(self, clip, 40, 4);
  msu_moving_picture_load(self, NULL, 0, 0);
  wait_seconds(.3);
  check_ok(msu_moving_picture_get_frames(self) == NULL, "a load that was given up stays given up");
  msu_moving_picture_load(self, clip, 44, 4);
}

int main(int argc, char **argv) {
  const char *clip = argc > 1 ? argv[1] : NULL;
  check_begin(1, argv);
  g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
  adw_init();
  GtkWidget *window = gtk_window_new(), *picture = msu_moving_picture_new();
  gtk_window_set_default_size(GTK_WINDOW(window), 320, 240);
  gtk_window_set_child(GTK_WINDOW(window), picture);
  gtk_window_present(GTK_WINDOW(window));
  check_ok(wait_for(mapped, picture, 30), "the window shows");
  check_frames(picture);
  if (clip)
    check_loads(picture, clip);
  gboolean gone = FALSE;
  g_object_weak_ref(G_OBJECT(picture), wait_gone_cb, &gone);
  gtk_window_destroy(GTK_WINDOW(window));
  check_ok(wait_for(wait_flag, &gone, 30), "the picture is finalised, a load in the middle");
  return check_end();
}
