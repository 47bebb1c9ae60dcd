/* The Library page of the window. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_LIBRARY_PAGE (msu_library_page_get_type())
G_DECLARE_FINAL_TYPE(MsuLibraryPage, msu_library_page, MSU, LIBRARY_PAGE, GtkWidget)

GtkWidget *msu_library_page_new(MsaStudio *studio);
void msu_library_page_show_clip(MsuLibraryPage *page, MsaClip *clip);
