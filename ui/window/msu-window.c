#include "window/msu-window.h"
#include "window/msu-closing.h"
#include "window/msu-dropping.h"
#include "window/msu-message.h"
#include "window/msu-queue-button.h"
#include "window/msu-queue-view.h"
#include "window/msu-settings.h"
#include "window/msu-window-jobs.h"
#include "create/msu-create-page.h"
#include "library/msu-library-page.h"
#include "models/msu-models-page.h"
#include "train/msu-train-page.h"
#include <glib/gi18n.h>

struct _MsuWindow {
  AdwApplicationWindow parent_instance;
  AdwToastOverlay *toasts;
  AdwViewStack *pages;
  GtkStack *root;
  AdwStatusPage *failure;
  GtkBox *messages, *queue_place;
  GtkWidget *switcher, *menu;
  GtkWidget *create_page, *library_page, *queue_button;
  GSettings *settings; /* NULL without a schema */
  MsaStudio *studio;
};

G_DEFINE_FINAL_TYPE(MsuWindow, msu_window, ADW_TYPE_APPLICATION_WINDOW)

static void page_changed_cb(MsuWindow *self) {
  /* Escape and shortcuts should go to the page that is seen, not to one that is hidden. */
  GtkWidget *focus = gtk_window_get_focus(GTK_WINDOW(self));
  if (focus && !gtk_widget_get_mapped(focus))
    gtk_window_set_focus(GTK_WINDOW(self), NULL);
}

static void copy_failure_cb(MsuWindow *self) {
  gdk_clipboard_set_text(gtk_widget_get_clipboard(GTK_WIDGET(self)),
                         adw_status_page_get_description(self->failure));
}

static void create_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  MsuWindow *self = MSU_WINDOW(widget);
  msu_create_page_create(MSU_CREATE_PAGE(self->create_page));
}

static void page_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  msu_window_show_page(MSU_WINDOW(widget), g_variant_get_string(parameter, NULL));
}

static void queue_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  msu_queue_button_open(MSU_QUEUE_BUTTON(MSU_WINDOW(widget)->queue_button));
}

static void prompt_action(GtkWidget *widget, const char *name, GVariant *parameter) {
  MsuWindow *self = MSU_WINDOW(widget);
  msu_window_show_page(self, "create");
  msu_create_page_focus_prompt(MSU_CREATE_PAGE(self->create_page));
}

static void save_size(MsuWindow *self) {
  int width, height;
  if (!self->settings)
    return;
  gtk_window_get_default_size(GTK_WINDOW(self), &width, &height);
  const gboolean maximized = gtk_window_is_maximized(GTK_WINDOW(self));
  g_settings_set_boolean(self->settings, "window-maximized", maximized);
  if (!maximized && width >= 320 && height >= 240) {
    g_settings_set_int(self->settings, "window-width", width);
    g_settings_set_int(self->settings, "window-height", height);
  }
}

static gboolean close_request(GtkWindow *window) {
  MsuWindow *self = MSU_WINDOW(window);
  save_size(self);
  msu_create_page_save(MSU_CREATE_PAGE(self->create_page));
  msu_closing_begin(self);
  return TRUE;
}

static void dispose(GObject *object) {
  MsuWindow *self = MSU_WINDOW(object);
  g_clear_object(&self->settings);
  G_OBJECT_CLASS(msu_window_parent_class)->dispose(object);
  g_clear_object(&self->studio);
}

static void msu_window_class_init(MsuWindowClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  GTK_WINDOW_CLASS(klass)->close_request = close_request;
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/window/msu-window.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, toasts);
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, pages);
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, root);
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, failure);
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, messages);
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, queue_place);
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, switcher);
  gtk_widget_class_bind_template_child(widget_class, MsuWindow, menu);
  gtk_widget_class_bind_template_callback(widget_class, page_changed_cb);
  gtk_widget_class_bind_template_callback(widget_class, copy_failure_cb);
  gtk_widget_class_install_action(widget_class, "win.create", NULL, create_action);
  gtk_widget_class_install_action(widget_class, "win.page", "s", page_action);
  gtk_widget_class_install_action(widget_class, "win.queue", NULL, queue_action);
  gtk_widget_class_install_action(widget_class, "win.prompt", NULL, prompt_action);
}

static void msu_window_init(MsuWindow *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  /* The toggle inside the menu button is what the accessibility bus shows. */
  gtk_accessible_update_property(GTK_ACCESSIBLE(gtk_widget_get_first_child(self->menu)),
                                 GTK_ACCESSIBLE_PROPERTY_LABEL, _("Main menu"), -1);
  self->settings = msu_settings_open();
  int width = 1280, height = 800;
  if (self->settings) {
    width = g_settings_get_int(self->settings, "window-width");
    height = g_settings_get_int(self->settings, "window-height");
    if (g_settings_get_boolean(self->settings, "window-maximized"))
      gtk_window_maximize(GTK_WINDOW(self));
  }
  gtk_window_set_default_size(GTK_WINDOW(self), width, height);
  g_autoptr(GtkBuilder) builder =
      gtk_builder_new_from_resource("/org/megaslide/Studio/window/msu-shortcuts.ui");
  gtk_application_window_set_help_overlay(GTK_APPLICATION_WINDOW(self),
                                          GTK_SHORTCUTS_WINDOW(gtk_builder_get_object(builder, "shortcuts")));
}

static void show_job_cb(MsuWindow *self, MsaJob *job) {
  const gboolean train = msa_job_get_kind(job) == MSA_JOB_TRAIN;
  const char *here = adw_view_stack_get_visible_child_name(self->pages);
  const char *there = train ? "train" : "create";
  if (!g_strcmp0(here, there))
    return;
  if (msa_job_get_state(job) == MSA_JOB_DONE) {
    msu_window_toast(self, train ? _("The training run is done") : _("The clip is ready"), _("Show"),
                     "win.page", g_variant_new_string(there));
  } else if (msa_job_get_state(job) == MSA_JOB_FAILED && msa_job_get_error(job)) {
    GtkWidget *message = msu_message_new(MSU_MESSAGE_ERROR, msa_job_get_error(job));
    msu_message_add_copy(MSU_MESSAGE(message));
    msu_message_put(self->messages, "job", message);
  }
}

static void add_page(MsuWindow *self, GtkWidget *page, const char *name, const char *title,
                     const char *icon) {
  adw_view_stack_page_set_icon_name(adw_view_stack_add_titled(self->pages, page, name, title), icon);
}

GtkWidget *msu_window_new(AdwApplication *application, MsaStudio *studio) {
  MsuWindow *self = g_object_new(MSU_TYPE_WINDOW, "application", application, NULL);
  self->studio = g_object_ref(studio);
  self->create_page = msu_create_page_new(studio);
  self->library_page = msu_library_page_new(studio);
  add_page(self, self->create_page, "create", _("Create"), "msu-create-symbolic");
  add_page(self, msu_train_page_new(studio), "train", _("Train"), "msu-train-symbolic");
  add_page(self, self->library_page, "library", _("Library"), "msu-library-symbolic");
  add_page(self, msu_models_page_new(studio), "models", _("Models"), "msu-models-symbolic");
  self->queue_button = msu_queue_button_new(msa_studio_get_queue(studio));
  gtk_box_append(self->queue_place, self->queue_button);
  g_signal_connect_object(msa_studio_get_queue(studio), "job-ended", G_CALLBACK(show_job_cb), self,
                          G_CONNECT_SWAPPED);
  msu_dropping_attach(self, self->pages, self->messages);
  msu_closing_watch(self);
  return GTK_WIDGET(self);
}

MsuWindow *msu_window_of(GtkWidget *widget) {
  GtkRoot *root = gtk_widget_get_root(widget);
  return MSU_IS_WINDOW(root) ? MSU_WINDOW(root) : NULL;
}

MsaStudio *msu_window_get_studio(MsuWindow *self) {
  g_return_val_if_fail(MSU_IS_WINDOW(self), NULL);
  return self->studio;
}

void msu_window_show_page(MsuWindow *self, const char *page) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  if (adw_view_stack_get_child_by_name(self->pages, page))
    adw_view_stack_set_visible_child_name(self->pages, page);
}

void msu_window_use_params(MsuWindow *self, const MsaGenerateParams *params, const char *const *notes) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  msu_create_page_use_params(MSU_CREATE_PAGE(self->create_page), params, notes);
  msu_window_show_page(self, "create");
}

void msu_window_edit_job(MsuWindow *self, MsaJob *job) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  msu_create_page_edit_job(MSU_CREATE_PAGE(self->create_page), job);
  msu_window_show_page(self, "create");
}

void msu_window_show_clip(MsuWindow *self, MsaClip *clip) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  msu_library_page_show_clip(MSU_LIBRARY_PAGE(self->library_page), clip);
  msu_window_show_page(self, "library");
}

void msu_window_open_file(MsuWindow *self, GFile *file) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  msu_dropping_open(self, self->messages, file);
}

void msu_window_toast(MsuWindow *self, const char *text, const char *action_label, const char *action_name,
                      GVariant *action_target) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  g_autoptr(GVariant) target = action_target ? g_variant_ref_sink(action_target) : NULL;
  g_autofree char *title = g_markup_escape_text(text, -1);
  AdwToast *toast = adw_toast_new(title);
  adw_toast_set_timeout(toast, action_label ? 5 : 2);
  if (action_label) {
    adw_toast_set_button_label(toast, action_label);
    adw_toast_set_action_name(toast, action_name);
    adw_toast_set_action_target_value(toast, target);
  }
  adw_toast_overlay_add_toast(self->toasts, toast);
}

void msu_window_show_failure(MsuWindow *self, const char *sentence) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  g_autofree char *text = g_markup_escape_text(sentence, -1);
  adw_status_page_set_description(self->failure, text);
  gtk_stack_set_visible_child_name(self->root, "failed");
  gtk_widget_set_visible(self->switcher, FALSE);
  gtk_widget_set_visible(self->queue_button, FALSE);
}

static void resume_cb(gpointer data) {
  MsuWindow *self = data;
  MsaQueue *queue = msa_studio_get_queue(self->studio);
  g_autoptr(MsaJob) job = msu_queue_dup_interrupted(queue);
  if (job)
    msa_queue_resume_job(queue, job);
  msa_queue_set_paused(queue, FALSE);
}

static void show_queue_cb(gpointer data) {
  MsuWindow *self = data;
  msu_queue_button_open(MSU_QUEUE_BUTTON(self->queue_button));
}

/* The message goes when the job goes on, from wherever it was resumed. */
static void queue_cb(GtkWidget *message, GParamSpec *pspec, MsaQueue *queue) {
  g_autoptr(MsaJob) interrupted = msu_queue_dup_interrupted(queue);
  if (!interrupted)
    msu_message_dismiss(MSU_MESSAGE(message));
}

void msu_window_show_opened(MsuWindow *self) {
  g_return_if_fail(MSU_IS_WINDOW(self));
  gtk_stack_set_visible_child_name(self->root, "pages");
  gtk_widget_set_visible(self->switcher, TRUE);
  gtk_widget_set_visible(self->queue_button, TRUE);
  const char *const *warnings = msa_studio_get_warnings(self->studio);
  for (guint i = 0; warnings && warnings[i]; i++)
    gtk_box_append(self->messages, msu_message_new(MSU_MESSAGE_WARNING, warnings[i]));
  g_autoptr(MsaJob) job = msu_queue_dup_interrupted(msa_studio_get_queue(self->studio));
  if (job) {
    g_autofree char *text = g_strdup_printf(_("A job was interrupted: “%s”. It goes on from its last step."),
                                            msa_job_get_title(job));
    GtkWidget *message = msu_message_new(MSU_MESSAGE_NOTE, text);
    msu_message_add_button(MSU_MESSAGE(message), _("Show queue"), show_queue_cb, self, NULL);
    msu_message_add_button(MSU_MESSAGE(message), _("Resume"), resume_cb, self, NULL);
    gtk_box_append(self->messages, message);
    g_signal_connect_object(msa_studio_get_queue(self->studio), "notify", G_CALLBACK(queue_cb), message,
                            G_CONNECT_SWAPPED);
    if (msa_job_get_kind(job) == MSA_JOB_GENERATE)
      msu_create_page_show_job(MSU_CREATE_PAGE(self->create_page), job);
  }
}
