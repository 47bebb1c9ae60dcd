/* The window: header with Create, Train, Library, Models, the queue button and the main menu. Pages are told
 * of each other only through the functions here. */
#pragma once
#include "msa-studio.h"
#include <adwaita.h>

#define MSU_TYPE_WINDOW (msu_window_get_type())
G_DECLARE_FINAL_TYPE(MsuWindow, msu_window, MSU, WINDOW, AdwApplicationWindow)

GtkWidget *msu_window_new(AdwApplication *application, MsaStudio *studio);
/* The window that a widget lies in; NULL before it is shown. Borrowed. */
MsuWindow *msu_window_of(GtkWidget *widget);
MsaStudio *msu_window_get_studio(MsuWindow *window);
/* Pages "create", "train", "library", "models". */
void msu_window_show_page(MsuWindow *window, const char *page);
/* Fills the Create page with settings and shows it; notes (may be NULL) are what this machine cannot
 * reproduce. */
void msu_window_use_params(MsuWindow *window, const MsaGenerateParams *params, const char *const *notes);
/* Shows a clip in the Library's details. */
void msu_window_show_clip(MsuWindow *window, MsaClip *clip);
/* A toast for what ended well; action may be NULL: label, detailed action name of the application or window.
 */
void msu_window_toast(MsuWindow *window, const char *text, const char *action_label, const char *action_name,
                      GVariant *action_target);
