#include "train/msu-run-row.h"
#include "plot/ticks.h"
#include "window/msu-format.h"

#include <glib/gi18n.h>
#include <math.h>

struct _MsuRunRow {
  GtkListBoxRow parent;
  MsaRun *run;
  GtkWidget *dot, *name, *place;
};

G_DEFINE_FINAL_TYPE(MsuRunRow, msu_run_row, GTK_TYPE_LIST_BOX_ROW)

const char *msu_run_state_name(enum msa_job_state state) {
  switch (state) {
  case MSA_JOB_QUEUED:
    return _("Waiting");
  case MSA_JOB_RUNNING:
    return _("Running");
  case MSA_JOB_STOPPING:
    return _("Stopping");
  case MSA_JOB_PAUSED:
    return _("Paused");
  case MSA_JOB_DONE:
    return _("Done");
  case MSA_JOB_FAILED:
    return _("Failed");
  case MSA_JOB_CANCELLED:
    return _("Stopped and kept");
  }
  return "";
}

/* Class of the dot by state. */
static const char *const dots[] = {"waiting", "running", "running", "paused", "done", "failed", "kept"};

char *msu_run_progress(MsaRun *run) {
  char step[MSU_NUMBER_ROOM], steps[MSU_NUMBER_ROOM];
  double left = -1;
  enum msa_job_state state = msa_run_get_state(run);
  msu_number_whole(step, msa_run_get_step(run));
  msu_number_whole(steps, msa_run_get_steps(run));
  if (state == MSA_JOB_RUNNING)
    g_object_get(run, "seconds-left", &left, NULL);
  if (state == MSA_JOB_QUEUED && msa_run_get_step(run) == 0)
    return g_strdup_printf(ngettext("%s step", "%s steps", (unsigned long)msa_run_get_steps(run)), steps);
  if (left < 0)
    return g_strdup_printf(_("Step %s of %s"), step, steps);
  g_autofree char *time = msu_format_seconds(left);
  return g_strdup_printf(_("Step %s of %s, %s left"), step, steps, time);
}

static void update(MsuRunRow *self) {
  enum msa_job_state state = msa_run_get_state(self->run);
  double loss = msa_run_get_loss(self->run);
  char step[MSU_NUMBER_ROOM], number[MSU_NUMBER_ROOM];
  g_autofree char *place = NULL;
  msu_number_whole(step, msa_run_get_step(self->run));
  if (isfinite(loss))
    place = g_strdup_printf(_("Step %s, loss %s"), step, msu_number_value(number, loss, NULL));
  else
    place = g_strdup(msu_run_state_name(state));
  gtk_label_set_text(GTK_LABEL(self->name), msa_run_get_name(self->run));
  gtk_label_set_text(GTK_LABEL(self->place), place);
  for (gsize i = 0; i < G_N_ELEMENTS(dots); i++)
    gtk_widget_remove_css_class(self->dot, dots[i]);
  gtk_widget_add_css_class(self->dot, dots[state]);
  g_autofree char *spoken =
      g_strdup_printf("%s: %s, %s", msa_run_get_name(self->run), msu_run_state_name(state), place);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self), GTK_ACCESSIBLE_PROPERTY_LABEL, spoken, -1);
  gtk_widget_set_tooltip_text(GTK_WIDGET(self), spoken);
}

static void msu_run_row_dispose(GObject *object) {
  g_clear_object(&MSU_RUN_ROW(object)->run);
  G_OBJECT_CLASS(msu_run_row_parent_class)->dispose(object);
}

static void msu_run_row_class_init(MsuRunRowClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = msu_run_row_dispose;
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/train/msu-run-row.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuRunRow, dot);
  gtk_widget_class_bind_template_child(widget_class, MsuRunRow, name);
  gtk_widget_class_bind_template_child(widget_class, MsuRunRow, place);
}

static void msu_run_row_init(MsuRunRow *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
}

GtkWidget *msu_run_row_new(MsaRun *run) {
  static const char *const what[] = {"notify::state", "notify::step", "notify::loss", "notify::name"};
  MsuRunRow *self = g_object_new(MSU_TYPE_RUN_ROW, NULL);
  self->run = g_object_ref(run);
  for (gsize i = 0; i < G_N_ELEMENTS(what); i++)
    g_signal_connect_object(run, what[i], G_CALLBACK(update), self, G_CONNECT_SWAPPED);
  update(self);
  return GTK_WIDGET(self);
}

MsaRun *msu_run_row_get_run(MsuRunRow *row) {
  g_return_val_if_fail(MSU_IS_RUN_ROW(row), NULL);
  return row->run;
}
