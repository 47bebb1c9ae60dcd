/* The Create page of the window: a sentence, what it will take, and the clip while it forms. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_CREATE_PAGE (msu_create_page_get_type())
G_DECLARE_FINAL_TYPE(MsuCreatePage, msu_create_page, MSU, CREATE_PAGE, GtkWidget)

GtkWidget *msu_create_page_new(MsaStudio *studio);
/* Fills the form; notes as in msu_window_use_params. */
void msu_create_page_use_params(MsuCreatePage *page, const MsaGenerateParams *params,
                                const char *const *notes);
/* Fills the form with a waiting job; the button then changes that job instead of adding one. */
void msu_create_page_edit_job(MsuCreatePage *page, MsaJob *job);
/* Puts a job on the stage. */
void msu_create_page_show_job(MsuCreatePage *page, MsaJob *job);
/* As the Create button. */
void msu_create_page_create(MsuCreatePage *page);
void msu_create_page_focus_prompt(MsuCreatePage *page);
/* Keeps what stands in the form for the next start. */
void msu_create_page_save(MsuCreatePage *page);
