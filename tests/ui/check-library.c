/* The library page over a real store: a thousand clips, what is listed, details, and two clips in lock step.
 * Arguments: a clip that is copied, how often, a folder for scratch files (also $XDG_DATA_HOME). */
#include <adwaita.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "find.h"
#include "harness.h"
#include "library/msu-clip-cell.h"
#include "library/msu-clip-details.h"
#include "library/msu-clip-filter.h"
#include "library/msu-compare.h"
#include "library/msu-library-page.h"
#include "msa-studio.h"
#include "player/msu-player.h"
#include "wait.h"

struct waiting {
  int left;
  gboolean failed;
};

static gboolean all_done(gpointer data) {
  return ((struct waiting *)data)->left == 0;
}

static void added_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct waiting *waiting = data;
  g_autoptr(GError) error = NULL;
  g_autoptr(MsaClip) clip = msa_library_add_finish(MSA_LIBRARY(source), result, &error);
  waiting->failed |= !clip;
  waiting->left--;
}

static void opened_cb(GObject *source, GAsyncResult *result, gpointer data) {
  struct waiting *waiting = data;
  waiting->failed |= !msa_studio_open_finish(MSA_STUDIO(source), result, NULL);
  waiting->left--;
}

static void closed_cb(GObject *source, GAsyncResult *result, gpointer data) {
  msa_studio_close_finish(MSA_STUDIO(source), result, NULL);
  ((struct waiting *)data)->left--;
}

static void close_studio(MsaStudio *studio) {
  struct waiting waiting = {1, FALSE};
  msa_studio_close_async(studio, closed_cb, &waiting);
  wait_for(all_done, &waiting, 60);
  g_object_unref(studio);
}

static gboolean counts_down(GtkWidget *widget, gpointer left) {
  return (*(int *)left)-- == 0;
}

/* The n-th widget of a type below a widget. */
static GtkWidget *find_nth(GtkWidget *widget, GType type, int n) {
  return find_where(widget, type, counts_down, &n);
}

static int count_cells(GtkWidget *page) {
  int count = 0;
  while (find_nth(page, MSU_TYPE_CLIP_CELL, count))
    count++;
  return count;
}

static gboolean has_cells(gpointer data) {
  GtkWidget *cell = find(data, MSU_TYPE_CLIP_CELL, NULL);
  return cell && gtk_widget_get_mapped(cell) && msu_clip_cell_get_clip(MSU_CLIP_CELL(cell));
}

static GListModel *listed(GtkWidget *page) {
  return G_LIST_MODEL(gtk_grid_view_get_model(GTK_GRID_VIEW(find(page, GTK_TYPE_GRID_VIEW, NULL))));
}

static void fill(const char *clip, int count, const char *folder) {
  g_autoptr(MsaStudio) studio = msa_studio_new();
  struct waiting waiting = {1, FALSE};
  g_autofree char *bytes = NULL;
  gsize size = 0;
  msa_studio_open_async(studio, opened_cb, &waiting);
  check_ok(wait_for(all_done, &waiting, 60) && !waiting.failed, "a store opens");
  g_file_get_contents(clip, &bytes, &size, NULL);
  for (int i = 0; i < count; i++) {
    g_autofree char *name = g_strdup_printf("clip-%04d.mp4", i);
    g_autofree char *path = g_build_filename(folder, name, NULL);
    g_file_set_contents_full(path, bytes, (gssize)size, G_FILE_SET_CONTENTS_NONE, 0644, NULL);
    waiting.left++;
    msa_library_add_async(msa_studio_get_library(studio), path, added_cb, &waiting);
  }
  check_ok(wait_for(all_done, &waiting, 500) && !waiting.failed, "%d clips are added", count);
  close_studio(g_steal_pointer(&studio));
}

struct expected {
  GListModel *list;
  guint count;
};

static gboolean has_count(gpointer data) {
  struct expected *expected = data;
  return g_list_model_get_n_items(expected->list) == expected->count;
}

static void check_list(GtkWidget *page, MsaLibrary *library, int count) {
  g_autoptr(MsaClip) tenth = g_list_model_get_item(G_LIST_MODEL(library), 10);
  GtkWidget *search = find(page, GTK_TYPE_SEARCH_ENTRY, NULL);
  g_autofree char *name = g_path_get_basename(msa_clip_get_path(tenth));
  name[strlen("clip-0000")] = '\0';
  gtk_editable_set_text(GTK_EDITABLE(search), name);
  struct expected expected = {listed(page), 1};
  check_ok(wait_for(has_count, &expected, 20), "a search finds the one clip of that name");
  gtk_editable_set_text(GTK_EDITABLE(search), "nothing is called so");
  expected.count = 0;
  check_ok(wait_for(has_count, &expected, 20), "and none where none is");
  gtk_editable_set_text(GTK_EDITABLE(search), "");
  expected.count = (guint)count;
  check_ok(wait_for(has_count, &expected, 20), "without a search all are listed again");
  msa_library_set_starred(library, tenth, TRUE);
  g_autoptr(MsuClipFilter) filter = msu_clip_filter_new();
  g_autoptr(GtkFilterListModel) starred =
      gtk_filter_list_model_new(g_object_ref(G_LIST_MODEL(library)), GTK_FILTER(g_object_ref(filter)));
  check_ok((int)g_list_model_get_n_items(G_LIST_MODEL(starred)) == count,
           "a filter that is not set lists all");
  msu_clip_filter_set_starred(filter, TRUE);
  check_ok(g_list_model_get_n_items(G_LIST_MODEL(starred)) == 1, "the star is a filter");
  msu_clip_filter_set_kind(filter, "made");
  check_ok(g_list_model_get_n_items(G_LIST_MODEL(starred)) == 0, "and the kind another");
}

static gboolean plays(gpointer data) {
  return msu_player_get_frames(data) > 0;
}

static void check_details(GtkWidget *page, MsaLibrary *library) {
  g_autoptr(MsaClip) clip = g_list_model_get_item(G_LIST_MODEL(library), 3);
  msu_library_page_show_clip(MSU_LIBRARY_PAGE(page), clip);
  GtkWidget *details = find(page, MSU_TYPE_CLIP_DETAILS, NULL);
  MsuPlayer *player = MSU_PLAYER(find(details, MSU_TYPE_PLAYER, NULL));
  check_ok(!g_strcmp0(msu_player_get_path(player), msa_clip_get_path(clip)) && wait_for(plays, player, 30),
           "the details play the clip that is shown");
  gtk_widget_activate_action(details, "library.close", NULL);
  check_ok(msu_player_get_path(player) == NULL, "and stop when they are closed");
}

static gboolean in_step(gpointer data) {
  return msu_compare_get_shown(data) >= 0;
}

static void check_compare(GtkWidget *page, MsaLibrary *library) {
  GtkSelectionModel *selection = GTK_SELECTION_MODEL(listed(page));
  gtk_selection_model_select_item(selection, 0, TRUE);
  gtk_selection_model_select_item(selection, 5, FALSE);
  gtk_widget_activate_action(find(page, MSU_TYPE_CLIP_DETAILS, NULL), "library.compare", NULL);
  MsuCompare *compare = MSU_COMPARE(find(page, MSU_TYPE_COMPARE, NULL));
  check_ok(wait_for(in_step, compare, 30), "two clips are compared");
  gint64 last = -1, steps = 0, apart = 0;
  gint64 end = g_get_monotonic_time() + 3 * G_USEC_PER_SEC;
  while (g_get_monotonic_time() < end) {
    g_main_context_iteration(NULL, TRUE);
    gint64 shown = msu_compare_get_shown(compare);
    apart += shown < 0;
    steps += shown != last;
    last = shown;
  }
  check_ok(apart == 0 && steps > 5, "they play in lock step (%d frames)", (int)steps);
  g_object_set(compare, "frame", (gint64)7, "wipe", TRUE, NULL);
  wait_seconds(.3);
  check_ok(msu_compare_get_shown(compare) == 7, "and show the frame that is asked for");
  g_signal_emit_by_name(compare, "closed");
  wait_seconds(.1);
  check_ok(msu_compare_get_shown(compare) < 0, "and let go of both when it ends");
}

int main(int argc, char **argv) {
  check_begin(1, argv);
  if (argc != 4) {
    printf("Bail out! usage: check-library CLIP COUNT FOLDER\n");
    return 1;
  }
  int count = atoi(argv[2]);
  g_log_set_always_fatal(G_LOG_LEVEL_CRITICAL | G_LOG_FATAL_MASK);
  adw_init();
  fill(argv[1], count, argv[3]);

  GtkWidget *window = gtk_window_new();
  gtk_window_set_default_size(GTK_WINDOW(window), 1200, 700);
  gint64 start = g_get_monotonic_time();
  clock_t work = clock();
  struct waiting waiting = {1, FALSE};
  MsaStudio *studio = msa_studio_new();
  GtkWidget *page = msu_library_page_new(studio);
  gtk_window_set_child(GTK_WINDOW(window), page);
  gtk_window_present(GTK_WINDOW(window));
  msa_studio_open_async(studio, opened_cb, &waiting);
  gboolean shown = wait_for(has_cells, page, 60);
  double seconds = (g_get_monotonic_time() - start) / 1e6;
  check_ok(shown && wait_for(all_done, &waiting, 60), "the clips are shown");
  /* A machine that does other things too takes longer, so the work is what counts. */
  double worked = (double)(clock() - work) / CLOCKS_PER_SEC;
  printf("# %.3f s from nothing to the first of %d clips on the screen, %.3f s of work\n", seconds, count,
         worked);
  check_ok(worked < 2, "in a moment");
  MsaLibrary *library = msa_studio_get_library(studio);
  check_ok((int)g_list_model_get_n_items(listed(page)) == count, "all %d are listed", count);
  int cells = count_cells(page);
  check_ok(cells < MAX(count / 2, 20), "only those near the window have a widget (%d of %d)", cells, count);
  check_list(page, library, count);
  check_details(page, library);
  check_compare(page, library);
  gboolean gone = FALSE;
  g_object_weak_ref(G_OBJECT(page), wait_gone_cb, &gone);
  gtk_window_destroy(GTK_WINDOW(window));
  check_ok(wait_for(wait_flag, &gone, 30), "the page is finalised");
  close_studio(studio);
  return check_end();
}
