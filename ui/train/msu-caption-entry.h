/* The caption of a clip, edited in place: written when Enter is pressed or the focus goes elsewhere, taken
 * back with Escape. Signal "failed" (string): it could not be written. */
#pragma once
#include "msa-dataset.h"
#include <gtk/gtk.h>

#define MSU_TYPE_CAPTION_ENTRY (msu_caption_entry_get_type())
G_DECLARE_FINAL_TYPE(MsuCaptionEntry, msu_caption_entry, MSU, CAPTION_ENTRY, GtkWidget)

GtkWidget *msu_caption_entry_new(void);
/* What was typed for the clip before is written first. NULL: none. */
void msu_caption_entry_set_clip(MsuCaptionEntry *entry, MsaDatasetClip *clip);
