#include "widgets/msu-plan-strip.h"

#include <glib/gi18n.h>

#include "plot/ticks.h"
#include "window/msu-format.h"

/* After the last key stroke; a plan is cheap, but not so cheap that each letter needs one, and that of a run
 * looks at the folder's clips too. */
#define CLIP_PATIENCE_MS 60
#define RUN_PATIENCE_MS 120
#define MOST_SUGGESTIONS 5

struct _MsuPlanStrip {
  GtkWidget parent_instance;
  GtkBox *figures;
  GtkLabel *memory, *time, *where, *sentence;
  GtkLevelBar *bar;
  GtkFlowBox *suggestions;
  MsaPlanner *planner;
  MsaGenerateParams *clip; /* what is asked for: one of the two; both NULL: nothing to plan */
  MsaTrainParams *run;
  MsaPlan *plan; /* the newest, whose suggestions the buttons apply; NULL: none */
  char *problem; /* what the form lacks; NULL: nothing */
  guint source;
  gboolean allows;
};

enum { CHANGED, APPLY, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuPlanStrip, msu_plan_strip, GTK_TYPE_WIDGET)

static gboolean has_params(MsuPlanStrip *self) {
  return self->clip || self->run;
}

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
  g_signal_emit(self, signals[APPLY], 0, g_object_get_data(G_OBJECT(button), "suggestion"));
}

static void show_suggestions(MsuPlanStrip *self, const GPtrArray *suggestions) {
  for (guint i = 0; suggestions && i < MIN(suggestions->len, MOST_SUGGESTIONS); i++) {
    MsaPlanSuggestion *suggestion = suggestions->pdata[i];
    GtkWidget *button = gtk_button_new_with_label(suggestion->label);
    g_autofree char *tip = g_strdup_printf(_("Use %s, which fits"), suggestion->label);
    gtk_widget_set_tooltip_text(button, tip);
    g_object_set_data(G_OBJECT(button), "suggestion", suggestion);
    g_signal_connect_object(button, "clicked", G_CALLBACK(apply_cb), self, G_CONNECT_SWAPPED);
    gtk_flow_box_append(self->suggestions, button);
    gtk_widget_set_visible(GTK_WIDGET(self->suggestions), TRUE);
  }
}

static void show_figures(MsuPlanStrip *self, const char *memory, const char *time, double used) {
  gtk_label_set_text(self->memory, memory);
  gtk_label_set_text(self->time, time);
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->memory), memory);
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->time), time);
  gtk_level_bar_set_value(self->bar, used);
}

/* "0.48 s": a step is often shorter than what is worth a word elsewhere. */
static char *step_seconds(double seconds) {
  return seconds < 9.95 ? g_strdup_printf(_("%.2f s"), seconds) : msu_format_seconds(seconds);
}

/* Where the layers of the model lie while it trains. */
static char *places(const MsaPlan *plan) {
  g_autofree char *checkpoint = msu_format_bytes(plan->checkpoint_bytes);
  g_autofree char *state = msu_format_bytes(plan->state_bytes);
  if (plan->disk_layers == 0)
    return g_strdup_printf(_("Every layer in memory; %s on the disk for a checkpoint and the model"),
                           checkpoint);
  /* Translators: layers on the disk, all layers, and bytes of both that are needed there */
  return g_strdup_printf(
      ngettext("%d of %d layer on the disk: %s there while it trains, and %s for a checkpoint and the model",
               "%d of %d layers on the disk: %s there while it trains, and %s for a checkpoint and the model",
               (unsigned long)plan->layers),
      plan->disk_layers, plan->layers, state, checkpoint);
}

/* What a step takes, and how much of that is transfer that no computing hides. */
static char *pace(const MsaPlan *plan) {
  g_autofree char *step = step_seconds(plan->seconds_per_step);
  if (plan->disk_layers == 0)
    return g_strdup_printf(_("About %s a step"), step);
  g_autofree char *moved = msu_format_bytes(plan->moved_bytes);
  if (plan->exposed_seconds < 0.005)
    return g_strdup_printf(_("About %s a step, which moves %s and never waits for the disk"), step, moved);
  g_autofree char *exposed = step_seconds(plan->exposed_seconds);
  return g_strdup_printf(_("About %s a step, which moves %s and waits %s for the disk"), step, moved,
                         exposed);
}

/* Nothing where it does not fit: what counts then is what is missing. */
static void show_where(MsuPlanStrip *self, const MsaPlan *plan) {
  const gboolean shown = self->run && plan && plan->fits;
  gtk_widget_set_visible(GTK_WIDGET(self->where), shown);
  if (!shown)
    return;
  g_autofree char *lie = places(plan), *step = plan->seconds >= 0 ? pace(plan) : NULL;
  g_autofree char *text = step ? g_strdup_printf("%s\n%s", lie, step) : g_strdup(lie);
  gtk_label_set_text(self->where, text);
}

static void show_plan(MsuPlanStrip *self, const MsaPlan *plan) {
  char number[MSU_NUMBER_ROOM];
  g_autofree char *need = msu_format_bytes(plan->host_bytes), *budget = msu_format_bytes(plan->host_budget);
  g_autofree char *steps = g_strdup_printf(ngettext("%s step", "%s steps", (unsigned long)plan->steps),
                                           msu_number_whole(number, plan->steps));
  g_autofree char *memory = NULL, *time = NULL;
  if (self->run && plan->disk_bytes) {
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
  show_figures(self, memory, time,
               plan->host_budget ? CLAMP((double)plan->host_bytes / plan->host_budget, 0.01, 1) : 0);
  show_where(self, plan);
  show_sentence(self, plan->fits && self->problem ? self->problem : plan->sentence, !plan->fits);
  if (!plan->fits)
    show_suggestions(self, plan->suggestions);
}

static void planned_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuPlanStrip) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaPlan) plan = msa_planner_finish(MSA_PLANNER(source), result, &error);
  if (!has_params(self) || (!plan && g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)))
    return;
  clear_suggestions(self);
  g_clear_pointer(&self->plan, msa_plan_free);
  self->plan = g_steal_pointer(&plan);
  if (self->plan) {
    show_plan(self, self->plan);
  } else {
    show_figures(self, _("No plan"), "", 0);
    show_where(self, NULL);
    show_sentence(self, error->message, TRUE);
  }
  set_allows(self, self->plan && self->plan->fits && !self->problem);
}

static gboolean ask_cb(gpointer data) {
  MsuPlanStrip *self = data;
  self->source = 0;
  if (self->clip)
    msa_planner_generate_async(self->planner, self->clip, planned_cb, g_object_ref(self));
  else if (self->run)
    msa_planner_train_async(self->planner, self->run, planned_cb, g_object_ref(self));
  return G_SOURCE_REMOVE;
}

static void ask_soon(MsuPlanStrip *self) {
  g_clear_handle_id(&self->source, g_source_remove);
  if (has_params(self))
    self->source = g_timeout_add(self->run ? RUN_PATIENCE_MS : CLIP_PATIENCE_MS, ask_cb, self);
}

/* Takes the copies of the settings. */
static void set(MsuPlanStrip *self, MsaGenerateParams *clip, MsaTrainParams *run, const char *problem) {
  g_clear_pointer(&self->clip, msa_generate_params_free);
  g_clear_pointer(&self->run, msa_train_params_free);
  self->clip = clip;
  self->run = run;
  g_free(self->problem);
  self->problem = g_strdup(problem);
  ask_soon(self);
  if (!has_params(self)) {
    clear_suggestions(self);
    show_figures(self, _("Memory"), "", 0);
    show_where(self, NULL);
    show_sentence(self, problem, FALSE);
  }
  /* Until the plan says otherwise; the queue checks once more at the start of the job. */
  set_allows(self, has_params(self) && !problem);
}

void msu_plan_strip_set_clip(MsuPlanStrip *self, const MsaGenerateParams *params, const char *problem) {
  g_return_if_fail(MSU_IS_PLAN_STRIP(self));
  set(self, params ? msa_generate_params_copy(params) : NULL, NULL, problem);
}

void msu_plan_strip_set_run(MsuPlanStrip *self, const MsaTrainParams *params, const char *problem) {
  g_return_if_fail(MSU_IS_PLAN_STRIP(self));
  /* With the disk it is too long for one line. */
  gtk_orientable_set_orientation(GTK_ORIENTABLE(self->figures), GTK_ORIENTATION_VERTICAL);
  set(self, NULL, params ? msa_train_params_copy(params) : NULL, problem);
}

gboolean msu_plan_strip_allows(MsuPlanStrip *self) {
  g_return_val_if_fail(MSU_IS_PLAN_STRIP(self), FALSE);
  return self->allows;
}

double msu_plan_strip_get_seconds_per_step(MsuPlanStrip *self) {
  g_return_val_if_fail(MSU_IS_PLAN_STRIP(self), -1);
  return self->plan && self->plan->seconds >= 0 ? self->plan->seconds_per_step : -1;
}

guint64 msu_plan_strip_get_automatic_memory(MsuPlanStrip *self) {
  g_return_val_if_fail(MSU_IS_PLAN_STRIP(self), 0);
  return self->plan && self->plan->automatic ? self->plan->host_budget : 0;
}

static void dispose(GObject *object) {
  MsuPlanStrip *self = MSU_PLAN_STRIP(object);
  GtkWidget *child;
  g_clear_handle_id(&self->source, g_source_remove);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(object))))
    gtk_widget_unparent(child);
  g_clear_pointer(&self->clip, msa_generate_params_free);
  g_clear_pointer(&self->run, msa_train_params_free);
  g_clear_pointer(&self->plan, msa_plan_free);
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
                                G_TYPE_NONE, 1, G_TYPE_POINTER);
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/widgets/msu-plan-strip.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, figures);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, memory);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, time);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, bar);
  gtk_widget_class_bind_template_child(widget_class, MsuPlanStrip, where);
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
  show_figures(self, _("Memory"), "", 0);
}

GtkWidget *msu_plan_strip_new(MsaPlanner *planner) {
  MsuPlanStrip *self = g_object_new(MSU_TYPE_PLAN_STRIP, NULL);
  self->planner = g_object_ref(planner);
  g_signal_connect_object(planner, "notify::ready", G_CALLBACK(ask_soon), self, G_CONNECT_SWAPPED);
  return GTK_WIDGET(self);
}
