/* Between the files of the store: how work gets onto its thread, and SQL with the errors as sentences. */
#pragma once
#include <sqlite3.h>

#include "core/main-thread.h"
#include "store/store.h"

struct msa_store {
  const struct msa_studio_folders *folders;
  GThread *thread;
  GAsyncQueue *work;
  /* The store's thread alone. */
  sqlite3 *db;
  int lock_file;   /* held as long as the data base is open; -1: not */
  GError *refused; /* why it could not be opened: the answer to everything that follows */
  GMutex lock;     /* guards all below */
  gboolean closed; /* nothing is put into work any more */
  void (*handler)(const char *sentence, gpointer data);
  gpointer handler_data;
};

/* Runs on the store's thread inside a transaction, which is rolled back if it returns FALSE. Results go into
 * data. */
typedef gboolean (*MsaStoreWork)(struct msa_store *store, gpointer data, GError **error);

/* No answer. Takes data. */
void msa_store_push(struct msa_store *store, MsaStoreWork work, gpointer data, GDestroyNotify destroy);
/* The task's data is the work's; the task (taken) returns TRUE or the error. */
void msa_store_push_task(struct msa_store *store, MsaStoreWork work, GTask *task);
/* Waits; data stays the caller's. */
gboolean msa_store_wait(struct msa_store *store, MsaStoreWork work, gpointer data, GError **error);

/* schema.c: opens store->db. */
gboolean msa_store_open_file(struct msa_store *store, GError **error);
void msa_store_close_file(struct msa_store *store);
/* Always FALSE: what SQLite said last, as a sentence. */
gboolean msa_store_failed(struct msa_store *store, GError **error);

/* NULL: error is set. */
sqlite3_stmt *msa_store_prepare(struct msa_store *store, const char *sql, GError **error);
/* types has a letter a parameter: i gint64, d double (NaN becomes NULL), s text or NULL. */
void msa_store_bind(sqlite3_stmt *statement, const char *types, ...);
/* One statement without rows. */
gboolean msa_store_exec(struct msa_store *store, GError **error, const char *sql, const char *types, ...);
/* SQLITE_ROW: TRUE. At the end or on an error FALSE; msa_store_finish tells which, and frees. */
gboolean msa_store_step(sqlite3_stmt *statement);
gboolean msa_store_finish(struct msa_store *store, sqlite3_stmt *statement, GError **error);
/* Text of a column, "" for NULL. */
char *msa_store_dup_text(sqlite3_stmt *statement, int column);

/* clips.c, for transactions of other files: the row's id. 0: error is set. */
gint64 msa_store_insert_clip(struct msa_store *store, const struct msa_clip_row *row, GError **error);
/* jobs.c: removes the files of a job's unfinished clip. */
void msa_store_drop_state(struct msa_store *store, gint64 job);
