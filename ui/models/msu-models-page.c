#include "models/msu-models-page.h"

#include <glib/gi18n.h>

#include "models/msu-model-card.h"
#include "window/msu-format.h"
#include "window/msu-message.h"
#include "window/msu-window.h"

struct _MsuModelsPage {
  GtkWidget parent_instance;
  MsaStudio *studio;
  GtkWidget *scroller, *messages, *progress, *import;
  GtkLabel *progress_words;
  GtkProgressBar *progress_bar;
  GtkListBox *list;
  GtkFileChooserNative *chooser; /* while it is open */
  GCancellable *importing;       /* while something is imported */
  char *imported;                /* its name, for a person */
};

G_DEFINE_FINAL_TYPE(MsuModelsPage, msu_models_page, GTK_TYPE_WIDGET)

static MsaModels *models_of(MsuModelsPage *self) {
  return msa_studio_get_models(self->studio);
}

static void tell_failure(MsuModelsPage *self, const GError *error) {
  GtkWidget *message = msu_message_new(MSU_MESSAGE_ERROR, error->message);
  msu_message_add_copy(MSU_MESSAGE(message));
  msu_message_put(GTK_BOX(self->messages), "failure", message);
}

/* Toasts lie in the window, beside this page: they reach it through a group of actions of the window's. */
static void toast(MsuModelsPage *self, const char *text, GVariant *undo) {
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  if (window)
    msu_window_toast(window, text, undo ? _("Undo") : NULL, undo ? "models.restore" : NULL, undo);
  else if (undo)
    g_variant_unref(g_variant_ref_sink(undo));
}

/* Import. */
static void show_progress(MsuModelsPage *self, double fraction, double seconds_left) {
  g_autofree char *time = seconds_left >= 0 ? msu_format_seconds(seconds_left) : NULL;
  g_autofree char *words =
      fraction <= 0 ? g_strdup_printf(_("Checking “%s”"), self->imported)
      : time ? g_strdup_printf(_("Importing “%s”, %.0f %%, %s left"), self->imported, fraction * 100, time)
             : g_strdup_printf(_("Importing “%s”, %.0f %%"), self->imported, fraction * 100);
  gtk_label_set_text(self->progress_words, words);
  if (fraction > 0)
    gtk_progress_bar_set_fraction(self->progress_bar, fraction);
  else
    gtk_progress_bar_pulse(self->progress_bar);
}

static void progress_cb(double fraction, double seconds_left, gpointer data) {
  MsuModelsPage *self = data;
  if (self->importing)
    show_progress(self, fraction, seconds_left);
}

static void imported_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuModelsPage) self = data;
  g_autoptr(GError) error = NULL;
  const gboolean done = msa_models_import_finish(MSA_MODELS(source), result, &error);
  g_clear_object(&self->importing);
  if (!self->studio) /* the page is gone */
    return;
  gtk_widget_set_visible(self->progress, FALSE);
  gtk_widget_set_sensitive(self->import, TRUE);
  if (done) {
    g_autofree char *words = g_strdup_printf(_("“%s” is imported"), self->imported);
    toast(self, words, NULL);
  } else if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    g_prefix_error(&error, _("“%s” was not imported. "), self->imported);
    tell_failure(self, error);
  }
}

static void import(MsuModelsPage *self, const char *path) {
  if (self->importing)
    return;
  for (GtkWidget *told; (told = gtk_widget_get_first_child(self->messages));) /* of earlier tries */
    gtk_box_remove(GTK_BOX(self->messages), told);
  self->importing = g_cancellable_new();
  g_free(self->imported);
  self->imported = g_filename_display_basename(path);
  gtk_widget_set_visible(self->progress, TRUE);
  gtk_widget_set_sensitive(self->import, FALSE);
  gtk_progress_bar_set_fraction(self->progress_bar, 0);
  show_progress(self, 0, -1);
  msa_models_import_async(models_of(self), path, progress_cb, self, self->importing, imported_cb,
                          g_object_ref(self));
}

static void cancel_cb(MsuModelsPage *self) {
  if (self->importing)
    g_cancellable_cancel(self->importing);
}

static void chosen_cb(MsuModelsPage *self, int response) {
  g_autoptr(GFile) file =
      response == GTK_RESPONSE_ACCEPT ? gtk_file_chooser_get_file(GTK_FILE_CHOOSER(self->chooser)) : NULL;
  g_autofree char *path = file ? g_file_get_path(file) : NULL;
  g_clear_object(&self->chooser);
  if (path)
    import(self, path);
}

static void choose(MsuModelsPage *self, GtkFileChooserAction action) {
  GtkRoot *root = gtk_widget_get_root(GTK_WIDGET(self));
  if (self->chooser)
    return;
  self->chooser = gtk_file_chooser_native_new(
      action == GTK_FILE_CHOOSER_ACTION_OPEN ? _("Import a file of a model") : _("Import a model folder"),
      GTK_IS_WINDOW(root) ? GTK_WINDOW(root) : NULL, action, _("_Import"), _("_Cancel"));
  if (action == GTK_FILE_CHOOSER_ACTION_OPEN) {
    g_autoptr(GtkFileFilter) filter = gtk_file_filter_new();
    gtk_file_filter_set_name(filter, _("Files of models"));
    gtk_file_filter_add_pattern(filter, "model.json");
    gtk_file_filter_add_pattern(filter, "*.safetensors");
    gtk_file_chooser_add_filter(GTK_FILE_CHOOSER(self->chooser), filter);
  }
  gtk_native_dialog_set_modal(GTK_NATIVE_DIALOG(self->chooser), TRUE);
  g_signal_connect_object(self->chooser, "response", G_CALLBACK(chosen_cb), self, G_CONNECT_SWAPPED);
  gtk_native_dialog_show(GTK_NATIVE_DIALOG(self->chooser));
}

static void import_folder_cb(GSimpleAction *action, GVariant *target, gpointer data) {
  choose(data, GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER);
}

static void import_file_cb(GSimpleAction *action, GVariant *target, gpointer data) {
  choose(data, GTK_FILE_CHOOSER_ACTION_OPEN);
}

/* Remove and undo. */
static void restored_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuModelsPage) self = data;
  g_autoptr(GError) error = NULL;
  if (!msa_models_restore_finish(MSA_MODELS(source), result, &error) && self->studio)
    tell_failure(self, error);
}

static void restore_cb(GSimpleAction *action, GVariant *target, gpointer data) {
  MsuModelsPage *self = data;
  const char *location, *folder;
  g_variant_get(target, "(^&ay^&ay)", &location, &folder);
  msa_models_restore_async(models_of(self), location, folder, restored_cb, g_object_ref(self));
}

struct removal {
  MsuModelsPage *page;
  MsaModel *model;
};

static void removed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct removal *removal = data;
  g_autoptr(MsuModelsPage) self = removal->page;
  g_autoptr(MsaModel) model = removal->model;
  g_autoptr(GError) error = NULL;
  g_autofree char *location = msa_models_remove_finish(MSA_MODELS(source), result, &error);
  g_free(removal);
  if (!self->studio)
    return;
  if (!location) {
    tell_failure(self, error);
    return;
  }
  g_autofree char *words = g_strdup_printf(_("“%s” is in the trash"), msa_model_get_name(model));
  toast(self, words, g_variant_new("(^ay^ay)", location, msa_model_get_folder(model)));
}

static void remove_cb(MsuModelsPage *self, MsuModelCard *card) {
  struct removal *removal = g_new(struct removal, 1);
  removal->page = g_object_ref(self);
  removal->model = g_object_ref(msu_model_card_get_model(card));
  gtk_widget_set_sensitive(GTK_WIDGET(card), FALSE);
  msa_models_remove_async(models_of(self), removal->model, removed_cb, removal);
}

static void use_cb(MsuModelsPage *self, const char *prompt, MsuModelCard *card) {
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  g_autoptr(MsaGenerateParams) params = msa_generate_params_new();
  g_free(params->model);
  params->model = g_strdup(msa_model_get_reference(msu_model_card_get_model(card)));
  g_free(params->prompt);
  params->prompt = g_strdup(prompt);
  if (window)
    msu_window_use_params(window, params, NULL);
}

static void shown_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuModelsPage) self = data;
  g_autoptr(GError) error = NULL;
  if (!g_app_info_launch_default_for_uri_finish(result, &error) && self->studio) {
    g_prefix_error(&error, "%s", _("The folder cannot be shown. "));
    tell_failure(self, error);
  }
}

static void show_folder_cb(MsuModelsPage *self, MsuModelCard *card) {
  g_autofree char *uri = g_filename_to_uri(msa_model_get_folder(msu_model_card_get_model(card)), NULL, NULL);
  if (uri)
    g_app_info_launch_default_for_uri_async(uri, NULL, NULL, shown_cb, g_object_ref(self));
}

static GtkWidget *card_for(gpointer item, gpointer data) {
  GtkWidget *card = msu_model_card_new(item), *row = gtk_list_box_row_new();
  g_signal_connect_object(card, "use", G_CALLBACK(use_cb), data, G_CONNECT_SWAPPED);
  g_signal_connect_object(card, "show-folder", G_CALLBACK(show_folder_cb), data, G_CONNECT_SWAPPED);
  g_signal_connect_object(card, "remove", G_CALLBACK(remove_cb), data, G_CONNECT_SWAPPED);
  gtk_list_box_row_set_activatable(GTK_LIST_BOX_ROW(row), FALSE);
  gtk_widget_set_focusable(row, FALSE); /* what can be done is on the card's buttons */
  gtk_list_box_row_set_child(GTK_LIST_BOX_ROW(row), card);
  gtk_accessible_update_property(GTK_ACCESSIBLE(row), GTK_ACCESSIBLE_PROPERTY_LABEL, msa_model_get_name(item),
                                 -1);
  return row;
}

static GSimpleActionGroup *actions_new(MsuModelsPage *self) {
  static const GActionEntry entries[] = {
      {.name = "import-folder", .activate = import_folder_cb},
      {.name = "import-file", .activate = import_file_cb},
      {.name = "restore", .activate = restore_cb, .parameter_type = "(ayay)"}};
  GSimpleActionGroup *group = g_simple_action_group_new();
  g_action_map_add_action_entries(G_ACTION_MAP(group), entries, G_N_ELEMENTS(entries), self);
  return group;
}

static void root(GtkWidget *widget) {
  GTK_WIDGET_CLASS(msu_models_page_parent_class)->root(widget);
  g_autoptr(GSimpleActionGroup) actions = actions_new(MSU_MODELS_PAGE(widget));
  gtk_widget_insert_action_group(GTK_WIDGET(gtk_widget_get_root(widget)), "models", G_ACTION_GROUP(actions));
}

static void unroot(GtkWidget *widget) {
  gtk_widget_insert_action_group(GTK_WIDGET(gtk_widget_get_root(widget)), "models", NULL);
  GTK_WIDGET_CLASS(msu_models_page_parent_class)->unroot(widget);
}

static void map(GtkWidget *widget) {
  MsuModelsPage *self = MSU_MODELS_PAGE(widget);
  GTK_WIDGET_CLASS(msu_models_page_parent_class)->map(widget);
  msa_models_reload(models_of(self)); /* a person may have copied a folder there */
}

static void dispose(GObject *object) {
  MsuModelsPage *self = MSU_MODELS_PAGE(object);
  if (self->importing)
    g_cancellable_cancel(self->importing);
  if (self->chooser)
    gtk_native_dialog_destroy(GTK_NATIVE_DIALOG(self->chooser));
  g_clear_object(&self->chooser);
  g_clear_pointer(&self->scroller, gtk_widget_unparent);
  g_clear_object(&self->studio);
  G_OBJECT_CLASS(msu_models_page_parent_class)->dispose(object);
}

static void finalize(GObject *object) {
  g_free(MSU_MODELS_PAGE(object)->imported);
  G_OBJECT_CLASS(msu_models_page_parent_class)->finalize(object);
}

static void msu_models_page_class_init(MsuModelsPageClass *class) {
  GtkWidgetClass *widget = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  G_OBJECT_CLASS(class)->finalize = finalize;
  widget->root = root;
  widget->unroot = unroot;
  widget->map = map;
  gtk_widget_class_set_template_from_resource(widget, "/org/megaslide/Studio/models/msu-models-page.ui");
  gtk_widget_class_bind_template_child(widget, MsuModelsPage, scroller);
  gtk_widget_class_bind_template_child(widget, MsuModelsPage, messages);
  gtk_widget_class_bind_template_child(widget, MsuModelsPage, progress);
  gtk_widget_class_bind_template_child(widget, MsuModelsPage, progress_words);
  gtk_widget_class_bind_template_child(widget, MsuModelsPage, progress_bar);
  gtk_widget_class_bind_template_child(widget, MsuModelsPage, import);
  gtk_widget_class_bind_template_child(widget, MsuModelsPage, list);
  gtk_widget_class_bind_template_callback(widget, cancel_cb);
}

static void msu_models_page_init(MsuModelsPage *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
}

GtkWidget *msu_models_page_new(MsaStudio *studio) {
  MsuModelsPage *self = g_object_new(MSU_TYPE_MODELS_PAGE, NULL);
  self->studio = g_object_ref(studio);
  gtk_list_box_bind_model(self->list, G_LIST_MODEL(models_of(self)), card_for, self, NULL);
  return GTK_WIDGET(self);
}
