#include "create/msu-create-stage.h"
#include "player/msu-player.h"
#include "widgets/msu-moving-picture.h"
#include "window/msu-format.h"
#include "window/msu-window.h"
#include <glib/gi18n.h>
#include <inttypes.h>

#define MOST_EXAMPLES 3

struct _MsuCreateStage {
  GtkWidget parent_instance;
  GtkStack *stack, *picture_stack;
  GtkLabel *hint, *waiting, *place, *title, *facts;
  GtkBox *examples, *done_box;
  GtkSpinner *spinner;
  GtkProgressBar *bar;
  GtkWidget *resume, *stop, *use_seed, *vary, *keep, *pause, *discard;
  GtkPopover *stop_popover;
  AdwStatusPage *failure;
  GtkWidget *picture, *player;
  MsaQueue *queue;
  MsaModel *model;
  MsaJob *job;
  gulong job_handler;
  MsaClip *clip;
};

enum { EXAMPLE, USE_SEED, VARY, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuCreateStage, msu_create_stage, GTK_TYPE_WIDGET)

/* preview: what the clip looked like while it formed; NULL: not known. */
static void show_clip(MsuCreateStage *self, MsaClip *clip, MsaFrames *preview) {
  const MsaGenerateParams *params = msa_clip_get_params(clip);
  g_autofree char *facts = msu_format_clip(clip);
  g_autofree char *all = NULL;
  if (params && params->seed >= 0 && msa_clip_get_seconds(clip) > 0) {
    g_autofree char *took = msu_format_seconds(msa_clip_get_seconds(clip));
    all = g_strdup_printf(_("%s, seed %" PRId64 ", made in %s"), facts, params->seed, took);
  }
  g_set_object(&self->clip, clip);
  gtk_label_set_text(self->title, msa_clip_get_prompt(clip) ? msa_clip_get_prompt(clip) : "");
  gtk_label_set_text(self->facts, all ? all : facts);
  gtk_widget_set_sensitive(self->use_seed, params && params->seed >= 0);
  gtk_widget_set_sensitive(self->vary, params != NULL);
  if (g_strcmp0(msu_player_get_path(MSU_PLAYER(self->player)), msa_clip_get_path(clip))) {
    msu_player_set_path(MSU_PLAYER(self->player), msa_clip_get_path(clip));
    if (preview)
      msu_player_set_poster(MSU_PLAYER(self->player), preview);
  }
  msu_player_set_loop(MSU_PLAYER(self->player), TRUE);
  msu_player_set_playing(MSU_PLAYER(self->player), TRUE);
  gtk_stack_set_visible_child_name(self->stack, "done");
}

static void show_forming(MsuCreateStage *self) {
  const enum msa_job_state state = msa_job_get_state(self->job);
  const gboolean paused = state == MSA_JOB_PAUSED, waits = state == MSA_JOB_QUEUED;
  MsaFrames *preview = msa_job_get_preview(self->job);
  g_autofree char *place = msu_format_job(self->job);
  g_autofree char *phase = msu_format_phase(msa_job_get_phase(self->job));
  msu_moving_picture_set_frames(MSU_MOVING_PICTURE(self->picture), preview);
  gtk_stack_set_visible_child_name(self->picture_stack, preview ? "picture" : "waiting");
  gtk_spinner_set_spinning(self->spinner, !preview && state == MSA_JOB_RUNNING);
  gtk_widget_set_visible(GTK_WIDGET(self->spinner), state == MSA_JOB_RUNNING);
  gtk_label_set_text(self->waiting, waits ? _("Waiting in the queue") : paused ? _("Paused") : phase);
  gtk_label_set_text(self->place, place);
  gtk_progress_bar_set_fraction(self->bar, CLAMP(msa_job_get_fraction(self->job), 0, 1));
  gtk_widget_set_visible(self->resume, paused);
  gtk_widget_set_sensitive(self->stop, state != MSA_JOB_STOPPING);
  /* Only what has begun can be kept or paused. */
  gtk_widget_set_visible(self->keep, preview != NULL && !waits);
  gtk_widget_set_visible(self->pause, state == MSA_JOB_RUNNING);
  gtk_stack_set_visible_child_name(self->stack, "forming");
}

static void set_job(MsuCreateStage *self, MsaJob *job);

static void show_made(MsuCreateStage *self) {
  MsuMovingPicture *picture = MSU_MOVING_PICTURE(self->picture);
  g_autoptr(MsaClip) clip = g_object_ref(msa_job_get_clip(self->job));
  set_job(self, NULL);
  show_clip(self, clip, msu_moving_picture_get_frames(picture));
  msu_moving_picture_set_frames(picture, NULL);
}

static void update(MsuCreateStage *self) {
  if (!self->job)
    return;
  switch (msa_job_get_state(self->job)) {
  case MSA_JOB_QUEUED:
  case MSA_JOB_RUNNING:
  case MSA_JOB_STOPPING:
  case MSA_JOB_PAUSED:
    show_forming(self);
    return;
  case MSA_JOB_DONE:
  case MSA_JOB_CANCELLED:
    if (msa_job_get_clip(self->job))
      show_made(self);
    else if (msa_job_get_state(self->job) == MSA_JOB_CANCELLED)
      msu_create_stage_show_job(self, NULL);
    return;
  case MSA_JOB_FAILED: {
    const char *error = msa_job_get_error(self->job);
    g_autofree char *text = g_markup_escape_text(error ? error : _("The reason is not known."), -1);
    adw_status_page_set_description(self->failure, text);
    gtk_stack_set_visible_child_name(self->stack, "failed");
    return;
  }
  }
}

static void set_job(MsuCreateStage *self, MsaJob *job) {
  if (job == self->job)
    return;
  if (self->job)
    g_clear_signal_handler(&self->job_handler, self->job);
  g_set_object(&self->job, job);
  if (job)
    self->job_handler = g_signal_connect_swapped(job, "notify", G_CALLBACK(update), self);
}

void msu_create_stage_show_job(MsuCreateStage *self, MsaJob *job) {
  g_return_if_fail(MSU_IS_CREATE_STAGE(self));
  set_job(self, job);
  g_clear_object(&self->clip);
  msu_player_set_path(MSU_PLAYER(self->player), NULL);
  if (job) {
    update(self);
  } else {
    msu_moving_picture_set_frames(MSU_MOVING_PICTURE(self->picture), NULL);
    gtk_stack_set_visible_child_name(self->stack, "empty");
  }
}

void msu_create_stage_show_clip(MsuCreateStage *self, MsaClip *clip) {
  g_return_if_fail(MSU_IS_CREATE_STAGE(self));
  set_job(self, NULL);
  show_clip(self, clip, NULL);
  msu_moving_picture_set_frames(MSU_MOVING_PICTURE(self->picture), NULL);
}

MsaJob *msu_create_stage_get_job(MsuCreateStage *self) {
  g_return_val_if_fail(MSU_IS_CREATE_STAGE(self), NULL);
  return self->job;
}

static void example_cb(MsuCreateStage *self, GtkButton *button) {
  g_signal_emit(self, signals[EXAMPLE], 0, g_object_get_data(G_OBJECT(button), "prompt"));
}

static void add_example(MsuCreateStage *self, const char *prompt) {
  GtkWidget *button = gtk_button_new();
  GtkWidget *label = gtk_label_new(prompt);
  gtk_label_set_wrap(GTK_LABEL(label), TRUE);
  gtk_label_set_max_width_chars(GTK_LABEL(label), 60);
  gtk_label_set_xalign(GTK_LABEL(label), 0);
  gtk_button_set_child(GTK_BUTTON(button), label);
  gtk_widget_set_tooltip_text(button, _("Create a clip of this"));
  gtk_accessible_update_property(GTK_ACCESSIBLE(button), GTK_ACCESSIBLE_PROPERTY_LABEL, prompt, -1);
  gtk_widget_add_css_class(button, "example");
  g_object_set_data_full(G_OBJECT(button), "prompt", g_strdup(prompt), g_free);
  g_signal_connect_object(button, "clicked", G_CALLBACK(example_cb), self, G_CONNECT_SWAPPED);
  gtk_box_append(self->examples, button);
}

void msu_create_stage_set_model(MsuCreateStage *self, MsaModel *model) {
  GtkWidget *child;
  g_return_if_fail(MSU_IS_CREATE_STAGE(self));
  if (!g_set_object(&self->model, model))
    return;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self->examples))))
    gtk_box_remove(self->examples, child);
  const char *const *examples = model ? msa_model_get_examples(model) : NULL;
  for (guint i = 0; examples && examples[i] && i < MOST_EXAMPLES; i++)
    add_example(self, examples[i]);
  gtk_label_set_text(self->hint, examples && examples[0]
                                     ? _("Write a sentence at the right, or try one of these.")
                                     : _("Write a sentence at the right and press Create."));
}

static void keep_cb(MsuCreateStage *self) {
  gtk_popover_popdown(self->stop_popover);
  if (self->job)
    msa_queue_take_job(self->queue, self->job);
}

static void pause_cb(MsuCreateStage *self) {
  gtk_popover_popdown(self->stop_popover);
  if (self->job)
    msa_queue_pause_job(self->queue, self->job);
}

static void discard_cb(MsuCreateStage *self) {
  g_autoptr(MsaJob) job = self->job ? g_object_ref(self->job) : NULL;
  gtk_popover_popdown(self->stop_popover);
  if (!job)
    return;
  if (msa_job_get_state(job) == MSA_JOB_FAILED)
    msu_create_stage_show_job(self, NULL);
  msa_queue_cancel_job(self->queue, job);
}

static void resume_cb(MsuCreateStage *self) {
  if (!self->job)
    return;
  msa_queue_resume_job(self->queue, self->job);
  msa_queue_set_paused(self->queue, FALSE);
}

static void retry_cb(MsuCreateStage *self) {
  if (self->job)
    msa_queue_retry_job(self->queue, self->job);
}

static void copy_cb(MsuCreateStage *self) {
  if (self->job && msa_job_get_error(self->job))
    gdk_clipboard_set_text(gtk_widget_get_clipboard(GTK_WIDGET(self)), msa_job_get_error(self->job));
}

static void use_seed_cb(MsuCreateStage *self) {
  const MsaGenerateParams *params = self->clip ? msa_clip_get_params(self->clip) : NULL;
  if (params)
    g_signal_emit(self, signals[USE_SEED], 0, params->seed);
}

static void vary_cb(MsuCreateStage *self) {
  if (self->clip)
    g_signal_emit(self, signals[VARY], 0, self->clip);
}

static void in_library_cb(MsuCreateStage *self) {
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  if (window && self->clip)
    msu_window_show_clip(window, self->clip);
}

static void dispose(GObject *object) {
  MsuCreateStage *self = MSU_CREATE_STAGE(object);
  GtkWidget *child;
  set_job(self, NULL);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(object))))
    gtk_widget_unparent(child);
  g_clear_object(&self->clip);
  g_clear_object(&self->model);
  g_clear_object(&self->queue);
  G_OBJECT_CLASS(msu_create_stage_parent_class)->dispose(object);
}

static void msu_create_stage_class_init(MsuCreateStageClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  signals[EXAMPLE] = g_signal_new("example", MSU_TYPE_CREATE_STAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                  G_TYPE_NONE, 1, G_TYPE_STRING);
  signals[USE_SEED] = g_signal_new("use-seed", MSU_TYPE_CREATE_STAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                   G_TYPE_NONE, 1, G_TYPE_INT64);
  signals[VARY] = g_signal_new("vary", MSU_TYPE_CREATE_STAGE, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                               G_TYPE_NONE, 1, MSA_TYPE_CLIP);
  gtk_widget_class_set_css_name(widget_class, "createstage");
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/create/msu-create-stage.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, stack);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, picture_stack);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, hint);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, waiting);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, place);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, title);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, facts);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, examples);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, done_box);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, spinner);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, bar);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, resume);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, stop);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, use_seed);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, vary);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, keep);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, pause);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, discard);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, stop_popover);
  gtk_widget_class_bind_template_child(widget_class, MsuCreateStage, failure);
  gtk_widget_class_bind_template_callback(widget_class, keep_cb);
  gtk_widget_class_bind_template_callback(widget_class, pause_cb);
  gtk_widget_class_bind_template_callback(widget_class, discard_cb);
  gtk_widget_class_bind_template_callback(widget_class, resume_cb);
  gtk_widget_class_bind_template_callback(widget_class, retry_cb);
  gtk_widget_class_bind_template_callback(widget_class, copy_cb);
  gtk_widget_class_bind_template_callback(widget_class, use_seed_cb);
  gtk_widget_class_bind_template_callback(widget_class, vary_cb);
  gtk_widget_class_bind_template_callback(widget_class, in_library_cb);
}

static void msu_create_stage_init(MsuCreateStage *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  self->picture = msu_moving_picture_new();
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->picture), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                 _("The clip as it forms"), -1);
  gtk_stack_add_named(self->picture_stack, self->picture, "picture");
  self->player = msu_player_new();
  gtk_widget_set_vexpand(self->player, TRUE);
  gtk_box_prepend(self->done_box, self->player);
  gtk_label_set_text(self->hint, _("Write a sentence at the right and press Create."));
}

GtkWidget *msu_create_stage_new(MsaQueue *queue) {
  MsuCreateStage *self = g_object_new(MSU_TYPE_CREATE_STAGE, NULL);
  self->queue = g_object_ref(queue);
  return GTK_WIDGET(self);
}
