#include "train/msu-memory-row.h"
#include "window/msu-format.h"

#include <glib/gi18n.h>
#include <string.h>

#define MEGA ((double)(1 << 20))
#define GIGA ((double)(1 << 30))
/* Above all memory there is, and exact in a double. */
#define MOST_BYTES 1e15

struct _MsuMemoryRow {
  AdwActionRow parent;
  GtkWidget *entry;
  guint64 automatic;
};

G_DEFINE_FINAL_TYPE(MsuMemoryRow, msu_memory_row, ADW_TYPE_ACTION_ROW)

enum { CHANGED, SIGNALS };
static guint signals[SIGNALS];

/* "", "K", "MB", "GiB", ...; a number alone means GB. 0: no unit. */
static double unit_bytes(const char *unit) {
  static const char letters[] = "KMGT";
  const char *letter = *unit ? strchr(letters, g_ascii_toupper(*unit)) : letters + 2;
  double bytes = 1024;
  if (!letter ||
      (*unit && unit[1] && g_ascii_strcasecmp(unit + 1, "B") && g_ascii_strcasecmp(unit + 1, "iB")))
    return 0;
  for (const char *l = letters; l < letter; l++)
    bytes *= 1024;
  return bytes;
}

gboolean msu_memory_row_get_bytes(MsuMemoryRow *self, guint64 *bytes) {
  g_return_val_if_fail(MSU_IS_MEMORY_ROW(self) && bytes, FALSE);
  g_autofree char *text = g_strdup(msu_memory_row_get_text(self));
  char *end;
  *bytes = 0;
  g_strstrip(text);
  if (!*text)
    return TRUE;
  g_strdelimit(text, ",", '.');
  const double number = g_ascii_strtod(text, &end);
  while (g_unichar_isspace(g_utf8_get_char(end)))
    end = g_utf8_next_char(end);
  const double all = number * unit_bytes(end);
  if (end == text || !(all >= 1) || all > MOST_BYTES)
    return FALSE;
  *bytes = (guint64)all;
  return TRUE;
}

void msu_memory_row_set_bytes(MsuMemoryRow *self, guint64 bytes) {
  g_return_if_fail(MSU_IS_MEMORY_ROW(self));
  g_autofree char *text = bytes == 0             ? g_strdup("")
                          : (double)bytes < GIGA ? g_strdup_printf(_("%.0f MB"), (double)bytes / MEGA)
                                                 : g_strdup_printf(_("%.1f GB"), (double)bytes / GIGA);
  gtk_editable_set_text(GTK_EDITABLE(self->entry), text);
}

const char *msu_memory_row_get_text(MsuMemoryRow *row) {
  g_return_val_if_fail(MSU_IS_MEMORY_ROW(row), "");
  return gtk_editable_get_text(GTK_EDITABLE(row->entry));
}

static void update(MsuMemoryRow *self) {
  guint64 bytes;
  const gboolean good = msu_memory_row_get_bytes(self, &bytes);
  g_autofree char *subtitle = NULL;
  if (good && bytes == 0 && self->automatic) {
    g_autofree char *automatic = msu_format_bytes(self->automatic);
    subtitle = g_strdup_printf(_("Automatic: %s, 70 per cent of what is free"), automatic);
  } else if (good && bytes == 0) {
    subtitle = g_strdup(_("Automatic: 70 per cent of what is free"));
  } else {
    subtitle = g_strdup(_("In GB or MB; empty: automatic"));
  }
  adw_action_row_set_subtitle(ADW_ACTION_ROW(self), subtitle);
  if (good)
    gtk_widget_remove_css_class(self->entry, "error");
  else
    gtk_widget_add_css_class(self->entry, "error");
}

static void changed_cb(MsuMemoryRow *self) {
  update(self);
  g_signal_emit(self, signals[CHANGED], 0);
}

void msu_memory_row_set_automatic(MsuMemoryRow *self, guint64 bytes) {
  g_return_if_fail(MSU_IS_MEMORY_ROW(self));
  self->automatic = bytes;
  update(self);
}

static void msu_memory_row_class_init(MsuMemoryRowClass *klass) {
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_MEMORY_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msu_memory_row_init(MsuMemoryRow *self) {
  self->entry = gtk_entry_new();
  gtk_entry_set_placeholder_text(GTK_ENTRY(self->entry), _("Automatic"));
  gtk_editable_set_width_chars(GTK_EDITABLE(self->entry), 9);
  gtk_editable_set_max_width_chars(GTK_EDITABLE(self->entry), 9);
  gtk_widget_set_valign(self->entry, GTK_ALIGN_CENTER);
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self), _("Memory for the run"));
  adw_action_row_add_suffix(ADW_ACTION_ROW(self), self->entry);
  adw_action_row_set_activatable_widget(ADW_ACTION_ROW(self), self->entry);
  g_signal_connect_swapped(self->entry, "changed", G_CALLBACK(changed_cb), self);
  update(self);
}

GtkWidget *msu_memory_row_new(void) {
  return g_object_new(MSU_TYPE_MEMORY_ROW, NULL);
}
