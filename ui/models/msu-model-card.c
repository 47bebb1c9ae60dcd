#include "models/msu-model-card.h"

#include <glib/gi18n.h>

#include "models/markdown.h"
#include "window/msu-format.h"

#define MOST_EXAMPLES 3

struct _MsuModelCard {
  GtkWidget parent_instance;
  MsaModel *model;
  GtkWidget *content, *examples, *expander, *remove;
  GtkLabel *name, *origin, *verdict, *summary, *facts, *folder;
  GtkImage *verdict_icon;
};

enum { USE, SHOW_FOLDER, REMOVE, N_SIGNALS };
static guint signals[N_SIGNALS];

G_DEFINE_FINAL_TYPE(MsuModelCard, msu_model_card, GTK_TYPE_WIDGET)

static void use_cb(MsuModelCard *self) {
  g_signal_emit(self, signals[USE], 0, NULL);
}

static void show_folder_cb(MsuModelCard *self) {
  g_signal_emit(self, signals[SHOW_FOLDER], 0);
}

static void remove_cb(MsuModelCard *self) {
  g_signal_emit(self, signals[REMOVE], 0);
}

static void example_cb(MsuModelCard *self, GtkButton *button) {
  g_signal_emit(self, signals[USE], 0, g_object_get_data(G_OBJECT(button), "prompt"));
}

/* The card is made of widgets only when somebody opens it. */
static void expanded_cb(MsuModelCard *self) {
  GtkExpander *expander = GTK_EXPANDER(self->expander);
  if (gtk_expander_get_expanded(expander) && !gtk_expander_get_child(expander)) {
    GtkWidget *card = msu_markdown_new(msa_model_get_card(self->model));
    gtk_widget_add_css_class(card, "model-card-text");
    gtk_expander_set_child(expander, card);
  }
}

static void verdict_cb(MsuModelCard *self) {
  const char *verdict = msa_model_get_verdict(self->model);
  const gboolean fits = msa_model_get_fits(self->model);
  gtk_label_set_text(self->verdict, *verdict ? verdict : _("Looking at this machine"));
  gtk_widget_set_visible(GTK_WIDGET(self->verdict_icon), *verdict != 0);
  gtk_image_set_from_icon_name(self->verdict_icon, fits ? "emblem-ok-symbolic" : "dialog-warning-symbolic");
  gtk_widget_remove_css_class(GTK_WIDGET(self->verdict_icon), fits ? "warning" : "success");
  gtk_widget_add_css_class(GTK_WIDGET(self->verdict_icon), fits ? "success" : "warning");
}

static void dispose(GObject *object) {
  MsuModelCard *self = MSU_MODEL_CARD(object);
  g_clear_pointer(&self->content, gtk_widget_unparent);
  g_clear_object(&self->model);
  G_OBJECT_CLASS(msu_model_card_parent_class)->dispose(object);
}

static void msu_model_card_class_init(MsuModelCardClass *class) {
  GtkWidgetClass *widget = GTK_WIDGET_CLASS(class);
  G_OBJECT_CLASS(class)->dispose = dispose;
  signals[USE] = g_signal_new("use", MSU_TYPE_MODEL_CARD, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE,
                              1, G_TYPE_STRING);
  signals[SHOW_FOLDER] = g_signal_new("show-folder", MSU_TYPE_MODEL_CARD, G_SIGNAL_RUN_LAST, 0, NULL, NULL,
                                      NULL, G_TYPE_NONE, 0);
  signals[REMOVE] =
      g_signal_new("remove", MSU_TYPE_MODEL_CARD, G_SIGNAL_RUN_LAST, 0, NULL, NULL, NULL, G_TYPE_NONE, 0);
  gtk_widget_class_set_template_from_resource(widget, "/org/megaslide/Studio/models/msu-model-card.ui");
  gtk_widget_class_bind_template_child(widget, MsuModelCard, content);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, examples);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, expander);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, remove);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, name);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, origin);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, verdict);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, verdict_icon);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, summary);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, facts);
  gtk_widget_class_bind_template_child(widget, MsuModelCard, folder);
  gtk_widget_class_bind_template_callback(widget, use_cb);
  gtk_widget_class_bind_template_callback(widget, show_folder_cb);
  gtk_widget_class_bind_template_callback(widget, remove_cb);
}

static void msu_model_card_init(MsuModelCard *self) {
  gtk_widget_init_template(GTK_WIDGET(self));
  g_signal_connect_swapped(self->expander, "notify::expanded", G_CALLBACK(expanded_cb), self);
}

static char *facts_of(MsaModel *model) {
  const double parameters = (double)msa_model_get_parameters(model);
  g_autofree char *size = msu_format_bytes(msa_model_get_bytes(model));
  g_autofree char *count =
      g_strdup_printf(parameters >= 1e9 ? _("%.1f billion parameters") : _("%.1f million parameters"),
                      parameters / (parameters >= 1e9 ? 1e9 : 1e6));
  const int frames = msa_model_get_frames(model);
  g_autofree char *clip =
      g_strdup_printf(_("clips of %d × %d, %.1f s"), msa_model_get_width(model), msa_model_get_height(model),
                      msa_model_get_fps(model) > 0 ? frames / msa_model_get_fps(model) : 0);
  const char *license = msa_model_get_license(model);
  return g_strjoin("  ·  ", *license ? license : _("licence not stated"), size, count, clip, NULL);
}

static void show_examples(MsuModelCard *self) {
  const char *const *examples = msa_model_get_examples(self->model);
  for (guint i = 0; examples[i] && i < MOST_EXAMPLES; i++) {
    GtkWidget *button = gtk_button_new(), *label = gtk_label_new(examples[i]);
    gtk_label_set_ellipsize(GTK_LABEL(label), PANGO_ELLIPSIZE_END);
    gtk_label_set_max_width_chars(GTK_LABEL(label), 28);
    gtk_button_set_child(GTK_BUTTON(button), label);
    gtk_widget_add_css_class(button, "model-example");
    gtk_widget_set_tooltip_text(button, examples[i]);
    g_object_set_data_full(G_OBJECT(button), "prompt", g_strdup(examples[i]), g_free);
    g_signal_connect_object(button, "clicked", G_CALLBACK(example_cb), self, G_CONNECT_SWAPPED);
    gtk_flow_box_append(GTK_FLOW_BOX(self->examples), button);
    gtk_widget_set_visible(self->examples, TRUE);
  }
}

GtkWidget *msu_model_card_new(MsaModel *model) {
  MsuModelCard *self = g_object_new(MSU_TYPE_MODEL_CARD, NULL);
  g_autofree char *summary = msu_markdown_summary(msa_model_get_card(model)), *facts = facts_of(model),
                  *folder = g_filename_display_name(msa_model_get_folder(model));
  const gboolean own = msa_model_get_own(model);
  self->model = g_object_ref(model);
  gtk_label_set_text(self->name, msa_model_get_name(model));
  gtk_label_set_text(self->origin, own                            ? _("Yours")
                                   : msa_model_get_trained(model) ? _("Trained here")
                                                                  : _("Comes with the program"));
  gtk_label_set_markup(self->summary,
                       *summary ? summary : _("It has no card that says what it is good for."));
  gtk_label_set_text(self->facts, facts);
  gtk_label_set_text(self->folder, folder);
  gtk_widget_set_tooltip_text(GTK_WIDGET(self->folder), folder);
  gtk_widget_set_visible(self->remove, own);
  gtk_widget_set_visible(self->expander, *msa_model_get_card(model) != 0);
  show_examples(self);
  verdict_cb(self);
  g_signal_connect_object(model, "notify::verdict", G_CALLBACK(verdict_cb), self, G_CONNECT_SWAPPED);
  g_signal_connect_object(model, "notify::fits", G_CALLBACK(verdict_cb), self, G_CONNECT_SWAPPED);
  return GTK_WIDGET(self);
}

MsaModel *msu_model_card_get_model(MsuModelCard *card) {
  return card->model;
}
