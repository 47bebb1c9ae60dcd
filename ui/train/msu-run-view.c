#include "train/msu-run-view.h"
#include "train/msu-run-graphs.h"
#include "train/msu-run-row.h"
#include "train/msu-run-saving.h"
#include "window/msu-format.h"
#include "window/msu-message.h"
#include "window/msu-window.h"

#include <glib/gi18n.h>
#include <math.h>

struct _MsuRunView {
  GtkWidget parent;
  GtkLabel *name, *place, *where;
  GtkProgressBar *bar;
  GtkWidget *pause, *resume, *stop, *retry, *use, *compare;
  GtkBox *messages, *others;
  GtkWidget *graphs;
  GtkWidget *failure; /* message of the run's error; NULL: none */
  MsaStudio *studio;
  MsaRun *run;
  MsaJob *job;         /* of the run, as far as it is listened to; NULL: none */
  GPtrArray *compared; /* of MsaRun */
  MsaSeries *told[4];  /* of the run: see places[] */
};

G_DEFINE_FINAL_TYPE(MsuRunView, msu_run_view, GTK_TYPE_WIDGET)

/* Curves that tell where the layers of the model lie and what passes through memory. */
static const char *const places[] = {"layers", "disk_layers", "read_bytes", "written_bytes"};

static void clear_messages(MsuRunView *self) {
  GtkWidget *child;
  self->failure = NULL;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self->messages))))
    gtk_box_remove(self->messages, child);
}

static MsuMessage *tell(MsuRunView *self, enum msu_message_kind kind, const char *text) {
  GtkWidget *message = msu_message_new(kind, text);
  gtk_box_append(self->messages, message);
  return MSU_MESSAGE(message);
}

static void pause_cb(MsuRunView *self) {
  MsaJob *job = msa_run_get_job(self->run);
  if (job)
    msa_queue_pause_job(msa_studio_get_queue(self->studio), job);
}

static void resume_cb(MsuRunView *self) {
  MsaJob *job = msa_run_get_job(self->run);
  if (!job)
    return;
  msa_queue_resume_job(msa_studio_get_queue(self->studio), job);
  msa_queue_set_paused(msa_studio_get_queue(self->studio), FALSE);
}

static void stop_cb(MsuRunView *self) {
  MsaJob *job = msa_run_get_job(self->run);
  if (job)
    msa_queue_cancel_job(msa_studio_get_queue(self->studio), job);
}

static void retry_cb(MsuRunView *self) {
  MsaJob *job = msa_run_get_job(self->run);
  if (!job)
    return;
  msa_queue_retry_job(msa_studio_get_queue(self->studio), job);
  msa_queue_set_paused(msa_studio_get_queue(self->studio), FALSE);
}

static void use_cb(MsuRunView *self) {
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  if (!window)
    return;
  g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
  const MsaTrainParams *trained = msa_run_get_params(self->run);
  g_free(params->model);
  params->model = g_strdup(msa_run_get_folder(self->run));
  g_free(params->prompt);
  params->prompt = g_strdup(trained->sample_prompt ? trained->sample_prompt : "");
  params->width = trained->width;
  params->height = trained->height;
  params->frames = trained->frames;
  msu_window_use_params(window, params, NULL);
}

static void update_failure(MsuRunView *self, enum msa_job_state state) {
  g_autofree char *error = NULL;
  g_object_get(self->run, "error", &error, NULL);
  if (state != MSA_JOB_FAILED) {
    if (self->failure)
      clear_messages(self);
  } else if (!self->failure) {
    MsuMessage *message = tell(self, MSU_MESSAGE_ERROR, error ? error : _("The run failed."));
    msu_message_add_copy(message);
    self->failure = GTK_WIDGET(message);
    g_object_add_weak_pointer(G_OBJECT(message), (gpointer *)&self->failure);
  }
}

/* Steps say all while it trains; otherwise what goes on comes first. */
static char *prefixed_progress(MsuRunView *self, enum msa_job_state state, const char *progress) {
  MsaJob *job = msa_run_get_job(self->run);
  if (state != MSA_JOB_RUNNING)
    return g_strdup_printf("%s · %s", msu_run_state_name(state), progress);
  if (!job || g_strcmp0(msa_job_get_phase(job), "train") == 0)
    return g_strdup(progress);
  g_autofree char *phase = msu_format_phase(msa_job_get_phase(job));
  return g_strdup_printf("%s · %s", phase, progress);
}

static void update(MsuRunView *self) {
  if (!self->run)
    return;
  enum msa_job_state state = msa_run_get_state(self->run);
  gint64 steps = msa_run_get_steps(self->run), step = msa_run_get_step(self->run);
  gboolean here = msa_run_get_job(self->run) != NULL;
  gboolean ended = state == MSA_JOB_DONE || state == MSA_JOB_CANCELLED;
  g_autofree char *progress = msu_run_progress(self->run);
  gtk_label_set_text(self->name, msa_run_get_name(self->run));
  g_autofree char *place = prefixed_progress(self, state, progress);
  gtk_label_set_text(self->place, place);
  gtk_progress_bar_set_fraction(self->bar, steps > 0 ? CLAMP((double)step / (double)steps, 0, 1) : 0);
  gtk_widget_set_visible(GTK_WIDGET(self->bar), !ended);
  gtk_widget_set_visible(self->pause, here && (state == MSA_JOB_RUNNING || state == MSA_JOB_STOPPING));
  gtk_widget_set_sensitive(self->pause, state == MSA_JOB_RUNNING);
  gtk_widget_set_visible(self->resume, here && state == MSA_JOB_PAUSED);
  gtk_widget_set_visible(self->retry, here && state == MSA_JOB_FAILED);
  gtk_widget_set_visible(self->stop, here && !ended);
  gtk_widget_set_sensitive(self->stop, state != MSA_JOB_STOPPING);
  gtk_button_set_label(GTK_BUTTON(self->stop), step > 0 ? _("Stop and keep") : _("Cancel"));
  gtk_widget_set_visible(self->use, ended && step > 0);
  update_failure(self, state);
}

/* The last value; NaN: none. */
static double last_of(MsaSeries *series) {
  const gsize length = msa_series_get_length(series);
  return length ? msa_series_get_y(series)[length - 1] : NAN;
}

static void update_where(MsuRunView *self) {
  double last[G_N_ELEMENTS(places)];
  for (guint i = 0; i < G_N_ELEMENTS(places); i++)
    last[i] = self->told[i] ? last_of(self->told[i]) : NAN;
  const gboolean known = last[0] > 0 && last[1] >= 0;
  gtk_widget_set_visible(GTK_WIDGET(self->where), known);
  if (known && last[1] == 0) {
    gtk_label_set_text(self->where, _("Every layer in memory"));
  } else if (known) {
    g_autofree char *read = msu_format_bytes(last[2] > 0 ? (guint64)last[2] : 0),
                    *written = msu_format_bytes(last[3] > 0 ? (guint64)last[3] : 0);
    /* Translators: layers on the disk, all layers, and bytes */
    g_autofree char *text = g_strdup_printf(
        ngettext("%d of %d layer on the disk; a step reads %s and writes %s",
                 "%d of %d layers on the disk; a step reads %s and writes %s", (unsigned long)last[0]),
        (int)last[1], (int)last[0], read, written);
    gtk_label_set_text(self->where, text);
  }
}

static void follow_places(MsuRunView *self) {
  for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
    MsaSeries *series = self->run ? msa_run_get_series(self->run, places[i]) : NULL;
    if (self->told[i])
      g_signal_handlers_disconnect_by_data(self->told[i], self);
    g_set_object(&self->told[i], series);
    if (series)
      g_signal_connect_object(series, "changed", G_CALLBACK(update_where), self, G_CONNECT_SWAPPED);
  }
  update_where(self);
}

static void show_curves(MsuRunView *self) {
  msu_run_graphs_set_runs(MSU_RUN_GRAPHS(self->graphs), self->run, self->compared);
}

static void compare_toggled_cb(GtkCheckButton *check, gpointer data) {
  MsuRunView *self = data;
  MsaRun *run = g_object_get_data(G_OBJECT(check), "run");
  if (gtk_check_button_get_active(check))
    g_ptr_array_add(self->compared, g_object_ref(run));
  else
    g_ptr_array_remove(self->compared, run);
  show_curves(self);
}

/* The list is made when it is opened, so that it needs no care before. */
static void compare_shown_cb(MsuRunView *self) {
  GListModel *runs = msa_studio_get_runs(self->studio);
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self->others))))
    gtk_box_remove(self->others, child);
  for (guint i = 0; i < g_list_model_get_n_items(runs); i++) {
    g_autoptr(MsaRun) run = g_list_model_get_item(runs, i);
    if (run == self->run)
      continue;
    GtkWidget *check = gtk_check_button_new_with_label(msa_run_get_name(run));
    gtk_check_button_set_active(GTK_CHECK_BUTTON(check), g_ptr_array_find(self->compared, run, NULL));
    g_object_set_data_full(G_OBJECT(check), "run", g_object_ref(run), g_object_unref);
    g_signal_connect(check, "toggled", G_CALLBACK(compare_toggled_cb), self);
    gtk_box_append(self->others, check);
  }
  if (!gtk_widget_get_first_child(GTK_WIDGET(self->others)))
    gtk_box_append(self->others, gtk_label_new(_("There is no other run to compare with")));
}

static void log_toggled_cb(MsuRunView *self, GtkToggleButton *button) {
  msu_run_graphs_set_log(MSU_RUN_GRAPHS(self->graphs), gtk_toggle_button_get_active(button));
}

static void saved(gpointer owner, const char *path, const char *error) {
  MsuRunView *self = owner;
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  if (error) {
    if (self->studio)
      tell(self, MSU_MESSAGE_ERROR, error);
  } else if (window) {
    g_autofree char *name = g_path_get_basename(path);
    g_autofree char *text = g_strdup_printf(_("Saved as “%s”"), name);
    msu_window_toast(window, text, NULL, NULL, NULL);
  }
}

static void save_png_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  MsuRunView *self = MSU_RUN_VIEW(widget);
  if (self->run)
    msu_run_saving_png(MSU_RUN_GRAPHS(self->graphs), self->run, saved, G_OBJECT(self));
}

static void save_csv_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  MsuRunView *self = MSU_RUN_VIEW(widget);
  if (self->run)
    msu_run_saving_csv(widget, self->run, saved, G_OBJECT(self));
}

static void save_trace_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  MsuRunView *self = MSU_RUN_VIEW(widget);
  if (self->run)
    msu_run_saving_trace(widget, self->run, saved, G_OBJECT(self));
}

static void copy_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  MsuRunView *self = MSU_RUN_VIEW(widget);
  MsuWindow *window = msu_window_of(widget);
  msu_run_saving_copy(MSU_RUN_GRAPHS(self->graphs));
  if (window)
    msu_window_toast(window, _("Picture copied"), NULL, NULL, NULL);
}

static void forget_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  MsuRunView *self = MSU_RUN_VIEW(widget);
  if (self->run)
    msa_studio_forget_run(self->studio, self->run);
}

static void update_actions(MsuRunView *self) {
  const enum msa_job_state state = self->run ? msa_run_get_state(self->run) : MSA_JOB_QUEUED;
  gtk_widget_action_set_enabled(GTK_WIDGET(self), "run.forget", self->run && !msa_run_get_job(self->run));
  /* the trace is written when a run ends or rests */
  gtk_widget_action_set_enabled(
      GTK_WIDGET(self), "run.save-trace",
      self->run && msa_run_get_step(self->run) > 0 &&
          (state == MSA_JOB_DONE || state == MSA_JOB_PAUSED || state == MSA_JOB_CANCELLED));
}

static void follow_job(MsuRunView *self) {
  MsaJob *job = self->run ? msa_run_get_job(self->run) : NULL;
  if (job == self->job)
    return;
  if (self->job)
    g_signal_handlers_disconnect_by_data(self->job, self);
  g_set_object(&self->job, job);
  if (job)
    g_signal_connect_object(job, "notify::phase", G_CALLBACK(update), self, G_CONNECT_SWAPPED);
}

static void state_cb(MsuRunView *self) {
  follow_job(self);
  update(self);
  update_actions(self);
}

void msu_run_view_set_run(MsuRunView *self, MsaRun *run) {
  static const char *const progress[] = {"notify::name", "notify::step", "notify::steps",
                                         "notify::seconds-left", "notify::error"};
  g_return_if_fail(MSU_IS_RUN_VIEW(self));
  if (run == self->run)
    return;
  if (self->run)
    g_signal_handlers_disconnect_by_data(self->run, self);
  g_set_object(&self->run, run);
  g_ptr_array_set_size(self->compared, 0);
  clear_messages(self);
  for (gsize i = 0; run && i < G_N_ELEMENTS(progress); i++)
    g_signal_connect_object(run, progress[i], G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  if (run)
    g_signal_connect_object(run, "notify::state", G_CALLBACK(state_cb), self, G_CONNECT_SWAPPED);
  show_curves(self);
  follow_places(self);
  state_cb(self);
}

MsaRun *msu_run_view_get_run(MsuRunView *view) {
  g_return_val_if_fail(MSU_IS_RUN_VIEW(view), NULL);
  return view->run;
}

static void msu_run_view_dispose(GObject *object) {
  MsuRunView *self = MSU_RUN_VIEW(object);
  GtkWidget *child;
  if (self->failure)
    g_object_remove_weak_pointer(G_OBJECT(self->failure), (gpointer *)&self->failure);
  self->failure = NULL;
  for (guint i = 0; i < G_N_ELEMENTS(places); i++)
    g_clear_object(&self->told[i]);
  g_clear_object(&self->run);
  g_clear_object(&self->job);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self))))
    gtk_widget_unparent(child);
  g_clear_object(&self->studio);
  G_OBJECT_CLASS(msu_run_view_parent_class)->dispose(object);
}

static void msu_run_view_finalize(GObject *object) {
  g_ptr_array_unref(MSU_RUN_VIEW(object)->compared);
  G_OBJECT_CLASS(msu_run_view_parent_class)->finalize(object);
}

static void msu_run_view_class_init(MsuRunViewClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = msu_run_view_dispose;
  G_OBJECT_CLASS(klass)->finalize = msu_run_view_finalize;
  g_type_ensure(MSU_TYPE_RUN_GRAPHS);
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/train/msu-run-view.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, name);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, place);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, where);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, bar);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, pause);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, resume);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, stop);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, retry);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, use);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, compare);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, messages);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, others);
  gtk_widget_class_bind_template_child(widget_class, MsuRunView, graphs);
  gtk_widget_class_bind_template_callback(widget_class, pause_cb);
  gtk_widget_class_bind_template_callback(widget_class, resume_cb);
  gtk_widget_class_bind_template_callback(widget_class, stop_cb);
  gtk_widget_class_bind_template_callback(widget_class, retry_cb);
  gtk_widget_class_bind_template_callback(widget_class, use_cb);
  gtk_widget_class_bind_template_callback(widget_class, compare_shown_cb);
  gtk_widget_class_bind_template_callback(widget_class, log_toggled_cb);
  gtk_widget_class_install_action(widget_class, "run.save-png", NULL, save_png_action);
  gtk_widget_class_install_action(widget_class, "run.save-csv", NULL, save_csv_action);
  gtk_widget_class_install_action(widget_class, "run.save-trace", NULL, save_trace_action);
  gtk_widget_class_install_action(widget_class, "run.copy", NULL, copy_action);
  gtk_widget_class_install_action(widget_class, "run.forget", NULL, forget_action);
}

static void msu_run_view_init(MsuRunView *self) {
  self->compared = g_ptr_array_new_with_free_func(g_object_unref);
  gtk_widget_init_template(GTK_WIDGET(self));
}

GtkWidget *msu_run_view_new(MsaStudio *studio) {
  MsuRunView *self = g_object_new(MSU_TYPE_RUN_VIEW, NULL);
  self->studio = g_object_ref(studio);
  /* a run tells of its state, but not of its job: that comes and goes with the queue */
  g_signal_connect_object(msa_studio_get_queue(studio), "items-changed", G_CALLBACK(state_cb), self,
                          G_CONNECT_SWAPPED);
  return GTK_WIDGET(self);
}
