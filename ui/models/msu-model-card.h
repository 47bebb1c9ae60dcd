/* A model on the Models page: what it is, whether it runs here, where it lies, and what can be done with it.
 *
 * Signals: "use" (prompt: one of its examples, or NULL), "show-folder", "remove". */
#pragma once
#include "msa-models.h"
#include <gtk/gtk.h>

#define MSU_TYPE_MODEL_CARD (msu_model_card_get_type())
G_DECLARE_FINAL_TYPE(MsuModelCard, msu_model_card, MSU, MODEL_CARD, GtkWidget)

GtkWidget *msu_model_card_new(MsaModel *model);
MsaModel *msu_model_card_get_model(MsuModelCard *card); /* borrowed */
