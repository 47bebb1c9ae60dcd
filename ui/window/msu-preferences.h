/* The preferences: appearance, notifications, what a job may use, and where things are kept. */
#pragma once
#include "msa-studio.h"
#include <adwaita.h>

#define MSU_TYPE_PREFERENCES (msu_preferences_get_type())
G_DECLARE_FINAL_TYPE(MsuPreferences, msu_preferences, MSU, PREFERENCES, AdwPreferencesWindow)

GtkWidget *msu_preferences_new(GtkWindow *parent, MsaStudio *studio);
