#include "widgets/msu-moving-picture.h"

#include <adwaita.h>

#include "widgets/msu-clock.h"
#include "widgets/msu-frames-texture.h"

#define FADE_SECONDS .3

/* Frames with the textures that were needed so far; each is made once and shares the frames' memory. */
struct reel {
  MsaFrames *frames;
  GdkTexture **textures; /* [count], NULL until drawn */
};

struct _MsuMovingPicture {
  GtkWidget parent_instance;
  struct reel now, before; /* before: what is faded from */
  int shown;               /* frame of `now` that was drawn last */
  double fade;             /* 0..1; 1: only `now` is seen */
  gboolean playing;
  double position; /* seconds since the start of the clip */
  struct msu_clock *clock;
  GCancellable *load;
  char *path; /* of the load, to keep the picture if the same clip is loaded again */
};

enum { PROP_0, PROP_FRAMES, PROP_PLAYING, PROPS };
static GParamSpec *properties[PROPS];

G_DEFINE_FINAL_TYPE(MsuMovingPicture, msu_moving_picture, GTK_TYPE_WIDGET)

static void reel_clear(struct reel *reel) {
  if (reel->textures)
    for (int i = 0; i < reel->frames->count; i++)
      g_clear_object(&reel->textures[i]);
  g_clear_pointer(&reel->textures, g_free);
  g_clear_pointer(&reel->frames, msa_frames_unref);
}

static GdkTexture *reel_texture(struct reel *reel, int frame) {
  if (!reel->textures[frame])
    reel->textures[frame] = msu_frames_texture_new(reel->frames, frame);
  return reel->textures[frame];
}

static int frame_at(MsuMovingPicture *self, const MsaFrames *frames) {
  if (!self->playing || frames->fps <= 0)
    return frames->count / 2;
  return (gint64)(self->position * frames->fps) % frames->count;
}

static void update_clock(MsuMovingPicture *self) {
  gboolean moves = self->playing && self->now.frames && self->now.frames->count > 1;
  msu_clock_set_running(self->clock, moves || self->fade < 1);
}

static void pass(gpointer data, double passed) {
  MsuMovingPicture *self = data;
  if (self->playing)
    self->position += passed;
  if (self->fade < 1) {
    self->fade = MIN(self->fade + passed / FADE_SECONDS, 1);
    if (self->fade >= 1)
      reel_clear(&self->before);
    gtk_widget_queue_draw(GTK_WIDGET(self));
    update_clock(self);
  } else if (frame_at(self, self->now.frames) != self->shown)
    gtk_widget_queue_draw(GTK_WIDGET(self));
}

static void unmap(GtkWidget *widget) {
  MsuMovingPicture *self = MSU_MOVING_PICTURE(widget);
  self->fade = 1;
  reel_clear(&self->before);
  update_clock(self);
  GTK_WIDGET_CLASS(msu_moving_picture_parent_class)->unmap(widget);
}

static void draw(struct reel *reel, int frame, GtkSnapshot *snapshot, double width, double height) {
  double scale = MIN(width / reel->frames->width, height / reel->frames->height);
  double w = reel->frames->width * scale, h = reel->frames->height * scale;
  gtk_snapshot_append_texture(snapshot, reel_texture(reel, frame),
                              &GRAPHENE_RECT_INIT((width - w) / 2, (height - h) / 2, w, h));
}

static void snapshot(GtkWidget *widget, GtkSnapshot *snapshot) {
  MsuMovingPicture *self = MSU_MOVING_PICTURE(widget);
  double width = gtk_widget_get_width(widget), height = gtk_widget_get_height(widget);
  if (width <= 0 || height <= 0)
    return;
  gboolean fades = self->fade < 1;
  if (fades)
    gtk_snapshot_push_cross_fade(snapshot, self->fade);
  if (fades) {
    if (self->before.frames)
      draw(&self->before, frame_at(self, self->before.frames), snapshot, width, height);
    gtk_snapshot_pop(snapshot);
  }
  if (self->now.frames) {
    self->shown = frame_at(self, self->now.frames);
    draw(&self->now, self->shown, snapshot, width, height);
  }
  if (fades)
    gtk_snapshot_pop(snapshot);
}

static void measure(GtkWidget *widget, GtkOrientation orientation, int for_size, int *minimum, int *natural,
                    int *minimum_baseline, int *natural_baseline) {
  const MsaFrames *frames = MSU_MOVING_PICTURE(widget)->now.frames;
  *minimum = *natural = 0;
  if (!frames)
    return;
  int along = orientation == GTK_ORIENTATION_HORIZONTAL ? frames->width : frames->height;
  int across = orientation == GTK_ORIENTATION_HORIZONTAL ? frames->height : frames->width;
  *natural = for_size > 0 ? (gint64)along * for_size / across : along;
}

static GtkSizeRequestMode get_request_mode(GtkWidget *widget) {
  return GTK_SIZE_REQUEST_HEIGHT_FOR_WIDTH;
}

static void cancel_load(MsuMovingPicture *self) {
  g_cancellable_cancel(self->load);
  g_clear_object(&self->load);
}

static void dispose(GObject *object) {
  MsuMovingPicture *self = MSU_MOVING_PICTURE(object);
  cancel_load(self);
  g_clear_pointer(&self->clock, msu_clock_free);
  g_clear_pointer(&self->path, g_free);
  reel_clear(&self->before);
  reel_clear(&self->now);
  G_OBJECT_CLASS(msu_moving_picture_parent_class)->dispose(object);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *spec) {
  MsuMovingPicture *self = MSU_MOVING_PICTURE(object);
  if (id == PROP_FRAMES)
    g_value_set_boxed(value, self->now.frames);
  else if (id == PROP_PLAYING)
    g_value_set_boolean(value, self->playing);
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
  if (id == PROP_FRAMES)
    msu_moving_picture_set_frames(MSU_MOVING_PICTURE(object), g_value_get_boxed(value));
  else if (id == PROP_PLAYING)
    msu_moving_picture_set_playing(MSU_MOVING_PICTURE(object), g_value_get_boolean(value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, spec);
}

static void msu_moving_picture_class_init(MsuMovingPictureClass *class) {
  GObjectClass *object_class = G_OBJECT_CLASS(class);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  object_class->dispose = dispose;
  object_class->get_property = get_property;
  object_class->set_property = set_property;
  widget_class->unmap = unmap;
  widget_class->snapshot = snapshot;
  widget_class->measure = measure;
  widget_class->get_request_mode = get_request_mode;
  GParamFlags flags = G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS | G_PARAM_EXPLICIT_NOTIFY;
  properties[PROP_FRAMES] = g_param_spec_boxed("frames", NULL, NULL, MSA_TYPE_FRAMES, flags);
  properties[PROP_PLAYING] = g_param_spec_boolean("playing", NULL, NULL, TRUE, flags);
  g_object_class_install_properties(object_class, PROPS, properties);
  gtk_widget_class_set_css_name(widget_class, "moving-picture");
  gtk_widget_class_set_accessible_role(widget_class, GTK_ACCESSIBLE_ROLE_IMG);
}

static void msu_moving_picture_init(MsuMovingPicture *self) {
  self->playing = TRUE;
  self->fade = 1;
  self->clock = msu_clock_new(GTK_WIDGET(self), GTK_WIDGET(self), pass, self);
  gtk_widget_set_overflow(GTK_WIDGET(self), GTK_OVERFLOW_HIDDEN);
}

GtkWidget *msu_moving_picture_new(void) {
  return g_object_new(MSU_TYPE_MOVING_PICTURE, NULL);
}

/* Replaces the frames without touching a load. */
static void show_frames(MsuMovingPicture *self, MsaFrames *frames) {
  if (frames == self->now.frames)
    return;
  gboolean same_size = frames && self->now.frames && frames->width == self->now.frames->width &&
                       frames->height == self->now.frames->height;
  reel_clear(&self->before);
  self->before = self->now;
  self->now = (struct reel){0};
  if (frames) {
    self->now.frames = msa_frames_ref(frames);
    self->now.textures = g_new0(GdkTexture *, frames->count);
  }
  self->shown = -1;
  if (gtk_widget_get_mapped(GTK_WIDGET(self)) && adw_get_enable_animations(GTK_WIDGET(self))) {
    self->fade = 0;
  } else {
    self->fade = 1;
    reel_clear(&self->before);
  }
  update_clock(self);
  if (same_size)
    gtk_widget_queue_draw(GTK_WIDGET(self));
  else
    gtk_widget_queue_resize(GTK_WIDGET(self));
  g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_FRAMES]);
}

void msu_moving_picture_set_frames(MsuMovingPicture *self, MsaFrames *frames) {
  g_return_if_fail(MSU_IS_MOVING_PICTURE(self));
  cancel_load(self);
  g_clear_pointer(&self->path, g_free);
  show_frames(self, frames);
}

MsaFrames *msu_moving_picture_get_frames(MsuMovingPicture *self) {
  g_return_val_if_fail(MSU_IS_MOVING_PICTURE(self), NULL);
  return self->now.frames;
}

void msu_moving_picture_set_playing(MsuMovingPicture *self, gboolean playing) {
  g_return_if_fail(MSU_IS_MOVING_PICTURE(self));
  playing = !!playing;
  if (self->playing == playing)
    return;
  self->playing = playing;
  self->position = 0;
  update_clock(self);
  gtk_widget_queue_draw(GTK_WIDGET(self));
  g_object_notify_by_pspec(G_OBJECT(self), properties[PROP_PLAYING]);
}

static void loaded_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuMovingPicture) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaFrames) frames = msa_frames_load_finish(result, &error);
  /* A cancelled load must not touch what took its place. */
  if (g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED) || !self->path)
    return;
  g_clear_object(&self->load);
  if (frames)
    show_frames(self, frames);
}

void msu_moving_picture_load(MsuMovingPicture *self, const char *path, int side, int most) {
  g_return_if_fail(MSU_IS_MOVING_PICTURE(self));
  cancel_load(self);
  if (g_strcmp0(path, self->path) != 0 || !path) {
    show_frames(self, NULL);
    /* Another clip is not faded into: a cell of a list is used for many clips. */
    self->fade = 1;
    reel_clear(&self->before);
    update_clock(self);
    g_free(self->path);
    self->path = g_strdup(path);
  }
  if (!path)
    return;
  self->load = g_cancellable_new();
  msa_frames_load_async(path, side, most, self->load, loaded_cb, g_object_ref(self));
}
