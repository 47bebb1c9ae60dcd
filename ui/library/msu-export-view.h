/* A clip again in another format: the choice, what it will be and where, the progress, the way to it. */
#pragma once
#include "msa-clip.h"
#include <gtk/gtk.h>

#define MSU_TYPE_EXPORT_VIEW (msu_export_view_get_type())
G_DECLARE_FINAL_TYPE(MsuExportView, msu_export_view, MSU, EXPORT_VIEW, GtkWidget)

/* Signal "closed": the person went back. An export that runs goes on and tells its end in a toast. */
void msu_export_view_set_clip(MsuExportView *view, MsaClip *clip);
