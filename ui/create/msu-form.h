/* The settings of a clip, as a form. Signal "changed": something of it, also by msu_form_set_params. */
#pragma once
#include "msa-studio.h"
#include <gtk/gtk.h>

#define MSU_TYPE_FORM (msu_form_get_type())
G_DECLARE_FINAL_TYPE(MsuForm, msu_form, MSU, FORM, GtkWidget)

GtkWidget *msu_form_new(MsaStudio *studio);
/* Settings for a model that is not in the list yet are kept until it is. */
void msu_form_set_params(MsuForm *form, const MsaGenerateParams *params);
/* New. *problem (caller's; NULL: all is well) says what is missing; without size, seed or model there is
 * nothing to plan either and the result is NULL. */
MsaGenerateParams *msu_form_dup_params(MsuForm *form, char **problem);
/* Borrowed; NULL while none is known. */
MsaModel *msu_form_get_model(MsuForm *form);
void msu_form_set_prompt(MsuForm *form, const char *prompt);
void msu_form_focus_prompt(MsuForm *form);
/* What "Use the last seed" enters. */
void msu_form_set_last_seed(MsuForm *form, gint64 seed);
