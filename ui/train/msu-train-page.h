/* The Train page of the window. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_TRAIN_PAGE (msu_train_page_get_type())
G_DECLARE_FINAL_TYPE(MsuTrainPage, msu_train_page, MSU, TRAIN_PAGE, GtkWidget)

GtkWidget *msu_train_page_new(MsaStudio *studio);
