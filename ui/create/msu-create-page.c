#include "create/msu-create-page.h"
#include "create/msu-clip-strip.h"
#include "create/msu-form.h"
#include "create/msu-create-stage.h"
#include "widgets/msu-plan-strip.h"
#include "window/msu-message.h"
#include "window/msu-settings.h"
#include "window/msu-window.h"
#include <glib/gi18n.h>

struct _MsuCreatePage {
  GtkWidget parent_instance;
  GtkBox *left, *messages, *bottom;
  GtkScrolledWindow *form_place;
  GtkButton *create;
  GtkWidget *leave;
  GtkWidget *form, *plan, *stage, *strip;
  MsaStudio *studio;
  MsaJob *edited; /* the waiting job that the form changes; NULL: the form makes a new one */
};

G_DEFINE_FINAL_TYPE(MsuCreatePage, msu_create_page, GTK_TYPE_WIDGET)

static MsaQueue *queue_of(MsuCreatePage *self) {
  return msa_studio_get_queue(self->studio);
}

static void clear_messages(MsuCreatePage *self) {
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self->messages))))
    gtk_box_remove(self->messages, child);
}

static void update_button(MsuCreatePage *self) {
  const gboolean busy = g_list_model_get_n_items(G_LIST_MODEL(queue_of(self))) > 0;
  gtk_button_set_label(self->create, self->edited ? _("Save changes")
                                     : busy       ? _("Add to queue")
                                                  : _("Create"));
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->create), _("Ctrl+Enter"));
  gtk_widget_set_sensitive(GTK_WIDGET(self->create), msu_plan_strip_allows(MSU_PLAN_STRIP(self->plan)));
  gtk_widget_set_visible(self->leave, self->edited != NULL);
}

static void form_cb(MsuCreatePage *self) {
  g_autofree char *problem = NULL;
  g_autoptr(MsaGenerateParams) params = msu_form_dup_params(MSU_FORM(self->form), &problem);
  msu_plan_strip_set_clip(MSU_PLAN_STRIP(self->plan), params, problem);
  msu_create_stage_set_model(MSU_CREATE_STAGE(self->stage), msu_form_get_model(MSU_FORM(self->form)));
}

static void stop_editing(MsuCreatePage *self) {
  g_clear_object(&self->edited);
  update_button(self);
}

static void leave_cb(MsuCreatePage *self) {
  clear_messages(self);
  stop_editing(self);
}

static void save_edit(MsuCreatePage *self, const MsaGenerateParams *params) {
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  clear_messages(self);
  if (msa_queue_edit_job(queue_of(self), self->edited, params)) {
    if (window)
      msu_window_toast(window, _("The waiting job is changed"), NULL, NULL, NULL);
  } else {
    gtk_box_append(self->messages,
                   msu_message_new(MSU_MESSAGE_WARNING, _("The job has begun meanwhile and was not changed. "
                                                          "Press Create to make another clip.")));
  }
  stop_editing(self);
}

static void start(MsuCreatePage *self, const MsaGenerateParams *params) {
  MsaQueue *queue = queue_of(self);
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  MsaJob *running = msa_queue_get_running(queue);
  g_autoptr(MsaJob) job = msa_queue_add_generate(queue, params);
  MsaJob *shown = msu_create_stage_get_job(MSU_CREATE_STAGE(self->stage));
  const gboolean follows = shown && shown == running;
  msu_create_page_save(self);
  if (!running && !msa_queue_get_paused(queue))
    clear_messages(self);
  if (!follows)
    msu_create_stage_show_job(MSU_CREATE_STAGE(self->stage), job);
  if (!window)
    return;
  if (msa_queue_get_paused(queue))
    msu_window_toast(window, _("Added to the queue, which is paused"), _("Open queue"), "win.queue", NULL);
  else if (running)
    msu_window_toast(window, _("Added to the queue"), _("Open queue"), "win.queue", NULL);
}

void msu_create_page_create(MsuCreatePage *self) {
  g_return_if_fail(MSU_IS_CREATE_PAGE(self));
  g_autofree char *problem = NULL;
  g_autoptr(MsaGenerateParams) params = msu_form_dup_params(MSU_FORM(self->form), &problem);
  if (problem)
    msu_form_focus_prompt(MSU_FORM(self->form));
  else if (msu_plan_strip_allows(MSU_PLAN_STRIP(self->plan)) && self->edited)
    save_edit(self, params);
  else if (msu_plan_strip_allows(MSU_PLAN_STRIP(self->plan)))
    start(self, params);
}

static void create_cb(MsuCreatePage *self) {
  msu_create_page_create(self);
}

static void example_cb(MsuCreatePage *self, const char *prompt) {
  msu_form_set_prompt(MSU_FORM(self->form), prompt);
  msu_create_page_create(self);
}

static void use_seed_cb(MsuCreatePage *self, gint64 seed) {
  g_autofree char *problem = NULL;
  g_autoptr(MsaGenerateParams) params = msu_form_dup_params(MSU_FORM(self->form), &problem);
  if (!params)
    return;
  params->seed = seed;
  msu_form_set_params(MSU_FORM(self->form), params);
}

static void vary_cb(MsuCreatePage *self, MsaClip *clip) {
  g_autoptr(MsaGenerateParams) params = msa_generate_params_copy(msa_clip_get_params(clip));
  params->seed = -1;
  start(self, params);
}

static void apply_cb(MsuCreatePage *self, const MsaPlanSuggestion *suggestion) {
  if (suggestion->generate)
    msu_form_set_params(MSU_FORM(self->form), suggestion->generate);
}

static void show_clip_cb(MsuCreatePage *self, MsaClip *clip) {
  msu_create_stage_show_clip(MSU_CREATE_STAGE(self->stage), clip);
}

static void running_cb(MsuCreatePage *self) {
  MsaJob *running = msa_queue_get_running(queue_of(self));
  MsaJob *shown = msu_create_stage_get_job(MSU_CREATE_STAGE(self->stage));
  update_button(self);
  /* A job that waited comes to the stage in its turn, unless a person looks at something else there. */
  if (running && running != shown && msa_job_get_kind(running) == MSA_JOB_GENERATE &&
      (!shown || msa_job_get_state(shown) == MSA_JOB_QUEUED))
    msu_create_stage_show_job(MSU_CREATE_STAGE(self->stage), running);
}

static void ended_cb(MsuCreatePage *self, MsaJob *job) {
  MsaClip *clip = msa_job_get_clip(job);
  const MsaGenerateParams *params = clip ? msa_clip_get_params(clip) : NULL;
  const char *skipped = msa_job_get_skipped_words(job);
  if (params)
    msu_form_set_last_seed(MSU_FORM(self->form), params->seed);
  if (msa_job_get_kind(job) == MSA_JOB_GENERATE && skipped && *skipped) {
    g_autofree char *text =
        g_strdup_printf(_("The model does not know these words and left them out: %s."), skipped);
    clear_messages(self);
    gtk_box_append(self->messages, msu_message_new(MSU_MESSAGE_NOTE, text));
  }
}

void msu_create_page_use_params(MsuCreatePage *self, const MsaGenerateParams *params,
                                const char *const *notes) {
  g_return_if_fail(MSU_IS_CREATE_PAGE(self));
  clear_messages(self);
  stop_editing(self);
  msu_form_set_params(MSU_FORM(self->form), params);
  if (!notes || !notes[0])
    return;
  g_autofree char *lines = g_strjoinv("\n", (char **)notes);
  gtk_box_append(self->messages, msu_message_new(MSU_MESSAGE_WARNING, lines));
}

void msu_create_page_edit_job(MsuCreatePage *self, MsaJob *job) {
  g_return_if_fail(MSU_IS_CREATE_PAGE(self));
  const MsaGenerateParams *params = msa_job_get_generate(job);
  if (!params)
    return;
  clear_messages(self);
  g_set_object(&self->edited, job);
  msu_form_set_params(MSU_FORM(self->form), params);
  gtk_box_append(self->messages,
                 msu_message_new(MSU_MESSAGE_NOTE, _("You are changing a job that waits in the queue.")));
  update_button(self);
  msu_form_focus_prompt(MSU_FORM(self->form));
}

void msu_create_page_show_job(MsuCreatePage *self, MsaJob *job) {
  g_return_if_fail(MSU_IS_CREATE_PAGE(self));
  msu_create_stage_show_job(MSU_CREATE_STAGE(self->stage), job);
}

void msu_create_page_focus_prompt(MsuCreatePage *self) {
  g_return_if_fail(MSU_IS_CREATE_PAGE(self));
  msu_form_focus_prompt(MSU_FORM(self->form));
}

void msu_create_page_save(MsuCreatePage *self) {
  g_return_if_fail(MSU_IS_CREATE_PAGE(self));
  g_autoptr(GSettings) settings = msu_settings_open();
  g_autofree char *problem = NULL;
  g_autoptr(MsaGenerateParams) params = msu_form_dup_params(MSU_FORM(self->form), &problem);
  if (!settings || !params)
    return;
  g_autofree char *json = msa_generate_params_to_json(params);
  g_settings_set_string(settings, "last-settings", json);
}

static void restore(MsuCreatePage *self) {
  g_autoptr(GSettings) settings = msu_settings_open();
  g_autofree char *json = settings ? g_settings_get_string(settings, "last-settings") : NULL;
  /* What an older version wrote and this one cannot read is forgotten. */
  g_autoptr(MsaGenerateParams) params = json && *json ? msa_generate_params_from_json(json, NULL) : NULL;
  if (params)
    msu_form_set_params(MSU_FORM(self->form), params);
}

static void dispose(GObject *object) {
  MsuCreatePage *self = MSU_CREATE_PAGE(object);
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(object))))
    gtk_widget_unparent(child);
  g_clear_object(&self->edited);
  g_clear_object(&self->studio);
  G_OBJECT_CLASS(msu_create_page_parent_class)->dispose(object);
}

static void msu_create_page_class_init(MsuCreatePageClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/create/msu-create-page.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuCreatePage, left);
  gtk_widget_class_bind_template_child(widget_class, MsuCreatePage, messages);
  gtk_widget_class_bind_template_child(widget_class, MsuCreatePage, bottom);
  gtk_widget_class_bind_template_child(widget_class, MsuCreatePage, form_place);
  gtk_widget_class_bind_template_child(widget_class, MsuCreatePage, create);
  gtk_widget_class_bind_template_child(widget_class, MsuCreatePage, leave);
  gtk_widget_class_bind_template_callback(widget_class, create_cb);
  gtk_widget_class_bind_template_callback(widget_class, leave_cb);
}

static void msu_create_page_init(MsuCreatePage *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
}

GtkWidget *msu_create_page_new(MsaStudio *studio) {
  MsuCreatePage *self = g_object_new(MSU_TYPE_CREATE_PAGE, NULL);
  MsaQueue *queue = msa_studio_get_queue(studio);
  self->studio = g_object_ref(studio);
  self->form = msu_form_new(studio);
  self->plan = msu_plan_strip_new(msa_studio_get_planner(studio));
  self->stage = msu_create_stage_new(queue);
  self->strip = msu_clip_strip_new(queue);
  gtk_scrolled_window_set_child(self->form_place, self->form);
  gtk_box_prepend(self->bottom, self->plan);
  gtk_box_append(self->left, self->stage);
  gtk_box_append(self->left, self->strip);
  g_signal_connect_object(self->form, "changed", G_CALLBACK(form_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->plan, "changed", G_CALLBACK(update_button), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->plan, "apply", G_CALLBACK(apply_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->stage, "example", G_CALLBACK(example_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->stage, "use-seed", G_CALLBACK(use_seed_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->stage, "vary", G_CALLBACK(vary_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->strip, "show-clip", G_CALLBACK(show_clip_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->strip, "show-job", G_CALLBACK(msu_create_page_show_job), self,
                          G_CONNECT_SWAPPED);
  g_signal_connect_object(queue, "job-ended", G_CALLBACK(ended_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(queue, "notify::running", G_CALLBACK(running_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(queue, "items-changed", G_CALLBACK(update_button), self,
                          G_CONNECT_SWAPPED | G_CONNECT_AFTER);
  restore(self);
  form_cb(self);
  return GTK_WIDGET(self);
}
