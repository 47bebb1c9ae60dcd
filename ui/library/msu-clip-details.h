/* One clip of the library in full: the player, what it was made with, and what can be done with it. The
 * buttons use the actions of the group "library" that the page inserts. */
#pragma once
#include "msa-clip.h"
#include <gtk/gtk.h>

#define MSU_TYPE_CLIP_DETAILS (msu_clip_details_get_type())
G_DECLARE_FINAL_TYPE(MsuClipDetails, msu_clip_details, MSU, CLIP_DETAILS, GtkWidget)

GtkWidget *msu_clip_details_new(void);
void msu_clip_details_set_clip(MsuClipDetails *details, MsaClip *clip); /* NULL empties and stops */
/* Shows the export of the clip in the place of its details. */
void msu_clip_details_export(MsuClipDetails *details);
