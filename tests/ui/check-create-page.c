/* The Create page in the window: settings go in and come out, what cannot be made is told in place, a clip is
 * made, and nothing stays behind. */
#include <stdio.h>
#include <string.h>

#include "create/msu-create-page.h"
#include "create/msu-create-stage.h"
#include "create/msu-form.h"
#include "create/msu-length-row.h"
#include "create/msu-prompt.h"
#include "create/msu-seed-row.h"
#include "create/msu-size-row.h"
#include "find.h"
#include "harness.h"
#include "room.h"
#include "wait.h"
#include "widgets/msu-plan-strip.h"
#include "window/msu-format.h"
#include "window/msu-message.h"
#include "window/msu-window-jobs.h"

static void press(GtkWidget *button) {
  g_signal_emit_by_name(button, "clicked");
}

static gboolean says(char *text, const char *wanted) {
  g_autofree char *mine = text;
  return !strcmp(mine, wanted);
}

static void check_words(void) {
  check_ok(says(msu_format_seconds(0.2), "under 1 s") && says(msu_format_seconds(12.4), "12 s") &&
               says(msu_format_seconds(59.6), "1 min") && says(msu_format_seconds(150), "3 min") &&
               says(msu_format_seconds(4320), "1 h 12 min") && says(msu_format_seconds(7200), "2 h") &&
               says(msu_format_seconds(100 * 3600), "4 d 4 h"),
           "times have the unit that fits");
  check_ok(says(msu_format_bytes(1), "1 KB") && says(msu_format_bytes(114 << 20), "114 MB") &&
               says(msu_format_bytes((guint64)1181116007), "1.1 GB") &&
               says(msu_format_bytes((guint64)3 << 40), "3.0 TB"),
           "sizes too");
  check_ok(says(msu_format_phase("cache"), "Preparing clips") && says(msu_format_phase("train"), "Training"),
           "and phases words");
}

static void check_rows(void) {
  int width = 0, height = 0;
  gint64 seed = 0;
  GtkWidget *list = g_object_ref_sink(gtk_list_box_new());
  MsuSizeRow *size = g_object_new(MSU_TYPE_SIZE_ROW, NULL);
  gtk_list_box_append(GTK_LIST_BOX(list), GTK_WIDGET(size));
  GtkEditable *entry = GTK_EDITABLE(msu_size_row_get_entry(size));
  check_ok(!gtk_widget_get_visible(GTK_WIDGET(entry)), "a size of the list needs no entry");
  msu_size_row_set_size(size, 98, 66);
  check_ok(gtk_widget_get_visible(GTK_WIDGET(entry)) && msu_size_row_get_size(size, &width, &height) &&
               width == 98 && height == 66,
           "a size of one's own is typed");
  static const char *const wrong[] = {"",      "98",      "98x",        "x66",   "97x66",
                                      "98x62", "98x66x2", "9999999x64", "-98x66"};
  gboolean refused = TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
    gtk_editable_set_text(entry, wrong[i]);
    refused = refused && !msu_size_row_get_size(size, &width, &height) &&
              gtk_widget_has_css_class(GTK_WIDGET(entry), "error");
  }
  check_ok(refused, "what is no size is marked");
  gtk_editable_set_text(entry, " 98 × 66 ");
  check_ok(msu_size_row_get_size(size, &width, &height) && width == 98 &&
               !gtk_widget_has_css_class(GTK_WIDGET(entry), "error"),
           "and what is one is not");

  MsuLengthRow *length = g_object_new(MSU_TYPE_LENGTH_ROW, NULL);
  gtk_list_box_append(GTK_LIST_BOX(list), GTK_WIDGET(length));
  msu_length_row_set_fps(length, 12);
  msu_length_row_set_frames(length, 33);
  GtkWidget *spin = find(GTK_WIDGET(length), GTK_TYPE_SPIN_BUTTON, NULL);
  check_ok(find(GTK_WIDGET(length), GTK_TYPE_LABEL, "33 frames") &&
               gtk_spin_button_get_value(GTK_SPIN_BUTTON(spin)) == 2.75,
           "a length is told in seconds and frames");
  gtk_spin_button_set_value(GTK_SPIN_BUTTON(spin), 4);
  check_ok(msu_length_row_get_frames(length) == 48, "seconds become frames");
  gtk_drop_down_set_selected(GTK_DROP_DOWN(find(GTK_WIDGET(length), GTK_TYPE_DROP_DOWN, NULL)), 1);
  gtk_spin_button_set_value(GTK_SPIN_BUTTON(spin), 49);
  check_ok(msu_length_row_get_frames(length) == 49 && find(GTK_WIDGET(length), GTK_TYPE_LABEL, "4.08 s"),
           "or frames seconds");

  MsuSeedRow *row = g_object_new(MSU_TYPE_SEED_ROW, NULL);
  gtk_list_box_append(GTK_LIST_BOX(list), GTK_WIDGET(row));
  check_ok(msu_seed_row_get_seed(row, &seed) && seed == -1, "no seed is a random one");
  GtkWidget *text = find(GTK_WIDGET(row), GTK_TYPE_ENTRY, NULL);
  gtk_editable_set_text(GTK_EDITABLE(text), "9223372036854775807");
  check_ok(msu_seed_row_get_seed(row, &seed) && seed == G_MAXINT64, "the largest seed");
  gtk_editable_set_text(GTK_EDITABLE(text), "9223372036854775808");
  check_ok(!msu_seed_row_get_seed(row, &seed) && gtk_widget_has_css_class(text, "error"),
           "one more is too many");
  msu_seed_row_set_last(row, 7);
  GtkWidget *dice = find(GTK_WIDGET(row), GTK_TYPE_BUTTON, NULL);
  press(gtk_widget_get_next_sibling(dice));
  check_ok(msu_seed_row_get_seed(row, &seed) && seed == 7, "the last seed again");
  g_object_unref(list);
}

struct page {
  MsaStudio *studio;
  GtkWidget *window, *page, *form, *plan, *create;
  MsaJob *ended;
};

static MsaGenerateParams *params_of(struct page *at) {
  g_autofree char *problem = NULL;
  return msu_form_dup_params(MSU_FORM(at->form), &problem);
}

static gboolean has_model(gpointer data) {
  return msu_form_get_model(MSU_FORM(((struct page *)data)->form)) != NULL;
}

static gboolean can_create(gpointer data) {
  return gtk_widget_get_sensitive(((struct page *)data)->create);
}

static gboolean cannot_create(gpointer data) {
  return !can_create(data);
}

static gboolean has_suggestion(gpointer data) {
  return find(((struct page *)data)->plan, GTK_TYPE_BUTTON, NULL) != NULL;
}

static gboolean has_ended(gpointer data) {
  return ((struct page *)data)->ended != NULL;
}

static void ended_cb(struct page *at, MsaJob *job) {
  g_set_object(&at->ended, job);
}

static void check_form(struct page *at) {
  MsaLibrary *library = msa_studio_get_library(at->studio);
  check_ok(room_until(has_model, at, 60), "the starter is chosen");
  if (!has_model(at))
    return;
  check_ok(find(at->page, GTK_TYPE_BUTTON, "Create") && !can_create(at),
           "without a prompt there is nothing to create");
  g_autoptr(MsaGenerateParams) asked = msa_generate_params_new();
  g_autoptr(MsaGenerateParams) defaults = params_of(at);
  asked->prompt = g_strdup("a red ball rolls to the right");
  asked->negative = g_strdup("blue");
  asked->model = g_strdup(defaults->model);
  asked->sampler = g_strdup("euler");
  asked->attention = g_strdup("dense");
  asked->width = 66;
  asked->height = 64;
  asked->frames = 5;
  asked->steps = 2;
  asked->fps = 10;
  asked->guidance = 1.5;
  asked->shift = 2;
  asked->seed = 77;
  asked->host_memory = (guint64)2 << 30;
  asked->threads = defaults->threads;
  static const char *const notes[] = {"The first note.", "The second note.", NULL};
  msu_create_page_use_params(MSU_CREATE_PAGE(at->page), asked, notes);
  g_autoptr(MsaGenerateParams) got = params_of(at);
  g_autofree char *json = msa_generate_params_to_json(asked);
  g_autofree char *again = msa_generate_params_to_json(got);
  check_ok(!strcmp(json, again), "settings that go into the form come out of it");
  check_ok(find(at->page, GTK_TYPE_LABEL, "The first note.\nThe second note.") != NULL, "with their notes");
  check_ok(room_until(can_create, at, 10), "they fit");

  asked->width = asked->height = 8000;
  asked->frames = 257;
  msu_create_page_use_params(MSU_CREATE_PAGE(at->page), asked, NULL);
  check_ok(!find(at->page, MSU_TYPE_MESSAGE, NULL), "notes of earlier settings go");
  check_ok(room_until(cannot_create, at, 20) && room_until(has_suggestion, at, 20),
           "what does not fit is refused");
  GtkWidget *suggestion = find(at->plan, GTK_TYPE_BUTTON, NULL);
  if (suggestion)
    press(suggestion);
  check_ok(suggestion && room_until(can_create, at, 20), "a suggestion makes it fit");
  MsuPrompt *prompt = MSU_PROMPT(find(at->form, MSU_TYPE_PROMPT, NULL));
  msu_prompt_set_text(prompt, " \n");
  check_ok(cannot_create(at), "a prompt of white space is none");
  check_ok(msa_library_get_prompts(library) != NULL, "there is a history of prompts");
}

static gboolean joins_queue(gpointer data) {
  struct page *at = data;
  return g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_queue(at->studio))) > 0 &&
         !strcmp(gtk_button_get_label(GTK_BUTTON(at->create)), "Add to queue");
}

static gboolean is_listed(gpointer data) {
  struct page *at = data;
  return g_list_model_get_n_items(G_LIST_MODEL(msa_studio_get_queue(at->studio))) == 2;
}

static void check_making(struct page *at) {
  g_autoptr(MsaGenerateParams) asked = params_of(at);
  MsaQueue *queue = msa_studio_get_queue(at->studio);
  g_signal_connect_swapped(queue, "job-ended", G_CALLBACK(ended_cb), at);
  g_free(asked->prompt);
  asked->prompt = g_strdup("a red zebra grows");
  asked->width = asked->height = 64;
  asked->frames = 5;
  asked->steps = 40;
  asked->seed = 5;
  asked->host_memory = 0;
  msu_create_page_use_params(MSU_CREATE_PAGE(at->page), asked, NULL);
  check_ok(room_until(can_create, at, 20), "a small clip fits");
  press(at->create);
  check_ok(room_until(joins_queue, at, 20), "what comes next joins the queue");
  g_free(asked->prompt);
  asked->prompt = g_strdup("a blue ring");
  g_autoptr(MsaJob) waiting = msa_queue_add_generate(queue, asked);
  check_ok(room_until(is_listed, at, 20), "another job waits");
  msu_window_edit_job(MSU_WINDOW(at->window), waiting);
  check_ok(!strcmp(gtk_button_get_label(GTK_BUTTON(at->create)), "Save changes"), "a waiting job is edited");
  msu_prompt_set_text(MSU_PROMPT(find(at->form, MSU_TYPE_PROMPT, NULL)), "a green ring");
  press(at->create);
  check_ok(!strcmp(msa_job_get_title(waiting), "a green ring"), "and changed");
  check_ok(room_until(has_ended, at, 120) && msa_job_get_state(at->ended) == MSA_JOB_DONE,
           "the clip is made");
  check_ok(find(at->page, GTK_TYPE_LABEL, "zebra") && find(at->page, MSU_TYPE_MESSAGE, NULL),
           "a word that the model does not know is named");
  g_clear_object(&at->ended);
  check_ok(room_until(has_ended, at, 120) && msa_job_get_clip(at->ended), "the next one too");
  g_clear_object(&at->ended);
  g_signal_handlers_disconnect_by_data(queue, at);
}

static void check_window(AdwApplication *application, MsaStudio *studio) {
  gboolean page_gone = FALSE, window_gone = FALSE;
  struct page at = {.studio = studio, .window = msu_window_new(application, studio)};
  gtk_window_present(GTK_WINDOW(at.window));
  msu_window_show_opened(MSU_WINDOW(at.window));
  at.page = find(at.window, MSU_TYPE_CREATE_PAGE, NULL);
  at.form = find(at.page, MSU_TYPE_FORM, NULL);
  at.plan = find(at.page, MSU_TYPE_PLAN_STRIP, NULL);
  at.create = find(at.page, GTK_TYPE_BUTTON, "Create");
  check_form(&at);
  if (has_model(&at))
    check_making(&at);
  msu_window_show_failure(MSU_WINDOW(at.window), "The store cannot be opened, <b> it is \"full\".");
  check_ok(find(at.window, GTK_TYPE_BUTTON, "Try again") != NULL, "a store that cannot be opened is told");
  g_object_weak_ref(G_OBJECT(at.window), wait_gone_cb, &window_gone);
  g_object_weak_ref(G_OBJECT(at.page), wait_gone_cb, &page_gone);
  gtk_window_destroy(GTK_WINDOW(at.window));
  check_ok(room_until(wait_flag, &page_gone, 20), "the page goes with its window");
  check_ok(room_until(wait_flag, &window_gone, 20), "and the window itself");
}

int main(int argc, char **argv) {
  g_setenv("GSETTINGS_BACKEND", "memory", TRUE);
  g_setenv("GSK_RENDERER", "cairo", FALSE);
  room_begin(argc, argv);
  g_autoptr(GAsyncResult) opened = NULL, closed = NULL;
  g_autoptr(AdwApplication) application =
      adw_application_new("org.megaslide.Studio", G_APPLICATION_NON_UNIQUE);
  check_ok(g_application_register(G_APPLICATION(application), NULL, NULL), "there is a desktop");
  MsaStudio *studio = msa_studio_new();
  msa_studio_open_async(studio, room_done, &opened);
  check_ok(msa_studio_open_finish(studio, room_wait(&opened), NULL), "the studio opens");
  check_words();
  check_rows();
  check_window(application, studio);
  msa_studio_close_async(studio, room_done, &closed);
  check_ok(msa_studio_close_finish(studio, room_wait(&closed), NULL), "and closes");
  g_object_unref(studio);
  return room_end();
}
