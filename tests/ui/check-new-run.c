/* A new training run in a window of its own: what it says of a folder, captions that are written in place,
 * its memory, when it can be started and what it then asks for. */
#include <adwaita.h>
#include <glib/gstdio.h>
#include <string.h>

#include "find.h"
#include "harness.h"
#include "msa-studio.h"
#include "room.h"
#include "train/msu-memory-row.h"
#include "train/msu-new-run.h"
#include "wait.h"

struct bench {
  GtkWidget *page;
  const char *text; /* that is waited for */
  MsaJob *job;
};

static gboolean has_label(gpointer data) {
  struct bench *bench = data;
  return find_exact(bench->page, GTK_TYPE_LABEL, bench->text) != NULL;
}

static gboolean says(struct bench *bench, const char *text) {
  bench->text = text;
  return wait_for(has_label, bench, 20);
}

static gboolean can_start(gpointer data) {
  struct bench *bench = data;
  return gtk_widget_get_sensitive(find_exact(bench->page, GTK_TYPE_BUTTON, "Start"));
}

static void started_cb(MsuNewRun *new_run, MsaJob *job, gpointer data) {
  ((struct bench *)data)->job = g_object_ref(job);
}

static gboolean is_written(gpointer path) {
  g_autofree char *text = NULL;
  return g_file_get_contents(path, &text, NULL, NULL) && !strcmp(text, "a green ring\n");
}

static gboolean is_moments(GtkWidget *row, gpointer data) {
  return !g_strcmp0(adw_preferences_row_get_title(ADW_PREFERENCES_ROW(row)), "Moments");
}

/* What is typed as a budget, and what it comes to; -1: it is none. */
static void check_amounts(MsuMemoryRow *row, GtkWidget *entry) {
  static const struct {
    const char *text;
    double bytes;
  } amounts[] = {{"", 0},
                 {"4", 4.0 * (1 << 30)},
                 {"4 GB", 4.0 * (1 << 30)},
                 {"600M", 600.0 * (1 << 20)},
                 {"1.5 gib", 1.5 * (1 << 30)},
                 {" 2 TB ", 2048.0 * (1 << 30)},
                 {"0", -1},
                 {"-3 GB", -1},
                 {"4 X", -1},
                 {"GB", -1},
                 {"4 GBs", -1},
                 {"4 4", -1}};
  int wrong = 0;
  for (gsize i = 0; i < G_N_ELEMENTS(amounts); i++) {
    guint64 bytes = 1;
    gtk_editable_set_text(GTK_EDITABLE(entry), amounts[i].text);
    const gboolean good = msu_memory_row_get_bytes(row, &bytes);
    wrong += good != (amounts[i].bytes >= 0) || (good && (double)bytes != amounts[i].bytes);
  }
  check_ok(wrong == 0, "amounts of memory are read with and without a unit, %d are not", wrong);
}

static gboolean knows_automatic(gpointer data) {
  struct bench *bench = data;
  return find(bench->page, GTK_TYPE_LABEL, ", 70 per cent of what is free") != NULL;
}

/* A budget of three and a half GB, and 8 bit moments. */
static void check_memory(struct bench *bench) {
  GtkWidget *row = find(bench->page, MSU_TYPE_MEMORY_ROW, NULL),
            *entry = row ? find(row, GTK_TYPE_ENTRY, NULL) : NULL;
  GtkWidget *moments = find_where(bench->page, ADW_TYPE_COMBO_ROW, is_moments, NULL);
  check_ok(entry && moments, "there are entries for the memory");
  if (!entry || !moments)
    return;
  check_ok(wait_for(knows_automatic, bench, 20), "left to the program, it says what that comes to");
  check_amounts(MSU_MEMORY_ROW(row), entry);
  gtk_editable_set_text(GTK_EDITABLE(entry), "lots");
  check_ok(says(bench, "“lots” is no amount of memory: a number with GB or MB, as 4 GB.") &&
               !can_start(bench),
           "what is no amount keeps it from starting");
  gtk_editable_set_text(GTK_EDITABLE(entry), "3,5 GB");
  adw_combo_row_set_selected(ADW_COMBO_ROW(moments), 1);
  check_ok(wait_for(can_start, bench, 20), "with a budget that is read, it can");
}

static void check_page(MsaStudio *studio, const char *folder) {
  struct bench bench = {.page = msu_new_run_new(studio)};
  GtkWidget *window = gtk_window_new();
  gboolean gone = FALSE;
  gtk_window_set_child(GTK_WINDOW(window), bench.page);
  gtk_window_set_default_size(GTK_WINDOW(window), 1000, 640);
  gtk_window_present(GTK_WINDOW(window));
  g_signal_connect(bench.page, "started", G_CALLBACK(started_cb), &bench);
  msu_new_run_set_folder(MSU_NEW_RUN(bench.page), folder);
  check_ok(says(&bench, "4 clips, 2 cannot be used"), "it counts the clips and those that cannot be used");
  check_ok(says(&bench, "Cannot be used: no caption"), "with the reason in the row");
  check_ok(says(&bench, "1 clip has no caption. Write one, or choose what is done under Missing captions.") &&
               !can_start(&bench),
           "a clip without a caption keeps it from starting, and it says what to do");

  GtkWidget *entry = find_exact(bench.page, GTK_TYPE_ENTRY, "");
  check_ok(entry != NULL, "the caption can be written in place");
  if (entry) {
    g_autofree char *path = g_build_filename(folder, "b.txt", NULL);
    gtk_widget_grab_focus(entry);
    gtk_editable_set_text(GTK_EDITABLE(entry), "a green ring");
    g_signal_emit_by_name(entry, "activate");
    check_ok(wait_for(is_written, path, 10), "Enter writes it beside the clip");
  }
  check_ok(says(&bench, "4 clips, 1 cannot be used"), "then it can be used");
  check_ok(wait_for(can_start, &bench, 60), "and the run can start");
  check_memory(&bench);
  msa_queue_set_paused(msa_studio_get_queue(studio), TRUE);
  g_signal_emit_by_name(find_exact(bench.page, GTK_TYPE_BUTTON, "Start"), "clicked");
  const MsaTrainParams *params = bench.job ? msa_job_get_train(bench.job) : NULL;
  check_ok(params && !g_strcmp0(params->name, "my clips") && !g_strcmp0(params->dataset, folder) &&
               !g_strcmp0(params->method, "full") && params->steps == 1000 && params->batch == 4,
           "it asks for what is in the form, under the folder's name");
  check_ok(params && params->host_memory == (guint64)7 << 29 && params->moment_bits == 8,
           "with the budget that was typed, and 8 bit moments");
  /* eight frames at eight a second are twelve at the starter's twelve, and nine fit the codec */
  check_ok(params && params->frames == 9, "with no more frames than the shortest clip has: %d",
           params ? params->frames : 0);
  if (bench.job)
    msa_queue_cancel_job(msa_studio_get_queue(studio), bench.job);
  g_clear_object(&bench.job);
  g_object_weak_ref(G_OBJECT(bench.page), wait_gone_cb, &gone);
  gtk_window_destroy(GTK_WINDOW(window));
  check_ok(wait_for(wait_flag, &gone, 10), "nothing of it stays behind");
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  adw_init();
  g_autofree char *folder = room_path("my clips");
  static const char *const names[] = {"a.mp4", "b.mp4", "c.mp4"};
  g_mkdir(folder, 0755);
  for (int i = 0; i < 3; i++) {
    g_autofree char *clip = g_build_filename(folder, names[i], NULL);
    room_clip(clip, 8, NULL);
    clip[strlen(clip) - 3] = 0;
    g_autofree char *caption = g_strconcat(clip, "txt", NULL);
    if (i != 1)
      room_write(caption, "a red circle");
  }
  g_autofree char *broken = g_build_filename(folder, "d.mp4", NULL);
  room_write(broken, "no video");
  g_autoptr(GAsyncResult) opened = NULL, closed = NULL;
  MsaStudio *studio = msa_studio_new();
  msa_studio_open_async(studio, room_done, &opened);
  check_ok(msa_studio_open_finish(studio, room_wait(&opened), NULL), "the studio opens");
  check_page(studio, folder);
  msa_studio_close_async(studio, room_done, &closed);
  check_ok(msa_studio_close_finish(studio, room_wait(&closed), NULL), "and closes");
  g_object_unref(studio);
  return room_end();
}
