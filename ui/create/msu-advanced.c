#include "create/msu-advanced.h"
#include "window/msu-settings.h"
#include <glib/gi18n.h>
#include <math.h>

#define GIGA ((double)(1 << 30))

struct choice {
  const char *value, *label;
};

static const struct choice samplers[] = {
    {NULL, N_("Model's choice")}, {"euler", "Euler"}, {"unipc", "UniPC"}, {"dpmpp", "DPM++"}, {NULL, NULL}};
static const struct choice attentions[] = {{NULL, N_("Model's choice")},
                                           {"dsa", N_("3D deformable slide")},
                                           {"window", N_("Fixed windows")},
                                           {"dense", N_("Dense")},
                                           {NULL, NULL}};
static const struct choice devices[] = {
    {NULL, N_("Processor (CPU)")}, {"cuda", N_("NVIDIA GPU (CUDA)")}, {NULL, NULL}};

struct _MsuAdvanced {
  AdwExpanderRow parent_instance;
  GtkSpinButton *steps, *guidance, *shift, *fps, *memory;
  AdwComboRow *sampler, *attention, *device;
  int model_steps; /* what the model advises */
  double model_guidance, model_fps;
  gboolean filling;
};

enum { CHANGED, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuAdvanced, msu_advanced, ADW_TYPE_EXPANDER_ROW)

static void changed_cb(MsuAdvanced *self) {
  if (!self->filling)
    g_signal_emit(self, signals[CHANGED], 0);
}

/* 0 is shown in words where it leaves the choice to someone else. */
static gboolean output_cb(GtkSpinButton *spin, const char *zero) {
  if (gtk_spin_button_get_value(spin) != 0)
    return FALSE;
  gtk_editable_set_text(GTK_EDITABLE(spin), zero);
  return TRUE;
}

static int input_cb(GtkSpinButton *spin, double *value, const char *zero) {
  if (g_strcmp0(gtk_editable_get_text(GTK_EDITABLE(spin)), zero))
    return FALSE;
  *value = 0;
  return TRUE;
}

static GtkSpinButton *add_number(MsuAdvanced *self, const char *title, const char *subtitle, const char *zero,
                                 double low, double high, double step, guint digits) {
  GtkWidget *row = adw_action_row_new();
  GtkWidget *spin = gtk_spin_button_new_with_range(low, high, step);
  gtk_spin_button_set_digits(GTK_SPIN_BUTTON(spin), digits);
  gtk_widget_set_valign(spin, GTK_ALIGN_CENTER);
  gtk_editable_set_width_chars(GTK_EDITABLE(spin), 7);
  gtk_accessible_update_property(GTK_ACCESSIBLE(spin), GTK_ACCESSIBLE_PROPERTY_LABEL, title, -1);
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), title);
  if (subtitle)
    adw_action_row_set_subtitle(ADW_ACTION_ROW(row), subtitle);
  if (zero) {
    g_signal_connect(spin, "output", G_CALLBACK(output_cb), (gpointer)zero);
    g_signal_connect(spin, "input", G_CALLBACK(input_cb), (gpointer)zero);
  }
  adw_action_row_add_suffix(ADW_ACTION_ROW(row), spin);
  adw_expander_row_add_row(ADW_EXPANDER_ROW(self), row);
  g_signal_connect_swapped(spin, "value-changed", G_CALLBACK(changed_cb), self);
  return GTK_SPIN_BUTTON(spin);
}

static AdwComboRow *add_choice(MsuAdvanced *self, const char *title, const struct choice *choices) {
  GtkWidget *row = adw_combo_row_new();
  g_autoptr(GtkStringList) names = gtk_string_list_new(NULL);
  for (; choices->label; choices++)
    gtk_string_list_append(names, _(choices->label));
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), title);
  adw_combo_row_set_model(ADW_COMBO_ROW(row), G_LIST_MODEL(names));
  adw_expander_row_add_row(ADW_EXPANDER_ROW(self), row);
  g_signal_connect_swapped(row, "notify::selected", G_CALLBACK(changed_cb), self);
  return ADW_COMBO_ROW(row);
}

static void choose(AdwComboRow *row, const struct choice *choices, const char *value) {
  guint at = 0;
  for (guint i = 1; choices[i].label; i++)
    if (!g_strcmp0(choices[i].value, value))
      at = i;
  adw_combo_row_set_selected(row, at);
}

static char *chosen(AdwComboRow *row, const struct choice *choices) {
  const guint at = adw_combo_row_get_selected(row);
  return at == GTK_INVALID_LIST_POSITION ? NULL : g_strdup(choices[at].value);
}

static void follow_number(GtkSpinButton *spin, double before, double now) {
  if (fabs(gtk_spin_button_get_value(spin) - before) < 1e-9)
    gtk_spin_button_set_value(spin, now);
}

void msu_advanced_set_model(MsuAdvanced *self, MsaModel *model) {
  g_return_if_fail(MSU_IS_ADVANCED(self));
  if (!model)
    return;
  const int steps = MAX(msa_model_get_steps(model), 1);
  const double guidance = msa_model_get_guidance(model);
  const double fps = msa_model_get_fps(model) > 0 ? msa_model_get_fps(model) : 24;
  self->filling = TRUE;
  follow_number(self->steps, self->model_steps, steps);
  follow_number(self->guidance, self->model_guidance, guidance);
  follow_number(self->fps, self->model_fps, fps);
  self->filling = FALSE;
  self->model_steps = steps;
  self->model_guidance = guidance;
  self->model_fps = fps;
}

void msu_advanced_read(MsuAdvanced *self, const MsaGenerateParams *params) {
  g_return_if_fail(MSU_IS_ADVANCED(self));
  self->filling = TRUE;
  gtk_spin_button_set_value(self->steps, params->steps > 0 ? params->steps : self->model_steps);
  gtk_spin_button_set_value(self->guidance, params->guidance >= 0 ? params->guidance : self->model_guidance);
  gtk_spin_button_set_value(self->fps, params->fps > 0 ? params->fps : self->model_fps);
  gtk_spin_button_set_value(self->shift, params->shift);
  gtk_spin_button_set_value(self->memory, params->host_memory / GIGA);
  choose(self->sampler, samplers, params->sampler);
  choose(self->attention, attentions, params->attention);
  choose(self->device, devices, params->device);
  self->filling = FALSE;
  changed_cb(self);
}

void msu_advanced_write(MsuAdvanced *self, MsaGenerateParams *params) {
  g_return_if_fail(MSU_IS_ADVANCED(self));
  params->steps = gtk_spin_button_get_value_as_int(self->steps);
  params->guidance = gtk_spin_button_get_value(self->guidance);
  params->fps = gtk_spin_button_get_value(self->fps);
  params->shift = gtk_spin_button_get_value(self->shift);
  params->host_memory = (guint64)(gtk_spin_button_get_value(self->memory) * GIGA);
  if (!params->host_memory)
    params->host_memory = msu_settings_host_memory();
  params->threads = msu_settings_threads();
  g_free(params->sampler);
  params->sampler = chosen(self->sampler, samplers);
  g_free(params->attention);
  params->attention = chosen(self->attention, attentions);
  g_free(params->device);
  params->device = chosen(self->device, devices);
}

double msu_advanced_get_fps(MsuAdvanced *self) {
  g_return_val_if_fail(MSU_IS_ADVANCED(self), 24);
  return gtk_spin_button_get_value(self->fps);
}

int msu_advanced_get_steps(MsuAdvanced *self) {
  g_return_val_if_fail(MSU_IS_ADVANCED(self), 1);
  return gtk_spin_button_get_value_as_int(self->steps);
}

void msu_advanced_set_steps(MsuAdvanced *self, int steps) {
  g_return_if_fail(MSU_IS_ADVANCED(self));
  gtk_spin_button_set_value(self->steps, steps);
}

static void msu_advanced_class_init(MsuAdvancedClass *klass) {
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_ADVANCED, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
}

static void msu_advanced_init(MsuAdvanced *self) {
  self->filling = TRUE;
  self->model_steps = 24;
  self->model_guidance = 4;
  self->model_fps = 24;
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self), _("Advanced"));
  self->steps = add_number(self, _("Steps"), NULL, NULL, 1, 1000, 1, 0);
  self->guidance = add_number(self, _("Guidance"), _("1 is off"), NULL, 0, 30, 0.5, 1);
  self->sampler = add_choice(self, _("Sampler"), samplers);
  self->attention = add_choice(self, _("Attention"), attentions);
  self->shift = add_number(self, _("Shift"), NULL, _("Model's"), 0, 100, 0.5, 1);
  self->fps = add_number(self, _("Frame rate"), _("frames a second"), NULL, 1, 240, 1, 2);
  self->memory = add_number(self, _("Memory budget"), _("GB"), _("Auto"), 0, 16384, 0.5, 1);
  self->device = add_choice(self, _("Device"), devices);
  gtk_spin_button_set_value(self->steps, self->model_steps);
  gtk_spin_button_set_value(self->guidance, self->model_guidance);
  gtk_spin_button_set_value(self->fps, self->model_fps);
  self->filling = FALSE;
}
