/* The Models page in a window of its own: cards, their words, and that nothing of it stays behind. */
#include <adwaita.h>
#include <string.h>

#include "find.h"
#include "harness.h"
#include "models/markdown.h"
#include "models/msu-model-card.h"
#include "models/msu-models-page.h"
#include "room.h"
#include "wait.h"

static gboolean has_card(gpointer page) {
  return find(page, MSU_TYPE_MODEL_CARD, NULL) != NULL;
}

static void check_markdown(void) {
  static const char text[] =
      "# A title\n\nFirst **bold** and `code` <here>\ngoes on.\n\nSecond.\n\nThird.\n\n"
      "- one\n  two\n\n| a | b |\n|---|---|\n| long cell | 2 |\n";
  g_autofree char *summary = msu_markdown_summary(text), *none = msu_markdown_summary("# Only a title\n");
  check_ok(!strcmp(summary, "First <b>bold</b> and <tt>code</tt> &lt;here&gt; goes on.\nSecond."),
           "a summary");
  check_ok(!*none, "none where there are no words");
  GtkWidget *box = g_object_ref_sink(msu_markdown_new(text));
  check_ok(find(box, GTK_TYPE_LABEL, "A title") &&
               find(box, GTK_TYPE_LABEL, "First bold and code <here> goes on."),
           "headings and paragraphs");
  check_ok(find(box, GTK_TYPE_LABEL, "one two") && find(box, GTK_TYPE_LABEL, "a          b\nlong cell  2"),
           "lists and tables");
  g_object_unref(box);
}

static void used_cb(MsuModelCard *card, const char *prompt, gpointer data) {
  *(char **)data = g_strdup(prompt ? prompt : "");
}

static void check_page(MsaStudio *studio) {
  GtkWidget *window = gtk_window_new(), *page = msu_models_page_new(studio);
  gboolean gone = FALSE;
  char *used = NULL;
  gtk_window_set_child(GTK_WINDOW(window), page);
  gtk_window_present(GTK_WINDOW(window));
  check_ok(room_until(has_card, page, 10), "the starter has a card");
  GtkWidget *card = find(page, MSU_TYPE_MODEL_CARD, NULL);
  if (!card)
    return;
  check_ok(find(card, GTK_TYPE_LABEL, "starter") && find(card, GTK_TYPE_LABEL, "GPL-3.0-or-later") &&
               find(card, GTK_TYPE_LABEL, "What it knows") && find(card, GTK_TYPE_LABEL, "models/starter"),
           "with name, licence, what it knows and where it lies");
  GtkWidget *use = find(card, GTK_TYPE_BUTTON, "Use"), *remove = find(card, GTK_TYPE_BUTTON, "Remove");
  check_ok(use && remove && !gtk_widget_get_visible(remove), "it can be used and not removed");
  g_signal_connect(card, "use", G_CALLBACK(used_cb), &used);
  g_signal_emit_by_name(use, "clicked");
  check_ok(used && !*used, "use is told");
  g_free(used);
  GtkWidget *expander = find(card, GTK_TYPE_EXPANDER, NULL);
  gtk_expander_set_expanded(GTK_EXPANDER(expander), TRUE);
  check_ok(find(card, GTK_TYPE_LABEL, "How it was made") != NULL, "its card opens");
  g_object_weak_ref(G_OBJECT(page), wait_gone_cb, &gone);
  gtk_window_destroy(GTK_WINDOW(window));
  check_ok(room_until(wait_flag, &gone, 10), "the page goes with its window");
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  adw_init();
  g_autoptr(GAsyncResult) opened = NULL, closed = NULL;
  MsaStudio *studio = msa_studio_new();
  msa_studio_open_async(studio, room_done, &opened);
  check_ok(msa_studio_open_finish(studio, room_wait(&opened), NULL), "the studio opens");
  check_markdown();
  check_page(studio);
  msa_studio_close_async(studio, room_done, &closed);
  check_ok(msa_studio_close_finish(studio, room_wait(&closed), NULL), "and closes");
  g_object_unref(studio);
  return room_end();
}
