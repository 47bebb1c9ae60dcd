#include "create/msu-prompt.h"
#include <glib/gi18n.h>

struct _MsuPrompt {
  GtkWidget parent_instance;
  GtkWidget *overlay, *view, *placeholder;
  GtkTextBuffer *buffer; /* the view's */
  MsaLibrary *library;
  int place;        /* in the history; -1: not walking */
  gboolean walking; /* the change comes from us */
};

enum { PROP_TEXT = 1, N_PROPS };
static GParamSpec *props[N_PROPS];

G_DEFINE_FINAL_TYPE(MsuPrompt, msu_prompt, GTK_TYPE_WIDGET)

static void changed_cb(MsuPrompt *self) {
  gtk_widget_set_visible(self->placeholder, gtk_text_buffer_get_char_count(self->buffer) == 0);
  if (!self->walking)
    self->place = -1;
  g_object_notify_by_pspec(G_OBJECT(self), props[PROP_TEXT]);
}

static void show_place(MsuPrompt *self, const char *text) {
  self->walking = TRUE;
  gtk_text_buffer_set_text(self->buffer, text, -1);
  self->walking = FALSE;
}

static gboolean key_cb(GtkEventControllerKey *controller, guint key, guint code, GdkModifierType state,
                       MsuPrompt *self) {
  const gboolean up = key == GDK_KEY_Up || key == GDK_KEY_KP_Up;
  const gboolean down = key == GDK_KEY_Down || key == GDK_KEY_KP_Down;
  if (state & (GDK_CONTROL_MASK | GDK_ALT_MASK | GDK_SHIFT_MASK))
    return FALSE;
  if (!self->library || (!up && !down) ||
      (self->place < 0 && (!up || gtk_text_buffer_get_char_count(self->buffer) > 0)))
    return FALSE;
  const char *const *prompts = msa_library_get_prompts(self->library);
  const int count = prompts ? (int)g_strv_length((char **)prompts) : 0;
  const int place = self->place + (up ? 1 : -1);
  if (place >= count)
    return TRUE;
  self->place = place;
  show_place(self, place < 0 ? "" : prompts[place]);
  return TRUE;
}

static void prompts_cb(MsuPrompt *self) {
  self->place = -1;
}

char *msu_prompt_dup_text(MsuPrompt *self) {
  GtkTextIter from, to;
  g_return_val_if_fail(MSU_IS_PROMPT(self), NULL);
  gtk_text_buffer_get_bounds(self->buffer, &from, &to);
  return g_strstrip(gtk_text_buffer_get_text(self->buffer, &from, &to, FALSE));
}

void msu_prompt_set_text(MsuPrompt *self, const char *text) {
  g_return_if_fail(MSU_IS_PROMPT(self));
  gtk_text_buffer_set_text(self->buffer, text ? text : "", -1);
}

void msu_prompt_set_library(MsuPrompt *self, MsaLibrary *library) {
  g_return_if_fail(MSU_IS_PROMPT(self));
  if (g_set_object(&self->library, library) && library)
    g_signal_connect_object(library, "prompts-changed", G_CALLBACK(prompts_cb), self, G_CONNECT_SWAPPED);
}

static gboolean grab_focus(GtkWidget *widget) {
  return gtk_widget_grab_focus(MSU_PROMPT(widget)->view);
}

static void get_property(GObject *object, guint id, GValue *value, GParamSpec *pspec) {
  if (id == PROP_TEXT)
    g_value_take_string(value, msu_prompt_dup_text(MSU_PROMPT(object)));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *pspec) {
  if (id == PROP_TEXT)
    msu_prompt_set_text(MSU_PROMPT(object), g_value_get_string(value));
  else
    G_OBJECT_WARN_INVALID_PROPERTY_ID(object, id, pspec);
}

static void dispose(GObject *object) {
  MsuPrompt *self = MSU_PROMPT(object);
  g_clear_pointer(&self->overlay, gtk_widget_unparent);
  g_clear_object(&self->library);
  G_OBJECT_CLASS(msu_prompt_parent_class)->dispose(object);
}

static void msu_prompt_class_init(MsuPromptClass *klass) {
  GObjectClass *object_class = G_OBJECT_CLASS(klass);
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  object_class->get_property = get_property;
  object_class->set_property = set_property;
  object_class->dispose = dispose;
  widget_class->grab_focus = grab_focus;
  props[PROP_TEXT] = g_param_spec_string("text", NULL, NULL, "", G_PARAM_READWRITE | G_PARAM_STATIC_STRINGS);
  g_object_class_install_properties(object_class, N_PROPS, props);
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BIN_LAYOUT);
  gtk_widget_class_set_css_name(widget_class, "prompt");
}

static void msu_prompt_init(MsuPrompt *self) {
  self->place = -1;
  self->view = gtk_text_view_new();
  self->buffer = gtk_text_view_get_buffer(GTK_TEXT_VIEW(self->view));
  gtk_text_view_set_wrap_mode(GTK_TEXT_VIEW(self->view), GTK_WRAP_WORD_CHAR);
  gtk_text_view_set_accepts_tab(GTK_TEXT_VIEW(self->view), FALSE);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->view), GTK_ACCESSIBLE_PROPERTY_LABEL, _("Prompt"), -1);

  GtkWidget *scroller = gtk_scrolled_window_new();
  gtk_scrolled_window_set_policy(GTK_SCROLLED_WINDOW(scroller), GTK_POLICY_NEVER, GTK_POLICY_AUTOMATIC);
  gtk_scrolled_window_set_child(GTK_SCROLLED_WINDOW(scroller), self->view);
  gtk_scrolled_window_set_min_content_height(GTK_SCROLLED_WINDOW(scroller), 84);

  self->placeholder = gtk_label_new(_("What should move, and how?"));
  gtk_widget_set_can_target(self->placeholder, FALSE);
  gtk_widget_set_halign(self->placeholder, GTK_ALIGN_START);
  gtk_widget_set_valign(self->placeholder, GTK_ALIGN_START);
  gtk_widget_add_css_class(self->placeholder, "dim-label");
  gtk_widget_add_css_class(self->placeholder, "placeholder");

  self->overlay = gtk_overlay_new();
  gtk_overlay_set_child(GTK_OVERLAY(self->overlay), scroller);
  gtk_overlay_add_overlay(GTK_OVERLAY(self->overlay), self->placeholder);
  gtk_widget_set_parent(self->overlay, GTK_WIDGET(self));

  /* Before the text view, which would move the cursor. */
  GtkEventController *keys = gtk_event_controller_key_new();
  gtk_event_controller_set_propagation_phase(keys, GTK_PHASE_CAPTURE);
  g_signal_connect(keys, "key-pressed", G_CALLBACK(key_cb), self);
  gtk_widget_add_controller(self->view, keys);
  g_signal_connect_swapped(self->buffer, "changed", G_CALLBACK(changed_cb), self);
}
