#include "window/msu-closing.h"
#include <glib/gi18n.h>

static void closed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuWindow) window = data;
  g_autoptr(GError) error = NULL;
  /* What could not be closed in order is mended at the next start; there is no one left to tell here. */
  if (!msa_studio_close_finish(MSA_STUDIO(source), result, &error))
    g_warning("%s", error->message);
  gtk_window_destroy(GTK_WINDOW(window));
}

static void close_now(MsuWindow *window) {
  gtk_widget_set_visible(GTK_WIDGET(window), FALSE);
  msa_studio_close_async(msu_window_get_studio(window), closed_cb, g_object_ref(window));
}

/* A paused queue starts nothing more, and a failed job waits for a person. */
static gboolean goes_on(MsaQueue *queue) {
  if (msa_queue_get_running(queue))
    return TRUE;
  if (msa_queue_get_paused(queue))
    return FALSE;
  const guint count = g_list_model_get_n_items(G_LIST_MODEL(queue));
  for (guint i = 0; i < count; i++) {
    g_autoptr(MsaJob) job = g_list_model_get_item(G_LIST_MODEL(queue), i);
    if (msa_job_get_state(job) == MSA_JOB_QUEUED)
      return TRUE;
  }
  return FALSE;
}

static void answer_cb(AdwMessageDialog *dialog, const char *answer, MsuWindow *window) {
  if (!g_strcmp0(answer, "pause"))
    close_now(window);
  else if (!g_strcmp0(answer, "keep"))
    gtk_widget_set_visible(GTK_WIDGET(window), FALSE);
}

static gboolean settled_cb(gpointer data) {
  g_autoptr(GtkWindow) dialog = data;
  GtkWindow *window = gtk_window_get_transient_for(dialog);
  if (!window || !gtk_widget_get_visible(GTK_WIDGET(dialog)) ||
      goes_on(msa_studio_get_queue(msu_window_get_studio(MSU_WINDOW(window)))))
    return G_SOURCE_REMOVE;
  gtk_window_destroy(dialog);
  close_now(MSU_WINDOW(window));
  return G_SOURCE_REMOVE;
}

/* Where nothing goes on any more there is nothing to ask, and the window closes as it was told to. The queue
 * first has its turn to start the next job. */
static void ended_meanwhile_cb(GtkWindow *dialog, MsaJob *job) {
  g_timeout_add(1000, settled_cb, g_object_ref(dialog));
}

void msu_closing_begin(MsuWindow *window) {
  MsaJob *job = msa_queue_get_running(msa_studio_get_queue(msu_window_get_studio(window)));
  if (!job) {
    close_now(window);
    return;
  }
  const gboolean train = msa_job_get_kind(job) == MSA_JOB_TRAIN;
  GtkWidget *dialog = adw_message_dialog_new(
      GTK_WINDOW(window), train ? _("A model is being trained") : _("A clip is being made"),
      _("Paused, it can go on from its last step when you open the Studio again. Kept running, it ends "
        "without "
        "the window."));
  adw_message_dialog_add_responses(ADW_MESSAGE_DIALOG(dialog), "cancel", _("Cancel"), "keep",
                                   _("Keep running"), "pause", _("Pause and close"), NULL);
  adw_message_dialog_set_response_appearance(ADW_MESSAGE_DIALOG(dialog), "pause", ADW_RESPONSE_SUGGESTED);
  adw_message_dialog_set_default_response(ADW_MESSAGE_DIALOG(dialog), "pause");
  adw_message_dialog_set_close_response(ADW_MESSAGE_DIALOG(dialog), "cancel");
  g_signal_connect_object(dialog, "response", G_CALLBACK(answer_cb), window, 0);
  g_signal_connect_object(msa_studio_get_queue(msu_window_get_studio(window)), "job-ended",
                          G_CALLBACK(ended_meanwhile_cb), dialog, G_CONNECT_SWAPPED);
  gtk_window_present(GTK_WINDOW(dialog));
}

static gboolean check_cb(gpointer data) {
  g_autoptr(MsuWindow) window = data;
  MsaQueue *queue = msa_studio_get_queue(msu_window_get_studio(window));
  if (!gtk_widget_get_visible(GTK_WIDGET(window)) && !goes_on(queue))
    close_now(window);
  return G_SOURCE_REMOVE;
}

static void ended_cb(MsuWindow *window, MsaJob *job) {
  /* After the queue has had its turn to start the next job. */
  if (!gtk_widget_get_visible(GTK_WIDGET(window)))
    g_timeout_add(1000, check_cb, g_object_ref(window));
}

void msu_closing_watch(MsuWindow *window) {
  g_signal_connect_object(msa_studio_get_queue(msu_window_get_studio(window)), "job-ended",
                          G_CALLBACK(ended_cb), window, G_CONNECT_SWAPPED);
}
