/* Where the sentence is written. Up and Down in an empty prompt walk through earlier ones, as long as nothing
 * is changed. Property "text" (string, notifies). */
#pragma once
#include "msa-library.h"
#include <gtk/gtk.h>

#define MSU_TYPE_PROMPT (msu_prompt_get_type())
G_DECLARE_FINAL_TYPE(MsuPrompt, msu_prompt, MSU, PROMPT, GtkWidget)

/* The library may be NULL for a prompt without history. */
void msu_prompt_set_library(MsuPrompt *prompt, MsaLibrary *library);
/* New string, without white space around it. */
char *msu_prompt_dup_text(MsuPrompt *prompt);
void msu_prompt_set_text(MsuPrompt *prompt, const char *text);
