#include "create/msu-seed-row.h"
#include <glib/gi18n.h>

struct _MsuSeedRow {
  AdwActionRow parent_instance;
  GtkEntry *entry;
  GtkWidget *again;
  gint64 last;
};

enum { CHANGED, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuSeedRow, msu_seed_row, ADW_TYPE_ACTION_ROW)

gboolean msu_seed_row_get_seed(MsuSeedRow *self, gint64 *seed) {
  g_return_val_if_fail(MSU_IS_SEED_ROW(self), FALSE);
  g_autofree char *text = g_strstrip(g_strdup(gtk_editable_get_text(GTK_EDITABLE(self->entry))));
  guint64 number = 0;
  if (!*text) {
    *seed = -1;
    return TRUE;
  }
  if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &number, NULL))
    return FALSE;
  *seed = (gint64)number;
  return TRUE;
}

static void update(MsuSeedRow *self) {
  gint64 seed;
  const gboolean good = msu_seed_row_get_seed(self, &seed);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(self), !good      ? _("A whole number, or nothing")
                                                    : seed < 0 ? _("New each time")
                                                               : _("Same clip again"));
  if (good)
    gtk_widget_remove_css_class(GTK_WIDGET(self->entry), "error");
  else
    gtk_widget_add_css_class(GTK_WIDGET(self->entry), "error");
  gtk_entry_set_icon_from_icon_name(self->entry, GTK_ENTRY_ICON_SECONDARY,
                                    good && seed < 0 ? NULL : "edit-clear-symbolic");
  if (!good || seed >= 0)
    gtk_entry_set_icon_tooltip_text(self->entry, GTK_ENTRY_ICON_SECONDARY, _("Random seed"));
  g_signal_emit(self, signals[CHANGED], 0);
}

void msu_seed_row_set_seed(MsuSeedRow *self, gint64 seed) {
  g_return_if_fail(MSU_IS_SEED_ROW(self));
  g_autofree char *text = seed < 0 ? g_strdup("") : g_strdup_printf("%" G_GINT64_FORMAT, seed);
  gtk_editable_set_text(GTK_EDITABLE(self->entry), text);
}

void msu_seed_row_set_last(MsuSeedRow *self, gint64 seed) {
  g_return_if_fail(MSU_IS_SEED_ROW(self));
  self->last = seed;
  gtk_widget_set_sensitive(self->again, seed >= 0);
}

static void dice_cb(MsuSeedRow *self) {
  msu_seed_row_set_seed(self, g_random_int_range(0, G_MAXINT32));
}

static void again_cb(MsuSeedRow *self) {
  msu_seed_row_set_seed(self, self->last);
}

static void clear_cb(MsuSeedRow *self) {
  msu_seed_row_set_seed(self, -1);
}

static GtkWidget *add_button(MsuSeedRow *self, const char *icon, const char *tip, GCallback callback) {
  GtkWidget *button = gtk_button_new_from_icon_name(icon);
  gtk_widget_set_tooltip_text(button, tip);
  gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, tip, -1);
  gtk_widget_set_valign(button, GTK_ALIGN_CENTER);
  gtk_widget_add_css_class(button, "flat");
  adw_action_row_add_suffix(ADW_ACTION_ROW(self), button);
  g_signal_connect_swapped(button, "clicked", callback, self);
  return button;
}

static void msu_seed_row_class_init(MsuSeedRowClass *klass) {
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_SEED_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msu_seed_row_init(MsuSeedRow *self) {
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self), _("Seed"));
  self->entry = GTK_ENTRY(gtk_entry_new());
  gtk_editable_set_width_chars(GTK_EDITABLE(self->entry), 9);
  gtk_entry_set_placeholder_text(self->entry, _("random"));
  gtk_entry_set_input_purpose(self->entry, GTK_INPUT_PURPOSE_DIGITS);
  gtk_widget_set_valign(GTK_WIDGET(self->entry), GTK_ALIGN_CENTER);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Seed"), -1);
  adw_action_row_add_suffix(ADW_ACTION_ROW(self), GTK_WIDGET(self->entry));
  add_button(self, "msu-dice-symbolic", _("Roll a seed"), G_CALLBACK(dice_cb));
  self->again = add_button(self, "msu-again-symbolic", _("Use the last seed"), G_CALLBACK(again_cb));
  g_signal_connect_swapped(self->entry, "changed", G_CALLBACK(update), self);
  g_signal_connect_swapped(self->entry, "icon-press", G_CALLBACK(clear_cb), self);
  msu_seed_row_set_last(self, -1);
  update(self);
}
