#include "train/msu-train-plan.h"
#include "plot/ticks.h"
#include "window/msu-format.h"

#include <glib/gi18n.h>

/* After the last key stroke: the plan of a training run looks at the folder's clips too. */
#define PATIENCE_MS 120
#define MOST_SUGGESTIONS 3

struct _MsuTrainPlan {
  GtkWidget parent;
  GtkLabel *memory, *time, *sentence;
  GtkLevelBar *bar;
  GtkFlowBox *suggestions;
  MsaPlanner *planner;
  MsaTrainParams *params; /* NULL: nothing to plan */
  char *problem;          /* NULL: none */
  guint source;
  gboolean allows;
  double seconds_per_step; /* of the newest plan; < 0: not known */
};

G_DEFINE_FINAL_TYPE(MsuTrainPlan, msu_train_plan, GTK_TYPE_WIDGET)

enum { CHANGED, APPLY, SIGNALS };
static guint signals[SIGNALS];

static void set_allows(MsuTrainPlan *self, gboolean allows) {
  self->allows = allows;
  g_signal_emit(self, signals[CHANGED], 0);
}

static void apply_cb(MsuTrainPlan *self, GtkButton *button) {
  g_signal_emit(self, signals[APPLY], 0, g_object_get_data(G_OBJECT(button), "params"));
}

static void show_suggestions(MsuTrainPlan *self, const GPtrArray *suggestions) {
  GtkFlowBoxChild *child;
  guint shown = 0;
  while ((child = gtk_flow_box_get_child_at_index(self->suggestions, 0)))
    gtk_flow_box_remove(self->suggestions, GTK_WIDGET(child));
  for (guint i = 0; suggestions && i < suggestions->len && shown < MOST_SUGGESTIONS; i++) {
    const MsaPlanSuggestion *suggestion = suggestions->pdata[i];
    if (!suggestion->train)
      continue;
    GtkWidget *button = gtk_button_new_with_label(suggestion->label);
    g_autofree char *tip = g_strdup_printf(_("Use %s, which fits"), suggestion->label);
    gtk_widget_set_tooltip_text(button, tip);
    g_object_set_data_full(G_OBJECT(button), "params", msa_train_params_copy(suggestion->train),
                           (GDestroyNotify)msa_train_params_free);
    g_signal_connect_object(button, "clicked", G_CALLBACK(apply_cb), self, G_CONNECT_SWAPPED);
    gtk_flow_box_append(self->suggestions, button);
    shown++;
  }
  gtk_widget_set_visible(GTK_WIDGET(self->suggestions), shown > 0);
}

static void show_sentence(MsuTrainPlan *self, const char *sentence, gboolean wrong) {
  gtk_label_set_text(self->sentence, sentence ? sentence : "");
  gtk_widget_set_visible(GTK_WIDGET(self->sentence), sentence != NULL);
  if (wrong)
    gtk_widget_add_css_class(GTK_WIDGET(self), "error");
  else
    gtk_widget_remove_css_class(GTK_WIDGET(self), "error");
}

static void set_shown(MsuTrainPlan *self, gboolean shown) {
  gtk_widget_set_visible(GTK_WIDGET(self->memory), shown);
  gtk_widget_set_visible(GTK_WIDGET(self->bar), shown);
  gtk_widget_set_visible(GTK_WIDGET(self->time), shown);
  if (!shown)
    show_suggestions(self, NULL);
}

static void show_plan(MsuTrainPlan *self, const MsaPlan *plan) {
  char number[MSU_NUMBER_ROOM];
  g_autofree char *need = msu_format_bytes(plan->host_bytes), *budget = msu_format_bytes(plan->host_budget);
  g_autofree char *memory = NULL, *time = NULL;
  g_autofree char *steps = g_strdup_printf(ngettext("%s step", "%s steps", (unsigned long)plan->steps),
                                           msu_number_whole(number, plan->steps));
  if (plan->disk_bytes) {
    g_autofree char *disk = msu_format_bytes(plan->disk_bytes);
    memory = g_strdup_printf(_("Memory %s of %s, disk %s"), need, budget, disk);
  } else {
    memory = g_strdup_printf(_("Memory %s of %s"), need, budget);
  }
  if (plan->seconds >= 0) {
    g_autofree char *seconds = msu_format_seconds(plan->seconds);
    time = g_strdup_printf(_("About %s, %s"), seconds, steps);
  } else {
    time = g_strdup_printf(_("%s, measuring this machine"), steps);
  }
  set_shown(self, TRUE);
  self->seconds_per_step = plan->seconds >= 0 ? plan->seconds_per_step : -1;
  gtk_label_set_text(self->memory, memory);
  gtk_label_set_text(self->time, time);
  gtk_level_bar_set_value(
      self->bar,
      plan->host_budget ? CLAMP((double)plan->host_bytes / (double)plan->host_budget, 0.01, 1) : 0);
  show_sentence(self, plan->fits && self->problem ? self->problem : plan->sentence, !plan->fits);
  show_suggestions(self, plan->fits ? NULL : plan->suggestions);
}

static void planned_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuTrainPlan) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaPlan) plan = msa_planner_finish(MSA_PLANNER(source), result, &error);
  if (!self->params || (!plan && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)))
    return;
  if (plan) {
    show_plan(self, plan);
  } else {
    set_shown(self, FALSE);
    show_sentence(self, error->message, TRUE);
  }
  set_allows(self, plan && plan->fits && !self->problem);
}

static gboolean ask_cb(gpointer data) {
  MsuTrainPlan *self = data;
  self->source = 0;
  if (self->params)
    msa_planner_train_async(self->planner, self->params, planned_cb, g_object_ref(self));
  return G_SOURCE_REMOVE;
}

static void ask_soon(MsuTrainPlan *self) {
  g_clear_handle_id(&self->source, g_source_remove);
  if (self->params)
    self->source = g_timeout_add(PATIENCE_MS, ask_cb, self);
}

void msu_train_plan_set(MsuTrainPlan *self, const MsaTrainParams *params, const char *problem) {
  g_return_if_fail(MSU_IS_TRAIN_PLAN(self));
  MsaTrainParams *copy = params ? msa_train_params_copy(params) : NULL;
  g_clear_pointer(&self->params, msa_train_params_free);
  self->params = copy;
  g_free(self->problem);
  self->problem = g_strdup(problem);
  ask_soon(self);
  if (!params) {
    set_shown(self, FALSE);
    show_sentence(self, problem, FALSE);
  }
  /* Until the plan says otherwise; the engine checks once more before the work. */
  set_allows(self, params && !problem);
}

gboolean msu_train_plan_allows(MsuTrainPlan *plan) {
  g_return_val_if_fail(MSU_IS_TRAIN_PLAN(plan), FALSE);
  return plan->allows;
}

double msu_train_plan_get_seconds_per_step(MsuTrainPlan *plan) {
  g_return_val_if_fail(MSU_IS_TRAIN_PLAN(plan), -1);
  return plan->seconds_per_step;
}

static void msu_train_plan_dispose(GObject *object) {
  MsuTrainPlan *self = MSU_TRAIN_PLAN(object);
  GtkWidget *child;
  g_clear_handle_id(&self->source, g_source_remove);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self))))
    gtk_widget_unparent(child);
  g_clear_pointer(&self->params, msa_train_params_free);
  g_clear_pointer(&self->problem, g_free);
  g_clear_object(&self->planner);
  G_OBJECT_CLASS(msu_train_plan_parent_class)->dispose(object);
}

static void msu_train_plan_class_init(MsuTrainPlanClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = msu_train_plan_dispose;
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_TRAIN_PLAN, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[APPLY] = g_signal_new("apply", MSU_TYPE_TRAIN_PLAN, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, MSA_TYPE_TRAIN_PARAMS);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/train/msu-train-plan.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPlan, memory);
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPlan, time);
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPlan, sentence);
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPlan, bar);
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPlan, suggestions);
}

static void msu_train_plan_init(MsuTrainPlan *self) {
  static const char *const offsets[] = {GTK_LEVEL_BAR_OFFSET_LOW, GTK_LEVEL_BAR_OFFSET_HIGH,
                                        GTK_LEVEL_BAR_OFFSET_FULL};
  gtk_widget_init_template(GTK_WIDGET(self));
  self->seconds_per_step = -1;
  /* a well used budget is no warning */
  for (gsize i = 0; i < G_N_ELEMENTS(offsets); i++)
    gtk_level_bar_remove_offset_value(self->bar, offsets[i]);
}

GtkWidget *msu_train_plan_new(MsaPlanner *planner) {
  MsuTrainPlan *self = g_object_new(MSU_TYPE_TRAIN_PLAN, NULL);
  self->planner = g_object_ref(planner);
  g_signal_connect_object(planner, "notify::ready", G_CALLBACK(ask_soon), self, G_CONNECT_SWAPPED);
  return GTK_WIDGET(self);
}
