#include "window/msu-dropping.h"
#include "window/msu-message.h"
#include <glib/gi18n.h>

struct looked {
  MsuWindow *window;
  GtkBox *messages;
  char *path;
};

static void looked_free(struct looked *looked) {
  g_object_unref(looked->messages);
  g_object_unref(looked->window);
  g_free(looked->path);
  g_free(looked);
}

static struct looked *looked_new(MsuWindow *window, GtkBox *messages, const char *path) {
  struct looked *looked = g_new0(struct looked, 1);
  looked->window = g_object_ref(window);
  looked->messages = g_object_ref(messages);
  looked->path = g_strdup(path);
  return looked;
}

/* At most one message is of a drop, the last one's. NULL: it was well. */
static void tell(GtkBox *messages, GtkWidget *message) {
  msu_message_put(messages, "drop", message);
}

static void added_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct looked *looked = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaClip) clip = msa_library_add_finish(MSA_LIBRARY(source), result, &error);
  if (clip) {
    msu_window_show_clip(looked->window, clip);
    msu_window_toast(looked->window, _("The clip is in the library"), NULL, NULL, NULL);
  } else {
    tell(looked->messages, msu_message_new(MSU_MESSAGE_ERROR, error->message));
  }
  looked_free(looked);
}

/* Pressed in the message; its `looked` goes with the message. */
static void add_to_library(gpointer data) {
  struct looked *looked = data;
  MsaLibrary *library = msa_studio_get_library(msu_window_get_studio(looked->window));
  msa_library_add_async(library, looked->path, added_cb,
                        looked_new(looked->window, looked->messages, looked->path));
}

static void offer_library(struct looked *looked) {
  g_autofree char *name = g_path_get_basename(looked->path);
  g_autofree char *text =
      g_strdup_printf(_("“%s” carries no settings, so there is nothing to restore."), name);
  GtkWidget *message = msu_message_new(MSU_MESSAGE_NOTE, text);
  msu_message_add_button(MSU_MESSAGE(message), _("Add to library"), add_to_library,
                         looked_new(looked->window, looked->messages, looked->path),
                         (GDestroyNotify)looked_free);
  tell(looked->messages, message);
}

static void looked_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct looked *looked = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaDropped) dropped = msa_library_look_finish(MSA_LIBRARY(source), result, &error);
  if (!dropped) {
    GtkWidget *message = msu_message_new(MSU_MESSAGE_ERROR, error->message);
    msu_message_add_copy(MSU_MESSAGE(message));
    tell(looked->messages, message);
  } else if (!dropped->params) {
    offer_library(looked);
  } else {
    tell(looked->messages, NULL);
    msu_window_use_params(looked->window, dropped->params, (const char *const *)dropped->notes);
    msu_window_toast(looked->window, _("Settings restored from the clip"), NULL, NULL, NULL);
  }
  looked_free(looked);
}

void msu_dropping_open(MsuWindow *window, GtkBox *messages, GFile *file) {
  g_autofree char *path = g_file_get_path(file);
  if (!path) {
    tell(messages,
         msu_message_new(MSU_MESSAGE_ERROR, _("This file is not on this machine. Copy it here first.")));
    return;
  }
  msa_library_look_async(msa_studio_get_library(msu_window_get_studio(window)), path, NULL, looked_cb,
                         looked_new(window, messages, path));
}

static gboolean drop_cb(GtkDropTarget *target, const GValue *value, double x, double y, GtkBox *messages) {
  MsuWindow *window = MSU_WINDOW(gtk_event_controller_get_widget(GTK_EVENT_CONTROLLER(target)));
  const GSList *files = g_value_get_boxed(value);
  gtk_widget_remove_css_class(GTK_WIDGET(window), "drop-here");
  if (!files)
    return FALSE;
  msu_dropping_open(window, messages, files->data);
  return TRUE;
}

/* Where a widget inside may take the file, it shows that itself; this target is then not told of the end. */
static GdkDragAction enter_cb(GtkDropTarget *target, double x, double y) {
  if (gtk_event_controller_get_propagation_phase(GTK_EVENT_CONTROLLER(target)) == GTK_PHASE_CAPTURE)
    gtk_widget_add_css_class(gtk_event_controller_get_widget(GTK_EVENT_CONTROLLER(target)), "drop-here");
  return GDK_ACTION_COPY;
}

static void leave_cb(GtkDropTarget *target) {
  gtk_widget_remove_css_class(gtk_event_controller_get_widget(GTK_EVENT_CONTROLLER(target)), "drop-here");
}

/* Before the widgets inside, so that a file dropped on the prompt is not pasted there as a name; but the
 * Train page takes a folder of clips itself. */
static void page_cb(AdwViewStack *pages, GParamSpec *pspec, GtkEventController *target) {
  const gboolean train = !g_strcmp0(adw_view_stack_get_visible_child_name(pages), "train");
  gtk_event_controller_set_propagation_phase(target, train ? GTK_PHASE_BUBBLE : GTK_PHASE_CAPTURE);
}

void msu_dropping_attach(MsuWindow *window, AdwViewStack *pages, GtkBox *messages) {
  GtkDropTarget *target = gtk_drop_target_new(GDK_TYPE_FILE_LIST, GDK_ACTION_COPY);
  g_signal_connect(target, "drop", G_CALLBACK(drop_cb), messages);
  g_signal_connect(target, "enter", G_CALLBACK(enter_cb), NULL);
  g_signal_connect(target, "leave", G_CALLBACK(leave_cb), NULL);
  gtk_widget_add_controller(GTK_WIDGET(window), GTK_EVENT_CONTROLLER(target));
  g_signal_connect_object(pages, "notify::visible-child", G_CALLBACK(page_cb), target, 0);
  page_cb(pages, NULL, GTK_EVENT_CONTROLLER(target));
}
