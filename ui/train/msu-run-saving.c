#include "train/msu-run-saving.h"

#include <glib/gi18n.h>

struct saving {
  GtkFileChooserNative *chooser; /* owned while it is open */
  GdkTexture *texture;           /* PNG; NULL: curves, or the trace */
  gboolean trace;
  MsaRun *run;
  char *path;
  MsuSavingDone done;
  GObject *owner;
};

static void saving_free(struct saving *saving) {
  g_clear_object(&saving->chooser);
  g_clear_object(&saving->texture);
  g_object_unref(saving->run);
  g_object_unref(saving->owner);
  g_free(saving->path);
  g_free(saving);
}

static void end(struct saving *saving, const GError *error) {
  saving->done(saving->owner, error ? NULL : saving->path, error ? error->message : NULL);
  saving_free(saving);
}

static void csv_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GError) error = NULL;
  msa_run_save_csv_finish(MSA_RUN(source), result, &error);
  end(data, error);
}

static void trace_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GError) error = NULL;
  msa_run_save_trace_finish(MSA_RUN(source), result, &error);
  end(data, error);
}

static void png_work(GTask *task, gpointer source, gpointer data, GCancellable *cancellable) {
  struct saving *saving = data;
  GError *error = NULL;
  g_autoptr(GBytes) bytes = gdk_texture_save_to_png_bytes(saving->texture);
  gsize size;
  const void *png = g_bytes_get_data(bytes, &size);
  if (g_file_set_contents(saving->path, png, (gssize)size, &error)) {
    g_task_return_boolean(task, TRUE);
    return;
  }
  g_prefix_error(&error, _("The picture “%s” cannot be saved: "), saving->path);
  g_task_return_error(task, error);
}

static void png_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(GError) error = NULL;
  g_task_propagate_boolean(G_TASK(result), &error);
  end(data, error);
}

static void response_cb(GtkNativeDialog *dialog, int response, gpointer data) {
  struct saving *saving = data;
  g_autoptr(GFile) file =
      response == GTK_RESPONSE_ACCEPT ? gtk_file_chooser_get_file(GTK_FILE_CHOOSER(dialog)) : NULL;
  saving->path = file ? g_file_get_path(file) : NULL;
  gtk_native_dialog_hide(dialog);
  if (!saving->path) {
    saving_free(saving);
  } else if (saving->texture) {
    g_autoptr(GTask) task = g_task_new(NULL, NULL, png_cb, saving);
    g_task_set_task_data(task, saving, NULL);
    g_task_run_in_thread(task, png_work);
  } else if (saving->trace) {
    msa_run_save_trace_async(saving->run, saving->path, trace_cb, saving);
  } else {
    msa_run_save_csv_async(saving->run, saving->path, csv_cb, saving);
  }
}

static void ask(struct saving *saving, GtkWidget *over, const char *title, const char *extension) {
  GtkRoot *root = gtk_widget_get_root(over);
  saving->chooser = gtk_file_chooser_native_new(title, GTK_IS_WINDOW(root) ? GTK_WINDOW(root) : NULL,
                                                GTK_FILE_CHOOSER_ACTION_SAVE, _("Save"), _("Cancel"));
  g_autofree char *name = g_strconcat(msa_run_get_name(saving->run), ".", extension, NULL);
  g_strdelimit(name, "/", '-');
  gtk_file_chooser_set_current_name(GTK_FILE_CHOOSER(saving->chooser), name);
  gtk_native_dialog_set_modal(GTK_NATIVE_DIALOG(saving->chooser), TRUE);
  g_signal_connect(saving->chooser, "response", G_CALLBACK(response_cb), saving);
  gtk_native_dialog_show(GTK_NATIVE_DIALOG(saving->chooser));
}

static struct saving *saving_new(MsaRun *run, MsuSavingDone done, GObject *owner) {
  struct saving *saving = g_new0(struct saving, 1);
  saving->run = g_object_ref(run);
  saving->done = done;
  saving->owner = g_object_ref(owner);
  return saving;
}

void msu_run_saving_png(MsuRunGraphs *graphs, MsaRun *run, MsuSavingDone done, GObject *owner) {
  g_autoptr(GdkTexture) texture = msu_run_graphs_render(graphs);
  g_return_if_fail(texture);
  struct saving *saving = saving_new(run, done, owner);
  saving->texture = g_steal_pointer(&texture);
  ask(saving, GTK_WIDGET(graphs), _("Save graphs as a picture"), "png");
}

void msu_run_saving_csv(GtkWidget *over, MsaRun *run, MsuSavingDone done, GObject *owner) {
  ask(saving_new(run, done, owner), over, _("Save curves as a table"), "csv");
}

void msu_run_saving_trace(GtkWidget *over, MsaRun *run, MsuSavingDone done, GObject *owner) {
  struct saving *saving = saving_new(run, done, owner);
  saving->trace = TRUE;
  ask(saving, over, _("Save trace of the lanes"), "json");
}

void msu_run_saving_copy(MsuRunGraphs *graphs) {
  g_autoptr(GdkTexture) texture = msu_run_graphs_render(graphs);
  if (texture)
    gdk_clipboard_set_texture(gtk_widget_get_clipboard(GTK_WIDGET(graphs)), texture);
}
