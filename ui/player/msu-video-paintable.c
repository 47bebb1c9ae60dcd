#include "player/msu-video-paintable.h"

#include <gtk/gtk.h>

struct _MsuVideoPaintable {
  GObject parent_instance;
  GdkTexture *texture;
  gint64 frame;
  int width, height;
};

static void snapshot(GdkPaintable *paintable, GdkSnapshot *snapshot, double width, double height) {
  MsuVideoPaintable *self = MSU_VIDEO_PAINTABLE(paintable);
  if (self->texture)
    gtk_snapshot_append_texture(GTK_SNAPSHOT(snapshot), self->texture,
                                &GRAPHENE_RECT_INIT(0, 0, width, height));
}

static GdkPaintable *get_current_image(GdkPaintable *paintable) {
  MsuVideoPaintable *self = MSU_VIDEO_PAINTABLE(paintable);
  if (self->texture)
    return GDK_PAINTABLE(g_object_ref(self->texture));
  return gdk_paintable_new_empty(self->width, self->height);
}

static int get_intrinsic_width(GdkPaintable *paintable) {
  return MSU_VIDEO_PAINTABLE(paintable)->width;
}

static int get_intrinsic_height(GdkPaintable *paintable) {
  return MSU_VIDEO_PAINTABLE(paintable)->height;
}

static void paintable_init(GdkPaintableInterface *interface) {
  interface->snapshot = snapshot;
  interface->get_current_image = get_current_image;
  interface->get_intrinsic_width = get_intrinsic_width;
  interface->get_intrinsic_height = get_intrinsic_height;
}

G_DEFINE_FINAL_TYPE_WITH_CODE(MsuVideoPaintable, msu_video_paintable, G_TYPE_OBJECT,
                              G_IMPLEMENT_INTERFACE(GDK_TYPE_PAINTABLE, paintable_init))

static void dispose(GObject *object) {
  g_clear_object(&MSU_VIDEO_PAINTABLE(object)->texture);
  G_OBJECT_CLASS(msu_video_paintable_parent_class)->dispose(object);
}

static void msu_video_paintable_class_init(MsuVideoPaintableClass *class) {
  G_OBJECT_CLASS(class)->dispose = dispose;
}

static void msu_video_paintable_init(MsuVideoPaintable *self) {
  self->frame = -1;
}

MsuVideoPaintable *msu_video_paintable_new(void) {
  return g_object_new(MSU_TYPE_VIDEO_PAINTABLE, NULL);
}

void msu_video_paintable_set_texture(MsuVideoPaintable *self, GdkTexture *texture, gint64 frame, int width,
                                     int height) {
  gboolean resized = width != self->width || height != self->height;
  g_set_object(&self->texture, texture);
  self->frame = texture ? frame : -1;
  self->width = width;
  self->height = height;
  if (resized)
    gdk_paintable_invalidate_size(GDK_PAINTABLE(self));
  gdk_paintable_invalidate_contents(GDK_PAINTABLE(self));
}

GdkTexture *msu_video_paintable_get_texture(MsuVideoPaintable *self) {
  return self->texture;
}

gint64 msu_video_paintable_get_frame(MsuVideoPaintable *self) {
  return self->frame;
}
