/* The clips made since the start, newest first, as moving thumbnails; before them the job that runs.
 *
 * Signals: "show-clip" (MsaClip), "show-job" (MsaJob). Hidden while there is nothing to show. */
#pragma once
#include "msa-queue.h"
#include <gtk/gtk.h>

#define MSU_TYPE_CLIP_STRIP (msu_clip_strip_get_type())
G_DECLARE_FINAL_TYPE(MsuClipStrip, msu_clip_strip, MSU, CLIP_STRIP, GtkWidget)

GtkWidget *msu_clip_strip_new(MsaQueue *queue);
