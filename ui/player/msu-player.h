/* The player: a clip on the stage with controls that fade over it. GStreamer decodes into a GdkPaintable of
 * our own; steps are exact to the frame in both directions.
 *
 * Keys while it has the focus: Space, Left, Right (Shift: ten), Home, End, L, M, F11. */
#pragma once
#include "msa-frames.h"
#include <gtk/gtk.h>

#define MSU_TYPE_PLAYER (msu_player_get_type())
G_DECLARE_FINAL_TYPE(MsuPlayer, msu_player, MSU, PLAYER, GtkWidget)

GtkWidget *msu_player_new(void);
/* NULL stops and empties. Properties: "playing", "loop", "frame" (int64), "frames" (int64), "speed" (double),
 * "error" (string or NULL: shown in the picture's place). */
void msu_player_set_path(MsuPlayer *player, const char *path);
const char *msu_player_get_path(MsuPlayer *player);
/* What is seen until the first frame is decoded: the first of these. Without it the player loads a thumbnail
 * of the clip. After set_path. */
void msu_player_set_poster(MsuPlayer *player, MsaFrames *frames);
void msu_player_set_playing(MsuPlayer *player, gboolean playing);
void msu_player_set_loop(MsuPlayer *player, gboolean loop);
void msu_player_set_frame(MsuPlayer *player, gint64 frame); /* pauses, seeks exactly */
gint64 msu_player_get_frame(MsuPlayer *player);
gint64 msu_player_get_frames(MsuPlayer *player);
/* FALSE hides its own controls, for the compare view, which drives two players itself. */
void msu_player_set_controls(MsuPlayer *player, gboolean controls);
/* The picture as it stands, for wipes. Borrowed. */
GdkPaintable *msu_player_get_paintable(MsuPlayer *player);
