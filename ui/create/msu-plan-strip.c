#include "create/msu-plan-strip.h"
#include "window/msu-format.h"
#include <glib/gi18n.h>

/* After the last key stroke; a plan is cheap, but not so cheap that each letter needs one. */
#define PATIENCE_MS 60
#define MOST_SUGGESTIONS 3

struct _MsuPlanStrip {
  GtkWidget parent_instance;
  GtkLabel *memory, *time, *sentence;
  GtkLevelBar *bar;
  GtkFlowBox *suggestions;
  MsaPlanner *planner;
  MsaGenerateParams *params; /* what is asked for; NULL: nothing to plan */
  char *problem;             /* what the form lacks; NULL: nothing */
  guint source;
  gboolean allows;
};

enum { CHANGED, APPLY, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuPlanStrip, msu_plan_strip, GTK_TYPE_WIDGET)

static void set_allows(MsuPlanStrip *self, gboolean allows) {
  self->allows = allows;
  g_signal_emit(self, signals[CHANGED], 0);
}

static void clear_suggestions(MsuPlanStrip *self) {
  GtkFlowBoxChild *child;
  while ((child = gtk_flow_box_get_child_at_index(self->suggestions, 0)))
    gtk_flow_box_remove(self->suggestions, GTK_WIDGET(child));
  gtk_widget_set_visible(GTK_WIDGET(self->suggestions), FALSE);
}

static void show_sentence(MsuPlanStrip *self, const char *sentence, gboolean wrong) {
  gtk_label_set_text(self->sentence, sentence ? sentence : "");
  gtk_widget_set_visible(GTK_WIDGET(self->sentence), sentence != NULL);
  if (wrong) {
    gtk_widget_add_css_class(GTK_WIDGET(self), "does-not-fit");
    gtk_widget_remove_css_class(GTK_WIDGET(self->sentence), "dim-label");
  } else {
    gtk_widget_remove_css_class(GTK_WIDGET(self), "does-not-fit");
    gtk_widget_add_css_class(GTK_WIDGET(self->sentence), "dim-label");
  }
}

static void apply_cb(MsuPlanStrip *self, GtkButton *button) {
  const MsaGenerateParams *params = g_object_get_data(G_OBJECT(button), "params");
  g_signal_emit(self, signals[APPLY], 0, params);
}

static void show_suggestions(MsuPlanStrip *self, const GPtrArray *suggestions) {
  for (guint i = 0; suggestions && i < MIN(suggestions->len, MOST_SUGGESTIONS); i++) {
    const MsaPlanSuggestion *suggestion = suggestions->pdata[i];
    if (!suggestion->generate)
      continue;
    GtkWidget *button = gtk_button_new_with_label(suggestion->label);
    g_autofree char *tip = g_strdup_printf(_("Use %s, which fits"), suggestion->label);
    gtk_widget_set_tooltip_text(button, tip);
    g_object_set_data_full(G_OBJECT(button), "params", msa_generate_params_copy(suggestion->generate),
                           (GDestroyNotify)msa_generate_params_free);
    g_signal_connect_object(button, "clicked", G_CALLBACK(apply_cb), self, G_CONNECT_SWAPPED);
    gtk_flow_box_append(self->suggestions, button);
    gtk_widget_set_visible(GTK_WIDGET(self->suggestions), TRUE);
  }
}

static void show_plan(MsuPlanStrip *self, const MsaPlan *plan) {
  g_autofree char *need = msu_format_bytes(plan->host_bytes);
  g_autofree char *budget = msu_format_bytes(plan->host_budget);
  g_autofree char *memory = g_strdup_printf(_("Memory %s of %s"), need, budget);
  g_autofree char *steps =
      g_strdup_printf(ngettext("%d step", "%d steps", (unsigned long)plan->steps), plan->steps);
  g_autofree char *time = NULL;
  if (plan->seconds >= 0) {
    g_autofree char *seconds = msu_format_seconds(plan->seconds);
    time = g_strdup_printf(_("About %s, %s"), seconds, steps);
  } else {
    time = g_strdup_printf(_("%s, measuring this machine"), steps);
  }
  gtk_label_set_text(self->memory, memory);
  gtk_label_set_text(self->time, time);
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->time), time);
  gtk_level_bar_set_value(
      self->bar, plan->host_budget ? CLAMP((double)plan->host_bytes / plan->host_budget, 0.01, 1) : 0);
  show_sentence(self, plan->fits && self->problem ? self->problem : plan->sentence, !plan->fits);
  if (!plan->fits)
    show_suggestions(self, plan->suggestions);
}

static void planned_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuPlanStrip) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaPlan) plan = msa_planner_finish(MSA_PLANNER(source), result, &error);
  if (!self->params || (!plan && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)))
    return;
  clear_suggestions(self);
  if (plan) {
    show_plan(self, plan);
  } else {
    gtk_label_set_text(self->memory, _("No plan"));
    gtk_label_set_text(self->time, "");
    gtk_level_bar_set_value(self->bar, 0);
    show_sentence(self, error->message, TRUE);
  }
  set_allows(self, plan && plan->fits && !self->problem);
}

static gboolean ask_cb(gpointer data) {
  MsuPlanStrip *self = data;
  self->source = 0;
  if (self->params)
    msa_planner_generate_async(self->planner, self->params, planned_cb, g_object_ref(self));
  return G_SOURCE_REMOVE;
}

static void ready_cb(MsuPlanStrip *self) {
  if (self->params && !self->source)
    self->source = g_timeout_add(PATIENCE_MS, ask_cb, self);
}

void msu_plan_strip_set(MsuPlanStrip *self, const MsaGenerateParams *params, const char *problem) {
  g_return_if_fail(MSU_IS_PLAN_STRIP(self));
  MsaGenerateParams *copy = params ? msa_generate_params_copy(params) : NULL;
  g_clear_handle_id(&self->source, g_source_remove);
  g_clear_pointer(&self->params, msa_generate_params_free);
  self->params = copy;
  g_free(self->problem);
  self->problem = g_strdup(problem);
  if (copy) {
    self->source = g_timeout_add(PATIENCE_MS, ask_cb, self);
    /* Until the plan says otherwise; the queue checks once more at the start of the job. */
    set_allows(self, !problem);
    return;
  }
  clear_suggestions(self);
  show_sentence(self, problem, FALSE);
  gtk_label_set_text(self->memory, _("Memory"));
  gtk_label_set_text(self->time, "");
  gtk_level_bar_set_value(self->bar, 0);
  set_allows(self, FALSE);
}

gboolean msu_plan_strip_allows(MsuPlanStrip *self) {
  g_return_val_if_fail(MSU_IS_PLAN_STRIP(self), FALSE);
  return self->allows;
}

static void dispose(GObject *object) {
  MsuPlanStrip *self = MSU_PLAN_STRIP(object);
  GtkWidget *child;
  g_clear_handle_id(&self->source, g_source_remove);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(object))))
    gtk_widget_unparent(child);
  g_clear_pointer(&self->params, msa_generate_params_free);
  g_clear_pointer(&self->problem, g_free);
  g_clear_object(&self->planner);
  G_OBJECT_CLASS(msu_plan_strip_parent_class)->dispose(object);
}

static void msu_plan_strip_class_init(MsuPlanStripClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  signals[CHANGED] =
      g_signal_new("changed", MSU_TYPE_PLAN_STRIP, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  signals[APPLY] = g_signal_new("apply", MSU_TYPE_PLAN_STRIP, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                G_TYPE_NONE, 1, MSA_TYPE_GENERATE_PARAMS);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/create/msu-plan-strip.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, memory);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, time);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, bar);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, sentence);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, suggestions);
}

static void msu_plan_strip_init(MsuPlanStrip *self) {
  static const char *const offsets[] = {GTK_LEVEL_BAR_OFFSET_LOW, GTK_LEVEL_BAR_OFFSET_HIGH,
                                        GTK_LEVEL_BAR_OFFSET_FULL};
  gtk_widget_init_template(GTK_WIDGET(self));
  /* A budget well used is no warning, so the bar has one colour, but for the error's. */
  for (gsize i = 0; i < G_N_ELEMENTS(offsets); i++)
    gtk_level_bar_remove_offset_value(self->bar, offsets[i]);
}

GtkWidget *msu_plan_strip_new(MsaPlanner *planner) {
  MsuPlanStrip *self = g_object_new(MSU_TYPE_PLAN_STRIP, NULL);
  self->planner = g_object_ref(planner);
  g_signal_connect_object(planner, "notify::ready", G_CALLBACK(ready_cb), self, G_CONNECT_SWAPPED);
  msu_plan_strip_set(self, NULL, NULL);
  return GTK_WIDGET(self);
}
