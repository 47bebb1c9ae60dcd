#include "train/msu-caption-entry.h"

#include <glib/gi18n.h>

struct _MsuCaptionEntry {
  GtkWidget parent;
  GtkWidget *entry;
  MsaDatasetClip *clip;
};

G_DEFINE_FINAL_TYPE(MsuCaptionEntry, msu_caption_entry, GTK_TYPE_WIDGET)

enum { FAILED, SIGNALS };
static guint signals[SIGNALS];

static void written_cb(GObject *source, GAsyncResult *result, gpointer data) {
  g_autoptr(MsuCaptionEntry) self = data;
  g_autoptr(GError) error = NULL;
  if (!msa_dataset_clip_set_caption_finish(MSA_DATASET_CLIP(source), result, &error))
    g_signal_emit(self, signals[FAILED], 0, error->message);
}

static void write_caption(MsuCaptionEntry *self) {
  if (!self->clip || !self->entry)
    return;
  const char *text = gtk_editable_get_text(GTK_EDITABLE(self->entry));
  if (g_strcmp0(text, msa_dataset_clip_get_caption(self->clip)) != 0)
    msa_dataset_clip_set_caption_async(self->clip, text, written_cb, g_object_ref(self));
}

static void show_caption(MsuCaptionEntry *self) {
  const char *caption = self->clip ? msa_dataset_clip_get_caption(self->clip) : NULL;
  /* what the person types goes before what comes back from the disk */
  if (self->entry && !(gtk_widget_get_state_flags(self->entry) & GTK_STATE_FLAG_FOCUS_WITHIN))
    gtk_editable_set_text(GTK_EDITABLE(self->entry), caption ? caption : "");
}

static gboolean escape_cb(GtkEventControllerKey *keys, guint key, guint code, GdkModifierType state,
                          gpointer data) {
  MsuCaptionEntry *self = data;
  if (key != GDK_KEY_Escape || !self->clip)
    return FALSE;
  gtk_editable_set_text(GTK_EDITABLE(self->entry), msa_dataset_clip_get_caption(self->clip));
  return TRUE;
}

void msu_caption_entry_set_clip(MsuCaptionEntry *self, MsaDatasetClip *clip) {
  g_return_if_fail(MSU_IS_CAPTION_ENTRY(self));
  if (clip == self->clip)
    return;
  write_caption(self);
  if (self->clip)
    g_signal_handlers_disconnect_by_data(self->clip, self);
  g_set_object(&self->clip, clip);
  if (!clip || !self->entry)
    return;
  g_signal_connect_object(clip, "notify::caption", G_CALLBACK(show_caption), self, G_CONNECT_SWAPPED);
  g_autofree char *label = g_strdup_printf(_("Caption of %s"), msa_dataset_clip_get_name(clip));
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->entry), GTK_ACCESSIBLE_PROPERTY_LABEL, label, -1);
  gtk_editable_set_text(GTK_EDITABLE(self->entry), msa_dataset_clip_get_caption(clip));
  gtk_widget_set_sensitive(self->entry, msa_dataset_clip_get_frames(clip) > 0);
}

static void msu_caption_entry_dispose(GObject *object) {
  MsuCaptionEntry *self = MSU_CAPTION_ENTRY(object);
  g_clear_pointer(&self->entry, gtk_widget_unparent);
  g_clear_object(&self->clip);
  G_OBJECT_CLASS(msu_caption_entry_parent_class)->dispose(object);
}

static void msu_caption_entry_class_init(MsuCaptionEntryClass *klass) {
  G_OBJECT_CLASS(klass)->dispose = msu_caption_entry_dispose;
  signals[FAILED] = g_signal_new("failed", MSU_TYPE_CAPTION_ENTRY, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL,
                                 G_TYPE_NONE, 1, G_TYPE_STRING);
  gtk_widget_class_set_layout_manager_type(GTK_WIDGET_CLASS(klass), GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_css_name(GTK_WIDGET_CLASS(klass), "captionentry");
}

static void msu_caption_entry_init(MsuCaptionEntry *self) {
  self->entry = gtk_entry_new();
  gtk_entry_set_placeholder_text(GTK_ENTRY(self->entry), _("What is seen in the clip"));
  gtk_editable_set_width_chars(GTK_EDITABLE(self->entry), 12);
  gtk_widget_set_hexpand(self->entry, TRUE);
  gtk_widget_set_valign(self->entry, GTK_ALIGN_CENTER);
  g_signal_connect_swapped(self->entry, "activate", G_CALLBACK(write_caption), self);
  GtkEventController *focus = gtk_event_controller_focus_new(), *keys = gtk_event_controller_key_new();
  g_signal_connect_swapped(focus, "leave", G_CALLBACK(write_caption), self);
  g_signal_connect(keys, "key-pressed", G_CALLBACK(escape_cb), self);
  gtk_event_controller_set_propagation_phase(keys, GTK_PHASE_CAPTURE);
  gtk_widget_add_controller(self->entry, focus);
  gtk_widget_add_controller(self->entry, keys);
  gtk_widget_set_parent(self->entry, GTK_WIDGET(self));
}

GtkWidget *msu_caption_entry_new(void) {
  return g_object_new(MSU_TYPE_CAPTION_ENTRY, NULL);
}
