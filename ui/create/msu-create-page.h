/* The Create page of the window. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_CREATE_PAGE (msu_create_page_get_type())
G_DECLARE_FINAL_TYPE(MsuCreatePage, msu_create_page, MSU, CREATE_PAGE, GtkWidget)

GtkWidget *msu_create_page_new(MsaStudio *studio);
/* Fills the form; notes as in msu_window_use_params. */
void msu_create_page_use_params(MsuCreatePage *page, const MsaGenerateParams *params,
                                const char *const *notes);
