#include "train/msu-new-run.h"
#include "train/msu-dataset-table.h"
#include "train/msu-recipe.h"
#include "widgets/msu-plan-strip.h"

#include <glib/gi18n.h>

/* Seconds of work that a crash may cost: so often a checkpoint is saved. */
#define AT_RISK 120.0

struct _MsuNewRun {
  GtkWidget parent;
  GtkBox *table_place, *plan_place;
  GtkScrolledWindow *recipe_place;
  GtkWidget *start;
  GtkWidget *table, *recipe, *plan;
  MsaStudio *studio;
  char *captions; /* policy of the check that is shown */
};

G_DEFINE_FINAL_TYPE(MsuNewRun, msu_new_run, GTK_TYPE_WIDGET)

enum { STARTED, CHOOSE, SIGNALS };
static guint signals[SIGNALS];

static MsaTrainParams *current_params(MsuNewRun *self) {
  MsaTrainParams *params = msu_recipe_get_params(MSU_RECIPE(self->recipe));
  params->dataset = g_strdup(msu_dataset_table_get_folder(MSU_DATASET_TABLE(self->table)));
  return params;
}

static char *find_problem(MsuNewRun *self) {
  MsuDatasetTable *table = MSU_DATASET_TABLE(self->table);
  guint bare = msu_dataset_table_count_uncaptioned(table);
  if (msu_dataset_table_is_checking(table))
    return g_strdup(_("The clips are being looked at."));
  if (msu_dataset_table_count_usable(table) == 0)
    return g_strdup(_("There is no clip to learn from."));
  if (bare && g_strcmp0(self->captions, "error") == 0)
    return g_strdup_printf(
        ngettext("%u clip has no caption. Write one, or choose what is done under Missing captions.",
                 "%u clips have no caption. Write them, or choose what is done under Missing captions.",
                 bare),
        bare);
  return msu_recipe_get_problem(MSU_RECIPE(self->recipe));
}

static void update(MsuNewRun *self) {
  if (!msu_dataset_table_get_folder(MSU_DATASET_TABLE(self->table)))
    return;
  g_autofree char *problem = find_problem(self);
  g_autoptr(MsaTrainParams) params = current_params(self);
  msu_plan_strip_set_run(MSU_PLAN_STRIP(self->plan), problem ? NULL : params, problem);
}

static void table_changed_cb(MsuNewRun *self) {
  MsuDatasetTable *table = MSU_DATASET_TABLE(self->table);
  if (!msu_dataset_table_is_checking(table))
    msu_recipe_set_shortest(MSU_RECIPE(self->recipe), msu_dataset_table_shortest_seconds(table));
  update(self);
}

static void recipe_changed_cb(MsuNewRun *self) {
  g_autoptr(MsaTrainParams) params = current_params(self);
  if (params->dataset && g_strcmp0(params->missing_caption, self->captions) != 0) {
    g_free(self->captions);
    self->captions = g_strdup(params->missing_caption);
    msu_dataset_table_check(MSU_DATASET_TABLE(self->table), params->dataset, self->captions);
  }
  update(self);
}

static void plan_changed_cb(MsuNewRun *self) {
  const guint64 automatic = msu_plan_strip_get_automatic_memory(MSU_PLAN_STRIP(self->plan));
  if (automatic)
    msu_recipe_set_automatic_memory(MSU_RECIPE(self->recipe), automatic);
  gtk_widget_set_sensitive(self->start, msu_plan_strip_allows(MSU_PLAN_STRIP(self->plan)));
}

static void apply_cb(MsuNewRun *self, const MsaPlanSuggestion *suggestion) {
  if (suggestion->train)
    msu_recipe_set_params(MSU_RECIPE(self->recipe), suggestion->train);
}

static void choose_cb(MsuNewRun *self) {
  g_signal_emit(self, signals[CHOOSE], 0);
}

static void start_cb(MsuNewRun *self) {
  g_autoptr(MsaTrainParams) params = current_params(self);
  MsaQueue *queue = msa_studio_get_queue(self->studio);
  double seconds = msu_plan_strip_get_seconds_per_step(MSU_PLAN_STRIP(self->plan));
  if (seconds > 0)
    params->save_every = (gint64)CLAMP(AT_RISK / seconds, 1, params->save_every);
  g_autoptr(MsaJob) job = msa_queue_add_train(queue, params);
  g_signal_emit(self, signals[STARTED], 0, job);
}

void msu_new_run_set_folder(MsuNewRun *self, const char *folder) {
  g_return_if_fail(MSU_IS_NEW_RUN(self) && folder);
  g_autofree char *shown = g_filename_display_basename(folder);
  g_autoptr(MsaTrainParams) params = msu_recipe_get_params(MSU_RECIPE(self->recipe));
  g_free(self->captions);
  self->captions = g_strdup(params->missing_caption);
  msu_dataset_table_check(MSU_DATASET_TABLE(self->table), folder, self->captions);
  msu_recipe_suggest_name(MSU_RECIPE(self->recipe), shown);
}

static void msu_new_run_dispose(GObject *object) {
  MsuNewRun *self = MSU_NEW_RUN(object);
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self))))
    gtk_widget_unparent(child);
  g_clear_object(&self->studio);
  g_clear_pointer(&self->captions, g_free);
  G_OBJECT_CLASS(msu_new_run_parent_class)->dispose(object);
}

static void msu_new_run_class_init(MsuNewRunClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = msu_new_run_dispose;
  signals[STARTED] = g_signal_new("started", MSU_TYPE_NEW_RUN, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                  G_TYPE_NONE, 1, MSA_TYPE_JOB);
  signals[CHOOSE] =
      g_signal_new("choose", MSU_TYPE_NEW_RUN, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/train/msu-new-run.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuNewRun, table_place);
  gtk_widget_class_bind_template_child(widget_class, MsuNewRun, recipe_place);
  gtk_widget_class_bind_template_child(widget_class, MsuNewRun, plan_place);
  gtk_widget_class_bind_template_child(widget_class, MsuNewRun, start);
  gtk_widget_class_bind_template_callback(widget_class, start_cb);
}

static void msu_new_run_init(MsuNewRun *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
}

GtkWidget *msu_new_run_new(MsaStudio *studio) {
  MsuNewRun *self = g_object_new(MSU_TYPE_NEW_RUN, NULL);
  self->studio = g_object_ref(studio);
  self->table = msu_dataset_table_new();
  self->recipe = msu_recipe_new(studio);
  self->plan = msu_plan_strip_new(msa_studio_get_planner(studio));
  gtk_box_append(self->table_place, self->table);
  gtk_widget_set_hexpand(self->table, TRUE);
  gtk_scrolled_window_set_child(self->recipe_place, self->recipe);
  gtk_box_append(self->plan_place, self->plan);
  g_signal_connect_object(self->table, "changed", G_CALLBACK(table_changed_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->table, "choose", G_CALLBACK(choose_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->recipe, "changed", G_CALLBACK(recipe_changed_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->plan, "changed", G_CALLBACK(plan_changed_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->plan, "apply", G_CALLBACK(apply_cb), self, G_CONNECT_SWAPPED);
  return GTK_WIDGET(self);
}
