/* The data base file: its tables, and opening it without harm to one that is not ours to change.
 *
 * States are the numbers of enum msa_job_state, kinds those of enum msa_job_kind; a job and the run that it
 * trains share their number, which is the time (microseconds since 1970) when it was added. */
#include <errno.h>
#include <fcntl.h>
#include <glib/gi18n-lib.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "store/store-private.h"

#define APPLICATION_ID 0x4d534c44 /* "MSLD" */
#define BUSY_MS 2000

/* Script n brings version n to n + 1. Scripts that were released do not change. */
static const char *const migrations[] = {
    "CREATE TABLE jobs (id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, place INTEGER NOT NULL,"
    " state INTEGER NOT NULL, params TEXT NOT NULL, output TEXT UNIQUE, error TEXT);"
    "CREATE TABLE clips (id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL, prompt TEXT NOT NULL,"
    " model TEXT NOT NULL, kind TEXT NOT NULL, params TEXT, created INTEGER NOT NULL, seconds REAL NOT NULL,"
    " bytes INTEGER NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL, frames INTEGER NOT NULL,"
    " fps REAL NOT NULL, starred INTEGER NOT NULL, trashed TEXT);"
    "CREATE INDEX clips_newest ON clips (created, id);"
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, name TEXT NOT NULL, folder TEXT NOT NULL UNIQUE,"
    " params TEXT NOT NULL, state INTEGER NOT NULL, step INTEGER NOT NULL, steps INTEGER NOT NULL,"
    " loss REAL, seconds REAL NOT NULL, error TEXT);"
    "CREATE TABLE series (id INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE,"
    " name TEXT NOT NULL, UNIQUE (run, name));"
    "CREATE TABLE metrics (series INTEGER NOT NULL REFERENCES series ON DELETE CASCADE,"
    " step INTEGER NOT NULL, value REAL NOT NULL, PRIMARY KEY (series, step)) WITHOUT ROWID;"
    "CREATE TABLE samples (run INTEGER NOT NULL REFERENCES runs ON DELETE CASCADE, step INTEGER NOT NULL,"
    " prompt TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (run, step, prompt)) WITHOUT ROWID;"
    "CREATE TABLE prompts (text TEXT PRIMARY KEY, used INTEGER NOT NULL) WITHOUT ROWID;",
    /* what a job that was stopped has behind it */
    "ALTER TABLE jobs ADD COLUMN seconds REAL NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN fraction REAL NOT NULL DEFAULT 0;",
};
#define VERSION ((int)G_N_ELEMENTS(migrations))

gboolean msa_store_failed(struct msa_store *store, GError **error) {
  const char *path = store->folders->store;
  switch (store->db ? sqlite3_errcode(store->db) & 0xff : SQLITE_NOMEM) {
  case SQLITE_FULL:
    g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
                _("\"%s\" cannot be written: the disk is full; free some space and try again"), path);
    break;
  case SQLITE_BUSY:
  case SQLITE_LOCKED:
    g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
                _("\"%s\" is in use by another program: close that program and try again"), path);
    break;
  case SQLITE_READONLY:
  case SQLITE_CANTOPEN:
  case SQLITE_PERM:
    g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
                _("\"%s\" cannot be opened for writing: check who may write in that folder"), path);
    break;
  case SQLITE_CORRUPT:
  case SQLITE_NOTADB:
    g_set_error(
        error, MSA_ERROR, MSA_ERROR_STORE,
        _("\"%s\" is damaged and was left as it is: put a backup in its place, or move it away to begin "
          "with an empty library"),
        path);
    break;
  default:
    g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
                _("\"%s\" cannot be used: %s; check the disk that it is on and try again"), path,
                store->db ? sqlite3_errmsg(store->db) : _("out of memory"));
  }
  return FALSE;
}

static gboolean make_folder(const char *path, GError **error) {
  if (g_mkdir_with_parents(path, 0755) == 0)
    return TRUE;
  g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
              _("cannot make the folder \"%s\": %s; check who may write there and try again"), path,
              g_strerror(errno));
  return FALSE;
}

/* Two Studios would run the same jobs. The lock goes with the process, however it ends. */
static gboolean take_lock(struct msa_store *store, GError **error) {
  g_autofree char *path = g_strconcat(store->folders->store, ".lock", NULL);
  store->lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (store->lock_file < 0) {
    g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
                _("cannot write \"%s\": %s; check who may write there and try again"), path,
                g_strerror(errno));
    return FALSE;
  }
  if (flock(store->lock_file, LOCK_EX | LOCK_NB) == 0)
    return TRUE;
  g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
              _("the library in \"%s\" is open in another MegaSlide Studio: use that window or close it"),
              store->folders->home);
  return FALSE;
}

static gboolean pragma_number(struct msa_store *store, const char *sql, int *number, GError **error) {
  sqlite3_stmt *statement = msa_store_prepare(store, sql, error);
  if (!statement)
    return FALSE;
  *number = msa_store_step(statement) ? sqlite3_column_int(statement, 0) : 0;
  return msa_store_finish(store, statement, error);
}

static gboolean migrate(struct msa_store *store, int version, GError **error) {
  for (; version < VERSION; version++) {
    g_autofree char *script =
        g_strdup_printf("BEGIN IMMEDIATE; %s PRAGMA user_version = %d; PRAGMA application_id = %d; COMMIT;",
                        migrations[version], version + 1, APPLICATION_ID);
    if (sqlite3_exec(store->db, script, NULL, NULL, NULL) != SQLITE_OK) {
      msa_store_failed(store, error);
      sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
      return FALSE;
    }
  }
  return TRUE;
}

/* Reads only, until it is sure that the file is one of ours, whole and not newer than this program. */
static gboolean check(struct msa_store *store, int *version, GError **error) {
  int tables, application;
  if (!pragma_number(store, "SELECT count(*) FROM sqlite_master", &tables, error) ||
      !pragma_number(store, "PRAGMA user_version", version, error) ||
      !pragma_number(store, "PRAGMA application_id", &application, error))
    return FALSE;
  if (*version > VERSION) {
    g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
                _("\"%s\" was written by a newer version of MegaSlide Studio (form %d, this one knows %d): "
                  "install that version again; the library was left as it is"),
                store->folders->store, *version, VERSION);
    return FALSE;
  }
  if ((tables || *version) && (application != APPLICATION_ID || *version < 1)) {
    g_set_error(error, MSA_ERROR, MSA_ERROR_STORE,
                _("\"%s\" is not a library of MegaSlide Studio and was left as it is: move it away"),
                store->folders->store);
    return FALSE;
  }
  return TRUE;
}

static gboolean open_checked(struct msa_store *store, GError **error) {
  const struct msa_studio_folders *folders = store->folders;
  const char *const made[] = {folders->home, folders->clips, folders->models,
                              folders->runs, folders->jobs,  folders->cache};
  int version;
  for (size_t i = 0; i < G_N_ELEMENTS(made); i++)
    if (!make_folder(made[i], error))
      return FALSE;
  if (!take_lock(store, error))
    return FALSE;
  if (sqlite3_open_v2(folders->store, &store->db,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
    return msa_store_failed(store, error);
  sqlite3_busy_timeout(store->db, BUSY_MS);
  if (!check(store, &version, error))
    return FALSE;
  /* full: a job that the list shows survives a power cut */
  if (sqlite3_exec(store->db,
                   "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON", NULL,
                   NULL, NULL) != SQLITE_OK)
    return msa_store_failed(store, error);
  return migrate(store, version, error);
}

gboolean msa_store_open_file(struct msa_store *store, GError **error) {
  g_autoptr(GError) why = NULL;
  MSA_ASSERT_OFF_MAIN();
  g_clear_error(&store->refused);
  if (store->db || open_checked(store, &why))
    return TRUE;
  msa_store_close_file(store);
  store->refused = g_error_copy(why);
  g_propagate_error(error, g_steal_pointer(&why));
  return FALSE;
}

void msa_store_close_file(struct msa_store *store) {
  sqlite3_close(store->db);
  store->db = NULL;
  if (store->lock_file >= 0)
    close(store->lock_file);
  store->lock_file = -1;
}
