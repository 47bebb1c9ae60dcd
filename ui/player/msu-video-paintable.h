/* The picture of a clip as a paintable: one texture at a time, with the size at which it is meant to be
 * seen. */
#pragma once
#include <gdk/gdk.h>

#define MSU_TYPE_VIDEO_PAINTABLE (msu_video_paintable_get_type())
G_DECLARE_FINAL_TYPE(MsuVideoPaintable, msu_video_paintable, MSU, VIDEO_PAINTABLE, GObject)

MsuVideoPaintable *msu_video_paintable_new(void);
/* texture may be NULL: empty. frame: its number, -1 for none. */
void msu_video_paintable_set_texture(MsuVideoPaintable *paintable, GdkTexture *texture, gint64 frame,
                                     int width, int height);
GdkTexture *msu_video_paintable_get_texture(MsuVideoPaintable *paintable); /* borrowed, may be NULL */
gint64 msu_video_paintable_get_frame(MsuVideoPaintable *paintable);
