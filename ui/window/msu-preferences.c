#include "window/msu-preferences.h"
#include "window/msu-settings.h"
#include <glib/gi18n.h>

struct _MsuPreferences {
  AdwPreferencesWindow parent_instance;
  GtkWidget *jobs, *desktop;
  GtkSpinButton *memory, *threads;
  AdwComboRow *appearance;
  GtkSwitch *notifications;
  AdwActionRow *clips;
  GSettings *settings; /* NULL without a schema: then nothing of it can be changed */
  char *clips_folder;
};

G_DEFINE_FINAL_TYPE(MsuPreferences, msu_preferences, ADW_TYPE_PREFERENCES_WINDOW)

static void open_clips_cb(MsuPreferences *self) {
  g_autofree char *uri = g_filename_to_uri(self->clips_folder, NULL, NULL);
  if (uri)
    gtk_show_uri(GTK_WINDOW(self), uri, GDK_CURRENT_TIME);
}

/* A combo row counts; the settings name. */
static gboolean to_row(GValue *value, GVariant *variant, gpointer data) {
  GSettings *settings = data;
  g_value_set_uint(value, (guint)g_settings_get_enum(settings, "appearance"));
  return TRUE;
}

static GVariant *from_row(const GValue *value, const GVariantType *type, gpointer data) {
  static const char *const names[] = {"system", "light", "dark"};
  const guint at = g_value_get_uint(value);
  return at < G_N_ELEMENTS(names) ? g_variant_new_string(names[at]) : NULL;
}

static void finalize(GObject *object) {
  MsuPreferences *self = MSU_PREFERENCES(object);
  g_clear_object(&self->settings);
  g_free(self->clips_folder);
  G_OBJECT_CLASS(msu_preferences_parent_class)->finalize(object);
}

static void msu_preferences_class_init(MsuPreferencesClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->finalize = finalize;
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/window/msu-preferences.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuPreferences, jobs);
  gtk_widget_class_bind_template_child(widget_class, MsuPreferences, desktop);
  gtk_widget_class_bind_template_child(widget_class, MsuPreferences, memory);
  gtk_widget_class_bind_template_child(widget_class, MsuPreferences, threads);
  gtk_widget_class_bind_template_child(widget_class, MsuPreferences, appearance);
  gtk_widget_class_bind_template_child(widget_class, MsuPreferences, notifications);
  gtk_widget_class_bind_template_child(widget_class, MsuPreferences, clips);
  gtk_widget_class_bind_template_callback(widget_class, open_clips_cb);
}

static void msu_preferences_init(MsuPreferences *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  self->settings = msu_settings_open();
  if (!self->settings) {
    gtk_widget_set_sensitive(self->jobs, FALSE);
    gtk_widget_set_sensitive(self->desktop, FALSE);
    return;
  }
  g_settings_bind(self->settings, "memory-budget", self->memory, "value", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind(self->settings, "threads", gtk_spin_button_get_adjustment(self->threads), "value",
                  G_SETTINGS_BIND_DEFAULT);
  g_settings_bind(self->settings, "notifications", self->notifications, "active", G_SETTINGS_BIND_DEFAULT);
  g_settings_bind_with_mapping(self->settings, "appearance", self->appearance, "selected",
                               G_SETTINGS_BIND_DEFAULT, to_row, from_row, self->settings, NULL);
}

GtkWidget *msu_preferences_new(GtkWindow *parent, MsaStudio *studio) {
  MsuPreferences *self = g_object_new(MSU_TYPE_PREFERENCES, "transient-for", parent, NULL);
  self->clips_folder = g_strdup(msa_studio_get_clips_folder(studio));
  adw_action_row_set_subtitle(self->clips, self->clips_folder);
  return GTK_WIDGET(self);
}
