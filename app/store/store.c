/* The store's thread: work in the order in which it was asked, each in a transaction of its own. */
#include "store/store-private.h"

#include <glib/gi18n-lib.h>
#include <math.h>
#include <stdarg.h>

struct work {
  MsaStoreWork run; /* NULL: the thread ends */
  gpointer data;
  GDestroyNotify destroy;
  GTask *task;         /* that is answered, or NULL */
  struct answer *wait; /* of a thread that waits, or NULL */
};

struct answer {
  GMutex lock; /* guards all below */
  GCond done_cond;
  gboolean done, good;
  GError *error;
};

/* Opening and closing the file take no transaction. */
static gboolean open_work(struct msa_store *store, gpointer data, GError **error) {
  return msa_store_open_file(store, error);
}

struct told {
  struct msa_store *store;
  char *sentence;
};

static gboolean tell_cb(gpointer data) {
  struct told *told = data;
  void (*handler)(const char *, gpointer);
  gpointer handler_data;
  g_mutex_lock(&told->store->lock);
  handler = told->store->handler;
  handler_data = told->store->handler_data;
  g_mutex_unlock(&told->store->lock);
  if (handler)
    handler(told->sentence, handler_data);
  else
    g_warning("%s", told->sentence);
  g_free(told->sentence);
  g_free(told);
  return G_SOURCE_REMOVE;
}

static gboolean in_transaction(struct msa_store *store, const struct work *work, GError **error) {
  if (work->run == open_work)
    return work->run(store, work->data, error);
  if (store->refused) {
    g_propagate_error(error, g_error_copy(store->refused));
    return FALSE;
  }
  if (!store->db) {
    g_set_error_literal(error, MSA_ERROR, MSA_ERROR_STORE,
                        _("The library is closed. Start MegaSlide Studio again."));
    return FALSE;
  }
  if (sqlite3_exec(store->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
    return msa_store_failed(store, error);
  if (work->run(store, work->data, error)) {
    if (sqlite3_exec(store->db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK)
      return TRUE;
    msa_store_failed(store, error);
  }
  sqlite3_exec(store->db, "ROLLBACK", NULL, NULL, NULL);
  return FALSE;
}

static void answer(struct msa_store *store, struct work *work, gboolean good, GError *error) {
  if (work->wait) {
    g_mutex_lock(&work->wait->lock);
    work->wait->good = good;
    work->wait->error = error;
    work->wait->done = TRUE;
    g_cond_signal(&work->wait->done_cond);
    g_mutex_unlock(&work->wait->lock);
    return;
  }
  if (work->task) {
    if (good)
      g_task_return_boolean(work->task, TRUE);
    else
      g_task_return_error(work->task, error);
    g_object_unref(work->task);
    return;
  }
  if (!good) {
    struct told *told = g_new0(struct told, 1);
    told->store = store;
    told->sentence = g_strdup(error->message);
    /* Not as an idle: where drawing is slow, the window redraws without end and idles starve. */
    g_idle_add_full(G_PRIORITY_DEFAULT, tell_cb, told, NULL);
    g_error_free(error);
  }
  if (work->destroy)
    work->destroy(work->data);
}

static gpointer store_thread(gpointer data) {
  struct msa_store *store = data;
  for (;;) {
    struct work *work = g_async_queue_pop(store->work);
    GError *error = NULL;
    if (!work->run) {
      g_free(work);
      break;
    }
    const gboolean good = in_transaction(store, work, &error);
    answer(store, work, good, error);
    g_free(work);
  }
  msa_store_close_file(store);
  return NULL;
}

struct msa_store *msa_store_new(const struct msa_studio_folders *folders) {
  struct msa_store *store = g_new0(struct msa_store, 1);
  store->folders = folders;
  store->lock_file = -1;
  store->work = g_async_queue_new();
  g_mutex_init(&store->lock);
  store->thread = g_thread_new("store", store_thread, store);
  return store;
}

void msa_store_close(struct msa_store *store) {
  MSA_ASSERT_OFF_MAIN();
  g_mutex_lock(&store->lock);
  g_assert(!store->closed);
  store->closed = TRUE;
  g_async_queue_push(store->work, g_new0(struct work, 1));
  g_mutex_unlock(&store->lock);
  g_thread_join(store->thread);
}

void msa_store_free(struct msa_store *store) {
  g_assert(store->closed);
  g_async_queue_unref(store->work);
  g_mutex_clear(&store->lock);
  g_clear_error(&store->refused);
  g_free(store);
}

void msa_store_on_error(struct msa_store *store, void (*handler)(const char *sentence, gpointer data),
                        gpointer data) {
  g_mutex_lock(&store->lock);
  store->handler = handler;
  store->handler_data = data;
  g_mutex_unlock(&store->lock);
}

/* After the close the answer is an error; what wants none is forgotten. */
static void push(struct msa_store *store, struct work work) {
  g_mutex_lock(&store->lock);
  const gboolean closed = store->closed;
  if (!closed)
    g_async_queue_push(store->work, g_memdup2(&work, sizeof work));
  g_mutex_unlock(&store->lock);
  if (!closed)
    return;
  if (work.wait || work.task)
    answer(store, &work, FALSE,
           g_error_new_literal(MSA_ERROR, MSA_ERROR_STORE,
                               _("The library is closed. Start MegaSlide Studio again.")));
  else if (work.destroy)
    work.destroy(work.data);
}

void msa_store_push(struct msa_store *store, MsaStoreWork work, gpointer data, GDestroyNotify destroy) {
  push(store, (struct work){.run = work, .data = data, .destroy = destroy});
}

void msa_store_push_task(struct msa_store *store, MsaStoreWork work, GTask *task) {
  push(store, (struct work){.run = work, .data = g_task_get_task_data(task), .task = task});
}

gboolean msa_store_wait(struct msa_store *store, MsaStoreWork work, gpointer data, GError **error) {
  struct answer wait = {0};
  MSA_ASSERT_OFF_MAIN();
  g_mutex_init(&wait.lock);
  g_cond_init(&wait.done_cond);
  push(store, (struct work){.run = work, .data = data, .wait = &wait});
  g_mutex_lock(&wait.lock);
  while (!wait.done)
    g_cond_wait(&wait.done_cond, &wait.lock);
  g_mutex_unlock(&wait.lock);
  g_mutex_clear(&wait.lock);
  g_cond_clear(&wait.done_cond);
  if (!wait.good)
    g_propagate_error(error, wait.error);
  return wait.good;
}

void msa_store_open_async(struct msa_store *store, GAsyncReadyCallback callback, gpointer data) {
  msa_store_push_task(store, open_work, g_task_new(NULL, NULL, callback, data));
}

gboolean msa_store_open_finish(GAsyncResult *result, GError **error) {
  return g_task_propagate_boolean(G_TASK(result), error);
}

sqlite3_stmt *msa_store_prepare(struct msa_store *store, const char *sql, GError **error) {
  sqlite3_stmt *statement = NULL;
  MSA_ASSERT_OFF_MAIN();
  if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL) != SQLITE_OK)
    msa_store_failed(store, error);
  return statement;
}

static void bind_all(sqlite3_stmt *statement, const char *types, va_list values) {
  for (int i = 1; *types; types++, i++) {
    if (*types == 'i') {
      sqlite3_bind_int64(statement, i, va_arg(values, gint64));
    } else if (*types == 'd') {
      sqlite3_bind_double(statement, i, va_arg(values, double));
    } else {
      g_assert(*types == 's');
      sqlite3_bind_text(statement, i, va_arg(values, const char *), -1, SQLITE_TRANSIENT);
    }
  }
}

void msa_store_bind(sqlite3_stmt *statement, const char *types, ...) {
  va_list values;
  va_start(values, types);
  bind_all(statement, types, values);
  va_end(values);
}

gboolean msa_store_step(sqlite3_stmt *statement) {
  MSA_ASSERT_OFF_MAIN();
  return sqlite3_step(statement) == SQLITE_ROW;
}

gboolean msa_store_finish(struct msa_store *store, sqlite3_stmt *statement, GError **error) {
  /* finalize repeats the code of the last step */
  if (sqlite3_finalize(statement) != SQLITE_OK)
    return msa_store_failed(store, error);
  return TRUE;
}

gboolean msa_store_exec(struct msa_store *store, GError **error, const char *sql, const char *types, ...) {
  va_list values;
  sqlite3_stmt *statement = msa_store_prepare(store, sql, error);
  if (!statement)
    return FALSE;
  va_start(values, types);
  bind_all(statement, types, values);
  va_end(values);
  while (msa_store_step(statement))
    continue;
  return msa_store_finish(store, statement, error);
}

char *msa_store_dup_text(sqlite3_stmt *statement, int column) {
  const char *text = (const char *)sqlite3_column_text(statement, column);
  return g_strdup(text ? text : "");
}
