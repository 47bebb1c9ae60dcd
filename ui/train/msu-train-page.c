#include "train/msu-train-page.h"
#include "train/msu-new-run.h"
#include "train/msu-run-row.h"
#include "train/msu-run-view.h"
#include "window/msu-message.h"

#include <glib/gi18n.h>

struct _MsuTrainPage {
  GtkWidget parent;
  GtkWidget *side;
  GtkListBox *runs;
  GtkStack *stack;
  GtkBox *messages;
  GtkWidget *new_run, *view;
  GtkFileChooserNative *chooser; /* NULL: not open */
  MsaStudio *studio;
  MsaJob *started; /* whose run is shown as soon as it is in the list; NULL: none */
};

G_DEFINE_FINAL_TYPE(MsuTrainPage, msu_train_page, GTK_TYPE_WIDGET)

static void show_page(MsuTrainPage *self, const char *name) {
  gtk_stack_set_visible_child_name(self->stack, name);
}

static void clear_messages(MsuTrainPage *self) {
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self->messages))))
    gtk_box_remove(self->messages, child);
}

static void tell(MsuTrainPage *self, enum msu_message_kind kind, const char *text) {
  clear_messages(self);
  gtk_box_append(self->messages, msu_message_new(kind, text));
}

static void show_folder(MsuTrainPage *self, const char *folder) {
  clear_messages(self);
  gtk_list_box_unselect_all(self->runs);
  msu_new_run_set_folder(MSU_NEW_RUN(self->new_run), folder);
  show_page(self, "new");
}

static void chosen_cb(GtkNativeDialog *dialog, int response, gpointer data) {
  MsuTrainPage *self = data;
  g_autoptr(GFile) file =
      response == GTK_RESPONSE_ACCEPT ? gtk_file_chooser_get_file(GTK_FILE_CHOOSER(dialog)) : NULL;
  g_autofree char *folder = file ? g_file_get_path(file) : NULL;
  g_clear_object(&self->chooser);
  if (folder)
    show_folder(self, folder);
}

static void choose_cb(MsuTrainPage *self) {
  GtkRoot *root = gtk_widget_get_root(GTK_WIDGET(self));
  if (self->chooser)
    return;
  self->chooser =
      gtk_file_chooser_native_new(_("Folder of clips"), GTK_IS_WINDOW(root) ? GTK_WINDOW(root) : NULL,
                                  GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER, _("Open"), _("Cancel"));
  gtk_native_dialog_set_modal(GTK_NATIVE_DIALOG(self->chooser), TRUE);
  g_signal_connect_object(self->chooser, "response", G_CALLBACK(chosen_cb), self, 0);
  gtk_native_dialog_show(GTK_NATIVE_DIALOG(self->chooser));
}

static void looked_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuTrainPage) self = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(GFileInfo) info = g_file_query_info_finish(G_FILE(source), result, &error);
  g_autofree char *path = g_file_get_path(G_FILE(source));
  if (!self->studio)
    return;
  if (info && path && g_file_info_get_file_type(info) == G_FILE_TYPE_DIRECTORY) {
    show_folder(self, path);
    return;
  }
  g_autofree char *name = g_file_get_basename(G_FILE(source));
  g_autofree char *shown = g_filename_display_name(name);
  g_autofree char *text =
      g_strdup_printf(_("“%s” is not a folder. Drop the folder that holds the clips."), shown);
  tell(self, MSU_MESSAGE_WARNING, text);
}

/* A class of our own: GTK 4.8 leaves the widget's drop state behind after a drop. */
static GdkDragAction enter_cb(MsuTrainPage *self) {
  gtk_widget_add_css_class(GTK_WIDGET(self), "drop-here");
  return GDK_ACTION_COPY;
}

static void leave_cb(MsuTrainPage *self) {
  gtk_widget_remove_css_class(GTK_WIDGET(self), "drop-here");
}

static gboolean drop_cb(MsuTrainPage *self, const GValue *value) {
  leave_cb(self);
  GSList *files = gdk_file_list_get_files(g_value_get_boxed(value));
  gboolean some = files != NULL;
  if (some)
    g_file_query_info_async(files->data, G_FILE_ATTRIBUTE_STANDARD_TYPE, G_FILE_QUERY_INFO_NONE,
                            G_PRIORITY_DEFAULT, NULL, looked_cb, g_object_ref(self));
  g_slist_free(files);
  return some;
}

static void selected_cb(MsuTrainPage *self, GtkListBoxRow *row) {
  if (!row)
    return;
  clear_messages(self);
  msu_run_view_set_run(MSU_RUN_VIEW(self->view), msu_run_row_get_run(MSU_RUN_ROW(row)));
  show_page(self, "run");
}

static GtkWidget *row_cb(gpointer item, gpointer data) {
  return msu_run_row_new(item);
}

/* A job that never came into the store has no run in the list to show its error. */
static void started_state_cb(MsuTrainPage *self, GParamSpec *spec, MsaJob *job) {
  if (job != self->started || msa_job_get_state(job) != MSA_JOB_FAILED)
    return;
  tell(self, MSU_MESSAGE_ERROR,
       msa_job_get_error(job) ? msa_job_get_error(job) : _("The run cannot be started."));
  g_clear_object(&self->started);
}

static void started_cb(MsuTrainPage *self, MsaJob *job) {
  clear_messages(self);
  g_set_object(&self->started, job);
  g_signal_connect_object(job, "notify::state", G_CALLBACK(started_state_cb), self, G_CONNECT_SWAPPED);
}

/* After the list box has taken the change over: the run that was started, or another one in the place of one
 * that is gone. */
static void runs_changed_cb(MsuTrainPage *self) {
  GListModel *runs = msa_studio_get_runs(self->studio);
  guint count = g_list_model_get_n_items(runs);
  gtk_widget_set_visible(self->side, count > 0);
  for (guint i = 0; i < count && self->started; i++) {
    g_autoptr(MsaRun) run = g_list_model_get_item(runs, i);
    if (msa_run_get_job(run) == self->started) {
      g_clear_object(&self->started);
      gtk_list_box_select_row(self->runs, gtk_list_box_get_row_at_index(self->runs, (int)i));
      return;
    }
  }
  const char *page = gtk_stack_get_visible_child_name(self->stack);
  if (g_strcmp0(page, "new") == 0 || gtk_list_box_get_selected_row(self->runs))
    return;
  if (count > 0) {
    gtk_list_box_select_row(self->runs, gtk_list_box_get_row_at_index(self->runs, 0));
  } else {
    msu_run_view_set_run(MSU_RUN_VIEW(self->view), NULL);
    show_page(self, "empty");
  }
}

static void msu_train_page_dispose(GObject *object) {
  MsuTrainPage *self = MSU_TRAIN_PAGE(object);
  GtkWidget *child;
  g_clear_object(&self->chooser);
  g_clear_object(&self->started);
  g_clear_object(&self->studio);
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(self))))
    gtk_widget_unparent(child);
  G_OBJECT_CLASS(msu_train_page_parent_class)->dispose(object);
}

static void msu_train_page_class_init(MsuTrainPageClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = msu_train_page_dispose;
  gtk_widget_class_set_template_from_resource(widget_class, "/org/megaslide/Studio/train/msu-train-page.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPage, side);
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPage, runs);
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPage, stack);
  gtk_widget_class_bind_template_child(widget_class, MsuTrainPage, messages);
  gtk_widget_class_bind_template_callback(widget_class, choose_cb);
  gtk_widget_class_bind_template_callback(widget_class, selected_cb);
}

static void msu_train_page_init(MsuTrainPage *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  GtkDropTarget *drop = gtk_drop_target_new(GDK_TYPE_FILE_LIST, GDK_ACTION_COPY);
  g_signal_connect_swapped(drop, "enter", G_CALLBACK(enter_cb), self);
  g_signal_connect_swapped(drop, "leave", G_CALLBACK(leave_cb), self);
  g_signal_connect_swapped(drop, "drop", G_CALLBACK(drop_cb), self);
  gtk_widget_add_controller(GTK_WIDGET(self), GTK_EVENT_CONTROLLER(drop));
}

GtkWidget *msu_train_page_new(MsaStudio *studio) {
  MsuTrainPage *self = g_object_new(MSU_TYPE_TRAIN_PAGE, NULL);
  GListModel *runs = msa_studio_get_runs(studio);
  self->studio = g_object_ref(studio);
  self->new_run = msu_new_run_new(studio);
  self->view = msu_run_view_new(studio);
  gtk_stack_add_named(self->stack, self->new_run, "new");
  gtk_stack_add_named(self->stack, self->view, "run");
  g_signal_connect_object(self->new_run, "choose", G_CALLBACK(choose_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(self->new_run, "started", G_CALLBACK(started_cb), self, G_CONNECT_SWAPPED);
  gtk_list_box_bind_model(self->runs, runs, row_cb, NULL, NULL);
  g_signal_connect_object(runs, "items-changed", G_CALLBACK(runs_changed_cb), self, G_CONNECT_SWAPPED);
  runs_changed_cb(self);
  return GTK_WIDGET(self);
}
