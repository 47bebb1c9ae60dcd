#include "train/msu-recipe.h"
#include "create/msu-size-row.h"
#include "plot/ticks.h"
#include "train/msu-memory-row.h"

#include <glib/gi18n.h>
#include <math.h>
#include <string.h>

#define USUAL_RATE "2e-4" /* the engine's own */

static const char *const methods[] = {"full", "offsets", "lora"};
static const char *const captions[] = {"error", "empty", "skip"};
static const int moments[] = {32, 8};

struct _MsuRecipe {
  GtkWidget parent;
  MsaModels *models;
  GtkWidget *name, *model, *size, *captions, *prompt, *rate, *memory, *moments;
  GtkSpinButton *steps, *rank, *batch, *frames, *every;
  GtkCheckButton *method[G_N_ELEMENTS(methods)];
  gboolean named;   /* by the person */
  double seconds;   /* of the shortest clip; 0: not known */
  gboolean filling; /* changes come from us */
};

G_DEFINE_FINAL_TYPE(MsuRecipe, msu_recipe, GTK_TYPE_WIDGET)

enum { CHANGED, SIGNALS };
static guint signals[SIGNALS];

static void changed_cb(MsuRecipe *self) {
  if (!self->filling)
    g_signal_emit(self, signals[CHANGED], 0);
}

/* The learning rate as typed; 0: the usual one, < 0: no number. */
static double typed_rate(MsuRecipe *self) {
  g_autofree char *text = g_strdup(gtk_editable_get_text(GTK_EDITABLE(self->rate)));
  g_strstrip(text);
  g_strdelimit(text, ",", '.');
  if (!*text)
    return 0;
  char *end;
  double rate = g_ascii_strtod(text, &end);
  return *end || !(rate > 0) || rate > 10 ? -1 : rate;
}

static void rate_cb(MsuRecipe *self) {
  if (typed_rate(self) < 0)
    gtk_widget_add_css_class(self->rate, "error");
  else
    gtk_widget_remove_css_class(self->rate, "error");
  changed_cb(self);
}

static void name_cb(MsuRecipe *self) {
  if (!self->filling)
    self->named = *gtk_editable_get_text(GTK_EDITABLE(self->name)) != 0;
  changed_cb(self);
}

static MsaModel *chosen_model(MsuRecipe *self) {
  return adw_combo_row_get_selected_item(ADW_COMBO_ROW(self->model));
}

/* As many as the model makes, but no more than the shortest clip has at the model's speed, since the rest
 * would be its last frame standing still; one and a multiple of four, as codecs like it. */
static void suggest_frames(MsuRecipe *self) {
  MsaModel *model = chosen_model(self);
  if (!model)
    return;
  int frames = msa_model_get_frames(model);
  if (self->seconds > 0 && msa_model_get_fps(model) > 0)
    frames = MIN(frames, MAX(1, (int)(self->seconds * msa_model_get_fps(model) + 1e-6)));
  gtk_spin_button_set_value(self->frames, (frames - 1) / 4 * 4 + 1);
}

static void model_cb(MsuRecipe *self) {
  MsaModel *model = chosen_model(self);
  msu_size_row_set_model(MSU_SIZE_ROW(self->size), model);
  if (model)
    msu_size_row_set_size(MSU_SIZE_ROW(self->size), msa_model_get_width(model), msa_model_get_height(model));
  suggest_frames(self);
  changed_cb(self);
}

static const char *chosen_method(MsuRecipe *self) {
  for (gsize i = 0; i < G_N_ELEMENTS(methods); i++)
    if (gtk_check_button_get_active(self->method[i]))
      return methods[i];
  return methods[0];
}

static char *text_of(GtkWidget *row) {
  return g_strstrip(g_strdup(gtk_editable_get_text(GTK_EDITABLE(row))));
}

MsaTrainParams *msu_recipe_get_params(MsuRecipe *self) {
  g_return_val_if_fail(MSU_IS_RECIPE(self), NULL);
  MsaTrainParams *params = msa_train_params_new();
  MsaModel *model = chosen_model(self);
  params->name = text_of(self->name);
  params->model = model ? g_strdup(msa_model_get_folder(model)) : NULL;
  g_free(params->method);
  params->method = g_strdup(chosen_method(self));
  g_free(params->missing_caption);
  params->missing_caption =
      g_strdup(captions[MIN(adw_combo_row_get_selected(ADW_COMBO_ROW(self->captions)), 2)]);
  params->rank = g_str_equal(params->method, "lora") ? gtk_spin_button_get_value_as_int(self->rank) : 0;
  params->steps = gtk_spin_button_get_value_as_int(self->steps);
  params->batch = gtk_spin_button_get_value_as_int(self->batch);
  params->frames = gtk_spin_button_get_value_as_int(self->frames);
  params->lr = MAX(typed_rate(self), 0);
  params->moment_bits = moments[MIN(adw_combo_row_get_selected(ADW_COMBO_ROW(self->moments)), 1)];
  msu_memory_row_get_bytes(MSU_MEMORY_ROW(self->memory), &params->host_memory);
  msu_size_row_get_size(MSU_SIZE_ROW(self->size), &params->width, &params->height);
  params->sample_prompt = text_of(self->prompt);
  params->sample_every = *params->sample_prompt ? gtk_spin_button_get_value_as_int(self->every) : 0;
  if (!*params->sample_prompt)
    g_clear_pointer(&params->sample_prompt, g_free);
  return params;
}

void msu_recipe_set_params(MsuRecipe *self, const MsaTrainParams *params) {
  g_return_if_fail(MSU_IS_RECIPE(self) && params);
  self->filling = TRUE;
  for (guint i = 0; i < g_list_model_get_n_items(G_LIST_MODEL(self->models)); i++) {
    g_autoptr(MsaModel) model = g_list_model_get_item(G_LIST_MODEL(self->models), i);
    if (params->model && model == msa_models_find(self->models, params->model))
      adw_combo_row_set_selected(ADW_COMBO_ROW(self->model), i);
  }
  for (gsize i = 0; i < G_N_ELEMENTS(methods); i++)
    gtk_check_button_set_active(self->method[i], !g_strcmp0(params->method, methods[i]));
  for (guint i = 0; i < G_N_ELEMENTS(captions); i++)
    if (!g_strcmp0(params->missing_caption, captions[i]))
      adw_combo_row_set_selected(ADW_COMBO_ROW(self->captions), i);
  gtk_spin_button_set_value(self->steps, (double)params->steps);
  if (params->rank > 0)
    gtk_spin_button_set_value(self->rank, params->rank);
  if (params->batch > 0)
    gtk_spin_button_set_value(self->batch, params->batch);
  if (params->frames > 0)
    gtk_spin_button_set_value(self->frames, params->frames);
  if (params->width > 0 && params->height > 0)
    msu_size_row_set_size(MSU_SIZE_ROW(self->size), params->width, params->height);
  for (guint i = 0; i < G_N_ELEMENTS(moments); i++)
    if (params->moment_bits == moments[i])
      adw_combo_row_set_selected(ADW_COMBO_ROW(self->moments), i);
  msu_memory_row_set_bytes(MSU_MEMORY_ROW(self->memory), params->host_memory);
  g_autofree char *rate = params->lr > 0 ? g_strdup_printf("%g", params->lr) : g_strdup("");
  gtk_editable_set_text(GTK_EDITABLE(self->rate), rate);
  self->filling = FALSE;
  changed_cb(self);
}

void msu_recipe_suggest_name(MsuRecipe *self, const char *name) {
  g_return_if_fail(MSU_IS_RECIPE(self));
  if (self->named)
    return;
  self->filling = TRUE;
  gtk_editable_set_text(GTK_EDITABLE(self->name), name);
  self->filling = FALSE;
  changed_cb(self);
}

void msu_recipe_set_shortest(MsuRecipe *self, double seconds) {
  g_return_if_fail(MSU_IS_RECIPE(self));
  if (seconds == self->seconds)
    return;
  self->seconds = seconds;
  suggest_frames(self);
}

void msu_recipe_set_automatic_memory(MsuRecipe *self, guint64 bytes) {
  g_return_if_fail(MSU_IS_RECIPE(self));
  msu_memory_row_set_automatic(MSU_MEMORY_ROW(self->memory), bytes);
}

char *msu_recipe_get_problem(MsuRecipe *self) {
  guint64 bytes;
  int width, height;
  g_return_val_if_fail(MSU_IS_RECIPE(self), NULL);
  g_autofree char *name = text_of(self->name);
  if (!chosen_model(self))
    return g_strdup(_("There is no model to train yet."));
  if (!*name)
    return g_strdup(_("Give the run a name."));
  if (typed_rate(self) < 0)
    return g_strdup_printf(_("“%s” is no learning rate: a number between 0 and 10, as %s."),
                           gtk_editable_get_text(GTK_EDITABLE(self->rate)), USUAL_RATE);
  if (!msu_size_row_get_size(MSU_SIZE_ROW(self->size), &width, &height))
    return g_strdup(_("The size must be two even numbers from 64."));
  if (!msu_memory_row_get_bytes(MSU_MEMORY_ROW(self->memory), &bytes))
    return g_strdup_printf(_("“%s” is no amount of memory: a number with GB or MB, as 4 GB."),
                           msu_memory_row_get_text(MSU_MEMORY_ROW(self->memory)));
  return NULL;
}

/* Rows. */

static GtkWidget *add_list(MsuRecipe *self, const char *title) {
  GtkWidget *box = gtk_box_new(GTK_ORIENTATION_VERTICAL, 8), *list = gtk_list_box_new();
  if (title) {
    GtkWidget *label = gtk_label_new(title);
    gtk_label_set_xalign(GTK_LABEL(label), 0);
    gtk_widget_add_css_class(label, "heading");
    gtk_box_append(GTK_BOX(box), label);
  }
  gtk_list_box_set_selection_mode(GTK_LIST_BOX(list), GTK_SELECTION_NONE);
  gtk_widget_add_css_class(list, "boxed-list");
  gtk_widget_add_css_class(list, "settings");
  gtk_accessible_update_property(GTK_ACCESSIBLE(list), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                 title ? title : _("Run"), -1);
  gtk_box_append(GTK_BOX(box), list);
  gtk_widget_set_parent(box, GTK_WIDGET(self));
  return list;
}

struct number {
  double low, high, step, value;
};

static GtkSpinButton *add_number(MsuRecipe *self, GtkWidget *list, const char *title, const char *subtitle,
                                 struct number number) {
  GtkWidget *row = adw_action_row_new(),
            *spin = gtk_spin_button_new_with_range(number.low, number.high, number.step);
  gtk_spin_button_set_value(GTK_SPIN_BUTTON(spin), number.value);
  gtk_editable_set_width_chars(GTK_EDITABLE(spin), 7);
  gtk_widget_set_valign(spin, GTK_ALIGN_CENTER);
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), title);
  if (subtitle)
    adw_action_row_set_subtitle(ADW_ACTION_ROW(row), subtitle);
  adw_action_row_add_suffix(ADW_ACTION_ROW(row), spin);
  adw_action_row_set_activatable_widget(ADW_ACTION_ROW(row), spin);
  gtk_list_box_append(GTK_LIST_BOX(list), row);
  g_signal_connect_swapped(spin, "value-changed", G_CALLBACK(changed_cb), self);
  return GTK_SPIN_BUTTON(spin);
}

static GtkWidget *add_text(MsuRecipe *self, GtkWidget *list, const char *title, GCallback changed) {
  GtkWidget *row = adw_entry_row_new();
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), title);
  gtk_list_box_append(GTK_LIST_BOX(list), row);
  g_signal_connect_swapped(row, "changed", changed, self);
  return row;
}

static void add_method(MsuRecipe *self, GtkWidget *list, guint i, const char *title, const char *subtitle) {
  GtkWidget *row = adw_action_row_new(), *check = gtk_check_button_new();
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), title);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(row), subtitle);
  adw_action_row_add_prefix(ADW_ACTION_ROW(row), check);
  adw_action_row_set_activatable_widget(ADW_ACTION_ROW(row), check);
  gtk_widget_set_valign(check, GTK_ALIGN_CENTER);
  self->method[i] = GTK_CHECK_BUTTON(check);
  if (i > 0)
    gtk_check_button_set_group(self->method[i], self->method[0]);
  gtk_list_box_append(GTK_LIST_BOX(list), row);
  g_signal_connect_swapped(check, "toggled", G_CALLBACK(changed_cb), self);
}

/* The rank is LoRA's alone. */
static void lora_cb(MsuRecipe *self) {
  gtk_widget_set_visible(gtk_widget_get_ancestor(GTK_WIDGET(self->rank), GTK_TYPE_LIST_BOX_ROW),
                         gtk_check_button_get_active(self->method[2]));
}

static void add_methods(MsuRecipe *self) {
  GtkWidget *list = add_list(self, _("Method"));
  add_method(self, list, 0, _("Full"), _("Every weight learns; the strongest"));
  add_method(self, list, 1, _("Offsets"), _("Only where attention looks; needs 3D-DSA"));
  add_method(self, list, 2, _("LoRA"), _("Small matrices beside the weights; little memory"));
  self->rank = add_number(self, list, _("Rank"), _("Of LoRA’s matrices"), (struct number){1, 4096, 4, 16});
  g_signal_connect_swapped(self->method[2], "toggled", G_CALLBACK(lora_cb), self);
  gtk_check_button_set_active(self->method[0], TRUE);
  lora_cb(self);
}

static void add_clips(MsuRecipe *self) {
  GtkWidget *list = add_list(self, _("Clips"));
  const char *const policies[] = {_("Stop and say so"), _("Use an empty one"), _("Leave the clip out"), NULL};
  g_autoptr(GtkStringList) names = gtk_string_list_new(policies);
  self->size = g_object_new(MSU_TYPE_SIZE_ROW, "title", _("Resolution"), NULL);
  gtk_list_box_append(GTK_LIST_BOX(list), self->size);
  gtk_list_box_append(GTK_LIST_BOX(list), msu_size_row_get_entry(MSU_SIZE_ROW(self->size)));
  g_signal_connect_swapped(self->size, "changed", G_CALLBACK(changed_cb), self);
  self->frames = add_number(self, list, _("Frames"), _("Of each clip"), (struct number){1, 1025, 4, 17});
  self->captions = adw_combo_row_new();
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self->captions), _("Missing captions"));
  adw_combo_row_set_model(ADW_COMBO_ROW(self->captions), G_LIST_MODEL(names));
  gtk_list_box_append(GTK_LIST_BOX(list), self->captions);
  g_signal_connect_swapped(self->captions, "notify::selected", G_CALLBACK(changed_cb), self);
}

static void add_memory(MsuRecipe *self) {
  GtkWidget *list = add_list(self, _("Memory"));
  const char *const bits[] = {_("32 bit"), _("8 bit"), NULL};
  g_autoptr(GtkStringList) names = gtk_string_list_new(bits);
  self->memory = msu_memory_row_new();
  gtk_list_box_append(GTK_LIST_BOX(list), self->memory);
  g_signal_connect_swapped(self->memory, "changed", G_CALLBACK(changed_cb), self);
  self->moments = adw_combo_row_new();
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self->moments), _("Moments"));
  adw_action_row_set_subtitle(ADW_ACTION_ROW(self->moments),
                              _("Of the optimizer; in 8 bit they take a quarter of the room"));
  adw_combo_row_set_model(ADW_COMBO_ROW(self->moments), G_LIST_MODEL(names));
  gtk_list_box_append(GTK_LIST_BOX(list), self->moments);
  g_signal_connect_swapped(self->moments, "notify::selected", G_CALLBACK(changed_cb), self);
}

static void fill(MsuRecipe *self) {
  GtkWidget *list = add_list(self, NULL);
  self->name = add_text(self, list, _("Name"), G_CALLBACK(name_cb));
  self->model = adw_combo_row_new();
  adw_preferences_row_set_title(ADW_PREFERENCES_ROW(self->model), _("Model"));
  gtk_list_box_append(GTK_LIST_BOX(list), self->model);
  self->steps = add_number(self, list, _("Steps"), NULL, (struct number){1, 10000000, 100, 1000});
  add_methods(self);
  add_clips(self);
  list = add_list(self, _("Learning"));
  self->rate = add_text(self, list, _("Learning rate (empty: 2e-4)"), G_CALLBACK(rate_cb));
  self->batch = add_number(self, list, _("Batch"), _("Clips a step"), (struct number){1, 4096, 1, 4});
  add_memory(self);
  list = add_list(self, _("Sample clips"));
  self->prompt = add_text(self, list, _("Sample prompt"), G_CALLBACK(changed_cb));
  self->every = add_number(self, list, _("Sample every"), _("Steps from one to the next"),
                           (struct number){1, 1000000, 50, 100});
}

static void msu_recipe_dispose(GObject *object) {
  MsuRecipe *self = MSU_RECIPE(object);
  GtkWidget *child;
  self->filling = TRUE;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self))))
    gtk_widget_unparent(child);
  g_clear_object(&self->models);
  G_OBJECT_CLASS(msu_recipe_parent_class)->dispose(object);
}

static void msu_recipe_class_init(MsuRecipeClass *klass) {
  G_OBJECT_CLASS(klass)->dispose = msu_recipe_dispose;
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_RECIPE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_layout_manager_type(GTK_WIDGET_CLASS(klass), GTK_TYPE_BOX_LAYOUT);
}

static void msu_recipe_init(MsuRecipe *self) {
  GtkBoxLayout *layout = GTK_BOX_LAYOUT(gtk_widget_get_layout_manager(GTK_WIDGET(self)));
  gtk_orientable_set_orientation(GTK_ORIENTABLE(layout), GTK_ORIENTATION_VERTICAL);
  gtk_box_layout_set_spacing(layout, 16);
}

GtkWidget *msu_recipe_new(MsaStudio *studio) {
  MsuRecipe *self = g_object_new(MSU_TYPE_RECIPE, NULL);
  g_autoptr(GtkExpression) name = gtk_property_expression_new(MSA_TYPE_MODEL, NULL, "name");
  self->models = g_object_ref(msa_studio_get_models(studio));
  self->filling = TRUE;
  fill(self);
  adw_combo_row_set_expression(ADW_COMBO_ROW(self->model), name);
  adw_combo_row_set_model(ADW_COMBO_ROW(self->model), G_LIST_MODEL(self->models));
  g_signal_connect_swapped(self->model, "notify::selected-item", G_CALLBACK(model_cb), self);
  model_cb(self);
  self->filling = FALSE;
  return GTK_WIDGET(self);
}
