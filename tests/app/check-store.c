/* The data base file when it is not as it should be, and what the store keeps. */
#include <glib/gstdio.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness.h"
#include "store/runs.h"
#include "store/store-private.h"
#include "studio-room.h"

/* Opening fails with these words, and the file is as before. */
static void check_refused(const char *path, const char *words) {
  g_autoptr(GError) error = NULL;
  g_autofree char *before = NULL, *after = NULL;
  gsize before_size = 0, after_size = 0;
  g_file_get_contents(path, &before, &before_size, NULL);
  MsaStudio *studio = room_try_open(&error);
  check_ok(!studio && g_error_matches(error, MSA_ERROR, MSA_ERROR_STORE) && strstr(error->message, words) &&
               strstr(error->message, path),
           "refused: %s", error ? error->message : "no error");
  g_clear_object(&studio);
  room_idle(.2); /* its threads end */
  g_file_get_contents(path, &after, &after_size, NULL);
  check_ok(before_size == after_size && (!before_size || !memcmp(before, after, before_size)),
           "and left as it was");
}

static void sql(const char *path, const char *script) {
  sqlite3 *db;
  g_assert(sqlite3_open(path, &db) == SQLITE_OK);
  g_assert(sqlite3_exec(db, script, NULL, NULL, NULL) == SQLITE_OK);
  sqlite3_close(db);
}

static int version_of(const char *path) {
  sqlite3 *db;
  sqlite3_stmt *statement;
  g_assert(sqlite3_open(path, &db) == SQLITE_OK);
  g_assert(sqlite3_prepare_v2(db, "PRAGMA user_version", -1, &statement, NULL) == SQLITE_OK);
  const int version = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int(statement, 0) : -1;
  sqlite3_finalize(statement);
  sqlite3_close(db);
  return version;
}

/* Of the first form, with a job, and one that no version wrote. */
static void check_older(const char *path) {
  sql(path, "ALTER TABLE jobs DROP COLUMN seconds; ALTER TABLE jobs DROP COLUMN fraction;"
            "INSERT INTO jobs (id, kind, place, state, params) VALUES "
            "(5, 0, 1, 0, '{\"prompt\": \"a\"}'), (6, 7, 2, 77, 'junk'), (8, 1, 3, 1, '{\"dataset\": 1}');"
            "PRAGMA user_version = 1");
  MsaStudio *studio = room_open();
  MsaQueue *queue = msa_studio_get_queue(studio);
  check_ok(room_listed(studio, 3, 5) && version_of(path) > 1, "an older form is brought up to date");
  MsaJob *broken = room_nth(studio, 0), *good = room_nth(studio, 1), *junk = room_nth(studio, 2);
  check_ok(!strcmp(msa_job_get_title(good), "a") && msa_job_get_state(good) == MSA_JOB_QUEUED &&
               msa_queue_get_paused(queue),
           "with its job");
  check_ok(msa_job_get_state(junk) == MSA_JOB_FAILED && msa_job_get_state(broken) == MSA_JOB_FAILED &&
               strstr(msa_job_get_error(broken), "dataset"),
           "rows that nobody wrote have failed: %s", msa_job_get_error(broken));
  while (g_list_model_get_n_items(G_LIST_MODEL(queue)))
    msa_queue_cancel_job(queue, room_nth(studio, 0));
  room_close(studio);
}

static void check_bad_files(void) {
  g_autofree char *path = room_path("data/megaslide/studio.db"), *folder = room_path("data/megaslide");
  g_mkdir_with_parents(folder, 0700);
  char noise[8192];
  memset(noise, 'x', sizeof noise);
  g_file_set_contents(path, noise, sizeof noise, NULL);
  check_refused(path, "damaged");
  g_unlink(path);
  sql(path, "CREATE TABLE recipes (soup)");
  check_refused(path, "not a library");
  g_unlink(path);
  MsaStudio *studio = room_open();
  g_autoptr(GError) error = NULL;
  g_autoptr(GAsyncResult) result = NULL, again = NULL;
  MsaStudio *second = msa_studio_new();
  msa_studio_open_async(second, room_done, &result);
  room_wait(&result);
  const gboolean opened = msa_studio_open_finish(second, result, &error);
  check_ok(!opened && strstr(error->message, "another MegaSlide Studio"), "one Studio at a time: %s",
           error ? error->message : "no error");
  room_close(studio);
  msa_studio_open_async(second, room_done, &again);
  room_wait(&again);
  check_ok(msa_studio_open_finish(second, again, NULL), "when the first is closed the second opens");
  g_clear_object(&result);
  g_clear_object(&again);
  room_close(second);
  sql(path, "PRAGMA user_version = 99");
  check_refused(path, "newer version");
  check_older(path);
  /* the first page is whole, the rest is not */
  g_autofree char *bytes = NULL;
  gsize size = 0;
  g_file_get_contents(path, &bytes, &size, NULL);
  memset(bytes + 4096, 0x5a, size - 4096);
  g_file_set_contents(path, bytes, (gssize)size, NULL);
  check_refused(path, "damaged");
  g_unlink(path);
  g_mkdir(path, 0700);
  check_refused(path, "cannot be opened");
  g_rmdir(path);
}

static void check_no_folder(void) {
  g_autofree char *file = room_path("a-file"), *data = room_path("data"), *below = NULL;
  g_autoptr(GError) error = NULL;
  room_write(file, "x");
  below = g_build_filename(file, "below", NULL);
  g_setenv("XDG_DATA_HOME", below, TRUE);
  g_autoptr(MsaStudio) studio = room_try_open(&error);
  check_ok(!studio && strstr(error->message, below), "a folder that cannot be made: %s",
           error ? error->message : "no error");
  g_setenv("XDG_DATA_HOME", data, TRUE);
}

/* A store without a studio. */

struct store_room {
  struct msa_studio_folders *folders;
  struct msa_store *store;
};

static struct store_room open_store(void) {
  struct store_room room = {.folders = msa_studio_folders_new()};
  g_autoptr(GAsyncResult) result = NULL;
  room.store = msa_store_new(room.folders);
  msa_store_open_async(room.store, room_done, &result);
  room_wait(&result);
  g_assert(msa_store_open_finish(result, NULL));
  return room;
}

static gpointer close_thread(gpointer data) {
  msa_store_close(data);
  return NULL;
}

static void close_store(struct store_room *room) {
  g_thread_join(g_thread_new("close", close_thread, room->store));
  msa_store_free(room->store);
  msa_studio_folders_free(room->folders);
}

static gint64 add_clip(struct msa_store *store, const char *path, gint64 created, GError **error) {
  g_autoptr(GAsyncResult) result = NULL;
  const struct msa_clip_row row = {
      .path = (char *)path, .prompt = "p", .model = "m", .kind = "made", .created = created, .fps = 8};
  msa_store_add_clip_async(store, &row, room_done, &result);
  room_wait(&result);
  return msa_store_add_clip_finish(result, error);
}

static GPtrArray *list_clips(struct msa_store *store) {
  g_autoptr(GAsyncResult) result = NULL;
  msa_store_list_clips_async(store, room_done, &result);
  room_wait(&result);
  return msa_store_list_clips_finish(result, NULL);
}

static void check_clips(void) {
  struct store_room room = open_store();
  const gint64 a = add_clip(room.store, "/a", 100, NULL), b = add_clip(room.store, "/b", 300, NULL),
               c = add_clip(room.store, "/c", 200, NULL);
  msa_store_set_starred(room.store, c, TRUE);
  g_autoptr(GAsyncResult) trashed = NULL;
  msa_store_set_trashed_async(room.store, a, "trash:a", room_done, &trashed);
  room_wait(&trashed);
  check_ok(msa_store_set_trashed_finish(trashed, NULL), "a clip goes to the trash");
  g_autoptr(GPtrArray) rows = list_clips(room.store);
  const struct msa_clip_row *first = rows->pdata[0], *second = rows->pdata[1];
  check_ok(rows->len == 2 && first->id == b && second->id == c && second->starred && !first->starred,
           "the others are listed, newest first");
  for (int i = 0; i < 250; i++) {
    g_autofree char *prompt = g_strdup_printf("prompt %d", i);
    msa_store_use_prompt(room.store, prompt);
    g_usleep(50);
  }
  msa_store_use_prompt(room.store, "prompt 100");
  g_autoptr(GAsyncResult) result = NULL;
  msa_store_list_prompts_async(room.store, room_done, &result);
  room_wait(&result);
  g_auto(GStrv) prompts = msa_store_list_prompts_finish(result, NULL);
  check_ok(g_strv_length(prompts) == 200 && !strcmp(prompts[0], "prompt 100") &&
               !strcmp(prompts[1], "prompt 249"),
           "prompts are kept once each, the last ones, newest first");
  close_store(&room);
}

static gboolean shrink_work(struct msa_store *store, gpointer data, GError **error) {
  return msa_store_exec(store, error, "PRAGMA max_page_count = 1", "");
}

static void told_cb(const char *sentence, gpointer data) {
  *(char **)data = g_strdup(sentence);
}

static gboolean was_told(gpointer data) {
  return *(char **)data != NULL;
}

/* SQLite says full at its page limit just as it does at the disk's end. */
static void check_full(void) {
  struct store_room room = open_store();
  g_autoptr(GError) error = NULL;
  g_autofree char *told = NULL, *path = g_strnfill(100000, 'x');
  msa_store_on_error(room.store, told_cb, &told);
  msa_store_push(room.store, shrink_work, NULL, NULL);
  check_ok(!add_clip(room.store, path, 1, &error) && strstr(error->message, "disk is full"),
           "a full disk: %s", error ? error->message : "no error");
  msa_store_use_prompt(room.store, path);
  check_ok(room_until(was_told, &told, 5) && strstr(told, "disk is full"),
           "what has no answer tells it to the studio");
  g_autoptr(GPtrArray) rows = list_clips(room.store);
  check_ok(rows && rows->len == 2, "what was there can still be read");
  msa_store_on_error(room.store, NULL, NULL);
  close_store(&room);
  room = open_store();
  check_ok(add_clip(room.store, "/d", 400, NULL) > 0, "and with room again it can be written");
  close_store(&room);
}

/* Another program writes, and does not end. */
static void check_busy(void) {
  struct store_room room = open_store();
  g_autoptr(GError) error = NULL;
  sqlite3 *db;
  g_assert(sqlite3_open(room.folders->store, &db) == SQLITE_OK);
  g_assert(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK);
  const gint64 refused = add_clip(room.store, "/e", 500, &error);
  check_ok(!refused && error && strstr(error->message, "another program"), "a busy data base: %s",
           error ? error->message : "no error");
  g_assert(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK);
  sqlite3_close(db);
  check_ok(add_clip(room.store, "/e", 500, NULL) > 0, "and when the other one is done it can be written");
  close_store(&room);
}

int main(int argc, char **argv) {
  room_begin(argc, argv);
  check_bad_files();
  check_no_folder();
  check_clips();
  check_full();
  check_busy();
  return room_end();
}
