/* A message in place: what happened, where it happened, with the buttons that help. Not modal; stays until it
 * is closed, a button is pressed, or its owner takes it away. */
#pragma once
#include <gtk/gtk.h>

enum msu_message_kind { MSU_MESSAGE_NOTE, MSU_MESSAGE_WARNING, MSU_MESSAGE_ERROR };

#define MSU_TYPE_MESSAGE (msu_message_get_type())
G_DECLARE_FINAL_TYPE(MsuMessage, msu_message, MSU, MESSAGE, GtkWidget)

/* text may have several lines. */
GtkWidget *msu_message_new(enum msu_message_kind kind, const char *text);
/* Adds a button that takes the message away and then calls back. data must live as long as the message;
 * destroy (may be NULL) frees it with the button. */
void msu_message_add_button(MsuMessage *message, const char *label, void (*callback)(gpointer data),
                            gpointer data, GDestroyNotify destroy);
/* Adds a button that copies the text to the clipboard and leaves the message. */
void msu_message_add_copy(MsuMessage *message);
/* Appends it to a box in place of the one there of the same topic (a static string), so that what is tried
 * again and again leaves one message. NULL: only takes that one away. */
void msu_message_put(GtkBox *box, const char *topic, GtkWidget *message);
/* Takes it out of the GtkBox that it lies in. */
void msu_message_dismiss(MsuMessage *message);
