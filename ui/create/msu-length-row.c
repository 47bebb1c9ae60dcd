#include "create/msu-length-row.h"
#include <glib/gi18n.h>
#include <math.h>

#define MOST_FRAMES 10000

struct _MsuLengthRow {
  AdwActionRow parent_instance;
  GtkSpinButton *spin;
  GtkDropDown *unit;
  int frames;
  double fps;
  gboolean filling;
};

enum { UNIT_SECONDS, UNIT_FRAMES };
enum { CHANGED, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuLengthRow, msu_length_row, ADW_TYPE_ACTION_ROW)

static gboolean in_seconds(MsuLengthRow *self) {
  return gtk_drop_down_get_selected(self->unit) == UNIT_SECONDS;
}

static void show_other(MsuLengthRow *self) {
  g_autofree char *other =
      in_seconds(self)
          ? g_strdup_printf(ngettext("%d frame", "%d frames", (unsigned long)self->frames), self->frames)
          : g_strdup_printf(_("%.2f s"), self->frames / self->fps);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(self), other);
}

static void show(MsuLengthRow *self) {
  const gboolean seconds = in_seconds(self);
  const double scale = seconds ? self->fps : 1;
  self->filling = TRUE;
  gtk_spin_button_set_digits(self->spin, seconds ? 2 : 0);
  gtk_spin_button_set_range(self->spin, 1 / scale, MOST_FRAMES / scale);
  gtk_spin_button_set_increments(self->spin, seconds ? 0.5 : 4, seconds ? 2 : 16);
  gtk_spin_button_set_value(self->spin, self->frames / scale);
  self->filling = FALSE;
  show_other(self);
}

static void spin_cb(MsuLengthRow *self) {
  if (self->filling)
    return;
  const double value = gtk_spin_button_get_value(self->spin);
  const int frames = (int)CLAMP(lround(in_seconds(self) ? value * self->fps : value), 1, MOST_FRAMES);
  if (frames == self->frames)
    return;
  self->frames = frames;
  show_other(self);
  g_signal_emit(self, signals[CHANGED], 0);
}

void msu_length_row_set_frames(MsuLengthRow *self, int frames) {
  g_return_if_fail(MSU_IS_LENGTH_ROW(self));
  self->frames = CLAMP(frames, 1, MOST_FRAMES);
  show(self);
  g_signal_emit(self, signals[CHANGED], 0);
}

int msu_length_row_get_frames(MsuLengthRow *self) {
  g_return_val_if_fail(MSU_IS_LENGTH_ROW(self), 1);
  return self->frames;
}

void msu_length_row_set_fps(MsuLengthRow *self, double fps) {
  g_return_if_fail(MSU_IS_LENGTH_ROW(self));
  if (!(fps > 0) || fps == self->fps)
    return;
  self->fps = fps;
  show(self);
}

static void msu_length_row_class_init(MsuLengthRowClass *klass) {
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_LENGTH_ROW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msu_length_row_init(MsuLengthRow *self) {
  self->frames = 25;
  self->fps = 24;
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self), _("Length"));
  self->spin = GTK_SPIN_BUTTON(gtk_spin_button_new(NULL, 1, 0));
  gtk_spin_button_set_numeric(self->spin, TRUE);
  gtk_editable_set_width_chars(GTK_EDITABLE(self->spin), 4);
  gtk_widget_set_valign(GTK_WIDGET(self->spin), GTK_ALIGN_CENTER);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->spin), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Length"), -1);
  const char *const units[] = {_("s"), _("frames"), NULL};
  self->unit = GTK_DROP_DOWN(gtk_drop_down_new_from_strings(units));
  gtk_widget_set_valign(GTK_WIDGET(self->unit), GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->unit), _("Unit of the length"));
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->unit), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                 _("Unit of the length"), -1);
  adw_action_row_add_suffix(ADW_ACTION_ROW(self), GTK_WIDGET(self->spin));
  adw_action_row_add_suffix(ADW_ACTION_ROW(self), GTK_WIDGET(self->unit));
  g_signal_connect_swapped(self->spin, "value-changed", G_CALLBACK(spin_cb), self);
  g_signal_connect_swapped(self->unit, "notify::selected", G_CALLBACK(show), self);
  show(self);
}
