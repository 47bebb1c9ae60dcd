#include "window/msu-message.h"
#include <glib/gi18n.h>

struct _MsuMessage {
  GtkWidget parent_instance;
  GtkWidget *icon, *label, *buttons, *close;
  const char *topic; /* NULL: none */
};

G_DEFINE_FINAL_TYPE(MsuMessage, msu_message, GTK_TYPE_WIDGET)

struct press {
  void (*callback)(gpointer data);
  gpointer data;
  GDestroyNotify destroy;
};

static void press_free(gpointer data, GClosure *closure) {
  struct press *press = data;
  if (press->destroy)
    press->destroy(press->data);
  g_free(press);
}

static void pressed_cb(GtkButton *button, gpointer data) {
  struct press *press = data;
  /* Dismissing would free the button and with it `press`. */
  g_autoptr(GtkWidget) message = g_object_ref(gtk_widget_get_ancestor(GTK_WIDGET(button), MSU_TYPE_MESSAGE));
  msu_message_dismiss(MSU_MESSAGE(message));
  press->callback(press->data);
}

static void close_cb(GtkButton *button, MsuMessage *self) {
  msu_message_dismiss(self);
}

static void copy_cb(GtkButton *button, MsuMessage *self) {
  gdk_clipboard_set_text(gtk_widget_get_clipboard(GTK_WIDGET(self)),
                         gtk_label_get_text(GTK_LABEL(self->label)));
}

static void dispose(GObject *object) {
  GtkWidget *child;
  while ((child = gtk_widget_get_first_child(GTK_WIDGET(object))))
    gtk_widget_unparent(child);
  G_OBJECT_CLASS(msu_message_parent_class)->dispose(object);
}

static void msu_message_class_init(MsuMessageClass *klass) {
  GtkWidgetClass *widget_class = GTK_WIDGET_CLASS(klass);
  G_OBJECT_CLASS(klass)->dispose = dispose;
  gtk_widget_class_set_layout_manager_type(widget_class, GTK_TYPE_BOX_LAYOUT);
  gtk_widget_class_set_css_name(widget_class, "message");
  gtk_widget_class_set_accessible_role(widget_class, GTK_ACCESSIBLE_ROLE_ALERT);
}

static void msu_message_init(MsuMessage *self) {
  self->icon = gtk_image_new();
  gtk_widget_set_valign(self->icon, GTK_ALIGN_START);
  gtk_widget_set_parent(self->icon, GTK_WIDGET(self));

  self->label = gtk_label_new(NULL);
  gtk_label_set_wrap(GTK_LABEL(self->label), TRUE);
  gtk_label_set_wrap_mode(GTK_LABEL(self->label), PANGO_WRAP_WORD_CHAR);
  gtk_label_set_xalign(GTK_LABEL(self->label), 0);
  gtk_label_set_selectable(GTK_LABEL(self->label), TRUE);
  gtk_widget_set_hexpand(self->label, TRUE);
  gtk_widget_set_parent(self->label, GTK_WIDGET(self));

  self->buttons = gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 6);
  gtk_widget_set_valign(self->buttons, GTK_ALIGN_CENTER);
  gtk_widget_set_parent(self->buttons, GTK_WIDGET(self));

  self->close = gtk_button_new_from_icon_name("window-close-symbolic");
  gtk_widget_add_css_class(self->close, "flat");
  gtk_widget_add_css_class(self->close, "circular");
  gtk_widget_set_valign(self->close, GTK_ALIGN_CENTER);
  gtk_widget_set_tooltip_text(self->close, _("Close this message"));
  gtk_accessible_update_property(GTK_ACCESSIBLE(self->close), GTK_ACCESSIBLE_PROPERTY_LABEL,
                                 _("Close this message"), -1);
  gtk_widget_set_parent(self->close, GTK_WIDGET(self));
  g_signal_connect(self->close, "clicked", G_CALLBACK(close_cb), self);
}

GtkWidget *msu_message_new(enum msu_message_kind kind, const char *text) {
  static const char *const icons[] = {"dialog-information-symbolic", "dialog-warning-symbolic",
                                      "dialog-error-symbolic"};
  static const char *const classes[] = {"note", "warning", "error"};
  MsuMessage *self = g_object_new(MSU_TYPE_MESSAGE, NULL);
  gtk_image_set_from_icon_name(GTK_IMAGE(self->icon), icons[kind]);
  gtk_widget_add_css_class(GTK_WIDGET(self), classes[kind]);
  gtk_label_set_text(GTK_LABEL(self->label), text);
  gtk_accessible_update_property(GTK_ACCESSIBLE(self), GTK_ACCESSIBLE_PROPERTY_LABEL, text, -1);
  return GTK_WIDGET(self);
}

void msu_message_add_button(MsuMessage *self, const char *label, void (*callback)(gpointer), gpointer data,
                            GDestroyNotify destroy) {
  g_return_if_fail(MSU_IS_MESSAGE(self));
  GtkWidget *button = gtk_button_new_with_label(label);
  struct press *press = g_new0(struct press, 1);
  *press = (struct press){.callback = callback, .data = data, .destroy = destroy};
  g_signal_connect_data(button, "clicked", G_CALLBACK(pressed_cb), press, press_free, 0);
  gtk_box_append(GTK_BOX(self->buttons), button);
}

void msu_message_add_copy(MsuMessage *self) {
  g_return_if_fail(MSU_IS_MESSAGE(self));
  GtkWidget *button = gtk_button_new_with_label(_("Copy"));
  g_signal_connect(button, "clicked", G_CALLBACK(copy_cb), self);
  gtk_box_append(GTK_BOX(self->buttons), button);
}

void msu_message_put(GtkBox *box, const char *topic, GtkWidget *message) {
  GtkWidget *next;
  for (GtkWidget *child = gtk_widget_get_first_child(GTK_WIDGET(box)); child; child = next) {
    next = gtk_widget_get_next_sibling(child);
    if (MSU_IS_MESSAGE(child) && !g_strcmp0(MSU_MESSAGE(child)->topic, topic))
      gtk_box_remove(box, child);
  }
  if (!message)
    return;
  MSU_MESSAGE(message)->topic = topic;
  gtk_box_append(box, message);
}

void msu_message_dismiss(MsuMessage *self) {
  g_return_if_fail(MSU_IS_MESSAGE(self));
  GtkWidget *parent = gtk_widget_get_parent(GTK_WIDGET(self));
  if (GTK_IS_BOX(parent))
    gtk_box_remove(GTK_BOX(parent), GTK_WIDGET(self));
}
