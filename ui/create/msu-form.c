#include "create/msu-form.h"
#include "create/msu-advanced.h"
#include "create/msu-length-row.h"
#include "create/msu-prompt.h"
#include "create/msu-seed-row.h"
#include "create/msu-size-row.h"
#include <glib/gi18n.h>

struct _MsuForm {
  GtkWidget parent_instance;
  MsuPrompt *prompt;
  GtkToggleButton *draft, *balanced, *fine;
  GtkWidget *avoid_row, *avoid;
  AdwComboRow *model;
  MsuSizeRow *size;
  MsuLengthRow *length;
  MsuSeedRow *seed;
  MsuAdvanced *advanced;
  MsaModels *models;
  MsaModel *shown;            /* the model whose advice is in the form */
  MsaGenerateParams *pending; /* settings that wait for the list of models */
  gboolean filling;
};

enum { CHANGED, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuForm, msu_form, GTK_TYPE_WIDGET)

MsaModel *msu_form_get_model(MsuForm *self) {
  g_return_val_if_fail(MSU_IS_FORM(self), NULL);
  return self->shown;
}

/* Presets are numbers of steps; a number of one's own presses none of them. */
static void show_preset(MsuForm *self) {
  const int steps = msu_advanced_get_steps(self->advanced);
  const int advised = self->shown ? MAX(msa_model_get_steps(self->shown), 1) : 24;
  gtk_toggle_button_set_active(self->draft, steps == MAX(advised / 2, 1) && steps != advised);
  gtk_toggle_button_set_active(self->balanced, steps == advised);
  gtk_toggle_button_set_active(self->fine, steps == advised * 2);
}

static void changed_cb(MsuForm *self) {
  if (self->filling)
    return;
  g_signal_emit(self, signals[CHANGED], 0);
}

static void advanced_cb(MsuForm *self) {
  msu_length_row_set_fps(self->length, msu_advanced_get_fps(self->advanced));
  show_preset(self);
  changed_cb(self);
}

static void use_preset(MsuForm *self, double times) {
  const int advised = self->shown ? MAX(msa_model_get_steps(self->shown), 1) : 24;
  msu_advanced_set_steps(self->advanced, MAX((int)(advised * times), 1));
  show_preset(self);
}

static void draft_cb(MsuForm *self) {
  use_preset(self, 0.5);
}

static void balanced_cb(MsuForm *self) {
  use_preset(self, 1);
}

static void fine_cb(MsuForm *self) {
  use_preset(self, 2);
}

/* Size and length follow the model where they stood at what the last one advises. */
static void show_model(MsuForm *self, MsaModel *model) {
  int width = 0, height = 0;
  MsaModel *before = self->shown;
  const gboolean sized = msu_size_row_get_size(self->size, &width, &height);
  const gboolean advised_size =
      !before || (sized && width == msa_model_get_width(before) && height == msa_model_get_height(before));
  const gboolean advised_length =
      !before || msu_length_row_get_frames(self->length) == msa_model_get_frames(before);
  msu_size_row_set_model(self->size, model);
  if (advised_size)
    msu_size_row_set_size(self->size, msa_model_get_width(model), msa_model_get_height(model));
  msu_advanced_set_model(self->advanced, model);
  msu_length_row_set_fps(self->length, msu_advanced_get_fps(self->advanced));
  if (advised_length)
    msu_length_row_set_frames(self->length, msa_model_get_frames(model));
  g_set_object(&self->shown, model);
  show_preset(self);
}

static void model_cb(MsuForm *self) {
  MsaModel *model = adw_combo_row_get_selected_item(self->model);
  const gboolean nested = self->filling;
  if (!model || model == self->shown)
    return;
  self->filling = TRUE;
  show_model(self, model);
  self->filling = nested;
  changed_cb(self);
}

static void select_model(MsuForm *self, const char *name) {
  MsaModel *wanted = name ? msa_models_find(self->models, name) : NULL;
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(self->models));
  for (guint i = 0; i < count; i++) {
    g_autoptr(MsaModel) model = g_list_model_get_item(G_LIST_MODEL(self->models), i);
    if (model == wanted) {
      adw_combo_row_set_selected(self->model, i);
      return;
    }
  }
}

void msu_form_set_params(MsuForm *self, const MsaGenerateParams *params) {
  g_return_if_fail(MSU_IS_FORM(self));
  if (!g_list_model_get_n_items(G_LIST_MODEL(self->models))) {
    MsaGenerateParams *copy = msa_generate_params_copy(params);
    g_clear_pointer(&self->pending, msa_generate_params_free);
    self->pending = copy;
  }
  self->filling = TRUE;
  select_model(self, params->model);
  msu_prompt_set_text(self->prompt, params->prompt);
  gtk_editable_set_text(GTK_EDITABLE(self->avoid), params->negative ? params->negative : "");
  adw_expander_row_set_expanded(ADW_EXPANDER_ROW(self->avoid_row), params->negative && *params->negative);
  msu_advanced_read(self->advanced, params);
  msu_length_row_set_fps(self->length, msu_advanced_get_fps(self->advanced));
  if (params->width > 0 && params->height > 0)
    msu_size_row_set_size(self->size, params->width, params->height);
  else if (self->shown)
    msu_size_row_set_size(self->size, msa_model_get_width(self->shown), msa_model_get_height(self->shown));
  if (params->frames > 0)
    msu_length_row_set_frames(self->length, params->frames);
  else if (self->shown)
    msu_length_row_set_frames(self->length, msa_model_get_frames(self->shown));
  msu_seed_row_set_seed(self->seed, params->seed);
  show_preset(self);
  self->filling = FALSE;
  changed_cb(self);
}

MsaGenerateParams *msu_form_dup_params(MsuForm *self, char **problem) {
  g_return_val_if_fail(MSU_IS_FORM(self), NULL);
  g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
  const char *wrong = NULL;
  *problem = NULL;
  g_free(params->prompt);
  params->prompt = msu_prompt_dup_text(self->prompt);
  g_free(params->negative);
  params->negative = g_strstrip(g_strdup(gtk_editable_get_text(GTK_EDITABLE(self->avoid))));
  if (!*params->negative)
    g_clear_pointer(&params->negative, g_free);
  g_free(params->model);
  params->model = self->shown ? g_strdup(msa_model_get_reference(self->shown)) : NULL;
  params->frames = msu_length_row_get_frames(self->length);
  msu_advanced_write(self->advanced, params);
  if (!msu_size_row_get_size(self->size, &params->width, &params->height))
    wrong = _("The size is not one that can be made: even numbers from 64, as 320x192.");
  else if (!msu_seed_row_get_seed(self->seed, &params->seed))
    wrong = _("The seed is a whole number, or nothing for a new one each time.");
  else if (!self->shown)
    wrong = _("There is no model here yet. The Models page imports one.");
  if (!wrong && *params->prompt)
    return g_steal_pointer(&params);
  *problem = g_strdup(wrong ? wrong : _("Write what should be seen, or try one of the examples."));
  return wrong ? NULL : g_steal_pointer(&params);
}

void msu_form_set_prompt(MsuForm *self, const char *prompt) {
  g_return_if_fail(MSU_IS_FORM(self));
  msu_prompt_set_text(self->prompt, prompt);
}

void msu_form_focus_prompt(MsuForm *self) {
  g_return_if_fail(MSU_IS_FORM(self));
  gtk_widget_grab_focus(GTK_WIDGET(self->prompt));
}

void msu_form_set_last_seed(MsuForm *self, gint64 seed) {
  g_return_if_fail(MSU_IS_FORM(self));
  msu_seed_row_set_last(self->seed, seed);
}

static void models_cb(MsuForm *self) {
  if (!self->pending || !g_list_model_get_n_items(G_LIST_MODEL(self->models)))
    return;
  g_autoptr(MsaGenerateParams) params = g_steal_pointer(&self->pending);
  /* What was typed meanwhile stays. */
  g_autofree char *typed = msu_prompt_dup_text(self->prompt);
  if (*typed) {
    g_free(params->prompt);
    params->prompt = g_steal_pointer(&typed);
  }
  msu_form_set_params(self, params);
}

static void dispose(GObject *object) {
  MsuForm *self = MSU_FORM(object);
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(object))))
    gtk_widget_unparent(child);
  g_clear_pointer(&self->pending, msa_generate_params_free);
  g_clear_object(&self->shown);
  g_clear_object(&self->models);
  G_OBJECT_CLASS(msu_form_parent_class)->dispose(object);
}

static void msu_form_class_init(MsuFormClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  g_type_ensure(MSA_TYPE_MODEL);
  g_type_ensure(MSU_TYPE_PROMPT);
  g_type_ensure(MSU_TYPE_SIZE_ROW);
  g_type_ensure(MSU_TYPE_LENGTH_ROW);
  g_type_ensure(MSU_TYPE_SEED_ROW);
  g_type_ensure(MSU_TYPE_ADVANCED);
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_FORM, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/create/msu-form.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuForm, prompt);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, draft);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, balanced);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, fine);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, avoid_row);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, avoid);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, model);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, size);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, length);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, seed);
  gtk_widget_class_bind_template_child(widget_class, MsuForm, advanced);
  gtk_widget_class_bind_template_callback(widget_class, changed_cb);
  gtk_widget_class_bind_template_callback(widget_class, advanced_cb);
  gtk_widget_class_bind_template_callback(widget_class, model_cb);
  gtk_widget_class_bind_template_callback(widget_class, draft_cb);
  gtk_widget_class_bind_template_callback(widget_class, balanced_cb);
  gtk_widget_class_bind_template_callback(widget_class, fine_cb);
}

static void msu_form_init(MsuForm *self) {
  self->filling = TRUE;
  gtk_widget_init_template(GTK_WIDGET(self));
  GtkWidget *list = gtk_widget_get_parent(GTK_WIDGET(self->size));
  gtk_list_box_insert(GTK_LIST_BOX(list), msu_size_row_get_entry(self->size),
                      gtk_list_box_row_get_index(GTK_LIST_BOX_ROW(self->size)) + 1);
  g_signal_connect_swapped(self->prompt, "notify::text", G_CALLBACK(changed_cb), self);
  self->filling = FALSE;
}

GtkWidget *msu_form_new(MsaStudio *studio) {
  MsuForm *self = g_object_new(MSU_TYPE_FORM, NULL);
  self->models = g_object_ref(msa_studio_get_models(studio));
  msu_prompt_set_library(self->prompt, msa_studio_get_library(studio));
  adw_combo_row_set_model(self->model, G_LIST_MODEL(self->models));
  g_signal_connect_object(self->models, "items-changed", G_CALLBACK(models_cb), self,
                          G_CONNECT_SWAPPED | G_CONNECT_AFTER);
  model_cb(self);
  return GTK_WIDGET(self);
}
