/* A few frames that move: previews while a clip forms, thumbnails, sample clips. Shows an MsaFrames at its
 * own speed on the frame clock, scaled to fit with nothing cut off; crossfades when the frames are replaced.
 */
#pragma once
#include "msa-frames.h"
#include <gtk/gtk.h>

#define MSU_TYPE_MOVING_PICTURE (msu_moving_picture_get_type())
G_DECLARE_FINAL_TYPE(MsuMovingPicture, msu_moving_picture, MSU, MOVING_PICTURE, GtkWidget)

GtkWidget *msu_moving_picture_new(void);
/* NULL empties it. */
void msu_moving_picture_set_frames(MsuMovingPicture *picture, MsaFrames *frames);
MsaFrames *msu_moving_picture_get_frames(MsuMovingPicture *picture); /* borrowed */
/* FALSE: stands still on its middle frame, which is what a thumbnail does until it is pointed at. */
void msu_moving_picture_set_playing(MsuMovingPicture *picture, gboolean playing);
/* Loads a clip's frames itself (msa_frames_load_async), cancelling an earlier load. NULL empties. */
void msu_moving_picture_load(MsuMovingPicture *picture, const char *path, int side, int most);
