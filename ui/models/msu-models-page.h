/* The Models page of the window. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_MODELS_PAGE (msu_models_page_get_type())
G_DECLARE_FINAL_TYPE(MsuModelsPage, msu_models_page, MSU, MODELS_PAGE, GtkWidget)

GtkWidget *msu_models_page_new(MsaStudio *studio);
