#include "library/msu-export-view.h"

#include <adwaita.h>
#include <glib/gi18n-lib.h>

#include "library/msu-export-place.h"
#include "library/msu-reveal.h"
#include "msa-export.h"
#include "window/msu-format.h"
#include "window/msu-message.h"
#include "window/msu-window.h"

struct _MsuExportView {
  GtkWidget parent_instance;
  GtkWidget *box, *presets, *what, *where, *choose, *messages, *stack, *start, *progress, *done;
  MsaClip *clip;
  const MsaExportPreset *preset;
  char *folder; /* chosen by the person; NULL: the default */
  char *output;
  GCancellable *looking, *exporting;
};

enum { CLOSED, SIGNALS };
static guint signals[SIGNALS];

G_DEFINE_FINAL_TYPE(MsuExportView, msu_export_view, GTK_TYPE_WIDGET)

/* The export itself outlives the view's attention: it says so in a toast when the person has gone on. */
struct run {
  MsuExportView *view;
  MsaClip *clip;
  char *output;
};

static void run_free(struct run *run) {
  g_object_unref(run->view);
  g_object_unref(run->clip);
  g_free(run->output);
  g_free(run);
}

static const char *colour_of(const MsaExportPreset *preset) {
  static const struct {
    const char *id, *words;
  } table[] = {
      {"everywhere", N_("H.264 with 4:2:0 colour in BT.709")},
      {"small", N_("H.264 with 4:2:0 colour in BT.709")},
      {"webm", N_("VP9 with 4:2:0 colour in BT.709")},
      {"h265", N_("H.265 with 4:2:0 colour in BT.709")},
      {"av1", N_("AV1 with 4:2:0 colour in BT.709")},
      {"prores", N_("ProRes with 10-bit 4:2:2 colour in BT.709")},
      {"gif", N_("256 colours")},
      {"png", N_("24-bit sRGB without loss")},
  };
  for (gsize i = 0; i < G_N_ELEMENTS(table); i++)
    if (!g_strcmp0(table[i].id, preset->id))
      return _(table[i].words);
  return preset->format;
}

static gboolean is_folder(const MsaExportPreset *preset) {
  return !g_strcmp0(preset->id, "png");
}

static void show_error(MsuExportView *self, const char *text) {
  GtkWidget *message = msu_message_new(MSU_MESSAGE_ERROR, text);
  msu_message_add_copy(MSU_MESSAGE(message));
  gtk_box_append(GTK_BOX(self->messages), message);
}

static void clear_messages(MsuExportView *self) {
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(self->messages)))
    gtk_box_remove(GTK_BOX(self->messages), child);
}

static void update_start(MsuExportView *self) {
  gtk_widget_set_sensitive(self->start, self->preset && self->output && self->clip);
  gtk_widget_set_sensitive(self->presets, !self->exporting);
  gtk_widget_set_sensitive(self->choose, !self->exporting);
}

static void placed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuExportView) self = data;
  g_autoptr(GError) error = NULL;
  g_autofree char *output = msu_export_place_finish(result, &error);
  if (!output || !self->box)
    return;
  g_free(self->output);
  self->output = g_steal_pointer(&output);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(self->where), self->output);
  update_start(self);
}

static void look_for_place(MsuExportView *self) {
  g_cancellable_cancel(self->looking);
  g_clear_object(&self->looking);
  g_clear_pointer(&self->output, g_free);
  update_start(self);
  if (!self->clip || !self->preset)
    return;
  g_autofree char *name = g_path_get_basename(msa_clip_get_path(self->clip));
  char *dot = strrchr(name, '.');
  if (dot && dot != name)
    *dot = '\0';
  self->looking = g_cancellable_new();
  msu_export_place_async(self->folder, name, is_folder(self->preset) ? NULL : self->preset->extension,
                         self->looking, placed_cb, g_object_ref(self));
}

static void update_what(MsuExportView *self) {
  if (!self->clip || !self->preset)
    return;
  int width = msa_clip_get_width(self->clip), height = msa_clip_get_height(self->clip);
  int frames = msa_clip_get_frames(self->clip);
  g_autofree char *bytes = msu_format_bytes(msa_export_estimate(self->preset, width, height, frames));
  g_autofree char *text = g_strdup_printf(_("%d × %d, %g frames a second, %s, about %s"), width, height,
                                          msa_clip_get_fps(self->clip), colour_of(self->preset), bytes);
  adw_action_row_set_subtitle(ADW_ACTION_ROW(self->what), text);
}

static void preset_cb(GtkCheckButton *button, MsuExportView *self) {
  if (!gtk_check_button_get_active(button))
    return;
  self->preset = g_object_get_data(G_OBJECT(button), "preset");
  gtk_stack_set_visible_child_name(GTK_STACK(self->stack), "ready");
  update_what(self);
  look_for_place(self);
}

/* The presets are known once the Studio is open, so they are asked for when the view is used. */
static void fill_presets(MsuExportView *self) {
  guint count = 0;
  const MsaExportPreset *presets = msa_export_presets(&count);
  GtkWidget *first = NULL;
  if (gtk_widget_get_first_child(self->presets))
    return;
  for (guint i = 0; i < count; i++) {
    GtkWidget *row = adw_action_row_new(), *check = gtk_check_button_new();
    adw_preferences_row_set_title(ADW_PREFERENCES_ROW(row), _(presets[i].label));
    adw_action_row_add_prefix(ADW_ACTION_ROW(row), check);
    adw_action_row_set_activatable_widget(ADW_ACTION_ROW(row), check);
    g_object_set_data(G_OBJECT(check), "preset", (gpointer)&presets[i]);
    if (first)
      gtk_check_button_set_group(GTK_CHECK_BUTTON(check), GTK_CHECK_BUTTON(first));
    else
      first = check;
    g_signal_connect(check, "toggled", G_CALLBACK(preset_cb), self);
    gtk_list_box_append(GTK_LIST_BOX(self->presets), row);
  }
  if (first)
    gtk_check_button_set_active(GTK_CHECK_BUTTON(first), TRUE);
}

static void progress_cb(double fraction, double seconds_left, gpointer data) {
  MsuExportView *self = ((struct run *)data)->view;
  if (!self->exporting || !self->box)
    return;
  g_autofree char *left = seconds_left >= 0 ? msu_format_seconds(seconds_left) : NULL;
  g_autofree char *text = left ? g_strdup_printf(_("%.0f %%, %s left"), fraction * 100, left)
                               : g_strdup_printf(_("%.0f %%"), fraction * 100);
  gtk_progress_bar_set_fraction(GTK_PROGRESS_BAR(self->progress), CLAMP(fraction, 0, 1));
  gtk_progress_bar_set_text(GTK_PROGRESS_BAR(self->progress), text);
}

static void exported_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct run *run = data;
  MsuExportView *self = run->view;
  g_autoptr(GError) error = NULL;
  gboolean ok = msa_export_finish(result, &error);
  g_clear_object(&self->exporting);
  if (!self->box) {
    run_free(run);
    return;
  }
  g_autofree char *name = g_filename_display_basename(run->output);
  g_autofree char *text = g_strdup_printf(_("Saved as “%s”"), name);
  gboolean seen = gtk_widget_get_mapped(GTK_WIDGET(self)) && self->clip == run->clip;
  MsuWindow *window = msu_window_of(GTK_WIDGET(self));
  gtk_stack_set_visible_child_name(GTK_STACK(self->stack), ok && seen ? "done" : "ready");
  if (ok) {
    gtk_label_set_text(GTK_LABEL(self->done), text);
    if (!seen && window)
      msu_window_toast(window, text, _("Show in folder"), "library.show-file",
                       g_variant_new_string(run->output));
  } else if (!g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
    show_error(self, error->message);
  }
  if (!ok)
    look_for_place(self);
  update_start(self);
  run_free(run);
}

static void start_cb(MsuExportView *self) {
  if (!self->clip || !self->preset || !self->output || self->exporting)
    return;
  struct run *run = g_new0(struct run, 1);
  run->view = g_object_ref(self);
  run->clip = g_object_ref(self->clip);
  run->output = g_strdup(self->output);
  clear_messages(self);
  self->exporting = g_cancellable_new();
  gtk_progress_bar_set_fraction(GTK_PROGRESS_BAR(self->progress), 0);
  gtk_progress_bar_set_text(GTK_PROGRESS_BAR(self->progress), _("Starting"));
  gtk_stack_set_visible_child_name(GTK_STACK(self->stack), "running");
  update_start(self);
  msa_export_async(msa_clip_get_path(self->clip), run->output, self->preset->format, self->preset->quality, 0,
                   progress_cb, run, self->exporting, exported_cb, run);
}

static void cancel_cb(MsuExportView *self) {
  g_cancellable_cancel(self->exporting);
}

static void show_cb(MsuExportView *self) {
  if (self->output)
    msu_reveal_file(GTK_WIDGET(self), self->output);
}

static void again_cb(MsuExportView *self) {
  gtk_stack_set_visible_child_name(GTK_STACK(self->stack), "ready");
  look_for_place(self);
}

static void back_cb(MsuExportView *self) {
  g_signal_emit(self, signals[CLOSED], 0);
}

static void chosen_cb(GtkNativeDialog *dialog, int response, MsuExportView *self) {
  if (response == GTK_RESPONSE_ACCEPT) {
    g_autoptr(GFile) file = gtk_file_chooser_get_file(GTK_FILE_CHOOSER(dialog));
    g_free(self->folder);
    self->folder = file ? g_file_get_path(file) : NULL;
    look_for_place(self);
  }
  g_object_unref(dialog);
}

static void choose_cb(MsuExportView *self) {
  GtkRoot *root = gtk_widget_get_root(GTK_WIDGET(self));
  GtkFileChooserNative *dialog =
      gtk_file_chooser_native_new(_("Folder for the export"), GTK_WINDOW(root),
                                  GTK_FILE_CHOOSER_ACTION_SELECT_FOLDER, _("_Choose"), _("_Cancel"));
  g_signal_connect_object(dialog, "response", G_CALLBACK(chosen_cb), self, 0);
  gtk_native_dialog_show(GTK_NATIVE_DIALOG(dialog));
}

static void dispose(GObject *object) {
  MsuExportView *self = MSU_EXPORT_VIEW(object);
  g_cancellable_cancel(self->looking);
  g_clear_object(&self->looking);
  g_clear_object(&self->clip);
  g_clear_pointer(&self->box, gtk_widget_unparent);
  g_clear_pointer(&self->folder, g_free);
  g_clear_pointer(&self->output, g_free);
  G_OBJECT_CLASS(msu_export_view_parent_class)->dispose(object);
}

static void msu_export_view_class_init(MsuExportViewClass *class) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  signals[CLOSED] =
      g_signal_new("closed", MSU_TYPE_EXPORT_VIEW, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_template_from_resource(widget_class,
                                              "/org/megaslide/Studio/library/msu-export-view.ui");
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, box);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, presets);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, what);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, where);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, choose);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, messages);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, stack);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, start);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, progress);
  gtk_widget_class_bind_template_child(widget_class, MsuExportView, done);
  gtk_widget_class_bind_template_callback(widget_class, back_cb);
  gtk_widget_class_bind_template_callback(widget_class, choose_cb);
  gtk_widget_class_bind_template_callback(widget_class, start_cb);
  gtk_widget_class_bind_template_callback(widget_class, cancel_cb);
  gtk_widget_class_bind_template_callback(widget_class, show_cb);
  gtk_widget_class_bind_template_callback(widget_class, again_cb);
}

static void msu_export_view_init(MsuExportView *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
}

void msu_export_view_set_clip(MsuExportView *self, MsaClip *clip) {
  g_return_if_fail(MSU_IS_EXPORT_VIEW(self));
  g_set_object(&self->clip, clip);
  fill_presets(self);
  if (!self->exporting) {
    clear_messages(self);
    gtk_stack_set_visible_child_name(GTK_STACK(self->stack), "ready");
    look_for_place(self);
  }
  update_what(self);
  update_start(self);
}
